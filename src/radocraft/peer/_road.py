"""The one road out of a peer, for whatever leaves.

In an order that a crash cannot break: noise is drawn, a copy is kept beside the
ledger, the file is written under a name of no meaning, the ledger is told, and
only then the file gets its own name. So nothing leaves without a line, and what
has a line can always be given again from the copy. The same release of an
unchanged table *is* given again, and costs nothing: noise cannot be averaged
away by asking often.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from radocraft.contract import Contract
from radocraft.errors import AwaitsReview, FileError, PolicyRefusal, RadocraftError
from radocraft.files import check_apart, check_free, check_place, flush, writing
from radocraft.gate import Policy, Spend
from radocraft.ledger import History, Leaving, Ledger, Limits, Stage, Withheld
from radocraft.peer._outgoing import Drawn, FileKind
from radocraft.peer._pending import holds_pending, pending_path, write_pending

log = logging.getLogger("radocraft")
Say = Callable[[str], None]
Content = TypeVar("Content")
AGAIN = "The same release of an unchanged table: given again, nothing spent."


def unchanged(content: Content) -> Content:
    """The file as it is."""
    return content


class _Overtaken(RadocraftError):
    """Another process made the same release in the meantime, or chose the table's units."""


class UnitsChosen(RadocraftError):
    """Another process chose the table's units in the meantime: craft again, in those."""


@dataclass(frozen=True)
class Errand(Generic[Content]):
    """What is to leave, before any noise is drawn.

    Parameters
    ----------
    file_kind
        What kind of file it is.
    contract, peer, policy
        What was agreed, whose file it is, and by whose rules it leaves.
    table
        What the ledger calls the table.
    output
        Where to write the file.
    job
        The request it answers, if it came over the network.
    say
        Called with what the user should know.
    finish
        Done to the file last, such as signing it; it changes nothing that its hash covers.
    sets_units
        Whether it is the first of its table, and its units were estimated for it.
    replace
        Whether another file may be written over at the output; the same release may be written onto itself always.
    """

    file_kind: FileKind[Content]
    contract: Contract
    peer: str
    policy: Policy
    table: str
    output: Path
    job: str | None = None
    say: Say = log.warning
    finish: Callable[[Content], Content] = unchanged
    sets_units: bool = False
    replace: bool = True

    def overtaken(self, history: History) -> bool:
        """Whether it would have been the first of its table, and is not."""
        known = history.constants(self.table, self.peer, self.contract.fingerprint)
        return self.sets_units and known is not None

    @property
    def ledger(self) -> Path | None:
        """Where it is recorded; beside the output if the policy names no place."""
        if self.policy.ledger is not None:
            return Path(self.policy.ledger)
        if not (self.policy.noisy or self.policy.review):
            return None
        if is_stream(self.output):
            raise FileError(
                f"'{self.output}' is no file, so there is no place beside it for a ledger. "
                'Add ledger = "FILE" to the policy.'
            )
        return self.output.resolve().parent / (re.sub(r"[^\w.-]", "_", self.peer) + ".ledger")

    def check(self) -> None:
        """Refuse places where nothing can be written; asked before long work."""
        check_place(self.output)
        if self.policy.review and is_stream(self.output):
            raise FileError(f"'{self.output}' is no file, and what waits for review needs one. Name a file.")
        if self.ledger is not None:
            check_place(self.ledger)
            check_apart([self.output, self.ledger])
        if not self.replace and self.output.is_file() and self._before() is None:
            check_free(self.output)

    def _before(self) -> Content | None:
        """What is at the output already, if this peer made it under this contract."""
        try:
            content = self.file_kind.load(self.output)
        except (RadocraftError, OSError):
            return None
        return content if getattr(content, "peer", None) == self.peer else None

    def check_room(self, stage: Stage | None = None, file: str | None = None) -> None:
        """Refuse to write over another file than the one that the ledger knows; so far nothing was spent."""
        waits = self.policy.review and stage != "released"
        place = pending_path(self.output) if waits else self.output
        if self.replace or not place.is_file():
            return
        if file is None or not (holds_pending(place, file) if waits else self.file_kind.holds(place, file)):
            check_free(place)

    def digest(self, exact: str) -> str:
        """Of all that makes the release what it is, but for the noise."""
        whole = [self.file_kind.what, exact, self.contract.fingerprint, self.peer, self.policy.numbers]
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()

    def entry(self, drawn: Drawn[Content]) -> Leaving:
        """The ledger's line."""
        facts, policy = self.file_kind.describe(drawn.content), self.policy
        return Leaving(
            kind="proposal" if policy.review else "release",
            what=self.file_kind.what,
            table=self.table,
            peer=self.peer,
            contract=self.contract.name,
            fingerprint=self.contract.fingerprint,
            rows=facts.rows,
            cells=facts.cells,
            policy=facts.guarantee,
            rho=drawn.spend.rho if policy.noisy else None,
            delta=drawn.spend.delta if policy.noisy else 0.0,
            limits=self.limits if policy.noisy else None,
            file=facts.hash,
            proposal=secrets.token_hex(32) if policy.review else None,
            job=self.job,
            constants=drawn.constants,
        )

    @property
    def limits(self) -> Limits:
        """What may leave of the table in its life."""
        policy = self.policy
        releases = policy.lifetime_releases if policy.lifetime_epsilon is None else None
        return Limits(delta=policy.delta, epsilon=policy.lifetime_epsilon, releases=releases)

    def withheld(self, reason: str, spend: Spend, digest: str) -> Withheld:
        """The ledger's line where noise said that there is too little."""
        return Withheld(
            kind="withheld",
            what=self.file_kind.what,
            table=self.table,
            peer=self.peer,
            contract=self.contract.name,
            fingerprint=self.contract.fingerprint,
            rho=spend.rho,
            delta=spend.delta,
            limits=self.limits,
            job=self.job,
            reason=reason,
        ).marked(digest)

    def awaits(self, content: Content) -> AwaitsReview:
        """What is raised where a person has to decide."""
        pending = pending_path(self.output)
        return AwaitsReview(
            f"Nothing has left. '{pending}' waits for review: {self.file_kind.describe(content).summary}. "
            f"See it and decide: radocraft review {pending}",
            pending,
        )


