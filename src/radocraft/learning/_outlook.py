"""What to expect of a model over scores, from what left alone, and how sure that is.

Heads are tried on fresh rows that could be. What they come to may be off for four reasons, each with a standard error:

relation
    Each correlation of two peers' scores is known with a standard error: the rows are drawn anew with it off by that
    much, either way. Without a key nothing is measured: the scores may be unrelated, or as related as can be.
sample
    So many rows have such losses by chance (of an area under the ROC curve: DeLong's variance).
noise
    With fresh noise on all that left, what is told moves so much.
shape
    People are not quite spread as these rows are. How far off that is was measured on tables (docs/calibration.md).

A peer's own score is a head too, and is tried on the same rows; so differences are surer than what they are between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import hypot, inf
from typing import TypeAlias

import numpy as np
from scipy.linalg import hadamard
from scipy.special import expit, xlogy

from radocraft.arrays import Floats, Ints
from radocraft.learning._correlation import Correlation
from radocraft.learning._head import Head
from radocraft.learning._metrics import auc, ranks
from radocraft.learning._quality_curves import reliability, roc
from radocraft.learning._virtual import Merged, VirtualRows, virtual_rows
from radocraft.model import ExpectedQuality, HeadKind, Interval, ScoreOutlook
from radocraft.sums import ScoreCells

EXPECT = 1
"""Seed of the rows that show what to expect; heads are fitted on others."""
FEWEST_ROWS = 300
"""Of fewer rows nothing is told."""
SHAPE = (0.010, 0.007, 0.018)
"""Standard errors of error, AUC and log loss that come of the rows' shape: `benchmarks/calibration.py --design`."""
Shapes: TypeAlias = tuple[float, float, float]
Limits: TypeAlias = tuple[tuple[float, float], ...]
_NO_SHAPE, _ANY = (0.0, 0.0, 0.0), ((-inf, inf),) * 3
_CLOSE = 1e-6
_MOST_RELATED = 0.97
_PAIRS, _DRAWS = 16, 8


@dataclass(frozen=True)
class Quality:
    """How good probabilities are: error rate, area under the ROC curve, log loss."""

    error: float
    auc: float
    log_loss: float

    @classmethod
    def of(cls, log_odds: Floats, labels: Ints) -> Quality:
        """Of these log-odds against labels 0 and 1."""
        loss = _losses(log_odds, labels).mean()
        return cls(float(np.mean((log_odds > 0) != labels)), auc(log_odds, labels), float(loss))


def _losses(log_odds: Floats, labels: Ints) -> Floats:
    share = np.clip(expit(log_odds), _CLOSE, 1.0 - _CLOSE)
    return np.asarray(-np.where(labels > 0, np.log(share), np.log1p(-share)))


def influences(log_odds: Floats, labels: Ints) -> Floats:
    """What each row adds to error, AUC and log loss: their means over rows are these, and their variances theirs.

    Examples
    --------
    >>> each = influences(np.array([2.0, 1.0, -1.0, -2.0]), np.array([1, 0, 1, 0]))
    >>> each.mean(axis=0).round(3)
    array([0.5 , 0.75, 0.72])
    """
    positive = labels > 0
    among, share = ranks(log_odds), float(positive.mean())
    ours, theirs = int(positive.sum()), int((~positive).sum())
    above = np.empty(len(labels))
    above[positive] = (among[positive] - ranks(log_odds[positive])) / theirs
    above[~positive] = 1.0 - (among[~positive] - ranks(log_odds[~positive])) / ours
    area = float(above[positive].mean())
    placed = area + (above - area) / np.where(positive, share, 1.0 - share)
    return np.column_stack([(log_odds > 0) != positive, placed, _losses(log_odds, labels)])


def own_head(place: int) -> Head:
    """One peer's score, at its word."""
    return Head((place,), 0.0, np.array([1.0, 0.0]))


