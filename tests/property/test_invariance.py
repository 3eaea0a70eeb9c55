"""The order of rows and peers, the file's format and its pieces change nothing that leaves."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.worlds import World, agree, assert_same_cells, worlds

from radocraft.gate._policy import Policy
from radocraft.gate._release import release
from radocraft.learning._blocks import merge
from radocraft.learning._drl import fit_drl
from radocraft.learning._matching import fit_matching
from radocraft.parts._part import Part
from radocraft.rows._craft import craft
from radocraft.rows.engines._opening import open_source
from radocraft.sums._cells import Cells, standardise
from radocraft.sums._tally import Tally

FEW = settings(max_examples=12)
WORLDS = worlds("G", missing=True, rows=(4, 50))


def crafted(world: World, at: int, table: Any, onto: Tally | None = None) -> Tally:
    return craft(open_source(table), world.contract, world.peers[at], bounds=None, onto=onto)


def released(world: World, tally: Tally, min_rows: int) -> Cells:
    return Part.of(release(tally, world.contract, Policy.exact(min_rows))).cells(world.contract)


@given(world=WORLDS)
@FEW
def test_rows_in_memory_and_rows_in_a_source_give_the_same_tally(world):
    one = standardise(world.tally(0), world.contract)
    other = standardise(crafted(world, 0, world.table(0)), world.contract)
    assert_same_cells(one, other, world, 0)


@given(world=WORLDS, seed=st.integers(0, 2**32 - 1))
@FEW
def test_the_order_of_rows_changes_nothing(world, seed):
    order = np.random.default_rng(seed).permutation(world.held[0])
    one = standardise(crafted(world, 0, world.table(0)), world.contract)
    other = standardise(crafted(world, 0, world.table(0, order)), world.contract)
    assert_same_cells(one, other, world, 0)


@given(world=worlds("G", rows=(8, 50)), seed=st.integers(0, 2**32 - 1), min_rows=st.integers(1, 4))
@FEW
def test_the_order_of_rows_changes_no_part(world, seed, min_rows):
    order = np.random.default_rng(seed).permutation(world.held[0])
    one, other = (released(world, world.tally(0, rows), min_rows) for rows in (world.held[0], order))
    assert_same_cells(one, other, world, 0)


@given(world=WORLDS, cut=st.floats(0.05, 0.95))
@FEW
def test_the_tallies_of_two_halves_add_up_to_the_whole(world, cut):
    rows = world.held[0]
    at = min(max(int(cut * len(rows)), 1), len(rows) - 1)
    whole = standardise(crafted(world, 0, world.table(0)), world.contract)
    first = crafted(world, 0, world.table(0, rows[:at]))
    added = first + crafted(world, 0, world.table(0, rows[at:]))
    onto = crafted(world, 0, world.table(0, rows[at:]), onto=first)
    for pieces in (added, onto):
        assert_same_cells(whole, standardise(pieces, world.contract), world, 0)


def as_csv(table: pa.Table, folder: Path) -> Any:
    pa.csv.write_csv(table, folder / "t.csv")
    return folder / "t.csv"


def as_csv_gz(table: pa.Table, folder: Path) -> Any:
    with pa.CompressedOutputStream(str(folder / "t.csv.gz"), "gzip") as sink:
        pa.csv.write_csv(table, sink)
    return folder / "t.csv.gz"


def as_parquet(table: pa.Table, folder: Path) -> Any:
    pq.write_table(table, folder / "t.parquet", row_group_size=3)
    return folder / "t.parquet"


def as_parquet_folder(table: pa.Table, folder: Path) -> Any:
    (folder / "deep").mkdir()
    half = table.num_rows // 2
    pq.write_table(table.slice(half), folder / "deep" / "b.parquet")
    pq.write_table(table.slice(0, half), folder / "a.parquet")
    (folder / "_SUCCESS").touch()
    return folder


def as_parquet_list(table: pa.Table, folder: Path) -> Any:
    as_parquet_folder(table, folder)
    return [folder / "deep" / "b.parquet", str(folder / "a.parquet")]


def as_pattern(table: pa.Table, folder: Path) -> Any:
    half = table.num_rows // 2
    pq.write_table(table.slice(half), folder / "part-1.parquet")
    pq.write_table(table.slice(0, half), folder / "part-2.parquet")
    return str(folder / "part-*.parquet")


def as_chunks(table: pa.Table, _: Path) -> Any:
    return pa.concat_tables([table.slice(at, 2) for at in range(0, table.num_rows, 2)])


def as_relation(table: pa.Table, _: Path) -> Any:
    return duckdb.connect().from_arrow(table)


def as_duckdb_table(table: pa.Table, _: Path) -> Any:
    connection = duckdb.connect()
    connection.register("arrow", table)
    connection.execute('CREATE TABLE "the rows" AS SELECT * FROM arrow')
    return open_source(connection, table="the rows")


def as_duckdb_file(table: pa.Table, folder: Path) -> Any:
    with duckdb.connect(folder / "t.duckdb") as connection:
        connection.register("arrow", table)
        connection.execute("CREATE TABLE peer_rows AS SELECT * FROM arrow")
    return open_source(folder / "t.duckdb", table="peer_rows")


def as_polars(table: pa.Table, _: Path) -> Any:
    return pl.from_arrow(table).with_columns(pl.selectors.float().fill_null(float("nan")))


def as_pandas(table: pa.Table, _: Path) -> Any:
    frame: pd.DataFrame = table.to_pandas()
    return frame.set_index(np.arange(len(frame))[::-1])


FORMATS: list[Callable[[pa.Table, Path], Any]] = [
    as_csv, as_csv_gz, as_parquet, as_parquet_folder, as_parquet_list, as_pattern, as_chunks,
    as_relation, as_duckdb_table, as_duckdb_file, as_polars, as_pandas,
]  # fmt: skip


@pytest.mark.parametrize("format_of", FORMATS)
@given(world=WORLDS)
@settings(max_examples=4)
def test_the_format_of_the_table_changes_nothing(format_of, world):
    one = standardise(crafted(world, 0, world.table(0)), world.contract)
    with tempfile.TemporaryDirectory() as folder:
        tally = crafted(world, 0, format_of(world.table(0), Path(folder)))
    assert_same_cells(one, standardise(tally, world.contract), world, 0)


def test_batches_of_a_long_table_add_up():
    """Longer than two of DuckDB's batches, far from zero, with gaps."""
    rng = np.random.default_rng(1)
    count = 150_000
    values = rng.normal(1e6, 3.0, size=(count, 2))
    values[rng.random(count) < 0.2, 1] = np.nan
    world = World(
        agree([2], [3], fixed=False),
        rng.integers(0, 5, size=(count, 1)),
        rng.choice([-1, 1], size=count),
        (values,),
        (rng.permutation(count),),
    )
    one = standardise(world.tally(0), world.contract)
    for rows in (world.held[0], world.held[0][::-1]):
        other = standardise(crafted(world, 0, world.table(0, rows)), world.contract)
        assert_same_cells(one, other, world, 0)


@given(world=worlds("G", rows=(8, 50)), seed=st.integers(0, 2**32 - 1), min_rows=st.integers(1, 4))
@FEW
def test_the_order_in_which_parts_arrive_changes_nothing(world, seed, min_rows):
    parts = world.parts(min_rows)
    shuffled = [parts[at] for at in np.random.default_rng(seed).permutation(len(parts))]
    one, other = merge(parts, world.contract), merge(shuffled, world.contract)
    assert one.peers == other.peers
    np.testing.assert_array_equal(one.codes, other.codes)
    np.testing.assert_array_equal(one.rows, other.rows)
    for learner in (fit_matching, fit_drl):
        np.testing.assert_array_equal(learner(one).theta, learner(other).theta)
