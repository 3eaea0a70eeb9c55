"""The same models give the same bytes, and what is shared among them stays shared."""

import copy

import numpy as np
import skops.io
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from radocraft.rows._archive import settled

RNG = np.random.default_rng(0)
MATRIX = RNG.normal(size=(80, 2))
BAD = (MATRIX[:, 0] + RNG.normal(size=80) > 0).astype(int)
MODELS = [
    HistGradientBoostingClassifier(max_iter=3).fit(MATRIX, BAD),
    make_pipeline(StandardScaler(), LogisticRegression()).fit(MATRIX, BAD),
]


def test_the_same_models_give_the_same_bytes_wherever_they_stand_in_memory():
    elsewhere = copy.deepcopy(MODELS)
    assert skops.io.dumps(MODELS) != skops.io.dumps(elsewhere), "so it is without"
    data = settled(skops.io.dumps(MODELS))
    assert settled(skops.io.dumps(elsewhere)) == data
    assert settled(skops.io.dumps(skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data)))) == data


def test_members_of_a_set_have_one_order():
    one, other = (CountVectorizer(stop_words=set(words)) for words in ([0, 8, 16], [16, 8, 0]))
    assert [*one.stop_words] != [*other.stop_words]
    assert settled(skops.io.dumps(one)) == settled(skops.io.dumps(other))
    assert skops.io.loads(settled(skops.io.dumps(one))).stop_words == {0, 8, 16}


def test_what_is_shared_stays_shared_and_what_is_equal_stays_apart():
    shared, equal = np.arange(3.0), np.arange(3.0)
    again = skops.io.loads(settled(skops.io.dumps({"a": shared, "b": [shared, equal], "c": b"bytes"})))
    assert again["a"] is again["b"][0]
    assert again["a"] is not again["b"][1]
    np.testing.assert_array_equal(again["b"][1], equal)
    assert again["c"] == b"bytes"
