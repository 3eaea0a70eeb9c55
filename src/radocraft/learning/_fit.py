"""What every learner returns, and the layout of the model's vector."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from radocraft.arrays import Floats, Ints, Truths
from radocraft.learning._blocks import Blocks
from radocraft.model import Tuning

if TYPE_CHECKING:
    from radocraft.learning._completion import Completion


@dataclass(frozen=True)
class Layout:
    """The coordinates of the model: the constant, the shared columns, then the private columns each peer owns.

    ``held`` are the coordinates of all private columns of each peer, ``alone`` of
    those that no other peer holds, ``common`` of those that several peers hold.
    """

    shared: slice
    private: tuple[slice, ...]
    size: int
    intercept: bool
    held: tuple[Ints, ...]

    @cached_property
    def common(self) -> Ints:
        """Coordinates of columns that several peers hold."""
        places, count = np.unique(np.concatenate(self.held), return_counts=True)
        return np.asarray(places[count > 1], dtype=np.int64)

    @cached_property
    def alone(self) -> tuple[Ints, ...]:
        """Per peer, coordinates of columns that it alone holds."""
        return tuple(np.setdiff1d(held, self.common) for held in self.held)

    @property
    def private_mask(self) -> Truths:
        """Which coordinates are private columns."""
        mask: Truths = np.arange(self.size) >= self.shared.stop
        return mask

    @property
    def groups(self) -> tuple[slice, ...]:
        """The shared columns, then each peer's."""
        return (self.shared, *self.private)

    @classmethod
    def of(cls, blocks: Blocks) -> Layout:
        """The layout for these blocks."""
        intercept = blocks.contract.intercept
        owned = [blocks.owned(index) for index in range(len(blocks.cells))]
        widths = [int(intercept) + len(blocks.contract.shared_columns), *(len(columns) for columns in owned)]
        ends = list(accumulate(widths))
        private = tuple(slice(low, high) for low, high in pairwise(ends))
        place: dict[str, int] = {}
        for cells, columns, where in zip(blocks.cells, owned, private, strict=True):
            place |= {cells.columns[column]: where.start + index for index, column in enumerate(columns.tolist())}
        held = tuple(np.array([place[name] for name in cells.columns], dtype=np.int64) for cells in blocks.cells)
        return cls(slice(int(intercept), ends[0]), private, ends[-1], intercept, held)

    def widened(self, more: int) -> Layout:
        """With so many shared columns more."""
        private = tuple(slice(where.start + more, where.stop + more) for where in self.private)
        shared, held = slice(self.shared.start, self.shared.stop + more), tuple(places + more for places in self.held)
        return Layout(shared, private, self.size + more, self.intercept, held)


@dataclass(frozen=True)
class LinkedTest:
    """How candidates did on linked rows: the winner's loss and scores, the rows' labels, and every candidate's loss."""

    rows: int
    loss: float
    scores: Floats
    labels: Ints
    targets: Floats
    compared: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True)
class Fit:
    """A learned classifier over the coordinates of `Layout`, and what is known about it.

    ``theta`` is one vector, or with several classes a matrix with a column for each.
    ``freedom`` is the number of parameters the regularisation leaves it;
    ``losses`` are ridge losses on the training population, see each learner; ``notes``
    say what was decided for the user.
    """

    method: Literal["matching", "drl"]
    theta: Floats
    known: Completion
    settings: dict[str, float | str]
    tuning: Tuning | None
    freedom: float
    losses: dict[str, float] = field(default_factory=dict)
    peer_losses: dict[str, float] = field(default_factory=dict)
    validation: LinkedTest | None = None
    notes: tuple[str, ...] = ()

    @property
    def layout(self) -> Layout:
        """Where each coordinate of ``theta`` belongs."""
        return self.known.layout
