"""What leaves in the second round: histograms of scores. `peer` lets them leave, like parts."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field

from radocraft.contract import Record
from radocraft.errors import ContractMismatch
from radocraft.files import read_json
from radocraft.gate import Spend

BINS = 64
"""Bins of a histogram, evenly over `REACH` deviations on both sides; what lies beyond counts in the last."""
REACH = 4.0

Count = Annotated[int, Field(ge=-(2**53), le=2**53)]
Sum = Annotated[float, Field(ge=-(2**53), le=2**53)]
Deviation = Annotated[float, Field(ge=0, le=2**53)]


class Histograms(Record):
    """How one peer's share of the score is spread around its blocks' means, a histogram for each label.

    Counts carry noise and may be below zero; ``noise`` is its standard deviation, 0 for exact counts. Where the
    contract has a key there are also sums by its groups, for each label: of the same distances in deviations, clipped;
    ``group_noise`` is the standard deviation of the noise in them.
    """

    format: Literal[2, 3] = 3
    model: str
    peer: str
    guarantee: str
    noise: Deviation = 0.0
    rho: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    negative: Annotated[tuple[Count, ...], Field(min_length=BINS, max_length=BINS)]
    positive: Annotated[tuple[Count, ...], Field(min_length=BINS, max_length=BINS)]
    negative_groups: tuple[Sum, ...] = ()
    positive_groups: tuple[Sum, ...] = ()
    group_noise: tuple[Deviation, Deviation] = (0.0, 0.0)

    def encode(self) -> bytes:
        """What its file holds."""
        return self.model_dump_json(indent=1).encode()

    @property
    def spend(self) -> Spend:
        """What its noise cost."""
        return Spend(self.rho)

    @property
    def hash(self) -> str:
        """SHA-256 of its file."""
        return hashlib.sha256(self.encode()).hexdigest()

    @property
    def total(self) -> int:
        """How many rows are counted, noise included."""
        return max(sum(self.negative) + sum(self.positive), 0)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read it back."""
        return read_json(cls, path, "file of score counts", "Ask the peer to run `radocraft count` again.")

    def check(self, peer: str, model: str) -> None:
        """Refuse another peer's counts, or those of another model's scores, by its identity."""
        if self.peer != peer:
            raise ContractMismatch(f"These are counts of '{self.peer}', not of '{peer}'. Ask '{peer}' for its own.")
        if self.model != model:
            raise ContractMismatch(f"The counts of '{peer}' are of another model. Ask for them again with this one.")
