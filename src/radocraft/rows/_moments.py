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


def add_products(product: Floats, rows: Floats, labels: Ints) -> None:
    """Add ``X^T X`` to the matrix of each label, X being its rows."""
    if len(product) == 1:
        product[0] += rows.T @ rows
        return
    rows = rows[np.argsort(labels, kind="stable")]
    end = 0
    for at, count in enumerate(np.bincount(labels, minlength=len(product)).tolist()):
        start, end = end, end + count
        if count:
            product[at] += rows[start:end].T @ rows[start:end]


def lift(out: Floats, columns: list[Floats], gaps: Sequence[int]) -> None:
    """Fill ``out`` with a line for each column, 0 where it is NaN, one for the presence of each with gaps, and ones."""
    width = len(columns)
    for at, column in enumerate(columns):
        out[at] = column
    for line, at in enumerate(gaps, start=width):
        np.equal(out[at], out[at], out=out[line])
        np.copyto(out[at], 0.0, where=out[line] == 0.0)
    out[-1] = 1.0


def with_present(product: Floats, width: int, gaps: Sequence[int]) -> Floats:
    """Moments of (values, present) from those of (values, present where there are gaps, 1)."""
    where = np.full(width, product.shape[-1] - 1)
    where[list(gaps)] = width + np.arange(len(gaps))
    pick = np.concatenate([np.arange(width), where])
    out: Floats = product[..., pick[:, None], pick]
    return out


def of_batches(
    batches: Iterable[pa.RecordBatch], width: int, gaps: Sequence[int], labels: int, advance: Advance
) -> Floats:
    """Moments by label of all rows, in the order in which they come; only columns in ``gaps`` may miss values.

    After the values comes the label's number, below ``labels``. Columns are copied a
    few thousand rows at a time into one small matrix that stays in the processor's
    cache, and multiplied there.
    """
    lifted = np.empty((_ROWS, width + len(gaps) + 1))
    product = np.zeros((labels, lifted.shape[1], lifted.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        for batch in batches:
            *columns, label = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
            for start in range(0, batch.num_rows, _ROWS):
                piece = lifted[: min(_ROWS, batch.num_rows - start)]
                lift(piece.T, [column[start : start + _ROWS] for column in columns], gaps)
                add_products(product, piece, label[start : start + _ROWS])
            advance(batch.num_rows)
    return with_present(product, width, gaps)


def partial(
    batches: Iterator[pa.RecordBatch], width: int, gaps: Sequence[int], labels: int
) -> Iterator[pa.RecordBatch]:
    """One cluster worker's share: its batches in, one row with their moments out."""
    moments = of_batches(batches, width, gaps, labels, lambda rows: None)
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
