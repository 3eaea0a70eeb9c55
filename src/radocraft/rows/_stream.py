"""Block sums and moments in one pass, for engines in this process.

The engine streams one number per row, its place in the grid of all codes and
labels, and the values to be summed. Several threads take batches of rows, as many
as the engine has itself, and each adds them to sums of its own: a few thousand
rows at a time are copied into a matrix X, bounded there (`bounds`), and, while they
are in the processor's cache, X^T X is added to the moments of each label; G X to the
block sums, where G has a 1 for every row at its block. NaN is a missing value; whether
there is one shows in the sums, and only then are values asked one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import reduce
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse._sparsetools import csc_matvecs
from sqlglot import exp

from radocraft.arrays import Floats, Ints
from radocraft.contract import summed_columns
from radocraft.progress import Progress, quiet
from radocraft.rows._encoding import Reader
from radocraft.rows._grid import Grid
from radocraft.rows._moments import RowLayout, RowProducts, lift, with_present
from radocraft.rows._shift import Shift
from radocraft.rows._totals import Totals, hopeful_kinds, present_values
from radocraft.rows.engines._base import ROWS, Source
from radocraft.sums import Bounding

_ROWS = 4096
_BYTES = 8
_DOING = "sums and moments"
_ONE: Any = np.zeros(1, dtype=np.uint8)


def streams(source: Source, reader: Reader) -> bool:
    """Whether one pass is the better way: rows are at hand, and there is room for the sums of all possible blocks."""
    return sums_size(reader) <= source.room


def sums_size(reader: Reader) -> int:
    """How many bytes the sums of all possible blocks take."""
    return Grid(reader).size * (reader.layout.width + 1) * _BYTES


def stream_totals(
    source: Source, reader: Reader, shift: Shift, progress: Progress = quiet, *, products: bool = True
) -> Totals:
    """The totals from one stream of rows; without products there are no moments."""
    reader = replace(reader, kinds=hopeful_kinds(reader))
    grid, layout = Grid(reader), reader.layout
    named = [value.as_(f"value_{index}") for index, value in enumerate(shift.values(reader))]
    coded = [code.as_(f"category_{index}") for index, code in enumerate(reader.codes())]
    statement = exp.select(grid.numbers()[0].as_("place"), *named, *coded).from_(reader.rows(ROWS))
    adders = max(1, min(source.threads, source.room // sums_size(reader)))
    matrices = grid.matrices() if products else None
    hopeful = nan_means_missing(reader)
    bounding = None if shift.bounding is None else shift.bounding.of(layout.plain)
    each = [Running(grid.size, layout, matrices, bounding, hopeful) for _ in range(adders)]
    with closing(source.batches(statement, ordered=source.threads == 1)) as batches:
        running = add_batches(Feed(batches, source.row_count(), progress), each)
    seen = np.flatnonzero(running.sums[:-1, -1])
    misread = bool(running.sums[-1, -1])
    codes, labels = grid.blocks([seen])
    rows, sums, present = running.keep(seen)
    return Totals(
        codes=codes,
        labels=labels,
        rows=rows,
        sums=sums,
        present=present,
        moments=running.moments if products else np.empty((0, 0, 0)),
        unlabelled=bool((labels == grid.unlabelled).any()),
        misread=misread,
        infinite=any(one.infinite for one in each),
    )


def nan_means_missing(reader: Reader) -> frozenset[int]:
    """Which numbers may be NaN for a missing value that was not asked for; in others it comes of an infinity."""
    columns = summed_columns(reader.contract, reader.peer)
    summed = reader.contract.summed(reader.peer)
    return frozenset(
        index
        for index, column in enumerate(columns[index] for index in reader.layout.plain)
        if summed[column.feature].kind == "numeric" and reader.kind(column.feature) == "never-nan"
    )


@dataclass
class Feed:
    """Batches of rows for several threads, one at a time to whoever asks; ends for all when one stops it."""

    batches: Iterator[pa.RecordBatch]
    total: int = 0
    progress: Progress = quiet
    done: int = 0
    stopped: bool = False
    lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.progress(_DOING, 0, self.total)

    def next(self) -> pa.RecordBatch | None:
        """The next batch, None if there is none."""
        with self.lock:
            batch = None if self.stopped else next(self.batches, None)
            if batch is not None:
                self.done += batch.num_rows
                self.progress(_DOING, self.done, self.total)
            return batch


def add_batches(feed: Feed, each: list[Running]) -> Running:
    """Add all batches up, in as many threads as there are sums to add to; this one, which a user can stop, is one."""

    def add(running: Running) -> None:
        try:
            while (batch := feed.next()) is not None:
                running.add(batch)
        finally:
            feed.stopped = True

    mine, *others = each
    with ThreadPoolExecutor(max(1, len(others))) as workers:
        try:
            theirs = [workers.submit(add, running) for running in others]
            add(mine)
        finally:
            feed.stopped = True
    for other in theirs:
        other.result()
    return reduce(Running.join, others, mine)


class Running:
    """Sums over the rows so far of (numbers, presence of those with gaps, 1): by place, and of their products by label.

    ``layout`` says which columns are numbers and which are categories, of which only codes come; their sums are in
    ``categories``. ``gaps`` are the numbers of which some value was missing so far; with bounds there
    are none, since a missing value counts as 0. ``matrices`` gives the number of the
    matrix for each coordinate of the label, the last of a place; without, there are no products.
    In ``hopeful`` columns NaN is a missing value; in others it comes of an infinity.
    """

    def __init__(
        self,
        places: int,
        layout: RowLayout,
        matrices: Ints | None = _ONE,
        bounding: Bounding | None = None,
        hopeful: frozenset[int] = frozenset(),
    ) -> None:
        self.gaps: tuple[int, ...] = ()
        self.infinite = False
        self.sums: Floats = np.zeros((places, layout.held + 1))
        self.categories: list[Floats] = [np.zeros((places, count)) for _, count in layout.coded]
        count = 0 if matrices is None else int(matrices.max()) + 1
        self.products = RowProducts(count, layout.held + 1, layout)
        self._layout, self._matrices, self._bounding, self._hopeful = layout, matrices, bounding, hopeful

    @property
    def moments(self) -> Floats:
        """Second moments of (values, present) by label."""
        return with_present(self.products.whole(self.gaps), self._layout.width, self._gaps)

    @property
    def _gaps(self) -> list[int]:
        """The columns with gaps."""
        return [self._layout.plain[gap] for gap in self.gaps]

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch whose first column is a row's place."""
        place, *columns = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
        count = len(columns) - len(self.categories)
        columns, codes = columns[:count], columns[count:]
        odd: set[int] = set()
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(place), _ROWS):
                rows = slice(start, start + _ROWS)
                some = [column[rows] for column in columns]
                odd |= self._add_rows(place[rows], some, [code[rows] for code in codes])
        for index in odd:
            known = np.isnan(columns[index]).sum() if index in self._hopeful else batch.column(index + 1).null_count
            self.infinite |= bool(np.isfinite(columns[index]).sum() + known < len(place))

    def _add_rows(self, place: Ints, columns: list[Floats], codes: list[Ints]) -> set[int]:
        """Add a few rows; with bounds, tell in which columns some value is no number."""
        odd: set[int] = set()
        lifted = np.empty((len(place), self.sums.shape[1]))
        if self._bounding is None:
            lift(lifted.T, [*columns, *([np.ones(len(place))] if codes else [])], self.gaps)
            if new := new_gaps(lifted.sum(axis=0), columns, self.gaps):
                self._widen(new)
                return self._add_rows(place, columns, codes)
        else:
            lifted[:, -1] = 1.0
            odd = self._bounding.fill(lifted[:, :-1], columns, len(codes))
        if self._matrices is not None:
            self.products.add(lifted, self._matrices[place % len(self._matrices)], codes)
        add_by_place(self.sums, place, lifted)
        for sums, code in zip(self.categories, codes, strict=True):
            where = place.astype(np.int64) * sums.shape[1] + code
            np.add.at(sums.reshape(-1), where, lifted[:, self._layout.held - 1])
        return odd

    def join(self, other: Running) -> Running:
        """The sums over the rows of both."""
        if self.gaps != other.gaps:
            other._widen([gap for gap in self.gaps if gap not in other.gaps])
            self._widen([gap for gap in other.gaps if gap not in self.gaps])
            other._order(self.gaps)
        with np.errstate(over="ignore", invalid="ignore"):
            self.sums += other.sums
            self.products.join(other.products)
            for mine, theirs in zip(self.categories, other.categories, strict=True):
                np.add(mine, theirs, out=mine)
        return self

    def keep(self, places: Ints) -> tuple[Ints, Floats, Ints]:
        """Rows, sums and values present of some places alone, which rise."""
        layout, kept = self._layout, self._keep(places)
        rows = kept[:, -1].astype(np.int64)
        present = present_values(rows, layout.width, self._gaps, kept[:, layout.held : -1])
        if not layout.coded:
            return rows, kept[:, : layout.width], present
        sums = np.empty((len(places), layout.width))
        sums[:, layout.plain] = kept[:, : len(layout.plain)]
        for (start, count), matrix in zip(layout.coded, self.categories, strict=True):
            sums[:, start : start + count] = matrix[places]
        return rows, sums, present

    def _keep(self, places: Ints) -> Floats:
        """In the same memory, since new memory costs time."""
        for start in range(0, len(places), _ROWS):
            some = places[start : start + _ROWS]
            self.sums[start : start + len(some)] = self.sums[some]
        self.sums.resize((len(places), self.sums.shape[1]), refcheck=False)
        return self.sums

    def _order(self, gaps: tuple[int, ...]) -> None:
        """Put the presence of columns with gaps into this order."""
        held = self._layout.held
        order = [*range(held), *(held + self.gaps.index(gap) for gap in gaps), -1]
        self.sums, self.gaps = self.sums[:, order], gaps
        self.products.order(order)

    def _widen(self, new: list[int]) -> None:
        """More columns have gaps: so far none of their values was missing, so their presence is the constant."""
        self.gaps = (*self.gaps, *new)
        self.sums = np.insert(self.sums, [-1] * len(new), self.sums[:, -1:], axis=1)
        self.products.widen(len(new))


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


def new_gaps(sums: Floats, columns: list[Floats], gaps: tuple[int, ...]) -> list[int]:
    """Columns not known to have gaps whose sum is NaN because a value is, not because infinities cancelled."""
    wrong: list[int] = np.flatnonzero(np.isnan(sums[: len(columns)])).tolist()
    return [index for index in wrong if index not in gaps and np.isnan(columns[index]).any()]
