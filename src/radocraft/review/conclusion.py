"""Carrying out a decision: into the ledger first, then what waited leaves or does not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from radocraft.errors import FileError
from radocraft.privacy.pending import Pending
from radocraft.storage import check_place
from radocraft.telling import WaitingScores

Verdict = Literal["approval", "refusal"]


@dataclass(frozen=True)
class Conclusion:
    """What was decided, by whom, and the part that was written; None if it was refused."""

    verdict: Verdict
    name: str
    part: Path | None

    def told(self) -> dict[str, Any]:
        """The conclusion for machines."""
        return {"decision": self.verdict, "name": self.name, "part": str(self.part) if self.part else None}


def conclude(pending: Path, verdict: Verdict, name: str, reason: str, output: Path | None = None) -> Conclusion:
    """Decide on a pending release.

    Parameters
    ----------
    pending
        The file that waits; it is removed once the decision is carried out.
    verdict
        "approval" lets the part leave, "refusal" keeps it back for good.
    name, reason
        Who decides and why; both go into the ledger.
    output
        Where to write an approved part; the pending file's name without ``.pending`` if None.
    """
    target = destination(pending, output)
    waiting = read_waiting(pending)
    if verdict == "approval":
        check_place(target)
    waiting.decide(verdict, name, reason)
    if verdict == "approval":
        waiting.let_out(target)
    pending.unlink()
    return Conclusion(verdict, name, target if verdict == "approval" else None)


def read_waiting(pending: Path) -> Pending | WaitingScores:
    """What waits in a file: a part, or counts of scores."""
    try:
        with pending.open("rb") as file:
            counts = file.read(1) == b"{"
    except OSError as error:
        raise FileError(f"Cannot read '{pending}': {error.strerror}. Check the path.") from error
    return WaitingScores.read(pending) if counts else Pending.read(pending)


def destination(pending: Path, output: Path | None) -> Path:
    """Where an approved part goes."""
    target = output or Path(str(pending).removesuffix(".pending"))
    if target == pending:
        raise FileError(f"'{pending}' does not end in .pending, so the part needs a name. Say where: --output FILE.")
    return target
