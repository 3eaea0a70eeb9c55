"""Labels by rank: in every signature the rows with the largest scores are positive, as many as proportions say.

A peer without the label gives its rows one this way (`labelling`). Nothing here
touches a row: the rank is a window function, which every engine has.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from sqlglot import exp

from radocraft.arrays import Floats, Ints
from radocraft.errors import DataError
from radocraft.rows._expressions import double, moved, times, whole

GROUP, SCORE, RANK, POSITIVE = (f"radocraft_{name}" for name in ("group", "score", "rank", "positive"))
_MOST = 2**63 - 1


@dataclass(frozen=True)
class Ranking:
    """A linear score over private columns, and how many rows of each signature are positive.

    Parameters
    ----------
    weights, centre, scale
        Per private column: score = sum of weight * (value - centre) / scale; a
        missing value adds nothing.
    codes, positives
        Per signature: its codes, and how many of its rows are positive.
    """

    weights: Floats
    centre: Floats
    scale: Floats
    codes: Ints
    positives: Ints

    def __post_init__(self) -> None:
        if prod(self._sizes) > _MOST:
            raise DataError(
                "The shared features have more combinations of codes than can be numbered (2^63). "
                "Agree on fewer of them, or on fewer bins."
            )

    def label(self, low: int = 0) -> exp.Expr:
        """+1 or -1, less ``low``, over the columns that `rows` adds."""
        above = exp.LTE(this=exp.column(RANK), expression=exp.column(POSITIVE))
        return exp.Case().when(above, whole(1 - low)).else_(whole(-1 - low))

    def rows(self, table: exp.Expr, codes: list[exp.Expr], values: list[exp.Expr]) -> exp.Expr:
        """The table with the rank of every row in its signature.

        Rows of equal score are ranked by their values: such as are still equal have the
        same sums, whichever comes first.
        """
        named = [value.copy().as_(f"{SCORE}_{index}") for index, value in enumerate(values)]
        scored = exp.select(exp.Star(), self._number(codes).as_(GROUP), self._score(values).as_(SCORE), *named)
        counts = [(number, count) for number, count in zip(self._numbers(), self.positives.tolist(), strict=True)]
        falling = [exp.Ordered(this=exp.column(SCORE, "scored"), desc=True)]
        ties = [exp.Ordered(this=exp.column(f"{SCORE}_{index}", "scored")) for index in range(len(values))]
        rank = exp.Window(
            this=exp.RowNumber(),
            partition_by=[exp.column(GROUP, "scored")],
            order=exp.Order(expressions=falling + ties),
        )
        listed = exp.values(counts, alias="counts", columns=[f"{GROUP}_of", POSITIVE])
        same = exp.EQ(this=exp.column(GROUP, "scored"), expression=exp.column(f"{GROUP}_of", "counts"))
        ranked = exp.select("scored.*", rank.as_(RANK), exp.column(POSITIVE, "counts"))
        return ranked.from_(scored.from_(table).subquery("scored")).join(listed, on=same).subquery("ranked")

    @property
    def _sizes(self) -> list[int]:
        return [int(largest) + 1 for largest in self.codes.max(axis=0, initial=0)]

    def _number(self, codes: list[exp.Expr]) -> exp.Expr:
        """The signature as one number; codes that no listed signature has give one that is not listed either."""
        out: exp.Expr = exp.cast(whole(0), "BIGINT")
        known = []
        for code, size in zip(codes, self._sizes, strict=True):
            out = exp.Add(this=exp.Mul(this=exp.paren(out), expression=whole(size)), expression=exp.paren(code.copy()))
            known.append(exp.LT(this=exp.paren(code.copy()), expression=whole(size)))
        return exp.Case().when(exp.and_(*known), out).else_(whole(-1)) if known else out

    def _numbers(self) -> list[int]:
        out = np.zeros(len(self.codes), dtype=np.int64)
        for index, size in enumerate(self._sizes):
            out = out * size + self.codes[:, index]
        return [int(number) for number in out]

    def _score(self, values: list[exp.Expr]) -> exp.Expr:
        total: exp.Expr = double(0)
        for value, weight, centre, scale in zip(values, self.weights, self.centre, self.scale, strict=True):
            term = exp.func("COALESCE", moved(value.copy(), float(centre), float(scale)), double(0))
            total = exp.Add(this=total, expression=times(double(float(weight)), term))
        return total
