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
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from radocraft.arrays import Floats, Ints, Truths, add_up, number_rows, one_thread
from radocraft.contract import Constants, Contract, Kind, Number, private_columns
from radocraft.errors import MissingColumn, NotFinite
from radocraft.model._record import Record
from radocraft.rows import ROWS, Reader, Source, check_read, check_rows, listed, open_source
from radocraft.sums import ROLLED, dense


@dataclass(frozen=True)
class Scores:
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

    @property
    def positive(self) -> Truths:
        """Which rows are given the positive label."""
        return np.asarray(self.chosen == 1)

    @classmethod
    def of(cls, model: Record, score: Floats, view: tuple[str, ...]) -> Scores:
        """Probabilities and choices for these scores."""
        if model.odds is None:
            return cls(score, None, None, view)
        return cls(score, model.odds.probability(score), model.odds.chosen(score), view)


@one_thread
def predict(model: Record, data: Any) -> Scores:
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
    model: Record, source: Source, keep: tuple[str, ...] = ()
) -> Iterator[tuple[Scores, pa.RecordBatch]]:
    """`predict` in pieces, in row order, for tables larger than memory; beside each the columns to keep."""
    view = View.of(model.contract, model.peers, source, model.constants)
    absent = [peer for peer in model.peers if peer not in view.readers]
    averages = Averages.of(model, absent)
    for batch in checked_batches(view, source, keep):
        score = np.array(model.intercept) + view.score(model, batch) + averages.of_signatures(view.codes(batch))
        kept = batch.select([f"keep_{at}" for at in range(len(keep))])
        yield Scores.of(model, score, tuple(view.readers)), kept


@dataclass(frozen=True)
class View:
    """Which peers' columns a table has, and how to read them.

    ``shared`` reads the shared features; ``readers`` the private features of
    each peer that is there; ``owners`` says to which of its holders a private
    column belongs in the model: the first.
    """

    shared: Reader
    readers: dict[str, Reader]
    owners: dict[str, str]

    @classmethod
    def of(
        cls,
        contract: Contract,
        peers: tuple[str, ...],
        source: Source,
        constants: dict[str, Constants] | None = None,
    ) -> View:
        """Find the contract's columns in a table."""
        kinds = source.kinds()
        readers = {}
        for peer in peers:
            reader = _reader(contract, peer, kinds, (constants or {}).get(peer, {}))
            wanted = {name: contract.column_of(peer, name) for name in contract.own_columns(peer)}
            found = [name for name in wanted if reader.contract.column_of(peer, name) in kinds]
            others = {name for other in peers if other != peer for name in contract.own_columns(other)}
            if not {*found} & ({*wanted} - others or {*wanted}):
                continue  # at most columns that another peer holds too
            if len(found) < len(wanted):
                raise MissingColumn(
                    f"'{source.name}' has some columns of '{peer}' but lacks "
                    f"{listed([own for name, own in wanted.items() if name not in found])}. "
                    f"Add them, or leave all of '{peer}' out to have it filled in from block means."
                )
            readers[peer] = reader
        shared = next(iter(readers.values()), _reader(contract, None, kinds, {}))
        if lacking := [s.name for s in contract.shared if shared.contract.column_of(shared.peer, s.name) not in kinds]:
            raise MissingColumn(
                f"'{source.name}' lacks {listed(lacking)}, shared by all peers. It has {listed(list(kinds))}. "
                "Rename a column, or add it; empty cells are allowed."
            )
        owners: dict[str, str] = {}
        for peer in peers:
            owners |= {c.name: peer for c in private_columns(contract, peer) if c.name not in owners}
        return cls(shared, readers, owners)

    @property
    def all(self) -> list[Reader]:
        """Every reader once."""
        return list(self.readers.values()) or [self.shared]

    def query(self, keep: tuple[str, ...] = ()) -> exp.Select:
        """Codes, raw values of every peer that is there, whether a cell cannot be read, and columns to keep."""
        columns = [self.shared.code(s).as_(f"code_{at}") for at, s in enumerate(self.shared.contract.shared)]
        for number, (peer, reader) in enumerate(self.readers.items()):
            named = zip(private_columns(reader.contract, peer), reader.private(), strict=True)
            owned = [value for column, value in named if self.owners[column.name] == peer]
            columns += [value.as_(f"value_{number}_{at}") for at, value in enumerate(owned)]
        misread = [condition for reader in self.all if (condition := reader.misread()) is not None]
        columns.append(exp.or_(exp.false(), *misread).as_("misread"))
        if unknown := [name for name in keep if name not in self.shared.kinds]:
            raise MissingColumn(
                f"There is no column {listed(unknown)} to keep. There are {listed(list(self.shared.kinds))}."
            )
        columns += [exp.column(name, quoted=True).as_(f"keep_{at}") for at, name in enumerate(keep)]
        relation: exp.Expr = ROWS
        for reader in self.readers.values():
            relation = reader.rows(relation)
        return exp.select(*columns).from_(relation)

    def codes(self, batch: pa.RecordBatch) -> Ints:
        """The batch's signatures."""
        width = len(self.shared.contract.shared)
        return dense(batch.select([f"code_{at}" for at in range(width)])).astype(np.int64)

    def values(self, batch: pa.RecordBatch) -> Floats:
        """The batch's raw private values, peer after peer, NaN where missing."""
        return dense(batch.select([name for name in batch.schema.names if name.startswith("value_")]))

    def score(self, model: Record, batch: pa.RecordBatch) -> Floats:
        """What shared features and the private features that are there contribute."""
        coefficients = [c for peer in self.readers for c in model.of_peer(peer)]
        offsets = self.values(batch) - np.array([c.centre for c in coefficients])
        private = np.nan_to_num(offsets, nan=0.0) @ model.stacked([c.raw for c in coefficients])
        return np.asarray(model.contract.encode_shared(self.codes(batch)) @ model.shared_weights + private)


