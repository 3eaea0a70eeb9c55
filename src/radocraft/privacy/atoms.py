"""Releases of one table brought to common atoms: what rows may be in, as all of them together tell rows apart.

An atom is a piece of every column that some release splits, and lies in one
block of each release. Those that a release shows to be empty (no block of it
holds them) are left out. A block that other releases have no room for has come
or gone between them, and keeps atoms of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import block_diag, csr_array, eye_array

from radocraft.arrays import Ints, Truths, number_rows
from radocraft.cells import ROLLED
from radocraft.policy.groups import Groups
from radocraft.privacy.differencing import cells_of
from radocraft.privacy.splits import Split, Trace, covers, elements, splits

NONE = -1


@dataclass(frozen=True)
class Side:
    """One release: its blocks, and every group of them whose number of rows it tells.

    Parameters
    ----------
    spelled, splits
        How it spells shared features and label; by column, the split and each block's piece of it.
    codes, recoded, labels, cell
        Per block: exact codes, codes as the moments see them, label, number of its cell.
    groups, rows
        One row per group, one column per block, the cells first; and the groups' numbers of rows.
    """

    spelled: tuple[list[Split], Split]
    splits: dict[str, tuple[Split, Ints]]
    codes: Ints
    recoded: Ints
    labels: Ints
    cell: Ints
    groups: csr_array
    rows: Ints

    @classmethod
    def of(cls, trace: Trace) -> Side:
        """What the ledger keeps of a release."""
        cell_codes, cell_labels, cell_rows = cells_of(trace)
        shown = (cell_codes != ROLLED).all(axis=1)
        hidden = Groups.read(trace["groups"], len(trace["shared"]))
        count = int(shown.sum())
        codes = np.vstack([cell_codes[shown], hidden.codes])
        labels = np.concatenate([cell_labels[shown], hidden.labels])
        every = splits({**trace, "codes": codes, "labels": labels})
        return cls(
            spelled=(trace["shared"], trace["label"]),
            splits={name: split for name, split in every.items() if (split[1] != ROLLED).any()},
            codes=codes,
            recoded=np.vstack([cell_codes[shown], hidden.found.codes]),
            labels=labels,
            cell=np.concatenate([np.arange(count), count + hidden.found.cell]),
            groups=block_diag([eye_array(count), hidden.indicators()]).tocsr(),
            rows=np.concatenate([cell_rows[shown], hidden.rows]),
        )

    @property
    def shown(self) -> Truths:
        """Blocks that are cells of their own, and in nothing else that is told."""
        told = np.bincount(self.groups.indices, minlength=len(self.cell))
        return np.asarray((np.bincount(self.cell)[self.cell] == 1) & (told == 1))

    def tells_as(self, other: Side) -> bool:
        """Whether it tells of the same groups, whatever their numbers."""
        mine, theirs = ((one.codes, one.labels, one.recoded, one.cell) for one in (self, other))
        return (
            self.spelled == other.spelled
            and all(np.array_equal(*both) for both in zip(mine, theirs, strict=True))
            and self.groups.shape == other.groups.shape
            and not (self.groups != other.groups).nnz
        )


@dataclass(frozen=True)
class Atoms:
    """What rows may be in.

    Parameters
    ----------
    names
        The columns that some release splits.
    pieces
        Per atom and column, its piece.
    blocks
        Per atom and release, its block; `NONE` if it has none.
    held
        The columns that the releases at hand split.
    """

    names: tuple[str, ...]
    pieces: Ints
    blocks: Ints
    held: Truths

    def only(self, kept: Truths) -> Atoms:
        """Some of them."""
        return replace(self, pieces=self.pieces[kept], blocks=self.blocks[kept])


def common_atoms(sides: Sequence[Side], most: int, *, crossed: bool = False) -> Atoms | None:
    """The atoms of some releases; None if there would be more than ``most``.

    Crossed, of two releases, only as many as it takes: where atoms a, b, ... of one go with all of 1, 2, ... of the
    other, those with a or 1. What both releases tell is u(letter) + v(number), so the others follow from these.
    """
    names = list(dict.fromkeys(name for side in sides for name in side.splits))
    spelled = {name: elements([side.splits[name][0] for side in sides if name in side.splits]) for name in names}
    found: Atoms | None = None
    for side in sides:
        one = _expanded(side, spelled, most)
        found = one if found is None or one is None else _joined(found, one, most, crossed)
        if found is None:
            return None
    return found


def _expanded(side: Side, spelled: dict[str, list[object]], most: int) -> Atoms | None:
    """The atoms of one release: each of its blocks by the pieces it holds."""
    block = np.arange(len(side.labels))
    pieces = np.full((len(block), len(spelled)), NONE)
    for at, (name, every) in enumerate(spelled.items()):
        if name in side.splits:
            row, piece = np.nonzero(covers(*side.splits[name], every)[block])
            if len(row) > most:
                return None
            block, pieces = block[row], pieces[row]
            pieces[:, at] = piece
    held = np.array([name in side.splits for name in spelled], dtype=bool)
    return Atoms(tuple(spelled), pieces, block[:, None], held)


def _joined(left: Atoms, right: Atoms, most: int, crossed: bool) -> Atoms | None:
    """Atoms that agree in all columns both sides hold; and those of blocks that agree with none."""
    on = left.held & right.held
    key = number_rows(np.vstack([left.pieces[:, on], right.pieces[:, on]]))
    keys = key[: len(left.pieces)], key[len(left.pieces) :]
    at, other = _first_pairs(*keys) if crossed else _pairs(*keys, most)
    if len(at) > most:
        return None
    pieces = np.where(left.held, left.pieces[at], right.pieces[other])
    blocks = np.column_stack([left.blocks[at], right.blocks[other]])
    width = left.blocks.shape[1]
    lost, came = _unmatched(left, blocks[:, :width]), _unmatched(right, blocks[:, width:])
    return Atoms(
        left.names,
        np.vstack([pieces, lost.pieces, came.pieces]),
        np.vstack([blocks, _padded(lost.blocks, 0, 1), _padded(came.blocks, width, 0)]),
        left.held | right.held,
    )


def _pairs(mine: Ints, theirs: Ints, most: int) -> tuple[Ints, Ints]:
    """All pairs of equal keys; if they are too many, one more than there may be."""
    order = np.argsort(theirs, kind="stable")
    start, stop = (np.searchsorted(theirs[order], mine, side=side) for side in ("left", "right"))
    count = stop - start
    if count.sum() > most:
        nothing = np.zeros(most + 1, dtype=np.int64)
        return nothing, nothing
    at = np.repeat(np.arange(len(mine)), count)
    return at, order[np.arange(len(at)) + np.repeat(start - np.cumsum(count) + count, count)]


def _first_pairs(mine: Ints, theirs: Ints) -> tuple[Ints, Ints]:
    """Pairs of equal keys in which one of the two is the first with its key."""
    keys, first = np.unique(mine, return_index=True)
    other_keys, other_first = np.unique(theirs, return_index=True)
    left, right = np.flatnonzero(np.isin(mine, other_keys)), np.flatnonzero(np.isin(theirs, keys))
    at = np.concatenate([left, first[np.searchsorted(keys, theirs[right])]])
    other = np.concatenate([other_first[np.searchsorted(other_keys, mine[left])], right])
    found = np.unique(np.column_stack([at, other]), axis=0).astype(np.int64)
    return found[:, 0], found[:, 1]


def _unmatched(side: Atoms, matched: Ints) -> Atoms:
    """Atoms of blocks that none of the matched atoms lies in."""
    gone = [(own != NONE) & ~np.isin(own, kept) for own, kept in zip(side.blocks.T, matched.T, strict=True)]
    return side.only(np.any(gone, axis=0))


def _padded(blocks: Ints, before: int, after: int) -> Ints:
    return np.pad(blocks, ((0, 0), (before, after)), constant_values=NONE)
