"""From a peer's rows to its tally: sums by block, and moments.

Two passes over the table, both where the data is. The first is one GROUP BY
statement. The second streams the private columns in batches into a BLAS
product. Memory is bounded by blocks and columns, never by rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from radocraft.arrays import Floats
from radocraft.checks import check_columns, check_finite, check_labels, check_read, check_rows
from radocraft.contract import Contract
from radocraft.encoding import Column, Reader, private_columns
from radocraft.errors import ContractMismatch
from radocraft.expressions import double, moved
from radocraft.settle import settle
from radocraft.sources import Source, open_source
from radocraft.sources.base import ROWS
from radocraft.tally import Tally

_SAMPLE = 10_000

Progress = Callable[[str, int, int], None]
"""Called with what is being done, rows done, rows in all (0 while unknown)."""


def quiet(doing: str, done: int, total: int) -> None:
    """Progress that shows nothing."""


def craft(data: Any, contract: Contract, peer: str, *, onto: Tally | None = None, progress: Progress = quiet) -> Tally:
    """Tally one peer's table under a contract.

    Parameters
    ----------
    data
        Where the rows are: a path, a data frame, a source; see `open_source`.
    contract, peer
        What was agreed, and which of its peers this table belongs to.
    onto
        A tally of earlier rows to add these to.
    progress
        Called as the work goes on.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from radocraft import Contract, craft
    >>> contract = Contract.parse('''
    ... name = "risk"
    ... label = { column = "bad", positive = 1, negative = 0 }
    ... shared = [{ name = "age", edges = [40] }]
    ... peers.bank.features = { income = { kind = "numeric", centre = 0, scale = 1 } }
    ... ''')
    >>> rows = pa.table({"bad": [0, 0, 1], "age": [30, 35, 50], "income": [2.0, 3.0, 1.0]})
    >>> tally = craft(rows, contract, "bank")
    >>> tally.rows, tally.sums.ravel()
    (array([2, 1]), array([5., 1.]))
    """
    contract.peer(peer)
    if onto is not None and (onto.fingerprint, onto.peer) != (contract.fingerprint, peer):
        raise ContractMismatch(
            f"The tally to add to was crafted under another contract or by another peer than '{peer}'. "
            "Craft the whole table anew."
        )
    source = open_source(data)
    reader = Reader(contract, peer, source.kinds())
    columns = private_columns(contract, peer)
    check_columns(reader, source)
    reader = replace(reader, constants=onto.constants if onto else settle(source, reader))
    origin, unit = (onto.origin, onto.unit) if onto else guess_origin(source, reader, columns)
    values = shifted(reader, columns, origin, unit)
    progress("block sums", 0, 0)
    blocks = source.table(block_statement(source, reader, values))
    check_rows(blocks.num_rows, source)
    if np.any(_array(blocks, "misread")):
        check_read(reader, source)
    check_labels(blocks.column("label").null_count, source, reader)
    total = int(np.sum(_array(blocks, "rows")))
    present = _matrix(blocks, "present_", len(columns), np.int64)
    gaps = np.flatnonzero(present.sum(axis=0) < total).tolist()
    moments = sum_moments(source, value_statement(reader, values), gaps, total, progress)
    check_finite(moments, columns, source)
    tally = Tally(
        fingerprint=contract.fingerprint,
        peer=peer,
        columns=tuple(column.name for column in columns),
        codes=_matrix(blocks, "code_", len(contract.shared), np.int64),
        labels=_array(blocks, "label").astype(np.int64),
        rows=_array(blocks, "rows").astype(np.int64),
        sums=_matrix(blocks, "sum_", len(columns), np.float64),
        present=present,
        moments=moments,
        origin=origin,
        unit=unit,
        constants=reader.constants,
    )
    return onto + tally if onto else tally


def guess_origin(source: Source, reader: Reader, columns: tuple[Column, ...]) -> tuple[Floats, Floats]:
    """The contract's centre and scale where it fixes them, else those of a sample, rounded to a few bits.

    The guess changes no result: it only keeps large numbers from cancelling.
    """
    origin = np.array([0.0 if column.centre is None else column.centre for column in columns])
    unit = np.array([1.0 if column.scale is None else column.scale for column in columns])
    free = [at for at, column in enumerate(columns) if column.centre is None]
    if not free:
        return origin, unit
    raw = reader.private()
    statistics: list[exp.Expr] = []
    for at in free:
        statistics += [
            exp.func("AVG", raw[at]).as_(f"mean_{at}"),
            exp.func("STDDEV_SAMP", raw[at].copy()).as_(f"sd_{at}"),
        ]
    sample = source.sample(_SAMPLE).subquery("peer_sample")
    answer = source.table(exp.select(*statistics).from_(reader.rows(sample))).to_pylist()[0]
    for at in free:
        mean, deviation = answer[f"mean_{at}"], answer[f"sd_{at}"]
        if mean is not None and np.isfinite(mean):
            origin[at] = mean
        if deviation is not None and np.isfinite(deviation) and deviation > 0:
            unit[at] = 2.0 ** np.round(np.log2(deviation))
    return origin, unit


def shifted(reader: Reader, columns: tuple[Column, ...], origin: Floats, unit: Floats) -> list[exp.Expr]:
    """(value - origin) / unit, leaving out what would do nothing."""
    return [moved(value, float(o), float(u)) for value, o, u in zip(reader.private(), origin, unit, strict=True)]


def block_statement(source: Source, reader: Reader, values: list[exp.Expr]) -> exp.Query:
    """Rows, sums and present values of every block, in one GROUP BY."""
    keys = [reader.code(shared).as_(f"code_{at}") for at, shared in enumerate(reader.contract.shared)]
    keys.append(reader.label().as_("label"))
    misread = reader.misread() or exp.false()
    inner = exp.select(
        *keys, misread.as_("misread"), *(value.copy().as_(f"value_{at}") for at, value in enumerate(values))
    ).from_(reader.rows(ROWS))
    names = [key.alias for key in keys]
    totals = [exp.func("COUNT", exp.Star()).as_("rows")]
    totals.append(exp.func("MAX", exp.cast(exp.column("misread"), "INT")).as_("misread"))
    for at in range(len(values)):
        value = exp.column(f"value_{at}")
        total = exp.Anonymous(this=source.sum_function, expressions=[value])
        totals.append(exp.func("COALESCE", total, double(0)).as_(f"sum_{at}"))
        totals.append(exp.func("COUNT", value.copy()).as_(f"present_{at}"))
    return exp.select(*names, *totals).from_(inner.subquery("encoded")).group_by(*names).order_by(*names)


def value_statement(reader: Reader, values: list[exp.Expr]) -> exp.Select:
    """The private columns of every row."""
    named = [value.copy().as_(f"value_{at}") for at, value in enumerate(values)]
    return exp.select(*named).from_(reader.rows(ROWS))


def sum_moments(source: Source, values: exp.Select, gaps: list[int], total: int, progress: Progress) -> Floats:
    """Second moments of (values, present) over all rows."""
    done = 0

    def advance(rows: int) -> None:
        nonlocal done
        done += rows
        progress("moments", done, total)

    progress("moments", 0, total)
    return source.moments(values, gaps, advance)


def _array(table: pa.Table, name: str) -> Floats:
    out: Floats = table.column(name).to_numpy()
    return out


def _matrix(table: pa.Table, prefix: str, width: int, dtype: type) -> NDArray[Any]:
    out = np.empty((table.num_rows, width), dtype=dtype)
    for at in range(width):
        out[:, at] = _array(table, f"{prefix}{at}")
    return out
