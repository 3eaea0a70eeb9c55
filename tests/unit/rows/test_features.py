"""What a model is fitted on: columns as they are, read by what is in them."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from sqlglot import exp
from tests.unit.rows.people import people

from radocraft.errors import DataError, MissingColumn, WrongType
from radocraft.rows._features import MOST_CATEGORIES, as_score, candidates, choose
from radocraft.rows.engines._base import ROWS
from radocraft.rows.engines._opening import open_source

HOW = {"age": "number", "bad": "number", "born": "date", "income": "number", "job": "category"}
HOW |= {"member": "boolean", "since": "date"}


def chosen(table: pa.Table, *, asked_for: bool = False) -> dict[str, str]:
    return {c.name: c.how for c in choose(open_source(table), table.column_names, asked_for=asked_for).columns}


def read(table: pa.Table, name: str) -> list[float]:
    """A column's numbers, as the model gets them."""
    source = open_source(table)
    (column,) = choose(source, [name], asked_for=True).columns
    query = exp.select(column.expression(source.kinds()[name]).as_("value")).from_(ROWS)
    return column.values(source.table(query)["value"].combine_chunks()).tolist()


def test_columns_are_read_by_what_the_engine_holds():
    assert chosen(people()) == HOW


def test_a_file_of_text_is_read_the_same(tmp_path):
    pyarrow.csv.write_csv(people(), tmp_path / "p.csv")
    source = open_source(tmp_path / "p.csv")
    assert {c.name: c.how for c in choose(source, list(source.kinds()), asked_for=False).columns} == HOW
    for name in HOW:
        assert read(tmp_path / "p.csv", name) == pytest.approx(read(people(), name), nan_ok=True), name


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, None], [1.0, 2.0, np.nan]),
        ([1.5, np.nan, None], [1.5, np.nan, np.nan]),
        ([Decimal("1.25"), Decimal("2"), None], [1.25, 2.0, np.nan]),
        ([True, False, None], [1.0, 0.0, np.nan]),
        (["yes", "no", None], [1.0, 0.0, np.nan]),
        (["1e3", " 2 ", None], [1000.0, 2.0, np.nan]),
        (["b", "a", "b", "", None], [2.0, 1.0, 2.0, 0.0, np.nan]),
        ([datetime.date(1970, 1, 3), datetime.date(1969, 12, 31), None], [2.0, -1.0, np.nan]),
        ([datetime.datetime(1970, 1, 1, 6), datetime.datetime(1970, 1, 2)], [0.25, 1.0]),
        (["1970-01-03", "1970-01-01T12:00:00", None], [2.0, 0.5, np.nan]),
        (["1", "2", "three"], [0.0, 1.0, 2.0]),
    ],
)
def test_values_become_numbers_and_missing_ones_stay_missing(values, expected):
    np.testing.assert_array_equal(read(pa.table({"x": values}), "x"), expected)


def test_of_many_categories_the_most_frequent_are_told_apart():
    words = [f"w{at:03}" for at in range(MOST_CATEGORIES + 50)]
    table = pa.table({"x": words + 3 * words[:-1] + 2 * words[50:-1]})
    found = choose(open_source(table), ["x"], asked_for=False)
    (column,) = found.columns
    assert len(column.categories) == MOST_CATEGORIES
    assert {*words[50:-1]} < {*column.categories}
    assert words[0] in column.categories, "among equals the first of the alphabet"
    assert words[-1] not in column.categories
    assert column.values(pa.array([words[-1], words[60], None, "new"])).tolist() == pytest.approx(
        [MOST_CATEGORIES, column.categories.index(words[60]), np.nan, MOST_CATEGORIES], nan_ok=True
    )
    assert any("200 most frequent" in note for note in found.notes)


def test_who_somebody_is_is_left_out_unless_it_is_asked_for():
    rows = 300
    table = pa.table(
        {
            "customer_id": np.random.default_rng(0).permutation(10**6)[:rows],
            "number": np.arange(1000, 1000 + rows),
            "name": [f"name {at}" for at in range(rows)],
            "salary": np.random.default_rng(1).permutation(10**6)[:rows],
            "born": [datetime.date(1980, 1, 1) + datetime.timedelta(days=at) for at in range(rows)],
            "paid": np.random.default_rng(1).normal(size=rows),
        }
    )
    found = choose(open_source(table), table.column_names, asked_for=False)
    assert [column.name for column in found.columns] == ["born", "paid", "salary"]
    assert sum("says who somebody is" in note for note in found.notes) == 3
    assert set(chosen(table, asked_for=True)) == {*table.column_names}


def test_a_column_that_tells_nothing_is_left_out_but_one_that_is_there_or_not_stays():
    rows = 40
    there = pa.array([None if at % 3 else "yes, once" for at in range(rows)])
    same, empty = [7] * rows, pa.nulls(rows, pa.float64())
    table = pa.table({"same": same, "empty": empty, "there": there, "x": np.arange(rows) % 4})
    assert set(chosen(table)) == {"there", "x"}
    assert set(chosen(pa.table({"v": pa.array([None if at % 3 else 1.5 for at in range(rows)])}))) == {"v"}
    with pytest.raises(DataError, match="No column of 'Table' can tell rows apart"):
        chosen(table.select(["same", "empty"]))


def test_what_no_model_can_use_is_left_out_or_refused():
    table = pa.table({"x": [1, 2, 3], "tags": [["a"], ["b"], []]})
    found = choose(open_source(table), table.column_names, asked_for=False)
    assert ([c.name for c in found.columns], found.notes) == (
        ["x"],
        ("'tags' is left out: it is neither number, truth value, date nor text",),
    )
    with pytest.raises(WrongType, match=r"'tags' in 'Table' is neither.*leave it out of `of`"):
        chosen(table, asked_for=True)
    with pytest.raises(MissingColumn, match=r"lacks 'absent'\. It has 'x', 'tags'"):
        candidates(open_source(table), ["x", "absent"])


def test_scores_from_elsewhere_are_numbers():
    table = pa.table({"risk": ["0.5", "0.1", None], "word": ["a", "b", "c"], "none": pa.nulls(3, pa.float64())})
    assert as_score(open_source(table), "risk").how == "number"
    for name in ("word", "none"):
        with pytest.raises(WrongType, match="holds no scores"):
            as_score(open_source(table), name)
    with pytest.raises(MissingColumn, match="lacks 'absent'"):
        as_score(open_source(table), "absent")
