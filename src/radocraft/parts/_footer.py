"""A part file from outside: whether it is one, and how large it would be, before anything is unpacked.

Parquet lets 0.8 MB stand for gigabytes, by long runs and by compression. How many
rows and bytes there are stands in the footer, how many bytes a page unpacks to
before the page; both are added up first, and what a part of this size cannot need
is refused.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from radocraft.errors import FileError
from radocraft.parts._thrift import Struct, Thrift, Value, items, numbers

KEY = b"radocraft"
WORDS = ("shared:", "label")
_TYPES = {"sum:": pa.float64(), "shared-sum:": pa.float64(), "present:": pa.int64(), "rows": pa.int64()}
_MAGIC = b"PAR1"
_ZSTD = 6
_ENCODINGS = {0, 2, 3, 4, 8}  # plain, dictionary (old and new), runs, packed bits
_FREE, _TIMES = 2**28, 100  # a part of n bytes may unpack to 256 MB + 100 n
_METADATA = 100_000_000
_COLUMNS = 50_000
_VALUES = 5_000_000
_HEADER = 1024
_UNREADABLE = (
    *(OSError, pa.ArrowException, ValueError, TypeError, KeyError, IndexError, RuntimeError),
    *(OverflowError, MemoryError, AssertionError),
)


@dataclass(frozen=True)
class Opened:
    """A part file whose outside is sound: the table, and the JSON text beside it."""

    file: pq.ParquetFile
    text: bytes


@contextmanager
def opened(path: str | Path | IO[bytes], name: str) -> Iterator[Opened]:
    """The file, its outside checked; whatever goes wrong while it is open is an error of ours."""
    source = _regular_file(path, name) if isinstance(path, str | Path) else path
    try:
        size = source.seek(0, os.SEEK_END)
        footer = _footer(source, size)
        text = _text(footer, name)
        _check_sizes(footer, source, size, name)
        limits = {"thrift_string_size_limit": _METADATA, "thrift_container_size_limit": _VALUES, "pre_buffer": False}
        with pq.ParquetFile(source, **limits) as file:
            words = _check_columns(file, name)
        with pq.ParquetFile(source, read_dictionary=words, **limits) as file:
            yield Opened(file, text)
    except _UNREADABLE as error:
        raise FileError(
            f"'{name}' is not a readable part: it is truncated, or another kind of file. Ask the peer for it again."
        ) from error
    finally:
        if source is not path:
            source.close()


def refused(name: str, why: str) -> FileError:
    """The error for a part that nobody's radocraft has written."""
    return FileError(f"'{name}' is refused: {why}. radocraft never writes such a part. Ask the peer for it again.")


def _regular_file(path: str | Path, name: str) -> IO[bytes]:
    """The open file; a pipe or a device, which could keep us waiting for ever, is refused."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise FileError(f"Cannot read the part '{name}': {why}. Check the path.") from error
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        why = "it is a folder" if stat.S_ISDIR(mode) else "it is a pipe or a device, not a file"
        raise FileError(f"Cannot read the part '{name}': {why}. Check the path.")
    return os.fdopen(handle, "rb")


def _footer(source: IO[bytes], size: int) -> Struct:
    """Parquet's FileMetaData by field number: 2 schema, 3 rows, 4 row groups, 5 metadata."""
    source.seek(0)
    first = source.read(4)
    source.seek(max(0, size - 8))
    end = source.read(8)
    length = int.from_bytes(end[:4], "little")
    if first != _MAGIC or end[4:] != _MAGIC or not 0 < length <= min(size - 12, 2 * _METADATA):
        raise ValueError("not Parquet")
    source.seek(size - 8 - length)
    thrift = Thrift(source.read(length), most=_VALUES)
    footer = thrift.struct()
    if thrift.at != length:
        raise ValueError("more than a footer")
    return footer


def _text(footer: Struct, name: str) -> bytes:
    """The value under our key, which must be the only one: others change how Arrow reads."""
    pairs = items(footer, 5) if 5 in footer else []
    if KEY not in [pair.get(1) for pair in pairs if isinstance(pair, dict)]:
        raise FileError(f"'{name}' is not a readable part: it is another Parquet file. Check the path.")
    if len(pairs) > 1:
        raise refused(name, "it has further metadata")
    text = pairs[0].get(2) if isinstance(pairs[0], dict) else None
    if not isinstance(text, bytes) or len(text) > _METADATA:
        raise refused(name, "its metadata is not text, or far too large")
    return text


def _check_sizes(footer: Struct, source: IO[bytes], size: int, name: str) -> None:
    """No more rows, row groups, pages and unpacked bytes than a part of this size can need."""
    (rows,), groups, columns = numbers(footer, 3), items(footer, 4), len(items(footer, 2)) - 1
    if not rows or columns < 1:
        raise refused(name, "it has no cells")
    if columns > _COLUMNS or not 0 < len(groups) <= 1 + rows // 50_000:
        raise refused(name, "it has far too many columns, or is cut into far too many pieces")
    allowed, needed, counted = _FREE + _TIMES * size, 8 * rows * columns, 0
    if needed > allowed:
        raise refused(name, f"its {size:,} bytes would unpack to {needed:,}")
    for group in groups:
        (inside,), chunks = numbers(group, 3), items(group, 1)
        if len(chunks) != columns:
            raise refused(name, "a column is nested")
        counted += inside
        for chunk in chunks:
            needed += _unpacked(source, chunk, inside, name)
            if needed > allowed:
                raise refused(name, f"its {size:,} bytes would unpack to {needed:,}")
    if counted != rows:
        raise refused(name, "the sizes in its footer contradict each other")


def _unpacked(source: IO[bytes], chunk: Value, rows: int, name: str) -> int:
    """To how many bytes a column's pages unpack, as they say themselves: Arrow believes them."""
    if not isinstance(chunk, dict) or 1 in chunk or not isinstance(column := chunk.get(3), dict):
        raise refused(name, "a column is in another file")
    codec, values, packed, start = numbers(column, 4, 5, 7, 9)
    if codec != _ZSTD or any(encoding not in _ENCODINGS for encoding in items(column, 2)):
        raise refused(name, "it uses another compression")
    if values != rows:
        raise refused(name, "the sizes in its footer contradict each other")
    (words,) = numbers(column, 11) if 11 in column else (0,)
    start = words if 0 < words < start else start
    end, out = start + packed, 0
    for _ in range(16 + rows // 1000):
        if start >= end:
            break
        source.seek(start)
        thrift = Thrift(source.read(_HEADER))
        unpacked, compressed = numbers(thrift.struct(), 2, 3)
        start += thrift.at + compressed
        out += thrift.at + unpacked
    if start != end:
        raise refused(name, "its pages and its footer contradict each other")
    return out


def _check_columns(file: pq.ParquetFile, name: str) -> list[str]:
    """Every column once, flat, and of its type; gives those that hold words."""
    schema = file.schema_arrow
    if len({*schema.names}) < len(schema.names):
        raise refused(name, "a column is there twice")
    for column, kind in zip(schema.names, schema.types, strict=True):
        if kind != (pa.string() if column.startswith(WORDS) else _wanted(column)):
            raise refused(name, f"it has a column of another name or type than a part's ({kind})")
    return [column for column in schema.names if column.startswith(WORDS)]


def _wanted(column: str) -> pa.DataType | None:
    kinds = (kind for start, kind in _TYPES.items() if column == start or (":" in start and column.startswith(start)))
    return next(kinds, None)
