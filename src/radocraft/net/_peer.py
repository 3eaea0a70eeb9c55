"""A peer that is asked: the service behind ``radocraft peer serve``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from radocraft.errors import NetworkError, RadocraftError
from radocraft.files import __version__
from radocraft.net._chunks import Incoming
from radocraft.net._desk import Desk
from radocraft.net._members import Member
from radocraft.net._messages import Delivery, Fetch, File, Hello, Message, Nothing, Receipt, Request


class PeerCounter:
    """Requests, answers and models at a peer."""

    def __init__(self, name: str, desk: Desk) -> None:
        self._name, self._desk = name, desk

    def reply(self, member: Member, kind: str, body: bytes) -> Message:
        """``hello``, ``request`` or ``received``."""
        if kind == "hello":
            known = self._desk.work.contracts
            return Hello(name=self._name, radocraft=__version__, time=datetime.now(UTC), contracts=known)
        if kind == "request":
            return self._desk.answer(member, Request.decode(body))
        if kind == "received":
            self._desk.received(member, Receipt.decode(body))
            return Nothing()
        raise NetworkError("This peer answers 'hello', 'request' and 'received'.")

    def hand_out(self, member: Member, fetch: Fetch) -> Path:
        """The answer to a job."""
        return self._desk.hand_out(member, fetch)

    def take_in(self, member: Member, delivery: Delivery) -> Incoming:
        """The model of a job."""
        if delivery.what != "model":
            raise NetworkError("A peer takes models alone.")
        return self._desk.model(member, delivery.job, File(size=delivery.size, sha256=delivery.sha256))

    def taken(self, member: Member, delivery: Delivery, incoming: Incoming) -> None:
        """The model has come."""
        self._desk.keep_model(member, delivery.job, incoming)

    def not_taken(self, member: Member, error: RadocraftError) -> None:
        """The service logs it, and the collector is told that it failed."""
