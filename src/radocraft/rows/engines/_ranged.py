"""Some of a source's rows: those whose column lies in a range."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from radocraft.errors import MissingColumn
from radocraft.rows._expressions import double, number
from radocraft.rows.engines._base import ROWS, Cluster, Source
from radocraft.rows.engines._derived import DerivedCluster, DerivedSource
from radocraft.sums import Piece, Range


@dataclass(frozen=True)
class RangedSource(DerivedSource):
    """A source whose every statement sees only the rows in a range."""

    rows: Range

    def __post_init__(self) -> None:
        if self.rows.column not in self.kinds():
            raise MissingColumn(
                f"'{self.name}' has no column '{self.rows.column}' to take a range of rows by. "
                f"It has {', '.join(self.kinds())}."
            )

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces of the whole, with their range."""
        return tuple(replace(piece, rows=self.rows) for piece in self.whole.pieces)

    def row_count(self) -> int:
        """Not known without reading."""
        return 0

    def seen(self) -> exp.Select:
        """The rows in the range."""
        return exp.select("*").from_(ROWS).where(self._condition())

    def _condition(self) -> exp.Expr:
        column: exp.Expr = exp.column(self.rows.column, quoted=True)
        if isinstance(self.rows.low, str):
            low, high = (exp.Literal.string(str(bound)) for bound in (self.rows.low, self.rows.high))
            return exp.and_(exp.GTE(this=column, expression=low), exp.LT(this=column.copy(), expression=high))
        value = number(column, self.kinds()[self.rows.column])
        bounds = double(float(self.rows.low)), double(float(self.rows.high))
        return exp.and_(exp.GTE(this=value, expression=bounds[0]), exp.LT(this=value.copy(), expression=bounds[1]))


class RangedCluster(RangedSource, DerivedCluster):
    """The same of a cluster, whose workers see only the rows in the range."""


def ranged(source: Source, rows: Range) -> RangedSource:
    """A source of the rows in a range alone."""
    return (RangedCluster if isinstance(source, Cluster) else RangedSource)(source, rows)
