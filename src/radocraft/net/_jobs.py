"""A peer and its jobs: each request is answered once, and the answer kept.

One folder for each job::

    JOB/request.json            what was asked, and by whom
    JOB/part.parquet            what may leave (or .pending: it waits for a person);
    JOB/scores.json             in the second round: counts of a model's scores
    JOB/answer.json             the answer, once it is final
    JOB/done.json               the other end has it: the job is closed
    JOB/model.json              what was learned, if it was sent back

Whoever asks again gets the same answer, until it has arrived; after that
the job is closed and asking again is refused. A process killed anywhere in
between goes on from the files and the ledger when it is asked again.
"""

from __future__ import annotations

import json
import logging
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import RLock
from typing import Literal, Protocol

from radocraft.errors import ContractMismatch, FileError, IdentityError, NetworkError, PolicyRefusal
from radocraft.files import writing
from radocraft.net._audit import Audit
from radocraft.net._chunks import Incoming, sha256_of
from radocraft.net._members import Member
from radocraft.net._messages import Answer, Fetch, File, Kind, Receipt, Request
from radocraft.net._metrics import Metrics

log = logging.getLogger("radocraft.net")
_DAY = timedelta(days=1)
_FILES: dict[Kind, str] = {"part": "part.parquet", "scores": "scores.json"}
_CLOSED = "The job is done: its answer has arrived, and nothing is sent twice."


class Work(Protocol):
    """What makes the answer to a request; the caller brings it, since nothing here may reach a row."""

    @property
    def contracts(self) -> tuple[str, ...]:
        """Fingerprints of the contracts it can answer for."""

    def stage(self, kind: Kind, job: str, output: Path) -> Literal["nothing", "waiting", "refused", "released"]:
        """How far the answer to a job has come; brings to an end what a crash cut short."""

    def make(self, fingerprint: str, job: str, output: Path, model: Path | None) -> None:
        """Make the answer and write it to ``output``, or put it beside that for review; with a model, of its scores."""


