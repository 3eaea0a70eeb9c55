"""Models of the user's own: what they must be able to do, what they are given, and what is made of what they say."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from radocraft.errors import DataError
from radocraft.rows._estimators import Target, adopted, estimator, given_form, raw_scores
from radocraft.rows._features import ScorerColumn

COLUMNS = (
    ScorerColumn("income", "number"),
    ScorerColumn("job", "category", ("clerk", "other")),
    ScorerColumn("member", "boolean"),
)
MATRIX = np.array([[1.0, 0.0, 1.0], [np.nan, 1.0, 0.0], [3.0, 2.0, np.nan], [2.0, np.nan, 1.0]] * 10)
BAD = np.arange(40) % 2
TWO, THREE, NUMBER = Target(2), Target(3), Target(0)


class Mine(ClassifierMixin, BaseEstimator):
    """An estimator that comes from elsewhere; it remembers what it is given."""

    def fit(self, rows, classes):
        self.given_, self.classes_ = rows, np.unique(classes)
        return self

    def predict_proba(self, rows):
        return np.full((len(rows), len(self.classes_)), 1.0 / len(self.classes_))


@pytest.mark.parametrize(
    ("given", "outcome", "message"),
    [
        ("boosting", TWO, r"A str is no estimator: it has no `fit`.*inherits from `sklearn\.base\.BaseEstimator`"),
        (StandardScaler(), TWO, "neither of predict_proba, decision_function"),
        (Ridge(), TWO, "CalibratedClassifierCV"),
        (StandardScaler(), NUMBER, "neither of predict, "),
    ],
)
def test_what_cannot_score_is_refused_with_the_remedy(given, outcome, message):
    with pytest.raises(DataError, match=message):
        adopted(given, COLUMNS, outcome)


def test_the_users_own_object_stays_as_it_is():
    given = LogisticRegression(C=7.0)
    model, _ = adopted(given, COLUMNS, TWO)
    model.fit(MATRIX, BAD)
    assert not hasattr(given, "coef_")
    assert model[-1].C == 7.0


@pytest.mark.parametrize(
    "given", [LogisticRegression(), RandomForestClassifier(5), LinearSVC(), DummyClassifier(), "linear", "boosting"]
)
def test_estimators_of_scikit_learn_take_categories_and_gaps(given):
    """A category that no model has seen, and a row with nothing in it, are scored too."""
    model = estimator(given, COLUMNS, TWO, 0) if isinstance(given, str) else adopted(given, COLUMNS, TWO)[0]
    if given == "boosting":
        model.set_params(max_iter=3)
    model.fit(MATRIX, BAD)
    told = raw_scores(model, np.array([[1.0, 2.0, 0.0], [np.nan] * 3]), TWO)
    assert told.shape == (2,)
    assert np.isfinite(told).all()


def test_boosting_of_the_users_own_knows_which_columns_are_categories():
    model, form = adopted(HistGradientBoostingClassifier(max_iter=3), COLUMNS, TWO)
    assert (form, model.categorical_features, model.max_iter) == ("matrix", [1], 3)
    assert adopted(HistGradientBoostingClassifier(), COLUMNS[:1], TWO)[0].categorical_features is None
    assert estimator("boosting", COLUMNS, TWO, 5).random_state == 5


@pytest.mark.parametrize(
    "given",
    [
        Mine(),
        make_pipeline(ColumnTransformer([("job", OneHotEncoder(), ["job"])]), LogisticRegression()),
        GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {}),
    ],
)
def test_pipelines_and_models_from_elsewhere_get_data_frames(given):
    assert adopted(given, COLUMNS, TWO)[1] == "frame"


def test_a_data_frame_has_names_and_categories_as_words():
    frame = given_form(MATRIX[:4], COLUMNS, "frame")
    assert list(frame.columns) == ["income", "job", "member"]
    words = frame["job"].tolist()
    assert words[:3] == ["clerk", "other", "other_"], "a word of its own for all others, which is none of the agreed"
    assert pd.isna(words[3])
    np.testing.assert_array_equal(frame["income"], MATRIX[:4, 0])
    assert given_form(MATRIX, COLUMNS, "matrix") is MATRIX


def test_without_pandas_a_model_that_needs_it_is_refused(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(DataError, match="pip install pandas"):
        given_form(MATRIX, COLUMNS, "frame")


def test_a_class_that_a_model_has_not_seen_is_as_good_as_impossible():
    model = Mine().fit(MATRIX, BAD * 2)
    told = raw_scores(model, MATRIX, THREE)
    assert told.shape == (40, 3)
    np.testing.assert_allclose(told, np.tile([0.0, -8.0, 0.0], (40, 1)), atol=1e-9)


def test_numbers_are_what_the_model_predicts():
    model, form = adopted(Ridge(), COLUMNS, NUMBER)
    values = np.arange(40.0)
    model.fit(MATRIX, values)
    assert form == "matrix"
    np.testing.assert_array_equal(raw_scores(model, MATRIX, NUMBER), model.predict(MATRIX))
    assert Target(0).is_number
    assert not Target(2).is_number
