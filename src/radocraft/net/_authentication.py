"""Who is let in: certificate, revocation, membership, token and rate.

TLS has refused whoever has no certificate of our authority, or one out of its
time, before anything here is asked.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import pyarrow.flight as fl

from radocraft.net._audit import Audit
from radocraft.net._identity import Claim, Identity, digest
from radocraft.net._members import Member
from radocraft.net._metrics import Metrics
from radocraft.net._rate_limit import RateLimit
from radocraft.net._revoked import Revoked

HEADERS = "headers"


class Headers(fl.ServerMiddlewareFactory):  # type: ignore[misc]
    """Keeps the token of a call for the `Authenticator`."""

    def start_call(self, info: Any, headers: dict[str, list[str]]) -> Token:
        """Called by Flight before each call."""
        given = [*headers.get("authorization", []), ""][0]
        return Token(given.removeprefix("Bearer "))


class Token(fl.ServerMiddleware):  # type: ignore[misc]
    """The token of one call."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class Authenticator:
    """Checks every call of one service."""

    def __init__(self, identity: Identity, members: dict[str, Member], audit: Audit, metrics: Metrics) -> None:
        self._members, self._audit, self._metrics = members, audit, metrics
        self._revoked = Revoked(identity.folder / "revoked.pem", identity.authority)
        self._calls = {name: RateLimit(member.calls_per_minute) for name, member in members.items()}
        self._streams = dict.fromkeys(members, 0)
        self._lock = Lock()

    def enter(self, context: Any) -> Member:
        """The member who calls, or a refusal that gives the caller its reason in one sentence."""
        subject = context.peer_identity().decode(errors="replace")
        claim, token = Claim.read(subject), context.get_middleware(HEADERS).text
        if claim.serial is not None and claim.serial in self._revoked.serials():
            raise self._refuse(claim.name, "revoked", "This certificate was revoked.")
        member = next((each for each in self._members.values() if each.subject == claim.name), None)
        if member is None:
            raise self._refuse(claim.name, "no member", "You are not in our members.toml.")
        expected = claim.token or (member.token or "").removeprefix("sha256:")
        if not expected or not hmac.compare_digest(expected, digest(token)):
            raise self._refuse(member.name, "wrong token", "The token does not belong to this certificate.")
        if not self._calls[member.name].take():
            self._metrics.turned_away.labels("too many calls").inc()
            raise fl.FlightUnavailableError(
                f"More than {member.calls_per_minute} calls per minute. Wait, then continue."
            )
        return member

    @contextmanager
    def stream(self, member: Member) -> Iterator[None]:
        """A place for one file under way; there are only so many for each member."""
        with self._lock:
            if self._streams[member.name] >= member.streams:
                self._metrics.turned_away.labels("too many streams").inc()
                raise fl.FlightUnavailableError(f"{member.streams} files are already in transfer. Wait, then continue.")
            self._streams[member.name] += 1
        try:
            yield
        finally:
            with self._lock:
                self._streams[member.name] -= 1

    def _refuse(self, who: str, short: str, message: str) -> Exception:
        self._metrics.turned_away.labels(short).inc()
        self._audit.turned_away(who, short)
        return fl.FlightUnauthenticatedError(message)  # type: ignore[no-any-return]
