"""One pass over the rows gives what the engine's own GROUP BY and a second pass give."""

from dataclasses import replace
from itertools import pairwise, repeat

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sqlglot import exp

from radocraft import Contract, craft
from radocraft.rows._craft import bounded
from radocraft.rows._encoding import Reader
from radocraft.rows._expressions import binned, coded, counted, number, stepped
from radocraft.rows._grid import Grid
from radocraft.rows._moments import RowLayout
from radocraft.rows._shift import Shift
from radocraft.rows._stream import Feed, Running, add_batches, stream_totals, streams
from radocraft.rows._totals import ask_blocks, ask_totals
from radocraft.rows.engines._base import ROWS
from radocraft.rows.engines._opening import open_source
from radocraft.sums._bounds import Bounds

CONTRACT = Contract.parse("""
name = "stream"
label = { column = "y", positive = 1, negative = 0 }
[[shared]]
name = "age"
edges = [20, 21, 22]
[[shared]]
name = "town"
categories = ["a", "b"]
[[shared]]
name = "rating"
categories = [3, 4, 5]
[peers.bank.features]
x = "numeric"
z = "numeric"
flag = "boolean"
""")
SUMS = ("codes", "labels", "rows", "sums", "present")


def table(seed: int, rows: int, missing: float, label: tuple[int | None, ...] = (0, 1)) -> pa.Table:
    rng = np.random.default_rng(seed)

    def gaps(values: list, instead: object) -> list:
        return [instead if gone else value for value, gone in zip(values, rng.random(rows) < missing, strict=True)]

    return pa.table(
        {
            "y": pa.array([label[at] for at in rng.integers(0, len(label), rows)], pa.int64()),
            "age": pa.array(gaps(rng.integers(17, 26, rows).tolist(), None), pa.int32()),
            "town": pa.array(gaps(rng.choice(["a", "b", "c"], rows).tolist(), None), pa.string()),
            "rating": pa.array(gaps(rng.integers(1, 8, rows).tolist(), None), pa.int8()),
            "x": pa.array(gaps(np.maximum(rng.normal(size=rows), 0.0).tolist(), float("nan")), pa.float64()),
            "z": pa.array(gaps(rng.normal(5, 2, rows).tolist(), None), pa.float32()),
            "flag": pa.array(gaps(rng.random(rows).__gt__(0.5).tolist(), None), pa.bool_()),
        }
    )


def reading(rows: pa.Table) -> tuple:
    source = open_source(rows)
    shift = Shift(np.array([0.0, 0.0, 4.0]), np.array([1.0, 1.0, 2.0]))
    return source, Reader(CONTRACT, "bank", source.kinds(), {"x": (0.5, 0.5), "z": (4.0, 2.0)}), shift


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 300), missing=st.sampled_from([0.0, 0.01, 0.5, 1.0]))
@settings(max_examples=25)
def test_one_pass_equals_two(seed, rows, missing):
    source, reader, shift = reading(table(seed, rows, missing))
    assert streams(source, reader)
    one, two = stream_totals(source, reader, shift), ask_totals(source, reader, shift)
    for name in ("codes", "labels", "rows", "present"):
        assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    assert_allclose(one.sums, two.sums, rtol=1e-12, atol=1e-12)
    assert_allclose(one.moments, two.moments, rtol=1e-12, atol=1e-12)
    assert len(one.moments) == 2
    assert_array_equal(one.moments[:, -1, -1], [one.present[one.labels == sign, -1].sum() for sign in (-1, 1)])
    assert not one.wrong


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 300),
    missing=st.sampled_from([0.0, 0.01, 0.5, 1.0]),
    norm=st.sampled_from([0.1, 1.5]),
)
@settings(max_examples=25)
def test_of_bounded_rows_one_pass_equals_two_to_the_bit(seed, rows, missing, norm):
    source, reader, _ = reading(table(seed, rows, missing))
    reader, shift = bounded(reader, Bounds(row=norm))
    one, two = stream_totals(source, reader, shift), ask_totals(source, reader, shift)
    for name in (*SUMS, "moments"):
        assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    assert_array_equal(one.sums, np.rint(one.sums))
    assert np.linalg.norm(one.sums, axis=1).max() <= shift.bounding.reach * one.rows.max()


