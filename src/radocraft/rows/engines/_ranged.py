"""Some of a source's rows: those whose column lies in a range."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from radocraft.arrays import Floats
from radocraft.contract import Kind
from radocraft.errors import MissingColumn
from radocraft.rows._expressions import double, number
from radocraft.rows._moments import Advance, RowLayout
from radocraft.rows.engines._base import ROWS, Cluster, Source, Work
from radocraft.sums import Piece, Range


@dataclass(frozen=True)
class RangedSource:
    """A source whose every statement sees only the rows in a range."""

    whole: Source
    rows: Range

    def __post_init__(self) -> None:
        if self.rows.column not in self.kinds():
            raise MissingColumn(
                f"'{self.name}' has no column '{self.rows.column}' to take a range of rows by. "
                f"It has {', '.join(self.kinds())}."
            )

    @property
    def name(self) -> str:
        """The name of the whole."""
        return self.whole.name

    @property
    def sum_function(self) -> str:
        """The engine's."""
        return self.whole.sum_function

    @property
    def room(self) -> int:
        """The engine's."""
        return self.whole.room

    @property
    def threads(self) -> int:
        """The engine's."""
        return self.whole.threads

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces of the whole, with their range."""
        return tuple(replace(piece, rows=self.rows) for piece in self.whole.pieces)

    def row_count(self) -> int:
        """Not known without reading."""
        return 0

    def kinds(self) -> dict[str, Kind]:
        """Those of the whole."""
        return self.whole.kinds()

    def table(self, query: exp.Query) -> pa.Table:
        """The answer over the range."""
        return self.whole.table(self._within(query))

    def batches(self, query: exp.Query, *, ordered: bool = True) -> Generator[pa.RecordBatch, None, None]:
        """The answer over the range, streamed."""
        return self.whole.batches(self._within(query), ordered=ordered)

    def moments(
        self, values: exp.Select, layout: RowLayout, gaps: Sequence[int], labels: int, advance: Advance
    ) -> Floats:
        """Moments over the range."""
        return self.whole.moments(self._within(values), layout, gaps, labels, advance)

    def sample(self, rows: int) -> exp.Query:
        """That of the whole; `table` keeps it to the range."""
        return self.whole.sample(rows)

    def draw(self, rows: int, of: int, seed: int) -> exp.Query:
        """That of the whole; `table` keeps it to the range."""
        return self.whole.draw(rows, of, seed)

    def _within(self, query: exp.Query) -> exp.Select:
        own = query.copy()
        for table in list(own.find_all(exp.Table)):
            if table.name == ROWS.name:
                table.replace(exp.select("*").from_(ROWS).where(self._condition()).subquery(ROWS.name))
        assert isinstance(own, exp.Select)
        return own

    def _condition(self) -> exp.Expr:
        column: exp.Expr = exp.column(self.rows.column, quoted=True)
        if isinstance(self.rows.low, str):
            low, high = (exp.Literal.string(str(bound)) for bound in (self.rows.low, self.rows.high))
            return exp.and_(exp.GTE(this=column, expression=low), exp.LT(this=column.copy(), expression=high))
        value = number(column, self.kinds()[self.rows.column])
        bounds = double(float(self.rows.low)), double(float(self.rows.high))
        return exp.and_(exp.GTE(this=value, expression=bounds[0]), exp.LT(this=value.copy(), expression=bounds[1]))


class RangedCluster(RangedSource):
    """The same of a cluster, whose workers see only the rows in the range."""

    def mapped(self, query: exp.Query, work: Work) -> Generator[pa.RecordBatch, None, None]:
        """What the machines make of the rows in the range."""
        assert isinstance(self.whole, Cluster)
        return self.whole.mapped(self._within(query), work)


def ranged(source: Source, rows: Range) -> RangedSource:
    """A source of the rows in a range alone."""
    return (RangedCluster if isinstance(source, Cluster) else RangedSource)(source, rows)