@dataclass(frozen=True)
class Trials:
    """What heads come to on rows that could be. A contrast is a weight for each head: what they are tried for."""

    merged: Merged
    correlation: Correlation
    heads: tuple[Head, ...]

    def reached(self, correlation: Floats, merged: Merged | None = None) -> Floats:
        """Error, AUC and log loss of every head, (heads, 3)."""
        rows = virtual_rows(merged or self.merged, correlation, EXPECT)
        return np.asarray(self._each(rows).mean(axis=1))

    def _each(self, rows: VirtualRows) -> Floats:
        return np.array([influences(head.log_odds(rows.features), rows.labels) for head in self.heads])

    @cached_property
    def rows(self) -> VirtualRows:
        """Rows at the correlations there are."""
        return virtual_rows(self.merged, self.correlation.mean, EXPECT)

    @cached_property
    def _rows(self) -> Floats:
        return self._each(self.rows)

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        """Unrelated, and as related as can be."""
        same = np.full_like(self.correlation.mean, _MOST_RELATED)
        np.fill_diagonal(same, 1.0)
        return self.reached(np.eye(len(same))), self.reached(same)

    @cached_property
    def _here(self) -> Floats:
        told = self._rows.mean(axis=1) if self.correlation.measured else np.mean(self._ends, axis=0)
        return np.asarray(told)

    @cached_property
    def _moved(self) -> Floats:
        """Half of what two standard errors of the correlations make, in directions that add up to all of them."""
        if not self.correlation.measured:
            return np.array([(self._ends[1] - self._ends[0]) / 4.0])
        sides = [
            [self.reached(self.correlation.moved(side * signs)) for side in (1, -1)] for signs in self._directions()
        ]
        return np.array([(high - low) / 2.0 for high, low in sides])

    def _directions(self) -> Iterator[Floats]:
        """Signs for every pair, at right angles: squares over all of them add up as over single pairs."""
        count = len(self.merged.peers)
        low = np.tril_indices(count, -1)
        pairs = len(low[0])
        size = 2 ** max(pairs - 1, 0).bit_length()
        every = hadamard(size)[:, :pairs] if size <= _PAIRS else _random_signs(pairs)
        for signs in every if pairs else []:
            matrix = np.zeros((count, count))
            matrix[low] = signs
            yield matrix + matrix.T

    @cached_property
    def _blurred(self) -> Floats:
        """With fresh noise, as often as draws are made."""
        rng = np.random.default_rng(EXPECT)
        draws = []
        for _ in range(_DRAWS if any(cells.levels.sums for cells in self.merged.peers) else 1):
            blurred = replace(self.merged, peers=tuple(_with_noise(cells, rng) for cells in self.merged.peers))
            draws.append(self.reached(self.correlation.mean, blurred))
        return np.array(draws)

    def parts(self, contrast: Floats) -> Iterator[dict[str, float]]:
        """Standard errors of a contrast of error, AUC and log loss, by what they come of, but for the shape."""
        relation = np.sqrt(np.mean(np.square(np.einsum("h,dhm->dm", contrast, self._moved)), axis=0))
        noise = np.einsum("h,dhm->dm", contrast, self._blurred).std(axis=0)
        sample = np.einsum("h,hrm->rm", contrast, self._rows).std(axis=0) / self.merged.total**0.5
        for at in range(3):
            yield {"relation": float(relation[at]), "sample": float(sample[at]), "noise": float(noise[at])}

    def value(self, contrast: Floats) -> Floats:
        """A contrast of error, AUC and log loss."""
        return np.asarray(contrast @ self._here)


def _random_signs(pairs: int) -> Floats:
    return np.random.default_rng(EXPECT).choice([-1.0, 1.0], (_PAIRS, pairs))


def _with_noise(cells: ScoreCells, rng: np.random.Generator) -> ScoreCells:
    """As the same peer's numbers might have left, if these were the true ones."""
    levels = cells.levels
    margins = [
        counts + noise * rng.normal(size=counts.shape)
        for counts, noise in zip(cells.margins, levels.margins, strict=True)
    ]
    return replace(
        cells,
        sums=cells.sums + levels.sums * rng.normal(size=cells.sums.shape),
        spreads=cells.spreads + levels.spreads * rng.normal(size=cells.spreads.shape),
        histogram=cells.histogram + levels.bins * rng.normal(size=cells.histogram.shape),
        margins=np.array(margins),
    )


