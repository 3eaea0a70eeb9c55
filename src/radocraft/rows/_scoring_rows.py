"""From a peer's table to scored rows: a model of its own, out of fold, calibrated.

The table is read where it is. One that fits (``fit_rows``) is read once. Of a larger one the engine draws a
sample, on which the scorer is fitted; then all rows are scored in batches, each by the model of its
fold, which has not seen it. On a cluster its workers do that, and the rows' columns stay with them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from radocraft.arrays import Floats, Ints
from radocraft.contract import Contract, Score
from radocraft.errors import ContractMismatch, MissingColumn
from radocraft.progress import Progress, quiet
from radocraft.rows._calibration import area, area_error
from radocraft.rows._checks import check_columns, check_rows, listed
from radocraft.rows._chunks import Asking, Chunk, joined
from radocraft.rows._cleaning import cleaned
from radocraft.rows._encoding import Reader
from radocraft.rows._estimators import EstimatorInput, adopted, estimator
from radocraft.rows._features import ScorerColumn, as_score, candidates, choose
from radocraft.rows._fitting import FitPlan, fit, ordered
from radocraft.rows._keys import KeyReader
from radocraft.rows._lots import Drawing
from radocraft.rows._parallel import in_turn
from radocraft.rows._pool import POOLED_ROWS
from radocraft.rows._scored import ScoredRows, concatenate
from radocraft.rows._scorer import Scorer
from radocraft.rows._spelling import spelled_otherwise
from radocraft.rows._workers import on_workers
from radocraft.rows.engines._base import ROWS, Cluster, Source
from radocraft.rows.engines._opening import in_memory, open_source
from radocraft.sums import Bounds

FIT_ROWS = 1_000_000
_MUCH_BETTER = 0.05


def score_rows(
    data: Any,
    contract: Contract,
    peer: str,
    *,
    scorer: Any | None = None,
    keep: Scorer | None = None,
    bounds: Bounds | None = None,
    secret: str | Path | None = None,
    seed: int = 0,
    fit_rows: int = FIT_ROWS,
    progress: Progress = quiet,
) -> tuple[ScoredRows, Scorer]:
    """Score every row of a peer's table by a model that has not seen it.

    Parameters
    ----------
    data
        Where the rows are: a path, a data frame, a source; see `open_source`.
    contract, peer
        What was agreed, and which of its peers this table belongs to.
    scorer
        An estimator of your own, not fitted; the contract's kind of model if None.
    keep
        A scorer fitted earlier, to be used as it is.
    bounds
        Whose rows they are and how many of each person count, if that is bounded.
    secret
        The file with the secret, if the contract has a key that is hashed.
    seed
        What folds and models depend on besides the rows.
    fit_rows
        The most rows a scorer is fitted on.
    progress
        Called as the work goes on.
    """
    contract.peer(peer)
    source = cleaned(open_source(data), contract, peer)
    whole = _Peer(source, contract, peer, bounds, None if secret is None else Path(secret), seed)
    score = whole.agreed()
    if keep is not None:
        _check_kept(keep, contract, peer)
        keep.check_own(source)
        asking = replace(whole.asking(keep.columns), group=keep.group, seed=keep.lottery.seed)
        return _stream(source, keep, asking, fit_rows, progress), keep
    count = _count(source)
    seen = whole if count <= fit_rows else replace(whole, source=_drawn(whole, score, fit_rows, count))
    columns, notes = _columns(seen, score, scorer)
    notes += tuple(spelled_otherwise(source, whole.reader))
    asking = seen.asking(columns)
    rows = joined(list(asking.chunks(seen.source, progress, total=min(count, fit_rows))))
    if score.fitted_elsewhere:
        notes += seen_before(seen, rows, progress)
    rows = ordered(rows, seed)
    fitted = fit(_plan(asking, score, scorer, notes, len(rows)), rows, progress)
    if seen is whole:
        return _scored(fitted, rows, Drawing(fitted.lottery)), fitted
    del rows
    return _stream(source, fitted, whole.asking(columns), fit_rows, progress), fitted


@dataclass(frozen=True)
class _Peer:
    """A peer's rows, or a sample of them, and what was agreed about them."""

    source: Source
    contract: Contract
    peer: str
    bounds: Bounds | None
    secret: Path | None
    seed: int

    @cached_property
    def reader(self) -> Reader:
        """How shared features and the label are read."""
        return Reader(self.contract, self.peer, self.source.kinds())

    @property
    def score(self) -> Score:
        """What the contract says of the peer's score."""
        return self.contract.score_of(self.peer)[1]

    @property
    def person(self) -> str | None:
        """The column that says whose a row is, if rows of a person are bounded."""
        return None if self.bounds is None else self.bounds.person

    @property
    def group(self) -> str | None:
        """The column that folds go by."""
        return self.score.group or self.person

    def asking(self, columns: tuple[ScorerColumn, ...]) -> Asking:
        """What to ask of each row."""
        most = 1 if self.bounds is None else self.bounds.rows_per_person
        key = KeyReader.of(self.reader, self.secret)
        return Asking(self.reader, columns, key, self.group, self.person, most, seed=self.seed)

    def named(self) -> list[str]:
        """The columns that are read, but are none of the model's: label, key, whose a row is."""
        contract, peer = self.contract, self.peer
        names = [contract.column_of(peer, contract.label.column), self.group, self.person]
        names += [contract.column_of(peer, contract.key.name)] if contract.key is not None else []
        return [name for name in dict.fromkeys(names) if name is not None]

    def shared(self) -> list[str]:
        """The columns that hold the shared features."""
        return [self.contract.column_of(self.peer, shared.name) for shared in self.contract.shared]

    def agreed(self) -> Score:
        """The peer's score; label, shared features and whose a row is must be there."""
        score = self.score
        if not self.contract.labelled(self.peer):
            raise ContractMismatch(
                f"'{self.peer}' lacks the label, and a score can be neither fitted nor calibrated without it. "
                "Agree on columns instead of scores, or give the peer the label."
            )
        check_columns(self.reader, self.source)
        if absent := [name for name in self.named() if name not in self.reader.kinds]:
            raise MissingColumn(
                f"'{self.source.name}' has no column {listed(absent)}. Correct `group` or [[key]] in the contract, or "
                "`person` in the policy; a column that is only called otherwise can be mapped under "
                f"[peers.{self.peer}.columns]."
            )
        return score


