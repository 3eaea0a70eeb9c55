"""Block sums and moments in one pass, where handing out rows costs little more than reading them.

The engine streams one number per row, its place in the grid of all codes and
labels, and the values to be summed. A few thousand rows at a time are copied
into a matrix X and, while they are in the processor's cache, X^T X is added to
the moments; G X to the block sums, where G has a 1 for every row at its block.
NaN is a missing value; whether there is one shows in the sums, and only then
are values asked one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import pyarrow as pa
from scipy.sparse._sparsetools import csc_matvecs
from sqlglot import exp

from radocraft.arrays import Floats, Ints
from radocraft.encoding import Reader
from radocraft.expressions import whole
from radocraft.moments import beside_usual, lift, spread
from radocraft.progress import Progress, quiet
from radocraft.shift import Shift
from radocraft.sources import Source
from radocraft.sources.base import ROWS
from radocraft.totals import Totals, hopeful_kinds

_ROWS = 4096
_BYTES = 8


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
    running = add_batches(source.batches(statement), Running(grid.size, len(named)), source.row_count(), progress)
    rows = running.rows
    seen = np.flatnonzero(rows[:-1])
    codes, labels = grid.blocks(seen)
    width = len(values)
    present = running.present(seen)[:, :width]
    others = present.copy()
    others[:, shift.counted] -= running.sums[seen, width : len(named)].astype(np.int64)
    return Totals(
        codes=codes,
        labels=labels,
        rows=rows[seen],
        sums=running.sums[seen, :width],
        present=present,
        others=others,
        moments=beside_usual(running.moments, width),
        unlabelled=bool((labels == grid.unlabelled).any()),
        misread=bool(rows[-1]),
    )


def add_batches(batches: Iterable[pa.RecordBatch], running: Running, total: int, progress: Progress) -> Running:
    """Add batches up in their order, one while the engine makes the next."""
    done, last = 0, None
    progress("sums and moments", 0, total)
    with ThreadPoolExecutor(1) as worker:
        for batch in batches:
            if last is not None:
                last.result()
            last = worker.submit(running.add, batch)
            done += batch.num_rows
            progress("sums and moments", done, total)
        if last is not None:
            last.result()
    return running


class Running:
    """Sums over the rows so far of (values, presence of those with gaps, 1): by place, and of their products.

    ``gaps`` are the columns of which some value was missing so far.
    """

    def __init__(self, places: int, width: int) -> None:
        self.gaps: tuple[int, ...] = ()
        self.sums: Floats = np.zeros((places, width + 1))
        self.product: Floats = np.zeros((width + 1, width + 1))
        self._width = width

    @property
    def rows(self) -> Ints:
        """How many rows every place has."""
        return self.sums[:, -1].astype(np.int64)

    @property
    def moments(self) -> Floats:
        """Second moments of (values, present)."""
        return spread(self.product, self._width, self.gaps)

    def present(self, places: Ints) -> Ints:
        """How many values of every column are present at some places."""
        present = np.repeat(self.sums[places, -1:], self._width, axis=1)
        present[:, list(self.gaps)] = self.sums[places, self._width : -1]
        return present.astype(np.int64)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch whose first column is a row's place."""
        place, *columns = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(place), _ROWS):
                rows = slice(start, start + _ROWS)
                self._add_rows(place[rows], [column[rows] for column in columns])

    def _add_rows(self, place: Ints, columns: list[Floats]) -> None:
        lifted = np.empty((len(place), self.sums.shape[1]))
        lift(lifted.T, columns, self.gaps)
        product = lifted.T @ lifted
        if new := new_gaps(product, columns, self.gaps):
            self._widen(new)
            self._add_rows(place, columns)
            return
        self.product += product
        add_by_place(self.sums, place, lifted)

    def _widen(self, new: list[int]) -> None:
        """More columns have gaps: so far none of their values was missing, so their presence is the constant."""
        self.gaps = (*self.gaps, *new)
        before_last = [-1] * len(new)
        self.sums = np.insert(self.sums, before_last, self.sums[:, -1:], axis=1)
        self.product = np.insert(self.product, before_last, self.product[-1:], axis=0)
        self.product = np.insert(self.product, before_last, self.product[:, -1:], axis=1)


def add_by_place(sums: Floats, place: Ints, rows: Floats) -> None:
    """Add each of the rows to the line of ``sums`` at its place.

    This is ``sums += G rows`` with the sparse G that has a 1 for every row at
    its place. SciPy's own product makes a new matrix of all places for every
    few rows; the routine behind it adds in place.

    Examples
    --------
    >>> sums = np.zeros((3, 2))
    >>> add_by_place(sums, np.array([2, 0, 2], dtype=np.int32), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    >>> sums
    array([[3., 4.],
           [0., 0.],
           [6., 8.]])
    """
    count, ends = len(rows), np.arange(len(rows) + 1, dtype=place.dtype)
    csc_matvecs(len(sums), count, rows.shape[1], ends, place, np.ones(count), rows.ravel(), sums.ravel())


def new_gaps(product: Floats, columns: list[Floats], gaps: tuple[int, ...]) -> list[int]:
    """Columns not known to have gaps whose sum is NaN because a value is, not because infinities cancelled."""
    wrong: list[int] = np.flatnonzero(np.isnan(product[-1, : len(columns)])).tolist()
    return [at for at in wrong if at not in gaps and np.isnan(columns[at]).any()]