def test_rows_without_a_label_and_cells_without_a_reading_show():
    source, reader, shift = reading(table(1, 100, 0.1, label=(0, 1, None, 7)))
    assert stream_totals(source, reader, shift).unlabelled
    rows = table(1, 100, 0.1)
    rows = rows.set_column(rows.column_names.index("x"), "x", pa.array(["1.5"] * 99 + ["much"]))
    source, reader, shift = reading(rows)
    assert stream_totals(source, reader, shift).misread
    assert ask_totals(source, reader, shift).misread


@pytest.mark.parametrize("cells", [[np.inf, 1.0, np.nan], [np.inf, -np.inf, 2.0]])
def test_infinities_end_in_moments_that_are_not_finite(cells):
    running = Running(2, RowLayout(1))
    running.add(pa.record_batch({"place": pa.array([0, 1, 1], pa.int32()), "value": pa.array(cells)}))
    assert not np.isfinite(running.moments[0, 0, 0])


@given(cut=st.lists(st.integers(1, 5000), max_size=4), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_batches_may_be_cut_anywhere_and_gaps_may_begin_late(cut, seed):
    rng = np.random.default_rng(seed)
    count = sum(cut) + 5000
    values = rng.normal(size=(count, 2))
    values[count - 1000 :, 1][rng.random(1000) < 0.3] = np.nan
    places = rng.integers(0, 7, count).astype(np.int32)
    whole, pieces = Running(7, RowLayout(2)), Running(7, RowLayout(2))
    bounds = np.cumsum([0, *cut, 5000])
    for running, edges in ((whole, [0, count]), (pieces, bounds)):
        for low, high in pairwise(edges):
            columns = {"place": places[low:high], "v0": values[low:high, 0], "v1": values[low:high, 1]}
            running.add(pa.record_batch(columns))
    assert whole.gaps == pieces.gaps
    assert_allclose(whole.sums, pieces.sums, rtol=1e-12, atol=1e-12)
    assert_allclose(whole.moments, pieces.moments, rtol=1e-12, atol=1e-12)


@given(
    adders=st.integers(1, 4),
    batches=st.integers(1, 12),
    seed=st.integers(0, 2**32 - 1),
    matrices=st.sampled_from([None, [0], [0, 0, 1]]),
)
@settings(max_examples=25)
def test_several_threads_add_up_what_one_does(adders, batches, seed, matrices):
    matrices = None if matrices is None else np.array(matrices)
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(batches):
        values = rng.normal(size=(50, 3))
        values[rng.random((50, 3)) < rng.choice([0.0, 0.0, 0.3], 3)] = np.nan
        places = pa.array(rng.integers(0, 5, 50), pa.int32())
        made.append(pa.record_batch([places, *map(pa.array, values.T)], names=["place", "a", "b", "c"]))
    told = []
    alone = add_batches(Feed(iter(made)), [Running(5, RowLayout(3), matrices)])
    feed = Feed(iter(made), 50 * batches, lambda *news: told.append(news[1:]))
    both = add_batches(feed, [Running(5, RowLayout(3), matrices) for _ in range(adders)])
    assert (told[0], told[-1]) == ((0, 50 * batches), (50 * batches, 50 * batches))
    assert sorted(alone.gaps) == sorted(both.gaps)
    both._order(alone.gaps)
    assert_allclose(both.sums, alone.sums, rtol=1e-12, atol=1e-12)
    assert_allclose(both.products.plain, alone.products.plain, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_a_failure_in_one_thread_ends_all_and_is_told(bad):
    batch = pa.record_batch({"place": pa.array([0], pa.int32()), "value": pa.array([1.0])})

    class Failing(Running):
        def add(self, batch):
            raise ArithmeticError("of all things")

    each = [(Failing if at == bad else Running)(1, RowLayout(1)) for at in range(3)]
    with pytest.raises(ArithmeticError, match="of all things"):
        add_batches(Feed(repeat(batch)), each)


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 200), missing=st.sampled_from([0.0, 0.3]))
@settings(max_examples=15)
def test_sums_alone_are_the_same_from_a_stream_and_from_the_engine_whatever_it_expects(seed, rows, missing):
    source, reader, shift = reading(table(seed, rows, missing))
    streamed = stream_totals(source, reader, shift, products=False)
    for gaps in ((), (0,), (0, 1, 2)):
        asked, _ = ask_blocks(source, reader, replace(shift, gaps=gaps))
        for name in ("codes", "labels", "rows", "present"):
            assert_array_equal(getattr(streamed, name), getattr(asked, name), err_msg=name)
        assert_allclose(streamed.sums, asked.sums, rtol=1e-12, atol=1e-12)


