"""Raw columns to codes and values, asked of a real DuckDB."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

from radocraft.contract._columns import Column, private_columns
from radocraft.contract._contract import Contract
from radocraft.contract._features import Boolean, Categorical, Numeric, Shared
from radocraft.rows._encoding import Reader
from radocraft.rows.engines._base import ROWS
from radocraft.rows.engines._opening import open_source

NAN = float("nan")


def reader(table: pa.Table, *, shared: Shared | None = None, feature=None, label=(1, 0)) -> tuple[Reader, object]:
    source = open_source(table)
    contract = Contract.model_validate(
        {
            "name": "n",
            "label": {"column": "y", "positive": label[0], "negative": label[1]},
            "shared": [shared] if shared else [],
            "peers": {"p": {"features": {"x": feature or Numeric()}}},
        }
    )
    return Reader(contract, "p", source.kinds()), source


def answers(source, *expressions: exp.Expr, rows: exp.Expr = ROWS) -> list[list]:
    """The expressions, row by row."""
    named = [expression.as_(f"e{at}") for at, expression in enumerate(expressions)]
    return [list(row.values()) for row in source.table(exp.select(*named).from_(rows)).to_pylist()]


def codes(values: list, shared: Shared, kind: pa.DataType | None = None) -> list[str]:
    read, source = reader(pa.table({"s": pa.array(values, kind)}), shared=shared)
    return [shared.codes[code] for (code,) in answers(source, read.code(shared))]


def values_of(values: list, feature, kind: pa.DataType | None = None) -> list[list]:
    read, source = reader(pa.table({"x": pa.array(values, kind)}), feature=feature)
    return answers(source, *read.values("x", feature), rows=read.rows(ROWS))


def misread(values: list, feature, kind: pa.DataType | None = None) -> list[bool]:
    read, source = reader(pa.table({"x": pa.array(values, kind)}), feature=feature)
    expression = read.misread()
    return [False] * len(values) if expression is None else [row[0] for row in answers(source, expression)]


BINS = Shared(name="s", edges=(-1.5, 0.0, 40.0))
LOW, BELOW, MIDDLE, HIGH, GONE = BINS.codes


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (-1.5, BELOW),
        (np.nextafter(-1.5, -2), LOW),
        (-0.0, MIDDLE),
        (0.0, MIDDLE),
        (-5e-324, BELOW),
        (40.0, HIGH),
        (np.nextafter(40.0, 0), MIDDLE),
        (1.7e308, HIGH),
        (-1.7e308, LOW),
        (float("inf"), HIGH),
        (float("-inf"), LOW),
        (NAN, GONE),
        (None, GONE),
    ],
)
def test_bins_are_closed_on_the_left(value, code):
    assert codes([value], BINS, pa.float64()) == [code]


def test_bins_of_other_kinds_of_number():
    assert codes([39, 40, None], BINS, pa.int8()) == [MIDDLE, HIGH, GONE]
    assert codes([decimal.Decimal("39.99"), decimal.Decimal("40.00")], BINS) == [MIDDLE, HIGH]
    assert codes([" 39.9 ", "4e1", "-0", None, "NaN"], BINS) == [MIDDLE, HIGH, MIDDLE, GONE, GONE]
    assert codes([True, False], BINS) == [MIDDLE, MIDDLE]


def test_edges_keep_every_digit_on_the_way_into_the_statement():
    edge = 0.1 + 0.2
    shared = Shared(name="s", edges=(edge,))
    assert codes([edge, np.nextafter(edge, 0)], shared) == [shared.codes[1], shared.codes[0]]


def test_categories_that_nobody_agreed_on_are_unseen_and_absent_ones_missing():
    shared = Shared(name="s", categories=("north", "south's", 'so"uth', "ü"))
    seen = codes(["north", "south's", 'so"uth', "ü", "North", "", None], shared)
    assert seen == ["north", "south's", 'so"uth', "ü", "unseen", "unseen", "missing"]


@pytest.mark.parametrize("values", [[1, 2, 3, None], [1.0, 2.0, 3.0, NAN], ["1", " 2.0 ", "x", None]])
def test_numbers_as_categories_are_compared_as_numbers(values):
    assert codes(values, Shared(name="s", categories=(1, 2))) == ["1", "2", "unseen", "missing"]


@pytest.mark.parametrize("values", [[True, False, None], ["TRUE", " no ", None], [1, 0, None], [1.0, 0.0, NAN]])
def test_truth_values_as_categories(values):
    assert codes(values, Shared(name="s", categories=(True, False))) == ["true", "false", "missing"]


def test_dates_are_categories_by_their_text():
    day = datetime.date(2020, 1, 2)
    assert codes([day, None], Shared(name="s", categories=("2020-01-02",))) == ["2020-01-02", "missing"]
    assert codes([day], Shared(name="s", categories=(2020,))) == ["unseen"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False, None], None),
        ([1, 0, None], pa.int8()),
        ([1.0, 0.0, NAN], pa.float32()),
        ([decimal.Decimal("1.00"), decimal.Decimal("0.00"), None], None),
        (["Yes", " f ", None], None),
        (["1", "0.0", "nan"], None),
    ],
)
def test_booleans_in_every_clothing(values, kind):
    assert values_of(values, Boolean(), kind) == [[1.0], [0.0], [None]]
    assert misread(values, Boolean(), kind) == [False, False, False]


@pytest.mark.parametrize("value", [2, 0.5, "maybe", "", " "])
def test_what_is_neither_yes_nor_no_is_told(value):
    assert misread([value], Boolean()) == [True]


def test_text_is_read_as_numbers_where_it_is_one():
    assert values_of([" 1.5", "-2e3 ", "NaN", None], Numeric()) == [[1.5], [-2000.0], [None], [None]]
    assert misread([" 1.5", "-2e3 ", "NaN", None, "1,5", "", "abc"], Numeric()) == [False] * 4 + [True] * 3


def test_null_and_nan_are_the_same_missing():
    assert values_of([NAN, None, 1.0], Numeric(), pa.float32()) == [[None], [None], [1.0]]


def test_a_categorical_feature_has_a_column_for_every_code():
    feature = Categorical(categories=("a", 3))
    rows = values_of(["a", "3", "3.0", None, "b"], feature)
    assert rows == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def test_hundreds_of_categories_are_looked_up_as_a_few_are_compared():
    """Words, numbers and truth values in one list; the first that equals a cell counts."""
    words = [f"town {at}" for at in range(300)]
    categories = ("it's", *words, *range(-150, 150), 0.5, True)
    cells = ["it's", *words, *map(str, range(-160, 160)), " 7.0", "0.50", "yes", "Town 1", None]
    numbered = {str(category): str(category) for category in categories} | {" 7.0": "7", "0.50": "0.5", "yes": "true"}
    expected = ["missing" if cell is None else numbered.get(cell, "unseen") for cell in cells]
    assert codes(cells, Shared(name="s", categories=categories)) == expected


@pytest.mark.parametrize(
    ("values", "label"),
    [
        ([1, 0, 2, None], (1, 0)),
        ([1.0, 0.0, 0.5, NAN], (1, 0)),
        (["1", "0.0", "x", None], (1, 0)),
        (["yes", "no", "Yes", None], ("yes", "no")),
        ([True, False, None, None], (True, False)),
        (["t", "f", "x", None], (True, False)),
    ],
)
def test_labels_are_plus_one_minus_one_or_unknown(values, label):
    read, source = reader(pa.table({"y": pa.array(values)}), label=label)
    assert answers(source, read.label()) == [[1], [-1], [None], [None]]


def test_private_columns_stand_in_the_order_of_their_names():
    contract = Contract.model_validate(
        {
            "name": "n",
            "label": {"column": "y", "positive": 1, "negative": 0},
            "peers": {
                "p": {
                    "features": {
                        "z": {"kind": "numeric", "centre": 1, "scale": 2},
                        "b": "boolean",
                        "a": "numeric",
                        "c": {"kind": "categorical", "categories": [5]},
                    }
                }
            },
        }
    )
    assert private_columns(contract, "p") == (
        Column("a", "a", None, None),
        Column("b", "b", 0.5, 0.5),
        Column("c=5", "c"),
        Column("c=missing", "c"),
        Column("c=unseen", "c"),
        Column("z", "z", 1.0, 2.0),
    )
