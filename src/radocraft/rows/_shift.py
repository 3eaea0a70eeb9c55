"""How values are shifted before they are added: by their bounds, or to lose no digits, by a sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sqlglot import exp

from radocraft.arrays import Floats
from radocraft.contract import Boolean, Categorical, Column
from radocraft.rows._encoding import Reader
from radocraft.rows._expressions import moved
from radocraft.rows.engines._base import Source
from radocraft.sums import Bounding

_SAMPLE = 10_000
_FAR = 16.0
_EXTREME = 100


@dataclass(frozen=True)
class Shift:
    """What is summed is (value - origin) / unit: in whole numbers by ``bounding``, or exactly, if that is None.

    Moving keeps large numbers from cancelling. ``gaps`` are the columns of which some
    value is expected to be missing; with bounds none is, since a missing value counts as 0.
    """

    origin: Floats
    unit: Floats
    gaps: tuple[int, ...] = ()
    bounding: Bounding | None = None

    def values(self, reader: Reader) -> list[exp.Expr]:
        """One expression for each column to be summed that is a number of its own, before any bounds.

        The 0 and 1 of a category are never moved.
        """
        if self.bounding is not None:
            return reader.plain()
        plain = reader.layout.plain
        units = zip(reader.plain(), self.origin[plain], self.unit[plain], strict=True)
        return [moved(value, float(origin), float(unit)) for value, origin, unit in units]


def guess_shift(source: Source, reader: Reader, columns: tuple[Column, ...]) -> Shift:
    """Where to move a column, and by what to divide it, before its values are added.

    It changes no result: it only keeps large numbers from cancelling and extreme
    ones from overflowing, so most columns stay as they are. What decides is the
    contract's centre and scale, else the mean and deviation of a sample.
    """
    sample = ask_sample(source, reader, columns)
    mean, deviation = mean_and_deviation(sample)
    agreed = np.array([column.scale is not None for column in columns])
    mean = np.where(agreed, [column.centre or 0.0 for column in columns], mean)
    spread = np.where(agreed, [column.scale or 0.0 for column in columns], deviation)
    bits = np.round(np.log2(np.where(spread > 0, spread, 1.0)))
    step = np.where(spread > 0, 2.0**bits, np.abs(mean))
    with np.errstate(invalid="ignore", divide="ignore"):
        rounded = np.where(step > 0, np.round(mean / step) * step, 0.0)
    origin = np.where(np.abs(mean) > _FAR * spread, rounded, 0.0)
    unit = np.where(np.abs(bits) > _EXTREME, np.where(agreed, spread, 2.0**bits), 1.0)
    return Shift(origin, unit, gaps_of(sample))


def gaps_of(sample: Floats) -> tuple[int, ...]:
    """Columns of which some value is missing in a sample, or all are because they were not asked."""
    return tuple(np.flatnonzero(np.isnan(sample).any(axis=0) | (len(sample) == 0)).tolist())


def mean_and_deviation(values: Floats) -> tuple[Floats, Floats]:
    """Of each column's present values; 0 where there is none, or too large a one."""
    present = ~np.isnan(values)
    count = present.sum(axis=0)
    with np.errstate(invalid="ignore", over="ignore"):
        mean = np.where(present, values, 0.0).sum(axis=0) / np.maximum(count, 1)
        squares = np.where(present, values - mean, 0.0) ** 2
        deviation = np.sqrt(squares.sum(axis=0) / np.maximum(count - 1, 1))
    return np.where(np.isfinite(mean), mean, 0.0), np.where(np.isfinite(deviation), deviation, 0.0)


def ask_sample(source: Source, reader: Reader, columns: tuple[Column, ...]) -> Floats:
    """The values of a sample, NaN where missing; of truth values and categories none is needed, all is agreed."""
    held = reader.contract.summed(reader.peer)
    asked = [index for index, c in enumerate(columns) if not isinstance(held[c.feature], Boolean | Categorical)]
    if not asked:
        return np.full((0, len(columns)), np.nan)
    values = reader.summed()
    rows = reader.rows(source.sample(_SAMPLE).subquery("peer_sample"))
    table = source.table(exp.select(*(values[index].as_(f"value_{index}") for index in asked)).from_(rows))
    sample = np.full((table.num_rows, len(columns)), np.nan)
    for index in asked:
        sample[:, index] = table.column(f"value_{index}").to_numpy()
    return sample
