"""Engine expressions over one column: numbers, truth values, codes, spline terms.

Each takes a column and gives a sqlglot expression, which every engine can write
in its own SQL. Missing values, NaN included, are NULL in all of them.
"""

from __future__ import annotations

import datetime
import math
import sys
from collections.abc import Sequence

from sqlglot import exp

from radocraft.contract import DatePart, Kind, Shared, Value, combinations, show
from radocraft.sums import Bounding, Steps

NUMBERS: tuple[Kind, ...] = ("number", "never-nan", "integer")

LOOK_UP = "RADOCRAFT_LOOK_UP"
"""What no engine has under this name: `statement.written` says it in its own words."""
_TRUE = ("true", "t", "yes", "y", "1", "1.0")
_SMALL = 2**20
_DOUBLE = exp.DataType.build("DOUBLE")
_FALSE = ("false", "f", "no", "n", "0", "0.0")


def number(raw: exp.Expr, kind: Kind) -> exp.Expr:
    """The column as a double; NaN and what cannot be read become NULL."""
    if kind in ("never-nan", "integer"):
        return exp.Cast(this=raw.copy(), to=_DOUBLE.copy())
    cast = exp.TryCast if kind == "text" else exp.Cast
    source = exp.func("TRIM", raw.copy()) if kind == "text" else raw.copy()
    return exp.Nullif(this=cast(this=source, to=_DOUBLE.copy()), expression=double(math.nan))


def truth(raw: exp.Expr, kind: Kind) -> exp.Expr:
    """The column as 1.0, 0.0 or NULL."""
    if kind in NUMBERS:
        return exp.Case().when(equals(raw, kind, 1), double(1)).when(equals(raw, kind, 0), double(0))
    return exp.Case().when(word(raw).isin(*_TRUE), double(1)).when(word(raw).isin(*_FALSE), double(0))


def word(raw: exp.Expr) -> exp.Expr:
    """The column as text, in small letters and without spaces around it."""
    return exp.func("LOWER", exp.func("TRIM", text(raw)))


def binned(value: exp.Expr, edges: tuple[float, ...]) -> exp.Expr:
    """The index of the bin, closed on the left; missing is the index after the last bin."""

    def between(low: int, high: int) -> exp.Expr:
        """Halve the bins until one is left."""
        if low == high:
            return whole(low)
        middle = (low + high + 1) // 2
        below = exp.LT(this=value.copy(), expression=double(edges[middle - 1]))
        return exp.Case().when(below, between(low, middle - 1), copy=False).else_(between(middle, high), copy=False)

    return exp.Case().when(value.copy().is_(exp.null()), whole(len(edges) + 1)).else_(between(0, len(edges)))


def stepped(raw: exp.Expr, low: int, high: int) -> exp.Expr:
    """`binned` for whole numbers with an edge at each from ``low`` to ``high``, which saves comparing."""
    held = exp.func("LEAST", exp.func("GREATEST", raw.copy(), whole(low - 1)), whole(high))
    return (
        exp.Case()
        .when(raw.copy().is_(exp.null()), whole(high - low + 2))
        .else_(exp.Sub(this=_wide(held, low, high), expression=whole(low - 1)))
    )


def counted(raw: exp.Expr, low: int, high: int) -> exp.Expr:
    """`coded` for whole numbers whose categories are all from ``low`` to ``high``."""
    count = high - low + 1
    return (
        exp.Case()
        .when(
            exp.Between(this=raw.copy(), low=whole(low), high=whole(high)),
            exp.Sub(this=_wide(raw, low, high), expression=whole(low)),
        )
        .when(raw.copy().is_(exp.null()), whole(count))
        .else_(whole(count + 1))
    )


def _wide(number: exp.Expr, low: int, high: int) -> exp.Expr:
    """A whole number between two, in a type in which it can be reckoned with; a column's own may be too narrow."""
    return exp.cast(number.copy(), "INT" if low > -(2**30) and high < 2**30 else "BIGINT")


def run_of(values: tuple[Value, ...]) -> tuple[int, int] | None:
    """The first and last of whole numbers that follow one another, None if they are something else."""
    if not values or any(isinstance(value, bool | str) or value != int(value) for value in values):
        return None
    low, high = int(values[0]), int(values[-1])
    return (low, high) if values == tuple(range(low, high + 1)) and abs(low) + abs(high) < _SMALL else None