def _check_kept(keep: Scorer, contract: Contract, peer: str) -> None:
    if (keep.fingerprint, keep.peer) != (contract.fingerprint, peer):
        raise ContractMismatch(
            f"The scorer was fitted under another contract or by another peer than '{peer}'. Fit one anew."
        )


def _count(source: Source) -> int:
    if rows := source.row_count():
        return rows
    count = exp.select(exp.func("COUNT", exp.Star()).as_("n_rows")).from_(ROWS)
    rows = int(source.table(count)["n_rows"][0].as_py())
    check_rows(rows, source)
    return rows


def _drawn(whole: _Peer, score: Score, fit_rows: int, count: int) -> Source:
    """A sample of the rows, in memory."""
    least = max(1, fit_rows - 4 * round(fit_rows**0.5))
    wanted = dict.fromkeys([*candidates(whole.source, _names(whole, score))[0], *whole.shared(), *whole.named()])
    columns = [exp.column(name, quoted=True) for name in wanted]
    drawn = whole.source.draw(least, count, whole.seed).subquery("radocraft_drawn")
    return in_memory(whole.source.table(exp.select(*columns).from_(drawn)).slice(0, fit_rows), whole.source.name)


def _names(peer: _Peer, score: Score) -> list[str]:
    """The columns that may be the model's: those the contract names and the shared ones, or all but some."""
    if score.fitted_elsewhere and score.column is not None:
        return [score.column]
    if score.of is not None:
        return [*dict.fromkeys([*score.of, *peer.shared()])]
    never = peer.named()
    return [name for name in peer.reader.kinds if name not in never]


def _columns(peer: _Peer, score: Score, scorer: Any | None) -> tuple[tuple[ScorerColumn, ...], tuple[str, ...]]:
    """What the model is given, and what is to be said about columns that it is not."""
    names = _names(peer, score)
    if score.fitted_elsewhere:
        if scorer is not None:
            raise ContractMismatch(
                f"The contract says that the scores of '{peer.peer}' were fitted elsewhere, so no other model can take "
                "their place. Leave `scorer` out, or agree on another contract."
            )
        return (as_score(peer.source, names[0]),), ()
    chosen = choose(peer.source, names, asked_for=score.of is not None)
    return chosen.columns, chosen.notes


def _plan(asking: Asking, score: Score, scorer: Any | None, notes: tuple[str, ...], rows: int) -> FitPlan:
    unfitted: Any | None = None
    form: EstimatorInput = "matrix"
    pooled = scorer is None and not score.fitted_elsewhere and score.model == "boosting" and rows <= POOLED_ROWS
    if scorer is not None:
        unfitted, form = adopted(scorer, asking.columns, asking.target)
    elif not score.fitted_elsewhere:
        unfitted = estimator(score.model, asking.columns, asking.target, asking.seed, pooled=pooled)
    return FitPlan(asking, score.folds, unfitted, form, notes, pooled)


