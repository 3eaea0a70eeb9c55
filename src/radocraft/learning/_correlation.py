"""How peers' scores are related inside label and signature, measured from sums by group of a neutral key.

In a group of m rows the sums x_a, x_b of two peers' residuals over the same people are
normal with

    var x_a = m (s_a^2 + u_a^2) + tau_a^2,    cov = q m (r s_a s_b + u_a u_b),

u and s the mean and deviation of a clipped residual, tau the noise, q the share of
people both hold and r the correlation, whose prior is what tables are like. The noise
stands in the likelihood, so the standard error is sound with any of it.

A key that tells something shows: then residuals of one group go the same way, and
their sums vary more than rows and noise explain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtrc

from radocraft.arrays import Floats
from radocraft.errors import LearnError
from radocraft.learning._virtual import Merged
from radocraft.sums import CLIP_GROUP, EDGES, ScoreCells

PRIOR = (0.3, 0.25)
"""Mean and deviation of the correlation of two peers' scores before anything is measured."""
NOT_NEUTRAL = 1.1
"""A key is refused if group sums vary this many times as much as they should, and chance does not explain it."""
_GRID = np.linspace(-0.6, 0.97, 158)
_SHARES = (np.arange(400) + 0.5) / 400
_LEAST, _CHANCE = 0.2, 1e-5
_TINY = 1e-9


@dataclass(frozen=True)
class Correlation:
    """Correlation of every two peers' scores inside label and signature, its standard error, and how it is known."""

    mean: Floats
    error: Floats
    measured: bool

    def moved(self, errors: float | Floats) -> Floats:
        """The matrix, so many standard errors off."""
        off = 1.0 - np.eye(len(self.mean))
        return np.asarray(np.clip(self.mean + errors * self.error, -0.9, 0.97) * off + np.eye(len(self.mean)))


def correlate(merged: Merged, in_common: float = 1.0) -> Correlation:
    """Correlation of every two peers' scores: from the key's groups where there are some, else what is usual."""
    count, measured = len(merged.peers), False
    mean, error = np.eye(count), np.zeros((count, count))
    for cells in merged.peers:
        check_neutral(cells, merged)
    for a, b in zip(*np.tril_indices(count, -1), strict=True):
        log = -0.5 * ((_GRID - PRIOR[0]) / PRIOR[1]) ** 2
        for label in (0, 1):
            likelihood = _likelihood(merged, (merged.peers[a], merged.peers[b]), label, in_common)
            measured = measured or likelihood is not None
            log = log if likelihood is None else log + likelihood
        weight = np.exp(log - log.max())
        weight /= weight.sum()
        mean[a, b] = mean[b, a] = weight @ _GRID
        error[a, b] = error[b, a] = np.sqrt(weight @ (_GRID - mean[a, b]) ** 2)
    return Correlation(mean, error, measured)


def variance_ratio(cells: ScoreCells, values: int) -> tuple[float, float]:
    """How many times as much as a neutral key's a peer's group sums vary, and in how many degrees of freedom.

    With a neutral key their product is distributed about as chi-square. Groups of few rows with
    a few large residuals vary more than normal ones, and the deviation of a residual is itself
    read off a noisy histogram: both count as fewer degrees of freedom, 2 / variance.
    """
    squares, freedom, variance = 0.0, 0.0, 0.0
    for label in (0, 1):
        if groups := len(cells.groups[label]):
            sums, rows, _, spread = _moments(cells, label, group_shares(values, groups))
            usual = rows * spread**2 + cells.levels.groups[label] ** 2
            squares += float(np.sum(sums**2 / usual))
            freedom += groups - 1
            excess, error = _shape(cells, label)
            variance += float(np.sum(2.0 + rows * max(excess, 0.0) / usual**2))
            variance += (float(np.sum(rows / usual)) * error) ** 2
    return (squares / freedom, 2.0 * freedom**2 / variance) if freedom else (1.0, 0.0)


