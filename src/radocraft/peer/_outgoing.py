"""The kinds of files that leave a peer, and all that the road needs to know of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Generic, TypeVar

from radocraft.errors import RadocraftError, Tampered
from radocraft.gate import Spend
from radocraft.ledger import Ledger, What

Content = TypeVar("Content")


@dataclass(frozen=True)
class Facts:
    """What the ledger says of a file.

    Parameters
    ----------
    hash
        By which the file is known.
    rows, cells
        How much is in it, as the file itself states it.
    guarantee
        What the policy promises, in words.
    summary
        What is in it, for a person.
    """

    hash: str
    rows: int
    cells: int
    guarantee: str
    summary: str


@dataclass(frozen=True)
class FileKind(Generic[Content]):
    """How one kind of file is written, read back and described.

    Parameters
    ----------
    what
        The ledger's word for it.
    read
        Reads it from an open file, called by a name in messages, and checks it.
    stream
        Writes its bytes to an open file, if they may leave.
    keep
        Puts a copy into a ledger's own folder.
    describe
        What the ledger says of it.
    """

    what: What
    read: Callable[[IO[bytes], str], Content]
    stream: Callable[[Content, IO[bytes]], None]
    keep: Callable[[Content, Ledger], None]
    describe: Callable[[Content], Facts]

    def load(self, path: Path, name: str | None = None) -> Content:
        """Read a file of this kind."""
        with path.open("rb") as file:
            return self.read(file, name or str(path))

    def holds(self, path: Path, expected: str) -> bool:
        """Whether a file is there, and is the very one that the ledger means."""
        try:
            return path.is_file() and self.describe(self.load(path)).hash == expected
        except (RadocraftError, OSError):
            return False

    def load_as(self, path: Path, expected: str) -> Content:
        """Read a file back, if it is the very one that the ledger means."""
        content = self.load(path)
        if self.describe(content).hash != expected:
            raise Tampered(f"'{path}' is not the file that the ledger speaks of. Put it back from a copy.")
        return content


@dataclass(frozen=True)
class Drawn(Generic[Content]):
    """A file as the gate let it through, with noise in it, and what that cost."""

    content: Content
    spend: Spend
    constants: dict[str, tuple[float, ...]] = field(default_factory=dict)
