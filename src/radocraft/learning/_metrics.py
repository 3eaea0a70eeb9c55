"""How good scores are against labels."""

from __future__ import annotations

import numpy as np

from radocraft.arrays import Floats, Ints


def error_rate(scores: Floats, labels: Ints) -> float:
    """Share of rows whose score has the wrong sign; a score of 0 counts as negative.

    Examples
    --------
    >>> error_rate(np.array([2.0, -1.0, 0.5, -0.1]), np.array([1, -1, -1, -1]))
    0.25
    """
    return float(np.mean((scores > 0) != (labels > 0)))


def auc(scores: Floats, labels: Ints | Floats) -> float:
    """The chance that a positive row scores above a negative one, ties counting half; NaN with one class only.

    Examples
    --------
    >>> auc(np.array([3.0, 1.0, 2.0, 1.0]), np.array([1, 1, -1, -1]))
    0.625
    """
    positive = labels > 0
    ours, theirs = int(positive.sum()), int((~positive).sum())
    if not ours or not theirs:
        return float("nan")
    return float((ranks(scores)[positive].sum() - ours * (ours + 1) / 2) / (ours * theirs))


def ranks(values: Floats) -> Floats:
    """From 1 on; equal values share their mean.

    Examples
    --------
    >>> ranks(np.array([3.0, 1.0, 2.0, 1.0]))
    array([4. , 1.5, 3. , 1.5])
    """
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[place])
