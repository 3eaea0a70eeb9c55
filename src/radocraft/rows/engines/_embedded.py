"""Files and tables in memory, through an embedded DuckDB."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from radocraft.arrays import Floats
from radocraft.contract import Kind
from radocraft.errors import DataError, EmptyTable, FileError
from radocraft.rows._moments import Advance, RowLayout, of_batches
from radocraft.rows.engines._base import ROWS, Settings, drawn_by_place
from radocraft.rows.engines._excel import SUFFIXES as EXCEL
from radocraft.rows.engines._statement import written
from radocraft.sums import Piece

_CELLS = 2**22
_BATCH = 2**14
"""So many rows at a time are handed out: of larger batches the memory is given back and asked for anew each time."""
_ROOM = 2**29
_LITTLE_ROOM = 2**25
"""Under a limit on its memory the engine keeps block sums itself: it can put them to disk."""
_SETTINGS = {
    "autoinstall_known_extensions": "false",
    "enable_progress_bar": "false",  # in a notebook it would print its own beside ours
    # The statistics in a Parquet file leave NaN out; DuckDB would decide from them that there is none.
    "disabled_optimizers": "'statistics_propagation'",
    # Reading ahead is of no use for files on this machine: it takes memory, and up to twice the time.
    "disable_parquet_prefetching": "true",
    "async_threads": "0",
    "parquet_metadata_cache": "true",  # several statements read the same file
    "streaming_buffer_size": "'64MiB'",  # with less, threads wait for one another
}
_TEXT_FILES = (".csv", ".tsv", ".txt")
_INTEGER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?")
_NUMBER = re.compile(r"FLOAT|DOUBLE|DECIMAL\(.*\)|BIGNUM")


@dataclass(frozen=True)
class DuckDBSource:
    """A view named `ROWS` in a DuckDB connection of its own."""

    name: str
    connection: duckdb.DuckDBPyConnection
    identify: Callable[[], tuple[Piece, ...]] = tuple
    sum_function: str = "fsum"
    room: int = _ROOM
    knows_its_rows: bool = True
    own: bool = True

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The files, or the table."""
        return self.identify()

    def row_count(self) -> int:
        """From the file's metadata; text has none."""
        if not self.knows_its_rows:
            return 0
        return int(self.table(exp.select(exp.func("COUNT", exp.Star()).as_("rows")).from_(ROWS))["rows"][0].as_py())

    def kinds(self) -> dict[str, Kind]:
        """The view's columns and their kinds."""
        with _explaining(self.name):
            relation = self.connection.table(ROWS.sql())
            return {name: _kind(str(kind)) for name, kind in zip(relation.columns, relation.types, strict=True)}

    def table(self, query: exp.Query) -> pa.Table:
        """The answer, whole."""
        with _explaining(self.name):
            return self.connection.sql(written(query, "duckdb")).to_arrow_table()

    @property
    def threads(self) -> int:
        """As many as the engine has."""
        return int(self.table(exp.select("CURRENT_SETTING('threads') AS threads"))["threads"][0].as_py())

    def batches(self, query: exp.Query, *, ordered: bool = True) -> Generator[pa.RecordBatch, None, None]:
        """The answer, streamed."""
        with _explaining(self.name), self._in_order(ordered):
            rows = max(2048, min(_BATCH, _CELLS // len(query.selects)))
            reader = self.connection.sql(written(query, "duckdb")).to_arrow_reader(rows)
            try:
                yield from reader
            finally:
                reader.close()

    @contextmanager
    def _in_order(self, ordered: bool) -> Iterator[None]:
        """Let the engine hand out rows as it finds them; a connection of the user's own is left as it is."""
        if ordered or not self.own:
            yield
            return
        self.connection.execute("SET preserve_insertion_order = false")
        try:
            yield
        finally:
            with suppress(duckdb.Error):
                self.connection.execute("SET preserve_insertion_order = true")

    def moments(
        self, values: exp.Select, layout: RowLayout, gaps: Sequence[int], labels: int, advance: Advance
    ) -> Floats:
        """Streamed into a BLAS product."""
        return of_batches(self.batches(values), layout, gaps, labels, advance)

    def sample(self, rows: int) -> exp.Query:
        """The first rows: any will do for its purpose, and these are the cheapest."""
        return exp.select("*").from_(ROWS).limit(rows)

    def draw(self, rows: int, of: int, seed: int) -> exp.Query:
        """By the rows' places, which are the same on every reading."""
        return drawn_by_place(rows, of, seed)


def from_memory(data: Any, settings: Settings) -> DuckDBSource:
    """A data frame or Arrow table."""
    try:
        table = data if isinstance(data, pa.Table) else pa.table(data)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise DataError(
            f"A {type(data).__name__} cannot be read as a table: {error}. "
            "Give a path, a list of paths, or a pandas, Polars or Arrow table."
        ) from error
    connection, name = _connect(settings), type(data).__name__
    connection.register(ROWS.sql(), table)
    return DuckDBSource(name, connection, lambda: (Piece.of_table(name, table),), room=_room(settings))


def from_files(paths: list[Path], settings: Settings) -> DuckDBSource:
    """CSV or Parquet: files, folders and patterns, read as one table."""
    files = [file for path in paths for file in _expand(path)]
    name = f"{paths[0]} and {len(paths) - 1} more" if len(paths) > 1 else "".join(map(str, paths))
    if not files:
        raise FileError(f"There is no CSV or Parquet file at '{name}'. Check the path.")
    for file in files:
        if not file.exists():
            raise FileError(f"There is no file '{file}'. Check the path.")
        if file.stat().st_size == 0:
            raise EmptyTable(f"'{file}' is empty. Give a file with a header and rows.")
    if excel := [file for file in files if _suffix(file) in EXCEL]:
        raise FileError(f"'{excel[0]}' is an Excel file. Give it alone, or save all as CSV or Parquet.")
    kinds = {"text" if _suffix(file) in _TEXT_FILES else "parquet" for file in files}
    if len(kinds) > 1:
        raise FileError(f"'{name}' mixes CSV and Parquet files. Give one kind at a time.")
    listed = exp.array(*(exp.Literal.string(_as_written(file)) for file in files)).sql("duckdb")
    options = "header = true, all_varchar = true" if kinds == {"text"} else "union_by_name = true"
    function = "read_csv" if kinds == {"text"} else "read_parquet"
    relation = f"{function}({listed}, {options})"
    source = _with_view(name, _connect(settings), relation, lambda: tuple(Piece.of_file(file) for file in files))
    return replace(source, knows_its_rows=kinds == {"parquet"}, room=_room(settings))


def from_database(data: Any, table: str | None, settings: Settings) -> DuckDBSource:
    """A table of a DuckDB file, opened read-only, or of an open connection."""
    if table is None:
        raise DataError(f"'{data}' is a database: say which table, e.g. --table customers.")
    if isinstance(data, duckdb.DuckDBPyConnection):
        if settings != Settings():
            raise DataError(
                "A connection of your own keeps its settings. Set memory_limit, temp_directory or threads there."
            )
        return _from_connection(data, table)
    elif isinstance(data, str | Path):
        if not Path(data).exists():
            raise FileError(f"There is no database '{data}'. Check the path.")
        connection = _connect(settings, data)
    else:
        raise DataError(f"A {type(data).__name__} has no tables to name; leave `table` out.")
    place, relation = Path(data).name, _relation(table)
    source = _with_view(table, connection, relation, lambda: (Piece(table, f"duckdb {place} {relation}"),))
    return replace(source, room=_room(settings))


def _from_connection(data: duckdb.DuckDBPyConnection, table: str) -> DuckDBSource:
    """A table of a user's connection; what no other connection can see, registered frames for one, in memory."""
    relation = _relation(table)
    with _explaining(table):
        try:
            seen = _without_statistics(connection := data.cursor(), relation)
        except duckdb.CatalogException:
            return replace(from_memory(data.sql(f"SELECT * FROM {relation}").to_arrow_table(), Settings()), name=table)
    source = _with_view(table, connection, seen, lambda: (Piece(table, f"duckdb connection {relation}"),))
    return replace(source, own=False)


def _without_statistics(connection: duckdb.DuckDBPyConnection, relation: str) -> str:
    """The relation as one whose numbers the engine knows nothing about; see `_SETTINGS` for why, which are not ours."""
    table = connection.sql(f"SELECT * FROM {relation}")
    names = [exp.to_identifier(name, quoted=True).sql("duckdb") for name in table.columns]
    numbers = [name for name, kind in zip(names, table.types, strict=True) if str(kind) in ("FLOAT", "DOUBLE")]
    hidden = ", ".join(f"TRY({name}) AS {name}" for name in numbers)
    return f"(SELECT * REPLACE ({hidden}) FROM {relation})" if numbers else relation


def _relation(table: str) -> str:
    return exp.to_table(table, dialect="duckdb").sql("duckdb", identify=True)


def _room(settings: Settings) -> int:
    return _ROOM if settings.memory_limit is None else _LITTLE_ROOM


def _with_view(
    name: str, connection: duckdb.DuckDBPyConnection, relation: str, identify: Callable[[], tuple[Piece, ...]]
) -> DuckDBSource:
    with _explaining(name):
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {ROWS.sql()} AS SELECT * FROM {relation}")
    return DuckDBSource(name, connection, identify)


def _connect(settings: Settings, database: str | Path | None = None) -> duckdb.DuckDBPyConnection:
    config: dict[str, Any] = {}
    if settings.memory_limit is not None:
        config["memory_limit"] = settings.memory_limit
    if settings.temp_directory is not None:
        config["temp_directory"] = str(settings.temp_directory)
    if settings.exact:
        config["threads"] = 1
    try:
        if database is None:
            connection = duckdb.connect(config=config)
        else:
            connection = duckdb.connect(str(database), read_only=True, config=config)
        for setting, value in _SETTINGS.items():
            connection.execute(f"SET {setting} = {value}")
        return connection
    except duckdb.IOException as error:
        raise FileError(f"'{database}' cannot be opened as a DuckDB database: {error}") from error
    except duckdb.Error as error:
        raise DataError(f"DuckDB cannot work with these settings: {str(error).splitlines()[0]}") from error


def _expand(path: Path) -> list[Path]:
    if path.is_dir():
        kinds = (*_TEXT_FILES, ".parquet")
        return sorted(file for file in path.rglob("*") if file.is_file() and _suffix(file) in kinds)
    if any(mark in path.name for mark in "*?[") and not path.exists():
        return sorted(path.parent.glob(path.name))
    return [path]


def _as_written(file: Path) -> str:
    """The file's name as a pattern that only it matches."""
    return re.sub(r"([*?\[])", r"[\1]", str(file))


def _suffix(path: Path) -> str:
    return (Path(path.stem).suffix if path.suffix.lower() in (".gz", ".zst") else path.suffix).lower()


def _kind(duckdb_type: str) -> Kind:
    if duckdb_type == "BOOLEAN":
        return "boolean"
    if duckdb_type.endswith("]"):  # a list or an array of something
        return "other"
    if duckdb_type.startswith(("VARCHAR", "ENUM", '"NULL"')):
        return "text"
    if _INTEGER.fullmatch(duckdb_type):
        return "integer"
    if duckdb_type == "DATE" or duckdb_type.startswith("TIMESTAMP"):
        return "date"
    return "number" if _NUMBER.fullmatch(duckdb_type) else "other"


@contextmanager
def _explaining(name: str) -> Iterator[None]:
    """Say what went wrong; an interruption comes as any of these, a failure in the middle of a stream as OSError."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError, RuntimeError) as error:
        message = str(error)
        if isinstance(error, duckdb.InterruptException) or "interrupted" in message.lower():
            raise KeyboardInterrupt from error
        if isinstance(error, RuntimeError):
            raise
        raise DataError(f"'{name}' could not be read: {_why(error, message)}") from error


def _why(error: Exception, message: str) -> str:
    """What went wrong and what to do, in words of ours: the engine's own may hold values of rows."""
    for sign, words in _REASONS.items():
        if re.search(sign, message):
            return words
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__.removesuffix("Exception").removesuffix("Error"))
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}. Check the path and that you may read it."
    return (
        f"the engine gave up ({kind.lower() or 'no reason given'}). Check that the table is whole and that nobody is "
        "writing it; then read it with another tool, or convert it to Parquet."
    )


