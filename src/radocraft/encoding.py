"""From raw columns to agreed codes and feature values, as engine expressions.

Nothing here touches a row: each function takes a column of the peer's table
and gives a sqlglot expression, which every engine can write in its own SQL.
Missing values, NaN included, are NULL in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from radocraft.contract import Boolean, Categorical, Contract, Feature, Label, Numeric, Shared, Value, show

Kind = Literal["number", "boolean", "text", "other"]

_TRUE = ("true", "t", "yes", "y", "1", "1.0")
_FALSE = ("false", "f", "no", "n", "0", "0.0")


@dataclass(frozen=True)
class Column:
    """One private coordinate of the model: a number, or one category of a feature.

    ``centre`` and ``scale`` are None where they come from the peer's data.
    """

    name: str
    feature: str
    centre: float | None = 0.0
    scale: float | None = 1.0


def private_columns(contract: Contract, peer: str) -> tuple[Column, ...]:
    """The peer's private coordinates, in the order in which every table and matrix holds them."""
    columns: list[Column] = []
    for name, feature in sorted(contract.peer(peer).features.items()):
        if isinstance(feature, Categorical):
            columns += [Column(f"{name}={code}", name) for code in feature.codes]
        else:
            columns.append(Column(name, name, feature.centre, feature.scale))
    return tuple(columns)


@dataclass(frozen=True)
class Reader:
    """The expressions that read one peer's table under a contract."""

    contract: Contract
    peer: str
    kinds: dict[str, Kind]

    def column(self, name: str) -> exp.Expr:
        """The raw column that holds the contract's ``name``."""
        return exp.column(self.contract.column_of(self.peer, name), quoted=True)

    def kind(self, name: str) -> Kind:
        """How the engine holds it."""
        return self.kinds[self.contract.column_of(self.peer, name)]

    def label(self) -> exp.Expr:
        """+1, -1, or NULL for anything else."""
        label: Label = self.contract.label
        raw, kind = self.column(label.column), self.kind(label.column)
        return (
            exp.Case()
            .when(equals(raw, kind, label.positive), exp.Literal.number(1))
            .when(equals(raw, kind, label.negative), exp.Literal.number(-1))
        )

    def code(self, shared: Shared) -> exp.Expr:
        """The index of the row's code in ``shared.codes``."""
        raw, kind = self.column(shared.name), self.kind(shared.name)
        if shared.edges is not None:
            return binned(number(raw, kind), shared.edges)
        return coded(raw, kind, shared.categories or ())

    def values(self, name: str, feature: Feature) -> list[exp.Expr]:
        """One expression for each coordinate of a private feature, before centring."""
        raw, kind = self.column(name), self.kind(name)
        if isinstance(feature, Categorical):
            code = coded(raw, kind, feature.categories)
            return [indicator(exp.EQ(this=code, expression=whole(at))) for at in range(len(feature.codes))]
        return [truth(raw, kind) if isinstance(feature, Boolean) else number(raw, kind)]

    def private(self) -> list[exp.Expr]:
        """One expression for each private column, in the order of `private_columns`."""
        features = sorted(self.contract.peers[self.peer].features.items())
        return [value for name, feature in features for value in self.values(name, feature)]

    def misread(self) -> exp.Expr | None:
        """True where a cell holds something that is not of the kind the contract says; None if it cannot happen."""
        wrong = [self.misread_in(name) for name in self.convertible()]
        return exp.or_(*wrong) if wrong else None

    def misread_in(self, name: str) -> exp.Expr:
        """`misread` for one feature: what is there, is not NaN, and has no reading."""
        raw, kind = self.column(name), self.kind(name)
        private = self.contract.peers[self.peer].features.get(name)
        read = truth(raw, kind) if isinstance(private, Boolean) else number(raw, kind)
        there = [exp.Not(this=is_missing(raw, kind))]
        if kind == "text":
            there.append(exp.Not(this=exp.EQ(this=word(raw), expression=exp.Literal.string("nan"))))
        return exp.and_(*there, read.is_(exp.null()))

    def convertible(self) -> list[str]:
        """Features read by converting text, so that a cell can fail to convert."""
        numbers = [shared.name for shared in self.contract.shared if shared.edges is not None]
        booleans = []
        for name, feature in self.contract.peers[self.peer].features.items():
            if isinstance(feature, Numeric):
                numbers.append(name)
            if isinstance(feature, Boolean):
                booleans.append(name)
        return [name for name in numbers if self.kind(name) == "text"] + [
            name for name in booleans if self.kind(name) != "boolean"
        ]


