"""Calibration: from a model's output to calibrated log-odds, and how good they are out of fold.

Platt's map: a logistic regression of the label on the model's log-odds z, P = 1 / (1 + exp(-(a z + b))), with
Platt's targets, which keep it from certainty. ``a`` is never below 0: where a model says the opposite of
what is true out of fold, it says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from radocraft.arrays import Floats, Ints, Truths
from radocraft.sums import TOP

RAW_TOP = 8.0
_STEPS, _CONVERGED = 100, 1e-10
_FINE = 1024.0
_BINS = 10


@dataclass(frozen=True)
class PlattCalibration:
    """``a z + b``, cut at +-6 and rounded to 1/1024; ``missing`` where there is no z."""

    slope: float
    intercept: float
    missing: float = 0.0

    @classmethod
    def of(cls, raw: Floats, positive: Truths) -> PlattCalibration:
        """Fitted by Newton's method; NaN is missing."""
        known = np.isfinite(raw)
        base = _log_odds(positive)
        absent = _log_odds(positive[~known]) if (~known).sum() > _BINS else base
        if np.ptp(raw[known]) == 0.0 if known.any() else True:
            return cls(0.0, base, absent)
        slope, intercept = _newton(raw[known], positive[known])
        return cls(slope, intercept, absent) if slope > 0.0 else cls(0.0, _log_odds(positive[known]), absent)

    def __call__(self, raw: Floats) -> Floats:
        """Log-odds."""
        with np.errstate(over="ignore"):
            log_odds = np.where(np.isfinite(raw), self.slope * np.nan_to_num(raw) + self.intercept, self.missing)
        return np.asarray(np.rint(np.clip(log_odds, -TOP, TOP) * _FINE) / _FINE)


def _log_odds(positive: Truths) -> float:
    return float(np.log((positive.sum() + 1.0) / ((~positive).sum() + 1.0)))


def _newton(raw: Floats, positive: Truths) -> tuple[float, float]:
    positives, zeros = float(positive.sum()), float((~positive).sum())
    target = np.where(positive, (positives + 1.0) / (positives + 2.0), 1.0 / (zeros + 2.0))
    middle, unit = float(raw.mean()), float(raw.std()) or 1.0
    design = np.column_stack([(raw - middle) / unit, np.ones(len(raw))])
    theta = np.array([0.0, _log_odds(positive)])
    loss = np.inf
    for _ in range(_STEPS):
        z = design @ theta
        now = float((np.logaddexp(0.0, z) - target * z).sum())
        if loss - now <= _CONVERGED * max(now, 1.0) and np.isfinite(loss):
            break
        loss, p = now, expit(z)
        weight = np.maximum(p * (1.0 - p), 1e-9)
        step = np.linalg.solve((design.T * weight) @ design + 1e-9 * np.eye(2), design.T @ (target - p))
        theta = theta + _halved(design, target, theta, step, now)
    return float(theta[0] / unit), float(theta[1] - theta[0] * middle / unit)


def _halved(design: Floats, target: Floats, theta: Floats, step: Floats, loss: float) -> Floats:
    """The step, shortened until it is none for the worse."""
    for _ in range(_STEPS):
        z = design @ (theta + step)
        if float((np.logaddexp(0.0, z) - target * z).sum()) <= loss:
            return step
        step = step / 2.0
    return np.zeros_like(step)


def raw_log_odds(probability: Floats) -> Floats:
    """Log-odds of probabilities, cut so that a certain model is not infinitely sure."""
    edge = expit(-RAW_TOP)
    return np.asarray(logit(np.clip(probability, edge, 1.0 - edge)))


@dataclass(frozen=True)
class Performance:
    """How good scores are out of fold: for a label of values error, AUC (None for classes) and log loss; else R2."""

    rows: int
    error: float | None = None
    auc: float | None = None
    log_loss: float | None = None
    mean_squared_error: float | None = None
    r2: float | None = None

    @classmethod
    def of_two(cls, scores: Floats, positive: Truths) -> Performance:
        """Of log-odds."""
        loss = np.logaddexp(0.0, np.where(positive, -scores, scores))
        wrong = (scores > 0.0) != positive
        return cls(len(scores), float(wrong.mean()), area(scores, positive), float(loss.mean()))

    @classmethod
    def of_classes(cls, scores: Floats, classes: Ints) -> Performance:
        """Of log-odds of each class against the rest; ``classes`` from 0."""
        p = expit(scores)
        p = p / p.sum(axis=1, keepdims=True)
        of_true = p[np.arange(len(p)), classes]
        return cls(len(p), float((p.argmax(axis=1) != classes).mean()), None, float(-np.log(of_true).mean()))

    @classmethod
    def of_numbers(cls, scores: Floats, values: Floats) -> Performance:
        """Of numbers to expect."""
        squares, all_of = float(((scores - values) ** 2).mean()), float(values.var())
        return cls(len(scores), mean_squared_error=squares, r2=1.0 - squares / all_of if all_of else 0.0)


def area(scores: Floats, positive: Truths) -> float:
    """The area under the ROC curve: the share of pairs in the right order, ties by half."""
    ranked, place, size = np.unique(scores, return_inverse=True, return_counts=True)
    rank = (np.cumsum(size) - (size - 1) / 2.0)[place] if len(ranked) else np.zeros(0)
    positives = float(positive.sum())
    pairs = positives * (len(scores) - positives)
    return float((rank[positive].sum() - positives * (positives + 1.0) / 2.0) / pairs) if pairs else 0.5


def area_error(auc: float, positive: Truths) -> float:
    """Standard error of such an area (Hanley and McNeil 1982)."""
    positives = float(positive.sum())
    zeros = len(positive) - positives
    if not positives or not zeros:
        return 1.0
    first, second = auc / (2.0 - auc), 2.0 * auc**2 / (1.0 + auc)
    spread = auc * (1.0 - auc) + (positives - 1.0) * (first - auc**2) + (zeros - 1.0) * (second - auc**2)
    return float((max(spread, 0.0) / (positives * zeros)) ** 0.5)


@dataclass(frozen=True)
class ReliabilityBin:
    """A tenth of the rows by score: what was said on average, and what was true."""

    said: float
    true: float
    rows: int


def reliability(scores: Floats, positive: Truths) -> tuple[ReliabilityBin, ...]:
    """The calibration curve, by tenths of the rows."""
    order = np.argsort(scores, kind="stable")
    predicted = expit(scores)
    return tuple(
        ReliabilityBin(float(predicted[some].mean()), float(positive[some].mean()), len(some))
        for some in np.array_split(order, _BINS)
        if len(some)
    )


@dataclass(frozen=True)
class LinearCalibration:
    """``a z + b`` for scores of a number from elsewhere; ``missing`` where there is no z."""

    slope: float
    intercept: float
    missing: float = 0.0

    @classmethod
    def of(cls, raw: Floats, values: Floats) -> LinearCalibration:
        """By least squares; NaN is missing."""
        known = np.isfinite(raw)
        base = float(values.mean())
        absent = float(values[~known].mean()) if (~known).sum() > _BINS else base
        if known.sum() < 2 or np.ptp(raw[known]) == 0.0:
            return cls(0.0, base, absent)
        slope = float(np.cov(raw[known], values[known])[0, 1] / raw[known].var(ddof=1))
        return cls(slope, float(values[known].mean() - slope * raw[known].mean()), absent)

    def __call__(self, raw: Floats) -> Floats:
        """Numbers to expect."""
        return np.where(np.isfinite(raw), self.slope * np.nan_to_num(raw) + self.intercept, self.missing)
