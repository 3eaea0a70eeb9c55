"""Whether all releases of a table together give a small group away that none of them gives away alone.

What one release tells of numbers of rows is linear in the unknown numbers of its
blocks (`policy.recovery`), and blocks of several releases are made of common
atoms (`atoms`). So the groups of all releases are one system, and a group of
atoms is determined if its indicator lies in the row space of that system. How
many rows it holds then follows from the released numbers themselves: no row has
to be read again. Sums of a column follow in the same way, by the same groups.

A new release is refused if a group follows from it and the earlier ones, but
neither from it alone nor from the earlier ones, and holds some rows but fewer
than the limit. Asked for are single atoms, groups by some of the columns (by the
finest pieces, and as each release codes them), unions of two atoms, or three if
there are not too many, and what lies between groups that contain one another.
Where a group turns out to hold no rows, its atoms are known to be empty, and the
question is asked anew without them.

Releases that spell shared features and label alike show where the table has
grown: the smallest groups that are made of whole cells in both. Such a group must
have as many rows as before, or differ by enough; then the earlier release speaks
of other rows there. Releases that spell them differently are always taken to
speak of the same rows: who waits for a few rows to come learns nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from radocraft.arrays import Floats, Ints, Truths, number_rows
from radocraft.errors import PolicyRefusal
from radocraft.policy.recovery import (
    follows,
    indicators,
    natural_groups,
    null_vectors,
    pairs_of,
    solved,
    stacked,
    unions,
)
from radocraft.privacy.atoms import NONE, Atoms, Side, common_atoms
from radocraft.privacy.splits import Trace

_MOST = 20_000
_MOST_CROSSED = 100_000
_SPELLED = 10
_SOME = 0.01


def check_together(new: Trace, earlier: Sequence[Trace], limit: int, when: str) -> None:
    """Refuse ``new`` if with all ``earlier`` releases it gives away fewer rows than the limit; ``when`` was the last.

    Releases by ledgers of older versions, which keep no groups, are left out.
    """
    if "groups" not in new:
        return
    mine, others = Side.of(new), [Side.of(one) for one in earlier if "groups" in one]
    for other in others:
        _check_growth(mine, other, limit, when)
    told = [one for at, one in enumerate(others) if not any(map(one.tells_as, [mine, *others[at + 1 :]]))]
    if any(test.gives_away(limit) for test in _tests(mine, told, when)):
        raise PolicyRefusal(
            f"Beside the releases up to that of {when}, this one would give away a few rows: all together they "
            f"determine a group of fewer than {limit} rows that each of them hides. Keep to the shared features of an "
            "earlier release, in the same order and with the same codes, or agree on coarser ones."
        )


def _tests(mine: Side, told: list[Side], when: str) -> list[Together]:
    """All releases together; if that makes too many atoms, the new one with each earlier one, crossed if need be."""
    if not told:
        return []
    if whole := Together.of([mine, *told]):
        return [whole]
    pairs = [Together.of([mine, one]) or Together.of([mine, one], crossed=True) for one in told]
    found = [pair for pair in pairs if pair is not None]
    if len(found) < len(told):
        raise PolicyRefusal(
            f"Beside the releases up to that of {when}, this one cuts the table into too many pieces to prove that no "
            "small group follows from all of them. Keep to the shared features of an earlier release, or agree on "
            "coarser ones."
        )
    return found


def _check_growth(new: Side, old: Side, limit: int, when: str) -> None:
    """Refuse if a group of whole cells in both releases, spelled alike, differs by a few rows."""
    change = np.abs(growth(new, old)[1]) if new.spelled == old.spelled else np.zeros(0)
    if ((change > 0) & (change < limit)).any():
        raise PolicyRefusal(
            f"Beside the releases up to that of {when}, this one would give away the sums of a few rows by "
            f"subtraction: cells differ from those released before by fewer than {limit} rows. Release again when more "
            "rows have changed."
        )


def growth(new: Side, old: Side) -> tuple[Ints, Ints]:
    """How a table has grown between two releases spelled alike.

    For each cell of the old one, the number of the smallest group of whole cells in both that it lies in; and by how
    many rows each of these groups has grown.
    """
    cells, others = int(new.cell.max()) + 1, int(old.cell.max()) + 1
    block = number_rows(np.column_stack([np.vstack([new.codes, old.codes]), [*new.labels, *old.labels]]))
    _, mine, theirs = np.intersect1d(block[: len(new.cell)], block[len(new.cell) :], return_indices=True)
    edges = (np.ones(len(mine)), (new.cell[mine], cells + old.cell[theirs]))
    count, part = connected_components(csr_array(edges, shape=(cells + others,) * 2), directed=False)
    change = np.bincount(part[:cells], new.rows[:cells], count) - np.bincount(part[cells:], old.rows[:others], count)
    return part[cells:].astype(np.int64), np.rint(change).astype(np.int64)


@dataclass(frozen=True)
class Together:
    """A release, the first, and earlier ones as one system.

    Parameters
    ----------
    sides, atoms
        The releases, and their atoms but for those that every release shows by themselves.
    systems, rows
        Per release the groups it tells of, over atoms and, behind them, atoms as they were before the table grew there;
        and their numbers of rows.
    crossed
        Whether atoms stand for many (`atoms.common_atoms`). What follows then tells apart the blocks of one release
        only, so only such groups are asked for; and empty ones, or those that contain one another, are not looked at.
    """

    sides: tuple[Side, ...]
    atoms: Atoms
    systems: tuple[csr_array, ...]
    rows: tuple[Ints, ...]
    crossed: bool = False

    @classmethod
    def of(cls, sides: Sequence[Side], *, crossed: bool = False) -> Together | None:
        """None if there are too many atoms."""
        most = _MOST_CROSSED if crossed else _MOST
        every = common_atoms(sides, _SPELLED * most, crossed=crossed)
        if every is None:
            return None
        apart = [_apart(side, own) for side, own in zip(sides, every.blocks.T, strict=True)]
        atoms = every.only(~np.all(apart, axis=0))
        if len(atoms.pieces) > most:
            return None
        places, width = _places(sides, atoms)
        systems, rows = [], []
        for side, own, place in zip(sides, atoms.blocks.T, places, strict=True):
            inside = own != NONE
            ones = (np.ones(int(inside.sum())), (own[inside], place[inside]))
            system = (side.groups @ csr_array(ones, shape=(len(side.cell), width))).tocsr()
            told = np.diff(system.indptr) > 0
            systems.append(system[told])
            rows.append(side.rows[told])
        return cls(tuple(sides), atoms, tuple(systems), tuple(rows), crossed)

    def gives_away(self, limit: int) -> bool:
        """Whether a group of some rows, but fewer than the limit, follows from all, but not from fewer of them."""
        if not len(self.atoms.pieces):
            return False
        before = [null_vectors(stacked(list(some))) for some in (self.systems[:1], self.systems[1:])]
        hidden, rows, alive = self.solved()
        if not all(_old(groups, before).all() for groups in self.nested(alive, limit)):
            return True
        for groups in chain(self.targets(), self.few_atoms(hidden, alive)):
            value = np.abs(groups @ rows)
            few = follows(groups, hidden) & (value > _SOME) & (value < limit - _SOME)
            if not _old(groups[few], before).all():
                return True
        return False

    def nested(self, alive: Truths, limit: int) -> Iterator[csr_array]:
        """What is between a group of the new release and one of an earlier that it lies in or around, if few rows."""
        mine, *others = self.systems if not self.crossed else self.systems[:1]
        for theirs, rows in zip(others, self.rows[1:], strict=False):
            common = (mine[:, alive] @ theirs[:, alive].T).tocoo()
            sizes = mine[:, alive].sum(axis=1)[common.row], theirs[:, alive].sum(axis=1)[common.col]
            between = np.abs(self.rows[0][common.row] - rows[common.col])
            few = (common.data == np.minimum(*sizes)) & (between > 0) & (between < limit)
            yield abs(mine[common.row[few]] - theirs[common.col[few]])

    def solved(self) -> tuple[Floats, Floats, Truths]:
        """Null vectors of all releases together, numbers of rows that go with them, and atoms not known to be empty."""
        system, numbers = stacked(list(self.systems)), np.concatenate(self.rows).astype(np.float64)
        alive = np.ones(system.shape[1], dtype=bool)
        while True:
            hidden, rows = np.zeros((2, len(alive))), np.zeros(len(alive))
            hidden[:, alive] = null_vectors(system[:, alive])
            rows[alive] = solved(system[:, alive], numbers[:, None])[:, 0]
            empty = np.zeros(len(alive), dtype=bool)
            for groups in () if self.crossed else self.targets():
                none = follows(groups, hidden) & (np.abs(groups @ rows) < _SOME)
                empty |= groups.T @ none.astype(np.float64) > 0
            if not (empty & alive).any():
                return hidden, rows, alive
            alive &= ~empty

    def targets(self) -> Iterator[csr_array]:
        """Groups of atoms by some of the columns: by finest pieces, and as each release has them."""
        for inside, codes, labels in self.ways():
            for group in natural_groups(codes, labels):
                yield self.spread(inside, group)

    def ways(self) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Ways to code atoms that a release has: which atoms, their codes, their labels."""
        labelled = {side.spelled[1]["column"] for side in self.sides}
        label = np.array([name in labelled for name in self.atoms.names], dtype=bool)
        for side, blocks in zip(self.sides, self.atoms.blocks.T, strict=True):
            inside = np.flatnonzero(blocks != NONE)
            block, pieces, own = blocks[inside], self.atoms.pieces[inside], self.columns(side)
            coarse = pieces.copy()
            for name, (_, codes) in side.splits.items():
                coarse[:, self.atoms.names.index(name)] = codes[block]
            for codes in (pieces, coarse):
                yield inside, codes[:, own & ~label], number_rows(codes[:, own & label])
            for codes in (side.codes, side.recoded):
                yield inside, codes[block], side.labels[block]

    def columns(self, side: Side) -> Truths:
        """The columns by which groups are asked for as a release has them: all, but crossed its own alone."""
        return np.array([not self.crossed or name in side.splits for name in self.atoms.names], dtype=bool)

    def spread(self, inside: Ints, group: Ints) -> csr_array:
        """Indicators of groups of some atoms."""
        out = np.full(self.systems[0].shape[1], NONE)
        out[inside] = group
        return indicators(out, len(out))

    def few_atoms(self, hidden: Floats, alive: Truths) -> Iterator[csr_array]:
        """Two or three atoms that follow together, none of them alone; crossed, atoms of one release."""
        for atoms in self.single():
            some = atoms[~follows(atoms, hidden) & (atoms @ alive > 0)]
            found = unions(hidden @ some.T, pairs_of(some.shape[0]))
            row = np.repeat(np.arange(len(found)), [len(one) for one in found])
            column = np.array([at for one in found for at in one], dtype=np.int64)
            yield csr_array((np.ones(len(row)), (row, column)), shape=(len(found), some.shape[0])) @ some

    def single(self) -> Iterator[csr_array]:
        """The smallest groups that can follow, one by one."""
        if not self.crossed:
            yield self.spread(np.arange(len(self.atoms.pieces)), np.arange(len(self.atoms.pieces)))
            return
        for side, blocks in zip(self.sides, self.atoms.blocks.T, strict=True):
            inside = np.flatnonzero(blocks != NONE)
            keys = np.column_stack([self.atoms.pieces[inside][:, self.columns(side)], blocks[inside]])
            yield self.spread(inside, number_rows(keys))


def _old(groups: csr_array, before: list[Floats]) -> Truths:
    """Which groups follow from the new release or from the earlier ones by themselves, given their null vectors."""
    return np.asarray(np.any([follows(groups, hidden) for hidden in before], axis=0))


def _apart(side: Side, own: Ints) -> Truths:
    """Atoms that are all of a block that is all of a cell, or that the release has no block for."""
    atoms = np.bincount(own[own != NONE], minlength=len(side.cell))
    return np.asarray((own == NONE) | ((atoms == 1) & side.shown)[own])


def _places(sides: Sequence[Side], atoms: Atoms) -> tuple[list[Ints], int]:
    """Per release where its atoms stand in the system, and how many places there are.

    An atom of an earlier release has a place of its own where the table has grown since.
    """
    count = len(atoms.pieces)
    places, width = [np.arange(count)], count
    for at, side in enumerate(sides[1:], 1):
        place, own = np.arange(count), atoms.blocks[:, at]
        if side.spelled == sides[0].spelled:
            part, change = growth(sides[0], side)
            other = np.flatnonzero((own != NONE) & (change[part[side.cell[own]]] != 0))
            place[other] = width + np.arange(len(other))
            width += len(other)
        places.append(place)
    return places, width
