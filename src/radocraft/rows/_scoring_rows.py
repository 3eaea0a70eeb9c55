"""From a peer's table to scored rows: a model of its own, out of fold, calibrated.

The table is read where it is. One that fits (``fit_rows``) is read once. Of a larger one the engine draws a
sample, on which the scorer is fitted; then all rows are scored in batches, each by the model of its
fold, which has not seen it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sqlglot import exp

from radocraft.contract import Contract, Score
from radocraft.errors import ContractMismatch, MissingColumn
from radocraft.progress import Progress, quiet
from radocraft.rows._checks import check_columns, check_rows
from radocraft.rows._chunks import Asking, Chunk, joined
from radocraft.rows._encoding import Reader
from radocraft.rows._estimators import Form, Outcome, adopted, estimator
from radocraft.rows._features import Column, choose
from radocraft.rows._fitting import Task, fit, ordered
from radocraft.rows._keys import KeyReader
from radocraft.rows._scored import ScoredRows
from radocraft.rows._scorer import Drawing, Scorer
from radocraft.rows.engines._base import ROWS, Source
from radocraft.rows.engines._opening import open_source
from radocraft.sums import Bounds

FIT_ROWS = 1_000_000


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
    source = open_source(data)
    reader = Reader(contract, peer, source.kinds())
    score = _agreed(reader, source)
    key = KeyReader.of(reader, None if secret is None else Path(secret))
    person, most = (None, 1) if bounds is None else (bounds.person, bounds.rows_per_person)
    group = score.group or person
    _check_named(reader, source, group, person)
    asking = Asking(reader, (), key, group, person, most, seed=seed)
    if keep is not None:
        _check_kept_scorer(keep, contract, peer)
        asking = replace(asking, columns=keep.columns, group=keep.group, seed=keep.lottery.seed)
        return _stream(source, keep, asking, progress), keep
    if _count(source) > fit_rows:
        raise NotImplementedError
    columns, notes = _columns(source, asking, score, scorer)
    asking = replace(asking, columns=columns)
    task = _task(asking, score, scorer, notes)
    rows = ordered(joined(list(asking.chunks(source, progress, total=source.row_count()))), seed)
    fitted = fit(task, rows, progress)
    return _scored(fitted, rows, Drawing(fitted.lottery)), fitted


def _agreed(reader: Reader, source: Source) -> Score:
    """The peer's score; the label and the shared features must be there."""
    contract, peer = reader.contract, reader.peer
    score = contract.score_of(peer)[1]
    if not contract.labelled(peer):
        raise ContractMismatch(
            f"'{peer}' lacks the label, and a score cannot be fitted without it. Give it a column with scores of a "
            "model that exists already and the label to calibrate it by, or agree on columns for this peer's contract."
        )
    check_columns(reader, source)
    return score


def _check_named(reader: Reader, source: Source, *names: str | None) -> None:
    for name in names:
        if name is not None and name not in reader.kinds:
            raise MissingColumn(
                f"'{source.name}' has no column '{name}' that says whose a row is. "
                "Correct `group` in the contract, or `person` in the policy."
            )


def _check_kept_scorer(keep: Scorer, contract: Contract, peer: str) -> None:
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


def _columns(
    source: Source, asking: Asking, score: Score, scorer: Any | None
) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """What the model is given: what the contract names and the shared features, or all but what says too much."""
    contract, peer = asking.reader.contract, asking.reader.peer
    if score.fitted_elsewhere and score.column is not None:
        if scorer is not None:
            raise ContractMismatch(
                f"The contract says that the scores of '{peer}' were fitted elsewhere, so no other model can take "
                "their place. Leave `scorer` out, or agree on another contract."
            )
        return (Column(score.column, "number"),), ()
    shared = [contract.column_of(peer, shared.name) for shared in contract.shared]
    never = {contract.column_of(peer, contract.label.column), asking.group, asking.person}
    never |= {contract.column_of(peer, contract.key.name)} if contract.key is not None else set()
    if score.of is not None:
        chosen = choose(source, [*dict.fromkeys([*score.of, *shared])], asked_for=True)
    else:
        chosen = choose(source, [name for name in asking.reader.kinds if name not in never], asked_for=False)
    return chosen.columns, chosen.notes


def _task(asking: Asking, score: Score, scorer: Any | None, notes: tuple[str, ...]) -> Task:
    contract, peer = asking.reader.contract, asking.reader.peer
    outcome = Outcome(0 if asking.number is not None else len(contract.label.codes))
    unfitted: Any | None = None
    form: Form = "matrix"
    if scorer is not None:
        unfitted, form = adopted(scorer, asking.columns, outcome)
    elif not score.fitted_elsewhere:
        unfitted = estimator(score.model, asking.columns, outcome, asking.seed)
    return Task(contract, peer, score, asking.columns, unfitted, form, outcome, asking.group, asking.seed, notes)


def _stream(source: Source, scorer: Scorer, asking: Asking, progress: Progress) -> ScoredRows:
    """All rows, chunk by chunk; only a few numbers of each are kept."""
    drawing = Drawing(scorer.lottery)
    chunks = asking.chunks(source, progress, "scoring", source.row_count())
    return _together([_scored(scorer, chunk, drawing) for chunk in chunks])


def _scored(scorer: Scorer, chunk: Chunk, drawing: Drawing) -> ScoredRows:
    return ScoredRows(chunk.signatures, chunk.labels, chunk.values, scorer.out_of_fold(chunk, drawing), chunk.keys)


def _together(pieces: list[ScoredRows]) -> ScoredRows:
    first = pieces[0]
    return ScoredRows(
        np.concatenate([piece.signatures for piece in pieces]),
        np.concatenate([piece.labels for piece in pieces]),
        None if first.values is None else np.concatenate([p.values for p in pieces if p.values is not None]),
        np.concatenate([piece.scores for piece in pieces]),
        None if first.keys is None else np.concatenate([p.keys for p in pieces if p.keys is not None]),
    )