def coded(raw: exp.Expr, kind: Kind, categories: tuple[Value, ...]) -> exp.Expr:
    """The index of the category; then missing, then unseen.

    Categories compare as `equals` says. Each is looked up, so that hundreds cost little more than ten.
    """
    words: dict[str, int] = {}
    numbers: dict[float, int] = {}
    truths: list[exp.Expr] = []
    for at, category in enumerate(categories):
        if isinstance(category, bool):
            truths.append(exp.Case().when(equals(raw, kind, category), whole(at)))
        elif isinstance(category, int | float) and kind in (*NUMBERS, "text"):
            numbers.setdefault(float(category), at)
        else:
            words.setdefault(show(category), at)
    found = [*truths]
    found += [looked_up(text(raw), words)] if words else []
    found += [_searched(number(raw, kind), numbers)] if numbers else []
    first = found[0] if len(found) == 1 else exp.func("LEAST", *found)
    known = exp.func("COALESCE", first, whole(len(categories) + 1))
    return exp.Case().when(is_missing(raw, kind), whole(len(categories))).else_(known)


def looked_up(value: exp.Expr, places: dict[str, int]) -> exp.Expr:
    """The number that stands beside a text, NULL for any other; `written` says it in each engine's quickest way."""
    listed = [exp.Tuple(expressions=[exp.Literal.string(name), whole(at)]) for name, at in places.items()]
    return exp.Anonymous(this=LOOK_UP, expressions=[value, *listed])


def _searched(value: exp.Expr, places: dict[float, int]) -> exp.Expr:
    """The same for numbers, found by halving; NULL for any other."""
    ordered = sorted(places.items())

    def between(low: int, high: int) -> exp.Expr:
        if low == high:
            number, at = ordered[low]
            return exp.Case().when(exp.EQ(this=value.copy(), expression=double(number)), whole(at))
        middle = (low + high + 1) // 2
        below = exp.LT(this=value.copy(), expression=double(ordered[middle][0]))
        return exp.Case().when(below, between(low, middle - 1), copy=False).else_(between(middle, high), copy=False)

    return between(0, len(ordered) - 1)


def is_missing(raw: exp.Expr, kind: Kind) -> exp.Expr:
    """NULL, or NaN in a column of numbers."""
    return (number(raw, kind) if kind == "number" else raw.copy()).is_(exp.null())


def equals(raw: exp.Expr, kind: Kind, value: Value) -> exp.Expr:
    """Numbers compare as numbers, truth values as truth values, all else as text."""
    if isinstance(value, bool):
        return exp.EQ(this=truth(raw, kind), expression=double(1 if value else 0))
    if isinstance(value, int | float) and kind in (*NUMBERS, "text"):
        return exp.EQ(this=number(raw, kind), expression=double(value))
    return exp.EQ(this=text(raw), expression=exp.Literal.string(show(value)))


def one_hot(code: exp.Expr, count: int) -> list[exp.Expr]:
    """One indicator for each code."""
    return [indicator(exp.EQ(this=code.copy(), expression=whole(at))) for at in range(count)]


def encoded(code: exp.Expr, shared: Shared) -> list[exp.Expr]:
    """A shared feature's columns of the model."""
    if shared.encoding == "one-hot":
        return one_hot(code, len(shared.codes))
    case = exp.Case()
    for at, value in enumerate(shared.matrix[:, 0].tolist()):
        case = case.when(exp.EQ(this=code.copy(), expression=whole(at)), double(value), copy=False)
    return [case]


def moved(value: exp.Expr, centre: float, scale: float) -> exp.Expr:
    """(value - centre) / scale, leaving out what would do nothing."""
    shifted = exp.paren(exp.Sub(this=value, expression=double(centre))) if centre != 0 else value
    return exp.Div(this=shifted, expression=double(scale)) if scale != 1 else shifted


def gridded(value: exp.Expr, steps: Steps) -> exp.Expr:
    """The value in whole steps of the grid, clipped; 0 where it is missing. See `bounds`."""
    known = exp.func("COALESCE", value, double(steps.centre))
    held = exp.func("LEAST", exp.func("GREATEST", known, double(steps.low)), double(steps.high))
    moved = exp.Add(this=times(held, double(steps.factor)), expression=double(steps.shift))
    return exp.Cast(this=exp.func("FLOOR", moved), to=_DOUBLE.copy())


def shortened(value: exp.Expr, squares: exp.Expr, bounding: Bounding) -> exp.Expr:
    """A whole number of a row, less where the row's sum of squares is too large."""
    shrunk = times(value, exp.Div(this=double(bounding.reach), expression=exp.func("SQRT", squares.copy())))
    cut = exp.Cast(this=exp.func("FLOOR", exp.func("ABS", shrunk)), to=_DOUBLE.copy())
    long = exp.GT(this=squares.copy(), expression=double(bounding.square))
    return exp.Case().when(long, times(exp.func("SIGN", value.copy()), cut)).else_(value.copy())


