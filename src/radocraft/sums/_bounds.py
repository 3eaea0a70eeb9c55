"""Bounds: no row can say more than these allow, and every value is a whole number on a grid.

A value x becomes a whole number of steps of 1/`GRID` of its column's standard deviation,

    z = floor(GRID / scale * (min(max(x, low), high) - centre) + 1/2),

``low`` and ``high`` being ``column`` standard deviations from the centre; a missing value
becomes 0. Then a row longer than its norm is shortened to it, towards zero:

    z = trunc(z * reach / ||z||)    where    ||z|| > reach = GRID * row * sqrt(features).

Sums of whole numbers below 2^53 are exact in doubles, in whichever order they are added.
So the same rows give the same tally to the bit, whichever engine adds them and with however
many threads: engines (`totals`) do the same operations in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from radocraft.arrays import Floats
from radocraft.contract import Contract, Spline
from radocraft.errors import NotFinite, PolicyError, PolicyRefusal

GRID = 1024
"""Steps of the grid in one standard deviation."""
_ROWS = 4096


@dataclass(frozen=True)
class Bounds:
    """How much of a row is summed.

    Parameters
    ----------
    column
        A column is clipped at so many standard deviations from its centre.
    row
        A row's private values are shortened to a norm of so many times the square root of their number.
    person, rows_per_person
        The column that says whose a row is, and how many rows of each person are summed.

    Examples
    --------
    >>> Bounds().column, Bounds().row
    (4.0, 1.5)
    """

    column: float = 4.0
    row: float = 1.5
    person: str | None = None
    rows_per_person: int = 1

    def __post_init__(self) -> None:
        if not (1.0 / GRID <= self.column < math.inf and 1.0 / GRID <= self.row < math.inf):
            raise PolicyError("`bound` and `row_bound` must be positive numbers, such as 4 and 1.5.")
        if self.rows_per_person < 1:
            raise PolicyError("`rows_per_person` must be 1 or more.")

    def check_adding(self) -> None:
        """Refuse to add tallies where persons are bounded: somebody may be in both, with more rows than may enter."""
        if self.person is not None:
            raise PolicyRefusal(
                f'Rows cannot be added to an earlier tally under `unit = "person"`: a person in both would count '
                f"with more than {self.rows_per_person:,} of the rows by '{self.person}'. Craft all rows at once."
            )

    def norm(self, contract: Contract, peer: str) -> float:
        """The longest a row of a peer can be, in standard deviations."""
        return math.sqrt(self._square(contract, peer)) / GRID

    def _square(self, contract: Contract, peer: str) -> int:
        """The largest squared norm in steps of the grid, a whole number as those of rows are.

        A spline counts as its columns, every other feature as one: of the columns of a category one is 1.
        """
        features = contract.summed(peer).values()
        count = sum(feature.width if isinstance(feature, Spline) else 1 for feature in features)
        return max(1, math.floor((self.row * GRID) ** 2 * count))

    def of(self, contract: Contract, peer: str, centre: Floats, scale: Floats) -> Bounding:
        """The same in the units of a peer's columns."""
        top = max(1, math.floor(self.column * GRID))
        with np.errstate(over="ignore", invalid="ignore"):
            steps = [Steps.of(float(c), float(s), top) for c, s in zip(centre, scale, strict=True)]
        return Bounding(tuple(steps), self._square(contract, peer), Steps.of(0.0, 1.0, top).floor(1.0))

    def to_json(self) -> dict[str, Any]:
        """As files keep it."""
        return asdict(self)