def _shape(cells: ScoreCells, label: int) -> tuple[float, float]:
    """Fourth cumulant of a clipped residual, and the standard error of its variance that comes of noise."""
    residual = _residuals(cells, label)
    square = (residual - residual.mean()) ** 2
    middle = np.clip((EDGES[1:] + EDGES[:-1]) / 2.0, -CLIP_GROUP, CLIP_GROUP) - residual.mean()
    error = cells.levels.bins * float(np.linalg.norm(middle**2 - square.mean()))
    return float((square**2).mean() - 3.0 * square.mean() ** 2), error / float(cells.rows[cells.which == label].sum())


def check_neutral(cells: ScoreCells, merged: Merged) -> None:
    """Refuse a key that tells something."""
    if (key := merged.contract.key) is None:
        return
    ratio, freedom = variance_ratio(cells, key.values)
    if ratio > NOT_NEUTRAL and float(chdtrc(freedom, ratio * freedom)) < _CHANCE:
        raise LearnError(
            f"The key '{key.name}' is not neutral: sums of '{cells.peer}' by group vary {ratio:.2f} times as much as "
            f"they would if it told nothing ({NOT_NEUTRAL:g} times is allowed). Agree on another key, or on none."
        )


def _residuals(cells: ScoreCells, label: int) -> Floats:
    """Residuals of a label at even shares of its rows, clipped as in the sums by group."""
    return np.asarray(np.clip(cells.quantile(label, _SHARES), -CLIP_GROUP, CLIP_GROUP))


def _moments(cells: ScoreCells, label: int, shares: Floats) -> tuple[Floats, Floats, float, float]:
    """Centred sums by group, expected rows of the groups; mean and deviation of a clipped residual."""
    residual = _residuals(cells, label)
    rows = float(cells.rows[cells.which == label].sum()) * shares
    sums = cells.groups[label]
    centred = sums - sums.sum() / rows.sum() * rows
    return centred, rows, float(residual.mean()), max(float(residual.std()), _LEAST)


def _likelihood(merged: Merged, pair: tuple[ScoreCells, ScoreCells], label: int, in_common: float) -> Floats | None:
    """Log-likelihood of the correlations on the grid from two peers' sums over the same groups of a label."""
    groups = min(len(cells.groups[label]) for cells in pair)
    if merged.contract.key is None or not groups:
        return None
    values = merged.contract.key.values
    shares, same = group_shares(values, groups), [coarser(cells, label, groups) for cells in pair]
    (xa, ma, ua, sa), (xb, mb, ub, sb) = (_moments(cells, label, shares) for cells in same)
    noise = [cells.levels.groups[label] ** 2 for cells in same]
    va, vb = ma * (sa**2 + ua**2) + noise[0], mb * (sb**2 + ub**2) + noise[1]
    cov = in_common * np.sqrt(ma * mb) * (_GRID[:, None] * sa * sb + ua * ub)
    det = np.maximum(va * vb - cov**2, _TINY)
    return np.asarray(-0.5 * (np.log(det) + (vb * xa**2 - 2.0 * cov * xa * xb + va * xb**2) / det).sum(axis=1))


def coarser(cells: ScoreCells, label: int, groups: int) -> ScoreCells:
    """The same with a label's groups added up to so many: group g of the finer ones goes to g modulo their number."""
    sums = cells.groups[label]
    if len(sums) == groups:
        return cells
    added = np.bincount(np.arange(len(sums)) % groups, sums, groups).astype(np.float64)
    noise = cells.levels.groups[label] * (len(sums) / groups) ** 0.5
    levels = replace(cells.levels, groups=(*cells.levels.groups[:label], noise, *cells.levels.groups[label + 1 :]))
    return replace(cells, groups=(*cells.groups[:label], added, *cells.groups[label + 1 :]), levels=levels)


def group_shares(values: int, groups: int) -> Floats:
    """Share of a key's values in each group (value modulo groups)."""
    return np.asarray(np.bincount(np.arange(values) % groups, minlength=groups) / values)
