"""A file that waits for a person: still at the peer, and not yet allowed to leave.

It holds what would leave, to the byte, and names the ledger and the proposal in
it. Everything else that a reviewer sees comes from that ledger, as it is now: a
pending file is of no use without it.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any, Literal

from pydantic import Field

from radocraft.contract import Record
from radocraft.errors import FileError, PolicyRefusal, RadocraftError
from radocraft.files import check_free, read_stored, writing
from radocraft.gate import epsilon_of
from radocraft.ledger import Budget, Decision, History, Leaving, Ledger, Verdict, What
from radocraft.parts import Part
from radocraft.peer._file_kinds import kind_of

_LONGEST, _LARGEST = 100_000, 2**40


class Note(Record):
    """What a pending file says beside what it holds."""

    format: Literal[2] = 2
    what: What
    ledger: str
    proposal: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


@dataclass(frozen=True)
class Pending:
    """What waits, and the proposal in the ledger.

    Parameters
    ----------
    note
        What the file says of itself.
    content
        The part, or the scores, as it would leave; a part can be looked at and not written.
    encoded
        Its file, to the byte.
    line
        The proposal.
    history
        The ledger's lines, as they are now.
    """

    note: Note
    content: Any
    encoded: bytes
    line: Leaving
    history: History

    @classmethod
    def read(cls, path: str | Path) -> Pending:
        """Read it; what was changed, or was never proposed to its ledger, is refused."""
        try:
            entries = read_stored(path, {"review.json": _LONGEST, "content": _LARGEST})
            note, encoded = Note.model_validate_json(entries["review.json"]), entries["content"]
        except (OSError, ValueError) as error:
            raise FileError(f"'{path}' is not a pending release. Craft it anew, or check the path.") from error
        file_kind = kind_of(note.what)
        content = file_kind.read(io.BytesIO(encoded), str(path))
        history = Ledger(Path(note.ledger)).history()
        line = history.proposed(note.proposal)
        if line is None or line.what != note.what or line.file != file_kind.describe(content).hash:
            raise PolicyRefusal("This release was never proposed to the ledger it names. Craft it anew.")
        if isinstance(content, Part):
            content = content.kept_back()
        return cls(note, content, encoded, line, history)

    @property
    def summary(self) -> str:
        """What is in the file, for a person."""
        return kind_of(self.note.what).describe(self.content).summary

    @property
    def noise(self) -> dict[str, str]:
        """How much noise there is and what that is worth, in words."""
        if self.line.limits is None or self.line.rho is None:
            return {"noise": "none: exact sums"}
        delta = self.line.limits.delta
        paid = self.line.rho == 0
        epsilon = "paid for already" if paid else f"{epsilon_of(self.line.rho, delta):.3g} at delta {delta:g}"
        asked = getattr(self.content, "metadata", {}).get("policy", {}).get("noise")
        amount = {} if asked is None else {"noise": f"at least {asked:g} times the sampling error of every number"}
        told = {"attacker": self.content.audit().sentence} if isinstance(self.content, Part) else {}
        return {**amount, "epsilon": epsilon, **told}

    @property
    def head(self) -> str:
        """The ledger's head before the proposal."""
        return self.history.before(self.note.proposal).head

    @property
    def before(self) -> Budget | None:
        """What had left of the table before the proposal; None where exact sums leave."""
        limits = self.line.limits
        return None if limits is None else Budget.of(self.history.before(self.note.proposal), self.line.table, limits)

    @property
    def after(self) -> Budget | None:
        """What has left of the table with it, and with all that came since."""
        limits = self.line.limits
        return None if limits is None else Budget.of(self.history, self.line.table, limits)

    @property
    def since(self) -> str:
        """What is different from the last release of the same table."""
        earlier = [*self.history.before(self.note.proposal).leaving(self.line.table)]
        left = [
            entry for entry in earlier if entry.what == self.line.what and self.history.stage_of(entry) == "released"
        ]
        if not left:
            return "nothing of this table has left before, as far as the ledger goes"
        last, line = left[-1], self.line
        if last.file == line.file:
            return "the same file has left already; it costs nothing"
        pairs = (("contract", last.contract, line.contract), ("guarantee", last.policy, line.policy))
        said = [f"the {name} was “{old}”" for name, old, new in pairs if old != new]
        if last.contract == line.contract and last.fingerprint != line.fingerprint:
            said.append("the contract has changed under the same name")
        numbers = f"sums over {last.rows:,} rows in {last.cells:,} cells then, over {line.rows:,} in {line.cells:,} now"
        return "; ".join([numbers, *said])

    def check_room(self, output: Path) -> None:
        """Refuse to write over another file than the one that waits."""
        if not kind_of(self.note.what).holds(output, self.line.file):
            check_free(output)

    def let_out(self, output: Path) -> None:
        """Write what was approved; refused until the ledger says that it was."""
        if Ledger(Path(self.note.ledger)).history().stage_of(self.line) != "released":
            raise PolicyRefusal("Nobody has approved this release. See it and decide: radocraft review.")
        with writing(output) as file:
            file.write(self.encoded)

    def decide(self, verdict: Verdict, name: str, reason: str) -> Decision:
        """Record a person's decision; after an approval the file may leave.

        An approval that was recorded and not carried out is found again.
        """
        decision = Decision(
            kind=verdict,
            what=self.note.what,
            table=self.line.table,
            file=self.line.file,
            proposal=self.note.proposal,
            name=name,
            reason=reason,
        )
        ledger = Ledger(Path(self.note.ledger))
        earlier = ledger.history().decision_on(self.note.proposal)
        if earlier is not None and earlier.kind == verdict == "approval":
            return earlier

        def check(history: History) -> None:
            if (decided := history.decision_on(self.note.proposal)) is not None:
                raise PolicyRefusal(
                    f"This release was decided on already ({decided.kind} by {decided.name}). "
                    "Craft anew for another decision."
                )

        ledger.append(decision, check)
        return decision


def write_pending(line: Leaving, ledger: Path, content: Path, sink: IO[bytes]) -> None:
    """Write a pending file, whose content is a file's, to an open file."""
    note = Note(what=line.what, ledger=str(ledger.resolve()), proposal=str(line.proposal))
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("review.json", note.model_dump_json(indent=1))
        archive.write(content, "content")


def holds_pending(path: Path, expected: str) -> bool:
    """Whether what waits there is the very file that the ledger means."""
    try:
        return Pending.read(path).line.file == expected
    except RadocraftError:
        return False


def pending_path(output: Path) -> Path:
    """Where a file that waits for review is put."""
    return output.with_name(output.name + ".pending")