def shared_view(contract: Contract, source: Source) -> View:
    """How to read the shared features alone."""
    return View.of(contract, (), source)


def _reader(contract: Contract, peer: str | None, kinds: dict[str, Kind], constants: Constants) -> Reader:
    """A reader that finds a column under the contract's name, the peer's own or, if shared, another peer's.

    Without a peer it reads the shared features alone.
    """
    name = peer or next(iter(contract.peers))
    features = contract.peers[name].features if peer else {}
    owners = {shared.name: (name, *contract.peers) for shared in contract.shared} | dict.fromkeys(features, (name,))
    columns = {}
    for feature, held_by in owners.items():
        candidates = [feature, *(contract.column_of(owner, feature) for owner in held_by)]
        columns[feature] = next((column for column in candidates if column in kinds), feature)
    held = contract.peers[name].model_copy(update={"features": features, "columns": columns})
    return Reader(contract.model_copy(update={"peers": {**contract.peers, name: held}}), name, kinds, constants)


def checked_batches(
    view: View, source: Source, keep: tuple[str, ...] = (), *, with_label: bool = False
) -> Iterator[pa.RecordBatch]:
    """The rows of a view, piece by piece; no cell may be of the wrong kind or infinite, and there must be rows."""
    count = 0
    query = view.query(keep)
    if with_label:
        query = query.select(view.shared.label().as_("label"))
        label = view.shared.contract.label
        query = query.select(view.shared.number(label.column).as_("target")) if isinstance(label, Number) else query
    for batch in source.batches(query):
        if batch.column("misread").to_numpy(zero_copy_only=False).any():
            break
        if np.isinf(view.values(batch)).any():
            raise NotFinite(f"'{source.name}' holds infinities. Replace them by missing values or finite numbers.")
        count += batch.num_rows
        yield batch
    else:
        check_rows(count, source)
        return
    for reader in view.all:
        check_read(reader, source)


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
    def of(cls, model: Record, absent: list[str]) -> Averages:
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
