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
        found = [_likelihood(merged, (merged.peers[a], merged.peers[b]), label, in_common) for label in (0, 1)]
        measured = measured or any(one is not None for one in found)
        mean[a, b], error[a, b] = posterior([one for one in found if one is not None])
        mean[b, a], error[b, a] = mean[a, b], error[a, b]
    return Correlation(mean, error, measured)


def posterior(likelihoods: list[Floats]) -> tuple[float, float]:
    """Mean and standard error of a correlation, from log-likelihoods on the grid and what is usual."""
    log = -0.5 * ((_GRID - PRIOR[0]) / PRIOR[1]) ** 2 + np.sum(likelihoods, axis=0)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    mean = float(weight @ _GRID)
    return mean, float(np.sqrt(weight @ (_GRID - mean) ** 2))


def variance_ratio(cells: ScoreCells, values: int) -> tuple[float, float]:
    """How many times as much as a neutral key's a peer's group sums vary, and in how many degrees of freedom.

    With a neutral key their product is distributed about as chi-square. Groups of few rows with
    a few large residuals vary more than normal ones, and the deviation of a residual is itself
    read off a noisy histogram: both count as fewer degrees of freedom, 2 / variance.
    """
    groups = {label: len(cells.groups[label]) for label in (0, 1)}
    return ratio_of([_group_sums(cells, at, group_shares(values, count)) for at, count in groups.items() if count])


def ratio_of(by_label: list[GroupSums]) -> tuple[float, float]:
    """The same of one peer's sums, label by label."""
    squares, freedom, variance = 0.0, 0.0, 0.0
    for one in by_label:
        squares += float(np.sum(one.sums**2 / one.usual))
        freedom += len(one.sums) - 1
        variance += float(np.sum(2.0 + one.rows * max(one.excess, 0.0) / one.usual**2))
        variance += (float(np.sum(one.rows / one.usual)) * one.error) ** 2
    return (squares / freedom, 2.0 * freedom**2 / variance) if freedom else (1.0, 0.0)


def check_neutral(cells: ScoreCells, merged: Merged) -> None:
    """Refuse a key that tells something."""
    if (key := merged.contract.key) is not None:
        check_ratio(key.name, cells.peer, *variance_ratio(cells, key.values))


def check_ratio(key: str, peer: str, ratio: float, freedom: float) -> None:
    """Refuse a key by whose groups sums of a peer vary so many times as much as they should."""
    if ratio > NOT_NEUTRAL and float(chdtrc(freedom, ratio * freedom)) < _CHANCE:
        raise LearnError(
            f"The key '{key}' is not neutral: sums of '{peer}' by group vary {ratio:.2f} times as much as they would "
            f"if it told nothing ({NOT_NEUTRAL:g} times is allowed). Agree on another key, or on none."
        )


def _residuals(cells: ScoreCells, label: int) -> Floats:
    """Residuals of a label at even shares of its rows, clipped as in the sums by group."""
    return np.asarray(np.clip(cells.quantile(label, _SHARES), -CLIP_GROUP, CLIP_GROUP))


def _group_sums(cells: ScoreCells, label: int, shares: Floats) -> GroupSums:
    """Of one peer and label: the sums of its groups, and what of them is to be expected."""
    residual = _residuals(cells, label)
    square = (residual - residual.mean()) ** 2
    middle = np.clip((EDGES[1:] + EDGES[:-1]) / 2.0, -CLIP_GROUP, CLIP_GROUP) - residual.mean()
    total = float(cells.rows[cells.which == label].sum())
    return GroupSums.of(
        cells.groups[label],
        total * shares,
        mean=float(residual.mean()),
        deviation=float(residual.std()),
        noise=cells.levels.groups[label],
        excess=float((square**2).mean() - 3.0 * square.mean() ** 2),
        error=cells.levels.bins * float(np.linalg.norm(middle**2 - square.mean())) / total,
    )


def _likelihood(merged: Merged, pair: tuple[ScoreCells, ScoreCells], label: int, in_common: float) -> Floats | None:
    """Log-likelihood of the correlations on the grid from two peers' sums over the same groups of a label."""
    groups = min(len(cells.groups[label]) for cells in pair)
    if merged.contract.key is None or not groups:
        return None
    shares = group_shares(merged.contract.key.values, groups)
    first, second = (_group_sums(coarser(cells, label, groups), label, shares) for cells in pair)
    return first.likelihood(second, in_common)


@dataclass(frozen=True)
class GroupSums:
    """One peer's sums by group of a label, and what is to be expected of them.

    Parameters
    ----------
    sums, rows
        Of every group: the sum of clipped residuals, less what their mean makes of it, and how many rows it has.
    mean, deviation, excess
        Of a clipped residual; the excess is its fourth cumulant.
    noise
        Standard deviation of the noise in a sum.
    error
        Standard error of the residual's variance that comes of noise.
    """

    sums: Floats
    rows: Floats
    mean: float
    deviation: float
    noise: float
    excess: float
    error: float

    @classmethod
    def of(cls, sums: Floats, rows: Floats, **moments: float) -> GroupSums:
        """Centre the sums; a deviation is taken to be 0.2 at least."""
        centred = sums - sums.sum() / rows.sum() * rows
        return cls(centred, rows, **{**moments, "deviation": max(moments["deviation"], _LEAST)})

    @property
    def usual(self) -> Floats:
        """Variance of centred sums by a neutral key."""
        return np.asarray(self.rows * self.deviation**2 + self.noise**2)

    def likelihood(self, other: GroupSums, in_common: float) -> Floats:
        """Log-likelihood of the correlations on the grid, from another peer's sums over the same groups."""
        own, others = (one.usual + one.rows * one.mean**2 for one in (self, other))
        related = _GRID[:, None] * self.deviation * other.deviation + self.mean * other.mean
        both = in_common * np.sqrt(self.rows * other.rows) * related
        det = np.maximum(own * others - both**2, _TINY)
        squares = others * self.sums**2 - 2.0 * both * self.sums * other.sums + own * other.sums**2
        return np.asarray(-0.5 * (np.log(det) + squares / det).sum(axis=1))


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
