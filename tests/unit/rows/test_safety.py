"""What a file of models may hold: loading it runs nothing, and trees lead where they should."""

import os
from pathlib import Path

import numpy as np
import pytest
import skops.io
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from radocraft.errors import FileError, Tampered
from radocraft.rows._safety import load_models, save_models

RNG = np.random.default_rng(0)
MATRIX = np.column_stack([RNG.normal(size=80), RNG.integers(0, 4, 80)])
BAD = (MATRIX[:, 0] + RNG.normal(size=80) > 0).astype(int)
MARK = "RADOCRAFT_TEST_MARK"


class Trap(BaseEstimator):
    """Loading it runs code of its own, which leaves a mark."""

    def __getstate__(self):
        return {"nothing": 0}

    def __setstate__(self, state):
        Path(os.environ[MARK]).touch()


def boosting(**more):
    return HistGradientBoostingClassifier(categorical_features=[1], max_iter=3, **more).fit(MATRIX, BAD)


@pytest.mark.parametrize(
    "model",
    [
        boosting(),
        RandomForestClassifier(3).fit(MATRIX, BAD),
        make_pipeline(StandardScaler(), LogisticRegression()).fit(MATRIX, BAD),
    ],
    ids=["boosting", "forest", "pipeline"],
)
def test_models_come_back_as_they_were(model):
    (again,) = load_models(save_models([model]))
    np.testing.assert_array_equal(again.predict_proba(MATRIX), model.predict_proba(MATRIX))


def test_a_file_that_would_run_code_is_refused_and_nothing_runs(tmp_path, monkeypatch):
    """Named as trusted the same file is loaded, and then the mark is there: so the mark would have shown it."""
    monkeypatch.setenv(MARK, str(tmp_path / "mark"))
    data = skops.io.dumps([Trap()])
    with pytest.raises(FileError, match=r"Trap, which could run code.*nothing was loaded"):
        load_models(data)
    assert not (tmp_path / "mark").exists()
    load_models(data, trusted=[f"{Trap.__module__}.Trap"])
    assert (tmp_path / "mark").exists()


@pytest.mark.parametrize("function", [os.system, eval, exec, np.load, skops.io.load])
def test_functions_that_are_no_mathematics_are_refused(function):
    data = skops.io.dumps([make_pipeline(FunctionTransformer(function), LogisticRegression())])
    with pytest.raises(FileError, match="could run code"):
        load_models(data)


@pytest.mark.parametrize("data", [b"", b"cos\nsystem\n(S'touch mark'\ntR.", skops.io.dumps([boosting()])[:500]])
def test_what_is_no_file_of_models_is_refused(data):
    with pytest.raises(Tampered, match="Fit a scorer anew"):
        load_models(data)


def test_one_model_is_no_list_of_models():
    with pytest.raises(Tampered, match="no list of models"):
        load_models(skops.io.dumps(LogisticRegression()))


def test_what_cannot_be_kept_is_told_when_it_is_written():
    with pytest.raises(FileError, match=r"cannot be written to a file that is safe.*use an estimator of scikit-learn"):
        save_models([FunctionTransformer(lambda rows: rows)])


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("left", 0),
        ("right", 10**6),
        ("feature_idx", 2),
        ("feature_idx", -1),
    ],
)
def test_a_tree_of_boosting_that_leads_elsewhere_is_refused(column, value):
    model = boosting()
    nodes = model._predictors[0][0].nodes
    assert not nodes["is_leaf"][0]
    nodes[column][0] = value
    with pytest.raises(Tampered, match="leads nowhere"):
        load_models(save_models([model]))


def test_categories_of_a_column_of_numbers_are_refused():
    model = boosting()
    nodes = model._predictors[0][0].nodes
    inner = np.flatnonzero((nodes["is_leaf"] == 0) & (nodes["feature_idx"] == 1))
    nodes["is_categorical"][inner[0]] = 1
    with pytest.raises(Tampered, match="leads nowhere"):
        load_models(save_models([model]))


@pytest.mark.parametrize(("field", "value"), [("left_child", 0), ("right_child", 10**6), ("feature", 2)])
def test_a_tree_of_a_forest_that_leads_elsewhere_is_refused(field, value):
    model = RandomForestClassifier(2, random_state=0).fit(MATRIX, BAD)
    tree = model.estimators_[0].tree_
    state = tree.__getstate__()
    state["nodes"] = state["nodes"].copy()
    state["nodes"][field][0] = value
    tree.__setstate__(state)
    with pytest.raises(Tampered, match="leads nowhere"):
        load_models(save_models([model]))
