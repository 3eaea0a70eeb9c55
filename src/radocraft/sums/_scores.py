"""One peer's scores by cell: what is summed, and what follows from the sums.

A score is the log-odds that a peer's own model gives a row, out of fold. In units of
`UNIT` around the log-odds of the label's base rate, each cell holds the number of its
rows, the sum of their scores and the sum of how far they are from the cell's mean;
each label has one histogram of residuals (score less the cell's mean, over the cell's
deviation), one of the scores themselves, which says how good they are by themselves,
and sums of residuals by groups of a key that both peers have.

Means and deviations are read off noisy sums, drawn towards the label's by how much of
a row's worth of noise is in them; peer and learner read them alike. So a residual at
the peer is measured from numbers that leave, and one row moves each table by at most
its clip, whatever the other rows are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from radocraft.arrays import Floats, Ints, Numbers

TOP = 6.0
"""Scores are cut at this many log-odds on both sides."""
UNIT = 2.0
"""Unit of summed scores, in log-odds."""
CLIP_SUM, CLIP_SPREAD, CLIP_GROUP = 2.5, 2.0, 1.5
"""Clips of a score and of an absolute residual, both in units, and of a residual in deviations."""
_USUAL = 4.0
_POSITIVE = np.array([0.0, 0.25, 0.5, 0.8, 1.2, 1.6, 2.0, 2.5, _USUAL, 10.0, 40.0])
EDGES = np.concatenate([-_POSITIVE[:0:-1], _POSITIVE])
"""Edges of the bins of residuals; the wide ones are for rows that a model which is nearly always right gets wrong."""
BINS = len(EDGES) - 1
_MARGIN = np.array([0.0, 0.2, 0.45, 0.75, 1.1, 1.5, 2.0, 2.7, 3.6, 5.0, 4.0 * TOP])
_MARGIN_EDGES = np.concatenate([-_MARGIN[:0:-1], _MARGIN])
_FAR = (EDGES[:-1] >= _USUAL) | (EDGES[1:] <= -_USUAL)
_PRIOR_ROWS, _PRIOR_SPREADS = 3.0, 10.0
_LEAST_SPREAD, _TYPICAL, _NORMAL = 0.03, 0.5, 1.25  # a normal deviation is 1.25 mean absolute residuals
_LEAST_NOISE = 0.1
_FLOOR, _CLEAR, _TRACE = 0.3, 3.0, 1e-3
_FEWEST_GROUPS, _ROWS_PER_GROUP = 4, 20


def _none() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True)
class ScoreLevels:
    """Standard deviations of the noise in each number; all 0 where there is none.

    Parameters
    ----------
    rows, sums, spreads, bins
        In each count of a signature's rows, sum of scores, sum of absolute residuals, count of a bin.
    groups, margins
        In each group's sum of residuals, and in each count of a bin of scores, by label code.
    """

    rows: float = 0.0
    sums: float = 0.0
    spreads: float = 0.0
    bins: float = 0.0
    groups: tuple[float, ...] = ()
    margins: tuple[float, ...] = (0.0, 0.0)


@dataclass(frozen=True)
class ScoreCells:
    """What leaves a peer of its scores, for a label of two values.

    Parameters
    ----------
    peer
        Whose they are.
    codes, labels, rows
        Per cell: codes of the shared features (`ROLLED` for any), the label's code, rows; noisy, at least 1.
    sums, spreads
        Per cell: sums of clipped scores and of clipped absolute residuals, in units.
    counts
        Per label code, in rising order: rows by agreed signature, in the order of the contract's codes.
    histogram
        Per label code: rows by bin of residuals.
    margins
        Per label code: rows by bin of the score itself, between `margin_edges`.
    groups
        Per label code: sums of clipped residuals by group of the key; empty without a key.
    levels
        How much noise is in all of these.

    The gate fills sums, spreads, histogram, groups and margins one after the other, each measured by those before.
    """

    peer: str
    codes: Ints
    labels: Ints
    rows: Floats
    sums: Floats = field(default_factory=_none)
    spreads: Floats = field(default_factory=_none)
    counts: Floats = field(default_factory=_none)
    histogram: Floats = field(default_factory=_none)
    margins: Floats = field(default_factory=_none)
    groups: tuple[Floats, ...] = ()
    levels: ScoreLevels = ScoreLevels()

    @cached_property
    def which(self) -> Ints:
        """0 or 1 for each cell: the place of its label among the two."""
        return np.asarray(self.labels > self.labels.min()).astype(np.int64)

    @property
    def total(self) -> int:
        """Rows in all."""
        return round(float(self.rows.sum()))

    @cached_property
    def centre(self) -> float:
        """Log-odds of the base rate: all that scores are centred by."""
        return _base_log_odds(np.bincount(self.which, self.rows, 2))

    @cached_property
    def margin_edges(self) -> Floats:
        """Edges of the bins in which scores themselves are counted: narrow about the centre."""
        return np.asarray(self.centre + _MARGIN_EDGES)

    @cached_property
    def means(self) -> Floats:
        """Mean score of each cell, drawn to its label's."""
        return _cell_means(self.which, self.rows, self.sums, self.centre, self.levels.sums)

    @cached_property
    def deviations(self) -> Floats:
        """Deviation of scores inside each cell, drawn to its label's."""
        return _cell_deviations(self.which, self.rows, self.spreads, self.levels.spreads)

    def quantile(self, label: int, share: Floats) -> Floats:
        """Residuals below which these shares of a label's rows lie, even inside bins."""
        heights = _clear_bins(self.histogram[label], self.levels.bins)
        below = np.concatenate([[0.0], np.cumsum(heights)]) / heights.sum()
        return np.asarray(np.interp(share, below, EDGES))


