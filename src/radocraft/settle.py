"""Constants that the contract leaves to a peer's data: knots of splines, units of factors in products.

They are rounded, fixed before anything is summed, kept in the tally and
released with the part, since whoever uses the model needs them.
"""

from __future__ import annotations

import numpy as np
from sqlglot import exp

from radocraft.arrays import Floats
from radocraft.encoding import Constants, Reader
from radocraft.features import Interact, Numeric, Spline
from radocraft.sources.base import ROWS, Source

_TAIL = 0.01


def settle(source: Source, reader: Reader) -> Constants:
    """Ask the data, once, for every constant the contract leaves open."""
    features = reader.contract.peers[reader.peer].features
    splines = {name: f.knots for name, f in features.items() if isinstance(f, Spline) and isinstance(f.knots, int)}
    factors = {factor for f in features.values() if isinstance(f, Interact) for factor in f.of}
    open_numbers = [n for n in sorted(factors) if isinstance(f := features.get(n), Numeric) and f.centre is None]
    statistics: list[exp.Expr] = []
    for name, count in splines.items():
        statistics += [quantile(reader.number(name), level) for level in np.linspace(_TAIL, 1 - _TAIL, count)]
    for name in open_numbers:
        value = reader.number(name)
        statistics += [exp.func("AVG", value), exp.func("STDDEV_SAMP", value.copy())]
    if not statistics:
        return {}
    named = [statistic.as_(f"s{at}") for at, statistic in enumerate(statistics)]
    row = source.table(exp.select(*named).from_(ROWS)).to_pylist()[0]
    answers = iter([row[f"s{at}"] for at in range(len(named))])
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
