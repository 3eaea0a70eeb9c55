"""Rows as integers of bounded length, so that no rounding of floating point can break a guarantee."""

from __future__ import annotations

import numpy as np

from radocraft.arrays import Floats, Ints

_HUGE = 1e150


def bounded(values: Floats, norm: float, grid: int) -> Ints:
    """Rows scaled down to ``norm`` and truncated to whole numbers, where ``norm`` is ``grid`` units.

    The length of every row that comes out is at most ``grid``, checked in exact
    integers. Missing values become 0; infinite ones count as huge.

    Examples
    --------
    >>> bounded(np.array([[3.0, 4.0], [0.3, np.nan]]), norm=1.0, grid=1000)
    array([[600, 800],
           [300,   0]])
    """
    finite = np.clip(np.nan_to_num(values, nan=0.0, posinf=_HUGE, neginf=-_HUGE), -_HUGE, _HUGE)
    largest = np.abs(finite).max(axis=1, keepdims=True, initial=0.0)
    safe = np.where(largest > 0, largest, 1.0)
    shape = finite / safe
    length = np.sqrt((shape**2).sum(axis=1, keepdims=True)) * safe
    kept = np.minimum(1.0, norm / np.where(length > 0, length, 1.0))
    units: Ints = np.trunc(finite * kept / norm * grid).astype(np.int64)
    return shortened(units, grid)


def shortened(units: Ints, grid: int) -> Ints:
    """Rows no longer than ``grid``, in exact integers: those that rounding made longer lose a unit in every entry."""
    while (long := (units**2).sum(axis=1) > grid**2).any():
        units[long] -= np.sign(units[long])
    return units