def seen_before(peer: _Peer, rows: Chunk, progress: Progress) -> tuple[str, ...]:
    """A note if scores from elsewhere know these rows too well: better than what the other columns can tell of them."""
    asking = peer.asking(())
    column = peer.score.column
    names = [name for name in peer.reader.kinds if name not in (*peer.named(), column)]
    if asking.target.classes != 2 or not names:
        return ()
    chosen = choose(peer.source, names, asked_for=False)
    asking = peer.asking(chosen.columns)
    refit = fit(
        FitPlan(
            asking, peer.score.folds, estimator("boosting", chosen.columns, asking.target, peer.seed), "matrix", ()
        ),
        ordered(joined(list(asking.chunks(peer.source))), peer.seed),
        progress,
    )
    positive = rows.labels == max(peer.contract.label.codes)
    scores = rows.matrix[:, 0]
    known = ~np.isnan(scores)
    theirs, ours = area(scores[known], positive[known]), refit.performance.auc or 0.5
    chance = area_error(theirs, positive[known]) ** 2 + area_error(ours, positive) ** 2
    if theirs - ours <= max(_MUCH_BETTER, 2.0 * chance**0.5):
        return ()
    return (
        f"'{column}' orders these rows far better (AUC {theirs:.3f}) than a model of the other columns that has not "
        f"seen them ({ours:.3f}). If its model was fitted on these rows, its scores are worth less on new ones than "
        "they seem: give scores out of fold, or rows it has not seen",
    )


def _stream(source: Source, scorer: Scorer, asking: Asking, wide: int, progress: Progress) -> ScoredRows:
    """All rows, chunk by chunk, on all cores; only a few numbers of each are kept."""
    drawing = Drawing(scorer.lottery)
    if isinstance(source, Cluster):
        batches = on_workers(source, asking, partial(_reported, scorer), progress)
        return _whole([_received(scorer, batch, drawing) for batch in batches], wide)
    chunks = asking.chunks(source, progress, "scoring", source.row_count())
    dealt = ((chunk, scorer.dealt(chunk, drawing)) for chunk in chunks)

    def score(given: tuple[Chunk, Ints]) -> ScoredRows:
        chunk, fold = given
        return _rows(chunk, scorer.by_fold(chunk, fold)).narrow()

    return _whole(list(in_turn(score, dealt)), wide)


def _reported(scorer: Scorer, chunk: Chunk) -> pa.RecordBatch:
    """What a worker says of its rows; of equal ones that may be in several folds, once, what all their models say."""
    if not len(scorer.lottery.repeated):
        return pa.record_batch(_scored(scorer, chunk, Drawing(scorer.lottery)).narrow().packed())
    lot = scorer.lottery.first(chunk, scorer.classes(chunk.labels))
    alike = np.column_stack([lot.view(np.int64), chunk.signatures])
    _, first, times = np.unique(alike, axis=0, return_index=True, return_counts=True)
    chunk = chunk.take(first)
    scores = np.stack([scorer.calibrated(at, chunk.matrix) for at in range(scorer.deal.folds)], axis=1)
    more = {"lot": pa.array(lot[first]), "times": pa.array(times)}
    return pa.record_batch(_rows(chunk, scores).narrow().packed() | more)


def _received(scorer: Scorer, batch: pa.RecordBatch, drawing: Drawing) -> ScoredRows:
    """The scored rows of which a worker says that; which of equal rows are in which fold is decided here."""
    shape = (scorer.target.classes,) if scorer.target.classes > 2 else ()
    if not len(scorer.lottery.repeated):
        return ScoredRows.unpacked(batch, shape)
    held = ScoredRows.unpacked(batch, (scorer.deal.folds, *shape))
    lot, times = (batch.column(name).to_numpy() for name in ("lot", "times"))
    row = np.repeat(np.arange(len(held)), times)
    signatures, labels = held.signatures[row], held.labels[row]
    fold = scorer.fold_of(drawing.told_apart(lot[row]), signatures.astype(np.int64), scorer.classes(labels))
    return ScoredRows(
        signatures,
        labels,
        None if held.values is None else held.values[row],
        held.scores[row, fold],
        None if held.keys is None else held.keys[row],
    )


def _whole(pieces: list[ScoredRows], wide: int) -> ScoredRows:
    rows = concatenate(pieces)
    return rows if len(rows) > wide else next(rows.pieces(len(rows)))


def _scored(scorer: Scorer, chunk: Chunk, drawing: Drawing) -> ScoredRows:
    return _rows(chunk, scorer.by_fold(chunk, scorer.dealt(chunk, drawing)))


def _rows(chunk: Chunk, scores: Floats) -> ScoredRows:
    return ScoredRows(chunk.signatures, chunk.labels, chunk.values, scores, chunk.keys)
