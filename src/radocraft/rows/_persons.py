"""At most k rows of each person, whoever reads the table.

Which of a person's rows count depends on nothing but their codes and bounded values, so that
every engine keeps the same ones: they are in order of a whole number mixed from these,
as good as drawn by lot. Rows that are equal in all of them have the same sums, whichever comes first.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from radocraft.rows._expressions import double, gridded, times, total, whole
from radocraft.sums import Bounding

_PRIME = 2**31 - 1
_ROOT = 48_271


@dataclass(frozen=True)
class Persons:
    """The column that says whose a row is, how many rows of each count, and how values are bounded.

    Rows that say nothing are taken to be of one person.
    """

    column: str
    most: int
    bounding: Bounding

    def rows(self, table: exp.Expr, codes: list[exp.Expr], values: list[exp.Expr]) -> exp.Expr:
        """The table without further rows of a person."""
        names = [f"radocraft_mixed_{index}" for index in range(len(codes) + len(values))]
        numbers: list[exp.Expr] = [exp.cast(code.copy(), "DOUBLE") for code in codes]
        numbers += [gridded(value.copy(), steps) for value, steps in zip(values, self.bounding.steps, strict=True)]
        known = exp.select(exp.Star(), *(number.as_(name) for number, name in zip(numbers, names, strict=True)))
        lot = total([times(exp.column(name), double(_factor(index))) for index, name in enumerate(names)])
        turns = exp.cast(exp.func("FLOOR", exp.Div(this=lot.copy(), expression=double(_PRIME))), "DOUBLE")
        mixed = exp.Sub(this=lot, expression=times(turns, double(_PRIME)))
        order = [exp.Ordered(this=key) for key in (mixed, *map(exp.column, names))]
        place = exp.Window(
            this=exp.RowNumber(),
            partition_by=[exp.column(self.column, quoted=True)],
            order=exp.Order(expressions=order),
        )
        placed = exp.select(exp.Star(), place.as_("radocraft_place"))
        placed = placed.from_(known.from_(table).subquery("radocraft_known"))
        few = exp.LTE(this=exp.column("radocraft_place"), expression=whole(self.most))
        return exp.select(exp.Star()).from_(placed.subquery("radocraft_placed")).where(few).subquery("radocraft_few")


def _factor(index: int) -> int:
    return pow(_ROOT, index + 1, _PRIME)
