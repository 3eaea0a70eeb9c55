"""A table in Postgres: aggregates are computed there, results come by ADBC.

The source is one read-only transaction, so both passes of a craft see the same
rows even while others write. Narrow tables never hand out a row: their moments
are pair sums. Wide ones stream their encoded columns.
"""

from __future__ import annotations

import weakref
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from radocraft.arrays import Floats
from radocraft.contract import Kind
from radocraft.errors import DataError, SourceError, WrongType
from radocraft.rows._moments import Advance, RowLayout, of_batches
from radocraft.rows.engines import _pairs as pairs
from radocraft.rows.engines._base import ROWS, Settings, drawn_by_place
from radocraft.rows.engines._driver import driver
from radocraft.rows.engines._statement import written
from radocraft.sums import Piece

SCHEMES = ("postgresql://", "postgres://")
_INTEGERS = ("smallint", "integer", "bigint")
_NUMBERS = ("real", "double precision", "numeric")
_DATES = ("date", "timestamp without time zone", "timestamp with time zone")
_TEXTS = ("text", "character varying", "character", "citext", "name")
_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_ONE_ORDER = ("SET LOCAL max_parallel_workers_per_gather = 0", "SET LOCAL synchronize_seqscans = off")
_COLUMNS = """
SELECT attribute.attname AS name, attribute_type.typtype::text AS type_kind,
       format_type(coalesce(nullif(attribute_type.typbasetype, 0), attribute_type.oid), NULL) AS type_name
FROM pg_attribute AS attribute JOIN pg_type AS attribute_type ON attribute_type.oid = attribute.atttypid
WHERE attribute.attrelid = to_regclass($1) AND attribute.attnum > 0 AND NOT attribute.attisdropped
ORDER BY attribute.attnum
"""


@dataclass(frozen=True)
class PostgresSource:
    """A table, seen through one read-only transaction."""

    name: str
    relation: exp.Table
    connection: Any
    columns: dict[str, Kind]
    begin: tuple[str, ...]
    sum_function: str = "SUM"
    room: int = 0
    threads: int = 1

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The table, by its name."""
        return (Piece(self.name, f"postgres {self.relation.sql('postgres')}"),)

    def row_count(self) -> int:
        """Not known without reading."""
        return 0

    def kinds(self) -> dict[str, Kind]:
        """The table's columns and their kinds."""
        return dict(self.columns)

    def table(self, query: exp.Query) -> pa.Table:
        """The answer, whole."""
        with _explaining(self.name, self.connection, self.begin), self.connection.cursor() as cursor:
            cursor.execute(self._written(query))
            return cursor.fetch_arrow_table()

    def batches(self, query: exp.Query, *, ordered: bool = True) -> Generator[pa.RecordBatch, None, None]:
        """The answer, streamed."""
        with _explaining(self.name, self.connection, self.begin), self.connection.cursor() as cursor:
            cursor.execute(self._written(query))
            yield from cursor.fetch_record_batch()

    def moments(
        self, values: exp.Select, layout: RowLayout, gaps: Sequence[int], labels: int, advance: Advance
    ) -> Floats:
        """Pair sums while they are few, so that no row leaves the database; else streamed columns."""
        if pairs.count(layout.width, gaps) <= pairs.MOST_SUMS:
            return pairs.moments(self.table(pairs.statement(values, layout, gaps)), layout.width, gaps, labels)
        return of_batches(self.batches(values), layout, gaps, labels, advance)

    def sample(self, rows: int) -> exp.Query:
        """The first rows the database finds."""
        return exp.select("*").from_(ROWS).limit(rows)

    def draw(self, rows: int, of: int, seed: int) -> exp.Query:
        """By the rows' places, which are the same on every reading."""
        return drawn_by_place(rows, of, seed)

    def _written(self, query: exp.Query) -> str:
        return written(query, "postgres", self.relation)


