"""The paper's measures of success.

Everything starts from the test error in each fold. ``delta`` is the error minus
that of the best peer in hindsight; below 0 every peer is beaten. ``q`` is the
share of peers beaten statistically: paired t-tests over the folds, one for each
peer, and of those the ones that the procedure of Benjamini and Hochberg (1995)
rejects at 0.05, where the difference is in our favour.
"""

from __future__ import annotations

import numpy as np
import scipy

from radocraft.arrays import Floats, Ints, Truths
from radocraft.learning import tenths

LEVEL = 0.05
_ROUNDING = 1e-12


def paired_p(ours: Floats, theirs: Floats) -> Floats:
    """Two-sided p-values of paired t-tests of our fold errors against each row of theirs.

    Where all differences are equal there is no spread to test against: 1 if
    they are 0, else 0.

    Examples
    --------
    >>> paired_p(np.array([0.1, 0.2]), np.array([[0.1, 0.2], [0.2, 0.3]]))
    array([1., 0.])
    """
    difference = theirs - ours
    out: Floats = np.where(np.abs(difference.mean(axis=1)) > _ROUNDING, 0.0, 1.0)
    spread = difference.std(axis=1) > _ROUNDING
    if spread.any():
        out[spread] = scipy.stats.ttest_rel(theirs[spread], np.broadcast_to(ours, theirs[spread].shape), axis=1).pvalue
    return out


def rejected(p_values: Floats, level: float = LEVEL) -> Truths:
    """Which hypotheses the procedure of Benjamini and Hochberg rejects.

    Examples
    --------
    >>> rejected(np.array([0.01, 0.04, 0.2])).tolist()
    [True, False, False]
    """
    return np.asarray(scipy.stats.false_discovery_control(p_values) <= level, dtype=np.bool_)


def delta(ours: Floats, peers: Floats) -> float:
    """Mean error minus that of the best peer in hindsight; ``peers`` has one row of fold errors for each peer.

    Examples
    --------
    >>> round(delta(np.array([0.1, 0.2]), np.array([[0.3, 0.3], [0.2, 0.2]])), 3)
    -0.05
    """
    return float(ours.mean() - peers.mean(axis=1).min())


def share_beaten(ours: Floats, peers: Floats) -> float:
    """The paper's q: the share of peers with statistically larger error.

    Examples
    --------
    >>> share_beaten(np.array([0.1, 0.2]), np.array([[0.1, 0.2], [0.3, 0.4]]))
    0.5
    """
    worse = peers.mean(axis=1) > ours.mean()
    return float(np.mean(rejected(paired_p(ours, peers)) & worse))


def reliability(probability: Floats, labels: Ints) -> list[list[float]]:
    """Ten bins of the probability: the share of rows, the mean they are told and the share that is positive.

    Examples
    --------
    >>> reliability(np.array([0.1, 0.15, 0.8, 1.0]), np.array([-1, 1, 1, 1]))
    [[0.5, 0.125, 0.5], [0.25, 0.8, 1.0], [0.25, 1.0, 1.0]]
    """
    rows = np.full(len(labels), 1.0 / len(labels))
    return [[one.share, one.predicted, one.true] for one in tenths(probability, rows, rows * (labels > 0))]


def calibration_error(bins: list[list[float]]) -> float:
    """Expected calibration error: how far what rows are told is from what is so, on average.

    Examples
    --------
    >>> round(calibration_error([[0.5, 0.125, 0.5], [0.25, 0.8, 1.0], [0.25, 1.0, 1.0]]), 4)
    0.2375
    """
    return float(sum(share * abs(predicted - true) for share, predicted, true in bins))
