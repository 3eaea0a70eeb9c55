"""What leaves in the second round: counts of scores. How they leave is in `peer`, as for parts."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict

from radocraft.errors import ContractMismatch
from radocraft.gate.account import Spend
from radocraft.model.record import Record
from radocraft.storage import read_json, write_json


class Told(BaseModel):
    """How one peer's share of the score is spread, block by block: the only thing that leaves in the second round.

    ``starts`` says where each bin of a block begins on the model's grid, ``rows``
    how many rows are in it. Blocks with too few rows are not there.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    model: str
    peer: str
    guarantee: str
    rho: float = 0.0
    delta: float = 0.0
    blocks: tuple[int, ...]
    starts: tuple[tuple[int, ...], ...]
    rows: tuple[tuple[int, ...], ...]

    def encode(self) -> bytes:
        """What its file holds."""
        return self.model_dump_json(indent=1).encode()

    @property
    def spend(self) -> Spend:
        """What its noise cost."""
        return Spend(self.rho, self.delta)

    @property
    def hash(self) -> str:
        """SHA-256 of its file."""
        return hashlib.sha256(self.encode()).hexdigest()

    @property
    def total(self) -> int:
        """How many rows are counted."""
        return sum(map(sum, self.rows))

    def save(self, path: str | Path) -> None:
        """Write it to a JSON file, whole or not at all."""
        write_json(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read it back."""
        return read_json(cls, path, "file of score counts", "Ask the peer to run `radocraft scores` again.")

    def check(self, peer: str, model: Record) -> None:
        """Refuse another peer's counts, or those of another model's scores."""
        if self.peer != peer:
            raise ContractMismatch(f"These are counts of '{self.peer}', not of '{peer}'. Ask '{peer}' for its own.")
        if self.model != identity(model):
            raise ContractMismatch(f"The counts of '{peer}' are of another model. Ask for them again with this one.")


def identity(model: Record) -> str:
    """A hash of what makes the scores: contract, weights, constants and blocks."""
    body = model.model_dump_json(include={"contract", "intercept", "coefficients", "constants", "blocks"})
    return hashlib.sha256(body.encode()).hexdigest()
