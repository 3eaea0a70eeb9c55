"""Carrying out a person's decision: into the ledger first, then what waited leaves or does not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from radocraft.errors import FileError
from radocraft.files import check_place
from radocraft.ledger import Verdict
from radocraft.peer._pending import Pending


@dataclass(frozen=True)
class Conclusion:
    """What was decided, by whom, and the file that was written; None if it was refused."""

    verdict: Verdict
    name: str
    part: Path | None

    def as_dict(self) -> dict[str, str | None]:
        """The conclusion for machines."""
        return {"decision": self.verdict, "name": self.name, "part": str(self.part) if self.part else None}


def conclude(
    pending: Path, verdict: Verdict, name: str, reason: str, output: Path | None = None, *, replace: bool = True
) -> Conclusion:
    """Decide on a pending release.

    Parameters
    ----------
    pending
        The file that waits; it is removed once the decision is carried out.
    verdict
        "approval" lets the file leave, "refusal" keeps it back for good.
    name, reason
        Who decides and why; both go into the ledger.
    output
        Where to write an approved file; the pending file's name without ``.pending`` if None.
    replace
        Whether another file may be written over there.
    """
    target = destination(pending, output)
    waiting = Pending.read(pending)
    if verdict == "approval":
        check_place(target)
        if not replace:
            waiting.check_room(target)
    decision = waiting.decide(verdict, name, reason)
    if verdict == "approval":
        waiting.let_out(target)
    pending.unlink()
    return Conclusion(verdict, decision.name, target if verdict == "approval" else None)


def destination(pending: Path, output: Path | None) -> Path:
    """Where an approved file goes."""
    target = output or Path(str(pending).removesuffix(".pending"))
    if target == pending:
        raise FileError(f"'{pending}' does not end in .pending, so the part needs a name. Say where: --output FILE.")
    return target
