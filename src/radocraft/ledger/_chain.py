"""A file of lines that are added and never changed: the ledger, and the network's audit logs.

A text file, one JSON object a line. Each line holds the hash of the one before
it and its own, so a changed, lost or inserted line shows. A line is on disk
(fsync) when `Chain.append` returns, and one process at a time writes. A last
line cut short by a crash is removed by the next writer; one that lacks nothing
but its newline counts.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from radocraft.errors import FileError, Tampered

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]

Entry = dict[str, Any]
FIRST = "0" * 64


@dataclass(frozen=True)
class Chain:
    """Lines in a file of our own, each bound to the one before it.

    Parameters
    ----------
    path
        The file; it is made, for its owner alone, by the first who opens it.
    name, if_lost, if_changed
        What messages call the file, and what they say must be done.

    Examples
    --------
    >>> import tempfile
    >>> chain = Chain(Path(tempfile.mkdtemp()) / "audit")
    >>> first, second = chain.append({"kind": "request"}), chain.append({"kind": "answer"})
    >>> second["previous"] == first["hash"], len(chain.entries())
    (True, 2)
    """

    path: Path
    name: str = "audit log"
    if_lost: str = "Nothing is done without it; check the path."
    if_changed: str = "Nothing is done until the file is put back from a copy, or moved away to begin another."

    def entries(self) -> list[Entry]:
        """Every line, checked against the chain of hashes."""
        if not self.path.exists():
            return []
        with self._open() as file:
            return self._checked(file)[0]

    def append(self, entry: Entry, *, check: Callable[[list[Entry]], None] | None = None) -> Entry:
        """Add a line; it is on disk when this returns.

        ``check`` is called with all earlier lines while no other process can
        write; whatever it raises keeps the line out.
        """
        with self._open() as file:
            earlier, sound = self._checked(file)
            if check is not None:
                check(earlier)
            body = {
                "number": len(earlier),
                "time": datetime.now(UTC).isoformat(timespec="seconds"),
                **entry,
                "previous": earlier[-1]["hash"] if earlier else FIRST,
            }
            line = {**body, "hash": _hash(body)}
            self._write(file, sound, (json.dumps(line, ensure_ascii=False) + "\n").encode())
            return line

    def _write(self, file: IO[bytes], sound: int, line: bytes) -> None:
        """Put a line after the last whole one, or nothing at all."""
        handle = file.fileno()
        try:
            os.ftruncate(handle, sound)
            start = b"" if sound == 0 or os.pread(handle, 1, sound - 1) == b"\n" else b"\n"
            left, place = start + line, sound
            while left:
                written = os.pwrite(handle, left, place)
                left, place = left[written:], place + written
            os.fsync(handle)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(handle, sound)
            raise FileError(f"Cannot write the {self.name} '{self.path}': {error.strerror}. {self.if_lost}") from error

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        """The file, for this process alone."""
        try:
            new = not self.path.exists()
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            if new:
                _sync_folder(self.path.parent)
        except OSError as error:
            raise FileError(f"Cannot open the {self.name} '{self.path}': {error.strerror}. {self.if_lost}") from error
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise FileError(f"The {self.name} '{self.path}' is not a file, so it keeps nothing. Name a file.")
        with os.fdopen(handle, "r+b") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield file

    def _checked(self, file: IO[bytes]) -> tuple[list[Entry], int]:
        """All lines, and where the last whole one ends."""
        file.seek(0)
        content = file.read()
        *texts, last = content.split(b"\n")
        sound = len(content) - len(last)
        if last and _parsed(last) is not None:
            texts, sound = [*texts, last], len(content)
        entries: list[Entry] = []
        previous = FIRST
        for number, text in enumerate(texts):
            entry = _parsed(text)
            if entry is None or not _follows(entry, number, previous):
                raise Tampered(
                    f"Line {number + 1} of the {self.name} '{self.path}' was changed, or a line before it is gone. "
                    f"{self.if_changed}"
                )
            entries.append(entry)
            previous = entry["hash"]
        return entries, sound


def _parsed(text: bytes) -> Entry | None:
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _follows(entry: Entry, number: int, previous: str) -> bool:
    """Whether a line is whole and stands in its place."""
    body = {key: value for key, value in entry.items() if key != "hash"}
    return (entry.get("number"), entry.get("previous"), entry.get("hash")) == (number, previous, _hash(body))


def _hash(body: Entry) -> str:
    text = json.dumps(body, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
