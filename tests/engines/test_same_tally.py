"""One statement, one table, one tally: whatever engine holds the rows."""

from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sqlglot import exp
from tests.engines import worlds
from tests.engines.worlds import CONTRACT, Exact, assert_exact

from radocraft import Contract, craft
from radocraft.gate import Noise
from radocraft.rows._craft import relabelled
from radocraft.rows._ranking import Ranking
from radocraft.rows.engines._base import Source
from radocraft.rows.engines._opening import open_source
from radocraft.sums._cells import standardise

ENGINES = ("arrow", "csv", "duckdb", "pandas", "parquet", "polars", "postgres", "spark")


def hold(engine: str, rows: pa.Table, folder: Path, request: pytest.FixtureRequest) -> Source:
    """Put the rows where the engine keeps them, and open them there."""
    if engine == "postgres":
        return in_postgres(rows, request.getfixturevalue("postgres"))
    if engine == "spark":
        frame = request.getfixturevalue("spark").createDataFrame(rows).repartition(3)
        return open_source(frame)
    if engine == "csv":
        pyarrow.csv.write_csv(as_text(rows), folder / "rows.csv")
        return open_source(folder / "rows.csv")
    if engine == "parquet":
        pq.write_table(rows, folder / "rows.parquet", row_group_size=100)
        return open_source(folder / "rows.parquet")
    if engine == "duckdb":
        with duckdb.connect(str(folder / "rows.duckdb")) as database:
            database.register("given", rows)
            database.execute('CREATE TABLE "the rows" AS SELECT * FROM given')
        return open_source(folder / "rows.duckdb", table='"the rows"')
    frames: dict[str, Any] = {"arrow": rows, "pandas": rows.to_pandas, "polars": lambda: pl.from_arrow(rows)}
    return open_source(frames[engine]() if callable(frames[engine]) else frames[engine])


def as_text(rows: pa.Table) -> pa.Table:
    """What text can say: float32 in all its digits, no bytes, and a missing category as nothing."""
    for at, name in enumerate(rows.column_names):
        column = rows.column(name)
        if column.type == pa.float32():
            rows = rows.set_column(at, name, column.cast(pa.float64()))
        if name == "grade":
            rows = rows.set_column(at, name, pc.if_else(pc.is_nan(column), None, column))
    return rows.drop_columns([name for name in ("ignored",) if name in rows.column_names])


