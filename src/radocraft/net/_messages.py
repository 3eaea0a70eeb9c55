"""What the two ends say to each other: small JSON documents of a fixed form, with a version.

A job is one request to one peer. Its name is a hash of the contract, the peer
and the request's own id, so both ends name it alike without asking each other,
and a request that is sent again is the same job.

=============  ==========================================================
`Hello`        who answers, its clock and which contracts it knows
`Request`      the learner wants a peer's part, or counts of its share of a model's scores
`Answer`       how far the peer is with it
`Assignment`   the mailbox to a peer that dials out: a request, and what it has of the answer
`Fetch`        send the file of a job, from this byte on
`Delivery`     here comes the file of a job, from this byte on
`Receipt`      the file of a job has arrived whole
=============  ==========================================================
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, ValidationError, model_validator

from radocraft.contract import Record
from radocraft.errors import NetworkError

VERSION: Literal[1] = 1
LONGEST = 65_536  # bytes of a message
_SKEW = timedelta(minutes=5)

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, Field(min_length=1, max_length=200)]
State = Literal["working", "waiting", "ready", "refused", "failed"]
Kind = Literal["part", "scores"]
What = Literal["part", "scores", "model"]


class Message(Record):
    """Base of all messages: unknown fields and other versions are refused."""

    version: Literal[1] = VERSION

    def encode(self) -> bytes:
        """The message as JSON."""
        return self.model_dump_json(exclude_none=True).encode()

    @classmethod
    def decode(cls, text: bytes) -> Self:
        """Read a message; whatever is not one is refused in a sentence."""
        if len(text) > LONGEST:
            raise NetworkError(f"A message of {len(text):,} bytes arrived; the longest allowed is {LONGEST:,}.")
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            places = ", ".join(sorted({".".join(map(str, item["loc"])) or "the whole" for item in error.errors()}))
            raise NetworkError(
                f"The message is not a {cls.__name__} of version {VERSION} (wrong: {places[:200]}). "
                "Both ends need versions of radocraft that understand each other."
            ) from None


class Nothing(Message):
    """There is nothing more to say."""


class Hello(Message):
    """Who answers, what its clock shows, and which contracts it knows, by fingerprint."""

    name: Name
    radocraft: str
    time: AwareDatetime
    contracts: tuple[Digest, ...] = ()


class Request(Message):
    """The learner wants a peer's part under a contract or, in the second round, counts of scores.

    ``model`` is the SHA-256 of the file of the model whose scores are counted;
    the peer has it from an earlier job.

    Examples
    --------
    >>> request = Request.now("bank", "risk", "0" * 64, timedelta(hours=1), id="a" * 32)
    >>> request.job[:12]
    '061b8364bb2a'
    """

    kind: Kind = "part"
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    peer: Name
    contract: Name
    fingerprint: Digest
    made: AwareDatetime
    until: AwareDatetime
    model: Digest | None = None

    @model_validator(mode="after")
    def _scores_of_a_model(self) -> Self:
        if (self.kind == "scores") != (self.model is not None):
            raise ValueError("a request for scores names a model, and no other does")
        return self

    @classmethod
    def now(
        cls, peer: str, contract: str, fingerprint: str, wait: timedelta, *, id: str, model: str | None = None
    ) -> Request:
        """A request made now that may be answered within ``wait``; for scores if it names a model."""
        made, kind = datetime.now(UTC), "part" if model is None else "scores"
        facts = {"id": id, "peer": peer, "contract": contract, "fingerprint": fingerprint, "model": model}
        return cls.model_validate({**facts, "kind": kind, "made": made, "until": made + wait})

    @property
    def job(self) -> str:
        """The name of the job, the same at both ends."""
        named = [self.kind, self.fingerprint, self.peer, self.id, *([self.model] if self.model else [])]
        return hashlib.sha256(json.dumps(named).encode()).hexdigest()

    def out_of_time(self, now: datetime) -> str | None:
        """Why the request may not be answered now, if it may not."""
        if now > self.until:
            return "it was to be answered by an earlier time; ask anew, or see `radocraft doctor` for the clocks"
        if now < self.made - _SKEW:
            return "it was made in the future: one of the two clocks is wrong, see `radocraft doctor`"
        return None


class Answer(Message):
    """How far a peer is with a job; ``size`` and ``sha256`` are of the file that is ready."""

    job: Digest
    state: State
    reason: str | None = None
    exit_code: Annotated[int, Field(ge=1, le=4)] | None = None
    size: Annotated[int, Field(ge=1)] | None = None
    sha256: Digest | None = None


class File(Message):
    """A file that can be fetched."""

    size: Annotated[int, Field(ge=1)]
    sha256: Digest


class Assignment(Message):
    """What the mailbox holds for a peer: the request, and how much of the answer has come."""

    request: Request
    offset: Annotated[int, Field(ge=0)] = 0
    received: Digest | None = None
    model: File | None = None
    closed: bool = False


class Fetch(Message):
    """Send the file of a job, from this byte on."""

    what: What
    job: Digest
    offset: Annotated[int, Field(ge=0)] = 0


class Delivery(Message):
    """Here comes the file of a job, from this byte on."""

    what: What
    job: Digest
    size: Annotated[int, Field(ge=1)]
    sha256: Digest
    offset: Annotated[int, Field(ge=0)] = 0


class Receipt(Message):
    """The file of a job has arrived whole."""

    job: Digest
    sha256: Digest
