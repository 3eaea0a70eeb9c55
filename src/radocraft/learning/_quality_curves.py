"""ROC and reliability of rows whose labels are known, for virtual rows."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from radocraft.arrays import Floats, Ints
from radocraft.model import Reliability

_POINTS, _BINS = 51, 10


def roc(log_odds: Floats, labels: Ints) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """False and true positive rates, from (0, 0) to (1, 1), at cuts that part the rows evenly.

    Examples
    --------
    >>> false, true = roc(np.array([2.0, 1.0, -1.0, -2.0]), np.array([1, 0, 1, 0]))
    >>> list(zip(false, true))
    [(0.0, 0.0), (0.0, 0.5), (0.5, 0.5), (0.5, 1.0), (1.0, 1.0)]
    """
    order = np.argsort(-log_odds, kind="stable")
    positive = (labels[order] > 0).astype(np.float64)
    cuts = np.unique(np.linspace(0, len(order), min(_POINTS, len(order) + 1)).astype(np.int64))
    true = np.concatenate([[0.0], np.cumsum(positive)])[cuts] / max(positive.sum(), 1.0)
    false = np.concatenate([[0.0], np.cumsum(1.0 - positive)])[cuts] / max((1.0 - positive).sum(), 1.0)
    return tuple(false.tolist()), tuple(true.tolist())


def reliability(log_odds: Floats, labels: Ints) -> tuple[Reliability, ...]:
    """Predicted and true shares, by tenths of the rows.

    Examples
    --------
    >>> one, other = reliability(np.array([0.0, 0.0]), np.array([0, 1]))
    >>> one.share, one.predicted, (one.true, other.true)
    (0.5, 0.5, (0.0, 1.0))
    """
    predicted, order = expit(log_odds), np.argsort(log_odds, kind="stable")
    tenths = [some for some in np.array_split(order, _BINS) if len(some)]
    return tuple(
        Reliability(
            share=len(some) / len(order), predicted=float(predicted[some].mean()), true=float((labels[some] > 0).mean())
        )
        for some in tenths
    )
