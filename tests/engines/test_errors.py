"""What goes wrong with an engine is said plainly, without a password and without a row's value."""

import sys
from importlib import import_module
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp
from tests.engines.test_same_tally import in_postgres

from radocraft import Contract, craft
from radocraft.errors import DataError, SourceError, WrongType
from radocraft.rows.engines._base import Cluster
from radocraft.rows.engines._opening import open_source

CONTRACT = Contract.parse("""
name = "small"
label = { column = "y", positive = 1, negative = 0 }
shared = [{ name = "s", categories = ["a", "b"] }]
peers.bank.features = { x = "numeric" }
""")


def rows(**changed: Any) -> pa.Table:
    return pa.table({"y": [0, 1, 1], "s": ["a", "b", "a"], "x": [1.0, 2.0, 3.0], **changed})


def execute(cluster: Any, *statements: str) -> None:
    driver = import_module("adbc_driver_postgresql.dbapi")
    with driver.connect(cluster.address(), autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def test_wrong_password(postgres: Any) -> None:
    with pytest.raises(SourceError, match="refused the user or the password") as caught:
        open_source(postgres.address(password="hunter2"), table="customers")
    assert "hunter2" not in str(caught.value)


def test_wrong_database(postgres: Any) -> None:
    with pytest.raises(SourceError, match="no database of that name"):
        open_source(postgres.address(database="nowhere"), table="customers")


def test_no_server() -> None:
    pytest.importorskip("adbc_driver_postgresql", reason="pip install radocraft[postgres]")
    with pytest.raises(SourceError, match=r"cannot be reached.*Check host and port") as caught:
        open_source("postgresql://peer:hunter2@127.0.0.1:1/postgres", table="customers")
    assert "hunter2" not in str(caught.value)


def test_no_table_named_and_no_such_table(postgres: Any) -> None:
    with pytest.raises(DataError, match="say which table"):
        open_source(postgres.address())
    with pytest.raises(DataError, match=r"no table .nowhere\.customers."):
        open_source(postgres.address(), table="nowhere.customers")
    with pytest.raises(DataError, match="no table 'customers; drop"):
        open_source(postgres.address(), table="customers; drop table customers")
    with pytest.raises(DataError, match="not a table's name"):
        open_source(postgres.address(), table="pg_sleep(1)")


def test_no_right_to_read(postgres: Any) -> None:
    in_postgres(rows(), postgres, "locked")
    execute(postgres, "DROP ROLE IF EXISTS guest", "CREATE ROLE guest LOGIN PASSWORD 'guest'")
    execute(postgres, 'GRANT USAGE ON SCHEMA "Peer schema" TO guest')
    address = f"postgresql://guest:guest@127.0.0.1:{postgres.port}/postgres"
    with pytest.raises(DataError, match="may not read"):
        craft(open_source(address, table='"Peer schema".locked'), CONTRACT, "bank")


def test_connection_lost_on_the_way(postgres: Any) -> None:
    source = in_postgres(rows(), postgres, "dropped")
    execute(postgres, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    with pytest.raises(SourceError, match=r"connection to Postgres was lost.*craft again"):
        craft(source, CONTRACT, "bank")


def test_connection_lost_in_the_middle_of_a_stream(postgres: Any) -> None:
    source = in_postgres(rows(), postgres, "streamed")
    many = exp.select("*").from_("GENERATE_SERIES(1, 30000000) AS number(x)")
    stream = source.batches(many)
    next(stream)
    execute(postgres, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    with pytest.raises(SourceError, match="connection to Postgres was lost"):
        list(stream)


def test_a_type_that_is_no_number(postgres: Any) -> None:
    execute(
        postgres,
        "DROP TABLE IF EXISTS odd",
        "CREATE TABLE odd AS SELECT 1 AS y, 'a' AS s, point(1, 2) AS x UNION ALL SELECT 0, 'b', NULL",
    )
    with pytest.raises(WrongType, match="'x' in 'odd' is neither number, truth value, date nor text"):
        craft(open_source(postgres.address(), table="odd"), CONTRACT, "bank")


def test_text_where_a_number_should_be_keeps_the_text_to_itself(postgres: Any, spark: Any) -> None:
    bad = rows(x=["1.5", "5d", "2"])
    for source in (in_postgres(bad, postgres, "words"), open_source(spark.createDataFrame(bad)), open_source(bad)):
        with pytest.raises(WrongType, match=r"'x' in .* holds text where the contract says numeric") as caught:
            craft(source, CONTRACT, "bank")
        assert "5d" not in str(caught.value)


def test_a_number_too_large_keeps_the_number_to_itself(postgres: Any) -> None:
    source = in_postgres(rows(x=["1.5", "1e999", "2"]), postgres, "large")
    with pytest.raises(WrongType, match="cannot read as a number") as caught:
        craft(source, CONTRACT, "bank")
    assert "999" not in str(caught.value)


def test_a_source_survives_a_failed_statement(postgres: Any) -> None:
    source = in_postgres(rows(), postgres, "survivor")
    with pytest.raises(DataError, match="could not be read"):
        source.table(exp.select("nothing").from_("radocraft_rows"))
    assert craft(source, CONTRACT, "bank").total == 3


def test_both_passes_see_the_same_rows(postgres: Any) -> None:
    source = in_postgres(rows(), postgres, "moving")
    before = craft(source, CONTRACT, "bank")
    execute(postgres, """INSERT INTO "Peer schema".moving SELECT * FROM "Peer schema".moving""")
    assert craft(source, CONTRACT, "bank").total == before.total == 3


def test_spark_types_and_statements(spark: Any) -> None:
    nested = spark.createDataFrame(rows()).selectExpr("y", "s", "array(x) AS x")
    with pytest.raises(WrongType, match="neither number, truth value, date nor text"):
        craft(open_source(nested), CONTRACT, "bank")
    with pytest.raises(DataError, match="could not be read: Spark says UNRESOLVED_COLUMN"):
        open_source(spark.createDataFrame(rows())).table(exp.select("nothing").from_("radocraft_rows"))


def test_two_spark_frames_do_not_mix(spark: Any) -> None:
    first = open_source(spark.createDataFrame(rows()))
    second = open_source(spark.createDataFrame(rows(x=[10.0, 20.0, 30.0])))
    raw = [craft(source, CONTRACT, "bank", bounds=None).rebased(*origin()) for source in (first, second)]
    assert [float(tally.sums.sum()) for tally in raw] == [6.0, 60.0]


def origin() -> tuple[Any, Any]:
    numpy = import_module("numpy")
    return numpy.zeros(1), numpy.ones(1)


def test_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql.dbapi", None)
    with pytest.raises(SourceError, match=r"pip install 'radocraft\[postgres\]'"):
        open_source("postgresql://peer@127.0.0.1/postgres", table="customers")


def test_workers_that_lack_a_package_are_said_to(spark: Any) -> None:
    def lacking(batches: Any) -> Any:
        import_module("nothing_of_this_name")
        yield from batches

    source = open_source(spark.createDataFrame(rows()))
    assert isinstance(source, Cluster)
    with pytest.raises(SourceError, match=r"workers lack radocraft, or a package.*Install what is here"):
        list(source.mapped(exp.select("x").from_("radocraft_rows"), lacking))
