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
from radocraft.learning._virtual import Merged, virtual_rows

FIT = 0
"""Seed of the rows that heads are fitted on."""
_WEAK, _START, _RIDGE = 100.0, 0.8, 0.5
_TINY = 1e-9


@dataclass(frozen=True)
class Head:
    """Intercept and weights: of the scores in `places`, and last of the signature's log-odds."""

    places: tuple[int, ...]
    intercept: float
    weights: Floats

    def log_odds(self, features: Floats) -> Floats:
        """Of rows with every peer's score and the signature's log-odds."""
        return np.asarray(self.intercept + features[:, [*self.places, features.shape[1] - 1]] @ self.weights)


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
