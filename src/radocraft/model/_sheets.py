"""Tables with (or for) several peers' scores of the same people, joined row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from radocraft.arrays import Floats, Ints
from radocraft.contract import Contract, Kind
from radocraft.errors import ContractMismatch, MissingColumn, NotFinite
from radocraft.rows import Scorer, Source, View, listed, read_columns
from radocraft.sums import TOP

SIGNATURE = "signature"
"""Where files of scores keep a row's place in the grid of agreed codes."""


@dataclass(frozen=True)
class Peers:
    """Whose scores are brought together, and the log-odds of the label by agreed signature."""

    contract: Contract
    names: tuple[str, ...]
    log_odds: Floats

    def score_name(self, peer: str) -> str:
        """What a peer's score is called."""
        return self.contract.score_of(peer)[0]


def join_sheets(
    peers: Peers, sources: Sequence[Source], on: str | None, scorers: Sequence[Scorer]
) -> tuple[Floats, Floats]:
    """Scores (rows, peers), NaN where there is none, and log-odds of signatures, in the first table's rows.

    Parameters
    ----------
    peers
        Whose scores are wanted.
    sources
        Tables of scores, or of people.
    on
        The column by which their rows belong together; their order if None.
    scorers
        Each scores the table that has its columns, if no table has its scores.
    """
    _check_scorers(peers, scorers)
    there = {name for source in sources for name in source.kinds()}
    missing = [scorer for scorer in scorers if peers.score_name(scorer.peer) not in there]
    sheets = [_Sheet.of(peers, source, on, [s for s in missing if s.reads(source)]) for source in sources]
    for scorer in missing:
        if not any(scorer.peer in sheet.scores for sheet in sheets):
            raise MissingColumn(scorer.lacks(sources[0]))
    first = sheets[0]
    scores, signature = np.full((first.rows, len(peers.names)), np.nan), np.full(first.rows, np.nan)
    for sheet in sheets:
        place = _places(first, sheet, on)
        if sheet.signature is not None:
            taken = np.where(place >= 0, sheet.signature[place], np.nan)
            signature = np.where(np.isnan(signature), taken, signature)
        for peer, values in sheet.scores.items():
            scores[:, peers.names.index(peer)] = np.where(place >= 0, values[place], np.nan)
    if np.isnan(signature).any():
        raise MissingColumn(
            f"'{first.name}' lacks the shared features, or people of whom no table has them: "
            f"{listed([shared.name for shared in peers.contract.shared])}. Add them, or score the table again."
        )
    return scores, signature


def _check_scorers(peers: Peers, scorers: Sequence[Scorer]) -> None:
    """Each must be of the model's contract, and of another peer than the others."""
    for scorer in scorers:
        if scorer.fingerprint != peers.contract.fingerprint:
            raise ContractMismatch(
                f"The scorer of '{scorer.peer}' was fitted under another contract than the model's. Give the one that "
                "was kept when its part was made."
            )
        if scorer.peer not in peers.names:
            raise ContractMismatch(f"The model was learned without '{scorer.peer}'. Leave its scorer out.")
    if len({scorer.peer for scorer in scorers}) < len(scorers):
        raise ContractMismatch("Two scorers belong to the same peer. Give one per peer.")


@dataclass(frozen=True)
class _Sheet:
    """One table: scores by peer, log-odds of signatures, and the column that rows are joined on."""

    scores: dict[str, Floats]
    signature: Floats | None
    ids: list[Any] | None
    name: str

    @classmethod
    def of(cls, peers: Peers, source: Source, on: str | None, scorers: Sequence[Scorer]) -> _Sheet:
        """Read what a table has, and score it."""
        kinds = source.kinds()
        named = {peer: peers.score_name(peer) for peer in peers.names if peers.score_name(peer) in kinds}
        if on is not None and on not in kinds:
            raise MissingColumn(f"'{source.name}' has no column '{on}'. It has {listed([*kinds])}.")
        table = read_columns(source, [*named.values(), *([on] if on else [])])
        scores = {peer: _numbers(table.column(name), source, name) for peer, name in named.items()}
        signature = _signatures(peers, source, kinds)
        for scorer in scorers:
            scored = scorer.score(source)
            scores[scorer.peer] = _numbers(scored.column(peers.score_name(scorer.peer)), source, scorer.peer)
            if signature is None:
                signature = peers.log_odds[scored.column(SIGNATURE).to_numpy()]
        return cls(scores, signature, table.column(on).to_pylist() if on else None, source.name)

    @property
    def rows(self) -> int:
        """How many rows it has."""
        if self.ids is not None:
            return len(self.ids)
        return len(next(iter(self.scores.values()), self.signature if self.signature is not None else np.empty(0)))


def _numbers(column: pa.ChunkedArray, source: Source, name: str) -> Floats:
    out = column.cast(pa.float64()).to_numpy().astype(np.float64)
    if np.isinf(out).any():
        raise NotFinite(f"'{source.name}' holds infinities in '{name}'. Score its rows again.")
    return np.asarray(np.clip(out, -TOP, TOP))


def _signatures(peers: Peers, source: Source, kinds: dict[str, Kind]) -> Floats | None:
    """The log-odds of each row's signature; None if the table lacks the shared features."""
    contract = peers.contract
    if SIGNATURE in kinds:
        place = read_columns(source, [SIGNATURE]).column(SIGNATURE).to_numpy().astype(np.int64)
        if len(place) and not 0 <= place.min() <= place.max() < len(peers.log_odds):
            raise ContractMismatch(f"'{source.name}' was scored under another contract. Score its people again.")
        return np.asarray(peers.log_odds[place])
    try:
        view = View.of(contract, (), source)
    except MissingColumn:
        return None
    codes = np.vstack([view.codes(batch) for batch in view.batches()])
    place = np.zeros(len(codes), dtype=np.int64)
    for index, shared in enumerate(contract.shared):
        place = place * len(shared.codes) + codes[:, index]
    return np.asarray(peers.log_odds[place])


def _places(first: _Sheet, sheet: _Sheet, on: str | None) -> Ints:
    """Where the rows of the first table are in this one; -1 where they are not."""
    if on is None:
        if sheet.rows != first.rows:
            raise ContractMismatch(
                f"'{sheet.name}' has {sheet.rows:,} rows and '{first.name}' {first.rows:,}. Say by which column rows "
                "belong together (`on`, or --on)."
            )
        return np.arange(first.rows)
    ids = sheet.ids or []
    known = {value: place for place, value in enumerate(ids)}
    if len(known) < len(ids):
        raise ContractMismatch(f"'{sheet.name}' has the same '{on}' in several rows. Give each person one row.")
    return np.array([known.get(value, -1) for value in first.ids or []], dtype=np.int64)
