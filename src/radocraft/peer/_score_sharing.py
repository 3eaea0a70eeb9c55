"""From a peer's table to its part of scores: fit, score out of fold, pass the gate, and take the one road out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from radocraft.contract import Contract, TwoValues
from radocraft.errors import ContractMismatch, FileError, RadocraftError
from radocraft.files import check_free, check_place
from radocraft.gate import Policy, release_scores
from radocraft.ledger import Ledger
from radocraft.parts import Part
from radocraft.peer._outgoing import Drawn
from radocraft.peer._road import Errand, Say, log, send
from radocraft.progress import Progress, quiet
from radocraft.rows import ScoredRows, Scorer, score_rows


@dataclass(frozen=True)
class Scoring:
    """How rows become scores.

    Parameters
    ----------
    contract, peer, policy
        What was agreed, whose rows they are, and by whose rules they leave.
    scorer
        An estimator to fit in place of the contract's model, or a scorer that was kept (or its file), which scores
        the rows as they are.
    kept
        Where the scorer is kept; one that is there is used as it is if no other is given.
    must_keep
        Whether it is an error if the scorer cannot be kept.
    refit
        Fit anew whatever is kept.
    secret
        The file whose content keys are hashed with, if the contract says so.
    on_scorer, say, progress
        Given the scorer, told what the peer's user should know, and called as the work goes on.
    replace
        Whether a file that is no scorer may be written over where the scorer is kept.
    """

    contract: Contract
    peer: str
    policy: Policy
    scorer: Any = None
    kept: Path | None = None
    must_keep: bool = True
    refit: bool = False
    secret: Path | None = None
    on_scorer: Callable[[Scorer], None] | None = None
    say: Say = log.warning
    progress: Progress = quiet
    replace: bool = True

    def given(self) -> Scorer | None:
        """The scorer to use as it is, if there is one."""
        if isinstance(self.scorer, Scorer):
            return self.scorer
        if isinstance(self.scorer, str | Path):
            return Scorer.load(self.scorer)
        if self.scorer is not None or self.refit or self.kept is None or not self.kept.exists():
            return None
        found = Scorer.load(self.kept)
        if (found.fingerprint, found.peer) != (self.contract.fingerprint, self.peer):
            raise ContractMismatch(
                f"The scorer '{self.kept}' was fitted under another contract or by another peer than '{self.peer}'. "
                "Ask for it to be fitted anew (`refit`, or --refit), or keep this peer's scorer elsewhere."
            )
        self.say(
            f"Scored by '{self.kept}' as it is, fitted on {found.rows:,} rows: rows that came since are new to it. "
            "To fit it anew: `refit`, or --refit."
        )
        return found

    def check_room(self) -> None:
        """Refuse to write a scorer over anything but a scorer."""
        if self.kept is None or self.replace or not self.refit or not self.kept.is_file():
            return
        try:
            Scorer.load(self.kept)
        except RadocraftError:
            check_free(self.kept)

    def keep(self, fitted: Scorer) -> None:
        """Write a scorer to its place, if it has one."""
        if self.kept is None:
            return
        try:
            fitted.save(self.kept)
        except FileError as error:
            if self.must_keep:
                raise
            self.say(
                f"The scorer was not kept. {error} Or take it as it is: `on_scorer` is given it, and `share` takes it "
                "as `scorer` again."
            )


def share_of_scores(table: Any, scoring: Scoring, errand: Errand[Part] | None) -> Part:
    """The part of a peer whose contract asks for a score; see `share`."""
    if not isinstance(scoring.contract.label, TwoValues):
        raise ContractMismatch(
            "Scores leave for a label of two values only, and this contract's label has classes or is a number. "
            "Agree on one contract per class (that class against all others), or share columns instead of a score."
        )
    if scoring.kept is not None:
        check_place(scoring.kept)
        scoring.check_room()
    given = scoring.given()
    rows, scorer = _scored(table, scoring, given)
    if given is None:
        for note in scorer.notes:  # they are read off the rows, so they stay at the peer
            scoring.say(note)
    if scoring.on_scorer is not None:
        scoring.on_scorer(scorer)

    def draw(ledger: Ledger | None) -> Drawn[Part]:
        released = release_scores(
            scoring.contract,
            scoring.peer,
            signatures=rows.signatures,
            labels=rows.labels,
            scores=rows.scores,
            keys=rows.keys,
            policy=scoring.policy,
        )
        return Drawn(Part.of(released, ledger), released.spend)

    def keep() -> None:
        if given is None:
            scoring.keep(scorer)

    if errand is None:
        keep()
        return draw(None).content
    return send(errand, rows.digest(), draw, keep)


def _scored(table: Any, scoring: Scoring, given: Scorer | None) -> tuple[ScoredRows, Scorer]:
    return score_rows(
        table,
        scoring.contract,
        scoring.peer,
        scorer=scoring.scorer if given is None else None,
        keep=given,
        bounds=scoring.policy.bounds,
        secret=scoring.secret,
        progress=scoring.progress,
    )
