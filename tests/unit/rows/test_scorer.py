"""A scorer that is kept scores new rows: by the model of all rows, from whatever table has its columns."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from tests.unit.rows.people import agree, people

from radocraft.errors import MissingColumn
from radocraft.rows import Scorer, open_source, score_rows


@pytest.fixture(scope="module")
def scorer() -> Scorer:
    return score_rows(people(2000), agree(), "bank", scorer=LogisticRegression())[1]


def test_new_rows_are_scored_without_a_label_in_their_order(scorer):
    new = people(500, seed=7)
    table = scorer.score(new.drop_columns(["bad"]), keep=("born",))
    assert table.column_names == ["born", "signature", "risk"]
    assert table["born"].equals(new["born"])
    np.testing.assert_array_equal(table["signature"].to_numpy(), np.digitize(new["age"].to_numpy(), [30, 45, 60]))
    share, bad = expit(table["risk"].to_numpy()), new["bad"].to_numpy()
    loss = -np.mean(np.where(bad == 1, np.log(share), np.log1p(-share)))
    assert loss == pytest.approx(scorer.performance.log_loss, abs=0.06)
    np.testing.assert_array_equal(table["risk"].to_numpy() * 1024, np.rint(table["risk"].to_numpy() * 1024))


def test_the_same_rows_have_the_same_scores_from_a_file_of_text_and_one_by_one(scorer, tmp_path):
    new = people(30, seed=7)
    expected = scorer.score(new)["risk"].to_pylist()
    pyarrow.csv.write_csv(new, tmp_path / "new.csv")
    assert scorer.score(tmp_path / "new.csv")["risk"].to_pylist() == expected
    assert [scorer.score(new.slice(at, 1))["risk"][0].as_py() for at in range(0, 30, 4)] == expected[::4]
    batches = list(scorer.score_batches(open_source(new)))
    assert sum(batch.num_rows for batch in batches) == 30


def test_unseen_categories_gaps_and_columns_of_another_type_are_scored(scorer):
    new = people(4, seed=7)
    new = new.set_column(new.column_names.index("job"), "job", pa.array(["pilot", None, "clerk", "Pilot"]))
    scores = scorer.score(new)["risk"].to_numpy()
    assert np.isfinite(scores).all()
    empty = new.set_column(new.column_names.index("income"), "income", pa.nulls(4, pa.string()))
    assert np.isfinite(scorer.score(empty)["risk"].to_numpy()).all()


def test_a_table_without_the_models_columns_or_those_to_keep_is_refused(scorer):
    with pytest.raises(MissingColumn, match=r"lacks 'age', 'since'.*empty cells are allowed"):
        scorer.score(people(5).drop_columns(["age", "since"]))
    with pytest.raises(MissingColumn, match="no column 'customer' to keep"):
        scorer.score(people(5), keep=("customer",))


def test_the_curve_and_the_performance_are_of_scores_out_of_fold(scorer):
    (curve,) = scorer.reliability
    assert sum(one.rows for one in curve) == scorer.performance.rows == scorer.rows == 2000
    assert 0.65 < scorer.performance.auc < 0.9
    assert all(abs(one.said - one.true) < 0.15 for one in curve)
