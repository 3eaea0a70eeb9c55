"""Means drawn towards their label's: closer to the truth where noise is large, untouched where there is none."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from radocraft.learning._shrinkage import shrunk
from radocraft.sums import Cells, Levels

WIDTH = 5


def cells(means: np.ndarray, rows: np.ndarray, labels: np.ndarray, noise: float, inside: float = 1.0) -> Cells:
    """Cells with such means; rows inside a cell have variance ``inside``."""
    width = means.shape[1]
    moments = np.zeros((1, width + 1, width + 1))
    moments[0, np.arange(width), np.arange(width)] = (rows[:, None] * (means**2 + inside)).sum(axis=0)
    return Cells(
        "bank",
        tuple(f"x{at}" for at in range(width)),
        centre=np.zeros(width),
        scale=np.ones(width),
        codes=np.arange(len(rows))[:, None],
        labels=labels,
        rows=rows,
        sums=means * rows[:, None],
        present=np.repeat(rows[:, None], width, axis=1),
        shared=csr_array((len(rows), 0)),
        by_label=moments,
        levels=Levels(sums=noise),
    )


def world(seed: int, scatter: float, noise: float) -> tuple[Cells, np.ndarray]:
    """Forty cells, noise in their sums; what rows have by chance is in the truth too."""
    rng = np.random.default_rng(seed)
    rows, labels = rng.integers(30, 400, 40), np.where(np.arange(40) % 2, 1, -1)
    sampled = rng.normal(size=(40, WIDTH)) / rows[:, None] ** 0.5
    truth = 0.3 * labels[:, None] + scatter * rng.normal(size=(40, WIDTH)) + sampled
    exact = cells(truth, rows, labels, noise)
    sums = exact.sums + np.random.default_rng(seed + 1000).normal(0.0, noise, exact.sums.shape) if noise else exact.sums
    return replace(exact, sums=sums), truth


def errors(scatter: float, noise: float) -> tuple[float, float]:
    """Mean squared error of cell means over rows, as they came and shrunk."""
    out = []
    for seed in range(20):
        noisy, truth = world(seed, scatter, noise)
        out.append(
            [
                np.average((side.sums / side.rows[:, None] - truth) ** 2, axis=0, weights=side.rows).mean()
                for side in (noisy, shrunk(noisy))
            ]
        )
    raw, better = np.mean(out, axis=0)
    return float(raw), float(better)


@pytest.mark.parametrize(("scatter", "gain"), [(0.0, 0.25), (0.1, 0.5), (3.0, 1.001)])
def test_it_pays_where_noise_is_large_and_never_costs(scatter: float, gain: float) -> None:
    raw, better = errors(scatter, noise=40.0)
    assert better < gain * raw


def test_what_rows_have_by_chance_stays() -> None:
    """Where cells differ by sampling alone and noise is small, hardly anything moves."""
    raw, better = errors(0.0, noise=3.0)
    assert better < raw
    noisy, _ = world(0, 0.0, 3.0)
    moved = np.abs(shrunk(noisy).sums - noisy.sums) / noisy.rows[:, None] ** 0.5
    assert np.median(moved) < 0.2


@given(seed=st.integers(0, 1000), noise=st.floats(0.0, 1e4), scatter=st.floats(0.0, 10.0))
def test_a_mean_moves_towards_its_labels_and_no_farther_and_without_noise_not_at_all(seed, noise, scatter):
    found = world(seed, scatter, noise)[0]
    after = shrunk(found)
    assert np.isfinite(after.sums).all()
    if not noise:
        assert after is found
        return
    for label in (-1, 1):
        own = found.labels == label
        before, now = (side.sums[own] / side.rows[own, None] for side in (found, after))
        for column in range(WIDTH):
            kept = np.polyfit(before[:, column], now[:, column], 1)[0] if np.ptp(before[:, column]) else 0.0
            assert -1e-6 <= kept <= 1.0 + 1e-6
            assert before[:, column].min() - 1e-9 <= now[:, column].min()
            assert now[:, column].max() <= before[:, column].max() + 1e-9


def test_one_cell_of_a_label_stays_as_it_is() -> None:
    one = cells(np.array([[0.5], [0.45]]), np.array([10, 20]), np.array([-1, 1]), noise=3.0)
    np.testing.assert_allclose(shrunk(one).sums, one.sums)


def test_no_columns_nothing_to_do() -> None:
    none = cells(np.zeros((2, 0)), np.array([10, 20]), np.array([-1, 1]), noise=3.0)
    assert shrunk(none) is none


def test_a_cell_of_hardly_any_row_does_not_change_what_is_made_of_the_others() -> None:
    """Where nobody has a signature there is noise and no row: 60 off, in a mean over one row."""
    changed, moved = [], []
    for seed in range(10):
        noisy, _ = world(seed, 0.1, 40.0)
        both = replace(
            noisy,
            codes=np.vstack([noisy.codes, [[40]]]),
            labels=np.append(noisy.labels, 1),
            rows=np.append(noisy.rows, 1),
            sums=np.vstack([noisy.sums, np.full((1, WIDTH), 60.0)]),
            shared=csr_array((41, 0)),
        )
        alone, beside = shrunk(noisy).sums, shrunk(both).sums
        changed.append(np.mean((beside[:40] - alone) ** 2))
        moved.append(np.mean((alone - noisy.sums) ** 2))
        assert np.abs(beside[40]).max() < 1.0
    assert np.mean(changed) < 0.01 * np.mean(moved)
