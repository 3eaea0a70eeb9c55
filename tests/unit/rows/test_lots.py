"""Lots: the same however rows come in chunks, told apart where equal rows are many people."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from radocraft.rows._chunks import Chunk
from radocraft.rows._lots import Drawing, Lottery

NOTHING = pa.record_batch({"nothing": pa.array([], pa.int64())})


def chunk(values, groups=None, keys=None) -> Chunk:
    nothing = np.zeros(len(values), dtype=np.int64)
    return Chunk(nothing, np.asarray(values, dtype=float)[:, None], nothing, None, keys, groups, NOTHING)


def lottery(values, classes) -> Lottery:
    """One that tells equal rows apart, as fitting on these rows makes it."""
    first = Lottery(0, False, False).first(chunk(values), classes)
    found, times = np.unique(first, return_counts=True)
    return Lottery(0, False, False, found[times > 1])


ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), min_size=1, max_size=40)


@given(rows=ROWS, cuts=st.lists(st.integers(0, 40), max_size=4))
def test_lots_are_the_same_in_one_chunk_and_in_many(rows, cuts):
    values, classes = np.array(rows).T
    whole = lottery(values, classes)
    in_one = Drawing(whole).lots(chunk(values), classes)
    drawing = Drawing(whole)
    edges = [0, *sorted(min(cut, len(values)) for cut in cuts), len(values)]
    pieces = [slice(low, high) for low, high in pairwise(edges)]
    in_many = np.concatenate([drawing.lots(chunk(values[some]), classes[some]) for some in pieces])
    np.testing.assert_array_equal(in_many, in_one)
    assert len(np.unique(in_one)) == len(rows)


@given(rows=ROWS, seed=st.integers(0, 2**32 - 1))
def test_the_lots_of_equal_rows_are_the_same_set_in_every_order(rows, seed):
    values, classes = np.array(rows).T
    order = np.random.default_rng(seed).permutation(len(values))
    whole = lottery(values, classes)
    one = Drawing(whole).lots(chunk(values), classes)
    other = Drawing(whole).lots(chunk(values[order]), classes[order])
    for row in {*rows}:
        mine, theirs = (
            (values == row[0]) & (classes == row[1]),
            (values[order] == row[0]) & (classes[order] == row[1]),
        )
        assert sorted(one[mine]) == sorted(other[theirs])


def test_rows_with_equal_features_have_one_lot_where_they_are_one_person():
    lot = Drawing(Lottery(0, False, True)).lots(chunk([1.0, 2.0, 1.0]), np.array([0, 1, 1]))
    assert lot[0] == lot[2] != lot[1]


def test_a_key_tells_rows_apart_that_are_equal_in_all_else():
    keys = np.array([3, 3, 4])
    lot = Lottery(0, False, False).first(chunk([1.0, 1.0, 1.0], keys=keys), np.zeros(3, dtype=np.int64))
    assert lot[0] == lot[1] != lot[2]


def test_whose_a_row_is_decides_alone_and_rows_of_nobody_go_by_what_they_hold():
    groups = np.array([7, 7, 0, 0, 0], dtype=np.uint64)
    lot = Drawing(Lottery(0, True, True)).lots(chunk([1.0, 2.0, 1.0, 3.0, 3.0], groups), np.array([0, 1, 1, 1, 0]))
    assert lot[0] == lot[1] == 7
    assert len({*lot[2:4].tolist(), 7}) == 3
    assert lot[3] == lot[4]
