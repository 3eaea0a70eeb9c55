"""A peer's rows as a scorer reads them, in chunks of tens of thousands, from any engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from sqlglot import exp

from radocraft.arrays import Floats, Ints
from radocraft.contract import Number
from radocraft.errors import MissingColumn, NotFinite
from radocraft.progress import Progress, quiet
from radocraft.rows._checks import check_labels, check_read, check_rows, listed
from radocraft.rows._cleaning import as_it_is
from radocraft.rows._encoding import Reader
from radocraft.rows._estimators import Target
from radocraft.rows._expressions import NUMBERS, text
from radocraft.rows._features import ScorerColumn
from radocraft.rows._folds import Lots, lots_of_text
from radocraft.rows._keys import KeyReader
from radocraft.rows._persons import Persons
from radocraft.rows.engines._base import ROWS, Named, Source
from radocraft.sums import Bounding, Steps

_CHUNK = 2**16
_NOTHING = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Chunk:
    """Some rows.

    Parameters
    ----------
    signatures
        Their place in the grid of agreed codes.
    matrix
        The model's columns; categories as codes, NaN where missing.
    labels, values
        The label's codes and, if it is a number, its values; empty if not asked for.
    keys
        The key's values; None without a key.
    groups
        A lot for whoever the row is of, 0 if it does not say; None without such a column.
    kept
        Columns to hand through.
    """

    signatures: Ints
    matrix: Floats
    labels: Ints
    values: Floats | None
    keys: Ints | None
    groups: Lots | None
    kept: pa.RecordBatch

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.signatures)

    def take(self, rows: Ints) -> Chunk:
        """Some of them, in this order."""
        return Chunk(
            self.signatures[rows],
            self.matrix[rows],
            self.labels[rows],
            None if self.values is None else self.values[rows],
            None if self.keys is None else self.keys[rows],
            None if self.groups is None else self.groups[rows],
            self.kept,
        )


@dataclass(frozen=True)
class Asking:
    """What to ask of each row.

    Parameters
    ----------
    reader
        How shared features and the label are read.
    columns
        The model's.
    key
        How the key is read, if it is asked for.
    group
        The column that says whose a row is, if folds go by it.
    person, most
        The column that says whose a row is, if only so many rows of each count.
    keep
        Columns to hand through.
    with_label
        Whether the label is asked for; then every row must have one.
    """

    reader: Reader
    columns: tuple[ScorerColumn, ...]
    key: KeyReader | None = None
    group: str | None = None
    person: str | None = None
    most: int = 1
    keep: tuple[str, ...] = ()
    with_label: bool = True
    seed: int = 0

    @property
    def target(self) -> Target:
        """What is to be predicted."""
        return Target(0 if self.number is not None else len(self.reader.contract.label.codes))

    @property
    def number(self) -> Number | None:
        """The label, if it is a number and asked for."""
        label = self.reader.contract.label
        return label if isinstance(label, Number) and self.with_label else None

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many codes each shared feature has."""
        return tuple(len(shared.codes) for shared in self.reader.contract.shared)

    def query(self, source: Source) -> exp.Select:
        """One statement for all of it."""
        reader = self.reader
        asked = [reader.code(shared).as_(f"code_{at}") for at, shared in enumerate(reader.contract.shared)]
        for at, column in enumerate(self.columns):
            asked.append(column.expression(reader.kinds[column.name]).as_(f"value_{at}"))
        if self.with_label:
            asked.append(reader.label().as_("label"))
        if self.number is not None:
            asked.append(reader.number(self.number.column).as_("target"))
        if self.key is not None:
            asked.append(self.key.expression().as_("key"))
        if self.group is not None:
            asked.append(text(exp.column(self.group, quoted=True)).as_("whose"))
        asked.append(exp.func("COALESCE", reader.misread() or exp.false(), exp.false()).as_("misread"))
        asked += [as_it_is(source, name).as_(f"keep_{at}") for at, name in enumerate(self.keep)]
        return exp.select(*asked).from_(self._relation())

    def _relation(self) -> exp.Expr:
        if self.person is None:
            return ROWS
        reader = self.reader
        numbers = [c for c in self.columns if reader.kinds[c.name] in (*NUMBERS, "boolean")]
        values = [c.expression(reader.kinds[c.name]) for c in numbers]
        words = [c for c in self.columns if reader.kinds[c.name] == "text"]
        values += [exp.cast(exp.func("LENGTH", text(exp.column(c.name, quoted=True))), "DOUBLE") for c in words]
        step = Steps(0.0, -(2.0**20), 2.0**20, 1024.0, 0.5)
        persons = Persons(self.person, self.most, Bounding((step,) * len(values), 1))
        codes = [reader.code(shared) for shared in reader.contract.shared]
        label = exp.func("COALESCE", reader.label(), exp.Literal.number(-2))
        return persons.rows(ROWS, [*codes, label], values)

    def chunks(
        self, source: Source, progress: Progress = quiet, doing: str = "reading rows", total: int = 0
    ) -> Iterator[Chunk]:
        """The rows, checked; there must be some."""
        count = 0
        progress(doing, 0, total)
        with closing(source.batches(self.query(source))) as batches:
            for batch in merged(batches):
                if misread(batch):
                    check_read(self.reader, source)
                yield self.read(batch, source)
                count += batch.num_rows
                progress(doing, count, total)
        check_rows(count, source)

    def read(self, batch: pa.RecordBatch, source: Named) -> Chunk:
        """What the engine gave, as numbers."""
        matrix = np.empty((batch.num_rows, len(self.columns)))
        for at, column in enumerate(self.columns):
            matrix[:, at] = column.values(batch.column(f"value_{at}"))
        target = None if self.number is None else _doubles(batch.column("target"))
        self._check_finite(matrix, target, source)
        return Chunk(
            self._signatures(batch),
            matrix,
            self._labels(batch, source),
            target,
            None if self.key is None else self.key.numbers(batch.column("key")),
            None if self.group is None else lots_of_text(batch.column("whose"), self.seed),
            batch.select([f"keep_{at}" for at in range(len(self.keep))]),
        )

    def _signatures(self, batch: pa.RecordBatch) -> Ints:
        if not self.shape:
            return np.zeros(batch.num_rows, dtype=np.int64)
        codes = [batch.column(f"code_{at}").to_numpy(zero_copy_only=False) for at in range(len(self.shape))]
        return np.asarray(np.ravel_multi_index([code.astype(np.int64) for code in codes], self.shape), dtype=np.int64)

    def _labels(self, batch: pa.RecordBatch, source: Named) -> Ints:
        if not self.with_label:
            return _NOTHING
        labels = batch.column("label")
        check_labels(labels.null_count > 0, source, self.reader)
        return np.asarray(labels.to_numpy(zero_copy_only=False), dtype=np.int64)

    def _check_finite(self, matrix: Floats, target: Floats | None, source: Named) -> None:
        names = [column.name for at, column in enumerate(self.columns) if np.isinf(matrix[:, at]).any()]
        if target is not None and self.number is not None and np.isinf(target).any():
            names.append(self.reader.contract.column_of(self.reader.peer, self.number.column))
        if names:
            raise NotFinite(
                f"{listed(names)} in '{source.name}' holds infinities. "
                "Replace them by missing values or finite numbers."
            )


