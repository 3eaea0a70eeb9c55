"""What makes a group of rows too small to be released."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from radocraft.arrays import Floats, Ints, Truths, add_up
from radocraft.cells import Cells
from radocraft.policy.rules import Dominance


@dataclass(frozen=True)
class Contributors:
    """Who makes up the sums: per block and private column, the sum of absolute values and the largest of them.

    Parameters
    ----------
    codes, labels
        The blocks, in the order of the tally's.
    absolute
        Per block and column: sum of |x| over its rows, in raw units.
    largest
        Per block, column and rank: the largest |x|, 0 where there are fewer
        rows. Columns of categories and truth values hold zeros: every row
        that counts there counts 1.
    """

    codes: Ints
    labels: Ints
    absolute: Floats
    largest: Floats

    def pooled(self, group: Ints, pick: Ints, groups: int) -> tuple[Floats, Floats]:
        """`absolute` and `largest` of groups of blocks."""
        absolute = add_up(self.absolute[pick], group, groups)
        width, count = self.largest.shape[1:]
        largest = np.zeros((groups, width, count))
        owner = np.repeat(group, count)
        for column in range(width):
            values = self.largest[pick, column].ravel()
            order = np.lexsort((-values, owner))
            start = np.searchsorted(owner[order], np.arange(groups))
            rank = np.arange(len(order)) - start[owner[order]]
            kept = order[rank < count]
            largest[owner[kept], column, rank[rank < count]] = values[kept]
        return absolute, largest


@dataclass(frozen=True)
class Counts:
    """Numbers of rows, beside those of blocks, that leave or follow from what does; see `rare.row_counts`.

    Parameters
    ----------
    rows
        Per block and count.
    owner
        Of which column each count speaks.
    least
        The fewest rows of each, but for none.
    """

    rows: Ints
    owner: Ints
    least: Ints

    def few(self, group: Ints, pick: Ints) -> Truths:
        """Per group of the blocks ``pick`` and count, whether it tells of some rows, but of too few."""
        total = add_up(self.rows[pick], group, int(group.max(initial=-1)) + 1)
        out: Truths = (total > 0) & (total < self.least)
        return out

    @classmethod
    def none(cls, blocks: int) -> Counts:
        """No number but those of the blocks themselves."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(np.empty((blocks, 0), dtype=np.int64), nothing, nothing)

    def only(self, column: int) -> Counts:
        """Those that speak of one column."""
        own = self.owner == column
        return Counts(self.rows[:, own], self.owner[own], self.least[own])


@dataclass(frozen=True)
class Limits:
    """The rules a group of exact blocks must keep, whatever it is released as.

    Parameters
    ----------
    cells
        The exact blocks.
    counts
        Further numbers of rows.
    rows
        The fewest rows of a group.
    dominance, contributors
        If given, how much of a sum a few rows may make up, and what they do.
    """

    cells: Cells
    counts: Counts
    rows: int
    dominance: Dominance | None = None
    contributors: Contributors | None = None

    def broken(self, group: Ints, pick: Ints) -> Truths:
        """Which groups of the blocks ``pick``, numbered from 0 by ``group``, are too small to leave."""
        return np.logical_or(self.small(group, pick), self.dominated(group, pick))

    def dominated(self, group: Ints, pick: Ints) -> Truths:
        """Which groups have a sum that is mostly one or a few rows'."""
        groups = int(group.max(initial=-1)) + 1
        if self.dominance is None or self.contributors is None:
            return np.zeros(groups, dtype=bool)
        return np.asarray(dominated(*self.contributors.pooled(group, pick, groups), self.dominance).any(axis=1))

    def small(self, group: Ints, pick: Ints) -> Truths:
        """Which groups have fewer rows than the limit, or some further number of rows under it."""
        return np.logical_or(self.few(group, pick), self.counts.few(group, pick).any(axis=1))

    def few(self, group: Ints, pick: Ints) -> Truths:
        """Which groups have fewer rows than the limit."""
        out: Truths = np.bincount(group, self.cells.rows[pick], int(group.max(initial=-1)) + 1) < self.rows
        return out


def dominated(absolute: Floats, largest: Floats, rule: Dominance) -> Truths:
    """Which sums are mostly one or a few rows', by either rule.

    Examples
    --------
    >>> dominated(np.array([[10.0]]), np.array([[[8.0, 1.0]]]), Dominance(share=0.5))
    array([[ True]])
    """
    out = np.zeros(absolute.shape, dtype=bool)
    slack = 1e-9 * absolute
    if rule.share is not None:
        out |= largest[:, :, : rule.largest].sum(axis=2) > rule.share * absolute + slack
    if rule.percent is not None:
        rest = absolute - largest[:, :, :2].sum(axis=2)
        out |= rest < rule.percent / 100.0 * largest[:, :, 0] - slack
    return out
