"""Centres, scales and knots that the contract leaves to the data, from noisy counts alone.

A sample's values are counted in bins that nobody chose by looking: first by powers of
two, then in even bins over the range where noisy counts stand out, and again where
that is a small part of the range. All counts carry noise, so what is read off them is
public; what it costs is part of the release's account. One row moves at most two of a
column's counts by 1, its own and, where the sample is cut off at its size, that of the
row which takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np

from radocraft.arrays import Floats, Ints
from radocraft.encoding import Constants
from radocraft.gate.account import Spend
from radocraft.gate.noise import Noise

Count = Callable[[dict[str, Floats]], dict[str, Ints]]
"""Counts of a sample's values between rising edges, by column."""

_OCTAVES = np.concatenate([-(2.0 ** np.arange(60, -31, -1)), 2.0 ** np.arange(-30, 61)])
_ROUNDS = 4
_LEAST, _SHARE = 3.0, 1 / 300
_CLEAR = 2.0
_WIDE = 0.25
_MOST_BINS, _FEWEST_BINS = 64, 10
_TAIL = 0.01


def settle_units(
    wanted: Mapping[str, int], count: Count, rows: int, noise: Noise, *, per_unit: int = 1, rho: float | None = None
) -> tuple[Constants, Spend]:
    """Centre and scale, or knots, of every column left open, and what they cost.

    Parameters
    ----------
    wanted
        0 for a column's centre and scale, k for k knots of a spline.
    count
        Counts the sample's values in the bins it is given.
    rows
        How many rows the sample has.
    noise
        Where noise comes from.
    per_unit
        How many rows one row, or one person, stands for.
    rho
        The most this may cost; what suits the sample's size if None.

    Examples
    --------
    >>> ages = np.random.default_rng(0).normal(40.0, 12.0, 5000)
    >>> count = lambda edges: {name: np.histogram(ages, at)[0] for name, at in edges.items()}
    >>> constants, spend = settle_units({"age": 0}, count, len(ages), Noise(bytes(32)))
    >>> centre, scale = constants["age"]
    >>> abs(centre - 40) < 2, 10 < scale < 14, spend.rho < 0.1
    (True, True, True)
    """
    if not wanted:
        return {}, Spend(0.0)
    tall = max(rows + float(noise.draw(1, 10.0 * per_unit)[0]), 1.0)
    sd = per_unit * max(_LEAST, _SHARE * tall)
    sd = sd if rho is None else max(sd, per_unit * (_ROUNDS * len(wanted) / rho) ** 0.5)
    bins = int(np.clip(tall / (5.0 * sd), _FEWEST_BINS, _MOST_BINS))
    edges: dict[str, Floats] = {}
    counts: dict[str, Floats] = {}
    spend = Spend(1 / 200)
    finer = dict.fromkeys(wanted, _OCTAVES)
    for _ in range(_ROUNDS):
        exact = count(finer)
        counts |= {name: _clear(exact[name] + noise.draw(exact[name].shape, sd), sd) for name in finer}
        edges |= finer
        spend += Spend(len(finer) * (per_unit / sd) ** 2)
        wide = [name for name in finer if _width(edges[name], counts[name]) < _WIDE or finer[name] is _OCTAVES]
        finer = {name: np.linspace(*_reach(edges[name], counts[name]), bins + 1) for name in wide}
        if not finer:
            break
    return {name: _read(edges[name], counts[name], knots) for name, knots in wanted.items()}, spend


def _clear(noisy: Floats, sd: float) -> Floats:
    """Counts that stand out of their noise; what does not is taken for empty."""
    return np.where(noisy > _CLEAR * sd, noisy, 0.0)


def _reach(edges: Floats, counts: Floats) -> tuple[float, float]:
    """Where the first and the last occupied bin end; everything if none is."""
    held = np.flatnonzero(counts)
    return (float(edges[held[0]]), float(edges[held[-1] + 1])) if len(held) else (-1.0, 1.0)


def _width(edges: Floats, counts: Floats) -> float:
    """The share of the range that is occupied."""
    low, high = _reach(edges, counts)
    return (high - low) / float(edges[-1] - edges[0]) if counts.any() else 1.0


def _read(edges: Floats, counts: Floats, knots: int) -> tuple[float, ...]:
    """Mean and deviation, or knots at quantiles, rounded."""
    if not counts.any():
        return (0.0,) if knots else (0.0, 1.0)
    if knots:
        below = np.concatenate([[0.0], np.cumsum(counts)]) / counts.sum()
        found = np.interp(np.linspace(_TAIL, 1.0 - _TAIL, knots), below, edges)
        return tuple(np.unique(np.round(found, 2 - int(np.floor(np.log10(max(np.ptp(found), 1e-300)))))).tolist())
    middle = np.array([(low + high) / 2.0 for low, high in pairwise(edges)])
    mean = float(counts @ middle / counts.sum())
    deviation = float(counts @ (middle - mean) ** 2 / counts.sum()) ** 0.5
    scale = float(f"{max(deviation, float(edges[1] - edges[0]) / 12**0.5):.2g}")
    return scale * round(mean / scale, 1), scale
