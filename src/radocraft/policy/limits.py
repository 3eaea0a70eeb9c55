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
class Limits:
    """The rules a group of exact blocks must keep, whatever it is released as.

    Parameters
    ----------
    cells
        The exact blocks.
    support
        Per block and column: how many rows can be behind a sum.
    rows
        The fewest rows of a group, and behind a sum.
    dominance, contributors
        If given, how much of a sum a few rows may make up, and what they do.
    """

    cells: Cells
    support: Ints
    rows: int
    dominance: Dominance | None = None
    contributors: Contributors | None = None

    def broken(self, group: Ints, pick: Ints) -> Truths:
        """Which groups of the blocks ``pick``, numbered from 0 by ``group``, are too small to leave."""
        groups = int(group.max(initial=-1)) + 1
        broken = self.few(group, pick)
        gaps = np.flatnonzero((self.support < self.cells.rows[:, None]).any(axis=0))
        for column in gaps:
            behind = np.bincount(group, self.support[pick, column], groups)
            broken |= (behind > 0) & (behind < self.rows)
        if self.dominance is not None and self.contributors is not None:
            broken |= dominated(*self.contributors.pooled(group, pick, groups), self.dominance).any(axis=1)
        return broken

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
