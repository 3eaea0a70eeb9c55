"""Rows scored where they are, by the workers of a cluster, which return a few numbers per row.

What is wrong with a row is noticed there and said here, without the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
from threadpoolctl import threadpool_limits

from radocraft import errors
from radocraft.progress import Progress
from radocraft.rows._checks import check_read, check_rows
from radocraft.rows._chunks import Asking, Chunk, merged, misread
from radocraft.rows.engines._base import Cluster

_FAULT, _MESSAGE = "fault", "message"


@dataclass(frozen=True)
class Worker:
    """What each worker does: read its rows, and make few columns of them.

    Parameters
    ----------
    asking
        How rows are read.
    make
        What is made of them.
    name
        What messages call the table.
    """

    asking: Asking
    make: Callable[[Chunk], pa.RecordBatch]
    name: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The columns, or one row that says what is wrong; a worker has a core to itself."""
        with threadpool_limits(1):
            for batch in merged(batches):
                if misread(batch):
                    yield _fault("", "")
                    return
                try:
                    yield self.make(self.asking.read(batch, self))
                except errors.DataError as error:
                    yield _fault(type(error).__name__, str(error))
                    return


def on_workers(
    source: Cluster, asking: Asking, make: Callable[[Chunk], pa.RecordBatch], progress: Progress
) -> Iterator[pa.RecordBatch]:
    """What workers make of all rows; there must be some."""
    count = 0
    progress("scoring", 0, 0)
    with closing(source.mapped(asking.query(source), Worker(asking, make, source.name))) as batches:
        for batch in batches:
            if _FAULT in batch.schema.names:
                _explain(batch, source, asking)
            yield batch
            count += batch.num_rows
            progress("scoring", count, 0)
    check_rows(count, source)


def _fault(kind: str, message: str) -> pa.RecordBatch:
    return pa.record_batch({_FAULT: [kind], _MESSAGE: [message]})


def _explain(batch: pa.RecordBatch, source: Cluster, asking: Asking) -> None:
    """Raise here what a worker noticed."""
    kind, message = (batch.column(name)[0].as_py() for name in (_FAULT, _MESSAGE))
    if kind:
        raise getattr(errors, kind)(message)
    check_read(asking.reader, source)
    raise errors.SourceError(f"'{source.name}' changed while it was read. Start again.")
