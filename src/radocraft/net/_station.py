"""A running peer: its desk, its audit log, its metrics, and its service if it is asked."""

from __future__ import annotations

import os
from pathlib import Path

from radocraft.errors import FileError, IdentityError
from radocraft.net._audit import Audit
from radocraft.net._desk import Desk, Work
from radocraft.net._door import Door
from radocraft.net._identity import Identity, check_time
from radocraft.net._metrics import Metrics, serve_metrics
from radocraft.net._peer import PeerCounter
from radocraft.net._service import Service


class Station:
    """All that a peer on the network consists of; use it in a ``with``.

    Parameters
    ----------
    identity, peer
        Who it is on the network, and in the contract.
    work
        What answers a request.
    jobs
        The folder of its jobs and its audit log.
    metrics
        Where to answer ``/metrics`` and ``/health``, if at all.
    """

    def __init__(self, identity: Identity, peer: str, work: Work, jobs: Path, metrics: str | None = None) -> None:
        try:
            jobs.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"Cannot make the folder '{jobs}': {error.strerror}. Choose another place.") from error
        self._identity, self._jobs = identity, jobs
        self.audit, self.metrics = Audit(jobs / "audit.log"), Metrics()
        self.desk = Desk(jobs, peer, work, self.audit, self.metrics)
        self.metrics.expiry.set_function(identity.days_left)
        self._page = serve_metrics(metrics, self.metrics, self.check_health) if metrics else None
        self._service: Service | None = None

    def __enter__(self) -> Station:
        self.audit.note("start", who=self._identity.name)
        return self

    def __exit__(self, *_: object) -> None:
        if self._service is not None:
            self._service.shutdown()
        self.desk.close()
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
        door = Door(self._identity, members, self.audit, self.metrics)
        counter = PeerCounter(self._identity.name, self.desk)
        self._service = Service(listen, self._identity, door, counter, self.metrics)
        return int(self._service.port)

    def check_health(self) -> None:
        """Raise if no request could be answered now."""
        check_time(self._identity.certificate, "Our certificate")
        if not self.desk.work.contracts:
            raise IdentityError("The policy allows none of the contracts given.")
        if not os.access(self._jobs, os.W_OK):
            raise FileError(f"'{self._jobs}' cannot be written.")
