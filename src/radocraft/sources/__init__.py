"""Where a peer's rows are. They stay there: only aggregates come out.

`open_source` takes what a user has at hand (a file, many files, a folder, a
data frame, an Arrow table, a DuckDB table) and gives a `Source`. Engines are
imported in this folder and nowhere else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from radocraft.sources.base import Source
from radocraft.sources.embedded import from_database, from_files, from_memory

__all__ = ["Source", "open_source"]

_DATABASES = (".duckdb", ".ddb", ".db")


def open_source(data: Any, *, table: str | None = None) -> Source:
    """Open a table where it is.

    Parameters
    ----------
    data
        A path (CSV, TSV, Parquet, a folder or a pattern of them, a DuckDB
        file), a list of paths, or an object with Arrow's C stream interface
        (pandas, Polars, pyarrow, a DuckDB relation). A source comes back as it is.
    table
        The table's name, where ``data`` is a DuckDB file or connection.

    Examples
    --------
    >>> import pyarrow as pa
    >>> source = open_source(pa.table({"age": [31, 52], "town": ["Bern", None]}))
    >>> source.kinds()
    {'age': 'number', 'town': 'text'}
    """
    if isinstance(data, Source):
        return data
    if isinstance(data, str | Path):
        if Path(data).suffix in _DATABASES:
            return from_database(data, table)
        return from_files([Path(data)])
    if isinstance(data, list | tuple) and all(isinstance(path, str | Path) for path in data):
        return from_files([Path(path) for path in data])
    if table is not None:
        return from_database(data, table)
    return from_memory(data)
