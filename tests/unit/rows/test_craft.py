"""From rows to a tally: exact sums, odd names, and every kind of bad table."""

import datetime
import math

import numpy as np
import pyarrow as pa
import pytest

from radocraft import Contract, craft
from radocraft.errors import (
    ContractError,
    ContractMismatch,
    EmptyTable,
    MissingColumn,
    NotFinite,
    UnknownLabel,
    WrongType,
)
from radocraft.sums import GRID, Bounds

CONTRACT = """
name = "risk"
label = { column = "bad", positive = 1, negative = 0 }
shared = [{ name = "age", edges = [40] }, { name = "town", categories = ["Bern", "Chur"] }]
peers.bank.features = { income = "numeric", owner = "boolean", job = { kind = "categorical", categories = ["clerk"] } }
peers.shop.features = { visits = "numeric" }
"""
GOOD = {
    "bad": [0, 1, 0, 1],
    "age": [30.0, 50.0, 60.0, None],
    "town": ["Bern", "Chur", "Paris", None],
    "income": [1.0, 2.0, None, 4.0],
    "owner": [True, False, None, True],
    "job": ["clerk", "pilot", None, "clerk"],
}


def bank(contract: str = CONTRACT, bounds: Bounds | None = None, **changed):
    columns = {name: values for name, values in {**GOOD, **changed}.items() if values is not None}
    return craft(pa.table(columns), Contract.parse(contract), "bank", bounds=bounds)


def numeric_bank(values: list, scale: str = "") -> float:
    """The sum of one numeric column in one block, in raw units."""
    contract = f"""
    name = "n"
    label = {{ column = "y", positive = 1, negative = 0 }}
    peers.p.features = {{ x = {{ kind = "numeric"{scale} }} }}
    """
    tally = craft(pa.table({"y": [1] * len(values), "x": values}), Contract.parse(contract), "p", bounds=None)
    return float(tally.sums[0, 0] * tally.unit[0] + tally.present[0, 0] * tally.origin[0])


def test_a_tally_holds_rows_sums_and_present_values_by_block():
    tally = bank()
    assert tally.columns == ("income", "job=clerk", "job=missing", "job=unseen", "owner")
    np.testing.assert_array_equal(tally.codes, [[0, 0], [1, 1], [1, 3], [2, 2]])
    np.testing.assert_array_equal(tally.labels, [-1, 1, -1, 1])
    np.testing.assert_array_equal(tally.rows, [1, 1, 1, 1])
    np.testing.assert_array_equal(tally.present[:, [0, 4]], [[1, 1], [1, 1], [0, 0], [1, 1]])
    raw = tally.rebased(np.zeros(5), np.ones(5))
    np.testing.assert_allclose(raw.sums[:, 0], [1.0, 2.0, 0.0, 4.0])
    np.testing.assert_array_equal(raw.sums[:, 1:4], [[1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]])
    np.testing.assert_allclose(raw.sums[:, 4], [1.0, 0.0, 0.0, 1.0])
    negative, positive = (np.diag(moments) for moments in raw.moments)
    np.testing.assert_allclose(negative, [1.0, 1, 1, 0, 1, 1, 2, 2, 2, 1], atol=1e-12)
    np.testing.assert_allclose(positive, [20.0, 1, 0, 1, 1, 2, 2, 2, 2, 2], atol=1e-12)


