"""Columns of a table as they are, in row order."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from radocraft.rows.engines._base import ROWS, Source


def read_columns(source: Source, names: Sequence[str]) -> pa.Table:
    """These columns of every row, in the order of the rows; none of them if no name is given.

    Examples
    --------
    >>> from radocraft.rows import open_source
    >>> table = pa.table({"id": [7, 8], "score:bank": [0.5, -1.0]})
    >>> read_columns(open_source(table), ["score:bank"]).to_pydict()
    {'score:bank': [0.5, -1.0]}
    """
    if not names:
        return pa.table({})
    columns = [exp.column(name, quoted=True).as_(f"c{index}") for index, name in enumerate(names)]
    batches = [*source.batches(exp.select(*columns).from_(ROWS))]
    if not batches:
        return pa.table({name: pa.array([]) for name in names})
    return pa.Table.from_batches(batches).rename_columns([*names])
