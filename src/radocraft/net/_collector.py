"""The collector: asks every peer, waits, receives what they send, and sends the model back.

Peers with an address are called, each from a thread of its own; the others dial
in to the mailbox. What stops one peer does not stop the others: at the end all
that failed are named, each with its reason, and what has come stays for the next
start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Event

from radocraft.errors import ContractMismatch, NetworkError, PolicyRefusal, RadocraftError
from radocraft.net._audit import Audit
from radocraft.net._authentication import Authenticator
from radocraft.net._channel import Channel, Interrupted, Pauses
from radocraft.net._chunks import sha256_of
from radocraft.net._collection import Collection, Wanted
from radocraft.net._identity import Identity
from radocraft.net._mailbox import Mailbox
from radocraft.net._members import Member
from radocraft.net._messages import Answer, Delivery, Fetch, Kind, Nothing, Receipt
from radocraft.net._metrics import Metrics
from radocraft.net._service import Service

Report = Callable[[str, str], None]
_TRIES = 4
_BY_CODE: dict[int, type[RadocraftError]] = {3: ContractMismatch, 4: PolicyRefusal}


class PeerFailed(NetworkError):
    """A peer refused, or could not do it."""

    def __init__(self, reason: str, exit_code: int = 1) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


class Collector:
    """One job with all its peers; use it in a ``with``, so that the mailbox is closed.

    Parameters
    ----------
    identity
        Who asks.
    wanted
        What for: parts under a contract, or counts of a model's scores.
    folder
        Where the job is kept; one that is there is taken up again.
    places
        The address of every peer, None for one that dials in.
    listen
        Where the mailbox listens, if some peer dials in.
    wait
        How long the peers have, from the job's beginning.
    returns
        Whether the model goes back to the peers; even so, to those alone that may have it.
    report
        Histograms of every peer's state as it changes.
    """

    def __init__(
        self,
        identity: Identity,
        wanted: Wanted,
        folder: Path,
        places: Mapping[str, str | None],
        *,
        listen: str | None = None,
        wait: timedelta = timedelta(hours=1),
        returns: bool = True,
        report: Report = lambda peer, state: None,
    ) -> None:
        for peer in places:
            wanted.contract.peer(peer)
        self._identity, self._places, self._report, self._stop = identity, places, report, Event()
        self.collection = Collection.begin(folder, wanted, tuple(places), wait)
        known = identity.members()
        self._members = {peer: known.get(peer, Member(name=peer)) for peer in places}
        self.entitled = tuple(peer for peer, member in self._members.items() if returns and member.gets_model)
        self.metrics = Metrics()
        self._mailbox, self._service = self._open_mailbox(listen)

    def _open_mailbox(self, listen: str | None) -> tuple[Mailbox | None, Service | None]:
        dialling = tuple(peer for peer, place in self._places.items() if place is None)
        if not dialling:
            return None, None
        if listen is None:
            raise NetworkError(f"{', '.join(dialling)} will dial in: say where to listen, e.g. --listen 0.0.0.0:8815.")
        mailbox = Mailbox(self._identity.name, self.collection, dialling, self.entitled)
        members = {peer: self._members[peer] for peer in dialling}
        authenticator = Authenticator(self._identity, members, self.collection.audit, self.metrics)
        return mailbox, Service(listen, self._identity, authenticator, mailbox, self.metrics)

    @property
    def port(self) -> int | None:
        """Where the mailbox listens."""
        return None if self._service is None else int(self._service.port)

    @property
    def audit(self) -> Audit:
        """The log of this job."""
        return self.collection.audit

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._service is not None:
            self._service.shutdown()

    def gather(self) -> dict[str, Path]:
        """Ask every peer and wait for what they send; gives their files.

        Raises an error that names every peer that failed, with its reason.
        """
        self.collection.forget_failures()
        if self.collection.out_of_time and not all(map(self.collection.arrived, self._places)):
            raise NetworkError(
                f"The job in '{self.collection.folder}' had to be finished by {self.collection.until:%d %B %H:%M} UTC. "
                "Take a new folder for a new request."
            )
        failed: dict[str, RadocraftError] = {}
        calling = [peer for peer, place in self._places.items() if place is not None]
        with ThreadPoolExecutor(max(len(calling), 1)) as pool:
            try:
                pulls = {peer: pool.submit(self._pull, peer) for peer in calling}
                for peer, place in self._places.items():
                    if place is None:
                        self._await(peer, failed)
                for peer, pull in pulls.items():
                    error = pull.exception()
                    if isinstance(error, RadocraftError):
                        failed[peer] = error
                    elif error is not None:
                        raise error
            except BaseException:
                self._stop.set()
                raise
        if failed:
            raise _named(failed, self.collection.wanted.kind)
        return {peer: self.collection.file(peer) for peer in self._places}

    def note_learned(self, files: Iterable[str]) -> None:
        """Write into the log that the model of the job was learned from the files of these peers."""
        digest = sha256_of(self.collection.model)
        if not any((line["kind"], line.get("sha256")) == ("learned", digest) for line in self.audit.chain.entries()):
            self.audit.note("learned", sha256=digest, peers=sorted(files))

    def give_back(self, linger: timedelta = timedelta(minutes=1)) -> dict[str, str]:
        """Send the model of the job to the peers that may have it; gives the reason for each that lacks it still."""
        without = {}
        for peer in self.entitled:
            if self._places[peer] is not None and not self.collection.returned(peer):
                try:
                    self._with_channel(peer, self._deliver_model, tries=_TRIES)
                except NetworkError as error:
                    without[peer] = str(error)
        if self._mailbox is not None:
            late = "it has not dialled in to fetch the model"
            without |= {peer: late for peer in self._linger(self._mailbox, linger) if peer in self.entitled}
        return without

    def _linger(self, mailbox: Mailbox, seconds: timedelta) -> list[str]:
        """Wait for peers that dial in to fetch the model, or the word that they are done; those that have not."""

        def missing() -> list[str]:
            dialling = [peer for peer, place in self._places.items() if place is None]
            done = {True: self.collection.returned, False: self.collection.knows}
            return [peer for peer in dialling if not done[peer in self.entitled](peer)]

        with self.collection.changed:
            self.collection.changed.wait_for(lambda: not missing(), seconds.total_seconds())
        mailbox.closed = True
        return missing()

    def _await(self, peer: str, failed: dict[str, RadocraftError]) -> None:
        """Wait for a peer that dials in."""
        collection, reported = self.collection, ""
        while not collection.arrived(peer):
            answer = collection.answer(peer)
            state = answer.state if answer else "has not dialled in"
            if state != reported:
                self._report(peer, state)
                reported = state
            if answer is not None and answer.state in {"refused", "failed"}:
                failed[peer] = _failure(answer)
                return
            if peer in collection.trouble:
                failed[peer] = collection.trouble[peer]
                return
            if collection.out_of_time:
                failed[peer] = PeerFailed(f"nothing arrived in time; last state: {state}")
                return
            with collection.changed:
                collection.changed.wait(0.5)
        self._report(peer, "arrived")

    def _pull(self, peer: str) -> None:
        """Ask one peer until its file is here."""
        self.audit.note("asked", who=peer, job=self.collection.requests[peer].job)
        if not self.collection.arrived(peer):
            self._with_channel(peer, self._converse)
        self._report(peer, "arrived")
        try:
            self._with_channel(peer, self._acknowledge, tries=_TRIES)
        except NetworkError as error:
            self._report(peer, f"arrived, but the receipt could not be delivered: {error}")

    def _with_channel(self, peer: str, talk: Callable[[Channel, str], None], tries: int | None = None) -> None:
        """Connect and talk, again and again with pauses, while only the connection is to blame."""
        pauses, tried = Pauses(), 0
        while True:
            try:
                with Channel.open(self._identity, self._members[peer], str(self._places[peer])) as channel:
                    return talk(channel, peer)
            except Interrupted as error:
                tried += 1
                if self.collection.out_of_time or tried == tries or self._stop.is_set():
                    raise
                self._report(peer, f"{error} Trying again.")
            pauses.wait(self._stop.wait)

    def _converse(self, channel: Channel, peer: str) -> None:
        """Ask, wait while the peer works, and take what it made."""
        pauses, request, reported = Pauses(), self.collection.requests[peer], ""
        while not self._stop.is_set():
            answer = channel.act("request", request, Answer)
            self.collection.heard(peer, answer)
            if answer.state in {"refused", "failed"}:
                raise _failure(answer)
            if answer.state == "ready":
                return self._take(channel, peer, answer)
            if answer.state != reported:
                self._report(peer, answer.reason or answer.state)
                reported = answer.state
            if self.collection.out_of_time:
                raise PeerFailed(f"nothing arrived in time; last state: {answer.reason or answer.state}")
            pauses.wait(self._stop.wait)
        raise NetworkError("stopped")

    def _take(self, channel: Channel, peer: str, answer: Answer) -> None:
        incoming = self.collection.incoming(answer, peer)
        if incoming.size > self._members[peer].part_bytes:
            raise PeerFailed(
                f"its file has {incoming.size:,} bytes, more than the {self._members[peer].part_bytes:,} allowed"
            )
        if incoming.offset < incoming.size:
            fetch = Fetch(what=self.collection.wanted.kind, job=answer.job, offset=incoming.offset)
            channel.fetch(fetch, incoming, lambda have: self._report(peer, f"{have / incoming.size:.0%}"))
        self.metrics.received.inc(incoming.size)
        self.collection.keep(incoming, peer)

    def _acknowledge(self, channel: Channel, peer: str) -> None:
        answer = self.collection.answer(peer)
        if answer is not None and answer.sha256 is not None:
            channel.act("received", Receipt(job=answer.job, sha256=answer.sha256), Nothing)

    def _deliver_model(self, channel: Channel, peer: str) -> None:
        file, job = self.collection.model_file(), self.collection.requests[peer].job
        if file is None:
            raise NetworkError("There is no model yet.")
        self._acknowledge(channel, peer)
        self.audit.note("sending", who=peer, job=job, sha256=file.sha256, bytes=file.size)
        delivery = Delivery(what="model", job=job, size=file.size, sha256=file.sha256)
        channel.deliver(delivery, self.collection.model)
        self.collection.give_back(peer)


def _failure(answer: Answer) -> PeerFailed:
    verb = "refuses" if answer.state == "refused" else "failed"
    return PeerFailed(f"{verb}: {answer.reason or 'no reason given'}", answer.exit_code or 1)


def _named(failed: dict[str, RadocraftError], kind: Kind) -> RadocraftError:
    """One error for all peers that failed."""
    code = max(error.exit_code for error in failed.values())
    lines = "\n  ".join(f"{peer}: {error}" for peer, error in failed.items())
    return _BY_CODE.get(code, NetworkError)(
        f"No {kind} of {', '.join(failed)}:\n  {lines}\nWhat arrived from the others is kept; start again to continue."
    )
