"""Blocks: the parts of all peers brought together.

Peers roll up what is small at home, so one peer may show a block that another
shows only as part of a coarser cell. `merge` brings them to their finest common
coarsening: two cells of different peers join when some signature may lie in
both (one with a code that no peer shows included), and every connected group of
cells is one block. When all peers see the
same people (the paper's setting VP) they roll up alike, and nothing coarsens.

Notation, as in the paper: ``u`` is the weight of a block, the counter
``(1^T c) / (d - dim J)``, that is the peers' row counts averaged by their
number of columns; ``M`` is the sum of all weights; block means are sums over
rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from radocraft.arrays import Floats, Ints, Numbers, Truths, add_up, number_rows
from radocraft.cells import ROLLED, Cells
from radocraft.contract import Contract
from radocraft.errors import LearnError
from radocraft.part import Part


@dataclass(frozen=True)
class Blocks:
    """All peers' sums over common blocks.

    Parameters
    ----------
    contract
        What the peers agreed on.
    cells
        Each peer's cells as they came, in the order of the peers.
    member
        For each peer, the block each of its cells belongs to.
    codes, labels
        Per block: the codes all its cells have in common (`ROLLED` where they
        differ), and the label.
    """

    contract: Contract
    cells: tuple[Cells, ...]
    member: tuple[Ints, ...]
    codes: Ints
    labels: Ints

    @property
    def peers(self) -> tuple[str, ...]:
        """Names of the peers, in the order in which their columns stand in the model."""
        return tuple(cells.peer for cells in self.cells)

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def rows(self) -> Ints:
        """Rows of each peer (first axis) in each block."""
        return np.array([self._pool(at, cells.rows) for at, cells in enumerate(self.cells)])

    @cached_property
    def weights(self) -> Floats:
        """The paper's u: the peers' row counts averaged by their number of columns."""
        widths = np.array([len(cells.columns) for cells in self.cells], dtype=np.float64)
        out: Floats = widths @ self.rows / widths.sum()
        return out

    @cached_property
    def shared_means(self) -> Floats:
        """Mean encoding of the shared features in each block, over all peers' rows."""
        widths = [len(cells.columns) for cells in self.cells]
        total = sum(
            width * self._pool(at, cells.shared)
            for at, (width, cells) in enumerate(zip(widths, self.cells, strict=True))
        )
        return np.asarray(total / (self.weights * sum(widths))[:, None])

    def sums(self, at: int) -> Floats:
        """Sums of the private columns of peer ``at`` in each block."""
        return self._pool(at, self.cells[at].sums)

    def shared_sums(self, at: int) -> Floats:
        """Sums of the shared columns over the rows of peer ``at`` in each block."""
        return self._pool(at, self.cells[at].shared)

    def means(self, at: int) -> Floats:
        """Means of the private columns of peer ``at`` in each block.

        A block the peer has not seen takes the peer's mean at the finest
        coarser level it has, with the same label if it can.
        """
        rows, sums = self.rows[at].astype(np.float64), self.sums(at)
        means: Floats = np.divide(sums, rows[:, None], out=np.zeros_like(sums), where=rows[:, None] > 0)
        unseen = rows == 0
        for level in reversed(range(self.codes.shape[1])):
            unseen = _fill(means, unseen, np.column_stack([self.codes[:, :level], self.labels]), rows, sums)
        _fill(means, unseen, np.zeros((len(rows), 1), dtype=np.int64), rows, sums)
        return means

    def locate(self, codes: Ints, labels: Ints) -> Ints:
        """The finest block that contains each signature with its label, -1 where there is none."""
        mine = np.column_stack([self.labels, self.codes])
        theirs = np.column_stack([labels, codes])
        found = np.full(len(labels), -1, dtype=np.int64)
        for level in reversed(range(codes.shape[1] + 1)):
            coarse = theirs.copy()
            coarse[:, level + 1 :] = ROLLED
            number = number_rows(np.vstack([mine, coarse]))
            place = np.full(number.max() + 1, -1, dtype=np.int64)
            place[number[: len(mine)]] = np.arange(len(mine))
            found = np.where(found < 0, place[number[len(mine) :]], found)
        return found

    def _pool(self, at: int, values: Numbers) -> Numbers:
        return add_up(values, self.member[at], len(self))


