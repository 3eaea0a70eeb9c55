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
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from radocraft.arrays import Floats

_ROWS = 4096

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
    gaps: list[int] = np.flatnonzero(np.isnan(values).any(axis=0)).tolist()
    lifted = np.empty((width + len(gaps) + 1, rows))
    lift(lifted, list(values.T), gaps)
    return spread(lifted @ lifted.T, width, gaps)


def lift(out: Floats, columns: list[Floats], gaps: Sequence[int]) -> None:
    """Fill ``out`` with a line for each column, 0 where it is NaN, one for the presence of each with gaps, and ones."""
    width = len(columns)
    for at, column in enumerate(columns):
        out[at] = column
    for line, at in enumerate(gaps, start=width):
        np.equal(out[at], out[at], out=out[line])
        np.copyto(out[at], 0.0, where=out[line] == 0.0)
    out[-1] = 1.0


def spread(product: Floats, width: int, gaps: Sequence[int]) -> Floats:
    """Moments of (values, present) from those of (values, present where there are gaps, 1)."""
    where = np.full(width, len(product) - 1)
    where[list(gaps)] = width + np.arange(len(gaps))
    pick = np.concatenate([np.arange(width), where])
    out: Floats = product[np.ix_(pick, pick)]
    return out


def beside_usual(moments: Floats, width: int) -> Floats:
    """Moments of (values, present, usual) from those of (values and usual, both present), where usual is never missing.

    ``width`` is the number of values; see `radocraft.usual` for what is usual.
    """
    wide = len(moments) // 2
    kept = np.r_[:width, wide : wide + width, width:wide]
    out: Floats = moments[np.ix_(kept, kept)]
    return out


def dense(batch: pa.RecordBatch) -> Floats:
    """A batch as a matrix, missing values as NaN."""
    out = np.empty((batch.num_rows, batch.num_columns))
    for at, column in enumerate(batch.columns):
        out[:, at] = column.to_numpy(zero_copy_only=False)
    return out


def of_batches(batches: Iterable[pa.RecordBatch], width: int, gaps: Sequence[int], advance: Advance) -> Floats:
    """Moments of all rows, in the order in which they come; only columns in ``gaps`` may miss values.

    Columns are copied a few thousand rows at a time into one small matrix that
    stays in the processor's cache, and multiplied there.
    """
    lifted = np.empty((width + len(gaps) + 1, _ROWS))
    product = np.zeros((len(lifted), len(lifted)))
    with np.errstate(over="ignore", invalid="ignore"):
        for batch in batches:
            columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
            for start in range(0, batch.num_rows, _ROWS):
                piece = lifted[:, : min(_ROWS, batch.num_rows - start)]
                lift(piece, [column[start : start + _ROWS] for column in columns], gaps)
                product += piece @ piece.T
            advance(batch.num_rows)
    return spread(product, width, gaps)


def partial(batches: Iterator[pa.RecordBatch], width: int, gaps: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """One cluster worker's share: its batches in, one row with their moments out."""
    moments = of_batches(batches, width, gaps, lambda rows: None)
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


def of_partials(table: pa.Table, width: int) -> Floats:
    """Add the workers' shares."""
    moments = np.zeros((2 * width, 2 * width))
    for packed_moments in table.column("moments").to_pylist():
        moments += np.frombuffer(packed_moments).reshape(moments.shape)
    return moments