_REASONS = {
    r"nvalid unicode|not utf-8|UTF-8 encoded|byte sequence": (
        "it is no CSV in UTF-8, but as it seems in a Windows encoding. Save it in Excel as 'CSV UTF-8', or convert it: "
        "iconv -f WINDOWS-1252 -t UTF-8 OLD.csv > NEW.csv (-f UTF-16 if it was saved as Unicode text)."
    ),
    r"not a GZIP stream|not a ZSTD": (
        "it is not compressed as its name says, or not whole. Take .gz or .zst off its name, or copy it anew."
    ),
    r"sniffing|CSV Error": (
        "it is no CSV in UTF-8 with a line of names, or some lines have more cells than names. Save it as that, or "
        "check the path."
    ),
    r"magic bytes|[Ff]ooter|[Tt]hrift|Parquet": (
        "it is no Parquet file, or not a whole one. Write or copy it anew, or check the path."
    ),
    r"Out of Memory|could not allocate": (
        "memory ran out. Give more with memory_limit, a temp_directory for the rest, or fewer rows at a time."
    ),
    r"Conversion Error|Could not convert|out of range": (
        "a value is not what its column says. Clean the column, or leave such cells empty."
    ),
    r"Catalog Error": "the table does not exist. Check its name, with the schema if it has one.",
    r"Binder Error|Referenced column": "it lacks a column that was there before. Read it anew.",
    r"Permission denied": "you may not read it. Ask for the right to.",
    r"[Ll]ock": "another program is writing it. Close that, or copy the file.",
}
