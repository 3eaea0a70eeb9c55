"""Blocks: the cells of all peers merged.

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

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from radocraft.arrays import Floats, Ints, gathered, gathering, number_rows
from radocraft.contract import Contract, Number
from radocraft.errors import LearnError
from radocraft.learning._shrinkage import shrunk
from radocraft.learning._units import label_as_shared, pooled_units, same_units
from radocraft.parts import Part
from radocraft.sums import ROLLED, Cells, Method, locate, with_labels

PIECE = 4096
"""How many blocks are looked at together."""


@dataclass(frozen=True)
class Blocks:
    """All peers' sums over common blocks.

    Parameters
    ----------
    contract
        What the peers agreed on.
    cells
        Each peer's cells as they came, in the order of the peers.
    gathers
        For each peer, the matrix that adds its cells up by block.
    codes, labels
        Per block: the codes all its cells have in common (`ROLLED` where they
        differ), and the label.
    label_units
        Centre and scale of a numeric label, which is the last of the shared columns.
    certainty, uncertainty
        For each peer that lacks the label, how far its proportions could be
        trusted, from 0 to 1, and the covariance that estimating adds; see `proportions`.
    among
        For some of the blocks alone (`pick`): all of them, and which these are.
    """

    contract: Contract
    cells: tuple[Cells, ...]
    gathers: tuple[csr_array, ...]
    codes: Ints
    labels: Ints
    label_units: tuple[float, float] = (0.0, 1.0)
    certainty: dict[str, float | None] = field(default_factory=dict)
    uncertainty: dict[str, Floats] = field(default_factory=dict)
    among: tuple[Blocks, slice | Ints] | None = None

    @property
    def peers(self) -> tuple[str, ...]:
        """Names of the peers, in the order in which their columns stand in the model."""
        return tuple(cells.peer for cells in self.cells)

    def __len__(self) -> int:
        return len(self.labels)

    def pick(self, chosen: slice | Ints) -> Blocks:
        """Some of the blocks, with the numbers they have among all."""
        gathers = tuple(gather[chosen] for gather in self.gathers)
        codes, labels = self.codes[chosen], self.labels[chosen]
        return replace(self, gathers=gathers, codes=codes, labels=labels, among=(self, chosen))

    def pieces(self) -> Iterator[Blocks]:
        """All blocks, so many at a time that a matrix of their columns is small: sums over pieces are sums over all."""
        if len(self) <= PIECE:
            yield self
            return
        for low in range(0, len(self), PIECE):
            yield self.pick(slice(low, low + PIECE))

    @cached_property
    def rows(self) -> Ints:
        """Rows of each peer (first axis) in each block."""
        return np.array([gather @ cells.rows for gather, cells in zip(self.gathers, self.cells, strict=True)])

    @cached_property
    def holders(self) -> dict[str, tuple[int, ...]]:
        """The peers that hold each private column; the first of them owns it in the model."""
        out: dict[str, tuple[int, ...]] = {}
        for index, cells in enumerate(self.cells):
            for name in cells.columns:
                out[name] = (*out.get(name, ()), index)
        return out

    def owned(self, index: int) -> Ints:
        """Which of the columns of peer ``at`` it owns: all but those that an earlier peer holds too."""
        names = self.cells[index].columns
        return np.array([k for k, name in enumerate(names) if self.holders[name][0] == index], dtype=np.int64)

    @property
    def limits(self) -> tuple[Floats, Floats]:
        """The least and the most that a raw value counts, by private column of the model."""
        every = np.array([-np.inf, np.inf])[:, None]
        own = [
            np.repeat(every, len(self.owned(at)), axis=1)
            if cells.limits is None
            else np.array(cells.limits)[:, self.owned(at)]
            for at, cells in enumerate(self.cells)
        ]
        low, high = np.hstack(own)
        return low, high

    @cached_property
    def weights(self) -> Floats:
        """The paper's u: row counts averaged over columns, where a column counts the rows of all who hold it.

        Only those who hold the label count: what others have of each label is an estimate.
        """
        widths = [len(cells.columns) * self.contract.labelled(cells.peer) for cells in self.cells]
        counted = {name for width, cells in zip(widths, self.cells, strict=True) if width for name in cells.columns}
        out: Floats = np.array(widths, dtype=np.float64) @ self.rows / len(counted)
        return out

    @cached_property
    def counters(self) -> Floats:
        """The same where a column counts the mean of its holders' rows, so that nobody counts twice (Theorem 3)."""
        widths = [sum(1.0 / len(self.holders[name]) for name in cells.columns) for cells in self.cells]
        out: Floats = np.array(widths) @ self.rows / len(self.holders)
        return out

    @cached_property
    def shared_means(self) -> Floats:
        """Mean encoding of the shared features in each block, over the rows of all peers that hold the label.

        Where none of them has rows, over those of the others.
        """
        widths = np.array([len(cells.columns) for cells in self.cells], dtype=np.float64)
        known = widths * [self.contract.labelled(cells.peer) for cells in self.cells]
        counts = np.where((known @ self.rows > 0)[None], known[:, None], widths[:, None])
        total = sum(counts[index][:, None] * self.shared_sums(index) for index in range(len(self.cells)))
        return np.asarray(total / np.sum(counts * self.rows, axis=0)[:, None])

    @cached_property
    def targets(self) -> Floats:
        """What the score of a row is to be in each block, or the scores, a column for each class."""
        if not isinstance(self.contract.label, Number):
            return self.contract.label.targets(self.labels)
        pairs = zip(self.gathers, self.cells, strict=True)
        total = sum(len(cells.columns) * (gather @ cells.shared)[:, [-1]].toarray() for gather, cells in pairs)
        return np.asarray(total[:, 0] / (self.weights * len(self.holders)))

    def sums(self, index: int) -> Floats:
        """Sums of the private columns of peer ``at`` in each block."""
        return self._sums[index]

    def shared_sums(self, index: int) -> Floats:
        """Sums of the shared columns over the rows of peer ``at`` in each block."""
        return self._shared_sums[index]

    @cached_property
    def _sums(self) -> tuple[Floats, ...]:
        return tuple(gathered(gather, cells.sums) for gather, cells in zip(self.gathers, self.cells, strict=True))

    @cached_property
    def _shared_sums(self) -> tuple[Floats, ...]:
        pairs = zip(self.gathers, self.cells, strict=True)
        return tuple((gather @ cells.shared).toarray() for gather, cells in pairs)

    @cached_property
    def columns_by_holders(self) -> dict[tuple[int, ...], dict[int, Ints]]:
        """By the peers that hold them, where private columns stand among the columns of each."""
        out: dict[tuple[int, ...], dict[int, Ints]] = {}
        positions = [{name: k for k, name in enumerate(cells.columns)} for cells in self.cells]
        for holders in dict.fromkeys(self.holders.values()):
            names = [name for name, by in self.holders.items() if by == holders]
            out[holders] = {
                index: np.array([positions[index][name] for name in names], dtype=np.int64) for index in holders
            }
        return out

    def pooled(self, index: int) -> Floats:
        """Sums of the columns that peer ``at`` owns over the rows of all who hold them."""
        return self._by_holders(index, self._pooled_over)

    def means(self, index: int) -> Floats:
        """Means of the private columns that peer ``at`` owns in each block, over the rows of all who hold them.

        A block they have not seen takes their mean at the finest coarser level
        they have, with the same label if it can.
        """
        return self._by_holders(index, self._means)

    def _by_holders(self, index: int, values: Callable[[tuple[int, ...]], Floats]) -> Floats:
        """Values for the columns that peer ``at`` owns, found for all columns with the same holders together."""
        owned = {holders: places[index] for holders, places in self.columns_by_holders.items() if holders[0] == index}
        if [*owned] == [(index,)]:
            return values((index,))
        order = np.argsort(np.concatenate([np.empty(0, dtype=np.int64), *owned.values()]), kind="stable")
        return np.hstack([np.empty((len(self), 0)), *map(values, owned)])[:, order]

    def _pooled_over(self, holders: tuple[int, ...]) -> Floats:
        places = self.columns_by_holders[holders]
        if len(places[holders[0]]) == len(self.cells[holders[0]].columns) and len(holders) == 1:
            return self.sums(holders[0])
        return np.asarray(sum(self.sums(index)[:, columns] for index, columns in places.items()))

    def _means(self, holders: tuple[int, ...]) -> Floats:
        sums = self._pooled_over(holders)
        rows = self.rows[list(holders)].sum(axis=0).astype(np.float64)[:, None]
        means: Floats = np.divide(sums, rows, out=np.zeros_like(sums), where=rows > 0)
        if not rows.all():
            everyone, here = self.among or (self, slice(None))
            place, coarser = everyone.coarser[holders]
            place = place[here]
            means[place >= 0] = coarser[place[place >= 0]]
        return means

    @cached_property
    def coarser(self) -> dict[tuple[int, ...], tuple[Ints, Floats]]:
        """By holders: means at coarser levels, and which of them each block takes that they have not seen, else -1."""
        return {holders: self._coarser(holders) for holders in self.columns_by_holders}

    def _coarser(self, holders: tuple[int, ...]) -> tuple[Ints, Floats]:
        rows = self.rows[list(holders)].sum(axis=0).astype(np.float64)
        place, entries, count = np.full(len(self), -1, dtype=np.int64), [], 0
        for group in self._levels() if not rows.all() else ():
            seen = np.bincount(group, rows)
            now = (rows == 0) & (place < 0) & (seen[group] > 0)
            if now.any():
                wanted, which = np.unique(group[now], return_inverse=True)
                place[now] = count + which
                count += len(wanted)
                entries.append(self._sums_of(holders, group, wanted) / seen[wanted, None])
        return place, np.vstack([np.empty((0, len(self.columns_by_holders[holders][holders[0]]))), *entries])

    def _levels(self) -> Iterator[Ints]:
        """Blocks grouped by their label and ever fewer of their first codes, at last all together."""
        for level in reversed(range(self.codes.shape[1])):
            yield number_rows(np.column_stack([self.codes[:, :level], self.labels]))
        yield np.zeros(len(self), dtype=np.int64)

    def _sums_of(self, holders: tuple[int, ...], group: Ints, wanted: Ints) -> Floats:
        """Sums over some groups of blocks; never over more than those."""
        some = gathering(group, int(group.max()) + 1)[wanted]
        terms = (
            gathered(some @ self.gathers[index], self.cells[index].sums)[:, columns]
            for index, columns in self.columns_by_holders[holders].items()
        )
        return np.asarray(sum(terms))

    def locate(self, codes: Ints, labels: Ints) -> Ints:
        """The finest block that contains each signature with its label, -1 where there is none."""
        return locate(self.codes, self.labels, codes, labels)


