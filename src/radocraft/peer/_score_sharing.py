"""From a peer's table to its part of scores: fit, score out of fold, pass the gate, and take the one road out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from radocraft.contract import Contract
from radocraft.files import check_place
from radocraft.gate import Policy, release_scores
from radocraft.parts import Part
from radocraft.peer._outgoing import Drawn
from radocraft.peer._road import Errand, Say, log, send
from radocraft.progress import Progress, quiet
from radocraft.rows import ScoredRows, Scorer, score_rows
from radocraft.sums import GRID, TOP


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
    keep
        Where to keep the scorer that was fitted.
    secret
        The file whose content keys are hashed with, if the contract says so.
    say, progress
        Told what the peer's user should know, and called as the work goes on.
    """

    contract: Contract
    peer: str
    policy: Policy
    scorer: Any = None
    keep: Path | None = None
    secret: Path | None = None
    say: Say = log.warning
    progress: Progress = quiet


def share_of_scores(table: Any, scoring: Scoring, errand: Errand[Part] | None) -> Part:
    """The part of a peer whose contract asks for a score; see `share`."""
    if scoring.keep is not None:
        check_place(scoring.keep)
    rows, scorer = _scored(table, scoring)
    if scoring.keep is not None:
        scorer.save(scoring.keep)
    for note in scorer.notes:  # they are read off the rows, so they stay at the peer
        scoring.say(note)

    def draw(head: str | None) -> Drawn[Part]:
        released = release_scores(
            scoring.contract,
            scoring.peer,
            signatures=rows.signatures.astype(np.int64),
            labels=rows.labels.astype(np.int64),
            scores=np.clip(rows.scores.astype(np.float64), -TOP, TOP),
            keys=None if rows.keys is None else rows.keys.astype(np.int64),
            policy=scoring.policy,
        )
        return Drawn(Part.of(released, ledger_head=head), released.spend)

    return draw(None).content if errand is None else send(errand, digest(rows), draw)


def _scored(table: Any, scoring: Scoring) -> tuple[ScoredRows, Scorer]:
    given = scoring.scorer
    kept = Scorer.load(given) if isinstance(given, str | Path) else given
    keep, estimator = (kept, None) if isinstance(kept, Scorer) else (None, kept)
    return score_rows(
        table,
        scoring.contract,
        scoring.peer,
        scorer=estimator,
        keep=keep,
        bounds=scoring.policy.bounds,
        secret=scoring.secret,
        progress=scoring.progress,
    )


def digest(rows: ScoredRows) -> str:
    """By which a release of the same rows is known, in whatever order they come."""
    columns = [rows.signatures, rows.labels, np.rint(rows.scores * GRID)]
    columns += [] if rows.keys is None else [rows.keys]
    table = np.column_stack([np.asarray(column, dtype="<i8") for column in columns])
    return hashlib.sha256(table[np.lexsort(table.T)].tobytes()).hexdigest()