class Jobs:
    """All jobs of one peer."""

    def __init__(self, folder: Path, peer: str, work: Work, audit: Audit, metrics: Metrics) -> None:
        self.folder, self.peer, self.work = folder, peer, work
        self._audit, self._metrics = audit, metrics
        self._lock, self._running = RLock(), dict[str, Future[None]]()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="craft")

    def close(self) -> None:
        """Wait for the work at hand and take no more."""
        self._pool.shutdown(cancel_futures=True)

    def answer(self, member: Member, request: Request) -> Answer:
        """How far we are with a request; a new one is begun."""
        with self._lock:
            if objection := self._objection(request):
                return self._reject(member, request, *objection)
            folder = self._admit(member, request)
            if (folder / "done.json").exists():
                raise self._turn_away(member, _CLOSED)
            if (final := _read(folder / "answer.json", Answer)) is not None:
                return final
            return self._progress(folder, request)

    def hand_out(self, member: Member, fetch: Fetch) -> Path:
        """The answer to a job, if it is ready; the log knows that it leaves before it does."""
        with self._lock:
            folder = self._own(member, fetch.job)
            answer = _read(folder / "answer.json", Answer)
            if (folder / "done.json").exists():
                raise self._turn_away(member, _CLOSED)
            if answer is None or answer.state != "ready" or fetch.what != _asked(folder)[1].kind:
                raise NetworkError(f"There is no {fetch.what} of this job to fetch.")
            facts = {"job": answer.job, "sha256": answer.sha256, "bytes": answer.size, "from": fetch.offset}
            self._audit.note("sending", who=member.name, **facts)
            return folder / _FILES[_asked(folder)[1].kind]

    def received(self, member: Member, receipt: Receipt) -> None:
        """The other end has the answer whole: close the job."""
        with self._lock:
            folder = self._own(member, receipt.job)
            answer = _read(folder / "answer.json", Answer)
            if answer is None or answer.sha256 != receipt.sha256:
                raise NetworkError("This receipt does not match what was sent.")
            if not (folder / "done.json").exists():
                self._audit.note("received", who=member.name, job=receipt.job, sha256=receipt.sha256)
                self._metrics.jobs.labels("done").inc()
                _write(folder / "done.json", receipt)

    def model(self, member: Member, job: str, file: File) -> Incoming:
        """Where to put the model that was learned with our answer."""
        folder = self._own(member, job)
        if not (folder / "done.json").exists():
            raise NetworkError("A model is accepted only for a job that is done.")
        return Incoming(folder / "model.json", file.size, file.sha256)

    def has_model(self, job: str, file: File) -> bool:
        """Whether this very model is here."""
        path = self.folder / job / "model.json"
        return path.exists() and sha256_of(path) == file.sha256

    def keep_model(self, member: Member, job: str, incoming: Incoming) -> None:
        """The model has come: check that it is whole and keep it."""
        incoming.verify()
        self._audit.note("model", who=member.name, job=job, sha256=incoming.sha256, bytes=incoming.size)
        incoming.finish()
        self._metrics.jobs.labels("model").inc()

    def _objection(self, request: Request) -> tuple[str, int] | None:
        """Why a request cannot be answered, whoever asks, and the exit code for that."""
        if request.peer != self.peer:
            return f"we are '{self.peer}', not '{request.peer}'", 1
        if request.fingerprint not in self.work.contracts:
            return f"we do not know the contract {request.fingerprint[:12]}", ContractMismatch.exit_code
        if late := request.out_of_time(datetime.now(UTC)):
            return late, 1
        return None

    def _reject(self, member: Member, request: Request, reason: str, exit_code: int) -> Answer:
        self._audit.turned_away(member.name, reason)
        self._metrics.turned_away.labels("request").inc()
        return Answer(job=request.job, state="refused", reason=reason, exit_code=exit_code)

    def _turn_away(self, member: Member, why: str) -> IdentityError:
        self._audit.turned_away(member.name, why)
        self._metrics.turned_away.labels("replay").inc()
        return IdentityError(why)

    def _admit(self, member: Member, request: Request) -> Path:
        """The folder of the job; a new one if its member may have one more today."""
        folder = self.folder / request.job
        if (folder / "request.json").exists():
            if _asked(folder) != (member.name, request):
                raise self._turn_away(member, "This job belongs to somebody else, or the request has changed.")
            return folder
        if self._today(member) >= member.jobs_per_day:
            raise NetworkError(f"More than {member.jobs_per_day} requests per day. Ask again tomorrow.")
        begun = folder.exists()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (begun and self._audit.knows("request", request.job)):
            facts = {"contract": request.contract, "fingerprint": request.fingerprint}
            self._audit.note("request", who=member.name, job=request.job, what=request.kind, **facts)
        with writing(folder / "request.json", private=True) as file:
            file.write(json.dumps({"who": member.name, "request": request.model_dump(mode="json")}).encode())
        self._metrics.jobs.labels("asked").inc()
        return folder

    def _today(self, member: Member) -> int:
        """How many jobs a member has begun in the last 24 hours."""
        since = (datetime.now(UTC) - _DAY).timestamp()
        begun = [path for path in self.folder.glob("*/request.json") if path.stat().st_mtime > since]
        return sum(_asked(path.parent)[0] == member.name for path in begun)

    def _own(self, member: Member, job: str) -> Path:
        """The folder of a job this member asked for."""
        folder = self.folder / job
        if not (folder / "request.json").exists() or _asked(folder)[0] != member.name:
            raise self._turn_away(member, "You have no such job here.")
        return folder

    def _progress(self, folder: Path, request: Request) -> Answer:
        """Begin the work, or see how far it is."""
        job, output = request.job, folder / _FILES[request.kind]
        running = self._running.get(job)
        if running is not None and not running.done():
            return Answer(job=job, state="working")
        try:
            if running is not None:
                self._running.pop(job).result()
            stage = self.work.stage(request.kind, job, output)
            if stage == "nothing":
                model = self._learned(folder, request.model) if request.model else None
                self._running[job] = self._pool.submit(self.work.make, request.fingerprint, job, output, model)
                return Answer(job=job, state="working")
        except Exception as error:
            return self._failed(folder, request, error)
        return self._reached(output, job, stage)

    def _learned(self, folder: Path, sha256: str) -> Path:
        """The model of this hash, which the same member sent back in an earlier job."""
        who = _asked(folder)[0]
        for path in self.folder.glob("*/model.json"):
            if _asked(path.parent)[0] == who and sha256_of(path) == sha256:
                return path
        raise FileError(f"'{who}' asks for scores of the model {sha256[:12]}, which it never sent back to us.")

    def _reached(self, output: Path, job: str, stage: str) -> Answer:
        folder = output.parent
        if stage == "waiting":
            return self._waiting(folder, job)
        if stage == "refused":
            return self._final(folder, _refusal(job, "a person at the peer decided against it"))
        ready = Answer(job=job, state="ready", size=output.stat().st_size, sha256=sha256_of(output))
        return self._final(folder, ready)

    def _waiting(self, folder: Path, job: str) -> Answer:
        seen = folder / "waiting"
        if not seen.exists():
            self._audit.note("waiting", job=job)
            self._metrics.jobs.labels("waiting").inc()
            seen.touch()
        return Answer(job=job, state="waiting", reason="a person at the peer has yet to decide")

    def _failed(self, folder: Path, request: Request, error: Exception) -> Answer:
        """Say no more than the kind of error: what it says in full is for our own log."""
        job = request.job
        log.error("job %s: %s: %s", job[:12], type(error).__name__, error)
        if isinstance(error, PolicyRefusal):
            return self._final(folder, _refusal(job, f"its policy refuses; its log on job {job[:12]} says why"))
        self._audit.note("failed", job=job, reason=type(error).__name__)
        self._metrics.jobs.labels("failed").inc()
        reason = f"it could not make the {request.kind} ({type(error).__name__}); its log on job {job[:12]} says why"
        return Answer(job=job, state="failed", reason=reason, exit_code=1)

    def _final(self, folder: Path, answer: Answer) -> Answer:
        facts = {"bytes": answer.size, "sha256": answer.sha256, "reason": answer.reason}
        self._audit.note(answer.state, job=answer.job, **facts)
        self._metrics.jobs.labels(answer.state).inc()
        _write(folder / "answer.json", answer)
        return answer


def _refusal(job: str, reason: str) -> Answer:
    return Answer(job=job, state="refused", reason=reason, exit_code=PolicyRefusal.exit_code)


def _asked(folder: Path) -> tuple[str, Request]:
    """Who asked for a job, and what."""
    kept = json.loads((folder / "request.json").read_bytes())
    return str(kept["who"]), Request.model_validate(kept["request"])


def _read(path: Path, kind: type[Answer]) -> Answer | None:
    return kind.decode(path.read_bytes()) if path.exists() else None


def _write(path: Path, message: Answer | Receipt) -> None:
    with writing(path, private=True) as file:
        file.write(message.encode())