def test_a_bounded_tally_holds_whole_steps_of_the_grid():
    """A missing value counts as the centre; a value far out is clipped; a long row is shortened as a whole."""
    contract = CONTRACT.replace('income = "numeric"', 'income = { kind = "numeric", centre = 2, scale = 0.5 }')
    tally = bank(contract, bounds=Bounds(row=100.0), income=[1.0, 2.25, None, 1e200])
    np.testing.assert_array_equal(tally.rows, [1, 1, 1, 1])
    np.testing.assert_array_equal(tally.present, np.ones((4, 5)))
    np.testing.assert_array_equal(tally.sums[:, 0], [-2 * GRID, GRID // 2, 0, 4 * GRID])
    np.testing.assert_array_equal(tally.sums[:, 1:4], GRID * np.array([[1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]))
    np.testing.assert_array_equal(tally.sums[:, 4], [GRID, -GRID, 0, GRID])
    np.testing.assert_array_equal(np.diag(tally.moments.sum(axis=0))[0], GRID**2 * (4 + 0.25 + 16))
    short = bank(contract, bounds=Bounds(row=1.0), income=[1.0, 2.25, None, 1e200])
    lengths = np.linalg.norm(short.sums, axis=1) / GRID
    assert (lengths <= 3**0.5).all()
    np.testing.assert_allclose(lengths[[0, 3]], 3**0.5, rtol=2e-3)
    np.testing.assert_array_equal(short.sums[1:3], tally.sums[1:3])


@pytest.mark.parametrize("scale", ["", ", centre = 0, scale = 1", ", centre = 1e6, scale = 0.001"])
def test_sums_are_as_exact_as_doubles_allow(scale):
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(1e6, 1.0, 5000), -rng.normal(1e6, 1.0, 5000), rng.lognormal(0, 8, 2000)])
    rng.shuffle(values)
    exact, size = math.fsum(values), math.fsum(np.abs(values))
    assert abs(numeric_bank(values.tolist(), scale) - exact) <= 1e-13 * size


def test_single_precision_is_summed_in_double_precision():
    values = np.full(300_000, 0.1, dtype=np.float32)
    exact = math.fsum(values.astype(np.float64))
    assert numeric_bank(pa.array(values), ", centre = 0, scale = 1") == pytest.approx(exact, rel=1e-13)


def test_null_and_nan_are_the_same_missing_value():
    contract = Contract.parse(CONTRACT)
    tallies = []
    for gap in (None, float("nan")):
        columns = {**GOOD, "income": pa.array([1.0, 2.0, gap, 4.0]), "age": pa.array([30.0, 50.0, 60.0, gap])}
        tallies.append(craft(pa.table(columns), contract, "bank", bounds=None))
    for name in ("codes", "rows", "sums", "present", "moments"):
        np.testing.assert_array_equal(getattr(tallies[0], name), getattr(tallies[1], name))


def test_a_column_without_a_single_value():
    tally = bank(income=pa.nulls(4, pa.float64()), owner=pa.nulls(4))
    np.testing.assert_array_equal(tally.sums[:, [0, 4]], 0.0)
    np.testing.assert_array_equal(tally.present[:, [0, 4]], 0)


def test_a_column_missing_in_one_block_only():
    tally = bank(bad=[0, 0, 1, 1], age=[30, 30, 50, 50], town=["Bern"] * 4, income=[None, None, 3.0, 5.0])
    np.testing.assert_array_equal(tally.present[:, 0], [0, 2])
    assert tally.sums[0, 0] == 0.0


ODD = ["label", "rows", "value_0", "code_0", "sum_0", "present_0", "misread", "select", 'a "b"', "it's", "ü ß", "a.b"]


@pytest.mark.parametrize("name", [*ODD, "encoded", "radocraft_rows", "group", "--", "x=y", "{}", "%s", " lead", "A"])
@pytest.mark.parametrize("role", ["label", "shared", "private"])
def test_columns_may_have_any_name(name, role):
    names = {"label": "l", "shared": "s", "private": "p", role: name}
    contract = Contract.model_validate(
        {
            "name": "odd",
            "label": {"column": names["label"], "positive": 1, "negative": 0},
            "shared": [{"name": names["shared"], "edges": [0]}],
            "peers": {"p": {"features": {names["private"]: "numeric"}}},
        }
    )
    table = pa.table({names["label"]: [1, 0], names["shared"]: [-1, 1], names["private"]: [2.0, 3.0]})
    tally = craft(table, contract, "p", bounds=None).rebased(np.zeros(1), np.ones(1))
    assert tally.codes.tolist() == [[0], [1]]
    assert tally.labels.tolist() == [1, -1]
    np.testing.assert_allclose(tally.sums, [[2.0], [3.0]])


def test_all_odd_names_at_once():
    contract = Contract.model_validate(
        {
            "name": "odd",
            "label": {"column": "label", "positive": 1, "negative": 0},
            "shared": [{"name": "rows", "edges": [0]}, {"name": "code_0", "edges": [0]}],
            "peers": {"p": {"features": {name: "numeric" for name in ODD if name not in ("label", "rows", "code_0")}}},
        }
    )
    table = {name: [float(at), -float(at)] for at, name in enumerate(ODD)}
    rows = pa.table({**table, "label": [1, 0], "rows": [1, -1], "code_0": [-1, 1]})
    tally = craft(rows, contract, "p", bounds=None)
    assert (tally.codes.tolist(), tally.labels.tolist()) == ([[0, 1], [1, 0]], [-1, 1])
    raw = tally.rebased(np.zeros(len(tally.columns)), np.ones(len(tally.columns)))
    np.testing.assert_allclose(raw.sums[1], [ODD.index(name) for name in tally.columns], atol=1e-12)


def test_a_peer_may_call_its_columns_otherwise():
    contract = CONTRACT + 'peers.bank.columns = { bad = "out", age = "years", income = "pay" }\n'
    tally = bank(contract, bad=None, out=GOOD["bad"], age=None, years=GOOD["age"], income=None, pay=GOOD["income"])
    np.testing.assert_array_equal(tally.rows, bank().rows)
    np.testing.assert_array_equal(tally.sums, bank().sums)


def test_all_missing_columns_are_listed_at_once():
    with pytest.raises(MissingColumn, match=r"lacks 'age', 'income'.*It has 'bad', 'town'.*peers\.bank\.columns"):
        bank(age=None, income=None)


def test_names_are_told_apart_by_case():
    with pytest.raises(MissingColumn, match="lacks 'age'"):
        bank(age=None, AGE=GOOD["age"])


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"income": ["1", "2", "x", "secret"]}, WrongType, "'income' in 'Table' holds text"),
        ({"age": ["1", "2", "x", "3"], "owner": ["?", "yes", "no", None]}, WrongType, "'age', 'owner'"),
        ({"owner": [0, 1, 2, 1]}, WrongType, "'owner'"),
        ({"income": [datetime.date(2020, 1, 1)] * 4}, WrongType, 'a feature of kind "date"'),
        ({"age": [[1]] * 4, "income": [{"a": 1}] * 4}, WrongType, "'age', 'income'"),
        ({"bad": [0, 1, 2, 1]}, UnknownLabel, "other than '0' and '1'"),
        ({"bad": [0, 1, None, 1]}, UnknownLabel, "missing in some rows"),
        ({"bad": ["a", "b", "a", "b"]}, UnknownLabel, r"\[label\]"),
        ({"bad": [datetime.date(2020, 1, 1)] * 4}, UnknownLabel, r"\[label\]"),
        ({"income": [1.0, math.inf, 2.0, 3.0]}, NotFinite, "'income' in 'Table' holds infinities"),
        ({"income": [1.0, math.inf, -math.inf, math.nan]}, NotFinite, "'income'"),
        ({"income": ["1", "inf", "2", "3"]}, NotFinite, "'income'"),
    ],
)
@pytest.mark.parametrize("bounds", [None, Bounds()], ids=["exact", "bounded"])
def test_a_table_that_does_not_fit_is_refused_without_showing_a_value(bounds, changed, error, message):
    with pytest.raises(error, match=message) as raised:
        bank(bounds=bounds, **changed)
    assert raised.value.exit_code == 1
    for value in ("secret", "x", "2020"):
        assert value not in str(raised.value).replace("text", "")


