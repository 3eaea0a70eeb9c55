"""A peer's own scorer: its models, how their log-odds are calibrated, and how it reads the peer's columns.

It stays at the peer, and so does its file: it is made from rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from radocraft.arrays import Floats, Ints
from radocraft.contract import Contract, Number
from radocraft.errors import MissingColumn
from radocraft.progress import Progress, quiet
from radocraft.rows._calibration import Bin, Line, Performance, Platt, raw_log_odds
from radocraft.rows._checks import listed
from radocraft.rows._chunks import Asking, Chunk, check_kept
from radocraft.rows._encoding import Reader
from radocraft.rows._estimators import Form, Outcome, given_form, raw_scores
from radocraft.rows._features import Column
from radocraft.rows._folds import Deal, Lots, lots, mixed, occurrences, strata_of
from radocraft.rows.engines._base import Source
from radocraft.rows.engines._opening import open_source

_OTHERS = np.zeros(0, dtype=np.uint64)


@dataclass(frozen=True)
class Lottery:
    """A row's lot; see `radocraft.rows._folds`.

    Parameters
    ----------
    seed
        What lots are mixed with.
    by_group
        Whether it is the lot of whoever the row is of.
    equal_are_one
        Whether rows with equal features have one lot.
    repeated
        Where they have not: the lots that several rows had when the scorer was fitted, rising.
    """

    seed: int
    by_group: bool
    equal_are_one: bool
    repeated: Lots = field(default_factory=lambda: _OTHERS)

    def first(self, chunk: Chunk, classes: Ints) -> Lots:
        """The lots of rows, before equal ones are told apart."""
        own = lots(chunk.matrix, self.seed)
        if self.by_group and chunk.groups is not None:
            return np.where(chunk.groups == 0, own, chunk.groups)
        if self.equal_are_one:
            return own
        more = [classes.astype(np.float64)]
        more += [] if chunk.values is None else [chunk.values]
        more += [] if chunk.keys is None else [chunk.keys.astype(np.float64)]
        return mixed(own ^ lots(np.column_stack(more), self.seed))


@dataclass
class Drawing:
    """Lots for rows that come one chunk after the other: equal rows are counted, where they are told apart."""

    lottery: Lottery
    seen: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.seen = np.zeros(len(self.lottery.repeated), dtype=np.int64)

    def lots(self, chunk: Chunk, classes: Ints) -> Lots:
        """The lots of the next rows."""
        lot, repeated = self.lottery.first(chunk, classes), self.lottery.repeated
        if not len(repeated):
            return lot
        place = np.searchsorted(repeated, lot).clip(max=len(repeated) - 1)
        several = np.flatnonzero(repeated[place] == lot)
        before = self.seen[place[several]] + occurrences(lot[several])
        self.seen += np.bincount(place[several], minlength=len(repeated))
        later = before > 0
        lot[several[later]] = mixed(lot[several[later]] ^ mixed(before[later].astype(np.uint64)))
        return lot


@dataclass(frozen=True)
class Scorer:
    """What scores a peer's rows.

    Parameters
    ----------
    contract, peer
        What was agreed, and whose scorer this is.
    columns, form
        What the model is given.
    models
        One for each fold, and last the one fitted on all rows; none if scores come from elsewhere.
    maps
        How each of these is calibrated: one map, or one for each class.
    deal, lottery, group
        Which fold a row belongs to.
    performance, reliability
        How good it is out of fold, and its calibration curve (of each class, if there are several).
    rows
        How many rows it was fitted on.
    notes
        What its user should know.
    logit
        Of scores from elsewhere, whether they are probabilities.
    """

    contract: Contract
    peer: str
    columns: tuple[Column, ...]
    form: Form
    models: tuple[Any, ...]
    maps: tuple[tuple[Platt | Line, ...], ...]
    deal: Deal
    lottery: Lottery
    group: str | None
    performance: Performance
    reliability: tuple[tuple[Bin, ...], ...]
    rows: int
    notes: tuple[str, ...] = ()
    logit: bool = False

    @property
    def fingerprint(self) -> str:
        """The contract's."""
        return self.contract.fingerprint

    @property
    def outcome(self) -> Outcome:
        """What is predicted."""
        label = self.contract.label
        return Outcome(0 if isinstance(label, Number) else len(label.codes))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What its scores are called: the feature's name, of several classes with each one's."""
        name = self.contract.score_of(self.peer)[0]
        if self.outcome.classes <= 2:
            return (name,)
        return tuple(f"{name}={value}" for value in self.contract.label.names)

    def classes(self, labels: Ints) -> Ints:
        """The labels' places among the contract's codes."""
        return np.searchsorted(np.array(self.contract.label.codes), labels)

    def raw(self, at: int, matrix: Floats) -> Floats:
        """What one of the models says."""
        if not self.models:
            told = matrix[:, 0]
            return np.where(np.isnan(told), np.nan, raw_log_odds(told)) if self.logit else told
        return raw_scores(self.models[at], given_form(matrix, self.columns, self.form), self.outcome)

    def calibrated(self, at: int, matrix: Floats) -> Floats:
        """... and what that means."""
        told, maps = self.raw(at, matrix), self.maps[at]
        if not maps:
            return told
        if told.ndim == 1:
            return maps[0](told)
        return np.column_stack([each(column) for each, column in zip(maps, told.T, strict=True)])

    def out_of_fold(self, chunk: Chunk, drawing: Drawing) -> Floats:
        """Scores by models that have seen no row of the row's fold."""
        classes = self.classes(chunk.labels)
        fold = self.folds(chunk, drawing.lots(chunk, classes), classes)
        shape = (len(chunk),) if self.outcome.classes <= 2 else (len(chunk), self.outcome.classes)
        out = np.empty(shape)
        for at in range(self.deal.folds):
            rows = np.flatnonzero(fold == at)
            if len(rows):
                out[rows] = self.calibrated(at, chunk.matrix[rows])
        return out

    def folds(self, chunk: Chunk, lot: Lots, classes: Ints) -> Ints:
        """The fold of each row."""
        if self.lottery.by_group:
            nothing = np.zeros_like(classes)
            return self.deal.fold(lot, nothing, nothing)
        return self.deal.fold(lot, strata_of(chunk.signatures, classes, len(self.contract.label.codes)), classes)

    def score(self, data: Any, *, keep: tuple[str, ...] = (), progress: Progress = quiet) -> pa.Table:
        """Score rows that are new: by the model that was fitted on all rows.

        Parameters
        ----------
        data
            Where the rows are; see `open_source`. The label need not be there.
        keep
            Columns to hand through, such as a row's key.
        progress
            Called as the work goes on.
        """
        source = open_source(data)
        batches = list(self.score_batches(source, keep=keep, progress=progress))
        return pa.Table.from_batches(batches)

    def score_batches(
        self, source: Source, *, keep: tuple[str, ...] = (), progress: Progress = quiet
    ) -> Iterator[pa.RecordBatch]:
        """`score` in pieces, for tables larger than memory: columns to keep, place in the agreed grid, scores."""
        check_kept(keep, source)
        asking = Asking(self.reader(source), self.columns, keep=keep, with_label=False)
        for chunk in asking.chunks(source, progress, "scoring", source.row_count()):
            told = self.calibrated(len(self.maps) - 1, chunk.matrix)
            scores = [told] if told.ndim == 1 else list(told.T)
            arrays = [*chunk.kept.columns, pa.array(chunk.signatures), *map(pa.array, scores)]
            yield pa.RecordBatch.from_arrays(arrays, names=[*keep, "signature", *self.names])

    def reader(self, source: Source) -> Reader:
        """How a table's shared features are read; all of the model's columns must be there."""
        kinds = source.kinds()
        shared = [self.contract.column_of(self.peer, shared.name) for shared in self.contract.shared]
        wanted = dict.fromkeys([*shared, *(column.name for column in self.columns)])
        if lacking := [name for name in wanted if name not in kinds]:
            raise MissingColumn(
                f"'{source.name}' lacks {listed(lacking)}, which the scorer of '{self.peer}' was fitted on. "
                "Add them (empty cells are allowed), or fit a scorer without them."
            )
        return Reader(self.contract, self.peer, kinds)
