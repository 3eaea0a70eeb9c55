"""What is wrong with a connection: every check by itself, with what to do about it.

The identity's own folder first, then the other end: its port, its certificate,
our right to call, its clock, and whether it knows the contract.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from radocraft.contract import Contract
from radocraft.errors import IdentityError, NetworkError, RadocraftError
from radocraft.net._channel import Channel, Interrupted, look
from radocraft.net._identity import Identity
from radocraft.net._members import Member
from radocraft.net._messages import Hello, Nothing
from radocraft.net._metrics import parse_port
from radocraft.net._revoked import Revoked

_SOON = 30.0  # days
_SKEW = 60.0  # seconds
_CONNECT = 10.0


@dataclass(frozen=True)
class Finding:
    """One check: what was looked at, how it is, and what was found or must be done."""

    check: str
    verdict: Literal["good", "warning", "bad"]
    message: str


def examine(identity: Path, to: tuple[str, str] | None = None, contract: Path | None = None) -> Iterator[Finding]:
    """Check an identity and, if given, a connection ``(name, address)`` and a contract; ends at what stops the rest."""
    try:
        ours = Identity.read(identity)
        ours.check()
    except RadocraftError as error:
        yield Finding("identity", "bad", str(error))
        return
    yield from _own_folder(ours)
    agreed = None
    if contract is not None:
        try:
            agreed = Contract.load(contract)
            yield Finding("contract", "good", f"'{agreed.name}', fingerprint {agreed.fingerprint[:12]}")
        except RadocraftError as error:
            yield Finding("contract", "bad", str(error))
    if to is not None:
        yield from _connection(ours, *to, agreed)


def _own_folder(ours: Identity) -> Iterator[Finding]:
    left = ours.days_left()
    validity = f"'{ours.name}', valid for {left:.0f} more days"
    if left < _SOON:
        yield Finding("identity", "warning", f"{validity}: get a new one soon (radocraft identity rotate)")
    else:
        yield Finding("identity", "good", validity)
    for secret in ("key.pem", "token"):
        if (ours.folder / secret).stat().st_mode & 0o077:
            yield Finding("secrets", "warning", f"others on this machine can read {secret}: run chmod 600 on it")
    try:
        revoked = Revoked(ours.folder / "revoked.pem", ours.authority).serials()
        if ours.certificate.serial_number in revoked:
            yield Finding("revocation", "bad", "our own certificate was revoked: have a new one issued")
        else:
            yield Finding("revocation", "good", f"{len(revoked)} certificates are known to be revoked, not ours")
        members = ours.members()
    except IdentityError as error:
        yield Finding("revocation and members", "bad", str(error))
        return
    yield Finding("members", "good", ", ".join(sorted(members)) or "none: nobody is allowed to ask us")


def _connection(ours: Identity, name: str, address: str, contract: Contract | None) -> Iterator[Finding]:
    member = ours.members().get(name, Member(name=name))
    for check, step in _steps(ours, member, address):
        try:
            yield Finding(check, "good", step())
        except (NetworkError, OSError) as error:
            yield Finding(check, "bad", _advice(error))
            return
    with Channel.open(ours, member, address) as channel:
        try:
            hello = channel.act("hello", Nothing(), Hello)
        except NetworkError as error:
            yield Finding("our right to call", "bad", f"{error} Its members.toml must name '{ours.name}'.")
            return
    yield Finding("our right to call", "good", f"'{hello.name}' lets us in; it runs radocraft {hello.radocraft}")
    yield _clocks(hello)
    if contract is not None:
        yield _known(hello, contract)


def _steps(ours: Identity, member: Member, address: str) -> Iterator[tuple[str, Callable[[], str]]]:
    host, port = "", 0

    def name() -> str:
        nonlocal host, port
        host, port = parse_port(address)
        addresses = {entry[4][0] for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
        return f"{host} is {', '.join(sorted(map(str, addresses)))}"

    def reach() -> str:
        with socket.create_connection((host, port), timeout=_CONNECT):
            return f"something listens on {address}"

    def certificate() -> str:
        look(ours, member, host, port)
        return f"it is '{member.subject}', signed by our authority, in its time and not revoked"

    yield "address", name
    yield "port", reach
    yield "certificate", certificate


def _advice(error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        return f"the name has no address ({error.strerror}): check its spelling, or the DNS"
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there: is the service started, and on that port?"
    if isinstance(error, TimeoutError):
        return "no answer: there may be a firewall in between; open the port, or let the peer dial out (peer push)"
    text = str(error)
    hints = {
        "Hostname mismatch": "The certificate has another name: the name before '=' must be the one it was issued to.",
        "self-signed": "Both ends need the same authority.pem.",
        "unable to get local issuer": "Both ends need the same authority.pem.",
        "not yet valid": "Is this machine's clock behind?",
        "has expired": "Have a new one issued, unless this machine's clock is ahead.",
    }
    more = [hint for sign, hint in hints.items() if sign in text]
    if isinstance(error, Interrupted):
        more.append("What listens there may not be radocraft.")
    return " ".join([text, *more])


def _clocks(hello: Hello) -> Finding:
    apart = (hello.time - datetime.now(UTC)).total_seconds()
    if abs(apart) < _SKEW:
        return Finding("clocks", "good", "less than a minute apart")
    far = f"its clock is {abs(apart) / 60:.0f} minutes {'ahead of' if apart > 0 else 'behind'} ours"
    return Finding("clocks", "bad", f"{far}: requests may be refused as too early or too late; set both by NTP")


def _known(hello: Hello, contract: Contract) -> Finding:
    if contract.fingerprint in hello.contracts:
        return Finding("the other end's contract", "good", "it knows this contract and its policy allows it")
    known = ", ".join(fingerprint[:12] for fingerprint in hello.contracts) or "none"
    return Finding(
        "the other end's contract",
        "bad",
        f"it does not know {contract.fingerprint[:12]} (it knows {known}): both need the same file, and its policy "
        "must allow it",
    )
