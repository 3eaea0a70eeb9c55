"""Boosters of LightGBM as text: whole, or refused before LightGBM follows numbers that lead nowhere."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import skops.io
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from radocraft.errors import FileError, Tampered
from radocraft.rows._lightgbm import BoosterText, sound
from radocraft.rows._safety import load_models, save_models, trusted_types

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(
    {
        "income": np.where(RNG.random(400) < 0.1, np.nan, RNG.normal(size=400)),
        "job": pd.Categorical(RNG.choice([*"abcdefghij", None], 400)),
    }
)
BAD = ((ROWS.income > 0).to_numpy() ^ (ROWS.job.cat.codes.to_numpy() % 3 == 0)).astype(int)
FEW = {"n_estimators": 4, "verbose": -1, "n_jobs": 1}
SETS = {"min_data_per_group": 5, "max_cat_to_onehot": 2}


def fitted(**more):
    return LGBMClassifier(**FEW, **SETS, **more).fit(ROWS, BAD)


@pytest.mark.parametrize(
    "model",
    [
        fitted(),
        LGBMClassifier(**FEW).fit(ROWS, RNG.integers(0, 3, 400)),
        LGBMRegressor(**FEW).fit(ROWS, ROWS.income.fillna(0)),
        fitted(boosting_type="rf", subsample=0.5, subsample_freq=1),
        fitted(min_child_samples=1000),
        make_pipeline(FunctionTransformer(), fitted()),
    ],
    ids=["two classes", "three classes", "numbers", "forest", "no split", "pipeline"],
)
def test_boosters_come_back_as_they_were_and_in_the_same_bytes(model):
    """With rows whose categories are new or missing."""
    rows = ROWS.assign(job=ROWS.job.cat.rename_categories({"a": "new"}).cat.set_categories([*ROWS.job.cat.categories]))
    data = save_models([model])
    (again,) = load_models(data)
    for each in (ROWS, rows):
        says = [getattr(held, "predict_proba", held.predict)(each) for held in (model, again)]
        np.testing.assert_array_equal(*says)
    assert save_models([again]) == save_models([model]) == data
    assert "lightgbm.basic.Booster" not in trusted_types(data)


def test_leaves_that_are_models_cannot_be_kept():
    model = LGBMRegressor(**FEW, linear_tree=True).fit(ROWS[["income"]].fillna(0), ROWS.income.fillna(0))
    with pytest.raises(FileError, match=r"LGBMRegressor cannot be written.*leaves are linear models"):
        save_models([model])


TEXT = fitted()._Booster.model_to_string()


@pytest.mark.parametrize(
    ("line", "change"),
    [
        ("left_child=", lambda words: ["0", *words[1:]]),
        ("right_child=", lambda words: ["999999", *words[1:]]),
        ("right_child=", lambda words: ["-999", *words[1:]]),
        ("left_child=", lambda words: words[:-1]),
        ("split_feature=", lambda words: ["2", *words[1:]]),
        ("split_feature=", lambda words: ["-1", *words[1:]]),
        ("leaf_value=", lambda words: words[:-1]),
        ("leaf_value=", lambda words: ["x", *words[1:]]),
        ("num_leaves=", lambda words: ["99999"]),
        ("num_cat=", lambda words: ["0"]),
        ("cat_boundaries=", lambda words: [*words[:-1], "999"]),
        ("cat_threshold=", lambda words: words[:-1]),
        ("decision_type=", lambda words: ["1"] * len(words)),
        ("max_feature_idx=", lambda words: ["0"]),
        ("num_class=", lambda words: ["3"]),
        ("num_tree_per_iteration=", lambda words: ["0"]),
        ("objective=", lambda words: ["multiclass", "num_class:100"]),
        ("is_linear=", lambda words: ["1"]),
    ],
)
def test_text_that_leads_elsewhere_is_refused_before_it_is_read(line, change):
    (whole, words), *_ = [
        (found[0], found[1].split(" ")) for found in re.finditer(f"^{line}(.*)$", TEXT, re.MULTILINE) if found[1]
    ]
    bad = TEXT.replace(whole, line + " ".join(change(words)), 1)
    assert bad != TEXT
    with pytest.raises(ValueError, match=r"\w"):
        sound(bad)
    model = fitted()
    model._Booster = BoosterText(bad, "null")
    with pytest.raises(Tampered, match="leads nowhere"):
        load_models(skops.io.dumps([model]))


@pytest.mark.parametrize("name", ["objective", "num_class", "feature_names", "left_child", "cat_boundaries"])
def test_text_that_lacks_a_line_or_has_it_twice_is_refused(name):
    line = re.search(f"^{name}=.*\n", TEXT, re.MULTILINE)[0]
    with pytest.raises(ValueError, match=name):
        sound(TEXT.replace(line, ""))
    with pytest.raises(ValueError, match="twice"):
        sound(TEXT.replace(line, line + line))


def test_what_is_not_looked_at_is_not_handed_on():
    assert "machines" in TEXT
    assert sound(TEXT) == sound(sound(TEXT)) == sound(TEXT.replace("[machines: ]", "[machines: elsewhere:1234]"))
    assert "machines" not in sound(TEXT)


@pytest.mark.parametrize("value", [True, "1 predict_disable_shape_check=true"])
def test_a_model_that_would_read_beyond_a_row_is_refused(value):
    """Whether it is said by a setting's name or hidden in another's text."""
    model = fitted()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(**({"predict_disable_shape_check": value} if value is True else {"device_type": value}))
    with pytest.raises(Tampered, match="how wide rows are"):
        load_models(save_models([model]))


def test_a_booster_itself_is_none_of_the_types_that_are_loaded():
    with pytest.raises(FileError, match=r"lightgbm\.basic\.Booster, which could run code"):
        load_models(skops.io.dumps([fitted()]))
