"""What is summed of a peer's rows: by block, and as moments over all of them; asked of the engine.

Two passes over the table, both where the data is. The first is one GROUP BY
statement, the second gives the moments by whichever way suits the engine.
`stream` does the same in one pass where that is cheaper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from sqlglot import exp

from radocraft.arrays import Floats, Ints
from radocraft.encoding import Reader
from radocraft.expressions import Kind, double, whole
from radocraft.features import Interact, Numeric
from radocraft.grid import Grid
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

    Columns are taken to be free of missing values if a sample was, and columns
    of numbers to be free of NaN. The statement tells whether that is so: NaN makes
    a sum NaN, and rows with a value missing unexpectedly are counted. If it is
    not, the table is read anew, asking every value.
    """
    for careful in (False, True):
        now = reader if careful else replace(reader, kinds=hopeful_kinds(reader))
        values = shift.values(now)
        gaps = list(range(len(values)) if careful else shift.gaps)
        usual = {f"usual_{at}": one for at, one in zip(shift.counted, shift.usually(now), strict=True)}
        table = source.table(block_statement(source, now, values, usual, gaps))
        sums = _matrix(table, "sum_", range(len(values)))
        if np.isfinite(sums).all() and not np.any(_column(table, "missing")):
            break
    return _totals(table, sums, Grid(reader), shift, gaps), value_statement(now, [*values, *usual.values()])


def _totals(table: pa.Table, sums: Floats, grid: Grid, shift: Shift, gaps: list[int]) -> Totals:
    """The answer to `block_statement`, in the order of codes and labels."""
    numbers = [_column(table, name) for name in table.column_names if name.startswith("place_")]
    read = numbers[0] != grid.misread
    order = np.flatnonzero(read)[np.lexsort([number[read] for number in reversed(numbers)])]
    codes, labels = grid.blocks([number[order] for number in numbers])
    rows = _column(table, "rows")[order]
    present = present_values(rows, sums.shape[1], gaps, _matrix(table, "present_", gaps)[order])
    return Totals(
        codes=codes,
        labels=labels,
        rows=rows,
        sums=sums[order],
        present=present,
        others=other_values(present, shift.counted, _matrix(table, "usual_", shift.counted)[order]),
        moments=np.empty((0, 0)),
        unlabelled=bool((labels == grid.unlabelled).any()),
        misread=not read.all(),
    )


def present_values(rows: Ints, width: int, gaps: Sequence[int], counts: Floats) -> Ints:
    """How many values of each column are present in every block: as many as rows but in ``gaps``.

    Without gaps it is one column seen many times, which takes no room.
    """
    present = np.broadcast_to(rows[:, None], (len(rows), width))
    if gaps:
        present = present.copy()
        present[:, gaps] = counts
    return present


def other_values(present: Ints, counted: Sequence[int], usual: Floats) -> Ints:
    """How many of the values present are not the usual one, of columns that have one."""
    if not counted:
        return present
    others = present.copy()
    others[:, counted] -= usual.astype(np.int64)
    return others


def hopeful_kinds(reader: Reader) -> dict[str, Kind]:
    """The columns' kinds, where numbers that are nothing but summed are taken to be free of NaN; none are if ranked."""
    if reader.ranking is not None:
        return reader.kinds
    contract, features = reader.contract, reader.contract.peers[reader.peer].features
    summed = {
        contract.column_of(reader.peer, name) for name, feature in features.items() if isinstance(feature, Numeric)
    }
    factors = [factor for feature in features.values() if isinstance(feature, Interact) for factor in feature.of]
    others = [contract.label.column, *(shared.name for shared in contract.shared), *factors]
    others += [name for name, feature in features.items() if not isinstance(feature, Numeric)]
    summed -= {contract.column_of(reader.peer, name) for name in others}
    return {name: "never-nan" if name in summed and kind == "number" else kind for name, kind in reader.kinds.items()}


def block_statement(
    source: Source, reader: Reader, values: list[exp.Expr], usual: dict[str, exp.Expr], gaps: list[int]
) -> exp.Query:
    """Rows, sums, present and usual values of every block, in one GROUP BY.

    Values present are counted of the columns in ``gaps``; of the others, the
    rows that miss one of them.
    """
    places = [number.as_(f"place_{at}") for at, number in enumerate(Grid(reader).numbers())]
    summed = [value.as_(f"value_{at}") for at, value in enumerate(values)]
    summed += [one.as_(name) for name, one in usual.items()]
    inner = exp.select(*places, *summed, copy=False).from_(reader.rows(ROWS), copy=False)
    totals = [exp.func("COUNT", exp.Star()).as_("rows")]
    for at in range(len(values)):
        total = exp.Anonymous(this=source.sum_function, expressions=[exp.column(f"value_{at}")])
        totals.append(exp.func("COALESCE", total, double(0)).as_(f"sum_{at}"))
    totals += [exp.func("COUNT", exp.column(f"value_{at}")).as_(f"present_{at}") for at in gaps]
    totals += [exp.func("SUM", exp.column(name)).as_(name) for name in usual]
    lacking = [exp.column(f"value_{at}").is_(exp.null()) for at in range(len(values)) if at not in gaps]
    case = exp.Case().when(_any(lacking), whole(1)) if lacking else exp.null()
    totals.append(exp.func("COUNT", case).as_("missing"))
    names = [place.alias for place in places]
    grouped = exp.select(*names, *totals, copy=False).from_(inner.subquery("encoded", copy=False), copy=False)
    return grouped.group_by(*names, copy=False)


def _any(conditions: Sequence[exp.Expr]) -> exp.Expr:
    """Whether one of them holds, written so that many do not nest deeply."""
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    return exp.or_(_any(conditions[:half]), _any(conditions[half:]), copy=False)


def value_statement(reader: Reader, values: list[exp.Expr]) -> exp.Select:
    """The columns to be summed and multiplied, of every row."""
    named = [value.as_(f"value_{at}") for at, value in enumerate(values)]
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


def _column(table: pa.Table, name: str) -> Ints:
    out: Ints = table.column(name).to_numpy().astype(np.int64)
    return out


def _matrix(table: pa.Table, prefix: str, columns: Iterable[int]) -> Floats:
    found = [table.column(f"{prefix}{at}").to_numpy() for at in columns]
    return np.column_stack(found).astype(np.float64) if found else np.empty((table.num_rows, 0))
