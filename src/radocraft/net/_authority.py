"""A small private certificate authority, for trials and for groups that have none.

Its folder holds ``authority.pem`` (everybody gets it), ``authority.key`` (nobody
does), ``revoked.pem`` (everybody gets it when it changes) and ``issued.log``, a
chained list of what was issued and revoked.
"""

from __future__ import annotations

import re
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from radocraft.errors import FileError, IdentityError
from radocraft.ledger import Chain
from radocraft.net._identity import Identity, digest, write_private

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,60}[a-z0-9])?")
_EARLY = timedelta(minutes=5)  # so that a clock a little behind does not refuse a new certificate


def init_authority(folder: str | Path, name: str = "radocraft trial", days: int = 3650) -> Path:
    """Make an authority in an empty folder."""
    where = _new_folder(folder)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(name)
    builder = _builder(subject, subject, key.public_key(), x509.random_serial_number(), days)
    certificate = (
        builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    write_private(where / "authority.key", _private_pem(key))
    (where / "authority.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    _write_revoked(where, [])
    return where


def issue(
    authority: str | Path, name: str, output: str | Path, *, days: int = 365, trust: tuple[str, ...] = ()
) -> Identity:
    """Issue a certificate and a token, and write the folder of the identity.

    Parameters
    ----------
    authority
        The authority's folder.
    name
        Who it is: the peer's name in the contract, or the collector's.
    output
        The folder to write; it must be empty, or hold an identity of that name.
    days
        For how long it is valid.
    trust
        Names to put into its ``members.toml``: those who may ask it.
    """
    if not _NAME.fullmatch(name):
        raise IdentityError(f"'{name}' cannot be a certificate's name. Use lower-case letters, digits, '-' and '.'.")
    where, folder = Path(authority), _new_folder(output, name)
    key, serial, token = ec.generate_private_key(ec.SECP256R1()), x509.random_serial_number(), secrets.token_urlsafe(32)
    ours = _authority(where)
    builder = _builder(_subject(name), ours[0].subject, key.public_key(), serial, days)
    names = [x509.UniformResourceIdentifier(f"radocraft:{name}/{serial:x}/{digest(token)}"), x509.DNSName(name)]
    both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    certificate = (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(both), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ours[1].public_key()), critical=False)
        .sign(ours[1], hashes.SHA256())
    )
    _log(where).append({"kind": "issue", "name": name, "serial": f"{serial:x}", "until": _day(certificate)})
    write_private(folder / "key.pem", _private_pem(key))
    write_private(folder / "token", token.encode() + b"\n")
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    for shared in ("authority.pem", "revoked.pem"):
        (folder / shared).write_bytes((where / shared).read_bytes())
    if trust:
        (folder / "members.toml").write_text("".join(f'["{other}"]\n' for other in trust), encoding="utf-8")
    return Identity.read(folder)


def revoke(authority: str | Path, name: str, *, keep: int | None = None) -> list[int]:
    """Revoke every certificate of a name but one to ``keep``; gives their serial numbers.

    Everybody needs the new ``revoked.pem``: a running service reads it as soon as it is there.
    """
    where = Path(authority)
    log = _log(where)
    before = {int(line["serial"], 16) for line in log.entries() if line["kind"] == "revoke"}
    issued = [int(line["serial"], 16) for line in log.entries() if (line["kind"], line.get("name")) == ("issue", name)]
    serials = [serial for serial in issued if serial not in before and serial != keep]
    if not issued:
        raise IdentityError(f"This authority never issued a certificate to '{name}'. See issued.log in its folder.")
    for serial in serials:
        log.append({"kind": "revoke", "name": name, "serial": f"{serial:x}"})
    _write_revoked(where, [*before, *serials])
    return serials


def rotate(authority: str | Path, name: str, output: str | Path, *, days: int = 365) -> Identity:
    """Issue a new certificate and token to a name, and revoke those it had."""
    identity = issue(authority, name, output, days=days)
    revoke(authority, name, keep=identity.certificate.serial_number)
    (identity.folder / "revoked.pem").write_bytes((Path(authority) / "revoked.pem").read_bytes())
    return identity


def _authority(where: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    try:
        certificate = x509.load_pem_x509_certificate((where / "authority.pem").read_bytes())
        key = serialization.load_pem_private_key((where / "authority.key").read_bytes(), password=None)
    except (OSError, ValueError) as error:
        raise IdentityError(
            f"'{where}' is not the folder of an authority. Make one: radocraft identity init {where}"
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise IdentityError(f"'{where}/authority.key' was not made by `radocraft identity init`.")
    return certificate, key


def _write_revoked(where: Path, serials: list[int]) -> None:
    certificate, key = _authority(where)
    now = datetime.now(UTC)
    builder = x509.CertificateRevocationListBuilder().issuer_name(certificate.subject)
    builder = builder.last_update(now - _EARLY).next_update(now + timedelta(days=3650))
    for serial in serials:
        revoked = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now).build()
        builder = builder.add_revoked_certificate(revoked)
    signed = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    write_private(where / "revoked.pem", signed)
    (where / "revoked.pem").chmod(0o644)


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, serial: int, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    begins = min(now - _EARLY, now + timedelta(days=days) - _EARLY)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public)
    return builder.serial_number(serial).not_valid_before(begins).not_valid_after(now + timedelta(days=days))


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _log(where: Path) -> Chain:
    return Chain(where / "issued.log", "list of issued certificates")


def _day(certificate: x509.Certificate) -> str:
    return certificate.not_valid_after_utc.date().isoformat()


def _new_folder(folder: str | Path, name: str | None = None) -> Path:
    """Make the folder; one that holds something must hold an identity of that name."""
    where = Path(folder)
    try:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        taken = any(where.iterdir())
    except OSError as error:
        raise FileError(f"Cannot make the folder '{where}': {error.strerror}. Choose another place.") from error
    if taken and (name is None or not (where / "certificate.pem").exists()):
        raise IdentityError(f"'{where}' is not empty. Choose a new folder; nothing was written.")
    if taken:
        holder = Identity(where, b"", (where / "certificate.pem").read_bytes(), b"", "").name
        if holder != name:
            raise IdentityError(f"'{where}' is the identity of '{holder}', not of '{name}'. Choose another folder.")
    return where
