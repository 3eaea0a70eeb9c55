"""The model of a contract of scores: one formula over the scores of the peers' own models. JSON, self-contained.

    log-odds = intercept + sum over peers of weight * score + signature weight * log-odds(signature)

There is a formula for every set of peers whose scores a row may have, all from the same
rows that could be: so a peer's scores alone are enough, and the others are integrated
out. The file holds no peer's model, no block mean and no sum; its numbers carry the
noise of the parts they were learned from.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator
from scipy.special import expit

from radocraft.arrays import Floats, Tabular, one_thread
from radocraft.contract import Contract, Record
from radocraft.errors import LearnError
from radocraft.files import __version__, read_json, write_json
from radocraft.model._checks import check_scores
from radocraft.model._fields import Origin
from radocraft.model._outlook import ScoreOutlook
from radocraft.model._scoring import Scores
from radocraft.model._sheets import Peers, join_sheets
from radocraft.rows import Scorer, open_source

_REMEDY = "It must be a file written by `radocraft learn`; if it is from another version, learn it again."


HeadKind = Literal["fitted", "average", "best peer"]
"""Weights that are fitted, equal ones, or one peer's score by itself."""


class HeadWeights(Record):
    """The formula for rows that have these peers' scores."""

    peers: tuple[str, ...]
    intercept: float
    weights: tuple[float, ...]
    signature: float

    def log_odds(self, scores: Floats, signature: Floats) -> Floats:
        """Of rows with the peers' scores, in columns, and the log-odds of their signature."""
        return np.asarray(self.intercept + scores @ np.array(self.weights).reshape(-1) + self.signature * signature)


class Relation(Record):
    """Correlation of the peers' scores inside label and signature, with standard errors, and how it is known."""

    correlation: tuple[tuple[float, ...], ...]
    error: tuple[tuple[float, ...], ...]
    source: Literal["linked groups", "assumed"]


class ScoreModel(Tabular, Record):
    """A model over peers' scores. `radocraft.learn` makes one from parts of scores; `save` and `load` keep it.

    Examples
    --------
    >>> import radocraft as rc
    >>> agreed, tables = rc.example_peers(rows=2000)
    >>> spelled = agreed.model_dump(mode="json")
    >>> for peer, held in spelled["peers"].items():
    ...     held["features"] = {f"{peer}_score": {"kind": "score", "model": "linear"}}
    >>> contract = rc.Contract.model_validate(spelled)
    >>> model = rc.learn([rc.share(tables[peer], contract, peer) for peer in tables], contract)
    >>> type(model).__name__, model.peers
    ('ScoreModel', ('bank', 'insurer'))
    """

    format: Literal[1] = 1
    radocraft: str = __version__
    created: str = Field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    method: Literal["scores"] = "scores"
    head: HeadKind
    contract: Contract
    heads: tuple[HeadWeights, ...]
    signatures: tuple[float, ...]
    relation: Relation
    outlook: ScoreOutlook | None
    learned_from: tuple[Origin, ...]
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        check_scores(self)
        return self

    @property
    def peers(self) -> tuple[str, ...]:
        """The peers it was learned from."""
        return tuple(origin.peer for origin in self.learned_from)

    @property
    def full(self) -> HeadWeights:
        """The formula for rows that have every peer's score."""
        return self.head_of(self.peers)

    def to_arrow(self) -> pa.Table:
        """Its formulas: one line for each set of peers whose scores a row may have."""
        peers = [", ".join(head.peers) or "none" for head in self.heads]
        numbers: dict[str, list[float | None]] = {"intercept": [head.intercept for head in self.heads]}
        for peer in self.peers:
            weights = [dict(zip(head.peers, head.weights, strict=True)) for head in self.heads]
            numbers[f"weight of {peer}"] = [of_head.get(peer) for of_head in weights]
        return pa.table({"scores of": peers, **numbers, "signature": [head.signature for head in self.heads]})

    def in_one_line(self) -> str:
        """Of what it is, and whose scores it puts together."""
        return f"ScoreModel({self.contract.name!r}, scores of {', '.join(self.peers)})"

    def in_sentences(self) -> tuple[str, ...]:
        """What learning had to say."""
        return self.notes

    def head_of(self, peers: tuple[str, ...]) -> HeadWeights:
        """The formula for rows that have these peers' scores, or an error that says which there are."""
        for head in self.heads:
            if {*head.peers} == {*peers}:
                return head
        known = "; ".join(", ".join(head.peers) or "none" for head in self.heads)
        raise LearnError(
            f"The model has no formula for the scores of {', '.join(peers)} alone. It has them for: {known}."
        )

    @cached_property
    def signature_log_odds(self) -> Floats:
        """Log-odds of the positive label by agreed signature."""
        return np.array(self.signatures, dtype=np.float64)

    def predict(self, data: Any, on: str | None = None, scorers: Sequence[Scorer | str | Path] = ()) -> Scores:
        """Score rows; see `predict_scores`."""
        return predict_scores(self, data, on, scorers)

    def save(self, path: str | Path) -> None:
        """Write the model to a JSON file, whole or not at all."""
        write_json(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model file."""
        return read_json(cls, path, "model", _REMEDY)


@one_thread
def predict_scores(
    model: ScoreModel, data: Any, on: str | None = None, scorers: Sequence[Scorer | str | Path] = ()
) -> Scores:
    """Bring peers' scores of the same people together.

    Parameters
    ----------
    model
        What `learn` gave for a contract of scores.
    data
        A table, or several, with the peers' scores under the contract's names, and
        ``signature`` (as `radocraft score` writes them) or the shared features; or the
        people themselves, to be scored by ``scorers``. With some peers' scores alone the
        others are integrated out.
    on
        The column by which rows of several tables belong together; their order if None.
        Rows come in the first table's order; a person whom another table lacks, or has
        no score of, is scored without that peer.
    scorers
        Scorers that were kept when parts were made, or their files: each scores the table
        that has its columns, if no table has its scores already.
    """
    sources = [open_source(each) for each in _several(data)]
    kept = [each if isinstance(each, Scorer) else Scorer.load(each) for each in scorers]
    scores, signature = join_sheets(Peers(model.contract, model.peers, model.signature_log_odds), sources, on, kept)
    there = ~np.isnan(scores)
    log_odds = np.empty(len(scores))
    patterns: set[tuple[bool, ...]] = {*map(tuple, there.tolist())}
    for pattern in sorted(patterns):
        rows = (there == np.array(pattern)).all(axis=1)
        head = model.head_of(tuple(peer for peer, seen in zip(model.peers, pattern, strict=True) if seen))
        places = [model.peers.index(peer) for peer in head.peers]
        log_odds[rows] = head.log_odds(scores[np.ix_(rows, places)], signature[rows])
    view = tuple(peer for index, peer in enumerate(model.peers) if there[:, index].any())
    return Scores(log_odds, expit(log_odds), (log_odds > 0).astype(np.int64), view)


def _several(data: Any) -> list[Any]:
    return [*data] if isinstance(data, list | tuple) and data else [data]