def merge(parts: list[Part], contract: Contract, proportions: Method = "adjusted") -> Blocks:
    """Bring the peers' parts to common blocks; ``proportions`` is for peers without the label, see `proportions`.

    Raises
    ------
    ContractMismatch
        If a part was made under another contract.
    LearnError
        If a peer comes twice, or no block is known to two peers.
    """
    return merge_cells(tuple(part.cells(contract) for part in parts), contract, proportions)


def merge_cells(cells: tuple[Cells, ...], contract: Contract, proportions: Method = "adjusted") -> Blocks:
    """`merge` for numbers already read."""
    check_peers(cells, contract)
    cells = tuple(map(shrunk, cells))
    order = {name: index for index, name in enumerate(contract.peers)}
    cells, units = tuple(sorted(cells, key=lambda peer: order.get(peer.peer, len(order)))), (0.0, 1.0)
    if isinstance(contract.label, Number):
        units = pooled_units(cells, cells[0].columns[-1])
        cells = tuple(label_as_shared(peer, *units) for peer in cells)
    cells = same_units(cells)
    if not isinstance(contract.label, Number) and contract.label.held_by is not None:
        estimated = with_labels(cells, contract, proportions)
        lacking = [each for each, peer in zip(estimated, cells, strict=True) if each.cells is not peer]
        return replace(
            join_cells(tuple(each.cells for each in estimated), contract, units),
            certainty={each.cells.peer: each.certainty for each in lacking},
            uncertainty={each.cells.peer: each.uncertainty for each in lacking if each.uncertainty is not None},
        )
    return join_cells(cells, contract, units)


