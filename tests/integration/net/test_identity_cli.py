"""The authority and the identities it issues, on the command line."""

from pathlib import Path

import pytest
from cryptography import x509
from tests.integration.test_cli import run  # noqa: F401

from radocraft.errors import IdentityError
from radocraft.ledger._chain import Chain
from radocraft.net._identity import Identity
from radocraft.net._revoked import Revoked


@pytest.fixture
def authority(tmp_path: Path, run) -> Path:  # type: ignore[no-untyped-def]  # noqa: F811
    assert run("identity", "init", tmp_path / "authority").code == 0
    return tmp_path / "authority"


def issue(run, authority: Path, name: str, *more: object) -> Path:  # type: ignore[no-untyped-def]  # noqa: F811
    folder = authority.parent / name
    done = run("identity", "issue", authority, name, "-o", folder, *more, "--json")
    assert done.code == 0, done.err
    assert done.json()["name"] == name
    return folder


def test_secrets_are_for_the_owner_alone(authority: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    bank = issue(run, authority, "bank", "--trust", "collector")
    for secret in (authority / "authority.key", bank / "key.pem", bank / "token"):
        assert secret.stat().st_mode & 0o077 == 0
    shown = run("identity", "show", bank)
    assert (shown.code, "collector" in shown.out) == (0, True)
    token = (bank / "token").read_text().strip()
    everything = [path for path in authority.rglob("*") if path.is_file()] + [bank / "certificate.pem"]
    assert token not in shown.out
    assert not [path for path in everything if token.encode() in path.read_bytes()]


def test_rotation_gives_new_and_revokes_old(authority: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    bank = issue(run, authority, "bank", "--trust", "collector")
    old = Identity.load(bank)
    assert run("identity", "rotate", authority, "bank", "-o", bank).code == 0
    new = Identity.load(bank)
    assert (new.token != old.token, [*new.members()]) == (True, ["collector"])
    listed = Revoked(bank / "revoked.pem", new.authority).serials()
    assert listed == {old.certificate.serial_number}
    assert run("identity", "revoke", authority, "bank", "--json").json() == {
        "revoked": [f"{new.certificate.serial_number:x}"]
    }
    assert len(x509.load_pem_x509_crl((authority / "revoked.pem").read_bytes())) == 2
    kinds = [line["kind"] for line in Chain(authority / "issued.log").entries()]
    assert kinds == ["issue", "issue", "revoke", "revoke"]


def test_mistakes_say_what_to_do(authority: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    bank, shop = issue(run, authority, "bank"), issue(run, authority, "shop")
    wrong = {
        "not empty": ("init", authority),
        "lower-case letters": ("issue", authority, "Bank Nord", "-o", authority.parent / "x"),
        "already exists": ("issue", authority, "shop", "-o", shop),
        "is the identity of 'shop'": ("issue", authority, "bank", "-o", shop, "--force"),
        "never issued": ("revoke", authority, "nobody"),
        "not the folder of an authority": ("issue", bank, "x", "-o", authority.parent / "x"),
        "An identity is a folder": ("show", authority.parent / "nowhere"),
    }
    for said, words in wrong.items():
        done = run("identity", *words)
        assert (done.code, said in " ".join(done.err.split())) == (1, True), done.err
    (bank / "token").write_text("another")
    with pytest.raises(IdentityError, match="token is not the certificate's"):
        Identity.load(bank)
    (shop / "key.pem").write_bytes((bank / "key.pem").read_bytes())
    with pytest.raises(IdentityError, match=r"key\.pem does not belong"):
        Identity.load(shop)
    (shop / "members.toml").write_text("[collector]\ncals_per_minute = 3\nstreams = 0\n")
    with pytest.raises(IdentityError, match="2 mistakes"):
        Identity.read(shop).members()
