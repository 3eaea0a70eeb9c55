"""From a table to scored rows: the same whatever the order, the pieces and the threads; scores of others judged."""

import datetime
import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from tests.unit.rows.people import SECRET, agree, lines, people

from radocraft.errors import ContractMismatch, DataError, MissingColumn, NotFinite, UnknownLabel
from radocraft.rows import Scorer, score_rows
from radocraft.rows import _chunks as chunks
from radocraft.rows import _parallel as parallel

LINEAR = LogisticRegression()
ELSEWHERE = '{ kind = "score", column = "told", fitted_elsewhere = true }'


def quick() -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(max_iter=6, learning_rate=0.5, random_state=0)


def few_columns(rows: int = 3000) -> pa.Table:
    """Many people who are alike in all that the table says."""
    rng = np.random.default_rng(0)
    bad = rng.integers(0, 2, rows)
    member = rng.random(rows) < 0.3 + 0.3 * bad
    return pa.table({"bad": bad, "age": rng.integers(30, 50, rows), "member": member})


@pytest.mark.parametrize("table", [people(3000), few_columns()], ids=["many columns", "few columns"])
@pytest.mark.parametrize("fit_rows", [10**6, 700], ids=["all", "sampled"])
def test_scores_depend_neither_on_chunks_nor_on_threads_nor_on_the_run(table, fit_rows, monkeypatch, tmp_path):
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=500)

    def scored(cores: int, chunk: int):
        monkeypatch.setattr(parallel, "cores", lambda: cores)
        monkeypatch.setattr(chunks, "_CHUNK", chunk)
        rows, scorer = score_rows(tmp_path / "t.parquet", agree(), "bank", scorer=LINEAR, fit_rows=fit_rows)
        again, _ = score_rows(tmp_path / "t.parquet", agree(), "bank", keep=scorer)
        assert lines(again) == lines(rows), "the scorer that was kept scores alike"
        return lines(rows), scorer

    first, scorer = scored(1, 2**16)
    for cores, chunk in ((4, 2**16), (3, 1)):
        found, other = scored(cores, chunk)
        assert found == first
        assert other.rows == scorer.rows


@pytest.mark.parametrize("table", [people(800), few_columns(1500)], ids=["many columns", "few columns"])
def test_the_order_of_rows_changes_nothing(table):
    turned = table.take(np.random.default_rng(3).permutation(len(table)))
    one, scorer = score_rows(table, agree(), "bank", scorer=quick())
    other, _ = score_rows(turned, agree(), "bank", scorer=quick())
    assert lines(one) == lines(other)
    assert lines(score_rows(turned, agree(), "bank", keep=scorer)[0]) == lines(one)


def test_folds_and_sample_depend_on_the_seed():
    contract, table = agree(), people(1500)
    one, other = (score_rows(table, contract, "bank", scorer=LINEAR, seed=seed) for seed in (0, 1))
    assert lines(one[0]) != lines(other[0])
    assert np.corrcoef(np.sort(one[0].scores), np.sort(other[0].scores))[0, 1] > 0.99
    sampled = [
        score_rows(table, contract, "bank", scorer=LINEAR, fit_rows=400, seed=seed)[1].models[-1][-1].coef_.tolist()
        for seed in (0, 0, 1)
    ]
    assert sampled[0] == sampled[1] != sampled[2]


def test_a_sampled_fit_is_about_as_good_and_scores_every_row():
    table = people(6000)
    whole, scorer = score_rows(table, agree(), "bank", scorer=LINEAR)
    sampled, other = score_rows(table, agree(), "bank", scorer=LINEAR, fit_rows=3000)
    assert 2500 < other.rows <= 3000
    assert len(sampled) == len(whole) == 6000
    assert other.performance.auc == pytest.approx(scorer.performance.auc, abs=0.03)
    assert [line[:2] for line in lines(sampled)] == [line[:2] for line in lines(whole)]


def tells(rows: int = 800) -> dict[str, pa.Array]:
    """Columns that tell the label by nothing but a category, a date, a truth value, or a gap."""
    rng = np.random.default_rng(0)
    bad = np.arange(rows) % 2
    word = [f"w{2 * at + one:02}" for at, one in zip(rng.integers(0, 20, rows), bad, strict=True)]
    day = [datetime.date(2020, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 300, rows) + 300 * bad]
    return {
        "category": pa.array(word),
        "date": pa.array(day),
        "truth value": pa.array(bad == 1),
        "gap": pa.array([None if one else float(x) for one, x in zip(bad, rng.normal(size=rows), strict=True)]),
        "gap beside one value": pa.array([None if one else "there" for one in bad]),
        "number as text": pa.array([f"{x:.3f}" for x in rng.random(rows) + bad]),
    }


