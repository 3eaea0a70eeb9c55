"""The head: one formula over peers' scores, fitted on virtual rows.

    P(second label) = expit(intercept + sum_j w_j score_j + w_s log-odds(signature))

Weights of scores are not negative. Their direction is the mean of those fitted at the
correlation found and at none, which keeps an error in it from being learned; slope and
intercept are fitted again at the correlation found. Under independence inside label and
signature the weights of Bayes' rule are 1 for every peer and 1 - p for the signature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from radocraft.arrays import Floats, Ints
from radocraft.learning._correlation import Correlation
from radocraft.learning._metrics import auc
from radocraft.learning._virtual import Merged, VirtualRows, virtual_rows

FIT, EXPECT = 0, 1
"""Seeds of the rows that heads are fitted on, and of those that show what to expect."""
_WEAK, _START, _RIDGE = 100.0, 0.8, 0.5
_TINY, _CLOSE = 1e-9, 1e-6


@dataclass(frozen=True)
class Head:
    """Intercept and weights: of the scores in `places`, and last of the signature's log-odds."""

    places: tuple[int, ...]
    intercept: float
    weights: Floats

    def log_odds(self, features: Floats) -> Floats:
        """Of rows with every peer's score and the signature's log-odds."""
        return np.asarray(self.intercept + features[:, [*self.places, features.shape[1] - 1]] @ self.weights)


@dataclass(frozen=True)
class Quality:
    """How good probabilities are: error rate, area under the ROC curve, log loss."""

    error: float
    auc: float
    log_loss: float

    @classmethod
    def of(cls, log_odds: Floats, labels: Ints) -> Quality:
        """Of these log-odds against labels 0 and 1."""
        share = np.clip(expit(log_odds), _CLOSE, 1.0 - _CLOSE)
        loss = -np.mean(np.where(labels > 0, np.log(share), np.log1p(-share)))
        return cls(float(np.mean((log_odds > 0) != labels)), auc(log_odds, labels), float(loss))


def fit_head(merged: Merged, correlation: Correlation, places: tuple[int, ...] | None = None) -> Head:
    """The head over the scores of some peers; of all if None."""
    places = tuple(range(len(merged.peers))) if places is None else places
    drawn = virtual_rows(merged, correlation.mean, FIT)
    apart = virtual_rows(merged, np.eye(len(merged.peers)), FIT)
    chosen = [*places, len(merged.peers)]
    weights = _direction(drawn.features[:, chosen], drawn.labels) + _direction(apart.features[:, chosen], apart.labels)
    z = drawn.features[:, chosen] @ weights
    spread = max(float(z.std()), _TINY)
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - slow to import

    fit = LogisticRegression(C=_WEAK).fit(z[:, None] / spread, drawn.labels)
    return Head(places, float(fit.intercept_[0]), np.asarray(fit.coef_[0, 0] * weights / spread))


def _direction(features: Floats, labels: Ints) -> Floats:
    """Weights of a ridge logistic regression, none below zero on a score; their sizes add up to 1."""
    count, sign = features.shape[1] - 1, np.where(labels > 0, 1.0, -1.0)
    design = np.column_stack([np.ones(len(features)), features])

    def loss(w: Floats) -> tuple[float, Floats]:
        z = sign * (design @ w)
        slope = -design.T @ (sign * expit(-z)) + np.concatenate([[0.0], 2.0 * _RIDGE * w[1:]])
        return float(np.logaddexp(0.0, -z).sum() + _RIDGE * w[1:] @ w[1:]), slope

    start = np.concatenate([[0.0], np.full(count, _START), [0.0]])
    bounds = [(None, None), *[(0.0, None)] * count, (None, None)]
    w = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x[1:]
    return np.asarray(w / max(float(np.abs(w).sum()), _TINY))


@dataclass(frozen=True)
class Expected:
    """What a head should reach, from what left alone: at the correlation found, and two standard errors off.

    ``rows`` is what so many rows leave open about the error besides, ``alone`` each
    peer's own score by itself, ``without`` the heads that leave one peer out.
    """

    here: Quality
    low: Quality
    high: Quality
    rows: float
    alone: tuple[Quality, ...]
    base_rate: float


def expect(merged: Merged, head: Head, correlation: Correlation) -> Expected:
    """The head on fresh virtual rows."""
    drawn, *off = (virtual_rows(merged, correlation.moved(errors), EXPECT) for errors in (0.0, -2.0, 2.0))
    here, low, high = (_quality(head, rows) for rows in (drawn, *off))
    alone = tuple(Quality.of(drawn.features[:, at], drawn.labels) for at in range(len(merged.peers)))
    share = float(drawn.labels.mean())
    rows_error = (here.error * (1.0 - here.error) / merged.total) ** 0.5
    return Expected(here, low, high, rows_error, alone, min(share, 1.0 - share))


def _quality(head: Head, rows: VirtualRows) -> Quality:
    return Quality.of(head.log_odds(rows.features), rows.labels)
