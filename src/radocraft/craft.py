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
from threadpoolctl import threadpool_limits

from radocraft.arrays import Floats
from radocraft.checks import check_columns, check_finite, check_labels, check_read, check_rows
from radocraft.contract import Contract
from radocraft.encoding import Column, Reader, private_columns
from radocraft.errors import ContractMismatch
from radocraft.expressions import Kind, double, moved
from radocraft.features import Interact, Numeric
from radocraft.pieces import check_new
from radocraft.settle import settle
from radocraft.sources import Source, open_source
from radocraft.sources.base import ROWS
from radocraft.tally import Tally

_SAMPLE = 10_000
_FAR = 16.0
_EXTREME = 100

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
    if onto is not None:
        check_new(onto.pieces, source.pieces)
    reader = Reader(contract, peer, source.kinds())
    columns = private_columns(contract, peer)
    check_columns(reader, source)
    reader = replace(reader, constants=onto.constants if onto else settle(source, reader))
    origin, unit = (onto.origin, onto.unit) if onto else guess_origin(source, reader, columns)
    progress("block sums", 0, 0)
    blocks, values = sum_blocks(source, reader, origin, unit)
    check_rows(blocks.num_rows, source)
    if "misread" in blocks.column_names and np.any(_array(blocks, "misread")):
        check_read(reader, source)
    check_labels(blocks.column("label").null_count, source, reader)
    total = int(np.sum(_array(blocks, "rows")))
    present = _matrix(blocks, "present_", len(columns), np.int64)
    gaps = np.flatnonzero(present.sum(axis=0) < total).tolist()
    moments = sum_moments(source, values, gaps, total, progress)
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
        pieces=source.pieces,
    )
    return onto + tally if onto else tally


def guess_origin(source: Source, reader: Reader, columns: tuple[Column, ...]) -> tuple[Floats, Floats]:
    """Where to move a column, and by what to divide it, before its values are added.

    It changes no result: it only keeps large numbers from cancelling and extreme
    ones from overflowing, so most columns stay as they are. What decides is the
    contract's centre and scale, else the mean and deviation of a sample.
    """
    mean = np.array([np.nan if column.centre is None else column.centre for column in columns])
    deviation = np.array([np.nan if column.scale is None else column.scale for column in columns])
    if free := [at for at, column in enumerate(columns) if column.centre is None]:
        raw = reader.private()
        statistics = [exp.func("AVG", raw[at]).as_(f"mean_{at}") for at in free]
        statistics += [exp.func("STDDEV_SAMP", raw[at].copy()).as_(f"sd_{at}") for at in free]
        sample = source.sample(_SAMPLE).subquery("peer_sample")
        answer = source.table(exp.select(*statistics).from_(reader.rows(sample))).to_pylist()[0]
        for at in free:
            mean[at] = np.nan if answer[f"mean_{at}"] is None else answer[f"mean_{at}"]
            deviation[at] = np.nan if answer[f"sd_{at}"] is None else answer[f"sd_{at}"]
    mean = np.where(np.isfinite(mean), mean, 0.0)
    spread = np.where(np.isfinite(deviation) & (deviation > 0), deviation, 0.0)
    bits = np.round(np.log2(np.where(spread > 0, spread, 1.0)))
    step = np.where(spread > 0, 2.0**bits, np.abs(mean))
    with np.errstate(invalid="ignore", divide="ignore"):
        rounded = np.where(step > 0, np.round(mean / step) * step, 0.0)
    origin = np.where(np.abs(mean) > _FAR * spread, rounded, 0.0)
    agreed = np.array([column.scale is not None for column in columns])
    return origin, np.where(np.abs(bits) > _EXTREME, np.where(agreed, spread, 2.0**bits), 1.0)


def sum_blocks(source: Source, reader: Reader, origin: Floats, unit: Floats) -> tuple[pa.Table, exp.Select]:
    """The sums of every block, and the statement of the values behind them.

    NaN makes a sum NaN, so it shows; columns of numbers are taken to be free of
    it, and only when a sum is not finite are they read anew, asking every value.
    """
    for careful in (False, True):
        now = reader if careful else replace(reader, kinds=hopeful_kinds(reader))
        values = shifted(now, origin, unit)
        blocks = source.table(block_statement(source, now, values))
        if all(np.isfinite(_array(blocks, f"sum_{at}")).all() for at in range(len(values))):
            break
    return blocks, value_statement(now, values)


def hopeful_kinds(reader: Reader) -> dict[str, Kind]:
    """The columns' kinds, where numbers that are nothing but summed are taken to be free of NaN."""
    contract, features = reader.contract, reader.contract.peers[reader.peer].features
    summed = {
        contract.column_of(reader.peer, name) for name, feature in features.items() if isinstance(feature, Numeric)
    }
    factors = [factor for feature in features.values() if isinstance(feature, Interact) for factor in feature.of]
    others = [contract.label.column, *(shared.name for shared in contract.shared), *factors]
    others += [name for name, feature in features.items() if not isinstance(feature, Numeric)]
    summed -= {contract.column_of(reader.peer, name) for name in others}
    return {name: "never-nan" if name in summed and kind == "number" else kind for name, kind in reader.kinds.items()}


def shifted(reader: Reader, origin: Floats, unit: Floats) -> list[exp.Expr]:
    """(value - origin) / unit, leaving out what would do nothing."""
    return [moved(value, float(o), float(u)) for value, o, u in zip(reader.private(), origin, unit, strict=True)]


def block_statement(source: Source, reader: Reader, values: list[exp.Expr]) -> exp.Query:
    """Rows, sums and present values of every block, in one GROUP BY."""
    keys = [reader.code(shared).as_(f"code_{at}") for at, shared in enumerate(reader.contract.shared)]
    keys.append(reader.label().as_("label"))
    misread = reader.misread()
    asked = [] if misread is None else [misread.as_("misread")]
    inner = exp.select(*keys, *asked, *(value.copy().as_(f"value_{at}") for at, value in enumerate(values))).from_(
        reader.rows(ROWS)
    )
    names = [key.alias for key in keys]
    totals = [exp.func("COUNT", exp.Star()).as_("rows")]
    totals += [exp.func("MAX", exp.cast(exp.column("misread"), "INT")).as_("misread") for _ in asked]
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
    with threadpool_limits(limits=1, user_api="blas"):
        return source.moments(values, gaps, advance)


def _array(table: pa.Table, name: str) -> Floats:
    out: Floats = table.column(name).to_numpy()
    return out


def _matrix(table: pa.Table, prefix: str, width: int, dtype: type) -> NDArray[Any]:
    out = np.empty((table.num_rows, width), dtype=dtype)
    for at in range(width):
        out[:, at] = _array(table, f"{prefix}{at}")
    return out
