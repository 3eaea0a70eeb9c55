"""What every learner gives back, and how the model's vector is laid out."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Literal

from radocraft.arrays import Floats, Ints
from radocraft.blocks import Blocks

if TYPE_CHECKING:
    from radocraft.learners.completion import Completion


@dataclass(frozen=True)
class Layout:
    """The coordinates of the model: the constant, the shared columns, then each peer's private columns."""

    shared: slice
    private: tuple[slice, ...]
    size: int
    intercept: bool

    @property
    def groups(self) -> tuple[slice, ...]:
        """The shared columns, then each peer's."""
        return (self.shared, *self.private)

    @classmethod
    def of(cls, blocks: Blocks) -> Layout:
        """The layout for these blocks."""
        intercept = blocks.contract.intercept
        widths = [int(intercept) + len(blocks.contract.shared_columns), *(len(c.columns) for c in blocks.cells)]
        ends = list(accumulate(widths))
        private = tuple(slice(low, high) for low, high in pairwise(ends))
        return cls(slice(int(intercept), ends[0]), private, ends[-1], intercept)


@dataclass(frozen=True)
class Tuning:
    """How the strength of the regularisation was chosen: every candidate with its score, lowest best."""

    method: str
    chosen: float
    candidates: tuple[float, ...]
    scores: tuple[float, ...]


@dataclass(frozen=True)
class Validation:
    """How candidates did on linked rows: the winner's loss, scores and labels, and every candidate's loss."""

    rows: int
    loss: float
    scores: Floats
    labels: Ints
    compared: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True)
class Fit:
    """A learned classifier over the coordinates of `Layout`, and what is known about it.

    ``freedom`` is the number of parameters the regularisation leaves it;
    ``losses`` are ridge losses on the training population, see each learner.
    """

    method: Literal["matching", "drl"]
    theta: Floats
    known: Completion
    settings: dict[str, float | str]
    tuning: Tuning | None
    freedom: float
    losses: dict[str, float] = field(default_factory=dict)
    peer_losses: dict[str, float] = field(default_factory=dict)
    validation: Validation | None = None

    @property
    def layout(self) -> Layout:
        """Where each coordinate of ``theta`` belongs."""
        return self.known.layout
