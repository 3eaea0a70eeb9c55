"""Scores for the rows of a table: with every peer's columns, or with some.

A peer whose private columns are not in the table is filled in by what it
contributes on average to rows of the same signature: the mean over the labels
of the signature's blocks, by their weights. Where a signature was not seen with
every label, the next coarser level that was seen with all of them decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from radocraft.arrays import Floats, Ints, Tabular, Truths, add_up, number_rows, one_thread
from radocraft.rows import Source, View, open_source
from radocraft.sums import ROLLED

if TYPE_CHECKING:
    from radocraft.model._model import Model


@dataclass(frozen=True, repr=False)
class Scores(Tabular):
    """Scores of some rows, in their order.

    ``probability`` is that of the positive label; ``chosen`` says which of the
    label's values each row is given; ``view`` lists the peers whose columns were
    in the table. With several classes scores and probabilities have a column for
    each. If the label is a number the score is the number to expect, and there is
    nothing else.
    """

    score: Floats
    probability: Floats | None
    chosen: Ints | None
    view: tuple[str, ...]

    def to_arrow(self) -> pa.Table:
        """One line for each row: score and probability, or one of each class, and what was chosen."""
        table: dict[str, Floats | Ints] = {**_columns("score", self.score)}
        if self.probability is not None and self.chosen is not None:
            table |= _columns("probability", self.probability) | {"chosen": self.chosen}
        return pa.table(table)

    def in_one_line(self) -> str:
        """How many, and with whose columns."""
        return f"Scores({len(self.score):,} rows, with columns of {', '.join(self.view) or 'nobody'})"

    @property
    def positive(self) -> Truths:
        """Which rows are given the positive label."""
        return np.asarray(self.chosen == 1)

    @classmethod
    def of(cls, model: Model, score: Floats, view: tuple[str, ...]) -> Scores:
        """Probabilities and choices for these scores."""
        if model.odds is None:
            return cls(score, None, None, view)
        return cls(score, model.odds.probability(score), model.odds.chosen(score), view)


@one_thread
def predict(model: Model, data: Any) -> Scores:
    """Score every row of a table.

    Columns are found under the contract's name or the peer's own. A peer none
    of whose columns is there is filled in from block means; a peer of whom
    some are missing is an error.

    Parameters
    ----------
    model
        What `learn` gave.
    data
        A path, a data frame, a source; see `open_source`.

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=500)
    >>> parts = [rc.share(tables[peer], contract, peer) for peer in tables]
    >>> scores = rc.predict(rc.learn(parts, contract), tables["insurer"])
    >>> scores.view, scores.probability.shape
    (('insurer',), (500,))
    """
    pieces = [scores for scores, _ in predict_batches(model, open_source(data))]
    return Scores.of(model, np.concatenate([piece.score for piece in pieces]), pieces[0].view)


def predict_batches(
    model: Model, source: Source, keep: tuple[str, ...] = ()
) -> Iterator[tuple[Scores, pa.RecordBatch]]:
    """`predict` in pieces, in row order, for tables larger than memory; beside each the columns to keep."""
    view = View.of(model.contract, model.peers, source, model.constants)
    absent = [peer for peer in model.peers if peer not in view.readers]
    averages = Averages.of(model, absent)
    for batch in view.batches(keep):
        score = np.array(model.intercept) + _score_of(view, model, batch) + averages.of_signatures(view.codes(batch))
        kept = batch.select([f"keep_{index}" for index in range(len(keep))])
        yield Scores.of(model, score, tuple(view.readers)), kept


@dataclass(frozen=True)
class Averages:
    """What absent peers contribute on average, by signature.

    ``codes``, ``labels`` (one column per label) and ``weights`` are the model's
    blocks, ``total`` the absent peers' contributions to each.
    """

    codes: Ints
    labels: Truths
    weights: Floats
    total: Floats
    absent: bool

    @classmethod
    def of(cls, model: Model, absent: list[str]) -> Averages:
        """The averages for these peers."""
        blocks = model.blocks
        nothing = np.zeros_like(model.stacked(blocks.shared))
        total = np.sum([nothing, *(model.stacked(blocks.peers[peer]) for peer in absent)], axis=0)
        labels = np.array(blocks.labels)
        return cls(
            model.block_codes, labels[:, None] == np.unique(labels), np.array(blocks.weights), total, bool(absent)
        )

    @cached_property
    def depth(self) -> Ints:
        """How many codes of each block are known."""
        return np.asarray((self.codes != ROLLED).sum(axis=1), dtype=np.int64)

    def of_signatures(self, codes: Ints) -> Floats:
        """The mean for each signature, from the finest level seen with every label."""
        out = np.zeros((len(codes), *self.total.shape[1:]))
        missing = np.full(len(codes), self.absent)
        for level in reversed(range(codes.shape[1] + 1)):
            if missing.any():
                mean, known = self.at_level(level, codes[missing])
                rows = np.flatnonzero(missing)[known]
                out[rows], missing[rows] = mean[known], False
        return out

    def at_level(self, level: int, codes: Ints) -> tuple[Floats, Truths]:
        """Means over blocks that agree with a signature in its first codes, and whether all labels are among them."""
        deep = np.flatnonzero(self.depth >= level)
        number = number_rows(np.vstack([self.codes[deep, :level], codes[:, :level]]))
        ours, theirs, groups = number[: len(deep)], number[len(deep) :], int(number.max()) + 1
        weights = self.weights[deep]
        by_label = add_up(weights[:, None] * self.labels[deep], ours, groups)[theirs]
        summed = add_up((weights * self.total[deep].T).T, ours, groups)[theirs]
        every = by_label.min(axis=1) > 0
        return (summed.T / np.where(every, by_label.sum(axis=1), 1.0)).T, every


def _score_of(view: View, model: Model, batch: pa.RecordBatch) -> Floats:
    """What shared features and the private features that are there contribute."""
    coefficients = [c for peer in view.readers for c in model.of_peer(peer)]
    centre, limits = np.array([c.centre for c in coefficients]), model.limits(view.readers)
    private = view.weighted(batch, centre, model.stacked([c.raw for c in coefficients]), limits)
    return np.asarray(model.contract.encode_shared(view.codes(batch)) @ model.shared_weights + private)


def _columns(name: str, values: Floats) -> dict[str, Floats]:
    return {name: values} if values.ndim == 1 else {f"{name}_{at}": column for at, column in enumerate(values.T)}
