"""Opening a table where it is, and what is said when that fails."""

import datetime
import decimal

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

from radocraft.errors import DataError, EmptyTable, FileError
from radocraft.rows._expressions import number
from radocraft.rows.engines._base import ROWS, Source
from radocraft.rows.engines._opening import open_source

TABLE = pa.table({"n": [1, 2, 3], "t": ["a", "b", None]})


def content(source: Source) -> list[dict]:
    return source.table(exp.select("*").from_(ROWS)).to_pylist()


def test_kinds_are_told_by_what_the_engine_holds():
    table = pa.table(
        {
            "whole": pa.array([1], pa.uint8()),
            "large": pa.array([2**60]),
            "single": pa.array([1.5], pa.float32()),
            "exact": [decimal.Decimal("1.50")],
            "yes": [True],
            "text": ["x"],
            "coded": pa.array(["x"]).dictionary_encode(),
            "day": [datetime.date(2020, 1, 1)],
            "span": [datetime.timedelta(days=1)],
            "list": [[1]],
            "words": [["a"]],
            "nested": [{"a": 1}],
            "mapped": pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64())),
            "nothing": pa.nulls(1, pa.int32()),
        }
    )
    kinds = open_source(table).kinds()
    assert [name for name, kind in kinds.items() if kind == "integer"] == ["whole", "large", "nothing"]
    assert [name for name, kind in kinds.items() if kind == "number"] == ["single", "exact"]
    assert [name for name, kind in kinds.items() if kind == "other"] == ["span", "list", "words", "nested", "mapped"]
    assert kinds["day"] == "date"
    assert kinds["yes"] == "boolean"
    assert kinds["text"] == kinds["coded"] == "text"


def test_a_source_comes_back_as_it_is():
    source = open_source(TABLE)
    assert isinstance(source, Source)
    assert open_source(source) is source


@pytest.mark.parametrize("data", [TABLE, TABLE.to_pandas(), pl.from_arrow(TABLE), TABLE.to_pydict()])
def test_tables_in_memory(data):
    assert content(open_source(data)) == TABLE.to_pylist()


@pytest.mark.parametrize("name", ["a[1].csv", "what*.csv", "it's.csv", "mit ümläut.csv", "x.tsv", "x.csv.gz"])
def test_files_with_odd_names(tmp_path, name):
    frame = TABLE.to_pandas()
    frame.to_csv(tmp_path / name, index=False, sep="\t" if name.endswith("tsv") else ",")
    (tmp_path / "a1.csv").write_text("not,this\n1,2\n")
    (tmp_path / "whatever.csv").write_text("not,this\n1,2\n")
    assert content(open_source(tmp_path / name)) == [{"n": str(row["n"]), "t": row["t"]} for row in TABLE.to_pylist()]


def test_columns_of_many_files_are_brought_together_by_name(tmp_path):
    pq.write_table(TABLE.slice(0, 1), tmp_path / "1.parquet")
    pq.write_table(TABLE.slice(1).select(["t", "n"]), tmp_path / "2.parquet")
    assert content(open_source(tmp_path)) == TABLE.to_pylist()


def test_a_folder_that_is_named_like_a_file(tmp_path):
    (tmp_path / "t.parquet").mkdir()
    (tmp_path / "t.parquet" / "inner.parquet").mkdir()
    pq.write_table(TABLE, tmp_path / "t.parquet" / "inner.parquet" / "part-0.parquet")
    assert content(open_source(tmp_path / "t.parquet")) == TABLE.to_pylist()


@pytest.mark.parametrize("table", ["plain", "order", "two words", "s.inner", "radocraft_row", "peer_rows"])
def test_tables_of_a_database(tmp_path, table):
    quoted = ".".join(f'"{step}"' for step in table.split("."))
    with duckdb.connect(tmp_path / "d.duckdb") as connection:
        connection.register("arrow", TABLE)
        connection.execute(f"CREATE SCHEMA s; CREATE TABLE {quoted} AS SELECT * FROM arrow")
        assert content(open_source(connection, table=table)) == TABLE.to_pylist()
    source = open_source(tmp_path / "d.duckdb", table=table)
    assert (source.name, content(source)) == (table, TABLE.to_pylist())


def test_two_tables_of_one_connection_do_not_disturb_each_other_or_the_connection():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE one AS SELECT 1 AS a; CREATE TABLE two AS SELECT 2 AS a")
    one, two = open_source(connection, table="one"), open_source(connection, table="two")
    assert (content(one), content(two)) == ([{"a": 1}], [{"a": 2}])
    with pytest.raises(duckdb.CatalogException):
        connection.execute(f"SELECT * FROM {ROWS.sql()}")


def test_frames_and_temporary_tables_of_a_connection():
    connection = duckdb.connect()
    connection.register("frame", TABLE)
    connection.execute("CREATE TEMP TABLE passing AS SELECT * FROM frame")
    for name in ("frame", "passing"):
        source = open_source(connection, table=name)
        assert (source.name, content(source)) == (name, TABLE.to_pylist())
    with pytest.raises(DataError, match="absent"):
        open_source(connection, table="absent")


