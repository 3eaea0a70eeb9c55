"""Second moments of values and of their presence, by label."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from radocraft.rows._moments import second_moments

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