def number(raw: exp.Expr, kind: Kind) -> exp.Expr:
    """The column as a double; NaN and what cannot be read become NULL."""
    cast = exp.TryCast if kind == "text" else exp.Cast
    source = exp.func("TRIM", raw.copy()) if kind == "text" else raw.copy()
    nan = exp.cast(exp.Literal.string("NaN"), "DOUBLE")
    return exp.Nullif(this=cast(this=source, to=exp.DataType.build("DOUBLE")), expression=nan)


def truth(raw: exp.Expr, kind: Kind) -> exp.Expr:
    """The column as 1.0, 0.0 or NULL."""
    if kind == "number":
        return exp.Case().when(equals(raw, kind, 1), double(1)).when(equals(raw, kind, 0), double(0))
    return exp.Case().when(word(raw).isin(*_TRUE), double(1)).when(word(raw).isin(*_FALSE), double(0))


def word(raw: exp.Expr) -> exp.Expr:
    """The column as text, in small letters and without spaces around it."""
    return exp.func("LOWER", exp.func("TRIM", text(raw)))


def binned(value: exp.Expr, edges: tuple[float, ...]) -> exp.Expr:
    """The index of the bin, closed on the left; missing is the index after the last bin."""
    case = exp.Case().when(value.copy().is_(exp.null()), whole(len(edges) + 1))
    for at, edge in enumerate(edges):
        case = case.when(exp.LT(this=value.copy(), expression=double(edge)), whole(at))
    return case.else_(whole(len(edges)))


def coded(raw: exp.Expr, kind: Kind, categories: tuple[Value, ...]) -> exp.Expr:
    """The index of the category; then missing, then unseen."""
    case = exp.Case().when(is_missing(raw, kind), whole(len(categories)))
    for at, category in enumerate(categories):
        case = case.when(equals(raw, kind, category), whole(at))
    return case.else_(whole(len(categories) + 1))


def is_missing(raw: exp.Expr, kind: Kind) -> exp.Expr:
    """NULL, or NaN in a column of numbers."""
    return (number(raw, kind) if kind == "number" else raw.copy()).is_(exp.null())


def equals(raw: exp.Expr, kind: Kind, value: Value) -> exp.Expr:
    """Numbers compare as numbers, truth values as truth values, all else as text."""
    if isinstance(value, bool):
        return exp.EQ(this=truth(raw, kind), expression=double(1 if value else 0))
    if isinstance(value, int | float) and kind in ("number", "text"):
        return exp.EQ(this=number(raw, kind), expression=double(value))
    return exp.EQ(this=text(raw), expression=exp.Literal.string(show(value)))


def indicator(condition: exp.Expr) -> exp.Expr:
    """1.0 where the condition holds, else 0.0."""
    return exp.Case().when(condition, double(1)).else_(double(0))


def text(raw: exp.Expr) -> exp.Expr:
    """The column as text."""
    return exp.cast(raw.copy(), "TEXT")


def double(value: float) -> exp.Expr:
    """A constant that every engine takes as a double, not as a decimal."""
    return exp.cast(exp.Literal.string(repr(float(value))), "DOUBLE")


def whole(value: int) -> exp.Expr:
    """A whole-number constant."""
    return exp.Literal.number(value)
