"""Tables of scores are brought together row by row."""

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.scored import scored_model

from radocraft.errors import ContractMismatch, MissingColumn, NotFinite
from radocraft.model import ScoreModel

BANK = pa.table({"who": [1, 2, 3], "bank_score": [1.0, -1.0, 0.5], "signature": [0, 1, 2]})
SHOP = pa.table({"who": [3, 1, 4], "shop_score": [0.2, 0.4, 0.9], "age": [70, 30, 50]})


@pytest.fixture(scope="module")
def model() -> ScoreModel:
    return scored_model(1000)


def test_by_a_column_rows_meet_whatever_their_order(model: ScoreModel) -> None:
    """Rows and people are the first table's; whom the other lacks is scored without it."""
    scores = model.predict([BANK, SHOP], on="who").score
    joined = pa.table({"bank_score": [1.0, 0.5], "shop_score": [0.4, 0.2], "signature": [0, 2]})
    np.testing.assert_array_equal(scores[[0, 2]], model.predict(joined).score)
    np.testing.assert_array_equal(scores[1:2], model.predict(BANK.slice(1, 1).drop_columns(["who"])).score)


def test_without_one_they_meet_in_their_order(model: ScoreModel) -> None:
    aligned = SHOP.take([1, 0, 2]).drop_columns(["age"])
    joined = BANK.append_column("shop_score", aligned.column("shop_score"))
    np.testing.assert_array_equal(model.predict([BANK, aligned]).score, model.predict(joined).score)
    with pytest.raises(ContractMismatch, match=r"has 2 rows and .* 3\. Say by which column"):
        model.predict([BANK, aligned.slice(0, 2)])


def test_signatures_are_read_off_the_shared_features_too(model: ScoreModel) -> None:
    aged = pa.table({"bank_score": [1.0, -1.0, 0.5, 0.5], "age": [30, 50, 70, None]})
    coded = pa.table({"bank_score": [1.0, -1.0, 0.5, 0.5], "signature": [0, 1, 2, 3]})
    np.testing.assert_array_equal(model.predict(aged).score, model.predict(coded).score)


def test_the_first_table_that_has_a_signature_says_it(model: ScoreModel) -> None:
    other = SHOP.take([1, 0, 2]).drop_columns(["age", "who"]).append_column("signature", pa.array([2, 2, 2]))
    here = BANK.append_column("shop_score", other.column("shop_score"))
    np.testing.assert_array_equal(model.predict([BANK, other]).score, model.predict(here).score)


@pytest.mark.parametrize(
    ("tables", "on", "error", "words"),
    [
        ([BANK, SHOP.drop_columns(["who"])], "who", MissingColumn, "has no column 'who'"),
        ([BANK, pa.concat_tables([SHOP, SHOP])], "who", ContractMismatch, "same 'who' in several rows"),
        ([SHOP.drop_columns(["age"])], None, MissingColumn, "lacks the shared features"),
        ([SHOP.drop_columns(["age"]), BANK], "who", MissingColumn, "people of whom no table has them"),
        ([BANK.set_column(2, "signature", pa.array([0, 1, 4]))], None, ContractMismatch, "under another contract"),
        ([BANK.set_column(2, "signature", pa.array([0, -1, 2]))], None, ContractMismatch, "under another contract"),
        ([BANK.set_column(1, "bank_score", pa.array([0.0, np.inf, 1]))], None, NotFinite, "infinities in 'bank_score'"),
    ],
)
def test_tables_that_do_not_fit_together_are_refused(model: ScoreModel, tables, on, error, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=words):
        model.predict(tables, on=on)
