"""Sources derived from others: every statement reads something computed from the table instead of the table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from radocraft.arrays import Floats
from radocraft.contract import Kind
from radocraft.rows._moments import Advance, RowLayout
from radocraft.rows.engines._base import ROWS, Cluster, Source, Work
from radocraft.sums import Piece


@dataclass(frozen=True)
class DerivedSource(ABC):
    """A source that asks another one."""

    whole: Source

    @abstractmethod
    def seen(self) -> exp.Select:
        """What is found in place of the table, as a query over it."""

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
        """Those of the whole."""
        return self.whole.pieces

    def row_count(self) -> int:
        """That of the whole."""
        return self.whole.row_count()

    def kinds(self) -> dict[str, Kind]:
        """Those of the whole."""
        return self.whole.kinds()

    def table(self, query: exp.Query) -> pa.Table:
        """The answer over what is seen."""
        return self.whole.table(self.over(query))

    def batches(self, query: exp.Query, *, ordered: bool = True) -> Generator[pa.RecordBatch, None, None]:
        """The answer over what is seen, streamed."""
        return self.whole.batches(self.over(query), ordered=ordered)

    def moments(
        self, values: exp.Select, layout: RowLayout, gaps: Sequence[int], labels: int, advance: Advance
    ) -> Floats:
        """Moments over what is seen."""
        return self.whole.moments(self.over(values), layout, gaps, labels, advance)

    def sample(self, rows: int) -> exp.Query:
        """That of the whole; `table` asks it of what is seen."""
        return self.whole.sample(rows)

    def draw(self, rows: int, of: int, seed: int) -> exp.Query:
        """That of the whole; `table` asks it of what is seen."""
        return self.whole.draw(rows, of, seed)

    def over(self, query: exp.Query) -> exp.Select:
        """A query over the table as one over what is seen."""
        own = query.copy()
        for table in list(own.find_all(exp.Table)):
            if table.name == ROWS.name:
                table.replace(self.seen().subquery(ROWS.name))
        assert isinstance(own, exp.Select)
        return own


class DerivedCluster(DerivedSource):
    """The same of a cluster, whose workers see what is made of the table."""

    def mapped(self, query: exp.Query, work: Work) -> Generator[pa.RecordBatch, None, None]:
        """What the machines make of what is seen."""
        assert isinstance(self.whole, Cluster)
        return self.whole.mapped(self.over(query), work)
