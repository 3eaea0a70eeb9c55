"""A running peer: its jobs, its audit log, its metrics, and its service if collectors call it.

`radocraft peer serve` waits to be called, so it needs a `Service`, whose calls `PeerHandler` answers;
`radocraft peer push` dials out instead, see `_push`.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from radocraft.errors import FileError, IdentityError, NetworkError, RadocraftError
from radocraft.files import __version__
from radocraft.net._audit import Audit
from radocraft.net._authentication import Authenticator
from radocraft.net._chunks import Incoming
from radocraft.net._identity import Identity, check_time
from radocraft.net._jobs import Jobs, Work
from radocraft.net._members import Member
from radocraft.net._messages import Delivery, Fetch, File, Hello, Message, Nothing, Receipt, Request
from radocraft.net._metrics import Metrics, serve_metrics
from radocraft.net._service import Service


class PeerHandler:
    """Requests, answers and models at a peer."""

    def __init__(self, name: str, jobs: Jobs) -> None:
        self._name, self._jobs = name, jobs

    def reply(self, member: Member, kind: str, body: bytes) -> Message:
        """``hello``, ``request`` or ``received``."""
        if kind == "hello":
            known = self._jobs.work.contracts
            return Hello(name=self._name, radocraft=__version__, time=datetime.now(UTC), contracts=known)
        if kind == "request":
            return self._jobs.answer(member, Request.decode(body))
        if kind == "received":
            self._jobs.received(member, Receipt.decode(body))
            return Nothing()
        raise NetworkError("This peer answers 'hello', 'request' and 'received'.")

    def hand_out(self, member: Member, fetch: Fetch) -> Path:
        """The answer to a job."""
        return self._jobs.hand_out(member, fetch)

    def take_in(self, member: Member, delivery: Delivery) -> Incoming:
        """The model of a job."""
        if delivery.what != "model":
            raise NetworkError("A peer accepts only models.")
        return self._jobs.model(member, delivery.job, File(size=delivery.size, sha256=delivery.sha256))

    def taken(self, member: Member, delivery: Delivery, incoming: Incoming) -> None:
        """The model has come."""
        self._jobs.keep_model(member, delivery.job, incoming)

    def not_taken(self, member: Member, error: RadocraftError) -> None:
        """The service logs it, and the collector learns that it failed."""


class PeerNode:
    """A peer on the network; use it in a ``with``.

    Parameters
    ----------
    identity, peer
        Who it is on the network, and in the contract.
    work
        What makes the answer to a request.
    folder
        The folder of its jobs and its audit log.
    metrics
        Where to answer ``/metrics`` and ``/health``, if at all.
    """

    def __init__(self, identity: Identity, peer: str, work: Work, folder: Path, metrics: str | None = None) -> None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"Cannot make the folder '{folder}': {error.strerror}. Choose another place.") from error
        self._identity, self._folder = identity, folder
        self.audit, self.metrics = Audit(folder / "audit.log"), Metrics()
        self.jobs = Jobs(folder, peer, work, self.audit, self.metrics)
        self.metrics.expiry.set_function(identity.days_left)
        self._page = serve_metrics(metrics, self.metrics, self.check_health) if metrics else None
        self._service: Service | None = None

    def __enter__(self) -> PeerNode:
        self.audit.note("start", who=self._identity.name)
        return self

    def __exit__(self, *_: object) -> None:
        if self._service is not None:
            self._service.shutdown()
        self.jobs.close()
        if self._page is not None:
            self._page.shutdown()
            self._page.server_close()
        self.audit.note("stop", who=self._identity.name)

    @property
    def metrics_port(self) -> int | None:
        """Where metrics are answered."""
        return None if self._page is None else self._page.server_port

    def serve(self, listen: str) -> int:
        """Listen for those in ``members.toml``; gives the port."""
        members = self._identity.members()
        authenticator = Authenticator(self._identity, members, self.audit, self.metrics)
        handler = PeerHandler(self._identity.name, self.jobs)
        self._service = Service(listen, self._identity, authenticator, handler, self.metrics)
        return int(self._service.port)

    def check_health(self) -> None:
        """Raise if no request could be answered now."""
        check_time(self._identity.certificate, "Our certificate")
        if not self.jobs.work.contracts:
            raise IdentityError("The policy allows none of the contracts given.")
        if not os.access(self._folder, os.W_OK):
            raise FileError(f"'{self._folder}' cannot be written.")