def _fill(means: Floats, unseen: Truths, keys: Ints, rows: Floats, sums: Floats) -> Truths:
    """Give unseen blocks the mean over all blocks with the same key; those still unseen come back."""
    if not unseen.any():
        return unseen
    group = number_rows(keys)
    count = np.bincount(group, rows)
    pooled = add_up(sums, group, len(count)) / np.maximum(count, 1.0)[:, None]
    now = unseen & (count[group] > 0)
    means[now] = pooled[group[now]]
    return unseen & ~now


def merge(parts: list[Part], contract: Contract) -> Blocks:
    """Bring the peers' parts to common blocks.

    Raises
    ------
    ContractMismatch
        If a part was made under another contract.
    LearnError
        If a peer comes twice, or no block is known to two peers.
    """
    if not parts:
        raise LearnError("There are no parts to learn from. Give the part file of each peer.")
    names = [part.peer for part in parts]
    if twice := {name for name in names if names.count(name) > 1}:
        raise LearnError(
            f"There are two parts of '{sorted(twice)[0]}'. A part is always of the peer's whole table: "
            "keep the newest, or let the peer add its tallies and release once."
        )
    order = {name: at for at, name in enumerate(contract.peers)}
    cells = tuple(part.cells(contract) for part in sorted(parts, key=lambda part: order.get(part.peer, len(order))))
    return merge_cells(cells, contract)


def merge_cells(cells: tuple[Cells, ...], contract: Contract) -> Blocks:
    """`merge` for numbers already read."""
    keys = np.vstack([np.column_stack([peer.labels, peer.codes]) for peer in cells])
    starts = np.cumsum([0, *(len(peer.rows) for peer in cells)])
    left, right = _links(keys, starts)
    graph = coo_array((np.ones(len(left)), (left, right)), shape=(len(keys), len(keys)))
    count, block = connected_components(graph, directed=False)
    codes, labels = _common_codes(keys, block, count)
    member = tuple(block[low:high].astype(np.int64) for low, high in pairwise(starts))
    blocks = Blocks(contract, cells, member, codes, labels)
    if len(cells) > 1 and not ((blocks.rows > 0).sum(axis=0) > 1).any():
        raise LearnError(
            "No block is known to two peers: their codes or labels have nothing in common. Compare what "
            "`radocraft inspect` shows of each part, above all the units behind `edges` and the spelling of categories."
        )
    return blocks


def _links(keys: Ints, starts: Ints) -> tuple[Ints, Ints]:
    """For each cell and each peer, the finest of the peer's cells that contains it, where there is one.

    ``keys`` are all peers' cells (label, codes), peer after peer; peer j's go from ``starts[j]`` to ``starts[j + 1]``.
    """
    levels = np.repeat(keys[None], keys.shape[1], axis=0)
    for level in range(keys.shape[1]):
        levels[level, :, level + 1 :] = ROLLED
    number = number_rows(levels.reshape(-1, keys.shape[1])).reshape(levels.shape[:2])
    left, right = [], []
    for low, high in pairwise(starts):
        place = np.full(number.max() + 1, -1, dtype=np.int64)
        place[number[-1, low:high]] = np.arange(low, high)
        found = np.full(len(keys), -1, dtype=np.int64)
        for level in number[::-1]:
            found = np.where(found < 0, place[level], found)
        hit = np.flatnonzero(found >= 0)
        left.append(hit)
        right.append(found[hit])
    return np.concatenate(left), np.concatenate(right)


def _common_codes(keys: Ints, block: Ints, count: int) -> tuple[Ints, Ints]:
    """The codes that all cells of a block have in common, and its label."""
    low = np.full((count, keys.shape[1]), np.iinfo(np.int64).max)
    high = np.full((count, keys.shape[1]), np.iinfo(np.int64).min)
    np.minimum.at(low, block, keys)
    np.maximum.at(high, block, keys)
    codes = np.where(low == high, low, ROLLED)
    codes[:, 1:][np.cumsum(codes[:, 1:] == ROLLED, axis=1) > 0] = ROLLED
    return codes[:, 1:], codes[:, 0]
