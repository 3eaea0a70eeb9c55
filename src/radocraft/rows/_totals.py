"""Sums of a peer's rows by block, and moments over all rows, computed by the engine.

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
from radocraft.contract import Interact, Kind, moment_labels
from radocraft.progress import Progress, quiet
from radocraft.rows._encoding import Reader
from radocraft.rows._expressions import double, gridded, infinite, shortened, times, total, whole
from radocraft.rows._grid import Grid
from radocraft.rows._shift import Shift
from radocraft.rows.engines._base import ROWS, Source
from radocraft.rows.engines._pairs import columns_of
from radocraft.sums import Bounding


@dataclass(frozen=True)
class Totals:
    """Rows, sums and values present of every block, and the moments of (values, present) of every label.

    ``unlabelled`` is whether some row has no agreed label, ``misread`` whether
    some cell has no reading, ``infinite`` whether some value to be bounded is an infinity.
    """

    codes: Ints
    labels: Ints
    rows: Ints
    sums: Floats
    present: Ints
    moments: Floats
    unlabelled: bool = False
    misread: bool = False
    infinite: bool = False

    @property
    def wrong(self) -> bool:
        """Whether nothing can be made of them."""
        return self.unlabelled or self.misread or self.infinite


def ask_totals(source: Source, reader: Reader, shift: Shift, progress: Progress = quiet) -> Totals:
    """The totals by a GROUP BY statement, then the moments."""
    progress("block sums", 0, 0)
    totals, now = ask_blocks(source, reader, shift)
    if totals.wrong:  # spare the second pass
        return totals
    count = int(totals.rows.sum())
    gaps = np.flatnonzero(totals.present.sum(axis=0) < count).tolist()
    return replace(totals, moments=_ask_moments(source, now, shift, gaps, count=count, progress=progress))


def ask_blocks(source: Source, reader: Reader, shift: Shift) -> tuple[Totals, Reader]:
    """The totals without moments, and the reader that proved right.

    Without bounds, columns are taken to be free of missing values if a sample was, and columns
    of numbers to be free of NaN. The statement shows whether that is so: NaN makes
    a sum NaN, and rows with a value missing unexpectedly are counted. If it is
    not, the table is read anew, asking every value.
    """
    width = len(shift.origin)
    for careful in (False, True) if shift.bounding is None else (True,):
        now = reader if careful else replace(reader, kinds=hopeful_kinds(reader))
        plain = reader.layout.plain
        gaps = [index for index in plain if careful or index in shift.gaps] if shift.bounding is None else []
        table = source.table(block_statement(source, now, shift, gaps))
        sums = _matrix(table, "sum_", range(width)) + 0.0  # which makes 0 of -0
        if np.isfinite(sums).all() and not np.any(_column(table, "missing")):
            break
    return _totals(table, sums, Grid(reader), gaps), now


def _totals(table: pa.Table, sums: Floats, grid: Grid, gaps: list[int]) -> Totals:
    """The answer to `block_statement`, in the order of codes and labels."""
    numbers = [_column(table, name) for name in table.column_names if name.startswith("place_")]
    read = numbers[0] != grid.misread
    order = np.flatnonzero(read)[np.lexsort([number[read] for number in reversed(numbers)])]
    codes, labels = grid.blocks([number[order] for number in numbers])
    rows = _column(table, "rows")[order]
    return Totals(
        codes=codes,
        labels=labels,
        rows=rows,
        sums=sums[order],
        present=present_values(rows, sums.shape[1], gaps, _matrix(table, "present_", gaps)[order]),
        moments=np.empty((0, 0, 0)),
        unlabelled=bool((labels == grid.unlabelled).any()),
        misread=not read.all(),
        infinite="infinite" in table.column_names and bool(_column(table, "infinite").any()),
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


def hopeful_kinds(reader: Reader) -> dict[str, Kind]:
    """The columns' kinds, where numbers that are nothing but summed are taken to be free of NaN.

    None are if rows are ranked or chosen by them.
    """
    if reader.ranking is not None or reader.persons is not None:
        return reader.kinds
    contract, features = reader.contract, reader.contract.peers[reader.peer].features
    summed = {contract.column_of(reader.peer, name) for name, feature in features.items() if feature.kind == "numeric"}
    factors = [factor for feature in features.values() if isinstance(feature, Interact) for factor in feature.of]
    others = [contract.label.column, *(shared.name for shared in contract.shared), *factors]
    others += [name for name, feature in features.items() if feature.kind != "numeric"]
    summed -= {contract.column_of(reader.peer, name) for name in others}
    return {name: "never-nan" if name in summed and kind == "number" else kind for name, kind in reader.kinds.items()}


def block_statement(source: Source, reader: Reader, shift: Shift, gaps: list[int]) -> exp.Query:
    """Rows, sums and present values of every block, in one GROUP BY.

    Values present are counted of the columns in ``gaps``; of the others, the
    rows that miss one of them.
    """
    layout = reader.layout
    places = [number.as_(f"place_{index}") for index, number in enumerate(Grid(reader).numbers())]
    totals = [exp.func("COUNT", exp.Star()).as_("rows")]
    values = dict(enumerate(columns_of(layout)))
    for index, value in values.items():
        total = exp.Anonymous(this=source.sum_function, expressions=[value])
        totals.append(exp.func("COALESCE", total, double(0)).as_(f"sum_{index}"))
    totals += [exp.func("COUNT", values[index].copy()).as_(f"present_{index}") for index in gaps]
    lacking = [values[index].copy().is_(exp.null()) for index in layout.plain if index not in gaps]
    case = exp.Case().when(_any(lacking), whole(1)) if lacking else exp.null()
    totals.append(exp.func("COUNT", case).as_("missing"))
    if shift.bounding is not None:
        totals.append(exp.func("COUNT", exp.column("infinite")).as_("infinite"))
    names = [place.alias for place in places]
    inner = value_statement(reader, shift, places, endless=shift.bounding is not None)
    grouped = exp.select(*names, *totals, copy=False).from_(inner.subquery("encoded", copy=False), copy=False)
    return grouped.group_by(*names, copy=False)


def _any(conditions: Sequence[exp.Expr]) -> exp.Expr:
    """Whether one of them holds, written so that many do not nest deeply."""
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    return exp.or_(_any(conditions[:half]), _any(conditions[half:]), copy=False)


def value_statement(reader: Reader, shift: Shift, more: list[exp.Expr], *, endless: bool = False) -> exp.Select:
    """What `RowLayout` holds of every row, as value_0, category_0 and so on, and ``more``, which have names.

    With ``endless``, also a column ``infinite``, which is there where a value is an infinity.
    """
    values, rows, codes = shift.values(reader), reader.rows(ROWS), _named("category", reader.codes())
    if shift.bounding is None:
        ones = [double(1)] * bool(codes)
        return exp.select(*_named("value", [*values, *ones]), *codes, *more, copy=False).from_(rows, copy=False)
    names = [each.alias for each in (*codes, *more)] + ["infinite"] * endless
    query = exp.select(*_named("raw", values), *codes, *more, copy=False).from_(rows, copy=False)
    for step in _bounded(shift.bounding.of(reader.layout.plain), len(codes), names, endless=endless):
        query = step.from_(query.subquery("bounded", copy=False), copy=False)
    return query


def _bounded(bounding: Bounding, categories: int, names: list[str], *, endless: bool) -> list[exp.Select]:
    """From raw values to bounded ones: onto the grid; the sum of squares; and no longer than the norm."""
    raw = [exp.column(f"raw_{index}") for index in range(bounding.width)]
    onto = [gridded(value, steps) for value, steps in zip(raw, bounding.steps, strict=True)]
    onto += [double(bounding.one)] * bool(categories)
    clipped = [exp.column(f"held_{index}") for index in range(len(onto))]
    wrong = exp.Case().when(_any([infinite(value) for value in raw]), whole(1)) if raw else exp.null()
    flag = [wrong.as_("infinite")] * endless
    kept = names[:-1] if endless else names
    beside = [double((categories - 1) * bounding.one**2)] * (categories > 1)
    squares = total([*(times(value, value) for value in clipped), *beside])
    short = [shortened(value, exp.column("squares"), bounding) for value in clipped]
    return [
        exp.select(*_named("held", onto), *kept, *flag, copy=False),
        exp.select(*(value.copy() for value in clipped), *names, squares.as_("squares"), copy=False),
        exp.select(*_named("value", short), *names, copy=False),
    ]


def _named(name: str, values: list[exp.Expr]) -> list[exp.Expr]:
    return [value.as_(f"{name}_{index}") for index, value in enumerate(values)]


def _ask_moments(
    source: Source, reader: Reader, shift: Shift, gaps: list[int], *, count: int, progress: Progress
) -> Floats:
    """Second moments of (values, present) over all rows of every label."""
    done = 0

    def advance(rows: int) -> None:
        nonlocal done
        done += rows
        progress("moments", done, count)

    progress("moments", 0, count)
    values = value_statement(reader, shift, [reader.matrix().as_("label")])
    labels = len([*moment_labels(reader.contract, reader.peer)])
    return source.moments(values, reader.layout, gaps, labels, advance)


def _column(table: pa.Table, name: str) -> Ints:
    out: Ints = table.column(name).to_numpy().astype(np.int64)
    return out


def _matrix(table: pa.Table, prefix: str, columns: Iterable[int]) -> Floats:
    columns_read = [table.column(f"{prefix}{index}").to_numpy() for index in columns]
    return np.column_stack(columns_read).astype(np.float64) if columns_read else np.empty((table.num_rows, 0))
