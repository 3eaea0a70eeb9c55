"""Centres, scales and knots that the contract leaves to the data, from noisy counts alone.

A sample's values are counted in bins that nobody chose by looking: first by powers of
two, then in even bins over the range where noisy counts stand out, and again while
that is a small part of the range. All counts carry noise, so what is read off them is
public; what it costs is part of the release's account. One row moves at most two of a
column's counts by 1, its own and, where the sample is cut off at its size, that of the
row which takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from radocraft.arrays import Floats, Ints
from radocraft.encoding import Constants
from radocraft.gate.account import Spend
from radocraft.gate.noise import Noise

Count = Callable[[dict[str, Floats]], dict[str, Ints]]
"""Counts of a sample's values between rising edges, by column."""

_OCTAVES = np.concatenate([-(2.0 ** np.arange(60, -31, -1)), 2.0 ** np.arange(-30, 61)])
_ROUNDS = 5
_TOTAL = 10.0
_LEAST, _SHARE = 3.0, 1 / 300
_WIDE = 0.25
_MOST_BINS, _FEWEST_BINS = 64, 10
_TAIL = 0.01
_EVEN = 1.0 / 12.0
_SMALLEST = 1e-300


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
    found, spend = histograms(wanted, count, rows, noise, per_unit=per_unit, rho=rho)
    return {name: found[name].knots(knots) if knots else found[name].unit() for name, knots in wanted.items()}, spend


def histograms(
    names: Iterable[str], count: Count, rows: int, noise: Noise, *, per_unit: int = 1, rho: float | None = None
) -> tuple[dict[str, Histogram], Spend]:
    """Noisy counts of some columns' values, in bins fine enough to see how they spread, and what they cost.

    Parameters are as for `settle_units`.
    """
    finer = dict.fromkeys(names, _OCTAVES)
    if not finer:
        return {}, Spend(0.0)
    tall = max(rows + float(noise.draw(1, _TOTAL * per_unit)[0]), 1.0)
    sd = per_unit * max(_LEAST, _SHARE * tall)
    sd = sd if rho is None else max(sd, per_unit * (_ROUNDS * len(finer) / rho) ** 0.5)
    bins = int(np.clip(tall / (5.0 * sd), _FEWEST_BINS, _MOST_BINS))
    spend, found = Spend(1.0 / _TOTAL**2), dict[str, Histogram]()
    for _ in range(_ROUNDS):
        exact = count(finer)
        spend += Spend(len(finer) * (per_unit / sd) ** 2)
        found |= {
            name: Histogram(edges, exact[name] + noise.draw(exact[name].shape, sd), sd) for name, edges in finer.items()
        }
        finer = {name: np.linspace(*found[name].reach, bins + 1) for name in finer if found[name].wide}
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
    def occupied(self) -> tuple[int, int]:
        """From which bin up to which some count stands out of the noise; the largest one if none does."""
        clear = np.flatnonzero(self.counts > self.sd * (1.0 + (2.0 * np.log(2.0 * len(self.counts))) ** 0.5))
        return (int(clear[0]), int(clear[-1]) + 1) if len(clear) else (at := int(self.counts.argmax()), at + 1)

    @property
    def reach(self) -> tuple[float, float]:
        """Where that is."""
        first, last = self.occupied
        return float(self.edges[first]), float(self.edges[last])

    @property
    def wide(self) -> bool:
        """Whether bins are too wide to tell how values spread: of powers of two always."""
        first, last = self.occupied
        return len(self.edges) == len(_OCTAVES) or last - first < _WIDE * len(self.counts)

    def unit(self) -> tuple[float, float]:
        """Centre and scale, rounded."""
        edges, counts = self._inside()
        middle = (edges[1:] + edges[:-1]) / 2.0
        mean = float(counts @ middle / counts.sum())
        variance = float(counts @ (middle - mean) ** 2 / counts.sum())
        scale = float(f"{max(variance, _EVEN * float(edges[1] - edges[0]) ** 2) ** 0.5:.2g}")
        return scale * round(mean / scale, 1), scale

    def knots(self, count: int) -> tuple[float, ...]:
        """So many quantiles, rounded; fewer where they are the same."""
        quantiles = self.quantiles(np.linspace(_TAIL, 1.0 - _TAIL, count))
        digits = 2 - int(np.floor(np.log10(max(float(np.ptp(quantiles)), _SMALLEST))))
        return tuple(np.unique(np.round(quantiles, digits)).tolist())

    def quantiles(self, levels: Floats) -> Floats:
        """Values below which such shares of the rows lie."""
        edges, counts = self._inside()
        below = np.concatenate([[0.0], np.cumsum(counts)]) / counts.sum()
        return np.asarray(np.interp(levels, below, edges), dtype=np.float64)

    def _inside(self) -> tuple[Floats, Floats]:
        """Edges and counts of the bins that are occupied, and of one more on each side."""
        first, last = self.occupied
        some = slice(max(first - 1, 0), last + 1)
        counts = np.maximum(self.counts[some], 0.0)
        return self.edges[some.start : some.start + len(counts) + 1], counts if counts.any() else np.ones_like(counts)
