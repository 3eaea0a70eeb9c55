"""Second moments of (values, present) over many rows, by whichever way suits an engine.

With ``v`` a row's values, 0 where missing, and ``e`` the indicators of
presence, the moments are the sum over rows of ``(v, e) (v, e)^T``. Three ways
give the same matrix: batches of rows into a BLAS product, the same on the
machines of a cluster, and, while the columns are few, one sum per pair of
columns in SQL.

Only NumPy and pyarrow are needed here, so that a cluster's workers can run it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    from radocraft.arrays import Floats

Advance = Callable[[int], None]
"""Called with the number of rows just read."""


def second_moments(values: Floats) -> Floats:
    """Second moments of (values, present) over some rows, NaN meaning missing.

    While no value of a column is missing its indicator of presence is the
    constant, whose moments are the sums; only columns with gaps enter the
    product twice.

    Examples
    --------
    >>> second_moments(np.array([[1.0, 2.0], [3.0, np.nan]]))
    array([[10.,  2.,  4.,  1.],
           [ 2.,  4.,  2.,  2.],
           [ 4.,  2.,  2.,  1.],
           [ 1.,  2.,  1.,  1.]])
    """
    rows, width = values.shape
    missing = np.isnan(values)
    gaps = np.flatnonzero(missing.any(axis=0))
    if len(gaps):
        values = np.where(missing, 0.0, values)
    present = (~missing[:, gaps]).astype(np.float64)
    stacked = np.hstack([values, present, np.ones((rows, 1))])
    return spread(stacked.T @ stacked, width, gaps)


def spread(product: Floats, width: int, gaps: Sequence[int] | np.ndarray[Any, Any]) -> Floats:
    """Moments of (values, present) from those of (values, present where there are gaps, 1)."""
    where = np.full(width, len(product) - 1)
    where[list(gaps)] = width + np.arange(len(gaps))
    pick = np.concatenate([np.arange(width), where])
    out: Floats = product[np.ix_(pick, pick)]
    return out


def dense(batch: pa.RecordBatch) -> Floats:
    """A batch as a matrix, missing values as NaN."""
    out = np.empty((batch.num_rows, batch.num_columns))
    for at, column in enumerate(batch.columns):
        out[:, at] = column.to_numpy(zero_copy_only=False)
    return out


def of_batches(batches: Iterable[pa.RecordBatch], width: int, advance: Advance) -> Floats:
    """Moments of all rows, one batch at a time, in the order in which they come."""
    moments = np.zeros((2 * width, 2 * width))
    with threadpool_limits(limits=1, user_api="blas"), np.errstate(over="ignore", invalid="ignore"):
        for batch in batches:
            moments += second_moments(dense(batch))
            advance(batch.num_rows)
    return moments


def partial(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One cluster worker's share: its batches in, one row with their moments out."""
    moments, rows = np.zeros((0, 0)), 0
    with np.errstate(over="ignore", invalid="ignore"):
        for batch in batches:
            piece = second_moments(dense(batch))
            moments = piece if rows == 0 else moments + piece
            rows += batch.num_rows
    yield pa.record_batch({"rows": pa.array([rows], pa.int64()), "moments": pa.array([moments.tobytes()], pa.binary())})


def packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each batch as one binary value, so that a cluster's partitions can be fetched one after the other."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.record_batch({"piece": pa.array([sink.getvalue().to_pybytes()], pa.binary())})


PARTIAL = "rows bigint, moments binary"
"""The table `partial` makes, as Spark spells it."""


def of_partials(table: pa.Table, width: int) -> Floats:
    """Add the workers' shares."""
    moments = np.zeros((2 * width, 2 * width))
    for rows, packed in zip(table.column("rows").to_pylist(), table.column("moments").to_pylist(), strict=True):
        if rows:
            moments += np.frombuffer(packed).reshape(moments.shape)
    return moments
