"""What crafting needs from an engine."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import pyarrow as pa
from sqlglot import exp

from radocraft.arrays import Floats
from radocraft.contract import Kind
from radocraft.rows._moments import Advance, RowLayout
from radocraft.sums import Piece

ROWS = exp.to_table("radocraft_rows")
"""The name under which every statement finds the peer's table."""
Work = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What a worker makes of the rows it has."""
_PRIME, _ROOTS = 2**31 - 1, (48_271, 69_621)


@dataclass(frozen=True)
class Settings:
    """How an engine should work.

    Parameters
    ----------
    memory_limit
        The most memory the embedded engine may take, such as "2GB"; what does
        not fit goes to ``temp_directory``.
    temp_directory
        Where the embedded engine puts what does not fit.
    exact
        Add in one fixed order, so that the same rows give the same bits on
        every run and machine of a kind; slower, since one thread does it.
    """

    memory_limit: str | None = None
    temp_directory: str | Path | None = None
    exact: bool = False

    @property
    def embedded_only(self) -> bool:
        """Whether something is set that other engines decide for themselves."""
        return self.memory_limit is not None or self.temp_directory is not None


class Named(Protocol):
    """What messages can speak of."""

    @property
    def name(self) -> str:
        """What to call it in messages: a path or a table's name."""


@runtime_checkable
class Source(Named, Protocol):
    """A table that can answer an aggregate query and stream expressions over its rows."""

    @property
    def sum_function(self) -> str:
        """The engine's most exact sum of doubles."""

    @property
    def room(self) -> int:
        """How many bytes of sums may be kept here while rows are handed out; 0 where handing them out is dear."""

    @property
    def threads(self) -> int:
        """How many threads may add up rows that it hands out, each for itself; 1 keeps one fixed order."""

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """What distinguishes these rows from others, for a tally to remember."""

    def row_count(self) -> int:
        """How many rows there are, 0 where only reading them all would tell."""

    def kinds(self) -> dict[str, Kind]:
        """The table's columns, in order, and how the engine holds each."""

    def table(self, query: exp.Query) -> pa.Table:
        """The answer of an aggregate query."""

    def batches(self, query: exp.Query, *, ordered: bool = True) -> Generator[pa.RecordBatch, None, None]:
        """The answer in pieces, never whole in memory; in row order, or in whichever order is quickest."""

    def moments(
        self, values: exp.Select, layout: RowLayout, gaps: Sequence[int], labels: int, advance: Advance
    ) -> Floats:
        """Second moments of (values, present) by label over all rows; see `radocraft.moments`.

        ``values`` selects what the layout holds under the names value_0, value_1 and so on, then codes as
        category_0 and so on, and last the number of the row's label, below ``labels``, as ``label``;
        ``gaps`` are the columns of which some are missing. ``advance`` is called
        with the number of rows just read, where the engine hands out rows.
        """

    def sample(self, rows: int) -> exp.Query:
        """A query over a sample of about that many rows."""

    def draw(self, rows: int, of: int, seed: int) -> exp.Query:
        """A query over about ``rows`` of its ``of`` rows, drawn by lot; the same ones on every reading."""


@runtime_checkable
class Cluster(Source, Protocol):
    """A source whose rows are on machines that can work on them there."""

    def mapped(self, query: exp.Query, work: Work) -> Generator[pa.RecordBatch, None, None]:
        """What the machines make of the query's rows; nothing else of them comes here."""


def drawn_by_place(rows: int, of: int, seed: int) -> exp.Query:
    """`Source.draw` for engines that hand out rows in one order: lots are mixed from the row's place."""
    turn = exp.Window(this=exp.RowNumber()).as_("radocraft_turn")
    numbered = exp.select(exp.Star(), turn).from_(ROWS).subquery("radocraft_turns")
    mixed = f"((radocraft_turn + {seed % _PRIME}) * {_ROOTS[0]}) % {_PRIME}"
    lot = f"(((({mixed}) * ({mixed})) % {_PRIME}) * {_ROOTS[1]}) % {_PRIME}"
    return exp.select(exp.Star()).from_(numbered).where(f"{lot} < {round(_PRIME * rows / of)}")