@dataclass(frozen=True)
class Preferred:
    """A head that is expected to do better than fitted weights, and by how much log loss."""

    kind: HeadKind
    head: Head
    gain: float
    error: float

    def note(self, names: tuple[str, ...]) -> str:
        """Why it was taken."""
        what = "the mean of the peers' log-odds" if self.kind == "average" else f"{names[self.head.places[0]]} alone"
        return (
            f"the model is {what}: its expected log loss is {self.gain:.3f} +- {self.error:.3f} below that of fitted "
            "weights; the method 'scores' fits them all the same"
        )


def preferred(merged: Merged, correlation: Correlation, fitted: Head, average: Head) -> Preferred | None:
    """What is expected to do better than fitted weights, by more than the error of that; None if nothing is."""
    owns = [own_head(place) for place in range(len(merged.peers))]
    trials, best = Trials(merged, correlation, (fitted, average, *owns)), None
    for at, head in enumerate((average, *owns), start=1):
        contrast = np.zeros(len(trials.heads))
        contrast[[0, at]] = 1.0, -1.0
        gain = float(trials.value(contrast)[2])
        error = hypot(*[*trials.parts(contrast)][2].values(), SHAPE[2])
        if gain > max(error, 0.0 if best is None else best.gain):
            best = Preferred("average" if at == 1 else "best peer", head, gain, error)
    return best


def outlook_of(merged: Merged, heads: Sequence[Head], correlation: Correlation) -> ScoreOutlook | None:
    """What to expect of the last of the heads, and of those that lack one of its peers; nothing of few rows."""
    if merged.total < FEWEST_ROWS:
        return None
    whole, count = heads[-1], len(merged.peers)
    lacking = [head for head in heads if len(head.places) == count - 1] if count > 1 else []
    trials = Trials(merged, correlation, (whole, *map(own_head, range(count)), *lacking))
    share = float(trials.rows.labels.mean())
    base = min(share, 1.0 - share)
    nothing = -float(xlogy(share, share) + xlogy(1.0 - share, 1.0 - share))
    limits = (0.0, base), (0.5, 1.0), (0.0, nothing)
    each = np.eye(len(trials.heads))
    told = _expected(trials, each[0], SHAPE, limits)
    alone = [_expected(trials, row, _NO_SHAPE, limits) for row in each[1 : 1 + count]]
    best = int(np.argmin([one.log_loss.value for one in alone]))
    log_odds = whole.log_odds(trials.rows.features)
    false, true = roc(log_odds, trials.rows.labels)
    without = {
        merged.names[({*range(count)} - {*head.places}).pop()]: _expected(trials, row, SHAPE, limits)
        for head, row in zip(lacking, each[1 + count :], strict=True)
    }
    return ScoreOutlook(
        error=told.error,
        auc=told.auc,
        log_loss=told.log_loss,
        measured=correlation.measured,
        base_rate=base,
        base_log_loss=nothing,
        best_peer=merged.names[best],
        gain=_expected(trials, each[1 + best] - each[0], SHAPE, _ANY, np.array([1.0, -1.0, 1.0])),
        alone=dict(zip(merged.names, alone, strict=True)),
        without=without,
        false_positive_rate=false,
        true_positive_rate=true,
        reliability=reliability(log_odds, trials.rows.labels),
    )


def _expected(
    trials: Trials, contrast: Floats, shapes: Shapes, limits: Limits, sides: Floats | float = 1.0
) -> ExpectedQuality:
    """Intervals of a contrast, within limits."""
    error, area, loss = (
        Interval.around(float(value), {**parts, "shape": shape}, *limit)
        for value, parts, shape, limit in zip(
            sides * trials.value(contrast), trials.parts(contrast), shapes, limits, strict=True
        )
    )
    return ExpectedQuality(error=error, auc=area, log_loss=loss)
