"""Which rows are in a tally, so that none are added twice.

A tally remembers the pieces it was made of: files and data frames by their
content, tables of a database by name, each with its range of rows if only some
were read. The same content under another name is the same piece; a copy of the
rows in another form is not, and cannot be recognised.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from radocraft.errors import AlreadyIn

Bound = int | float | str

_WHOLE = 4 * 2**20
_CHUNK = 2**16
_CHUNKS = 64


@dataclass(frozen=True)
class Range:
    """The rows whose ``column`` is at least ``low`` and below ``high``.

    Examples
    --------
    >>> Range("day", "2026-01-01", "2026-01-02").meet(Range("day", "2026-01-02", "2026-01-03"))
    False
    """

    column: str
    low: Bound
    high: Bound

    def meet(self, other: Range) -> bool:
        """Whether a row may be in both; ranges of different columns may always meet."""
        if self.column != other.column or isinstance(self.low, str) != isinstance(other.low, str):
            return True
        return bool(self.low < other.high and other.low < self.high)  # type: ignore[operator]


@dataclass(frozen=True)
class Piece:
    """Some rows: their name for messages, what distinguishes them from others, and their range if not all were read."""

    name: str
    identity: str
    rows: Range | None = None

    def meets(self, other: Piece) -> bool:
        """Whether a row may be in both."""
        if self.identity != other.identity:
            return False
        return self.rows is None or other.rows is None or self.rows.meet(other.rows)

    def to_json(self) -> dict[str, Any]:
        """As a tally's header keeps it."""
        return asdict(self)

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Piece:
        """Back from a tally's header."""
        return cls(kept["name"], kept["identity"], Range(**kept["rows"]) if kept["rows"] else None)

    @classmethod
    def of_file(cls, path: Path) -> Piece:
        """A file by its size and content: all of a small one, evenly spaced pieces of a large one."""
        size = path.stat().st_size
        digest = hashlib.sha256(f"file {size}".encode())
        with path.open("rb") as file:
            if size <= _WHOLE:
                digest.update(file.read())
            else:
                for chunk in range(_CHUNKS):
                    file.seek(chunk * (size - _CHUNK) // (_CHUNKS - 1))
                    digest.update(file.read(_CHUNK))
        return cls(path.name, digest.hexdigest())

    @classmethod
    def of_table(cls, name: str, table: pa.Table) -> Piece:
        """A table in memory by its columns, its size and evenly spaced rows."""
        digest = hashlib.sha256(f"table {table.num_rows} {table.schema.names}".encode())
        step = max(1, table.num_rows // _CHUNKS)
        for start in range(0, table.num_rows, step):
            for row in table.slice(start, min(step, 8)).to_pylist():
                digest.update(repr(list(row.values())).encode())
        return cls(name, digest.hexdigest())

    @staticmethod
    def check_new(known: tuple[Piece, ...], coming: tuple[Piece, ...]) -> None:
        """Refuse rows that are in already, or come twice."""
        for index, piece in enumerate(coming):
            if any(piece.meets(other) for other in coming[:index]):
                raise AlreadyIn(
                    f"Rows of '{piece.name}' are given twice and would count twice. "
                    "Give every file once, and leave out empty ones."
                )
            if any(piece.meets(other) for other in known):
                raise AlreadyIn(
                    f"Rows of '{piece.name}' are already in the tally and would count twice. "
                    "Add only new files, or name the new rows by a range (--rows COLUMN LOW HIGH)."
                )