def test_not_a_number_is_seen_behind_a_view_of_a_connection(tmp_path):
    """What Parquet files say of their columns leaves NaN out, and the engine would believe it."""
    values = np.arange(1000.0)
    values[5] = np.nan
    pq.write_table(pa.table({"x": values, "two words": values, "k": np.arange(1000)}), tmp_path / "t.parquet")
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW seen AS SELECT * FROM '{tmp_path / 't.parquet'}'")
    source = open_source(connection, table="seen")
    for name in ("x", "two words"):
        value = number(exp.column(name, quoted=True), "number")
        missing = exp.select(exp.func("COUNT", exp.Star()).as_("rows"), exp.func("COUNT", value).as_("there")).from_(
            ROWS
        )
        assert source.table(missing).to_pylist() == [{"rows": 1000, "there": 999}]
    assert source.kinds() == {"x": "number", "two words": "number", "k": "integer"}


def test_a_database_is_opened_for_reading_only(tmp_path):
    with duckdb.connect(tmp_path / "d.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    source = open_source(tmp_path / "d.duckdb", table="t")
    with pytest.raises(duckdb.InvalidInputException, match="read-only"):
        source.connection.execute("INSERT INTO t VALUES (2)")


def test_batches_come_in_row_order_and_in_pieces():
    rows = 200_000
    source = open_source(pa.table({"n": pa.array(range(rows))}))
    batches = list(source.batches(exp.select("n").from_(ROWS)))
    assert len(batches) > 1
    assert pa.Table.from_batches(batches).column("n").to_pylist() == list(range(rows))


def test_rows_in_any_order_are_all_there_and_order_comes_back(tmp_path):
    rows = 1_000_000
    pq.write_table(pa.table({"n": pa.array(range(rows))}), tmp_path / "t.parquet", row_group_size=50_000)
    source = open_source(tmp_path / "t.parquet")
    query = exp.select("n").from_(ROWS)
    loose = source.batches(query, ordered=False)
    next(loose)
    loose.close()
    found = np.concatenate([batch["n"].to_numpy() for batch in source.batches(query, ordered=False)])
    assert np.array_equal(np.sort(found), np.arange(rows))
    found = np.concatenate([batch["n"].to_numpy() for batch in source.batches(query)])
    assert np.array_equal(found, np.arange(rows))


def test_a_users_connection_keeps_its_settings():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT range AS n FROM range(10)")
    settings = "SELECT name, value FROM duckdb_settings() ORDER BY name"
    before = connection.sql(settings).fetchall()
    batches = open_source(connection, table="t").batches(exp.select("n").from_(ROWS), ordered=False)
    next(batches)
    assert connection.sql(settings).fetchall() == before


@pytest.mark.parametrize(
    ("data", "options", "error", "message"),
    [
        ("nowhere.csv", {}, FileError, "no file"),
        ("none-*.csv", {}, FileError, "no CSV or Parquet"),
        ("folder", {}, FileError, "no CSV or Parquet"),
        ([], {}, FileError, "no CSV or Parquet"),
        ("empty.csv", {}, EmptyTable, "is empty"),
        ("empty.parquet", {}, EmptyTable, "is empty"),
        ("cut.parquet", {}, DataError, "not a whole one"),
        ("noise.csv", {}, DataError, "no CSV in UTF-8"),
        (["good.csv", "good.parquet"], {}, FileError, "mixes CSV and Parquet"),
        ("nowhere.duckdb", {"table": "t"}, FileError, "no database"),
        ("good.duckdb", {}, DataError, "say which table"),
        ("good.duckdb", {"table": "u"}, DataError, "does not exist"),
        ("fake.duckdb", {"table": "t"}, FileError, "cannot be opened"),
    ],
)
@pytest.mark.usefixtures("scraps")
def test_what_cannot_be_opened_is_said_clearly(data, options, error, message):
    with pytest.raises(error, match=message) as raised:
        open_source(data, **options).kinds()
    assert raised.value.exit_code == 1


@pytest.fixture
def scraps(tmp_path, monkeypatch):
    """A folder of files that are not what they seem."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.csv").touch()
    (tmp_path / "noise.csv").write_bytes(bytes(range(256)) * 20)
    (tmp_path / "empty.parquet").touch()
    (tmp_path / "good.csv").write_text("a\n1\n")
    pq.write_table(TABLE, "good.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "good.parquet").read_bytes()[:-20])
    (tmp_path / "fake.duckdb").write_text("hello")
    with duckdb.connect("good.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")


@pytest.mark.parametrize("data", [5, [{"a": 1}], object()])
def test_what_is_no_table_is_refused(data):
    with pytest.raises(DataError, match="cannot be read as a table"):
        open_source(data)


def test_a_table_is_only_named_in_a_database():
    with pytest.raises(DataError, match="leave `table` out"):
        open_source(TABLE, table="t")
