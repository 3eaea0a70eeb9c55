"""From rows to exact integer sums in which each row (or person) has a bounded share. They never leave.

Each row's private columns, in the contract's units, are scaled down to the
policy's norm and become integers; block sums and second moments of these are
exact. The count of a block is one more coordinate, weighted. A person's rows
beyond the agreed number are left out by the engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlglot import exp

from radocraft.arrays import Floats, Ints, add_up, first_of_each, number_rows
from radocraft.checks import check_columns, check_labels, check_read, check_rows
from radocraft.contract import Contract
from radocraft.encoding import Column, Reader, summed_columns
from radocraft.errors import PolicyRefusal
from radocraft.expressions import moved
from radocraft.moments import dense
from radocraft.pieces import check_new
from radocraft.policy.rules import Privacy
from radocraft.privacy.fixed_point import bounded
from radocraft.progress import Progress, quiet
from radocraft.sources import open_source
from radocraft.sources.base import ROWS

GRID = 2**20
COARSE = 2**10


@dataclass(frozen=True)
class Bounded:
    """Integer sums by block and second moments over the table.

    ``sums`` are in units of ``row_norm / GRID``, ``moments`` (the upper triangle)
    in units of ``(row_norm / COARSE)^2``.
    """

    peer: str
    columns: tuple[Column, ...]
    codes: Ints
    labels: Ints
    rows: Ints
    sums: Ints
    moments: Ints

    @classmethod
    def of_rows(
        cls, peer: str, columns: tuple[Column, ...], *, codes: Ints, labels: Ints, values: Floats, norm: float
    ) -> Bounded:
        """The sums of coded rows in memory; ``values`` in the contract's units, NaN where missing."""
        block = number_rows(np.column_stack([codes, labels]))
        first = first_of_each(block)
        coarse = bounded(values, norm, COARSE)
        upper = np.triu_indices(values.shape[1])
        return cls(
            peer,
            columns,
            codes=codes[first],
            labels=labels[first],
            rows=np.bincount(block, minlength=len(first)).astype(np.int64),
            sums=add_up(bounded(values, norm, GRID), block, len(first)),
            moments=(coarse.T @ coarse)[upper],
        )

    def __add__(self, other: Bounded) -> Bounded:
        keys = np.vstack([np.column_stack([side.codes, side.labels]) for side in (self, other)])
        block = number_rows(keys)
        first = first_of_each(block)
        return Bounded(
            self.peer,
            self.columns,
            codes=keys[first, :-1],
            labels=keys[first, -1],
            rows=add_up(np.concatenate([self.rows, other.rows]), block, len(first)),
            sums=add_up(np.concatenate([self.sums, other.sums]), block, len(first)),
            moments=self.moments + other.moments,
        )


def craft_bounded(data: Any, contract: Contract, peer: str, privacy: Privacy, *, progress: Progress = quiet) -> Bounded:
    """Sum one peer's table in bounded integers."""
    source = open_source(data)
    check_new((), source.pieces)
    reader = Reader(contract, peer, source.kinds())
    columns = summed_columns(contract, peer)
    check_units(columns)
    check_columns(reader, source)
    values = [moved(v, c.centre or 0.0, c.scale or 1.0) for v, c in zip(reader.summed(), columns, strict=True)]
    keys = [reader.code(shared).as_(f"code_{at}") for at, shared in enumerate(contract.shared)]
    picked = [*keys, reader.label().as_("label"), (reader.misread() or exp.false()).as_("misread")]
    picked += [value.as_(f"value_{at}") for at, value in enumerate(values)]
    query = exp.select(*picked).from_(rows_of(privacy, source.kinds()))
    total, done = None, 0
    for batch in source.batches(query):
        if batch.column("misread").to_numpy(zero_copy_only=False).any():
            check_read(reader, source)
        check_labels(batch.column("label").null_count, source, reader)
        matrix = dense(batch.drop_columns(["misread"]))
        width = len(keys)
        codes, labels = matrix[:, :width].astype(np.int64), matrix[:, width].astype(np.int64)
        values_here = matrix[:, width + 1 :]
        piece = Bounded.of_rows(peer, columns, codes=codes, labels=labels, values=values_here, norm=privacy.row_norm)
        total = piece if total is None else total + piece
        done += batch.num_rows
        progress("bounded sums", done, 0)
    check_rows(done, source)
    if total is None:
        raise AssertionError("no rows, and no error about it")
    return total


def rows_of(privacy: Privacy, kinds: dict[str, Any]) -> exp.Expr:
    """The table, or at most so many rows of each person."""
    if privacy.person is None:
        return ROWS.copy()
    if privacy.person not in kinds:
        raise PolicyRefusal(f"The policy's person column '{privacy.person}' is not in the table. Correct `person`.")
    own = exp.column(privacy.person, quoted=True)
    order = exp.Order(expressions=[exp.Ordered(this=own.copy())])
    rank = exp.Window(this=exp.RowNumber(), partition_by=[own], order=order).as_("radocraft_rank")
    ranked = exp.select("*", rank).from_(ROWS).subquery("ranked")
    few = exp.LTE(this=exp.column("radocraft_rank"), expression=exp.Literal.number(privacy.rows_per_person))
    return exp.select("*").from_(ranked).where(few).subquery("radocraft_persons")


def check_units(columns: tuple[Column, ...]) -> None:
    """Centre and scale must come from the contract: taken from the data they would tell about it."""
    if free := sorted({column.feature for column in columns if column.centre is None}):
        raise PolicyRefusal(
            "Under differential privacy centre and scale must be in the contract, since taken from the data they would "
            f"tell about single rows. Agree on them for: {', '.join(free)}."
        )
