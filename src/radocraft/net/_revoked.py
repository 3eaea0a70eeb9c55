"""Revoked certificates: the authority's signed list, read again whenever the file changes."""

from __future__ import annotations

from pathlib import Path

from cryptography import x509

from radocraft.errors import IdentityError


class Revoked:
    """The list in ``revoked.pem``; empty if there is no such file.

    A list that was not signed by the authority stops everything: whoever can
    change it could otherwise bring a revoked certificate back.
    """

    def __init__(self, path: Path, authority: bytes) -> None:
        self._path, self._authority = path, authority
        self._seen: tuple[int, int] | None = None
        self._serials: frozenset[int] = frozenset()

    def serials(self) -> frozenset[int]:
        """Serial numbers on the list as it is now."""
        try:
            stat = self._path.stat()
        except FileNotFoundError as error:
            if self._seen is None:
                return frozenset()
            raise IdentityError(f"'{self._path}' is gone. Put it back: it says who is revoked.") from error
        if (seen := (stat.st_mtime_ns, stat.st_ino)) != self._seen:
            self._serials, self._seen = self._read(), seen
        return self._serials

    def _read(self) -> frozenset[int]:
        try:
            listed = x509.load_pem_x509_crl(self._path.read_bytes())
            authority = x509.load_pem_x509_certificate(self._authority)
            genuine = listed.is_signature_valid(authority.public_key())  # type: ignore[arg-type]
        except (OSError, ValueError, TypeError) as error:
            raise IdentityError(f"'{self._path}' is not a list of revoked certificates: {error}.") from error
        if not genuine:
            raise IdentityError(f"'{self._path}' was not signed by our authority. Get its newest list.")
        return frozenset(entry.serial_number for entry in listed)
