"""Second moments of values and of their presence, by label."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from radocraft.rows._moments import RowLayout, of_batches, second_moments

VALUES = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(1, 4)),
    elements=st.just(np.nan) | st.floats(-100, 100),
)


@given(values=VALUES, seed=st.integers(0, 2**32 - 1), count=st.integers(1, 3))
def test_second_moments_are_those_of_values_and_presence(values, seed, count):
    labels = np.random.default_rng(seed).integers(0, count, len(values))
    present = ~np.isnan(values)
    stacked = np.hstack([np.where(present, values, 0.0), present.astype(float)])
    moments = second_moments(values, labels, count)
    assert len(moments) == count
    for label, of_label in enumerate(moments):
        some = stacked[labels == label]
        np.testing.assert_allclose(of_label, some.T @ some, rtol=1e-12, atol=1e-9)


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 60),
    counts=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    missing=st.sampled_from([0.0, 0.4]),
)
def test_products_of_codes_are_those_of_their_indicators(seed, rows, counts, missing):
    """With the categories first, last and between numbers; a row's categories may count for less than 1."""
    rng = np.random.default_rng(seed)
    labels, numbers = rng.integers(0, 2, rows), rng.normal(size=(rows, 2))
    numbers[rng.random(rows) < missing, 1] = np.nan
    codes, ones = [rng.integers(0, count, rows) for count in counts], rng.choice([0.5, 1.0], rows)
    starts = np.cumsum([0, *counts]) + np.arange(len(counts) + 1).clip(max=2)
    layout = RowLayout(sum(counts) + 2, tuple(zip(starts.tolist(), counts, strict=False)))
    columns = np.full((rows, layout.width), np.nan)
    columns[:, layout.plain] = numbers
    for (start, count), code in zip(layout.coded, codes, strict=True):
        columns[:, start : start + count] = np.eye(count)[code] * ones[:, None]
    held = [*map(pa.array, numbers.T), pa.array(ones), *map(pa.array, codes), pa.array(labels)]
    batch = pa.record_batch(held, names=[str(at) for at in range(len(held))])
    moments = of_batches([batch], layout, [layout.plain[1]], 2, lambda rows: None)
    np.testing.assert_allclose(moments, second_moments(columns, labels, 2), rtol=1e-12, atol=1e-9)
