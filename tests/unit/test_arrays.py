"""Numbering equal rows and adding them up."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from radocraft.arrays import add_up, first_of_each, number_rows

WHOLE = st.integers(-3, 3) | st.integers(-(2**40), 2**40)
TABLES = hnp.arrays(np.int64, st.tuples(st.integers(0, 12), st.integers(0, 6)), elements=WHOLE)


@given(TABLES)
def test_rows_are_numbered_as_numpy_would_sort_them(rows):
    number = number_rows(rows)
    if rows.shape[1]:
        _, place = np.unique(rows, axis=0, return_inverse=True)
    else:
        place = np.zeros(len(rows), dtype=np.int64)
    np.testing.assert_array_equal(number, place.reshape(-1))


def test_numbers_do_not_overflow_with_many_wide_columns():
    rows = np.array([[0] * 40, [2**40] * 40, [0] * 39 + [1]])
    np.testing.assert_array_equal(number_rows(rows), [0, 2, 1])


@given(TABLES)
def test_the_first_of_each_group_is_its_first(rows):
    number = number_rows(rows)
    first = first_of_each(number)
    assert [int(np.flatnonzero(number == group)[0]) for group in range(len(first))] == first.tolist()
    assert len(first) == len({*number.tolist()})


@given(TABLES, st.data())
def test_adding_up_equals_a_loop(rows, data):
    groups = 4
    group = data.draw(hnp.arrays(np.int64, len(rows), elements=st.integers(0, groups - 1)))
    expected = np.zeros((groups, rows.shape[1]), dtype=np.int64)
    for at, row in zip(group, rows, strict=True):
        expected[at] += row
    np.testing.assert_array_equal(add_up(rows, group, groups), expected)
    assert add_up(rows, group, groups).dtype == np.int64