def check_peers(cells: tuple[Cells, ...], contract: Contract) -> None:
    """Every peer once, and one of them with the label."""
    if not cells:
        raise LearnError("There are no parts to learn from. Give the part file of each peer.")
    names = [peer.peer for peer in cells]
    if twice := {name for name in names if names.count(name) > 1}:
        raise LearnError(
            f"There are two parts of '{sorted(twice)[0]}'. A part always covers the peer's whole table: "
            "keep the newest, or let the peer add its tallies and release once."
        )
    if not any(map(contract.labelled, names)):
        raise LearnError("No part comes from a peer that holds the label. Give at least one that does.")


def join_cells(cells: tuple[Cells, ...], contract: Contract, label_units: tuple[float, float]) -> Blocks:
    """The finest common coarsening of cells that are in the same units already."""
    keys = np.vstack([np.column_stack([peer.labels, peer.codes]) for peer in cells])
    starts = np.cumsum([0, *(len(peer.rows) for peer in cells)])
    left, right = _links(keys, starts)
    graph = coo_array((np.ones(len(left), dtype=np.int8), (left, right)), shape=(len(keys), len(keys)))
    count, block = connected_components(graph, directed=False)
    codes, labels = _common_codes(keys, block, count)
    gathers = tuple(gathering(block[low:high], count) for low, high in pairwise(starts))
    blocks = Blocks(contract, cells, gathers, codes, labels, label_units)
    if len(cells) > 1 and not ((blocks.rows > 0).sum(axis=0) > 1).any():
        raise LearnError(
            "No block is known to two peers: their codes or labels have nothing in common. Compare what "
            "`radocraft inspect` shows of each part, in particular the units of `edges` and the spelling of categories."
        )
    return blocks