@given(seed=st.integers(0, 2**32 - 1), features=st.integers(1, 24))
@settings(max_examples=15)
def test_places_that_do_not_fit_one_number_take_several(seed, features):
    names = [f"s{at:02}" for at in range(features)]
    shared = "\n".join(f'[[shared]]\nname = "{name}"\ncategories = [0, 1, 2, 3, 4, 5, 6]' for name in names)
    contract = Contract.parse(f"""
name = "many"
label = {{ column = "y", classes = ["a", "b", "c"] }}
{shared}
[peers.bank.features]
x = "numeric"
""")
    rng = np.random.default_rng(seed)
    columns = {name: pa.array(rng.choice([None, 0, 3, 6, 9], 40).tolist(), pa.int64()) for name in names}
    rows = pa.table({"y": rng.choice(["a", "b", "c"], 40), "x": rng.normal(size=40), **columns})
    tally = craft(rows, contract, "bank", bounds=None)
    expected = {}
    codes = {0: 0, 3: 3, 6: 6, None: 7, 9: 8}
    for row in rows.to_pylist():
        key = (*(codes[row[name]] for name in names), " abc".index(row["y"]))
        expected[key] = expected.get(key, 0.0) + row["x"]
    found = [(*line, label) for line, label in zip(tally.codes.tolist(), tally.labels.tolist(), strict=True)]
    assert found == sorted(expected)
    sums = tally.rebased(np.zeros(1), np.ones(1)).sums[:, 0]
    assert_allclose(sums, [expected[key] for key in found], rtol=1e-12, atol=1e-12)


def test_more_blocks_than_there_is_room_for_are_left_to_the_engine():
    codes = ", ".join(str(at) for at in range(40))
    shared = "\n".join(f'[[shared]]\nname = "{name}"\ncategories = [{codes}]' for name in ("age", "rating"))
    many = Contract.parse(f"""
name = "many"
label = {{ column = "y", positive = 1, negative = 0 }}
{shared}
[peers.bank.features]
x = "numeric"
""")
    source, reader, _ = reading(table(1, 10, 0.0))
    wide = replace(reader, contract=many)
    assert streams(source, wide)
    assert not streams(replace(source, room=8 * Grid(wide).size), wide)
    assert not streams(replace(source, room=0), reader)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.int64()])
@pytest.mark.parametrize("shared", ["edges = [{}]", "categories = [{}]"])
def test_columns_of_narrow_whole_numbers_make_places(kind, shared):
    low = 1 if kind == pa.uint8() else -60
    listed = shared.format(", ".join(str(at) for at in range(low, 61)))
    contract = Contract.parse(f"""
name = "narrow"
label = {{ column = "y", positive = 1, negative = 0 }}
[[shared]]
name = "a"
{listed}
[[shared]]
name = "b"
{listed}
[peers.bank.features]
x = "numeric"
""")
    numbers = np.random.default_rng(1).integers(low, 61, (500, 2))
    cells = {"a": pa.array(numbers[:, 0], kind), "b": pa.array(numbers[:, 1], kind)}
    rows = pa.table({"y": [0, 1] * 250, "x": np.arange(500.0), **cells})
    step = low - 1 if shared.startswith("edges") else low
    for room in (0, 2**29):
        tally = craft(replace(open_source(rows), room=room), contract, "bank", bounds=None)
        found = {(*line, label) for line, label in zip(tally.codes.tolist(), tally.labels.tolist(), strict=True)}
        assert found == {(a - step, b - step, (-1, 1)[at % 2]) for at, (a, b) in enumerate(numbers.tolist())}


@given(low=st.integers(-5, 5), count=st.integers(1, 6))
@settings(max_examples=20)
def test_whole_numbers_are_coded_as_others_are(low, count):
    source = open_source(pa.table({"n": pa.array([None, *range(-15, 20), 2**60, -(2**60)], pa.int64())}))
    steps = tuple(range(low, low + count))
    raw = exp.column("n", quoted=True)
    asked = {
        "stepped": stepped(raw, low, low + count - 1),
        "binned": binned(number(raw, "integer"), tuple(map(float, steps))),
        "counted": counted(raw, low, low + count - 1),
        "coded": coded(raw, "integer", steps),
    }
    found = source.table(exp.select(*(code.as_(name) for name, code in asked.items())).from_(ROWS))
    assert found["stepped"].to_pylist() == found["binned"].to_pylist()
    assert found["counted"].to_pylist() == found["coded"].to_pylist()
