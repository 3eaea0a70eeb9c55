"""Opening what a user has at hand as a source of rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from radocraft.rows.engines import _excel
from radocraft.rows.engines._base import Settings, Source
from radocraft.rows.engines._embedded import DuckDBSource, from_database, from_files, from_memory
from radocraft.rows.engines._postgres import SCHEMES, from_postgres
from radocraft.rows.engines._ranged import ranged
from radocraft.rows.engines._spark import from_spark, is_spark
from radocraft.sums import Bound, Piece, Range

_DATABASES = (".duckdb", ".ddb", ".db")
_SETTINGS = Settings()


def open_source(
    data: Any,
    *,
    table: str | None = None,
    rows: tuple[str, Bound, Bound] | None = None,
    memory_limit: str | None = None,
    temp_directory: str | Path | None = None,
    exact: bool = False,
) -> Source:
    """Open a table where it is.

    Parameters
    ----------
    data
        A path (CSV, TSV, Parquet, a folder or a pattern of them, an Excel or
        DuckDB file), a list of paths, ``postgresql://user:password@host/database``, a
        Spark data frame, or an object with Arrow's C stream interface (pandas,
        Polars, pyarrow, a DuckDB relation). A source comes back as it is.
    table
        The table's name, where ``data`` is a database; the sheet's, where it is an Excel file.
    rows
        Read only rows whose column lies in a range: ``(column, low, high)``,
        ``high`` left out.
    memory_limit, temp_directory
        For files and data frames: how much memory to take at most ("2GB"), and
        where to put what does not fit.
    exact
        Add in one fixed order, so that the same rows give the same bits on
        every run; slower, since one thread does it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> source = open_source(pa.table({"age": [31, 52], "town": ["Bern", None]}))
    >>> source.kinds()
    {'age': 'integer', 'town': 'text'}
    """
    source = _opened(data, table, Settings(memory_limit, temp_directory, exact))
    return source if rows is None else ranged(source, Range(*rows))


def _opened(data: Any, table: str | None, settings: Settings) -> Source:
    if isinstance(data, Source):
        return data
    if is_spark(data):
        return from_spark(data, settings)
    if isinstance(data, str | Path):
        return _at(data, table, settings)
    if isinstance(data, list | tuple) and all(isinstance(path, str | Path) for path in data):
        return from_files([Path(path) for path in data], settings)
    return from_memory(data, settings) if table is None else from_database(data, table, settings)


def _at(place: str | Path, table: str | None, settings: Settings) -> Source:
    if str(place).startswith(SCHEMES):
        return from_postgres(str(place), table, settings)
    if Path(place).suffix in _DATABASES:
        return from_database(place, table, settings)
    if Path(place).suffix.lower() in _excel.SUFFIXES:
        source = in_memory(_excel.read_excel(Path(place), table), str(place), settings)
        return replace(source, identify=lambda: (Piece.of_file(Path(place)),))
    return from_files([Path(place)], settings)


def in_memory(table: pa.Table, name: str, settings: Settings = _SETTINGS) -> DuckDBSource:
    """A table that was read already, under a name of its own for messages."""
    return replace(from_memory(table, settings), name=name)