@dataclass(frozen=True)
class Steps:
    """One column: z = floor(min(max(x, low), high) * factor + shift); the centre's z is 0."""

    centre: float
    low: float
    high: float
    factor: float
    shift: float

    @classmethod
    def of(cls, centre: float, scale: float, top: int) -> Steps:
        """With every z from -top to top, however doubles round."""
        factor = GRID / scale
        shift = 0.5 - centre * factor
        if math.floor(centre * factor + shift if math.isfinite(factor * centre) else 0.0):
            shift = -centre * factor  # so far from 0 that half a step is lost in rounding
        low, high = centre - top / factor, centre + top / factor
        if not all(map(math.isfinite, (low * factor + shift, high * factor + shift, factor))):
            raise NotFinite(
                f"A centre of {centre:g} and a scale of {scale:g} cannot be handled in double precision. "
                "Agree on others in the contract."
            )
        while math.floor(high * factor + shift) > top:
            high = math.nextafter(high, -math.inf)
        while math.floor(low * factor + shift) < -top:
            low = math.nextafter(low, math.inf)
        return cls(centre, low, high, factor, shift)

    def floor(self, value: float) -> float:
        """A number's z."""
        return float(math.floor(min(max(value, self.low), self.high) * self.factor + self.shift))


@dataclass(frozen=True)
class Bounding:
    """Bounds in the units of some columns: ``steps`` by column, and the largest squared norm of a row.

    ``one`` is what the 1 of a category becomes.
    """

    steps: tuple[Steps, ...]
    square: int
    one: float = float(GRID)

    @cached_property
    def reach(self) -> float:
        """The largest norm."""
        return math.sqrt(self.square)

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.steps)

    def of(self, columns: Sequence[int]) -> Bounding:
        """The same for some of the columns."""
        return replace(self, steps=tuple(self.steps[column] for column in columns))

    def bounded(self, values: Floats) -> Floats:
        """Rows in memory as whole numbers of the grid; NaN is missing.

        Examples
        --------
        >>> from radocraft import Contract
        >>> contract = Contract.parse('''
        ... name = "risk"
        ... label = { column = "bad", positive = 1, negative = 0 }
        ... peers.bank.features = { age = "numeric", job = "boolean" }
        ... ''')
        >>> bounding = Bounds().of(contract, "bank", np.array([40.0, 0.5]), np.array([10.0, 0.5]))
        >>> bounding.bounded(np.array([[50.0, 1.0], [np.nan, 0.0], [900.0, 1.0]])) / 1024
        array([[ 1.        ,  1.        ],
               [ 0.        , -1.        ],
               [ 2.05761719,  0.51367188]])
        """
        if np.isinf(values).any():
            raise NotFinite("Some values are infinite. Replace them by missing values or finite numbers.")
        out = np.empty(values.shape)
        for start in range(0, len(values), _ROWS):
            rows = slice(start, start + _ROWS)
            self.fill(out[rows], [np.ascontiguousarray(column) for column in values[rows].T])
        return out

    def fill(self, out: Floats, columns: Sequence[Floats], categories: int = 0) -> set[int]:
        """Fill a few thousand rows, which stay in the processor's cache; tell in which columns some value is no number.

        That may be NaN, which counts as missing, or an infinity, which is clipped. With features that are
        ``categories``, whose columns are not here, a last column says what each one's 1 is.
        """
        odd: set[int] = set()
        whole, zeros = np.empty(len(out)), np.zeros(len(out))
        for index, (column, steps) in enumerate(zip(columns, self.steps, strict=True)):
            np.clip(column, steps.low, steps.high, out=whole)
            whole *= steps.factor
            whole += steps.shift
            np.floor(whole, out=out[:, index])
            if np.isnan(column @ zeros):
                odd.add(index)
                np.copyto(out[:, index], 0.0, where=np.isnan(column))
        if categories:
            out[:, -1] = self.one
        self._shorten(out, max(0, categories - 1) * self.one**2)
        return odd

    def _shorten(self, rows: Floats, beside: float) -> None:
        squares = np.einsum("ij,ij->i", rows, rows) + beside
        long = np.flatnonzero(squares > self.square)
        rows[long] = np.trunc(rows[long] * (self.reach / np.sqrt(squares[long]))[:, None])
