"""Constants that the contract leaves to a peer's data: knots of splines, centre and scale of numbers.

They are fixed before anything is summed, kept in the tally and released with the
part, since whoever uses the model needs them. With bounds on rows they come from
noisy counts of a sample's values in public bins (`gate.units`); for exact sums from
the table itself, rounded: knots, and the units of factors in products.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from sqlglot import exp

from radocraft.arrays import Floats, Ints
from radocraft.contract import Constants, Contract, Interact, Quantity, Spline, open_constants
from radocraft.errors import ContractMismatch
from radocraft.gate import Noise, estimate_units
from radocraft.rows._checks import check_rows
from radocraft.rows._encoding import Reader
from radocraft.rows.engines._base import ROWS, Source
from radocraft.sums import Bounds

_TAIL = 0.01
_SAMPLE = 100_000


def estimate_constants(source: Source, reader: Reader, bounds: Bounds, noise: Noise | None) -> tuple[Constants, float]:
    """Constants from a sample, by noisy counts, and the rho this costs; nothing if the contract leaves none open."""
    wanted = open_constants(reader.contract, reader.peer)
    if not wanted:
        return {}, 0.0
    named = [reader.number(name).as_(f"value_{index}") for index, name in enumerate(wanted)]
    sample = source.table(exp.select(*named).from_(sample_of(source, bounds)))
    check_rows(sample.num_rows, source)
    values = {name: known(sample.column(f"value_{index}")) for index, name in enumerate(wanted)}

    def count(edges: dict[str, Floats]) -> dict[str, Ints]:
        return {name: count_between(values[name], index) for name, index in edges.items()}

    drawn, per_unit = Noise() if noise is None else noise, bounds.rows_per_person
    constants, spend = estimate_units(wanted, count, sample.num_rows, drawn, per_unit=per_unit)
    return check_constants(reader.contract, reader.peer, constants), spend.rho


def sample_of(source: Source, bounds: Bounds) -> exp.Expr:
    """Some of the table's rows; of one person no more than are summed.

    Further rows of a person are left out before the sample is cut off at its size: whoever has many, and is
    taken out of the table, makes room for no more rows of others than that.
    """
    if bounds.person is None:
        return source.sample(_SAMPLE).subquery("peer_sample")
    order = exp.column(bounds.person, quoted=True), exp.column("radocraft_place")
    kept = exp.select(exp.Star()).from_(few_of_each(bounds))
    return kept.order_by(*order).limit(_SAMPLE).subquery("peer_sample")


def few_of_each(bounds: Bounds) -> exp.Expr:
    """The table; with persons, some rows of each, no more than are summed."""
    if bounds.person is None:
        return ROWS.copy()
    person = exp.column(bounds.person, quoted=True)
    order = exp.Order(expressions=[exp.Ordered(this=person.copy())])
    place = exp.Window(this=exp.RowNumber(), partition_by=[person], order=order).as_("radocraft_place")
    placed = exp.select(exp.Star(), place).from_(ROWS).subquery("placed")
    few = exp.LTE(this=exp.column("radocraft_place"), expression=exp.Literal.number(bounds.rows_per_person))
    return exp.select(exp.Star()).from_(placed).where(few).subquery("few")


def known(column: pa.ChunkedArray) -> Floats:
    """A column's finite values."""
    values: Floats = column.to_numpy()
    return values[np.isfinite(values)]


def count_between(values: Floats, edges: Floats) -> Ints:
    """How many of some finite values lie in each bin between rising edges; the last bin is closed.

    Examples
    --------
    >>> count_between(np.array([0.0, 1.0, 1.5, 2.0, 9.0]), np.array([0.0, 1.0, 2.0]))
    array([1, 3])
    """
    return np.histogram(values, edges)[0].astype(np.int64)


def check_constants(contract: Contract, peer: str, given: Mapping[str, Sequence[float]]) -> Constants:
    """Those of some constants that the contract leaves open; all must be there, and make sense."""
    wanted = open_constants(contract, peer)
    if missing := sorted(wanted.keys() - given.keys()):
        raise ContractMismatch(
            f"The contract leaves {', '.join(missing)} to the data, and the constants given do not name them. "
            "Give all of them or none."
        )
    constants = {name: tuple(float(value) for value in given[name]) for name in wanted}
    for name, values in constants.items():
        rising = all(low < high for low, high in pairwise(values))
        sound = len(values) <= wanted[name] and rising if wanted[name] else len(values) == 2 and values[1] > 0
        if not (sound and values and all(map(math.isfinite, values))):
            raise ContractMismatch(
                f"The constants of '{name}' make no sense: a number has a centre and a positive scale, "
                "a spline its knots in rising order."
            )
    return constants


def measure_constants(source: Source, reader: Reader) -> Constants:
    """Ask the data, once, for every constant that exact sums need."""
    features = reader.contract.peers[reader.peer].features
    splines = {name: f.knots for name, f in features.items() if isinstance(f, Spline) and isinstance(f.knots, int)}
    factors = {factor for f in features.values() if isinstance(f, Interact) for factor in f.of}
    open_numbers = [n for n in sorted(factors) if isinstance(f := features.get(n), Quantity) and f.centre is None]
    statistics: list[exp.Expr] = []
    for name, count in splines.items():
        statistics += [quantile(reader.number(name), level) for level in np.linspace(_TAIL, 1 - _TAIL, count)]
    for name in open_numbers:
        value = reader.number(name)
        statistics += [exp.func("AVG", value), exp.func("STDDEV_SAMP", value.copy())]
    if not statistics:
        return {}
    named = [statistic.as_(f"s{index}") for index, statistic in enumerate(statistics)]
    row = source.table(exp.select(*named).from_(ROWS)).to_pylist()[0]
    answers = iter([row[f"s{index}"] for index in range(len(named))])
    constants = {name: rounded([next(answers) for _ in range(count)]) for name, count in splines.items()}
    for name in open_numbers:
        constants[name] = units(next(answers), next(answers))
    return constants


def quantile(value: exp.Expr, level: float) -> exp.Expr:
    """The value below which that share of the rows lies."""
    place = exp.Literal.number(f"{level:.6f}")
    order = exp.Order(expressions=[exp.Ordered(this=value.copy())])
    return exp.WithinGroup(this=exp.PercentileCont(this=place), expression=order)


def rounded(values: list[float | None]) -> tuple[float, ...]:
    """Distinct values, to a hundredth of their range: no row's own value is needed for a knot."""
    known: Floats = np.array([value for value in values if value is not None and np.isfinite(value)])
    if not len(known):
        return ()
    reach = float(np.ptp(known)) or abs(float(known[0])) or 1.0
    return tuple(np.unique(np.round(known, 2 - int(np.floor(np.log10(reach))))).tolist())


def units(mean: float | None, deviation: float | None) -> tuple[float, float]:
    """A rounded centre and scale."""
    scale = float(f"{deviation:.2g}") if deviation is not None and np.isfinite(deviation) and deviation > 0 else 1.0
    centre = scale * round(mean / scale, 1) if mean is not None and np.isfinite(mean) else 0.0
    return centre, scale
