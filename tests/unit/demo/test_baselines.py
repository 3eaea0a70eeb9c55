from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import PredefinedSplit

from radocraft.demo._baselines import (
    PAPER_GAMMAS,
    PeerTable,
    best_gamma,
    fit_ridge,
    stratified_folds,
    units_of,
    zip_rows,
)
from radocraft.errors import OneClass

NO_SHARED = np.empty((80, 0))


def sample(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    values = rng.normal(3.0, 2.0, size=(80, 4))
    labels = np.where(values @ [1.0, -0.5, 0.0, 0.2] + rng.normal(size=80) > 2.0, 1, -1)
    return values, labels


@pytest.mark.parametrize("intercept", [True, False])
def test_ridge_is_scikit_learns_with_m_gamma(intercept: bool) -> None:
    values, labels = sample()
    model = fit_ridge(NO_SHARED, values, labels, gammas=[0.3], intercept=intercept)
    scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    theirs = Ridge(alpha=0.3 * len(labels), fit_intercept=intercept).fit(scaled, labels)
    np.testing.assert_allclose(model.scores(NO_SHARED, values), theirs.predict(scaled), atol=1e-10)


def test_cross_validation_from_moments_equals_cross_validation_over_rows() -> None:
    values, labels = sample(1)
    design = np.hstack([np.ones((80, 1)), values])
    penalty = np.array([0.0, 1.0, 1.0, 1.0, 1.0])
    gammas = (1e-4, 0.01, 0.1, 1.0, 100.0)
    fold = stratified_folds(labels, 10, np.random.default_rng(7))
    losses = np.zeros(len(gammas))
    for train, test in PredefinedSplit(fold).split():
        for at, gamma in enumerate(gammas):
            model = Ridge(alpha=gamma * len(train)).fit(values[train], labels[train])
            losses[at] += np.sum((labels[test] - model.predict(values[test])) ** 2)
    assert best_gamma(design, labels, penalty, gammas, 7) == gammas[int(np.argmin(losses))]
    noisy = np.where(np.random.default_rng(2).random(80) < 0.5, 1, -1)
    assert best_gamma(design, noisy, penalty, PAPER_GAMMAS, 0) == 100.0


def test_shared_columns_enter_as_they_are() -> None:
    values, labels = sample()
    shared = (labels == 1).astype(float)[:, None]
    model = fit_ridge(shared, values, labels, gammas=[1e-6])
    assert np.array_equal(np.sign(model.scores(shared, values)), labels)
    assert model.weights[0] == pytest.approx(2.0, rel=1e-3)


def test_a_missing_value_counts_as_the_mean() -> None:
    values, labels = sample()
    values[::7, 1] = np.nan
    filled = np.where(np.isnan(values), np.nanmean(values, axis=0), values)
    model = fit_ridge(NO_SHARED, values, labels, gammas=[0.1])
    np.testing.assert_allclose(model.scores(NO_SHARED, values), model.scores(NO_SHARED, filled))


def test_units() -> None:
    values = np.array([[1.0, 5.0, np.nan], [3.0, 5.0, 2.0]])
    centre, scale = units_of(values, "standard")
    assert centre.tolist() == [2.0, 5.0, 2.0]
    assert scale.tolist() == [1.0, 1.0, 1.0]
    centre, scale = units_of(values, "min-max")
    assert centre.tolist() == [1.0, 5.0, 2.0]
    assert scale.tolist() == [2.0, 1.0, 1.0]
    centre, scale = units_of(values, "none")
    assert centre.tolist() == [0.0] * 3
    assert scale.tolist() == [1.0] * 3


def test_folds_hold_both_labels_and_shrink_for_a_rare_one() -> None:
    labels = np.array([1] * 3 + [-1] * 30)
    fold = stratified_folds(labels, 10, np.random.default_rng(0))
    assert fold.max() == 2
    assert all({*labels[fold == at].tolist()} == {1, -1} for at in range(3))


def test_one_class_cannot_be_learned() -> None:
    with pytest.raises(OneClass):
        fit_ridge(np.empty((3, 0)), np.eye(3), np.ones(3, dtype=np.int64))


def test_zip_starts_over_where_a_peer_has_fewer_rows_and_leaves_out_what_it_lacks() -> None:
    a = PeerTable("a", ("x",), np.array([[0], [0], [0], [1]]), np.ones(4, dtype=np.int64), np.arange(4.0)[:, None])
    b = PeerTable("b", ("z",), np.array([[0], [0]]), np.ones(2, dtype=np.int64), np.array([[10.0], [11.0]]))
    zipped = zip_rows([a, b])
    np.testing.assert_array_equal(zipped.values, [[0, 10], [1, 11], [2, 10], [3, np.nan]])
    assert zipped.codes.ravel().tolist() == [0, 0, 0, 1]
    assert zipped.columns == ("x", "z")