def _links(keys: Ints, starts: Ints) -> tuple[Ints, Ints]:
    """For each cell and each peer, the finest of the peer's cells that contains it, where there is one.

    ``keys`` are all peers' cells (label, codes), peer after peer; peer j's go from ``starts[j]`` to ``starts[j + 1]``.
    """
    begins, depth = _beginnings(keys), _depth(keys)
    left, right = [], []
    for low, high in pairwise(starts):
        places = np.full(len(keys), -1, dtype=np.int64)
        for level in reversed(range(keys.shape[1])):
            level_rows = low + np.flatnonzero(depth[low:high] == level)
            if len(level_rows):
                place = np.full(begins[level].max() + 1, -1, dtype=np.int64)
                place[begins[level][level_rows]] = level_rows
                inside = np.flatnonzero((places < 0) & (depth >= level))
                places[inside] = place[begins[level][inside]]
        hit = np.flatnonzero(places >= 0)
        left.append(hit)
        right.append(places[hit])
    return np.concatenate(left), np.concatenate(right)


def _beginnings(keys: Ints) -> list[Ints]:
    """For each level a number that cells have in common if they agree in the label and so many of the first codes."""
    out = [number_rows(keys[:, :1])]
    for codes in keys.T[1:]:
        out.append(number_rows(np.column_stack([out[-1], codes])))
    return out


def _depth(keys: Ints) -> Ints:
    """How many codes there are up to the last that is not "any"."""
    known = (keys[:, 1:] != ROLLED) * np.arange(1, keys.shape[1])
    return np.asarray(known.max(axis=1, initial=0), dtype=np.int64)


def _common_codes(keys: Ints, block: Ints, count: int) -> tuple[Ints, Ints]:
    """The codes that all cells of a block have in common, and its label."""
    out = np.empty((count, keys.shape[1]), dtype=np.int64)
    out[block] = keys
    for index, codes in enumerate(keys.T):
        out[block[codes != out[block, index]], index] = ROLLED
    out[:, 1:][np.cumsum(out[:, 1:] == ROLLED, axis=1) > 0] = ROLLED
    return out[:, 1:], out[:, 0]
