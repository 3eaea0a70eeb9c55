"""From a peer's rows to its tally: sums by block, and moments.

The table is read where it is, in one pass (`stream`) or two (`totals`),
whichever is cheaper; of columns of three values one is counted beside. Memory is
bounded by blocks and columns, never by rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sqlglot import exp

from radocraft.arrays import Ints, one_thread
from radocraft.checks import check_columns, check_finite, check_labels, check_read, check_rows
from radocraft.contract import Contract
from radocraft.encoding import Column, Reader, summed_columns
from radocraft.errors import ContractMismatch
from radocraft.expressions import double
from radocraft.pieces import check_new
from radocraft.progress import Progress, quiet
from radocraft.ranking import Ranking
from radocraft.settle import settle
from radocraft.shift import Shift, ask_sample, gaps_of, guess_shift
from radocraft.sources import Source, open_source
from radocraft.sources.base import ROWS
from radocraft.stream import stream_totals, streams, sums_size
from radocraft.tally import Tally
from radocraft.totals import Totals, ask_blocks, ask_totals
from radocraft.usual import next_values

_ALIKE = 1e-9
_CACHE = 2**26


@one_thread
def craft(data: Any, contract: Contract, peer: str, *, onto: Tally | None = None, progress: Progress = quiet) -> Tally:
    """Tally one peer's table under a contract.

    Parameters
    ----------
    data
        Where the rows are: a path, a data frame, a source; see `open_source`.
    contract, peer
        What was agreed, and which of its peers this table belongs to.
    onto
        A tally of earlier rows to add these to.
    progress
        Called as the work goes on.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from radocraft import Contract, craft
    >>> contract = Contract.parse('''
    ... name = "risk"
    ... label = { column = "bad", positive = 1, negative = 0 }
    ... shared = [{ name = "age", edges = [40] }]
    ... peers.bank.features = { income = { kind = "numeric", centre = 0, scale = 1 } }
    ... ''')
    >>> rows = pa.table({"bad": [0, 0, 1], "age": [30, 35, 50], "income": [2.0, 3.0, 1.0]})
    >>> tally = craft(rows, contract, "bank")
    >>> tally.rows, tally.sums.ravel()
    (array([2, 1]), array([5., 1.]))
    """
    contract.peer(peer)
    if onto is not None and (onto.fingerprint, onto.peer) != (contract.fingerprint, peer):
        raise ContractMismatch(
            f"The tally to add to was crafted under another contract or by another peer than '{peer}'. "
            "Craft the whole table anew."
        )
    source = open_source(data)
    check_new(onto.pieces if onto else (), source.pieces)
    reader = Reader(contract, peer, source.kinds())
    columns = summed_columns(contract, peer)
    check_columns(reader, source)
    reader = replace(reader, constants=onto.constants if onto else settle(source, reader))
    shift = guess_shift(source, reader, columns) if onto is None else onto_shift(onto, source, reader, columns)
    totals = (stream_totals if streams(source, reader) else ask_totals)(source, reader, shift, progress)
    if totals.misread:
        check_read(reader, source)
    check_rows(len(totals.rows), source)
    check_labels(totals.unlabelled, source, reader)
    check_finite(totals.moments, columns, source)
    tally = Tally(
        fingerprint=contract.fingerprint,
        peer=peer,
        columns=tuple(column.name for column in columns),
        codes=totals.codes,
        labels=totals.labels,
        rows=totals.rows,
        sums=totals.sums,
        present=totals.present,
        others=totals.others,
        moments=totals.moments,
        origin=shift.origin,
        unit=shift.unit,
        usual=shift.usual,
        next=shift.next,
        next_rows=totals.others.sum(axis=0),
        constants=reader.constants,
        pieces=source.pieces,
    )
    tally = replace(tally, next_rows=ask_next_rows(source, reader, tally))
    return onto + tally if onto else tally


def onto_shift(tally: Tally, source: Source, reader: Reader, columns: tuple[Column, ...]) -> Shift:
    """How to move further rows, so that their tally adds to this one."""
    sample = ask_sample(source, reader, columns)
    after = np.where(np.isnan(tally.next), next_values(sample, tally.usual), tally.next)
    return Shift(tally.origin, tally.unit, tally.usual, after, gaps_of(sample))


def relabelled(tally: Tally, data: Any, contract: Contract, ranking: Ranking) -> Tally:
    """The tally of the same rows by signature and the label that a ranking gives them; moments do not change."""
    source = open_source(data)
    reader = Reader(contract, tally.peer, source.kinds(), tally.constants, ranking)
    gaps = tuple(np.flatnonzero(tally.present.sum(axis=0) < tally.total).tolist())
    totals = block_totals(source, reader, Shift(tally.origin, tally.unit, tally.usual, tally.next, gaps))
    return replace(
        tally,
        codes=totals.codes,
        labels=totals.labels,
        rows=totals.rows,
        sums=totals.sums,
        present=totals.present,
        others=totals.others,
    )


def block_totals(source: Source, reader: Reader, shift: Shift) -> Totals:
    """The totals without moments, by the engine's GROUP BY, which is quicker while its sums stay in the cache."""
    if _CACHE < sums_size(reader) <= source.room:
        return stream_totals(source, reader, shift, products=False)
    return ask_blocks(source, reader, shift)[0]


def ask_next_rows(source: Source, reader: Reader, tally: Tally) -> Ints:
    """How many rows have the next values; only of a column with yet another value need it be asked."""
    out: Ints = np.where(np.isnan(tally.next), 0, tally.others.sum(axis=0))
    same = np.abs(tally.second - tally.next) <= _ALIKE * np.abs(tally.usual - tally.next)
    if len(asked := np.flatnonzero((out > 0) & ~same)):
        values = reader.summed()
        equal = {at: exp.EQ(this=values[at], expression=double(float(tally.next[at]))) for at in asked.tolist()}
        counts = [exp.func("COUNT", exp.Case().when(one, double(1))).as_(f"rows_{at}") for at, one in equal.items()]
        answer = source.table(exp.select(*counts).from_(reader.rows(ROWS)))
        out[asked] = [answer.column(f"rows_{at}").to_pylist()[0] for at in equal]
    return out
