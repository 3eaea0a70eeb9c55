"""Signatures: by the peer's key alone, over all that the part says, and lost on no way."""

from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from tests.unit.parts.releases import CONTRACT, headed, make

import radocraft as rc
from radocraft.contract._contract import Contract
from radocraft.errors import ContractError, IdentityError, Tampered
from radocraft.parts._part import Part
from radocraft.parts._sign import check_signature, public_key, sign

HEAD = "0" * 64


def pem(key: object, locked: KeySerializationEncryption | None = None) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked or NoEncryption())  # type: ignore[attr-defined]


KEYS = {"ed25519": ed25519.Ed25519PrivateKey.generate(), "p-256": ec.generate_private_key(ec.SECP256R1())}


@pytest.mark.parametrize("kind", KEYS)
def test_a_signature_is_by_one_key_over_one_hash(kind: str) -> None:
    private, other = pem(KEYS[kind]), pem(ed25519.Ed25519PrivateKey.generate())
    made = sign("1" * 64, private)
    check_signature("1" * 64, made, public_key(private), "bank")
    for digest, signature, public in (
        ("2" * 64, made, public_key(private)),
        ("1" * 64, made, public_key(other)),
        ("1" * 64, sign("1" * 64, other), public_key(private)),
        ("1" * 64, "AAAA", public_key(private)),
    ):
        with pytest.raises(Tampered, match="not signed by the key that the contract lists"):
            check_signature(digest, signature, public, "bank")
    with pytest.raises(Tampered, match=r"is not signed.*--sign"):
        check_signature("1" * 64, None, public_key(private), "bank")


@pytest.mark.parametrize("kind", KEYS)
def test_a_contract_that_lists_the_key_takes_signed_parts_alone(tmp_path: Path, kind: str) -> None:
    private = pem(KEYS[kind])
    contract = Contract.parse(f'{CONTRACT}\n[peers.bank]\npublic_key = "{public_key(private)}"\n')
    part = headed(make(contract))
    with pytest.raises(Tampered, match="is not signed"):
        part.cells(contract)
    part.signed(private).write(tmp_path / "part")
    read = Part.read(tmp_path / "part")
    assert read.cells(contract).rows.sum() == part.metadata["rows"]
    assert read.metadata["hash"] == part.metadata["hash"]
    with pytest.raises(Tampered, match="not signed by the key"):
        part.signed(pem(ed25519.Ed25519PrivateKey.generate())).cells(contract)
    with pytest.raises(Tampered, match="not signed by the key"):
        replace(read, metadata={**read.metadata, "hash": "3" * 64}).cells(contract)


@pytest.mark.parametrize(
    ("private", "said"),
    [
        (b"no key", "cannot be read"),
        (pem(KEYS["ed25519"], BestAvailableEncryption(b"secret")), "cannot be read"),
        (pem(rsa.generate_private_key(65537, 1024)), "Ed25519 or P-256"),
    ],
)
def test_a_key_that_cannot_sign_is_refused(private: bytes, said: str) -> None:
    with pytest.raises(IdentityError, match=said):
        sign(HEAD, private)


@pytest.mark.parametrize("public", ["", "AAAA", "no base64!"])
def test_a_public_key_that_is_none_is_the_contracts_mistake(public: str) -> None:
    with pytest.raises(ContractError, match="not an Ed25519 or P-256 key"):
        check_signature(HEAD, sign(HEAD, pem(KEYS["ed25519"])), public, "bank")


def test_a_release_that_is_asked_again_keeps_its_signature_or_gets_another(tmp_path: Path) -> None:
    contract, tables = rc.example_peers(rows=1500)
    one, other = (pem(ec.generate_private_key(ec.SECP256R1())) for _ in range(2))

    def shared(key: bytes | None) -> Part:
        part = rc.share(tables["bank"], contract, "bank", output=tmp_path / "part", sign=key, say=lambda said: None)
        assert Part.read(tmp_path / "part").metadata == part.metadata
        return part

    plain, first, again, second = shared(None), shared(one), shared(one), shared(other)
    assert len({part.metadata["hash"] for part in (plain, first, again, second)}) == 1
    assert "signature" not in plain.metadata
    assert first.metadata == again.metadata
    check_signature(first.metadata["hash"], first.metadata["signature"], public_key(one), "bank")
    check_signature(second.metadata["hash"], second.metadata["signature"], public_key(other), "bank")
