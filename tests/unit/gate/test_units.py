"""Units from noisy counts: near those of the rows, for every shape of column, and never far off by chance."""

from collections.abc import Callable

import numpy as np
import pytest

from radocraft.arrays import Floats
from radocraft.gate._account import Spend
from radocraft.gate._noise import Noise
from radocraft.gate._units import estimate_units
from radocraft.rows._constants import count_between

Draw = Callable[[np.random.Generator, int], Floats]
SHAPES: dict[str, Draw] = {
    "normal": lambda rng, rows: rng.normal(size=rows),
    "far from 0": lambda rng, rows: rng.normal(1e5, 3.0, rows),
    "ages": lambda rng, rows: np.floor(rng.normal(40.0, 12.0, rows)),
    "years": lambda rng, rows: rng.integers(1990, 2024, rows).astype(float),
    "even": lambda rng, rows: rng.random(rows),
    "counts": lambda rng, rows: rng.poisson(0.7, rows).astype(float),
    "waiting": lambda rng, rows: rng.exponential(1000.0, rows),
    "income": lambda rng, rows: rng.lognormal(10.0, 1.0, rows),
    "heavy": lambda rng, rows: rng.standard_t(3, rows),
    "half": lambda rng, rows: (rng.random(rows) < 0.5).astype(float),
    "tenth": lambda rng, rows: (rng.random(rows) < 0.1).astype(float),
    "two places": lambda rng, rows: np.where(rng.random(rows) < 0.5, 0.0, 1e6) + rng.normal(size=rows),
}


def estimated(columns: dict[str, Floats], seed: int = 0, knots: int = 0) -> tuple[dict[str, tuple[float, ...]], Spend]:
    """Units of some columns, or so many knots."""
    rows = len(next(iter(columns.values())))
    found, spend = estimate_units(
        dict.fromkeys(columns, knots),
        lambda edges: {name: count_between(columns[name], at) for name, at in edges.items()},
        rows,
        Noise.seeded(seed, "units"),
    )
    return dict(found), spend


@pytest.mark.parametrize("rows", [1000, 20_000])
@pytest.mark.parametrize("shape", SHAPES)
def test_values_have_a_mean_square_of_about_1_whatever_the_column_looks_like(shape: str, rows: int) -> None:
    """Otherwise rows are longer than their bound allows, or drown in noise."""
    rng = np.random.default_rng(0)
    columns = {f"{at}": SHAPES[shape](rng, rows) for at in range(40)}
    squares = []
    for name, (centre, scale) in estimated(columns)[0].items():
        units = np.clip((columns[name] - centre) / scale, -4.0, 4.0)
        squares.append(float(np.mean(units**2)))
        assert abs(columns[name].mean() - centre) < 0.5 * columns[name].std()
    assert 0.7 < np.mean(squares) < 1.45
    assert 0.4 < min(squares) <= max(squares) < 2.0


def test_noise_is_not_taken_for_values_by_chance() -> None:
    """One of the 181 counts by powers of two that stands out wrongly would make a scale of up to 2^60."""
    rng = np.random.default_rng(1)
    columns = {f"{at}": rng.normal(101.0, 1.8, 2000) for at in range(1500)}
    found = np.array([*estimated(columns)[0].values()])
    assert np.abs(found[:, 0] - 101.0).max() < 1.0
    assert 1.2 < found[:, 1].min() <= found[:, 1].max() < 3.0


@pytest.mark.parametrize("share", [0.0, 0.002, 0.01, 0.02, 0.05])
def test_rare_ones_among_zeros_are_told_apart_as_far_as_bounds_allow(share: float) -> None:
    """Seen or not: 1 is no farther from 0 than about where values are clipped, and not drowned in noise either."""
    rng = np.random.default_rng(2)
    columns = {f"{at}": (rng.random(3000) < share).astype(float) for at in range(40)}
    for centre, scale in estimated(columns)[0].values():
        assert 0.1 < scale < 0.7
        assert abs(centre) < 0.8 * scale


@pytest.mark.parametrize("value", [0.0, 3.0, -1e9])
def test_a_column_of_one_value_gets_a_scale_that_shows_it_as_one(value: float) -> None:
    ((centre, scale),) = estimated({"x": np.full(2000, value)})[0].values()
    assert abs(value - centre) < 0.5 * scale
    assert 0.2 * max(abs(value), 1.0) < scale < 0.3 * max(abs(value), 1.0)


@pytest.mark.parametrize("rows", [1, 12, 40])
def test_few_rows_still_give_numbers(rows: int) -> None:
    rng = np.random.default_rng(3)
    found = estimated({f"{at}": rng.normal(size=rows) for at in range(100)})[0]
    assert all(np.isfinite(centre) and 0.0 < scale < np.inf for centre, scale in found.values())


def test_knots_are_quantiles() -> None:
    rng = np.random.default_rng(4)
    columns = {f"{at}": rng.lognormal(3.0, 0.5, 20_000) for at in range(20)}
    levels = np.linspace(0.01, 0.99, 5)
    for name, knots in estimated(columns, knots=5)[0].items():
        assert len(knots) == 5
        share = np.searchsorted(np.sort(columns[name]), knots) / 20_000
        np.testing.assert_allclose(share, levels, atol=0.04)


def test_it_costs_less_the_more_rows_there_are_and_more_for_more_columns() -> None:
    rng = np.random.default_rng(5)
    few, many, two = (
        estimated({f"{at}": rng.normal(size=rows) for at in range(columns)})[1].rho
        for rows, columns in ((500, 1), (50_000, 1), (50_000, 2))
    )
    assert 0 < many < two < few < 0.5