@pytest.mark.parametrize("income", [[1.0, 1e200, 2.0, 3.0], [1.7e308, -1.7e308, 2.0, 3.0]])
def test_exact_sums_of_numbers_too_large_to_square_are_refused(income):
    with pytest.raises(NotFinite, match="too large to square") as raised:
        bank(income=income)
    assert "e+200" not in str(raised.value)


def test_a_table_without_rows_is_refused():
    with pytest.raises(EmptyTable, match="has no rows"):
        craft(pa.table(GOOD).slice(0, 0), Contract.parse(CONTRACT), "bank")


def test_a_file_with_nothing_but_a_header_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text(",".join(GOOD) + "\n")
    with pytest.raises(EmptyTable, match="has no rows"):
        craft(tmp_path / "t.csv", Contract.parse(CONTRACT), "bank")


def test_infinities_in_a_binned_feature_have_a_bin():
    assert bank(age=[-math.inf, math.inf, 50.0, 30.0]).codes[:, 0].tolist() == [0, 0, 1, 1]


def test_large_numbers_with_a_fitting_scale_are_fine():
    contract = CONTRACT.replace('income = "numeric"', 'income = { kind = "numeric", centre = 0, scale = 1e200 }')
    assert bank(contract, income=[1e200, 2e200, -1e200, 0.0]).sums[:, 0].sum() == pytest.approx(2.0)


def test_an_unknown_peer_is_refused():
    with pytest.raises(ContractError, match=r"no peer 'bakery'.*bank, shop"):
        craft(pa.table(GOOD), Contract.parse(CONTRACT), "bakery")


def test_rows_are_only_added_to_a_tally_of_the_same_contract_and_peer():
    contract, tally = Contract.parse(CONTRACT), bank(bounds=Bounds())
    other = Contract.parse(CONTRACT.replace("[40]", "[41]"))
    with pytest.raises(ContractMismatch, match="another contract") as raised:
        craft(pa.table(GOOD), other, "bank", onto=tally)
    assert raised.value.exit_code == 3
    with pytest.raises(ContractMismatch, match="another peer than 'shop'"):
        craft(pa.table({**GOOD, "visits": [1.0] * 4}), contract, "shop", onto=tally)
    twice = craft(pa.table(GOOD)[::-1], contract, "bank", onto=tally)
    np.testing.assert_array_equal(twice.rows, 2 * tally.rows)
    np.testing.assert_array_equal(twice.sums, 2 * tally.sums)
    for bounds in (None, Bounds(column=3.0)):
        with pytest.raises(ContractMismatch, match="other bounds"):
            craft(pa.table(GOOD)[::-1], contract, "bank", bounds=bounds, onto=tally)


def test_progress_is_told_to_the_end():
    told = []
    contract = Contract.parse(CONTRACT)
    craft(pa.table(GOOD), contract, "bank", progress=lambda *news: told.append(news))
    assert (told[0], told[-1]) == (("sums and moments", 0, 4), ("sums and moments", 4, 4))
