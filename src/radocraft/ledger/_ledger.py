"""The ledger's file: every release of a peer's tables, kept for good.

A chain of lines (see `radocraft.chain`). A line is on disk before what it speaks
of may leave: a killed process may leave a spend without a release, never a
release without a spend. Beside the ledger, in ``LEDGER.parts``, is a copy of
every file it knows of, so that the same release can be given again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

from pydantic import TypeAdapter, ValidationError

from radocraft.errors import FileError, Tampered
from radocraft.files import writing
from radocraft.gate import Spend
from radocraft.ledger._budget import check_budget
from radocraft.ledger._chain import Chain
from radocraft.ledger._chain import Entry as Raw
from radocraft.ledger._history import History
from radocraft.ledger._lines import Decision, Entry, Leaving, Line, What, Withheld

_ENTRY: TypeAdapter[Leaving | Withheld | Decision] = TypeAdapter(Entry)
_PLACE = ("number", "time", "previous", "hash")
_SUFFIX: dict[What, str] = {"part": ".parquet", "scores": ".json"}


@dataclass(frozen=True)
class Ledger:
    """The record of what left, in a file of the peer's own.

    Examples
    --------
    >>> import tempfile
    >>> ledger = Ledger(Path(tempfile.mkdtemp()) / "bank.ledger")
    >>> written = ledger.append(Leaving(kind="release", what="part", table="customers", peer="bank", contract="risk",
    ...     fingerprint="f" * 64, rows=900, cells=12, policy="noise", rho=0.5, file="a" * 64))
    >>> ledger.spent("customers").rho, len(ledger.lines())
    (0.5, 1)
    """

    path: Path

    @property
    def _chain(self) -> Chain:
        return Chain(
            Path(self.path),
            "ledger",
            "Nothing leaves without it; check the path in the policy.",
            "Nothing leaves until the file is put back from a copy; tell your data officer.",
        )

    def lines(self) -> list[Line]:
        """Every line, checked against the chain of hashes; a ledger that is not there has none."""
        return [*self.history().lines]

    def history(self) -> History:
        """All lines together."""
        return self._history(self._chain.entries())

    def spent(self, table: str) -> Spend:
        """What releases and proposals of a table have spent."""
        return self.history().spent(table)

    def copy_of(self, what: What, file: str) -> Path:
        """Where the copy of a file is kept."""
        path = Path(self.path)
        return path.with_name(path.name + ".parts") / (file + _SUFFIX[what])

    @contextmanager
    def keeping(self, what: What, file: str) -> Iterator[IO[bytes]]:
        """Open that copy to write it, whole or not at all, for its owner alone."""
        copy = self.copy_of(what, file)
        try:
            copy.parent.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise FileError(
                f"Cannot make the folder '{copy.parent}': {error.strerror}. Nothing leaves without it."
            ) from error
        with writing(copy, private=True) as sink:
            yield sink

    def lets_out(self, file: str) -> bool:
        """Whether a line says that a file may leave."""
        history = self.history()
        entry = history.of_file(file)
        return entry is not None and history.stage_of(entry) == "released"

    def append(self, entry: Leaving | Withheld | Decision, check: Callable[[History], None] | None = None) -> Line:
        """Add a line; it is on disk when this returns.

        Parameters
        ----------
        entry
            What to record. What exceeds the table's budget for life is refused.
        check
            Called with all earlier lines while no other process can write;
            whatever it raises keeps the line out.
        """

        def both(earlier: list[Raw]) -> None:
            history = self._history(earlier)
            if check is not None:
                check(history)
            if not isinstance(entry, Decision):
                check_budget(history, entry)

        return self._line(self._chain.append(entry.model_dump(mode="json", exclude_defaults=True), check=both))

    def _history(self, entries: list[Raw]) -> History:
        return History(tuple(map(self._line, entries)))

    def _line(self, raw: Raw) -> Line:
        try:
            entry = _ENTRY.validate_python({key: value for key, value in raw.items() if key not in _PLACE})
            return Line(raw["number"], datetime.fromisoformat(raw["time"]), raw["hash"], entry)
        except (ValidationError, KeyError, ValueError, TypeError) as error:
            raise Tampered(
                f"Line {raw.get('number', 0) + 1} of the ledger '{self.path}' is none that this version of radocraft "
                "writes: it was changed, or another version wrote it. Nothing leaves until the file is put back from "
                "a copy, or moved away to begin another; tell your data officer."
            ) from error
