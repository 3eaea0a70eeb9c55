"""Bounds on rows: whatever is in a row, it says no more than its norm allows, in whole numbers."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from radocraft import Contract, craft
from radocraft.errors import NotFinite, PolicyError
from radocraft.sums import GRID, Bounds

CONTRACT = Contract.parse("""
name = "risk"
label = { column = "bad", positive = 1, negative = 0 }
shared = [{ name = "region", categories = ["north", "south"] }, { name = "age", edges = [40] }]

[peers.bank.features]
income = { kind = "numeric", centre = 10, scale = 2 }
job = { kind = "categorical", categories = ["clerk", "farmer"] }
member = "boolean"
curve = { kind = "spline", knots = [0, 1, 3] }
""")
SOME = st.floats(allow_nan=True, allow_infinity=False, allow_subnormal=True, width=64)
UNITS = st.tuples(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))


def numbers(width: int) -> Contract:
    features = "\n".join(f'x{at} = "numeric"' for at in range(width))
    label = 'label = { column = "y", positive = 1, negative = 0 }'
    return Contract.parse(f'name = "n"\n{label}\n[peers.bank.features]\n{features}')


@given(
    values=arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 6)), elements=SOME),
    units=UNITS,
    column=st.floats(0.1, 100.0),
    row=st.floats(0.01, 100.0),
)
def test_no_row_is_longer_than_its_norm_whatever_is_in_it(values, units, column, row):
    width = values.shape[1]
    bounds, (centre, scale) = Bounds(column=column, row=row), units
    steps = bounds.of(numbers(width), "bank", np.full(width, centre), np.full(width, scale)).bounded(values)
    assert np.array_equal(steps, np.rint(steps))
    assert np.abs(steps).max() <= column * GRID
    limit = row**2 * GRID**2 * width
    assert all(sum(int(entry) ** 2 for entry in one) <= limit for one in steps)
    assert (steps[np.isnan(values)] == 0).all()
    assert bounds.norm(numbers(width), "bank") <= row * width**0.5


def test_short_rows_keep_their_values_and_long_ones_their_direction():
    values = np.random.default_rng(0).uniform(-1.0, 1.0, size=(50, 4))
    bounding = Bounds().of(numbers(4), "bank", np.zeros(4), np.ones(4))
    np.testing.assert_allclose(bounding.bounded(values) / GRID, values, atol=0.5 / GRID)
    long = bounding.bounded(100.0 * np.sign(values)) / GRID
    np.testing.assert_allclose(long, np.sign(values) * 1.5, atol=1.0 / GRID)


def test_a_feature_counts_once_however_many_columns_but_a_spline():
    """Of the columns of a category one is 1; those of a spline may all be large."""
    width = CONTRACT.peer("bank").features["curve"].width
    assert Bounds(row=1.0).norm(CONTRACT, "bank") == pytest.approx((3 + width) ** 0.5)


def test_sums_are_exact_and_add_up():
    rng = np.random.default_rng(0)
    columns = {
        "bad": np.arange(600) % 2,
        "region": np.where(np.arange(600) // 2 % 2, "north", "south"),
        "age": np.where(np.arange(600) // 4 % 2, 30, 50),
        "income": np.where(np.arange(600) < 5, np.nan, rng.normal(10, 2, 600)),
        "job": rng.choice(["clerk", "farmer"], 600),
        "member": rng.random(600) < 0.5,
        "curve": rng.normal(1, 2, 600),
    }
    whole = craft(pa.table(columns), CONTRACT, "bank")
    parts = [
        craft(pa.table({name: values[pick] for name, values in columns.items()}), CONTRACT, "bank")
        for pick in (slice(0, 250), slice(250, None))
    ]
    both = parts[0] + parts[1]
    for name in ("codes", "labels", "rows", "sums", "moments"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(both, name))
    assert whole.digest() == both.digest() != parts[0].digest()


@pytest.mark.parametrize("wrong", [{"column": 0.0}, {"row": -1.0}, {"column": np.inf}, {"rows_per_person": 0}])
def test_bounds_that_bound_nothing_are_refused(wrong):
    with pytest.raises(PolicyError, match="must be"):
        Bounds(**wrong)


def test_infinite_values_are_refused():
    with pytest.raises(NotFinite, match="infinite"):
        Bounds().of(numbers(1), "bank", np.zeros(1), np.ones(1)).bounded(np.array([[np.inf]]))
    with pytest.raises(NotFinite, match="Agree on others"):
        Bounds().of(numbers(1), "bank", np.array([1e300]), np.array([1e-300]))