@pytest.mark.parametrize("name", tells())
def test_categories_dates_and_gaps_go_to_the_booster_as_they_are(name):
    column = tells()[name]
    rows = len(column)
    age = np.random.default_rng(1).integers(18, 80, rows)
    table = pa.table({"bad": np.arange(rows) % 2, "age": age, "x": column})
    _, scorer = score_rows(table, agree(), "bank", scorer=quick())
    assert scorer.performance.auc > 0.99


def told_by(table: pa.Table, scores: np.ndarray) -> pa.Table:
    return table.append_column("told", pa.array(scores))


def test_scores_fitted_elsewhere_are_calibrated_whatever_they_are():
    """As probabilities, as log-odds, or as any number that rises with the label's odds."""
    table = people(2000, seed=1)
    scorer = score_rows(people(2000, seed=2), agree(), "bank", scorer=LINEAR)[1]
    honest = scorer.score(table)["risk"].to_numpy()
    found = []
    for told in (honest, expit(honest), 10.0 * honest + 3.0):
        given = told_by(table.select(["bad", "age"]), told)
        rows, kept = score_rows(given, agree(ELSEWHERE), "bank")
        assert not kept.models
        assert np.corrcoef(np.sort(rows.scores), np.sort(honest))[0, 1] > 0.99
        assert abs(kept.performance.log_loss - scorer.performance.log_loss) < 0.05
        found.append(kept.score(given)["risk"].to_numpy())
    np.testing.assert_allclose(found[1], found[0], atol=2 / 1024)
    np.testing.assert_allclose(found[2], found[0], atol=2 / 1024)


def test_scores_of_a_model_that_has_not_seen_the_rows_are_not_noted():
    scorer = score_rows(people(600, seed=2), agree(), "bank", scorer=LINEAR)[1]
    table = people(600, seed=1)
    honest = scorer.score(table)["risk"].to_numpy()
    assert not score_rows(told_by(table, honest), agree(ELSEWHERE), "bank")[1].notes


def test_scores_of_a_model_that_has_seen_the_rows_are_noted():
    table = people(600)
    bad = table["bad"].to_numpy()
    seen = 2.0 * bad - 1.0 + np.random.default_rng(0).normal(0, 0.4, len(bad))
    _, scorer = score_rows(told_by(table, seen), agree(ELSEWHERE), "bank")
    assert len(scorer.notes) == 1
    assert "'told' orders these rows far better" in scorer.notes[0]
    assert "give scores out of fold" in scorer.notes[0]


def test_scores_that_are_missing_or_of_numbers_are_put_right_too():
    table, rng = people(1000).select(["bad", "age"]), np.random.default_rng(0)
    told = pa.array([None if at % 4 == 0 else float(x) for at, x in enumerate(rng.normal(size=1000))])
    rows, _ = score_rows(table.append_column("told", told), agree(ELSEWHERE), "bank")
    assert np.isfinite(rows.scores).all()
    values = rng.normal(size=1000)
    table = table.set_column(0, "bad", pa.array(7.0 * values + 2.0))
    rows, scorer = score_rows(told_by(table, values), agree(ELSEWHERE, label='kind = "numeric"'), "bank")
    assert scorer.performance.r2 == pytest.approx(1.0)
    np.testing.assert_allclose(rows.scores, rows.values, atol=1e-9)


def test_classes_have_a_score_each_and_numbers_are_expected():
    table, rng = people(900), np.random.default_rng(0)
    income = np.nan_to_num(table["income"].to_numpy(zero_copy_only=False))
    classes = pa.array(np.digitize(income + 0.3 * rng.normal(size=900), [-0.3, 0.8]))
    rows, scorer = score_rows(
        table.set_column(0, "bad", classes), agree(label="classes = [0, 1, 2]"), "bank", scorer=LINEAR
    )
    assert rows.scores.shape == (900, 3)
    assert scorer.names == ("risk=0", "risk=1", "risk=2")
    assert scorer.performance.error < 0.3
    numbers = table.set_column(0, "bad", pa.array(10.0 * income + 5.0))
    rows, scorer = score_rows(numbers, agree(label='kind = "numeric"'), "bank", scorer=Ridge())
    assert sorted(rows.values) == sorted(10.0 * income + 5.0)
    assert scorer.performance.r2 > 0.6


