"""Who we are on the network: a folder with a certificate, its private key, a token and the authority we trust.

===================  ========================================================
``authority.pem``    the authority's certificate
``certificate.pem``  ours, signed by it
``key.pem``          the private half, for the owner alone
``token``            a secret sent with every call, for the owner alone
``members.toml``     whom we talk to; see `members`
``revoked.pem``      certificates that count no more: the authority's list, if there is one
===================  ========================================================

A certificate of `radocraft identity issue` names its identity twice: as
``radocraft:NAME/SERIAL/HASH``, which the other end reads (HASH is the SHA-256 of
the token, so a token is good with this certificate alone), and as the DNS name
NAME, which TLS checks. A certificate of a company's own authority has one DNS
name; the hash of its token stands in ``members.toml`` of those it talks to.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from radocraft.errors import FileError, IdentityError
from radocraft.net._members import Member, read_members

_NAMED = re.compile(r"radocraft:([a-z0-9.-]+)/([0-9a-f]+)/([0-9a-f]{64})")


@dataclass(frozen=True)
class Claim:
    """What a certificate says: a name and, if we issued it, its serial number and the hash of its token.

    Examples
    --------
    >>> Claim.read("bank.example.com")
    Claim(name='bank.example.com', serial=None, token=None)
    >>> Claim.read("radocraft:bank/1f/" + "0" * 64).serial
    31
    """

    name: str
    serial: int | None = None
    token: str | None = None

    @classmethod
    def read(cls, text: str) -> Claim:
        """Read the first alternative name of a certificate."""
        if match := _NAMED.fullmatch(text):
            return cls(match[1], int(match[2], 16), match[3])
        return cls(text)

    @classmethod
    def of(cls, certificate: x509.Certificate) -> Claim:
        """What a certificate says."""
        try:
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            names = x509.SubjectAlternativeName([])
        if not len(names):
            raise IdentityError("The certificate has no alternative name. Have it issued with one DNS name.")
        return cls.read(str(next(iter(names)).value))


@dataclass(frozen=True)
class Identity:
    """A certificate and all that goes with it; `load` reads the folder and checks it, `read` only reads it."""

    folder: Path
    authority: bytes
    chain: bytes
    private: bytes
    token: str

    @classmethod
    def load(cls, folder: str | Path) -> Identity:
        """Read an identity's folder and check that its pieces belong together and are valid now."""
        identity = cls.read(folder)
        identity.check()
        return identity

    @classmethod
    def read(cls, folder: str | Path) -> Identity:
        """Read an identity's folder as it is."""
        where = Path(folder)
        authority, chain, private = (_read(where / name) for name in ("authority.pem", "certificate.pem", "key.pem"))
        return cls(where, authority, chain, private, _read(where / "token").decode(errors="replace").strip())

    @property
    def certificate(self) -> x509.Certificate:
        """Our certificate."""
        return x509.load_pem_x509_certificate(self.chain)

    @property
    def claim(self) -> Claim:
        """What our certificate says."""
        return Claim.of(self.certificate)

    @property
    def name(self) -> str:
        """Who we are."""
        return self.claim.name

    @property
    def header(self) -> tuple[bytes, bytes]:
        """What goes with every call."""
        return b"authorization", f"Bearer {self.token}".encode()

    def members(self) -> dict[str, Member]:
        """Whom we talk to, by name."""
        return read_members(self.folder / "members.toml")

    @property
    def token_digest(self) -> str:
        """The hash of our token, which others keep."""
        return digest(self.token)

    def days_left(self) -> float:
        """Days until the certificate expires."""
        return (self.certificate.not_valid_after_utc - datetime.now(UTC)).total_seconds() / 86_400

    def check(self) -> None:
        """Refuse a folder whose pieces do not belong together, or a certificate out of its time."""
        try:
            certificate = self.certificate
            public = serialization.load_pem_private_key(self.private, password=None).public_key()
            authority = x509.load_pem_x509_certificate(self.authority)
        except (ValueError, TypeError) as error:
            raise IdentityError(f"'{self.folder}' holds a PEM file that cannot be read: {error}.") from error
        if certificate.public_key() != public:
            raise IdentityError(f"In '{self.folder}' key.pem does not belong to certificate.pem. Issue it anew.")
        if certificate.issuer != authority.subject:
            raise IdentityError(f"In '{self.folder}' certificate.pem was not signed by authority.pem. Issue it anew.")
        claim = Claim.of(certificate)
        if claim.token is not None and claim.token != digest(self.token):
            raise IdentityError(f"In '{self.folder}' the token is not the certificate's. Issue it anew.")
        check_time(certificate, f"The certificate of '{claim.name}'")


def adopt(certificate: Path, private: Path, authority: Path, output: Path) -> Identity:
    """Make the folder of an identity from a certificate of a company's own authority, with a token of its own."""
    pieces = {"certificate.pem": _read(certificate), "key.pem": _read(private), "authority.pem": _read(authority)}
    token = secrets.token_urlsafe(32)
    Identity(output, pieces["authority.pem"], pieces["certificate.pem"], pieces["key.pem"], token).check()
    try:
        output.mkdir(mode=0o700, parents=True, exist_ok=False)
    except OSError as error:
        raise FileError(f"Cannot make the folder '{output}': {error.strerror}. Choose a new place.") from error
    for name, content in {**pieces, "token": token.encode() + b"\n"}.items():
        write_private(output / name, content)
    return Identity.load(output)


def check_time(certificate: x509.Certificate, what: str) -> None:
    """Refuse a certificate that is not valid now."""
    now = datetime.now(UTC)
    if now > certificate.not_valid_after_utc:
        raise IdentityError(
            f"{what} expired on {certificate.not_valid_after_utc:%d %B %Y}. Have a new one issued: "
            "radocraft identity rotate."
        )
    if now < certificate.not_valid_before_utc:
        raise IdentityError(
            f"{what} is not valid before {certificate.not_valid_before_utc:%d %B %Y %H:%M} UTC. Is the clock right?"
        )


def digest(token: str) -> str:
    """The hash of a token, which is all that is ever kept of another's.

    Examples
    --------
    >>> digest("secret")[:8]
    '2bb80d53'
    """
    return hashlib.sha256(token.encode()).hexdigest()


def write_private(path: Path, content: bytes) -> None:
    """Write a file that its owner alone can read; an existing one is replaced."""
    handle = os.open(path.with_name(f".{path.name}.tmp"), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    os.replace(path.with_name(f".{path.name}.tmp"), path)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise IdentityError(
            f"Cannot read '{path}': {error.strerror}. An identity is a folder made by `radocraft identity issue`."
        ) from error
