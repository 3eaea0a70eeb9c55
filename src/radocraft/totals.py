"""What is summed of a peer's rows: by block, and as moments over all of them; asked of the engine.

Two passes over the table, both where the data is. The first is one GROUP BY
statement, the second gives the moments by whichever way suits the engine.
`stream` does the same in one pass where that is cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from radocraft.arrays import Floats, Ints
from radocraft.encoding import Reader
from radocraft.expressions import Kind, double
from radocraft.features import Interact, Numeric
from radocraft.moments import beside_usual
from radocraft.progress import Progress, quiet
from radocraft.shift import Shift
from radocraft.sources import Source
from radocraft.sources.base import ROWS


@dataclass(frozen=True)
class Totals:
    """Rows, sums, values present and other than usual of every block, and the moments of (values, present, usual).

    ``unlabelled`` is whether some row has no agreed label, ``misread`` whether
    some cell has no reading.
    """

    codes: Ints
    labels: Ints
    rows: Ints
    sums: Floats
    present: Ints
    others: Ints
    moments: Floats
    unlabelled: bool = False
    misread: bool = False


def ask_totals(source: Source, reader: Reader, shift: Shift, progress: Progress = quiet) -> Totals:
    """The totals by a GROUP BY statement, then the moments."""
    progress("block sums", 0, 0)
    totals, values = ask_blocks(source, reader, shift)
    if totals.unlabelled or totals.misread:  # nothing will be made of them: spare the second pass
        return totals
    count = int(totals.rows.sum())
    gaps = np.flatnonzero(totals.present.sum(axis=0) < count).tolist()
    moments = _ask_moments(source, values, gaps, count, progress)
    return replace(totals, moments=beside_usual(moments, totals.sums.shape[1]))


def ask_blocks(source: Source, reader: Reader, shift: Shift) -> tuple[Totals, exp.Select]:
    """The totals without moments, and the statement of the values behind them, and of which are usual.

    NaN makes a sum NaN, so it shows; columns of numbers are taken to be free of
    it, and only when a sum is not finite are they read anew, asking every value.
    """
    for careful in (False, True):
        now = reader if careful else replace(reader, kinds=hopeful_kinds(reader))
        values = shift.values(now)
        usual = {f"usual_{at}": one for at, one in zip(shift.counted, shift.usually(now), strict=True)}
        blocks = source.table(block_statement(source, now, values, usual))
        sums = _matrix(blocks, "sum_", len(values), np.float64)
        if np.isfinite(sums).all():
            break
    present = _matrix(blocks, "present_", len(values), np.int64)
    others = present.copy()
    for at in shift.counted:
        others[:, at] -= blocks.column(f"usual_{at}").to_numpy().astype(np.int64)
    totals = Totals(
        codes=_matrix(blocks, "code_", len(reader.contract.shared), np.int64),
        labels=blocks.column("label").fill_null(0).to_numpy().astype(np.int64),
        rows=blocks.column("rows").to_numpy().astype(np.int64),
        sums=sums,
        present=present,
        others=others,
        moments=np.empty((0, 0)),
        unlabelled=blocks.column("label").null_count > 0,
        misread="misread" in blocks.column_names and bool(np.any(blocks.column("misread").to_numpy())),
    )
    return totals, value_statement(now, [*values, *usual.values()])


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


def block_statement(source: Source, reader: Reader, values: list[exp.Expr], usual: dict[str, exp.Expr]) -> exp.Query:
    """Rows, sums, present and usual values of every block, in one GROUP BY."""
    keys = [reader.code(shared).as_(f"code_{at}") for at, shared in enumerate(reader.contract.shared)]
    keys.append(reader.label().as_("label"))
    misread = reader.misread()
    asked = [] if misread is None else [misread.as_("misread")]
    summed = [value.copy().as_(f"value_{at}") for at, value in enumerate(values)]
    summed += [one.copy().as_(name) for name, one in usual.items()]
    inner = exp.select(*keys, *asked, *summed).from_(reader.rows(ROWS))
    names = [key.alias for key in keys]
    totals = [exp.func("COUNT", exp.Star()).as_("rows")]
    totals += [exp.func("MAX", exp.cast(exp.column("misread"), "INT")).as_("misread") for _ in asked]
    for at in range(len(values)):
        value = exp.column(f"value_{at}")
        total = exp.Anonymous(this=source.sum_function, expressions=[value])
        totals.append(exp.func("COALESCE", total, double(0)).as_(f"sum_{at}"))
        totals.append(exp.func("COUNT", value.copy()).as_(f"present_{at}"))
    totals += [exp.func("SUM", exp.column(name)).as_(name) for name in usual]
    return exp.select(*names, *totals).from_(inner.subquery("encoded")).group_by(*names).order_by(*names)


def value_statement(reader: Reader, values: list[exp.Expr]) -> exp.Select:
    """The columns to be summed and multiplied, of every row."""
    named = [value.copy().as_(f"value_{at}") for at, value in enumerate(values)]
    return exp.select(*named).from_(reader.rows(ROWS))


def _ask_moments(source: Source, values: exp.Select, gaps: list[int], total: int, progress: Progress) -> Floats:
    """Second moments of (values, present) over all rows."""
    done = 0

    def advance(rows: int) -> None:
        nonlocal done
        done += rows
        progress("moments", done, total)

    progress("moments", 0, total)
    return source.moments(values, gaps, advance)


def _matrix(table: pa.Table, prefix: str, width: int, dtype: type) -> NDArray[Any]:
    out = np.empty((table.num_rows, width), dtype=dtype)
    for at in range(width):
        out[:, at] = table.column(f"{prefix}{at}").to_numpy()
    return out