def test_the_key_comes_beside_the_score_and_is_none_of_the_models_columns(tmp_path):
    (tmp_path / "secret").write_bytes(SECRET)
    hashed = f'[[key]]\nname = "born"\nhash = 50\nsecret = "{hashlib.sha256(SECRET).hexdigest()}"'
    for key, values in ((hashed, 50), ('[[key]]\nname = "born"\nday_of_year = true', 366)):
        rows, scorer = score_rows(people(), agree(key=key), "bank", scorer=LINEAR, secret=tmp_path / "secret")
        assert "born" not in {column.name for column in scorer.columns}
        assert rows.keys is not None
        assert rows.keys.min() >= 0
        assert rows.keys.max() == pytest.approx(values - 1, abs=12)
    assert score_rows(people(), agree(), "bank", scorer=LINEAR)[0].keys is None


def test_columns_may_be_named_and_the_shared_ones_are_always_there():
    contract = agree('{ kind = "score", of = ["income"], model = "linear", folds = 3 }')
    _, scorer = score_rows(people(), contract, "bank")
    assert [column.name for column in scorer.columns] == ["age", "income"]
    assert len(scorer.models) == 4


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"income": pa.array([np.inf, 1.0] * 300)}, NotFinite, "'income' in 'Table' holds infinities"),
        ({"bad": pa.array([0, 1, 2] * 200)}, UnknownLabel, "other than '0' and '1'"),
        ({"bad": pa.array([0, 1, None] * 200)}, UnknownLabel, "missing"),
        ({"age": None}, MissingColumn, "lacks 'age'"),
        ({"bad": None}, MissingColumn, "lacks 'bad'"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(changed, error, message):
    table = people().drop_columns([*changed])
    for name, column in changed.items():
        table = table if column is None else table.append_column(name, column)
    with pytest.raises(error, match=message):
        score_rows(table, agree(), "bank", scorer=LINEAR)


def test_what_contradicts_the_contract_is_refused():
    table = people()
    with pytest.raises(MissingColumn, match=r"no column 'person'\. Correct `group`"):
        score_rows(table, agree('{ kind = "score", group = "person" }'), "bank", scorer=LINEAR)
    with pytest.raises(ContractMismatch, match="fitted elsewhere, so no other model"):
        score_rows(told_by(table, np.ones(600)), agree(ELSEWHERE), "bank", scorer=LINEAR)
    with pytest.raises(ContractMismatch, match="'bank' lacks the label"):
        score_rows(table, agree(label='positive = 1, negative = 0, held_by = ["shop"]'), "bank", scorer=LINEAR)
    with pytest.raises(DataError, match="no estimator"):
        score_rows(table, agree(), "bank", scorer="a model")


def test_a_kept_scorer_is_for_its_contract_and_its_columns():
    scorer = score_rows(people(), agree(), "bank", scorer=LINEAR)[1]
    assert isinstance(scorer, Scorer)
    with pytest.raises(ContractMismatch, match="another contract or by another peer"):
        score_rows(people(), agree('{ kind = "score", folds = 3 }'), "bank", keep=scorer)
    with pytest.raises(ContractMismatch, match="another contract or by another peer"):
        score_rows(people(), agree(), "shop", keep=scorer)
    with pytest.raises(MissingColumn, match="lacks 'income', which the scorer of 'bank' was fitted on"):
        score_rows(people().drop_columns(["income"]), agree(), "bank", keep=scorer)


def test_progress_is_told_to_the_end():
    heard = []
    score_rows(people(), agree(), "bank", scorer=LINEAR, progress=lambda *news: heard.append(news))
    assert heard[0] == ("reading rows", 0, 600)
    assert heard[-1] == ("fitting the peer's model", 600 * 6, 600 * 6)
    scorer = score_rows(people(), agree(), "bank", scorer=LINEAR)[1]
    heard.clear()
    score_rows(people(), agree(), "bank", keep=scorer, progress=lambda *news: heard.append(news))
    assert (heard[0], heard[-1]) == (("scoring", 0, 600), ("scoring", 600, 600))