def nothing() -> None:
    """What is done where nothing is to be done."""


def send(
    errand: Errand[Content],
    exact: str,
    draw: Callable[[Ledger | None], Drawn[Content]],
    keep: Callable[[], None] = nothing,
) -> Content:
    """Let a file leave, or wait for a person, once the ledger knows.

    Parameters
    ----------
    errand
        What is to leave.
    exact
        A digest of the exact numbers behind it; it is kept nowhere.
    draw
        Makes the file, given the ledger: the gate's work, noise and all.
    keep
        Called when nothing stands in the file's way any more, and before it leaves.
    """
    errand.check()
    if errand.ledger is None:
        errand.check_room()
        keep()
        content = errand.finish(draw(None).content)
        with writing(errand.output) as file:
            errand.file_kind.stream(content, file)
        return content
    ledger, digest = Ledger(errand.ledger), errand.digest(exact)
    _check_begun(errand, ledger.history())
    while True:
        history = ledger.history()
        if errand.overtaken(history):
            raise UnitsChosen("Another process chose the table's units in the meantime. Craft again.")
        known = history.same(digest) if errand.policy.noisy else None
        if known is not None and (kept := _kept(errand, ledger, known)) is not None:
            errand.check_room(history.stage_of(known), known.file)
            keep()
            return _send_again(errand, ledger, history.stage_of(known), known, kept)
        if (refused := history.refused(digest)) is not None:
            raise PolicyRefusal(f"{refused.reason} The table is as it was then, so no other noise is drawn.")
        errand.check_room()
        keep()
        try:
            drawn = draw(ledger)
            drawn = replace(drawn, content=errand.finish(drawn.content))
            return _send_new(errand, ledger, len(history.lines), drawn, digest)
        except _Overtaken:
            continue
        except RadocraftError as refusal:
            _withhold(errand, ledger, refusal, digest)
            raise


def _withhold(errand: Errand[Content], ledger: Ledger, refusal: RadocraftError, digest: str) -> None:
    """Tell the ledger of a refusal by noisy numbers, and what they cost, but no more than remains."""
    if refusal.spent is None:
        return
    try:
        ledger.append(errand.withheld(str(refusal), Spend(*refusal.spent), digest))
    except RadocraftError as beyond:
        if beyond.spent is not None:
            ledger.append(errand.withheld(str(refusal), Spend(*beyond.spent), digest))
        raise


