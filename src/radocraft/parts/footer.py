"""The outside of a part file: whether it is one, and how much it would unpack to, before anything is unpacked.

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
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from radocraft.errors import FileError

KEY = b"radocraft"
WORDS = ("shared:", "label")
_TYPES = {"sum:": pa.float64(), "shared-sum:": pa.float64(), "present:": pa.int64(), "rows": pa.int64()}
_ENCODINGS = {"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY", "BIT_PACKED"}
_FREE, _TIMES = 2**28, 100  # a part of n bytes may unpack to 256 MB + 100 n
_METADATA = 100_000_000
_COLUMNS = 50_000
_HEADER = 1024
_DEPTH = 8
_UNREADABLE = (
    *(OSError, pa.ArrowException, ValueError, TypeError, KeyError, IndexError, RuntimeError),
    *(OverflowError, MemoryError, AssertionError),
)


@contextmanager
def opened(path: str | Path | IO[bytes], name: str) -> Iterator[pq.ParquetFile]:
    """The file, its outside checked; whatever goes wrong while it is open is an error of ours."""
    source = _regular_file(path, name) if isinstance(path, str | Path) else path
    try:
        size = source.seek(0, os.SEEK_END)
        limits = {"thrift_string_size_limit": _METADATA, "thrift_container_size_limit": 50 * _COLUMNS}
        with pq.ParquetFile(source, pre_buffer=False, **limits) as file:
            metadata = file.metadata
            _check_columns(file, name)
            _check_sizes(metadata, source, size, name)
        words = [column for column in file.schema_arrow.names if column.startswith(WORDS)]
        with pq.ParquetFile(source, metadata=metadata, read_dictionary=words, pre_buffer=False) as file:
            yield file
    except _UNREADABLE as error:
        raise FileError(
            f"'{name}' is not a readable part: it is cut short or something else. Ask the peer for it again."
        ) from error
    finally:
        if source is not path:
            source.close()


def refused(name: str, why: str) -> FileError:
    """The error for a part that nobody's radocraft has written."""
    return FileError(
        f"'{name}' is refused: {why}. No part that radocraft writes is like that. Ask the peer for it again."
    )


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


def _check_columns(file: pq.ParquetFile, name: str) -> None:
    """Every column once, flat, and of its type."""
    found = {*(file.metadata.metadata or {})}
    if KEY not in found:
        raise FileError(f"'{name}' is not a readable part: it is another Parquet file. Check the path.")
    if found != {KEY}:
        raise refused(name, "it has further metadata")
    schema = file.schema_arrow
    if len({*schema.names}) < len(schema.names) or len(schema.names) > _COLUMNS:
        raise refused(name, "a column is there twice, or there are far too many")
    if len(schema.names) != file.metadata.num_columns:
        raise refused(name, "a column is nested")
    for column, kind in zip(schema.names, schema.types, strict=True):
        wanted = pa.string() if column.startswith(WORDS) else _wanted(column)
        if kind != wanted:
            raise refused(name, f"it has a column of another name or type than a part's ({kind})")


def _wanted(column: str) -> pa.DataType | None:
    kinds = (kind for start, kind in _TYPES.items() if column == start or (":" in start and column.startswith(start)))
    return next(kinds, None)


def _check_sizes(metadata: pq.FileMetaData, source: Any, size: int, name: str) -> None:
    """No more rows, row groups, pages and unpacked bytes than a part of this size can need."""
    rows, groups = metadata.num_rows, metadata.num_row_groups
    if not rows or not metadata.num_columns:
        raise refused(name, "it has no cells")
    if not 0 < groups <= 1 + rows // 50_000:
        raise refused(name, "it is cut into far too many pieces")
    allowed = _FREE + _TIMES * size
    needed = 8 * rows * metadata.num_columns
    if rows < 0 or needed > allowed:
        raise refused(name, f"its {size:,} bytes would unpack to {needed:,}")
    counted = 0
    for group in map(metadata.row_group, range(groups)):
        counted += group.num_rows
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.compression != "ZSTD" or not {*chunk.encodings} <= _ENCODINGS:
                raise refused(name, "it is packed in another way")
            if chunk.num_values != group.num_rows or chunk.total_compressed_size > size:
                raise refused(name, "the sizes in its footer contradict each other")
            needed += _unpacked(source, chunk, name)
            if needed > allowed:
                raise refused(name, f"its {size:,} bytes would unpack to {needed:,}")
    if counted != rows:
        raise refused(name, "the sizes in its footer contradict each other")


def _unpacked(source: Any, chunk: pq.ColumnChunkMetaData, name: str) -> int:
    """To how many bytes a column's pages unpack, as they say themselves; Arrow believes them."""
    at, packed, out = chunk.data_page_offset, chunk.total_compressed_size, 0
    if chunk.has_dictionary_page and chunk.dictionary_page_offset and chunk.dictionary_page_offset < at:
        at = chunk.dictionary_page_offset
    end = at + packed
    for _ in range(16 + chunk.num_values // 1000):
        if at >= end:
            break
        source.seek(at)
        length, compressed, unpacked = _page(source.read(_HEADER))
        at += length + compressed
        out += length + unpacked
    if at != end:
        raise refused(name, "its pages and its footer contradict each other")
    return out


def _page(header: bytes) -> tuple[int, int, int]:
    """Length of a page's header, and the page's bytes packed and unpacked (Thrift's compact protocol)."""
    thrift = _Thrift(header)
    fields = thrift.struct()
    unpacked, packed = fields[2], fields[3]
    if unpacked is None or packed is None or min(unpacked, packed) < 0:
        raise ValueError("a page without its size")
    return thrift.at, packed, unpacked


class _Thrift:
    """Reads just enough of Thrift's compact protocol to walk over a page's header."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def varint(self) -> int:
        out = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            out |= (byte & 0x7F) << shift
            if byte < 0x80:
                return out
        raise ValueError("a number too long")

    def struct(self, depth: int = 0) -> dict[int, int | None]:
        """Fields by number; those that are no whole numbers are walked over."""
        fields: dict[int, int | None] = {}
        number = 0
        while byte := self.byte():
            if byte < 0x10:
                raise ValueError("fields in a strange order")
            number += byte >> 4
            fields[number] = self.value(byte & 0x0F, depth)
        return fields

    def value(self, kind: int, depth: int) -> int | None:
        """One value of a kind."""
        if depth > _DEPTH:
            raise ValueError("too deep")
        if kind in (4, 5, 6):
            number = self.varint()
            return (number >> 1) ^ -(number & 1)
        if kind == 12:
            self.struct(depth + 1)
        elif kind not in (1, 2):
            length = {3: 1, 7: 8}[kind] if kind != 8 else self.varint()
            self.at += length
        return None
