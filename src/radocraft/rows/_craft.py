"""From a peer's rows to its tally: sums by block, and moments by label.

The table is read where it is, in one pass (`stream`) or two (`totals`),
whichever is cheaper. Rows are bounded on the way (`bounds`), unless exact sums are
asked for. Memory is bounded by blocks and columns, never by rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from radocraft.arrays import Floats, Ints, add_up, first_of_each, number_rows, one_thread
from radocraft.contract import Column, Constants, Contract, moment_labels, open_constants, summed_columns, units_of
from radocraft.errors import ContractMismatch
from radocraft.gate import Noise, Spend, estimate_units
from radocraft.progress import Progress, quiet
from radocraft.rows._checks import check_bounded, check_columns, check_finite, check_labels, check_read, check_rows
from radocraft.rows._cleaning import cleaned
from radocraft.rows._constants import check_constants, count_between, estimate_constants, measure_constants
from radocraft.rows._encoding import Reader
from radocraft.rows._moments import second_moments
from radocraft.rows._persons import Persons
from radocraft.rows._ranking import Ranking
from radocraft.rows._shift import Shift, ask_sample, gaps_of, guess_shift
from radocraft.rows._spelling import spelled_otherwise
from radocraft.rows._stream import stream_totals, streams, sums_size
from radocraft.rows._totals import Totals, ask_blocks, ask_totals
from radocraft.rows.engines._base import Source
from radocraft.rows.engines._opening import open_source
from radocraft.sums import GRID, Bounds, Piece, Tally

_CACHE = 2**26
_BOUNDS = Bounds()


@one_thread
def craft(
    data: Any,
    contract: Contract,
    peer: str,
    *,
    bounds: Bounds | None = _BOUNDS,
    onto: Tally | None = None,
    constants: Mapping[str, Sequence[float]] | None = None,
    noise: Noise | None = None,
    say: Callable[[str], None] | None = None,
    progress: Progress = quiet,
) -> Tally:
    """Tally one peer's table under a contract.

    Parameters
    ----------
    data
        Where the rows are: a path, a data frame, a source; see `open_source`.
    contract, peer
        What was agreed, and which of its peers this table belongs to.
    bounds
        How much of a row is summed; None for exact sums.
    onto
        A tally of earlier rows to add these to, with the same bounds; its constants are used.
    constants
        What the contract leaves open, by name: centre and scale of numbers, knots of splines. Without,
        they come from the data; with bounds on rows, by noisy counts, whose cost is `Tally.units_rho`.
    noise
        Where the noise in these counts comes from.
    say
        Told of features many of whose rows have no agreed category. This is for people at the peer, and leaves nowhere.
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
    ... peers.bank.features = { income = { kind = "numeric", centre = 0, scale = 10 } }
    ... ''')
    >>> rows = pa.table({"bad": [0, 0, 1], "age": [30, 35, 50], "income": [2.0, 3.0, 900.0]})
    >>> tally = craft(rows, contract, "bank")
    >>> tally.rows, tally.sums.ravel() * tally.unit
    (array([2, 1]), array([ 5., 15.]))
    >>> craft(rows, contract, "bank", bounds=None).sums.ravel()
    array([  5., 900.])
    """
    Contract.expect(contract, "craft(data, contract, peer)")
    contract.peer(peer)
    if contract.of_scores:
        raise ContractMismatch(
            f"In the contract '{contract.name}' each peer adds a score, so '{peer}' has no columns to sum. Fit and "
            "score with `share`, or agree on a contract of columns (`radocraft contract new --columns`)."
        )
    _check_onto(onto, contract, peer, bounds)
    source = cleaned(open_source(data), contract, peer)
    Piece.check_new(onto.pieces if onto else (), source.pieces)
    reader = Reader(contract, peer, source.kinds())
    columns = summed_columns(contract, peer)
    check_columns(reader, source)
    reader, units_rho = _with_constants(source, reader, bounds, onto.constants if onto else constants, noise)
    if bounds is not None:
        reader, shift = bounded(reader, bounds)
    else:
        shift = guess_shift(source, reader, columns) if onto is None else onto_shift(onto, source, reader, columns)
    totals = (stream_totals if streams(source, reader) else ask_totals)(source, reader, shift, progress)
    _check(totals, source, reader, columns)
    if say is not None:
        for note in spelled_otherwise(source, reader):
            say(note)
    tally = Tally(
        fingerprint=contract.fingerprint,
        peer=peer,
        columns=tuple(column.name for column in columns),
        codes=totals.codes,
        labels=totals.labels,
        rows=totals.rows,
        sums=totals.sums,
        present=totals.present,
        moments=totals.moments,
        origin=shift.origin,
        unit=shift.unit,
        bounds=bounds,
        constants=reader.constants,
        units_rho=units_rho,
        pieces=source.pieces,
    )
    return onto + tally if onto else tally


def craft_rows(
    contract: Contract,
    peer: str,
    columns: tuple[str, ...],
    *,
    codes: Ints,
    labels: Ints,
    values: Floats,
    bounds: Bounds | None = _BOUNDS,
    constants: Constants | None = None,
    noise: Noise | None = None,
) -> Tally:
    """The tally of coded rows in memory: per row its codes, its label and its raw values, NaN where missing.

    All columns are plain numbers. Other arguments are as for `craft`.
    """
    spend = Spend(0.0)
    if bounds is not None and constants is None:
        finite = {name: values[np.isfinite(values[:, index]), index] for index, name in enumerate(columns)}

        def count(edges: dict[str, Floats]) -> dict[str, Ints]:
            return {name: count_between(finite[name], index) for name, index in edges.items()}

        wanted = open_constants(contract, peer)
        constants, spend = estimate_units(wanted, count, len(values), Noise() if noise is None else noise)
    constants, present = constants or {}, ~np.isnan(values)
    if bounds is None:
        origin: Floats = np.where(present, values, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
        unit, values = np.ones(len(columns)), values - origin
    else:
        origin, scale = units_of(contract, peer, constants)
        unit, values = scale / GRID, bounds.of(contract, peer, origin, scale).bounded(values)
        present = np.ones_like(present)
    block = number_rows(np.column_stack([codes, labels]))
    first = first_of_each(block)
    known = np.array([*moment_labels(contract, peer)])
    return Tally(
        fingerprint=contract.fingerprint,
        peer=peer,
        columns=columns,
        codes=codes[first],
        labels=labels[first],
        rows=np.bincount(block).astype(np.int64),
        sums=add_up(np.where(present, values, 0.0), block, len(first)),
        present=add_up(present.astype(np.int64), block, len(first)),
        moments=second_moments(values, np.searchsorted(known[1:], labels, side="right"), len(known)),
        origin=origin,
        unit=unit,
        bounds=bounds,
        constants=constants,
        units_rho=spend.rho,
    )


def _check_onto(onto: Tally | None, contract: Contract, peer: str, bounds: Bounds | None) -> None:
    if onto is None:
        return
    if (onto.fingerprint, onto.peer) != (contract.fingerprint, peer):
        raise ContractMismatch(
            f"The tally to add to was crafted under another contract or by another peer than '{peer}'. "
            "Craft the whole table anew."
        )
    if onto.bounds != bounds:
        raise ContractMismatch(
            "The tally to add to has other bounds on rows. Craft the whole table anew, or go back to the policy "
            "under which it was made."
        )
    if bounds is not None:
        bounds.check_adding()


def _with_constants(
    source: Source,
    reader: Reader,
    bounds: Bounds | None,
    given: Mapping[str, Sequence[float]] | None,
    noise: Noise | None,
) -> tuple[Reader, float]:
    """The reader with all constants, and the rho that was spent on them."""
    constants: Constants
    if bounds is None:
        constants = measure_constants(source, reader) if given is None else {n: tuple(v) for n, v in given.items()}
        return replace(reader, constants=constants), 0.0
    if given is not None:
        return replace(reader, constants=check_constants(reader.contract, reader.peer, given)), 0.0
    constants, rho = estimate_constants(source, reader, bounds, noise)
    return replace(reader, constants=constants), rho


def _check(totals: Totals, source: Source, reader: Reader, columns: tuple[Column, ...]) -> None:
    if totals.misread:
        check_read(reader, source)
    check_rows(len(totals.rows), source)
    check_labels(totals.unlabelled, source, reader)
    if totals.infinite:
        check_bounded(reader, columns, source)
    check_finite(totals.moments, columns, source)


def bounded(reader: Reader, bounds: Bounds) -> tuple[Reader, Shift]:
    """The reader of the rows that count, and how their values are bounded."""
    centre, scale = units_of(reader.contract, reader.peer, reader.constants)
    bounding = bounds.of(reader.contract, reader.peer, centre, scale)
    plain = bounding.of(reader.layout.plain)
    persons = None if bounds.person is None else Persons(bounds.person, bounds.rows_per_person, plain)
    return replace(reader, persons=persons), Shift(centre, scale / GRID, bounding=bounding)


def onto_shift(tally: Tally, source: Source, reader: Reader, columns: tuple[Column, ...]) -> Shift:
    """How to move further rows, so that their tally adds to this one."""
    return Shift(tally.origin, tally.unit, gaps_of(ask_sample(source, reader, columns)))


def relabelled(tally: Tally, data: Any, contract: Contract, ranking: Ranking) -> Tally:
    """The tally of the same rows by signature and the label that a ranking gives them; moments do not change."""
    source = cleaned(open_source(data), contract, tally.peer)
    reader = Reader(contract, tally.peer, source.kinds(), tally.constants, ranking)
    if tally.bounds is not None:
        reader, shift = bounded(reader, tally.bounds)
    else:
        gaps = tuple(np.flatnonzero(tally.present.sum(axis=0) < tally.total).tolist())
        shift = Shift(tally.origin, tally.unit, gaps)
    totals = block_totals(source, reader, shift)
    return replace(
        tally,
        codes=totals.codes,
        labels=totals.labels,
        rows=totals.rows,
        sums=totals.sums,
        present=totals.present,
    )


def block_totals(source: Source, reader: Reader, shift: Shift) -> Totals:
    """The totals without moments, by the engine's GROUP BY, which is quicker while its sums stay in the cache."""
    if _CACHE < sums_size(reader) <= source.room:
        return stream_totals(source, reader, shift, products=False)
    return ask_blocks(source, reader, shift)[0]
