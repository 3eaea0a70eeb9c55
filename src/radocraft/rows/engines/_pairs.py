"""Moments by pair sums: one aggregate per pair of columns, for engines that should not hand out rows.

Cheap while columns are few; the number of sums grows with their square.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement

import numpy as np
import pyarrow as pa
from sqlglot import exp

from radocraft.arrays import Floats
from radocraft.rows._expressions import double, whole
from radocraft.rows._moments import RowLayout, with_present

MOST_SUMS = 400
"""Above this many aggregates in one statement, engines do better with batches of rows."""


def count(width: int, gaps: Sequence[int]) -> int:
    """How many aggregates the statement would have."""
    return len(list(_pairs(width, gaps))) + 1


def columns_of(layout: RowLayout) -> list[exp.Expr]:
    """Every column to be summed, made of what a layout holds of a row."""
    out: list[exp.Expr] = [exp.null()] * layout.width
    for place, column in enumerate(layout.plain):
        out[column] = exp.column(f"value_{place}")
    for number, (start, count) in enumerate(layout.coded):
        for code in range(count):
            same = exp.EQ(this=exp.column(f"category_{number}"), expression=whole(code))
            out[start + code] = exp.Case().when(same, exp.column(f"value_{layout.held - 1}")).else_(double(0))
    return out


def statement(values: exp.Select, layout: RowLayout, gaps: Sequence[int]) -> exp.Query:
    """All pair sums of (values, present where there are gaps, 1), one row for each label.

    A product with a missing value is NULL, which a sum leaves out, as it should:
    a missing value counts as 0.
    """
    width = layout.width
    if layout.coded:
        named = [column.as_(f"value_{index}") for index, column in enumerate(columns_of(layout))]
        values = exp.select(*named, "label").from_(values.subquery("held"))
    sums = [
        _sum(left, right, width, gaps).as_(f"pair_{left}_{right}", copy=False) for left, right in _pairs(width, gaps)
    ]
    rows = exp.func("COUNT", exp.Star()).as_("rows")
    return exp.select("label", rows, *sums, copy=False).from_(values.subquery("encoded")).group_by("label")


def moments(answer: pa.Table, width: int, gaps: Sequence[int], labels: int) -> Floats:
    """The matrices of moments from the statement's rows."""
    size = width + len(gaps) + 1
    product = np.zeros((labels, size, size))
    for row in answer.to_pylist():
        matrix = product[int(row["label"])]
        matrix[-1, -1] = row["rows"]
        for left, right in _pairs(width, gaps):
            matrix[left, right] = matrix[right, left] = row[f"pair_{left}_{right}"] or 0.0
    return with_present(product, width, gaps)


def _pairs(width: int, gaps: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Coordinates are the values, then presence of each column with gaps, then the constant."""
    constant = width + len(gaps)
    yield from combinations_with_replacement(range(width), 2)
    yield from ((index, width + gap) for index in range(width) for gap in range(len(gaps)))
    yield from combinations(range(width, constant), 2)
    yield from ((width + gap, width + gap) for gap in range(len(gaps)))
    yield from ((index, constant) for index in range(constant))


def _sum(left: int, right: int, width: int, gaps: Sequence[int]) -> exp.Expr:
    def value(index: int) -> exp.Expr:
        return exp.column(f"value_{index}")

    def held(index: int) -> exp.Expr:
        return exp.Not(this=value(gaps[index - width]).is_(exp.null()))

    if right < width:
        return exp.func("SUM", exp.Mul(this=value(left), expression=value(right)))
    if left < width:
        kept = value(left) if right == width + len(gaps) else exp.Case().when(held(right), value(left))
        return exp.func("SUM", kept)
    if right == width + len(gaps) or left == right:
        return exp.func("COUNT", value(gaps[left - width]))
    return exp.func("COUNT", exp.Case().when(held(left), value(gaps[right - width])))
