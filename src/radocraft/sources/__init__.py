"""Where a peer's rows are. They stay there: only aggregates come out.

`open_source` takes what a user has at hand (a file, many files, a folder, a
data frame, an Arrow table, a table in DuckDB or Postgres, a Spark data frame) and gives a `Source`. Engines are
imported in this folder and nowhere else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from radocraft.sources.base import Source
from radocraft.sources.embedded import from_database, from_files, from_memory
from radocraft.sources.postgres import SCHEMES, from_postgres
from radocraft.sources.spark import from_spark, is_spark

__all__ = ["Source", "open_source"]

_DATABASES = (".duckdb", ".ddb", ".db")


def open_source(data: Any, *, table: str | None = None) -> Source:
    """Open a table where it is.

    Parameters
    ----------
    data
        A path (CSV, TSV, Parquet, a folder or a pattern of them, a DuckDB
        file), a list of paths, ``postgresql://user:password@host/database``, a
        Spark data frame, or an object with Arrow's C stream interface (pandas,
        Polars, pyarrow, a DuckDB relation). A source comes back as it is.
    table
        The table's name, where ``data`` is a database.

    Examples
    --------
    >>> import pyarrow as pa
    >>> source = open_source(pa.table({"age": [31, 52], "town": ["Bern", None]}))
    >>> source.kinds()
    {'age': 'number', 'town': 'text'}
    """
    if isinstance(data, Source):
        return data
    if is_spark(data):
        return from_spark(data)
    if isinstance(data, str | Path):
        return _at(data, table)
    if isinstance(data, list | tuple) and all(isinstance(path, str | Path) for path in data):
        return from_files([Path(path) for path in data])
    return from_memory(data) if table is None else from_database(data, table)


def _at(place: str | Path, table: str | None) -> Source:
    if str(place).startswith(SCHEMES):
        return from_postgres(str(place), table)
    return from_database(place, table) if Path(place).suffix in _DATABASES else from_files([Path(place)])
