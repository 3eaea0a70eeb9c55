"""Centres, scales and knots that the contract leaves to the data, from noisy counts alone.

A sample's values are counted in bins that nobody chose by looking: first by powers of
two, then in even bins over the range where noisy counts stand out, and again while
all that stands out is in few of them. All counts carry noise, so what is read off them is
public; what it costs is part of the release's account. One row moves at most two of a
column's counts by 1, its own and, where the sample is cut off at its size, that of the
row which takes its place.

Of a column with one value in nearly all rows the rest may not stand out of the noise. Its scale
is then such that a difference of 1, or as large as that value, is just not clipped (`bounds`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from radocraft.arrays import Floats, Ints, Truths
from radocraft.contract import Constants
from radocraft.gate._account import Spend
from radocraft.gate._noise import Noise

Count = Callable[[dict[str, Floats]], dict[str, Ints]]
"""Counts of a sample's values between rising edges, by column."""

_OCTAVES = np.concatenate([-(2.0 ** np.arange(60, -31, -1)), 2.0 ** np.arange(-30, 61)])
_ROUNDS = 8
_ZERO = len(_OCTAVES) // 2 - 1
_BINS, _FEW = 16, 4
_TOTAL = 10.0
_LEAST, _SHARE, _ROOT = 3.0, 1 / 300, 0.5
_CHANCE = 1e-6
_WINDOWS = (1, 2, 4, 8)
_LOST = 4.0
_CLIPPED = 4.0
_TURNS = 30
_TAIL = 0.01
_EVEN = 1.0 / 12.0
_SMALLEST = 1e-300


def estimate_units(
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
    >>> constants, spend = estimate_units({"age": 0}, count, len(ages), Noise(bytes(32)))
    >>> centre, scale = constants["age"]
    >>> abs(centre - 40) < 2, 10 < scale < 14, spend.rho < 0.1
    (True, True, True)
    """
    found, spend = histograms(wanted, count, rows, noise, per_unit=per_unit, rho=rho)
    return {name: found[name].knots(knots) if knots else found[name].unit() for name, knots in wanted.items()}, spend


def histograms(
    names: Iterable[str], count: Count, rows: int, noise: Noise, *, per_unit: int = 1, rho: float | None = None
) -> tuple[dict[str, Histogram], Spend]:
    """Noisy counts of some columns' values, in bins fine enough to see how they spread, and what they cost.

    Parameters are as for `estimate_units`.
    """
    finer = dict.fromkeys(names, _OCTAVES)
    if not finer:
        return {}, Spend(0.0)
    tall = max(rows + float(noise.draw(1, _TOTAL * per_unit)[0]), 1.0)
    sd = per_unit * max(_LEAST, min(_SHARE * tall, _ROOT * tall**0.5))
    sd = sd if rho is None else max(sd, per_unit * (_ROUNDS * len(finer) / rho) ** 0.5)
    spend, found = Spend(1.0 / _TOTAL**2), dict[str, Histogram]()
    for _ in range(_ROUNDS):
        exact = count(finer)
        spend += Spend(len(finer) * (per_unit / sd) ** 2)
        found |= {
            name: Histogram(edges, exact[name] + noise.draw(exact[name].shape, sd), sd) for name, edges in finer.items()
        }
        finer = {name: found[name].finer() for name in finer if found[name].wide}
        if not finer:
            break
    return found, spend


@dataclass(frozen=True)
class Histogram:
    """Noisy counts of a column's values between rising edges."""

    edges: Floats
    counts: Floats
    sd: float

    @cached_property
    def clear(self) -> Truths:
        """Bins that stand out of the noise, alone or, where counts are small, with some beside them."""
        least = -float(ndtri(_CHANCE / len(self.counts))) * self.sd
        out = np.zeros(len(self.counts), dtype=bool)
        for size in _WINDOWS:
            window = np.ones(size)
            beyond = np.convolve(self.counts, window, "valid") - least * size**0.5
            beyond[np.convolve(out, window, "valid") > 0.5] = 0.0
            while (at := int(beyond.argmax()), beyond[at] > 0.0)[1]:
                out[at : at + size] = True
                beyond[max(at - size + 1, 0) : at + size] = 0.0
        return out

    @cached_property
    def occupied(self) -> tuple[int, int]:
        """From which bin up to which some stand out; if none does all, or of powers of two the largest."""
        clear = np.flatnonzero(self.clear)
        if len(clear):
            return int(clear[0]), int(clear[-1]) + 1
        return (at := int(self.counts.argmax()), at + 1) if self.coarse else (0, len(self.counts))

    @property
    def coarse(self) -> bool:
        """Whether bins are powers of two."""
        return len(self.edges) == len(_OCTAVES)

    def finer(self) -> Floats:
        """Edges of even bins over what stands out."""
        first, last = self.occupied
        if not self.coarse:
            first, last = max(first - 1, 0), min(last + 1, len(self.counts))
        return np.linspace(self.edges[first], self.edges[last], _BINS + 1)

    @property
    def wide(self) -> bool:
        """Whether bins are too wide to tell how values spread, and nothing is lost by looking closer."""
        first, last = self.occupied
        if self.coarse:
            return (first, last) != (_ZERO, _ZERO + 1)
        outside = np.concatenate([self.counts[: max(first - 1, 0)], self.counts[last + 1 :]])
        lost = outside.sum() > _LOST * self.sd * max(len(outside), 1) ** 0.5
        return bool(last - first < _FEW and not lost)

    @property
    def constant(self) -> bool:
        """Whether all that stands out is one value, however closely one looks."""
        return self.coarse or self.wide

    def unit(self) -> tuple[float, float]:
        """Centre and scale, rounded."""
        middle, (first, last) = (self.edges[1:] + self.edges[:-1]) / 2.0, self.occupied
        if self.constant:
            value = float(middle[first:last].mean())
            scale = max(abs(value), 1.0) / _CLIPPED
        else:
            counts, inside = self.counts[first:last], middle[first:last]
            value = float(np.clip(counts @ inside / max(counts.sum(), self.sd), inside[0], inside[-1]))
            scale = self._deviation(np.abs(middle - value))
        scale = float(f"{scale:.2g}")
        return scale * round(value / scale, 1), scale

    def _deviation(self, away: Floats) -> float:
        """Standard deviation; bins that do not stand out count as no farther than values are clipped."""
        total, width = max(self.counts.sum(), self.sd), float(self.edges[1] - self.edges[0])
        square = float(np.max(away)) ** 2
        for _ in range(_TURNS):
            far = np.where(self.clear, away**2, np.minimum(away**2, _CLIPPED**2 * square))
            square = max(float(self.counts @ far) / total, _EVEN * width**2)
        return float(square**0.5)

    def knots(self, count: int) -> tuple[float, ...]:
        """So many quantiles, rounded; fewer where they are the same."""
        quantiles = self.quantiles(np.linspace(_TAIL, 1.0 - _TAIL, count))
        digits = 2 - int(np.floor(np.log10(max(float(np.ptp(quantiles)), _SMALLEST))))
        return tuple(np.unique(np.round(quantiles, digits)).tolist())

    def quantiles(self, levels: Floats) -> Floats:
        """Values below which such shares of the rows lie."""
        below = np.concatenate([[0.0], np.cumsum(self.counts)]) / max(self.counts.sum(), self.sd)
        rising = np.maximum.accumulate(np.clip(below, 0.0, 1.0))
        return np.asarray(np.interp(levels, rising, self.edges), dtype=np.float64)
