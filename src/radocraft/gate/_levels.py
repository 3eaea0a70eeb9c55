"""How much noise each number gets, and what that costs.

With a dial f the noise is f times the sampling error that is in a number anyway, at
least one row's worth: f sqrt(n / cells) for sums over cells, f sqrt(n) for a moment. With
a budget, f is the smallest that keeps within it. One row lies in one cell and has one
label, and its private vector is no longer than C; so it moves

| the noisy total               by 1
| all counts of labels          by 1
| all counts of signatures      by 1
| all sums and counts of cells  by sqrt(a^2 + C^2), counts having weight a
| all second moments            by sqrt((C^4 + b^2 C^2) / 2), b the bound of a column,

the last because each product of two columns leaves once: sum over i <= j of (z_i z_j)^2 is
(|z|^4 + sum z_i^4) / 2. A person with k rows moves k times as much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from radocraft.gate._account import Spend

TOTAL = 10.0
"""Standard deviation of the noise in the number of all rows, by which all other noise is measured."""
_LABELS = 2.0
_HALVINGS = 60


@dataclass(frozen=True)
class Terms:
    """What a release is measured by: all of it public, or noisy already.

    Parameters
    ----------
    rows
        Noisy number of all rows.
    signatures
        How many counts of agreed signatures (with label) there are.
    labels
        How many labels have moments of their own.
    norm, bound
        The longest a row can be, and the most of a column, in standard deviations.
    width
        How many columns are summed.
    per_unit
        How many rows the protected unit may have.
    open_set
        Whether signatures are counted twice: those that are agreed, and those that were seen.
    """

    rows: float
    signatures: int
    labels: int
    norm: float
    bound: float
    width: int
    per_unit: int = 1
    open_set: bool = False

    @property
    def total(self) -> Spend:
        """What the noisy total cost."""
        return Spend(0.5 / TOTAL**2)

    def sd_counts(self, f: float) -> float:
        """Of the noise in the count of a signature."""
        return self.per_unit * max(1.0, f * math.sqrt(self.rows / self.signatures))

    def sd_labels(self, f: float) -> float:
        """Of the noise in the number of rows with a label: a fourth of what suits a cell as large."""
        return self.per_unit * max(_LABELS, f * math.sqrt(self.rows / self.labels) / 4.0)

    def sd_sums(self, f: float, cells: int) -> float:
        """Of the noise in a cell's sum."""
        return self.per_unit * max(1.0, f * math.sqrt(self.rows / cells))

    def weight(self, f: float, cells: int) -> float:
        """How much a cell's count weighs beside its sums; its noise is that of a sum over this, no less than a row."""
        return min(self.norm / 2.0, self.sd_sums(f, cells) / self.per_unit)

    def sd_moments(self, f: float) -> float:
        """Of the noise in a second moment of one label."""
        return self.per_unit * max(1.0, f * math.sqrt(self.rows / self.labels))

    def counts(self, f: float) -> Spend:
        """What the counts of labels and signatures cost."""
        square = self.sd_labels(f) ** -2 + (1 + self.open_set) * self.sd_counts(f) ** -2
        return Spend(0.5 * self.per_unit**2 * square)

    def sums(self, f: float, cells: int) -> Spend:
        """What sums and counts of cells cost."""
        square = self.weight(f, cells) ** 2 + self.norm**2 * (self.width > 0)
        return Spend(0.5 * square * (self.per_unit / self.sd_sums(f, cells)) ** 2)

    def moments(self, f: float) -> Spend:
        """What the second moments cost."""
        return Spend(0.5 * self.reach_of_moments**2 * (self.per_unit / self.sd_moments(f)) ** 2)

    @property
    def reach_of_moments(self) -> float:
        """How far one row moves all second moments together."""
        square, bound = self.norm**2, min(self.bound, self.norm)
        return math.sqrt((square**2 + bound**2 * square) / 2.0) * (self.width > 0)

    def dial(self, rho: float, cells: int, *, counts: bool) -> float:
        """The smallest f whose noise costs no more than ``rho``; infinite if none does."""

        def cost(f: float) -> float:
            return self.sums(f, cells).rho + self.moments(f).rho + (self.counts(f).rho if counts else 0.0)

        low, high = 1e-6, 1e6
        if cost(high) > rho:
            return float("inf")
        for _ in range(_HALVINGS):
            middle = (low * high) ** 0.5
            low, high = (low, middle) if cost(middle) <= rho else (middle, high)
        return high
