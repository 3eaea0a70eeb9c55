"""A row's lot: a hash of its content, which decides its fold."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from radocraft.arrays import Ints
from radocraft.rows._chunks import Chunk
from radocraft.rows._folds import Lots, lots, mixed, occurrences

_OTHERS = np.zeros(0, dtype=np.uint64)


@dataclass(frozen=True)
class Lottery:
    """A row's lot; see `radocraft.rows._folds`.

    Parameters
    ----------
    seed
        What lots are mixed with.
    by_group
        Whether it is the lot of whoever the row is of.
    equal_are_one
        Whether rows with equal features have one lot.
    repeated
        Where they have not: the lots that several rows had when the scorer was fitted, rising.
    """

    seed: int
    by_group: bool
    equal_are_one: bool
    repeated: Lots = field(default_factory=lambda: _OTHERS)

    def first(self, chunk: Chunk, classes: Ints) -> Lots:
        """The lots of rows, before equal ones are distinguished."""
        lots_here = lots(chunk.matrix, self.seed)
        if self.by_group and chunk.groups is not None:
            return np.where(chunk.groups == 0, lots_here, chunk.groups)
        if self.equal_are_one:
            return lots_here
        more = [classes.astype(np.float64)]
        more += [] if chunk.values is None else [chunk.values]
        more += [] if chunk.keys is None else [chunk.keys.astype(np.float64)]
        return mixed(
            mixed(lots_here) ^ lots(np.column_stack(more), self.seed)
        )  # mixed, since both may hold the same numbers


@dataclass
class Drawing:
    """Lots for rows that come one chunk after the other: equal rows are counted, if they are to be distinguished."""

    lottery: Lottery
    seen: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.seen = np.zeros(len(self.lottery.repeated), dtype=np.int64)

    def lots(self, chunk: Chunk, classes: Ints) -> Lots:
        """The lots of the next rows."""
        return self.told_apart(self.lottery.first(chunk, classes))

    def told_apart(self, lot: Lots) -> Lots:
        """The same, of rows whose lots are equal where the rows are."""
        repeated = self.lottery.repeated
        if not len(repeated):
            return lot
        place = np.searchsorted(repeated, lot).clip(max=len(repeated) - 1)
        several = np.flatnonzero(repeated[place] == lot)
        before = self.seen[place[several]] + occurrences(lot[several])
        self.seen += np.bincount(place[several], minlength=len(repeated))
        later = before > 0
        lot[several[later]] = mixed(lot[several[later]] ^ mixed(before[later].astype(np.uint64)))
        return lot
