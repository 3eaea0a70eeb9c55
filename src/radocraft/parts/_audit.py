"""What an attacker can learn from a part at best, who knows the whole table but for one row (or person).

Under normal noise this has a closed form. With rho spent, the best test whether the row is there is right in
Phi((rho / 2)^(1/2)) of all cases, at equal odds. Of the row's own value z in a column, in its units, its cell's sum
shows z + N(0, s^2); the moments show z^2 + N(0, m^2), and with every other column z z_j + N(0, m^2). Each number's
share of the information on z adds up, so no unbiased guess has a standard error below

    (1 / s^2 + (4 z^2 + sum over j of z_j^2) / m^2)^(-1/2),

less for a row far out than for a usual one: it moves moments more. A person with k rows moves all of these k times
as much. Beyond the bounds of its column no value shows at all. Whoever knows less than that learns less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from radocraft.contract import ANY

if TYPE_CHECKING:
    from radocraft.parts._part import Part

_SURE = 1.959964
"""Standard errors on both sides that hold 95 of 100 normal numbers."""
_SMALLEST = 5


@dataclass(frozen=True)
class ColumnExposure:
    """What can be known of one value: to within ``usual``, or ``largest`` for the largest contributor.

    Both are half of an interval that holds the truth in 95 of 100 cases. Values count from ``low`` to ``high``.
    """

    name: str
    low: float
    high: float
    usual: float
    largest: float

    @property
    def open(self) -> float:
        """The share of its range that remains for a usual row's value."""
        return min(2.0 * self.usual / (self.high - self.low), 1.0) if self.high > self.low else 0.0


@dataclass(frozen=True)
class CellExposure:
    """A cell of few rows: how many, and half of the interval of a mean in it, in deviations of the column."""

    cell: str
    rows: int
    mean: float


@dataclass(frozen=True)
class Exposure:
    """What remains hidden of one row, or person, from whoever knows all others."""

    unit: str
    right: float
    auc: float
    epsilon: float | None
    delta: float | None
    columns: tuple[ColumnExposure, ...]
    cells: tuple[CellExposure, ...]

    @property
    def sentence(self) -> str:
        """Whether somebody is there, in one sentence without its full stop."""
        who = f"an attacker who knows all other {self.unit}s says whether one is in the table"
        return f"{100 * self.right:.0f} of 100 guesses right at best, if {who} (50 by chance)"


def audit(part: Part) -> Exposure:
    """Exposure a part by what it says of its noise; see the module's docstring."""
    policy, rho = part.metadata["policy"], part.metadata["policy"]["rho"]
    spent = math.inf if rho is None else float(rho)
    return Exposure(
        unit=policy["unit"],
        right=float(ndtr((spent / 2.0) ** 0.5)),
        auc=float(ndtr(spent**0.5)),
        epsilon=policy["epsilon"],
        delta=policy["delta"],
        columns=() if part.of_scores else _columns(part.metadata),
        cells=_cells(part),
    )


def _columns(metadata: dict[str, Any]) -> tuple[ColumnExposure, ...]:
    policy, levels, width = metadata["policy"], metadata["levels"], len(metadata["columns"])
    square = math.inf if policy["row_bound"] is None else policy["row_bound"] ** 2 * width
    reach = min(policy["bound"] or math.inf, square**0.5)
    usual = _interval(levels, policy, 1.0, min(width, square) - 1.0)
    largest = _interval(levels, policy, reach**2, square - reach**2) if math.isfinite(reach) else 0.0
    return tuple(
        ColumnExposure(name, centre - reach * scale, centre + reach * scale, usual * scale, largest * scale)
        for name, centre, scale in zip(metadata["columns"], metadata["centre"], metadata["scale"], strict=True)
    )


def _interval(levels: dict[str, float], policy: dict[str, Any], square: float, rest: float) -> float:
    """Half of the interval of a value whose square is this, the other columns' squares adding up to the rest."""
    if not (levels["sums"] and levels["moments"]):
        return 0.0
    known = levels["sums"] ** -2 + (4.0 * square + max(rest, 0.0)) / levels["moments"] ** 2
    return float(_SURE / (policy["rows_per_person"] * known**0.5))


def _cells(part: Part) -> tuple[CellExposure, ...]:
    """The smallest."""
    rows, sd = part.table.column("rows").to_numpy(), part.metadata["levels"]["sums"]
    words = [name for name in part.table.column_names if name.startswith("shared:")]
    out = []
    for at in np.argsort(rows, kind="stable")[:_SMALLEST].tolist():
        row = part.table.slice(at, 1).to_pylist()[0]
        codes = [f"{name.removeprefix('shared:')} {row[name]}" for name in words if row[name] != ANY]
        cell = ", ".join([*codes, f"label {row['label']}"])
        out.append(CellExposure(cell, int(rows[at]), float(_SURE * sd / rows[at])))
    return tuple(out)
