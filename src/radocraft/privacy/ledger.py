"""The ledger: every release of a peer's tables, kept for good.

A text file, one JSON object a line. Each line holds the hash of the one before
it and its own, so a changed, lost or inserted line shows. A line is on disk
(fsync) before what it speaks of may leave, and one process at a time writes: a
killed process may leave a spend without a release, never a release without a
spend. A last line cut short by a crash never led to a release; the next writer
removes it.

Kinds of lines: ``release`` (it left), ``proposal`` (it waits for review),
``approval`` and ``refusal`` (of a proposal, with name and reason). Under
differential privacy the budget is spent by the first two: noise once drawn is
spent, whether or not a person lets it go.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from radocraft.errors import FileError, PolicyRefusal, Tampered

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]

Entry = dict[str, Any]
FIRST = "0" * 64
_SLACK = 1e-12


@dataclass(frozen=True)
class Ledger:
    """The record of what left, in a file of the peer's own.

    Examples
    --------
    >>> import tempfile
    >>> ledger = Ledger(Path(tempfile.mkdtemp()) / "bank.ledger")
    >>> written = ledger.append({"kind": "release", "table": "customers", "rho": 0.1})
    >>> ledger.spent("customers"), len(ledger.entries())
    (0.1, 1)
    """

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))

    def entries(self) -> list[Entry]:
        """Every line, checked against the chain of hashes."""
        if not self.path.exists():
            return []
        with self._open() as file:
            return _checked(file, self.path)[0]

    def spent(self, table: str) -> float:
        """What releases and proposals of a table have spent, in zCDP."""
        return _spent(self.entries(), table)

    def append(
        self, entry: Entry, *, limit: float | None = None, check: Callable[[list[Entry]], None] | None = None
    ) -> Entry:
        """Add a line; it is on disk when this returns.

        Parameters
        ----------
        entry
            What to record. ``rho`` is what it spends of ``table``'s budget.
        limit
            The table's budget for life; a line that would overspend it is refused.
        check
            Called with all earlier lines while no other process can write;
            whatever it raises keeps the line out.
        """
        with self._open() as file:
            earlier, sound = _checked(file, self.path)
            if check is not None:
                check(earlier)
            if limit is not None:
                _check_budget(earlier, entry, limit)
            body = {
                "number": len(earlier),
                "time": datetime.now(UTC).isoformat(timespec="seconds"),
                **entry,
                "previous": earlier[-1]["hash"] if earlier else FIRST,
            }
            line = {**body, "hash": _hash(body)}
            file.seek(sound)
            file.truncate()
            file.write((json.dumps(line, ensure_ascii=False) + "\n").encode())
            file.flush()
            os.fsync(file.fileno())
            return line

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        """The file, for this process alone."""
        try:
            new = not self.path.exists()
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            if new:
                _sync_folder(self.path.parent)
        except OSError as error:
            raise FileError(
                f"Cannot open the ledger '{self.path}': {error.strerror}. Nothing leaves without it; "
                "check the path in the policy."
            ) from error
        with os.fdopen(handle, "r+b") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield file


def _checked(file: IO[bytes], path: Path) -> tuple[list[Entry], int]:
    """All lines, and where the last whole one ends."""
    file.seek(0)
    content = file.read()
    sound = content.rfind(b"\n") + 1
    entries: list[Entry] = []
    previous = FIRST
    for number, text in enumerate(content[:sound].splitlines()):
        try:
            entry = json.loads(text)
            body = {key: value for key, value in entry.items() if key != "hash"}
            whole = entry["hash"] == _hash(body) and entry["previous"] == previous and entry["number"] == number
        except (ValueError, KeyError, AttributeError, TypeError):
            whole = False
        if not whole:
            raise Tampered(
                f"Line {number + 1} of the ledger '{path}' was changed, or a line before it is gone. "
                "Nothing leaves until the file is put back from a copy; tell your data officer."
            )
        entries.append(entry)
        previous = entry["hash"]
    return entries, sound


def _hash(body: Entry) -> str:
    text = json.dumps(body, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _spent(entries: list[Entry], table: str) -> float:
    return sum(entry.get("rho") or 0.0 for entry in entries if entry.get("table") == table)


def _check_budget(earlier: list[Entry], entry: Entry, limit: float) -> None:
    spent, asked = _spent(earlier, entry["table"]), entry.get("rho") or 0.0
    if spent + asked > limit * (1 + _SLACK):
        raise PolicyRefusal(
            f"This release would overspend the lifetime budget of '{entry['table']}': {spent / limit:.0%} of it is "
            f"spent and the release asks for {asked / limit:.0%}. Ask for less (a smaller epsilon), or stop here."
        )


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
