"""Splines and products: B-splines between the knots, straight beyond, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import BSpline

from radocraft import Contract
from radocraft.contract._splines import spline_columns
from radocraft.errors import ContractError

CURVED = """
name = "curved"
label = { column = "y", positive = 1, negative = 0 }
shared = [{ name = "s", categories = ["a", "b"] }]

[peers.one.features]
u = { kind = "spline", knots = [-1, 0, 0.5, 2] }
w = "spline"
n = "numeric"
flag = "boolean"
n_by_s = { kind = "interact", of = ["n", "s"] }
n_by_flag = { kind = "interact", of = ["n", "flag"] }

[peers.two.features]
v = { kind = "spline", knots = 4 }
"""


@given(
    st.lists(st.floats(-5, 5).map(lambda x: round(x, 2)), min_size=2, max_size=8, unique=True).map(sorted),
    st.lists(st.floats(-6, 6), min_size=1, max_size=20),
)
def test_b_splines_between_the_knots_and_straight_beyond(knots: list[float], values: list[float]) -> None:
    made = spline_columns(np.array(values), tuple(knots))
    padded = np.array([knots[0]] * 3 + knots + [knots[-1]] * 3)
    for value, row in zip(values, made, strict=True):
        held = float(np.clip(value, knots[0], knots[-1]))
        for at in range(len(knots) + 1):
            spline = BSpline(padded, np.eye(len(knots) + 2)[at], 3)
            expected = float(spline(held)) + float(spline(held, 1)) * (value - held)
            assert row[at] == pytest.approx(expected, abs=1e-7 * max(1.0, abs(expected)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("knots = [-1, 0, 0.5, 2]", "knots = [1, 0]"), "rising order"),
        (("knots = 4", "knots = 1"), "knots"),
        (('of = ["n", "s"]', 'of = ["n", "nobody"]'), "'nobody' cannot be multiplied"),
        (('of = ["n", "s"]', 'of = ["n", "n_by_flag"]'), "'n_by_flag' cannot be multiplied"),
        (('of = ["n", "s"]', 'of = ["n", "n"]'), "adds nothing new"),
    ],
)
def test_odd_curves_and_products_are_refused(change: tuple[str, str], words: str) -> None:
    with pytest.raises(ContractError, match=words):
        Contract.parse(CURVED.replace(*change))
