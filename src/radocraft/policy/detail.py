"""How a column's sums go with the codes that rolled-up cells hide, where that tells of enough rows.

The moments of a private and a shared column are sums by code, and over rolled-up
rows sums by hidden code. Beside the sums of cells they may determine the sum of
a further group of blocks (`recovery`). Where such a group is too small for a
column (few rows have its category, or not its usual value), the column tells
nothing by hidden code in the cells it lies in: there its sums are spread over
the codes as rows are. Sums of whole cells stay exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, diags_array

from radocraft.arrays import Floats, Ints, Truths, number_rows
from radocraft.policy.limits import Counts, Limits
from radocraft.policy.recoding import Recoding
from radocraft.policy.recovery import determined, indicators, natural_groups


def even_sums(limits: Limits, found: Recoding, encoded: csr_array) -> Floats:
    """Per block and column the sums that moments by code are made of; ``encoded`` are the codes blocks stand for."""
    exact, out = limits.cells, limits.cells.sums.copy()
    some = np.flatnonzero(found.rolled.any(axis=1)).astype(np.int64)
    if limits.rows == 1 or not len(some):
        return out
    hidden = Hidden(limits, found, encoded, some)
    everywhere = np.ones(len(some), dtype=bool)
    for column in np.unique(limits.counts.owner[hidden.unsafe(everywhere)]).tolist():
        mine, live = limits.counts.only(column), everywhere
        while (leak := hidden.leaks(live, mine)).any():
            live = live & ~np.isin(found.cell[some], found.cell[some[leak]])
        even = some[~live]
        cell = number_rows(found.cell[even, None])
        rows, sums = np.bincount(cell, exact.rows[even]), np.bincount(cell, exact.sums[even, column])
        out[even, column] = exact.rows[even] * (sums / rows)[cell]
    return out


@dataclass(frozen=True)
class Hidden:
    """The blocks ``some`` that rolled-up cells hide, and which groups of them can be worked out."""

    limits: Limits
    found: Recoding
    encoded: csr_array
    some: Ints

    def follow(self, live: Truths) -> list[tuple[Ints, Truths]]:
        """Groupings of the blocks, and which groups' sums follow if only ``live`` blocks go by hidden code."""
        cell, labels = self.found.cell[self.some], self.limits.cells.labels[self.some]
        ways = [
            (codes[self.some], by) for codes in (self.limits.cells.codes, self.found.codes) for by in (labels, cell)
        ]
        groups = [group for codes, by in ways for group in natural_groups(codes, by)]
        by_code = (diags_array(live.astype(np.float64)) @ self.encoded[self.some]).T.tocsr()
        system = [indicators(number_rows(cell[:, None]), len(self.some)), by_code]
        return list(zip(groups, determined(system, groups), strict=True))

    def unsafe(self, live: Truths) -> Truths:
        """Which counts some group that follows is too small for."""
        few = self.limits.counts.few
        found = [few(group, self.some)[known].any(axis=0) for group, known in self.follow(live)]
        return np.asarray(np.any(found, axis=0))

    def leaks(self, live: Truths, counts: Counts) -> Truths:
        """Live blocks in a group that follows and is too small for one of the counts."""
        few = counts.few
        found = [(known & few(group, self.some).any(axis=1))[group] for group, known in self.follow(live)]
        return np.asarray(live & np.any(found, axis=0))
