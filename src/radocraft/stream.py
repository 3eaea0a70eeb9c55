"""Block sums and moments in one pass, where handing out rows costs little more than reading them.

The engine streams one number per row, its place in the grid of all codes and
labels, and the values to be summed. A few thousand rows at a time are copied
into a matrix X and, while they are in the processor's cache, X^T X is added to
the moments; G X to the block sums, where G has a 1 for every row at its block.
NaN is a missing value; whether there is one shows in the sums, and only then
are values asked one by one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import pyarrow as pa
from scipy.sparse import csc_array
from sqlglot import exp
from threadpoolctl import threadpool_limits

from radocraft.arrays import Floats, Ints
from radocraft.encoding import Reader
from radocraft.expressions import whole
from radocraft.moments import lift, spread
from radocraft.progress import Progress, quiet
from radocraft.sources import Source
from radocraft.sources.base import ROWS
from radocraft.totals import Shift, Totals, hopeful_kinds

_ROWS = 4096
_BYTES = 8
_WORKERS = 1


@dataclass(frozen=True)
class Grid:
    """Every place a row can have: codes of the shared features, then label (or none), then unreadable."""

    reader: Reader

    @property
    def shape(self) -> tuple[int, ...]:
        """How many codes there are of each shared feature, and how many of the label, none included."""
        low, high = self._labels
        return (*(len(shared.codes) for shared in self.reader.contract.shared), high - low + 2)

    @property
    def size(self) -> int:
        """How many places there are."""
        return prod(self.shape) + 1

    @property
    def unlabelled(self) -> int:
        """The code of rows without an agreed label."""
        return self._labels[1] + 1

    @property
    def _labels(self) -> tuple[int, int]:
        codes = self.reader.contract.label_codes(self.reader.peer)
        return min(codes), max(codes)

    def place(self) -> exp.Expr:
        """A row's place, as an engine expression."""
        low, _ = self._labels
        label = exp.func("COALESCE", self.reader.label(), whole(self.unlabelled))
        coordinates = [self.reader.code(shared) for shared in self.reader.contract.shared]
        coordinates.append(exp.Sub(this=label, expression=whole(low)))
        place, *rest = coordinates
        for size, coordinate in zip(self.shape[1:], rest, strict=True):
            place = exp.Add(
                this=exp.Mul(this=exp.paren(place), expression=whole(size)), expression=exp.paren(coordinate)
            )
        if (misread := self.reader.misread()) is not None:
            place = exp.Case().when(misread, whole(self.size - 1)).else_(place)
        return exp.cast(place, "INT")

    def blocks(self, places: Ints) -> tuple[Ints, Ints]:
        """Codes and labels of some places; a label one above the highest is none."""
        *codes, label = np.unravel_index(places, self.shape)
        width = len(self.shape) - 1
        return np.column_stack(codes) if width else np.empty((len(places), 0), dtype=np.int64), label + self._labels[0]


def streams(source: Source, reader: Reader) -> bool:
    """Whether one pass is the better way: rows are at hand, and there is room for the sums of all possible blocks."""
    return Grid(reader).size * (len(reader.summed()) + 1) * _BYTES <= source.room


def stream_totals(source: Source, reader: Reader, shift: Shift, progress: Progress = quiet) -> Totals:
    """The totals from one stream of rows."""
    reader = replace(reader, kinds=hopeful_kinds(reader))
    grid, values = Grid(reader), shift.values(reader)
    named = [value.as_(f"value_{at}") for at, value in enumerate([*values, *shift.usually(reader)])]
    statement = exp.select(grid.place().as_("place"), *named).from_(reader.rows(ROWS))
    with threadpool_limits(limits=1, user_api="blas"):
        running = add_batches(source.batches(statement), Running(grid.size, len(named)), source.row_count(), progress)
    seen = np.flatnonzero(running.rows[:-1])
    codes, labels = grid.blocks(seen)
    width, wide = len(values), len(named)
    kept = np.r_[:width, wide : wide + width]
    present = running.present(seen)[:, :width]
    others = present.copy()
    others[:, shift.counted] -= running.sums[seen, width:].astype(np.int64)
    return Totals(
        codes=codes,
        labels=labels,
        rows=running.rows[seen],
        sums=running.sums[seen, :width],
        present=present,
        others=others,
        moments=running.moments[np.ix_(kept, kept)],
        unlabelled=bool((labels == grid.unlabelled).any()),
        misread=bool(running.rows[-1]),
    )