def _clear_bins(rows: Floats, noise: float) -> Floats:
    """A histogram as it may be without noise: no bin below a share of it, and none far out that may be noise alone.

    Examples
    --------
    >>> _clear_bins(np.where(np.arange(BINS) == 10, 500.0, 20.0), 10.0)[[0, 1, 9, 10]]
    array([1.e-03, 1.e-03, 2.e+01, 5.e+02])
    """
    out = np.where(_FAR & (rows < _CLEAR * noise), 0.0, rows)
    return np.maximum(out, np.where(_FAR, _TRACE, np.maximum(_FLOOR * noise, _TRACE)))


def _base_log_odds(rows: Numbers) -> float:
    """Log-odds of the second label by the rows of both."""
    return float(np.log((max(rows[1], 0.0) + 1.0) / (max(rows[0], 0.0) + 1.0)))


def _cell_means(which: Ints, rows: Floats, sums: Floats, centre: float, noise: float) -> Floats:
    """``c + w (sum / n - c)`` with c the label's mean and ``w = n / (n + 3 + (s / .5)^2 / n)``, as log-odds."""
    label = _label_mean(which, rows, sums)
    weight = rows / (rows + _PRIOR_ROWS + (noise / _TYPICAL) ** 2 / rows)
    return np.asarray(centre + UNIT * (label + weight * (sums / rows - label)))


def _cell_deviations(which: Ints, rows: Floats, spreads: Floats, noise: float) -> Floats:
    """1.25 mean absolute residuals, drawn to the label's v, within v / 2 and 2 v, as log-odds."""
    label = np.maximum(_label_mean(which, rows, spreads), _LEAST_SPREAD)
    weight = rows / (rows + _PRIOR_SPREADS + (noise / np.maximum(label, _LEAST_NOISE)) ** 2 / rows)
    out = np.clip(label + weight * (spreads / rows - label), label / 2.0, 2.0 * label)
    return np.asarray(UNIT * _NORMAL * out)


def _label_mean(which: Ints, rows: Floats, sums: Floats) -> Floats:
    """Of every cell the mean over all rows of its label."""
    mean = np.bincount(which, sums, 2) / np.maximum(np.bincount(which, rows, 2), 1.0)
    return np.asarray(mean[which])


def count_groups(rows: float, values: int) -> int:
    """Into how many groups a key's values go for so many rows of a label; 0 where they are too few.

    All values apart where each has 20 rows, else the largest power of two whose groups
    have as many: then a group of one peer is several of another's, whatever their rows.

    Examples
    --------
    >>> [count_groups(rows, 365) for rows in (10_000, 3_000, 100, 50)]
    [365, 128, 4, 0]
    """
    most = int(max(rows, 0.0) // _ROWS_PER_GROUP)
    if most >= values:
        return values
    groups = 2 ** (most.bit_length() - 1) if most else 0
    return groups if groups >= _FEWEST_GROUPS else 0
