"""Calibration: log-odds that mean what they say, never the opposite, never certain; and how good scores are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from radocraft.rows._calibration import (
    LinearCalibration,
    Performance,
    PlattCalibration,
    area,
    area_error,
    raw_log_odds,
    reliability,
)
from radocraft.sums import TOP

SCORES = st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=2, max_size=40)


def generated(slope: float, intercept: float, rows: int = 4000):
    rng = np.random.default_rng(0)
    raw = rng.normal(size=rows)
    return raw, rng.random(rows) < expit(slope * raw + intercept)


@pytest.mark.parametrize(("slope", "intercept"), [(1.0, 0.0), (0.4, -1.0), (2.5, 0.5), (0.02, 2.0)])
def test_platts_map_is_the_logistic_regression_with_his_targets(slope, intercept):
    """Against scikit-learn's on every row twice, once as each label, weighted by the target."""
    raw, positive = generated(slope, intercept)
    ones, zeros = positive.sum(), (~positive).sum()
    target = np.where(positive, (ones + 1) / (ones + 2), 1 / (zeros + 2))
    both = LogisticRegression(C=1e12, tol=1e-10, max_iter=1000).fit(
        np.tile(raw, 2)[:, None], np.repeat([1, 0], len(raw)), sample_weight=np.concatenate([target, 1 - target])
    )
    found = PlattCalibration.of(raw, positive)
    assert found.slope == pytest.approx(both.coef_[0, 0], abs=1e-4)
    assert found.intercept == pytest.approx(both.intercept_[0], abs=1e-4)
    assert abs(found.slope - slope) < 0.2


def test_a_model_that_says_the_opposite_says_nothing():
    raw, positive = generated(-1.0, 0.5)
    found = PlattCalibration.of(raw, positive)
    assert found.slope == 0.0
    assert expit(found(raw)).mean() == pytest.approx(positive.mean(), abs=1e-3)


def test_perfect_separation_and_single_values_stay_finite():
    raw = np.array([-1.0] * 20 + [1.0] * 20)
    found = PlattCalibration.of(raw, raw > 0)
    assert np.isfinite([found.slope, found.intercept]).all()
    assert found(raw)[-1] > 2.0
    assert (np.abs(found(1e300 * raw)) == TOP).all()
    assert PlattCalibration.of(np.ones(9), np.arange(9) < 3)(np.ones(1)) == pytest.approx(np.log(4 / 7), abs=1e-3)
    nothing = PlattCalibration.of(np.full(30, np.nan), np.arange(30) < 10)
    assert nothing(np.array([np.nan, 5.0])) == pytest.approx([np.log(11 / 21)] * 2, abs=1e-3)


def test_rows_without_a_score_have_the_log_odds_of_their_like():
    raw, positive = generated(1.0, 0.0)
    raw[:400], positive[:400] = np.nan, np.arange(400) < 300
    found = PlattCalibration.of(raw, positive)
    assert found(np.array([np.nan])) == pytest.approx(np.log(301 / 101), abs=1e-3)
    few = raw.copy()
    few[5:400] = 0.0
    assert PlattCalibration.of(few, positive).missing == pytest.approx(
        np.log((positive.sum() + 1) / ((~positive).sum() + 1))
    )


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=20))
def test_scores_are_multiples_of_a_small_step_within_bounds(raw):
    scores = PlattCalibration(3.0, 0.1)(np.array(raw))
    assert (np.abs(scores) <= TOP).all()
    np.testing.assert_array_equal(scores * 1024, np.rint(scores * 1024))
    np.testing.assert_array_equal(scores.astype(np.float32), scores)


def test_a_certain_model_is_not_infinitely_sure():
    assert raw_log_odds(np.array([0.0, 0.5, 1.0])) == pytest.approx([-8.0, 0.0, 8.0])


@given(SCORES)
def test_the_area_is_the_share_of_pairs_in_the_right_order(rows):
    scores, positive = np.array([row[0] for row in rows], float), np.array([row[1] for row in rows])
    if not 0 < positive.sum() < len(rows):
        assert area(scores, positive) == 0.5
        return
    assert area(scores, positive) == pytest.approx(roc_auc_score(positive, scores))


def test_the_areas_standard_error_is_that_of_fresh_samples():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(300):
        positive = np.arange(300) < 100
        found.append(area(rng.normal(size=300) + positive, positive))
    assert area_error(float(np.mean(found)), positive) == pytest.approx(np.std(found), rel=0.15)
    assert area_error(0.7, np.ones(5, dtype=bool)) == 1.0


def test_performance_is_of_the_usual_measures():
    raw, positive = generated(1.5, -0.5)
    told = Performance.of_two(raw, positive)
    assert told.log_loss == pytest.approx(log_loss(positive, expit(raw)))
    assert told.error == pytest.approx(np.mean((raw > 0) != positive))
    assert told.auc == pytest.approx(roc_auc_score(positive, raw))
    classes = np.arange(len(raw)) % 3
    one_hot = np.where(classes[:, None] == np.arange(3), 4.0, -4.0)
    assert Performance.of_classes(one_hot, classes).error == 0.0
    even = Performance.of_classes(np.zeros((9, 3)), np.arange(9) % 3)
    assert even.log_loss == pytest.approx(np.log(3))
    assert Performance.of_numbers(raw, raw).r2 == 1.0
    assert Performance.of_numbers(np.full(len(raw), raw.mean()), raw).r2 == pytest.approx(0.0)
    assert Performance.of_numbers(np.ones(3), np.ones(3)).r2 == 0.0


def test_the_curve_says_what_was_said_and_what_was_true():
    raw, positive = generated(1.0, 0.0, rows=20_000)
    curve = reliability(raw, positive)
    assert sum(one.rows for one in curve) == 20_000
    assert [one.said for one in curve] == sorted(one.said for one in curve)
    assert all(abs(one.said - one.true) < 5 * (0.25 / one.rows) ** 0.5 for one in curve)
    assert len(reliability(raw[:3], positive[:3])) == 3


def test_numbers_from_elsewhere_are_put_right_by_least_squares():
    rng = np.random.default_rng(0)
    raw = rng.normal(size=500)
    values = 3.0 * raw + 5.0 + rng.normal(size=500)
    found = LinearCalibration.of(raw, values)
    assert [found.slope, found.intercept] == pytest.approx(np.polyfit(raw, values, 1).tolist())
    raw[:100] = np.nan
    assert LinearCalibration.of(raw, values)(np.array([np.nan])) == pytest.approx(values[:100].mean())
    assert LinearCalibration.of(np.ones(9), np.arange(9.0))(np.ones(1)) == pytest.approx(4.0)