def in_postgres(rows: pa.Table, cluster: Any, name: str = "customers") -> Source:
    with (
        import_module("adbc_driver_postgresql.dbapi").connect(cluster.address()) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute('CREATE SCHEMA IF NOT EXISTS "Peer schema"')
        cursor.adbc_ingest(name, rows, mode="replace", db_schema_name="Peer schema")
        connection.commit()
    return open_source(cluster.address(), table=f'"Peer schema".{name}')


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_exact_sums(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    rows = worlds.table()
    source = hold(engine, rows, tmp_path, request)
    assert_exact(craft(source, CONTRACT, "bank", bounds=None), Exact.of(rows))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_same_bounded_tally_to_the_bit(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Whole numbers on a grid add up to the same in any order; units left to the data come from the same counts."""
    rows = worlds.table()
    tally = craft(hold(engine, rows, tmp_path, request), CONTRACT, "bank", noise=Noise.seeded("units"))
    assert set(tally.constants) == {"income", "far", "small", "whole", "price", "written", "empty_in_north", worlds.ODD}
    assert tally.constants == craft(rows, CONTRACT, "bank", noise=Noise.seeded("units")).constants
    assert tally.digest() == Exact.of(rows).bounded(CONTRACT, "bank", tally.constants).digest()


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_labels_by_rank(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    contract = Contract.model_validate(
        {**(spelled := CONTRACT.model_dump(mode="json")), "label": {**spelled["label"], "held_by": ["insurer"]}}
    )
    rows = worlds.table()
    plain = craft(rows, contract, "bank", bounds=None)
    cells = standardise(plain, contract)
    weights = np.cos(np.arange(len(cells.columns)))
    ranking = Ranking(weights, cells.centre, cells.scale, cells.codes, plain.rows // 3)
    found = relabelled(plain, hold(engine, rows, tmp_path, request), contract, ranking)
    expected = relabelled(plain, rows, contract, ranking)
    for name in ("codes", "labels", "rows", "present"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_allclose(found.sums, expected.sums, rtol=1e-9, atol=1e-9)
    positive = expected.labels == 1
    assert expected.rows[positive].sum() == (plain.rows // 3).sum()


TOWNS = [f"town {at}" for at in range(30)]


def wide(rows: int, width: int) -> tuple[Contract, pa.Table]:
    features = "\n".join(f'x{at:02} = "numeric"' for at in range(width))
    contract = Contract.parse(f"""
name = "wide"
label = {{ column = "y", positive = 1, negative = 0 }}
shared = [{{ name = "s", categories = [0, 1, 2] }}, {{ name = "t", edges = [2, 3] }}]
[peers.bank.features]
{features}
z = {{ kind = "categorical", categories = {TOWNS} }}
""")
    rng = np.random.default_rng(1)
    columns = {f"x{at:02}": pa.array(rng.normal(3.0 * at, 1 + at, rows)) for at in range(width)}
    columns["x00"] = pa.array(np.where(rng.random(rows) < 0.3, rng.normal(size=rows), 2.5))
    columns["x02"] = pa.array([None if at % 5 == 0 else max(at - 200.0, 0.0) for at in range(rows)], pa.float64())
    columns["x03"] = pa.array([9 if at % 10 == 3 else int(at % 3 == 0) for at in range(rows)], pa.int64())
    columns["x01"] = pa.array([None if at % 7 == 0 else float(at) for at in range(rows)], pa.float64())
    steps = pa.array([None if at % 11 == 0 else at % 6 for at in range(rows)], pa.int32())
    columns["z"] = pa.array([[*TOWNS, "Höhe", None][at] for at in rng.integers(0, len(TOWNS) + 2, rows)])
    return contract, pa.table({"y": rng.integers(0, 2, rows), "s": rng.integers(0, 3, rows), "t": steps, **columns})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("width", [4, 40], ids=["narrow", "wide"])
def test_narrow_and_wide_moments_are_exact_and_bounded_to_the_bit(
    width: int, engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    contract, rows = wide(300, width)
    names = tuple(f"x{at:02}" for at in range(width))
    towns = tuple(f"z={town}" for town in (*TOWNS, "missing", "unseen"))
    exact = Exact({}, {}, names + towns)
    for row in rows.to_pylist():
        step = 3 if row["t"] is None else int(np.searchsorted([2, 3], row["t"], side="right"))
        block = (row["s"], step, 1 if row["y"] else -1)
        exact.rows[block] = exact.rows.get(block, 0) + 1
        values = [np.nan if row[name] is None else row[name] for name in names]
        values += np.eye(len(towns))[worlds.coded(row["z"], TOWNS)].tolist()
        exact.values.setdefault(block, []).append(values)
    source = hold(engine, rows, tmp_path, request)
    assert_exact(craft(source, contract, "bank", bounds=None), exact)
    units = {name: (3.0 * at, 1.0 + at) for at, name in enumerate(names)}
    bounded = craft(source, contract, "bank", constants=units)
    assert bounded.digest() == exact.bounded(contract, "bank", units).digest()


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_predictions_stream_from_every_engine(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    _, rows = wide(300, 4)
    source = hold(engine, rows, tmp_path, request)
    query = exp.select(exp.column("x00", quoted=True).as_("value")).from_(exp.to_table("radocraft_rows"))
    streamed = pa.Table.from_batches(list(source.batches(query))).column("value").to_numpy()
    assert sorted(streamed) == sorted(rows.column("x00").to_numpy())


def test_pandas_reads_like_arrow_even_with_its_own_types() -> None:
    rows = worlds.table().drop_columns(["price"]).to_pandas()
    assert isinstance(rows, pd.DataFrame)
    assert open_source(rows).kinds()["member"] in ("boolean", "other")
