"""Second moments of (values, present) over many rows, by label, in whichever way suits an engine.

With ``v`` a row's values, 0 where missing, and ``e`` the indicators of
presence, the moments are the sum over the rows of a label of ``(v, e) (v, e)^T``. Three
ways give the same matrices: batches of rows into a BLAS product, the same on the
machines of a cluster, and, while the columns are few, one sum per pair of
columns in SQL.

Only NumPy and pyarrow are needed here, so that a cluster's workers can run it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from radocraft.arrays import Floats, Ints

_ROWS = 4096

Advance = Callable[[int], None]
"""Called with the number of rows just read."""


def second_moments(values: Floats, labels: Ints | None = None, count: int = 1) -> Floats:
    """Second moments of (values, present) over some rows, NaN meaning missing.

    ``labels`` are from 0 to ``count`` - 1; there is a matrix for each. While no
    value of a column is missing its indicator of presence is the constant, whose
    moments are the sums; only columns with gaps enter the product twice.

    Examples
    --------
    >>> second_moments(np.array([[1.0, 2.0], [3.0, np.nan]]))
    array([[[10.,  2.,  4.,  1.],
            [ 2.,  4.,  2.,  2.],
            [ 4.,  2.,  2.,  1.],
            [ 1.,  2.,  1.,  1.]]])
    """
    rows, width = values.shape
    gaps: list[int] = np.flatnonzero(np.isnan(values).any(axis=0)).tolist()
    lifted = np.empty((rows, width + len(gaps) + 1))
    lift(lifted.T, list(values.T), gaps)
    product = np.zeros((count, lifted.shape[1], lifted.shape[1]))
    add_products(product, lifted, np.zeros(rows, dtype=np.int64) if labels is None else labels)
    return with_present(product, width, gaps)


@dataclass(frozen=True)
class RowLayout:
    """Which columns are numbers of their own, and which are the categories of a feature, of which a row has one.

    ``coded`` are first column and number of categories of each such feature; what an engine hands out is its code.
    If there are any, what a row's categories count for comes after its numbers: 1, or less in a row too long.
    """

    width: int
    coded: tuple[tuple[int, int], ...] = ()

    @property
    def plain(self) -> list[int]:
        """The columns that are numbers of their own."""
        taken = {column for start, count in self.coded for column in range(start, start + count)}
        return [column for column in range(self.width) if column not in taken]

    @property
    def held(self) -> int:
        """How many numbers a row holds beside its codes."""
        return len(self.plain) + bool(self.coded)


class RowProducts:
    """``X^T X`` by label, X being rows of numbers and then a column for each category; see `RowLayout`.

    Those of categories are mostly 0, so they are never written out: their products are
    sums of the other columns by code, and counts of pairs of codes.
    """

    def __init__(self, labels: int, width: int, layout: RowLayout) -> None:
        counts = [count for _, count in layout.coded]
        self.layout = layout
        self.plain: Floats = np.zeros((labels, width, width))
        self.crossed: list[Floats] = [np.zeros((labels, count, width)) for count in counts]
        self.paired: dict[tuple[int, int], Floats] = {
            (one, other): np.zeros((labels, counts[one], counts[other]))
            for one, other in combinations(range(len(counts)), 2)
        }

    def add(self, rows: Floats, labels: Ints, codes: Sequence[Ints]) -> None:
        """Add rows, whose last numbers are as `lift` leaves them."""
        add_products(self.plain, rows, labels)
        if not codes or not len(self.plain):
            return
        ones = rows[:, self.layout.held - 1]
        for crossed, code in zip(self.crossed, codes, strict=True):
            count, width = crossed.shape[1:]
            add_by_code(crossed.reshape(-1, width), labels * np.int64(count) + code, rows * ones[:, None])
        for (one, other), paired in self.paired.items():
            _, first, second = paired.shape
            place = (labels * np.int64(first) + codes[one]) * second + codes[other]
            np.add.at(paired.reshape(-1), place, ones * ones)

    def widen(self, count: int) -> None:
        """More columns before the last, and equal to it so far."""
        before_last = [-1] * count
        self.plain = np.insert(self.plain, before_last, self.plain[:, -1:], axis=1)
        self.plain = np.insert(self.plain, before_last, self.plain[:, :, -1:], axis=2)
        self.crossed = [np.insert(crossed, before_last, crossed[:, :, -1:], axis=2) for crossed in self.crossed]

    def order(self, columns: Sequence[int]) -> None:
        """Put the numbers into another order."""
        self.plain = self.plain[:, columns][:, :, columns]
        self.crossed = [crossed[:, :, columns] for crossed in self.crossed]

    def join(self, other: RowProducts) -> None:
        """Add those of other rows."""
        self.plain += other.plain
        for mine, theirs in zip(self.crossed, other.crossed, strict=True):
            np.add(mine, theirs, out=mine)
        for pair, theirs in other.paired.items():
            self.paired[pair] += theirs

    def whole(self, gaps: Sequence[int]) -> Floats:
        """The matrices of (columns of the layout, presence of ``gaps``, 1)."""
        layout = self.layout
        if not layout.coded:
            return self.plain
        ends = [*range(layout.width, layout.width + len(gaps) + 1)]
        to = np.array([*layout.plain, *ends])
        kept = np.array([*range(len(layout.plain)), *range(layout.held, self.plain.shape[1])])
        out = np.zeros((len(self.plain), layout.width + len(ends), layout.width + len(ends)))
        out[:, to[:, None], to] = self.plain[:, kept[:, None], kept]
        ones = layout.held - 1
        for (start, count), crossed in zip(layout.coded, self.crossed, strict=True):
            block = np.arange(start, start + count)
            out[:, block, block] = crossed[:, :, ones]
            out[:, block[:, None], to] = crossed[:, :, kept]
            out[:, to[:, None], block] = out[:, block[:, None], to].transpose(0, 2, 1)
        for (one, other), paired in self.paired.items():
            (first, rows), (second, columns) = layout.coded[one], layout.coded[other]
            out[:, first : first + rows, second : second + columns] = paired
            out[:, second : second + columns, first : first + rows] = paired.transpose(0, 2, 1)
        return out


def add_by_code(sums: Floats, place: Ints, rows: Floats) -> None:
    """Add each of the rows to the line of ``sums`` at its place.

    Examples
    --------
    >>> sums = np.zeros((3, 1))
    >>> add_by_code(sums, np.array([2, 0, 2]), np.array([[1.0], [3.0], [5.0]]))
    >>> sums.ravel()
    array([3., 0., 6.])
    """
    if not len(place):
        return
    order = np.argsort(place, kind="stable")
    first = np.flatnonzero(np.diff(place[order], prepend=-1))
    sums[place[order[first]]] += np.add.reduceat(rows[order], first, axis=0)


def add_products(product: Floats, rows: Floats, labels: Ints) -> None:
    """Add ``X^T X`` to the matrix of each label, X being its rows."""
    if len(product) == 1:
        product[0] += rows.T @ rows
        return
    rows = rows[np.argsort(labels, kind="stable")]
    end = 0
    for label, count in enumerate(np.bincount(labels, minlength=len(product)).tolist()):
        start, end = end, end + count
        if count:
            product[label] += rows[start:end].T @ rows[start:end]


def lift(out: Floats, columns: list[Floats], gaps: Sequence[int]) -> None:
    """Fill ``out`` with a line for each column, 0 where it is NaN, one for the presence of each with gaps, and ones."""
    width = len(columns)
    for index, column in enumerate(columns):
        out[index] = column
    for line, index in enumerate(gaps, start=width):
        np.equal(out[index], out[index], out=out[line])
        np.copyto(out[index], 0.0, where=out[line] == 0.0)
    out[-1] = 1.0


def with_present(product: Floats, width: int, gaps: Sequence[int]) -> Floats:
    """Moments of (values, present) from those of (values, present where there are gaps, 1)."""
    where = np.full(width, product.shape[-1] - 1)
    where[list(gaps)] = width + np.arange(len(gaps))
    pick = np.concatenate([np.arange(width), where])
    out: Floats = product[..., pick[:, None], pick]
    return out


def of_batches(
    batches: Iterable[pa.RecordBatch], layout: RowLayout, gaps: Sequence[int], labels: int, advance: Advance
) -> Floats:
    """Moments by label of all rows, in the order in which they come; only columns in ``gaps`` may miss values.

    First come the values of `RowLayout.held`, then the codes, last the label's number, below ``labels``. Columns are
    copied a few thousand rows at a time into one small matrix that stays in the processor's
    cache, and multiplied there.
    """
    lifted = np.empty((_ROWS, layout.held + len(gaps) + 1))
    products = RowProducts(labels, lifted.shape[1], layout)
    places = [layout.plain.index(at) for at in gaps]
    with np.errstate(over="ignore", invalid="ignore"):
        for batch in batches:
            *columns, label = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
            for start in range(0, batch.num_rows, _ROWS):
                rows = slice(start, start + _ROWS)
                piece = lifted[: min(_ROWS, batch.num_rows - start)]
                lift(piece.T, [column[rows] for column in columns[: layout.held]], places)
                products.add(piece, label[rows], [code[rows] for code in columns[layout.held :]])
            advance(batch.num_rows)
    return with_present(products.whole(places), layout.width, gaps)


def partial(
    batches: Iterator[pa.RecordBatch], layout: RowLayout, gaps: Sequence[int], labels: int
) -> Iterator[pa.RecordBatch]:
    """One cluster worker's share: its batches in, one row with their moments out."""
    moments = of_batches(batches, layout, gaps, labels, lambda rows: None)
    yield pa.record_batch({"moments": pa.array([moments.tobytes()], pa.binary())})


def packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each batch as one binary value, so that a cluster's partitions can be fetched one after the other."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.record_batch({"piece": pa.array([sink.getvalue().to_pybytes()], pa.binary())})


PARTIAL = "moments binary"
"""The table `partial` makes, as Spark spells it."""


def of_partials(table: pa.Table, width: int, labels: int) -> Floats:
    """Add the workers' shares."""
    moments = np.zeros((labels, 2 * width, 2 * width))
    for packed_moments in table.column("moments").to_pylist():
        moments += np.frombuffer(packed_moments).reshape(moments.shape)
    return moments
