"""The scikit-learn face: conventions, and the same model as peers with files would get."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.unit.noisy import noisy_part

from radocraft import Contract, Policy, learn
from radocraft.demo._estimator import RadocraftClassifier


@parametrize_with_checks([RadocraftClassifier()])
def test_sklearn_conventions(estimator, check) -> None:  # type: ignore[no-untyped-def]
    check(estimator)


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    values, labels = load_breast_cancer(return_X_y=True)
    return values[:, :8], labels


def test_equals_the_road_by_parts(table: tuple[np.ndarray, np.ndarray]) -> None:
    values, labels = table
    classifier = RadocraftClassifier([[1, 2, 3], [4, 5, 6, 7]], shared=[0], min_rows=10).fit(values, labels)
    edges = classifier.edges_[0].tolist()
    contract = Contract.model_validate(
        {
            "name": "same",
            "label": {"column": "y", "positive": 1, "negative": 0},
            "shared": [{"name": "x0", "edges": edges}],
            "peers": {
                "a": {"features": {f"x{at}": "numeric" for at in (1, 2, 3)}},
                "b": {"features": {f"x{at}": "numeric" for at in (4, 5, 6, 7)}},
            },
        }
    )
    joined = pa.table({"y": labels, **{f"x{at}": values[:, at] for at in range(8)}})
    shuffled = joined.take(np.random.default_rng(0).permutation(len(labels)))
    tables = {"a": joined.select(["y", "x0", "x1", "x2", "x3"]), "b": shuffled.drop_columns(["x1", "x2", "x3"])}
    parts = [noisy_part(t, contract, p, Policy.exact(10)) for p, t in tables.items()]
    model = learn(parts, contract)
    np.testing.assert_allclose(
        classifier.predict_proba(values)[:, 1], model.predict(joined).probability, rtol=1e-7, atol=1e-10
    )


def test_columns_by_name_and_what_is_not_there() -> None:
    frame, labels = load_breast_cancer(return_X_y=True, as_frame=True)
    peers = [["mean texture", "mean area"], ["worst radius", "worst texture"]]
    classifier = RadocraftClassifier(peers, shared=["mean radius"]).fit(frame, labels)
    assert classifier.peers_[1].tolist() == [20, 21]
    with pytest.raises(ValueError, match="no column 'mean rdius'"):
        RadocraftClassifier(shared=["mean rdius"]).fit(frame, labels)


def test_two_peers_together_do_better_than_either(table: tuple[np.ndarray, np.ndarray]) -> None:
    values, labels = table
    joint = cross_val_score(RadocraftClassifier([[0, 2], [1, 4]], shared=[3]), values, labels, cv=5).mean()
    texture = cross_val_score(RadocraftClassifier([[1, 4]], shared=[3]), values, labels, cv=5).mean()
    assert joint > texture


def test_missing_values_and_a_missing_shared_code(table: tuple[np.ndarray, np.ndarray]) -> None:
    values, labels = table
    holes = np.where(np.random.default_rng(0).random(values.shape) < 0.2, np.nan, values)
    classifier = RadocraftClassifier(shared=[0], method="matching").fit(holes, labels)
    assert classifier.score(holes, labels) > 0.8


def test_the_papers_method_is_there(table: tuple[np.ndarray, np.ndarray]) -> None:
    values, labels = table
    singletons = RadocraftClassifier(shared=[3], bins=len(labels), method="drl")
    assert singletons.fit(values, labels).score(values, labels) > 0.8


@pytest.mark.parametrize("scorer", ["linear", LogisticRegression(C=0.1)])
def test_peers_with_models_of_their_own_do_better_than_either(table, scorer) -> None:  # type: ignore[no-untyped-def]
    values, labels = table
    values = np.where(np.random.default_rng(0).random(values.shape) < 0.02, np.nan, values)
    both = RadocraftClassifier([[0, 2], [1, 4]], shared=[3], min_rows=10, scorer=scorer).fit(values[:400], labels[:400])
    new, truth = both._table(values[400:]), labels[400:] == 1
    alone = [each.score(new)[each.names[0]].to_numpy() > 0 for each in both.scorers_]
    assert both.score(values[400:], labels[400:]) > max(np.mean(told == truth) for told in alone)
    np.testing.assert_allclose(both.predict_proba(values[400:]).sum(axis=1), 1.0)
