"""The kinds of lines in a ledger.

Two sorts: something leaves, at once (``release``) or once a person agrees
(``proposal``); or a person decides on a proposal (``approval``, ``refusal``).
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from radocraft.contract import Record
from radocraft.gate import Spend

What = Literal["part", "scores"]
Verdict = Literal["approval", "refusal"]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Name = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=0)]


class _Line(Record):
    model_config = ConfigDict(allow_inf_nan=False)


class Limits(_Line):
    """What may leave of a table in its life, by the policy of the day."""

    delta: Annotated[float, Field(gt=0, lt=1)]
    """The chance that a stated epsilon does not hold."""
    epsilon: Annotated[float, Field(gt=0)] | None = None
    """What all releases together may spend."""
    releases: Annotated[int, Field(ge=1)] | None = None
    """How many there may be, where no epsilon says more."""


class _Marked(_Line):
    salt: Hash | None = None
    """Makes the mark of use to nobody who lacks this ledger."""
    mark: Hash | None = None
    """By which the same request of an unchanged table is recognised."""

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.salt is None) != (self.mark is None):
            raise ValueError("salt and mark go together")
        return self

    def marked(self, digest: str) -> Self:
        """With the mark by which the same request of an unchanged table is recognised."""
        salt = secrets.token_hex(32)
        return self.model_copy(update={"salt": salt, "mark": _mark(digest, salt)})

    def marks(self, digest: str) -> bool:
        """Whether this is the request, of this table."""
        return self.salt is not None and _mark(digest, self.salt) == self.mark


class Leaving(_Marked):
    """A file that leaves, or is proposed to a person.

    Examples
    --------
    >>> line = Leaving(kind="release", what="part", table="customers", peer="bank", contract="risk",
    ...     fingerprint="f" * 64, rows=900, cells=12, policy="noise", rho=0.5, file="a" * 64)
    >>> line.spend
    Spend(rho=0.5, delta=0.0)
    """

    kind: Literal["release", "proposal"]
    what: What
    """A part, or scores."""
    table: Name
    peer: Name
    contract: str
    fingerprint: Hash
    rows: int
    """As the file states them, so with noise."""
    cells: Count
    policy: str
    """What the policy promised, in words."""
    rho: Annotated[float, Field(ge=0)] | None
    """What it spends; none is a number that exact sums would not exceed."""
    delta: Annotated[float, Field(ge=0)] = 0.0
    """What it spends of delta beside that."""
    limits: Limits | None = None
    """None where exact sums leave."""
    file: Hash
    """The hash of what leaves."""
    proposal: Hash | None = None
    """What a decision calls the proposal."""
    job: str | None = None
    """The request it answers, if it came over the network."""
    constants: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    """Units that were estimated from data, to be used again."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.kind == "proposal") != (self.proposal is not None):
            raise ValueError("a proposal has an identity, and a release has none")
        return self

    @property
    def spend(self) -> Spend:
        """What it spends; exact sums spend everything."""
        return Spend(math.inf if self.rho is None else self.rho, self.delta)


class Withheld(_Marked):
    """Nothing left, for noisy numbers said that there is too little; whoever asked for it has heard that much.

    Asked again for an unchanged table, the peer refuses again, and draws no other noise that might let it pass.
    """

    kind: Literal["withheld"]
    what: What
    table: Name
    peer: Name
    contract: str
    fingerprint: Hash
    rho: Annotated[float, Field(ge=0)]
    """What the noise spends that was drawn for it."""
    delta: Annotated[float, Field(ge=0)] = 0.0
    """What it spends of delta beside that."""
    limits: Limits
    job: str | None = None
    """The request that heard it, if it came over the network."""
    reason: Name
    """What the peer's own log says."""

    @property
    def spend(self) -> Spend:
        """What it spends."""
        return Spend(self.rho, self.delta)


class Decision(_Line):
    """What a person decided on a proposal."""

    kind: Verdict
    what: What
    table: Name
    file: Hash
    proposal: Hash
    name: Name
    reason: Name


Entry = Annotated[Leaving | Withheld | Decision, Field(discriminator="kind")]


@dataclass(frozen=True)
class Line:
    """An entry and its place in the ledger."""

    number: int
    time: datetime
    hash: str
    entry: Leaving | Withheld | Decision


def _mark(digest: str, salt: str) -> str:
    """Of use to nobody without the salt."""
    return hmac.new(bytes.fromhex(salt), digest.encode(), hashlib.sha256).hexdigest()
