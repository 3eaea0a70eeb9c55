"""Means shrunk by their noise: closer to the truth where noise is large, untouched where there is none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from radocraft.policy.shrink import without_noise
from scipy.sparse import csr_array

from radocraft.sums._cells import Cells


def cells(sums: np.ndarray, rows: np.ndarray, labels: np.ndarray, shared: np.ndarray) -> Cells:
    width = sums.shape[1]
    return Cells(
        "bank",
        tuple(f"x{at}" for at in range(width)),
        centre=np.zeros(width),
        scale=np.ones(width),
        codes=np.arange(len(rows))[:, None],
        labels=labels,
        rows=rows,
        sums=sums,
        present=np.repeat(rows[:, None], width, axis=1),
        shared=csr_array(shared * rows[:, None]),
        moments=np.zeros((width + shared.shape[1] + 1,) * 2),
    )


def world(seed: int, scatter: float, slope: float) -> tuple[Cells, np.ndarray]:
    """Forty cells; their true means follow the label, a shared column, and chance."""
    rng = np.random.default_rng(seed)
    rows, labels = rng.integers(30, 400, 40), np.where(np.arange(40) % 2, 1, -1)
    shared = rng.normal(size=(40, 1))
    truth = 0.3 * labels[:, None] + slope * shared + scatter * rng.normal(size=(40, 5))
    return cells(truth * rows[:, None], rows, labels, shared), truth


def errors(scatter: float, slope: float, sigma: float) -> tuple[float, float]:
    """Mean squared error of cell means over rows, as they came and shrunk."""
    out = []
    for seed in range(20):
        exact, truth = world(seed, scatter, slope)
        noise = np.random.default_rng(seed + 1000).normal(0, sigma, exact.sums.shape)
        noisy = cells(exact.sums + noise, exact.rows, exact.labels, exact.shared.toarray() / exact.rows[:, None])
        better = without_noise(noisy, np.ones(40, dtype=np.int64), sigma)
        out.append(
            [
                np.average((side.sums / side.rows[:, None] - truth) ** 2, axis=0, weights=side.rows).mean()
                for side in (noisy, better)
            ]
        )
    return tuple(np.mean(out, axis=0))


@pytest.mark.parametrize("slope", [0.0, 0.5])
@pytest.mark.parametrize(("scatter", "gain"), [(0.0, 0.35), (0.1, 0.65), (3.0, 1.001)])
def test_shrinking_pays_where_noise_is_large_and_never_costs(scatter, slope, gain):
    raw, better = errors(scatter, slope, sigma=40.0)
    assert better < gain * raw


@given(seed=st.integers(0, 1000), sigma=st.floats(0.0, 1e4), scatter=st.floats(0.0, 10.0))
def test_sums_of_a_label_stay_and_without_noise_nothing_moves(seed, sigma, scatter):
    exact, _ = world(seed, scatter, 0.2)
    found = without_noise(exact, np.ones(40, dtype=np.int64), sigma)
    for label in (-1, 1):
        own = exact.labels == label
        np.testing.assert_allclose(found.sums[own].sum(axis=0), exact.sums[own].sum(axis=0), rtol=1e-9, atol=1e-6)
    if sigma == 0.0:
        np.testing.assert_allclose(found.sums, exact.sums, rtol=1e-12)
    assert np.isfinite(found.sums).all()


def test_few_cells_stay_as_they_are_or_meet():
    one = cells(np.array([[5.0], [9.0]]), np.array([10, 20]), np.array([-1, 1]), np.zeros((2, 0)))
    np.testing.assert_allclose(without_noise(one, np.ones(2, dtype=np.int64), 3.0).sums, one.sums)