def add_batches(batches: Iterable[pa.RecordBatch], running: Running, total: int, progress: Progress) -> Running:
    """Add batches up in their order, each summed by a worker while the engine makes the next ones."""
    done, waiting = 0, deque[Future[Summed]]()
    progress("sums and moments", 0, total)
    with ThreadPoolExecutor(_WORKERS) as workers:
        for batch in batches:
            waiting.append(workers.submit(sum_batch, batch, len(running.rows), running.gaps))
            if len(waiting) > _WORKERS:
                running.add(waiting.popleft().result())
            done += batch.num_rows
            progress("sums and moments", done, total)
        for last in waiting:
            running.add(last.result())
    return running


class Running:
    """Sums over the rows so far: by place rows, values and how many of them are absent; and the moments."""

    def __init__(self, places: int, width: int) -> None:
        self.rows: Ints = np.zeros(places, dtype=np.int64)
        self.sums: Floats = np.zeros((places, width))
        self.moments: Floats = np.zeros((2 * width, 2 * width))
        self._absent: dict[int, Ints] = {}

    @property
    def gaps(self) -> tuple[int, ...]:
        """Columns of which some value was absent."""
        return tuple(self._absent)

    def present(self, places: Ints) -> Ints:
        """How many values of every column are present at some places."""
        present = np.repeat(self.rows[places][:, None], self.sums.shape[1], axis=1)
        for at, absent in self._absent.items():
            present[:, at] -= absent[places]
        return present

    def add(self, more: Summed) -> None:
        """Add what a batch sums to."""
        width = self.sums.shape[1]
        counts = more.grouped[:, width:].astype(np.int64)
        with np.errstate(over="ignore", invalid="ignore"):
            self.sums[more.places] += more.grouped[:, :width]
            self.moments += spread(more.product, width, more.gaps)
        self.rows[more.places] += counts[:, -1]
        for line, at in enumerate(more.gaps):
            absent = self._absent.setdefault(at, np.zeros_like(self.rows))
            absent[more.places] += counts[:, -1] - counts[:, line]


@dataclass(frozen=True)
class Summed:
    """A batch: the places that occur, sums there of (values, presence where there are gaps, 1), their moments."""

    places: Ints
    grouped: Floats
    product: Floats
    gaps: tuple[int, ...]


def sum_batch(batch: pa.RecordBatch, size: int, gaps: tuple[int, ...]) -> Summed:
    """Sum a batch whose first column is a row's place, of so many; ``gaps`` are columns known to have some."""
    place, *columns = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
    places, number = numbered(place, size)
    with np.errstate(over="ignore", invalid="ignore"):
        rows, product = lifted(len(place), columns, gaps)
        if new := new_gaps(product, columns, gaps):
            gaps = (*gaps, *new)
            rows, product = lifted(len(place), columns, gaps)
        by_place = csc_array((np.ones(len(place)), number, np.arange(len(place) + 1)), shape=(len(places), len(place)))
        return Summed(places, by_place @ rows, product, gaps)


def numbered(place: Ints, size: int) -> tuple[Ints, Ints]:
    """The places that occur, and for every row the number of its place among them.

    Examples
    --------
    >>> numbered(np.array([7, 2, 7]), 9)
    (array([2, 7]), array([1, 0, 1]))
    """
    occurs = np.zeros(size, dtype=bool)
    occurs[place] = True
    places: Ints = np.flatnonzero(occurs).astype(np.int64)
    number: Ints = np.empty(size, dtype=np.int64)
    number[places] = np.arange(len(places))
    return places, number[place]


def lifted(count: int, columns: list[Floats], gaps: tuple[int, ...]) -> tuple[Floats, Floats]:
    """(values, presence where a column has gaps, 1) of every row, and the moments of it."""
    rows = np.empty((count, len(columns) + len(gaps) + 1))
    product = np.zeros((rows.shape[1], rows.shape[1]))
    for start in range(0, count, _ROWS):
        piece = rows[start : start + _ROWS]
        lift(piece.T, [column[start : start + _ROWS] for column in columns], gaps)
        product += piece.T @ piece
    return rows, product


def new_gaps(product: Floats, columns: list[Floats], gaps: tuple[int, ...]) -> list[int]:
    """Columns not known to have gaps whose sum is NaN because a value is, not because infinities cancelled."""
    wrong: list[int] = np.flatnonzero(np.isnan(product[-1, : len(columns)])).tolist()
    return [at for at in wrong if at not in gaps and np.isnan(columns[at]).any()]