def _doubles(column: pa.Array) -> Floats:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def misread(batch: pa.RecordBatch) -> bool:
    """Whether a cell holds text where the contract says otherwise."""
    return bool(batch.column("misread").true_count)


def merged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= _CHUNK:
            yield from _one(held)
            held, rows = [], 0
    if rows:
        yield from _one(held)


def _one(held: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    return held if len(held) == 1 else pa.Table.from_batches(held).combine_chunks().to_batches()


def joined(chunks: list[Chunk]) -> Chunk:
    """All of them as one."""
    first = chunks[0]
    return Chunk(
        np.concatenate([c.signatures for c in chunks]),
        np.vstack([c.matrix for c in chunks]),
        np.concatenate([c.labels for c in chunks]),
        None if first.values is None else np.concatenate([c.values for c in chunks if c.values is not None]),
        None if first.keys is None else np.concatenate([c.keys for c in chunks if c.keys is not None]),
        None if first.groups is None else np.concatenate([c.groups for c in chunks if c.groups is not None]),
        first.kept,
    )


def check_kept(keep: tuple[str, ...], source: Source) -> None:
    """The columns to hand through must be there."""
    kinds = source.kinds()
    if unknown := [name for name in keep if name not in kinds]:
        raise MissingColumn(f"There is no column {listed(unknown)} to keep. There are {listed(list(kinds))}.")
