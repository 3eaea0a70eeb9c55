from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import ttest_rel
from sklearn.metrics import roc_auc_score

from radocraft.learning._metrics import auc, error_rate
from radocraft.research.study._metrics import delta, paired_p, rejected, share_beaten

# The worked example of Benjamini and Hochberg (1995), section 3.2: fifteen p-values, of which the
# procedure rejects the four smallest at 0.05, and Bonferroni only three.
PUBLISHED = [
    *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344),
    *(0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0),
]


def test_the_published_example_of_benjamini_and_hochberg() -> None:
    assert rejected(np.array(PUBLISHED)).tolist() == [True] * 4 + [False] * 11
    shuffled = np.random.default_rng(0).permutation(15)
    assert np.flatnonzero(rejected(np.array(PUBLISHED)[shuffled])).tolist() == np.flatnonzero(shuffled < 4).tolist()


def test_benjamini_hochberg_steps_up() -> None:
    """A p-value above its own threshold is rejected if a larger one passes: .04 > .025, but .045 <= .05."""
    assert rejected(np.array([0.04, 0.045])).tolist() == [True, True]


def test_paired_t_test_by_hand() -> None:
    """Differences 1, 2, 3: mean 2, deviation 1, t = 2 sqrt(3) with two degrees of freedom.

    There the two-sided p-value is 1 - t / sqrt(t^2 + 2).
    """
    t = 2.0 * math.sqrt(3.0)
    ours, theirs = np.zeros(3), np.array([[1.0, 2.0, 3.0]])
    assert paired_p(ours, theirs)[0] == pytest.approx(1.0 - t / math.sqrt(t * t + 2.0))


def test_paired_t_tests_are_scipys_row_by_row() -> None:
    rng = np.random.default_rng(1)
    ours, theirs = rng.random(10), rng.random((5, 10))
    one_by_one = [ttest_rel(row, ours).pvalue for row in theirs]
    np.testing.assert_allclose(paired_p(ours, theirs), one_by_one)


def test_equal_differences_need_no_test() -> None:
    ours = np.array([0.1, 0.2, 0.3])
    assert paired_p(ours, np.array([ours, ours + 0.1, ours - 0.1])).tolist() == [1.0, 0.0, 0.0]


def test_delta_and_q_by_hand() -> None:
    ours = np.array([0.10, 0.12, 0.11, 0.09])
    clearly_worse = ours + np.array([0.30, 0.31, 0.29, 0.30])
    better = ours - np.array([0.05, 0.06, 0.05, 0.06])
    same = ours[::-1].copy()
    peers = np.array([clearly_worse, better, same])
    assert delta(ours, peers) == pytest.approx(0.055)
    assert share_beaten(ours, peers) == pytest.approx(1 / 3)
    assert share_beaten(ours, peers[1:]) == 0.0


def test_error_rate_counts_a_zero_score_as_negative() -> None:
    assert error_rate(np.array([0.0, 0.0, 1.0]), np.array([1, -1, 1])) == pytest.approx(1 / 3)


def test_auc_is_scikit_learns_ties_included() -> None:
    rng = np.random.default_rng(2)
    scores, labels = rng.integers(0, 5, 200).astype(float), np.where(rng.random(200) < 0.4, 1, -1)
    assert auc(scores, labels) == pytest.approx(roc_auc_score(labels, scores))


def test_auc_of_one_class_does_not_exist() -> None:
    assert math.isnan(auc(np.array([1.0, 2.0]), np.array([1, 1])))