def from_postgres(address: str, table: str | None, settings: Settings) -> PostgresSource:
    """A table, view or materialised view at ``postgresql://user:password@host/database``."""
    if table is None:
        raise DataError("The address is that of a database: say which table, e.g. --table public.customers.")
    relation = exp.to_table(table, dialect="postgres")
    if not isinstance(relation.this, exp.Identifier):
        raise DataError(f"'{table}' is not a table's name. Write it as in SQL, e.g. public.customers.")
    if settings.embedded_only:
        raise DataError("Postgres has its own memory and temporary files: leave memory_limit and temp_directory out.")
    connection = _connect(address)
    begin = (_SNAPSHOT, *(_ONE_ORDER if settings.exact else ()))
    with _explaining(table, connection, begin), connection.cursor() as cursor:
        for statement in begin:
            cursor.execute(statement)
        cursor.execute(_COLUMNS, (relation.sql("postgres"),))
        columns = cursor.fetch_arrow_table().to_pylist()
    if not columns:
        connection.close()
        raise DataError(
            f"There is no table '{table}' in the database, or it has no columns. Check the spelling and the schema; "
            "names with capitals need double quotes."
        )
    kinds = {column["name"]: _kind(column["type_kind"], column["type_name"]) for column in columns}
    source = PostgresSource(table, relation, connection, kinds, begin)
    weakref.finalize(source, connection.close)
    return source


def _driver() -> Any:
    return driver("adbc_driver_postgresql.dbapi", "Postgres", "postgres")


def _connect(address: str) -> Any:
    dbapi = _driver()
    try:
        return dbapi.connect(address)
    except dbapi.Error as error:
        raise SourceError(_why(str(error))) from error


def _why(message: str) -> str:
    """What a refused connection means; the address is not repeated, since it may hold a password."""
    if "authentication failed" in message or "no password supplied" in message or "no pg_hba.conf entry" in message:
        return (
            "Postgres refused the user or the password. Check both in the address "
            "postgresql://user:password@host:port/database (letters such as @ or / in a password as %40 or %2F)."
        )
    if "database" in message and "does not exist" in message:
        return "Postgres has no database of that name. Check the last part of the address."
    reason = message.strip().splitlines()[0].rsplit("Failed to connect: ", 1)[-1]
    return f"Postgres cannot be reached: {reason}. Check host and port in the address, and that the server runs."


def _kind(type_kind: str, type_name: str) -> Kind:
    if type_kind == "e" or type_name in _TEXTS:
        return "text"
    if type_name == "boolean":
        return "boolean"
    if type_name in _INTEGERS:
        return "integer"
    if type_name in _DATES:
        return "date"
    return "number" if type_name in _NUMBERS else "other"


@contextmanager
def _explaining(name: str, connection: Any, begin: tuple[str, ...]) -> Iterator[None]:
    """Say what went wrong; Postgres puts values into its messages, so they are not passed on where it may be one."""
    failure: type[Exception] = _driver().Error
    try:
        yield
    except (failure, OSError) as error:
        state, message = getattr(error, "sqlstate", None) or "", str(error)
        _roll_back(connection, begin, failure)
        if state.startswith("22"):
            raise WrongType(
                f"'{name}' holds a value that Postgres cannot read as a number (SQLSTATE {state}): one too large, "
                "or text in a form only other engines know. Clean the column, or leave such cells empty."
            ) from error
        if state == "42501":
            raise DataError(f"The user may not read '{name}'. Ask for the right to SELECT from it.") from error
        if state.startswith(("08", "57")) or any(sign in message for sign in _LOST):
            raise SourceError(
                f"The connection to Postgres was lost while reading '{name}'. "
                "Nothing was written; check the server and craft again."
            ) from error
        first = message.strip().splitlines()[0]
        raise DataError(f"'{name}' could not be read: {first}") from error


_LOST = ("no connection to the server", "server closed the connection", "terminating connection", "connection not open")


def _roll_back(connection: Any, begin: tuple[str, ...], failure: type[Exception]) -> None:
    """End the failed transaction, so that the next statement starts a fresh one."""
    try:
        connection.rollback()
        with connection.cursor() as cursor:
            for statement in begin:
                cursor.execute(statement)
    except failure:
        return
