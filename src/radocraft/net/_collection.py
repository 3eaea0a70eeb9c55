"""The collector's job on disk: what was asked of whom, and what has arrived.

One folder::

    job.json                 the request to every peer
    bank.part.parquet        a part that has come, whole and checked;
    bank.scores.json         in the second round: counts of a model's scores
    bank.answer.json         the last that was heard of a peer
    bank.known               the peer, which dials in, knows that its file has arrived
    bank.returned            the peer has the model
    model.json               what was learned
    audit.log                who was asked what, what came, what was sent back

Start again with the same folder and the job goes on from what is there.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Condition, Lock
from urllib.parse import quote

from radocraft.contract import Contract
from radocraft.errors import ContractMismatch, FileError, NetworkError, RadocraftError
from radocraft.files import writing
from radocraft.net._audit import Audit
from radocraft.net._chunks import Incoming, sha256_of
from radocraft.net._messages import Answer, File, Kind, Request
from radocraft.parts import Part


@dataclass(frozen=True)
class Wanted:
    """What every peer is asked for.

    Parameters
    ----------
    contract
        Under which contract.
    check
        Refuses the file of a peer that is not what was asked for, before it counts as arrived.
    model
        In the second round, the SHA-256 of the file of the model whose scores are counted.
    """

    contract: Contract
    check: Callable[[Path, str], None]
    model: str | None = None

    @classmethod
    def scores(cls, contract: Contract, model: Path, check: Callable[[Path, str], None]) -> Wanted:
        """The second round: from each peer counts of its share of the scores of the model in this file."""
        return cls(contract, check, sha256_of(model))

    @classmethod
    def parts(cls, contract: Contract) -> Wanted:
        """The first round: a part of each, checked whole, one at a time: what learning would refuse never arrives."""
        turn = Lock()

        def check(path: Path, peer: str) -> None:
            with turn:
                part = Part.read(path, name=f"the part of {peer}")
                made = str(part.metadata["fingerprint"])
                if (part.peer, made) != (peer, contract.fingerprint):
                    raise ContractMismatch(
                        f"'{peer}' sent a part of '{part.peer}' under the contract {made[:12]}, not its own under "
                        f"{contract.fingerprint[:12]}. It was deleted."
                    )
                part.check(contract)

        return cls(contract, check)

    @property
    def kind(self) -> Kind:
        """Which round it is."""
        return "part" if self.model is None else "scores"

    def ask(self, peer: str, wait: timedelta, id: str) -> Request:
        """The request to one peer."""
        return Request.now(peer, self.contract.name, self.contract.fingerprint, wait, id=id, model=self.model)


@dataclass(frozen=True)
class Collection:
    """One job of the collector; `begin` makes it or takes it up again."""

    folder: Path
    wanted: Wanted
    requests: dict[str, Request]
    audit: Audit
    changed: Condition = field(default_factory=Condition, compare=False)
    trouble: dict[str, RadocraftError] = field(default_factory=dict, compare=False)  # with what dialled in

    @classmethod
    def begin(cls, folder: Path, wanted: Wanted, peers: tuple[str, ...], wait: timedelta) -> Collection:
        """Make a job, or take up the one in the folder."""
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"Cannot make the folder '{folder}': {error.strerror}. Choose another place.") from error
        audit, path = Audit(folder / "audit.log"), folder / "job.json"
        if not path.exists():
            given = secrets.token_hex(16)
            made = {peer: wanted.ask(peer, wait, given).model_dump(mode="json") for peer in peers}
            with writing(path) as file:
                file.write(json.dumps(made, indent=1).encode())
        return cls(folder, wanted, _requests(path, wanted, peers), audit)

    @property
    def until(self) -> datetime:
        """When the job must be done."""
        return min(request.until for request in self.requests.values())

    @property
    def out_of_time(self) -> bool:
        """Whether no peer may answer any more."""
        return datetime.now(UTC) > self.until

    def file(self, peer: str) -> Path:
        """Where what a peer sends is, or will be."""
        return self._beside(peer, "part.parquet" if self.wanted.kind == "part" else "scores.json")

    def arrived(self, peer: str) -> bool:
        """Whether it has come."""
        return self.file(peer).exists()

    def incoming(self, answer: Answer, peer: str) -> Incoming:
        """Where the file that a peer announces goes."""
        if answer.size is None or answer.sha256 is None:
            raise NetworkError(f"'{peer}' says its {self.wanted.kind} is ready, but does not describe the file.")
        return Incoming(self.file(peer), answer.size, answer.sha256)

    def keep(self, incoming: Incoming, peer: str) -> None:
        """A peer's file has come whole: check it, note it and give it its name."""
        incoming.verify()
        try:
            self.wanted.check(incoming.partial, peer)
        except Exception:
            incoming.partial.unlink(missing_ok=True)
            raise
        job = self.requests[peer].job
        self.audit.note("received", who=peer, job=job, sha256=incoming.sha256, bytes=incoming.size)
        incoming.finish()
        self.notify()

    def heard(self, peer: str, answer: Answer) -> None:
        """Keep the last answer of a peer; the log gets each state once."""
        before = self.answer(peer)
        if before == answer:
            return
        if before is None or before.state != answer.state:
            self.audit.note("answered", who=peer, job=answer.job, state=answer.state, reason=answer.reason)
        with writing(self._beside(peer, "answer.json")) as file:
            file.write(answer.encode())
        self.notify()

    def answer(self, peer: str) -> Answer | None:
        """The last that was heard of a peer."""
        path = self._beside(peer, "answer.json")
        return Answer.decode(path.read_bytes()) if path.exists() else None

    def forget_failures(self) -> None:
        """Peers that failed last time are asked again; those that refused are not."""
        for peer in self.requests:
            if (answer := self.answer(peer)) is not None and answer.state == "failed":
                self._beside(peer, "answer.json").unlink()

    def knows(self, peer: str) -> bool:
        """Whether a peer that dials in knows that its file has arrived."""
        return self._beside(peer, "known").exists()

    def let_know(self, peer: str) -> None:
        """Note that a peer knows its answer has arrived."""
        if not self.knows(peer):
            self._beside(peer, "known").touch()
            self.notify()

    def returned(self, peer: str) -> bool:
        """Whether a peer has the model."""
        return self._beside(peer, "returned").exists()

    def give_back(self, peer: str) -> None:
        """Note that a peer has the model."""
        self._beside(peer, "returned").touch()
        self.notify()

    @property
    def model(self) -> Path:
        """Where the model is, or will be."""
        return self.folder / "model.json"

    def model_file(self) -> File | None:
        """Size and hash of the model, once there is one."""
        if not self.model.exists():
            return None
        return File(size=self.model.stat().st_size, sha256=sha256_of(self.model))

    def notify(self) -> None:
        """Wake whoever waits for a change."""
        with self.changed:
            self.changed.notify_all()

    def _beside(self, peer: str, ending: str) -> Path:
        return self.folder / f"{quote(peer, safe='')}.{ending}"


def _requests(path: Path, wanted: Wanted, peers: tuple[str, ...]) -> dict[str, Request]:
    try:
        kept = {peer: Request.model_validate(content) for peer, content in json.loads(path.read_bytes()).items()}
    except (OSError, ValueError, AttributeError) as error:
        raise FileError(f"'{path}' is not a collector's job. Choose another folder for this one.") from error
    asked = {(request.fingerprint, request.model) for request in kept.values()}
    if asked != {(wanted.contract.fingerprint, wanted.model)} or {*kept} != {*peers}:
        raise ContractMismatch(
            f"'{path.parent}' holds a job of another contract or model, or with other peers ({', '.join(kept)}). "
            "Choose another folder, or give the same ones to go on with it."
        )
    return kept
