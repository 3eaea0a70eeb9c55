"""The collector's service for peers that dial out: they fetch their request, deliver the answer and fetch the model."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from radocraft.errors import NetworkError, RadocraftError
from radocraft.files import __version__
from radocraft.net._chunks import Incoming
from radocraft.net._collection import Collection
from radocraft.net._members import Member
from radocraft.net._messages import Answer, Assignment, Delivery, Fetch, Hello, Message, Nothing, Receipt, Request


class Mailbox:
    """Requests to fetch, answers to bring, and the model for those who may have it.

    Once it is ``closed`` nothing more will come for anybody.
    """

    def __init__(self, name: str, collection: Collection, peers: tuple[str, ...], entitled: tuple[str, ...]) -> None:
        self._name, self._collection, self._peers, self._entitled = name, collection, peers, entitled
        self.closed = False

    def reply(self, member: Member, kind: str, body: bytes) -> Message:
        """``hello``, ``ask``, ``answer`` or ``received`` (the model)."""
        if kind == "hello":
            known = (self._collection.wanted.contract.fingerprint,)
            return Hello(name=self._name, radocraft=__version__, time=datetime.now(UTC), contracts=known)
        request = self._request(member)
        if kind == "ask":
            return self._assignment(member, request)
        if kind == "answer":
            answer = Answer.decode(body)
            self._same(request, answer.job)
            if not self._collection.arrived(member.name):
                self._collection.heard(member.name, answer)
            return self._assignment(member, request)
        if kind == "received":
            self._same(request, Receipt.decode(body).job)
            self._collection.give_back(member.name)
            return Nothing()
        raise NetworkError("A mailbox answers 'hello', 'ask', 'answer' and 'received'.")

    def hand_out(self, member: Member, fetch: Fetch) -> Path:
        """The model."""
        self._same(self._request(member), fetch.job)
        file = self._collection.model_file()
        if fetch.what != "model" or file is None or member.name not in self._entitled:
            raise NetworkError("There is no model to fetch yet.")
        self._collection.audit.note("sending", who=member.name, job=fetch.job, sha256=file.sha256, bytes=file.size)
        return self._collection.model

    def take_in(self, member: Member, delivery: Delivery) -> Incoming:
        """What was asked for, once its peer has said that it is ready."""
        request = self._request(member)
        self._same(request, delivery.job)
        if delivery.what != request.kind or self._collection.arrived(member.name):
            raise NetworkError(f"No {delivery.what} is expected: it has arrived, or was not asked for.")
        answer = self._collection.answer(member.name)
        if answer is None or (answer.state, answer.size, answer.sha256) != ("ready", delivery.size, delivery.sha256):
            raise NetworkError("This is not the file that was announced.")
        return Incoming(self._collection.file(member.name), delivery.size, delivery.sha256)

    def taken(self, member: Member, delivery: Delivery, incoming: Incoming) -> None:
        """It has come."""
        self._collection.keep(incoming, member.name)

    def not_taken(self, member: Member, error: RadocraftError) -> None:
        """Wake the waiting collector, which ends with this error."""
        self._collection.trouble[member.name] = error
        self._collection.notify()

    def _request(self, member: Member) -> Request:
        if member.name not in self._peers:
            raise NetworkError(f"There is no request for '{member.name}' here.")
        return self._collection.requests[member.name]

    def _assignment(self, member: Member, request: Request) -> Assignment:
        collection, answer = self._collection, self._collection.answer(member.name)
        if collection.arrived(member.name) and answer is not None:
            entitled = member.name in self._entitled
            collection.let_know(member.name)
            model = collection.model_file() if entitled else None
            return Assignment(request=request, received=answer.sha256, model=model, closed=self.closed or not entitled)
        ready = answer is not None and answer.state == "ready"
        offset = collection.incoming(answer, member.name).offset if ready and answer is not None else 0
        return Assignment(request=request, offset=offset, closed=self.closed)

    @staticmethod
    def _same(request: Request, job: str) -> None:
        if job != request.job:
            raise NetworkError("This is not the job that is waiting for you.")