def logarithm(value: exp.Expr) -> exp.Expr:
    """log(1 + value), mirrored below zero."""
    size = exp.Add(this=exp.func("ABS", value.copy()), expression=double(1))
    return exp.Mul(this=exp.func("SIGN", value.copy()), expression=exp.func("LN", size))


def date_number(raw: exp.Expr, kind: Kind, part: DatePart, at: datetime.date | None) -> exp.Expr:
    """A date's year, month, or days before ``at``, as a whole number; of text, it must be a date as 2001-12-31."""
    if part == "days":
        day = exp.cast(exp.Literal.string(str(at)), "DATE")
        since = exp.DateDiff(this=day, expression=exp.cast(raw.copy(), "DATE"), unit=exp.Var(this="DAY"))
        return exp.cast(since, "INT")
    if kind == "date":
        return exp.cast(exp.Extract(this=exp.Var(this=part.upper()), expression=raw.copy()), "INT")
    start, length = (1, 4) if part == "year" else (6, 2)
    return exp.cast(exp.Substring(this=raw.copy(), start=whole(start), length=whole(length)), "INT")


def infinite(value: exp.Expr) -> exp.Expr:
    """Whether the value is an infinity, or what comes of reckoning with one."""
    return exp.GT(this=exp.func("ABS", value.copy()), expression=double(sys.float_info.max))


def total(parts: Sequence[exp.Expr]) -> exp.Expr:
    """Their sum, written so that many do not nest deeply."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return exp.paren(exp.Add(this=total(parts[:half]), expression=total(parts[half:])))


def times(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    """Their product."""
    return exp.Mul(this=exp.paren(one.copy()), expression=exp.paren(other.copy()))


def spline_levels(value: exp.Expr, knots: tuple[float, ...], name: str) -> list[list[exp.Expr]]:
    """The terms of `splines.terms` as named columns, in three steps, each over the columns of the one before."""
    low, high = knots[0], knots[-1]
    t, u = exp.column(f"{name}_1", quoted=True), exp.column(f"{name}_u", quoted=True)
    held = exp.func("LEAST", exp.func("GREATEST", t.copy(), double(0)), double(1))
    bases: list[exp.Expr] = [u, u]
    for knot in knots[1:-1]:
        step = exp.Sub(this=u.copy(), expression=double((knot - low) / (high - low)))
        bases.append(exp.func("GREATEST", step, double(0)))
    rest = exp.paren(exp.Sub(this=t.copy(), expression=u.copy()))
    powers = [2, *[3] * (len(bases) - 1)]
    terms = [_tailed(base, rest, power) for base, power in zip(bases, powers, strict=True)]
    return [
        [moved(value, low, high - low).as_(t.name, quoted=True)],
        [held.as_(u.name, quoted=True)],
        [term.as_(f"{name}_{at}", quoted=True) for at, term in enumerate(terms, start=2)],
    ]


def spline_values(knots: tuple[float, ...], name: str) -> list[exp.Expr]:
    """The columns of a spline, made of its named terms."""
    terms = [exp.column(f"{name}_{at}", quoted=True) for at in range(1, len(knots) + 2)]
    out: list[exp.Expr] = []
    for first, *weights in combinations(knots).T.tolist():
        parts = [times(double(weight), term) for weight, term in zip(weights, terms, strict=True) if weight]
        total: exp.Expr = times(double(0), terms[0]) if not parts else parts[0]
        for part in parts[1:]:
            total = exp.Add(this=total, expression=part)
        out.append(exp.paren(exp.Add(this=total, expression=double(first)) if first else total))
    return out


def _tailed(base: exp.Expr, rest: exp.Expr, power: int) -> exp.Expr:
    """base^power + power base^(power - 1) rest, which goes on straight."""
    lower = base
    for _ in range(power - 2):
        lower = times(lower, base)
    return times(lower, exp.Add(this=base.copy(), expression=times(double(power), rest)))


def indicator(condition: exp.Expr) -> exp.Expr:
    """1.0 where the condition holds, else 0.0."""
    return exp.Case().when(condition, double(1)).else_(double(0))


def text(raw: exp.Expr) -> exp.Expr:
    """The column as text."""
    return exp.cast(raw.copy(), "TEXT")


def double(value: float) -> exp.Expr:
    """A constant that every engine takes as a double, not as a decimal."""
    return exp.Cast(this=exp.Literal.string(repr(float(value))), to=_DOUBLE.copy())


def whole(value: int) -> exp.Expr:
    """A whole-number constant."""
    return exp.Literal.number(value) if value >= 0 else exp.paren(exp.Literal.number(value))
