"""Several models as one: weights are found out of fold, and a large table has boosting alone."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from tests.unit.rows.people import agree

from radocraft.rows import Scorer, _scoring_rows, score_rows
from radocraft.rows._pool import weights_of

CLASSES, NUMBER = 'classes = ["a", "b", "c"]', 'kind = "numeric"'


def table(rows: int = 1500, *, of: str = "two", seed: int = 0) -> pa.Table:
    """A label whose log-odds are linear in four columns, one of them with gaps."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rows, 4))
    z = values @ [1.0, -0.8, 0.6, 0.4] + rng.logistic(size=rows)
    values[rng.random(rows) < 0.1, 3] = np.nan
    label = {"two": (z > 0).astype(int), "classes": np.array(["a", "b", "c"])[np.digitize(z, [-1, 1])], "number": z}[of]
    columns = {f"v{at}": pa.array(column, from_pandas=True) for at, column in enumerate(values.T)}
    return pa.table({"bad": label, "age": rng.integers(20, 70, rows), "job": rng.choice(["a", "b"], rows), **columns})


def log_loss(scores: np.ndarray, positive: np.ndarray) -> float:
    return float(np.logaddexp(0.0, np.where(positive, -scores, scores)).mean())


def test_weights_make_the_labels_likeliest():
    """Two honest models of independent evidence: no other weights do better, and neither model alone."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 5000)
    odds = 2.0 * (2 * labels[:, None] - 1) + rng.normal(size=(5000, 2)) * [2.0, 3.0]
    second = 1.0 / (1.0 + np.exp(-odds * [1.0, 0.4]))
    said = np.stack([1.0 - second, second], axis=2)
    found = weights_of(said, labels)
    assert found.sum() == pytest.approx(1.0)
    own = said[np.arange(5000), :, labels]
    losses = [-np.log(own @ [share, 1.0 - share]).mean() for share in np.linspace(0.0, 1.0, 101)]
    assert -np.log(own @ found).mean() <= min(losses) + 1e-5


def test_numbers_have_the_weights_of_least_squares_wherever_they_begin():
    """y + e and e', all of variance 1: w (y + e) + (1 - w) e' is nearest to y at w = 2 / 3."""
    values, first, second = np.random.default_rng(1).normal(size=(3, 20_000))
    said = np.column_stack([values + first, second])
    np.testing.assert_allclose(weights_of(said, values), [2 / 3, 1 / 3], atol=0.02)
    np.testing.assert_allclose(weights_of(1000.0 + said, 1000.0 + values), weights_of(said, values), atol=1e-3)


def test_company_helps_where_boosting_alone_does_not_fit():
    """The truth is linear: a new row is scored better than by boosting alone, and the linear model has most weight."""
    contract, new = agree('"score"'), table(2000, seed=9)
    positive = new["bad"].to_numpy() == 1
    pool = score_rows(table(800), contract, "bank")[1]
    alone = score_rows(table(800), contract, "bank", scorer=HistGradientBoostingClassifier(random_state=0))[1]
    told = [scorer.score(new)[contract.score_of("bank")[0]].to_numpy() for scorer in (pool, alone)]
    assert log_loss(told[0], positive) < log_loss(told[1], positive) - 0.01
    assert pool.models[-1].weights[2] > 0.5
    assert {tuple(model.weights) for model in pool.models} == {tuple(pool.models[-1].weights)}


@pytest.mark.parametrize("label", [CLASSES, NUMBER])
def test_classes_and_numbers_are_scored_in_company_too(label, tmp_path):
    of = "number" if label == NUMBER else "classes"
    rows, scorer = score_rows(table(200, of=of), agree('{ kind = "score", folds = 2 }', label=label), "bank")
    assert np.isfinite(rows.scores).all()
    assert sum(scorer.models[-1].weights) == pytest.approx(1.0)
    scorer.save(tmp_path / "bank.scorer")
    new = table(50, of=of, seed=3)
    assert Scorer.load(tmp_path / "bank.scorer").score(new).equals(scorer.score(new))


def test_a_large_table_has_boosting_alone(monkeypatch):
    monkeypatch.setattr(_scoring_rows, "POOLED_ROWS", 299)
    _, scorer = score_rows(table(300), agree('"score"'), "bank")
    assert {type(model) for model in scorer.models} == {HistGradientBoostingClassifier}