def _send_new(errand: Errand[Content], ledger: Ledger, seen: int, drawn: Drawn[Content], digest: str) -> Content:
    """Keep a copy of a file that was not there before, and bring it out."""
    entry = errand.entry(drawn)
    if errand.policy.noisy:
        entry = entry.marked(digest)

    def check(history: History) -> None:
        same = errand.policy.noisy and History(history.lines[seen:]).same(digest) is not None
        if same or errand.overtaken(history):
            raise _Overtaken("Another process made the same release in the meantime. Try again.")

    errand.file_kind.keep(drawn.content, ledger)
    try:
        _bring_out(errand, ledger, entry, check)
    except RadocraftError:
        if ledger.history().of_file(entry.file) is None:
            ledger.copy_of(entry.what, entry.file).unlink(missing_ok=True)
        raise
    if entry.kind == "proposal":
        raise errand.awaits(drawn.content)
    return drawn.content


def _send_again(errand: Errand[Content], ledger: Ledger, stage: Stage, known: Leaving, content: Content) -> Content:
    """Give the same file, whose noise is paid for; after a refusal it is proposed anew."""
    if stage == "released":
        copy_out(known, ledger, errand.output)
        errand.say(AGAIN)
        return content
    if stage == "refused" or not errand.policy.review:
        entry = errand.entry(Drawn(content, Spend(0.0), known.constants))
        known = entry.model_copy(update={"salt": known.salt, "mark": known.mark})
        _bring_out(errand, ledger, known, lambda history: None)
    else:
        put_back(known, ledger, errand.output)
    if errand.policy.review:
        raise errand.awaits(content)
    return content


def _bring_out(errand: Errand[Content], ledger: Ledger, entry: Leaving, check: Callable[[History], None]) -> None:
    """Write the file, or what waits, and tell the ledger just before it gets its name."""

    def both(history: History) -> None:
        if errand.job is not None and history.of_job(errand.job) is not None:
            raise PolicyRefusal("This request was answered already, and no request is answered twice. Make another.")
        check(history)

    def enter() -> None:
        ledger.append(entry, both)

    if entry.kind == "proposal":
        put_back(entry, ledger, errand.output, enter)
    else:
        copy_out(entry, ledger, errand.output, enter)


def copy_out(entry: Leaving, ledger: Ledger, output: Path, enter: Callable[[], None] = nothing) -> None:
    """Write what the ledger lets leave, from its copy.

    ``enter`` is called when all is written but has no name yet; what it raises leaves nothing behind.
    """
    stream = is_stream(output)
    if stream:  # what is written to a device or a pipe has left
        enter()
    with ledger.copy_of(entry.what, entry.file).open("rb") as copy, writing(output) as file:
        shutil.copyfileobj(copy, file)
        if not stream:
            flush(file)
            enter()


def put_back(entry: Leaving, ledger: Ledger, output: Path, enter: Callable[[], None] = nothing) -> None:
    """Write what waits for review, from the ledger's copy; ``enter`` as for `copy_out`."""
    with writing(pending_path(output), private=True) as file:
        write_pending(entry, ledger.path, ledger.copy_of(entry.what, entry.file), file)
        flush(file)
        enter()


def is_stream(output: Path) -> bool:
    """Whether it is a device or a pipe."""
    return output.exists() and not output.is_file() and not output.is_dir()


def _kept(errand: Errand[Content], ledger: Ledger, known: Leaving) -> Content | None:
    """The file of an earlier line, if its copy is still there."""
    copy = ledger.copy_of(known.what, known.file)
    if copy.exists():
        kept = errand.file_kind.load_as(copy, known.file)
        if (finished := errand.finish(kept)) is not kept:
            errand.file_kind.keep(finished, ledger)
        return finished
    errand.say(
        f"The same release was made before, and its copy '{copy}' is gone: noise is drawn, and paid for, once more."
    )
    return None


def _check_begun(errand: Errand[Content], history: History) -> None:
    """Say so where the ledger does not know of what is already at the output."""
    if not errand.output.is_file():
        return
    try:
        before = errand.file_kind.load(errand.output)
    except (RadocraftError, OSError):
        return
    if getattr(before, "peer", None) == errand.peer and history.of_file(errand.file_kind.describe(before).hash) is None:
        errand.say(
            f"'{errand.output}' is a file of '{errand.peer}' that the ledger '{errand.ledger}' does not know: what "
            "left before this ledger began is not counted. If there is an older ledger, put it back."
        )
