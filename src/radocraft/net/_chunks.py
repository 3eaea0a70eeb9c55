"""A file as a stream of record batches, and back, to the bit.

One binary column, one value a batch: bytes of the file in order. The receiver
appends them to a file beside the target, counts, and gives the file its name
only when all have come and their SHA-256 is the announced one. What has come
stays when the connection breaks, so the next try goes on from there.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa

from radocraft.errors import FileError, NetworkError, Tampered

SCHEMA = pa.schema([pa.field("bytes", pa.binary(), nullable=False)])
CHUNK = 1 << 18  # small enough that what is written and hashed is still in the processor's cache
LARGEST = 64 * CHUNK  # bytes of a batch that is taken


class Busy(NetworkError):
    """Another stream of the same file is under way, or was until now; trying again may help."""


def cut(path: Path, offset: int = 0) -> Iterator[pa.RecordBatch]:
    """The bytes of a file from ``offset`` on, without reading more of it than is under way."""
    with pa.memory_map(str(path)) as file:
        file.seek(offset)
        while (piece := file.read_buffer(CHUNK)).size:
            ends = pa.py_buffer(np.array([0, piece.size], dtype=np.int32))
            yield pa.record_batch([pa.Array.from_buffers(pa.binary(), 1, [None, ends, piece])], schema=SCHEMA)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file."""
    return _digest_of(path).hexdigest()


def _digest_of(path: Path) -> hashlib._Hash:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256")


class Incoming:
    """A file that is coming in, of this size and hash."""

    def __init__(self, target: Path, size: int, sha256: str) -> None:
        self.target, self.size, self.sha256 = target, size, sha256
        self._digest: str | None = None

    @property
    def partial(self) -> Path:
        """Where its bytes are until all have come."""
        return self.target.with_name(f"{self.target.name}.{self.sha256[:12]}.partial")

    @property
    def offset(self) -> int:
        """How many bytes have come."""
        try:
            return self.partial.stat().st_size
        except FileNotFoundError:
            return 0

    def take(self, batches: Iterable[pa.RecordBatch], offset: int) -> Iterator[int]:
        """Append what comes, from the start if ``offset`` is 0; gives the number of bytes there after each batch."""
        with self._alone(offset) as file:
            have, digest = offset, _digest_of(self.partial)
            for batch in batches:
                piece = _bytes_of(batch)
                have += piece.size
                if have > self.size:
                    raise NetworkError("More bytes arrived than were announced.")
                with _disk(self.target):
                    _write_all(file.fileno(), piece)
                digest.update(piece)
                yield have
            with _disk(self.target):
                os.fsync(file.fileno())
        self._digest = digest.hexdigest()

    @contextmanager
    def _alone(self, offset: int) -> Iterator[IO[bytes]]:
        """The file so far, for this stream alone; what came of another file for the same target is thrown away."""
        for other in self.target.parent.glob(f"{self.target.name}.*.partial"):
            if other != self.partial:
                other.unlink(missing_ok=True)
        with _disk(self.target):
            file = self.partial.open("ab", buffering=0)
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Busy("This file is already arriving in another stream.") from error
            if offset == 0:
                file.truncate(0)
            if offset != self.offset:
                raise Busy(f"{self.offset:,} bytes are here, not {offset:,}. Ask how far it is, then go on.")
            yield file

    def verify(self) -> None:
        """Check that all has come; what does not match its hash is thrown away."""
        if self.offset != self.size:
            raise NetworkError(f"The stream ended after {self.offset:,} of {self.size:,} bytes.")
        if (self._digest or sha256_of(self.partial)) != self.sha256:
            self.partial.unlink()
            raise Tampered("The file does not match the announced hash. It was deleted; ask again.")

    def finish(self) -> None:
        """Give what was verified its name."""
        with _disk(self.target):
            os.replace(self.partial, self.target)


def _bytes_of(batch: pa.RecordBatch) -> pa.Buffer:
    if not batch.schema.equals(SCHEMA) or batch.num_rows != 1 or batch.nbytes > LARGEST:
        raise NetworkError("What came is not a piece of a file.")
    batch.validate(full=True)
    value = batch.column(0)[0].as_buffer()
    if value is None:
        raise NetworkError("What came is not a piece of a file.")
    return value


def _write_all(handle: int, piece: pa.Buffer) -> None:
    view = memoryview(piece)
    while view:
        view = view[os.write(handle, view) :]


@contextmanager
def _disk(target: Path) -> Iterator[None]:
    """Turns what the disk says into an error with the next step."""
    try:
        yield
    except OSError as error:
        raise FileError(
            f"Cannot write '{target}': {error.strerror or error}. What has arrived is kept; "
            "make room, then start again and it goes on from there."
        ) from error
