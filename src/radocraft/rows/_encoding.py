"""From raw columns to agreed codes and feature values, as engine expressions.

Nothing here touches a row: each function takes a column of the peer's table
and gives a sqlglot expression, which every engine can write in its own SQL.
Missing values, NaN included, are NULL in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from sqlglot import exp

from radocraft.contract import (
    ANY_LABEL,
    Boolean,
    Categorical,
    Constants,
    Contract,
    Feature,
    Interact,
    Kind,
    Number,
    Quantity,
    Shared,
    Spline,
    moment_labels,
    summed_columns,
)
from radocraft.rows._expressions import (
    binned,
    coded,
    counted,
    date_number,
    double,
    encoded,
    equals,
    is_missing,
    logarithm,
    moved,
    number,
    one_hot,
    run_of,
    spline_levels,
    spline_values,
    stepped,
    times,
    truth,
    whole,
    word,
)
from radocraft.rows._moments import RowLayout
from radocraft.rows._persons import Persons
from radocraft.rows._ranking import Ranking

_NO_LABEL = -2


@dataclass(frozen=True)
class Reader:
    """The expressions that read one peer's table under a contract.

    ``constants`` are those the contract leaves to the data; see `estimate_constants`. ``ranking``
    gives labels to the rows of a peer that lacks it; without one they have none.
    ``persons`` keeps a few rows of each person alone.
    """

    contract: Contract
    peer: str
    kinds: dict[str, Kind]
    constants: Constants = field(default_factory=dict)
    ranking: Ranking | None = None
    persons: Persons | None = None

    def column(self, name: str) -> exp.Expr:
        """The raw column that holds the contract's ``name``."""
        return exp.column(self.contract.column_of(self.peer, name), quoted=True)

    def kind(self, name: str) -> Kind:
        """How the engine holds it."""
        return self.kinds[self.contract.column_of(self.peer, name)]

    def label(self, none: int | None = None, low: int = 0) -> exp.Expr:
        """The row's label code less ``low``; for anything that is no agreed value NULL, or ``none`` less ``low``."""
        label, case = self.contract.label, exp.Case()
        otherwise = exp.null() if none is None else whole(none - low)
        if not self.contract.labelled(self.peer):
            return whole(ANY_LABEL - low) if self.ranking is None else self.ranking.label(low)
        raw, kind = self.column(label.column), self.kind(label.column)
        if isinstance(label, Number):
            parsed = number(raw, kind)
            bin_of = exp.Add(this=binned(parsed, label.edges), expression=whole(1 - low))
            return case.when(parsed.is_(exp.null()), otherwise).else_(bin_of if label.edges else whole(-low))
        values = self.contract.as_read(self.peer, label.column, label.values)
        for value, code in zip(values, label.codes, strict=True):
            case = case.when(equals(raw, kind, value), whole(code - low))
        return case.else_(otherwise)

    def matrix(self) -> exp.Expr:
        """The number of the row's label among `moment_labels`."""
        known = [*moment_labels(self.contract, self.peer)]
        case = exp.Case()
        for at, code in enumerate(known[1:], start=1):
            case = case.when(exp.EQ(this=self.label(), expression=whole(code)), whole(at))
        return case.else_(whole(0)) if len(known) > 1 else whole(0)

    def label_codes(self) -> tuple[int, ...]:
        """The codes that `label` gives."""
        return (-1, 1) if self.ranking is not None else tuple(self.contract.label_codes(self.peer))

    def code(self, shared: Shared) -> exp.Expr:
        """The index of the row's code in ``shared.codes``."""
        raw, kind = self.column(shared.name), self.kind(shared.name)
        if shared.date is not None:
            raw, kind = date_number(raw, kind, shared.date, shared.at), "integer"
        run = run_of(shared.edges or shared.categories or ()) if kind == "integer" else None
        if shared.edges is not None:
            return binned(number(raw, kind), shared.edges) if run is None else stepped(raw, *run)
        categories = self.contract.as_read(self.peer, shared.name, shared.categories or ())
        return coded(raw, kind, categories) if run is None else counted(raw, *run)

    def values(self, name: str, feature: Feature) -> list[exp.Expr]:
        """One expression for each coordinate of a private feature, before centring."""
        if isinstance(feature, Interact):
            left, right = (self.factor(factor) for factor in feature.of)
            return [times(one, other) for one in left for other in right]
        if isinstance(feature, Spline):
            knots = self.knots(name)
            values = spline_values(knots, self.term(name)) if len(knots) > 1 else [self.number(name)]
            nothing = times(self.number(name), double(0))
            return [*values, *(nothing.copy() for _ in range(feature.width - len(values)))]
        if isinstance(feature, Categorical):
            return one_hot(exp.column(self.coded(name), quoted=True), len(feature.codes))
        if isinstance(feature, Boolean):
            return [truth(self.column(name), self.kind(name))]
        return [self.number(name)]

    def knots(self, name: str) -> tuple[float, ...]:
        """The knots of a spline: the contract's, or those its peer's data gave (fewer where values are few)."""
        feature = self.contract.peers[self.peer].features[name]
        agreed = feature.knots if isinstance(feature, Spline) else ()
        return agreed if isinstance(agreed, tuple) else self.constants.get(name, ())

    def coded(self, name: str) -> str:
        """How a feature's code is named in `rows`: all its indicators ask for it there, so it is looked up once."""
        return f"radocraft_code_{self.peer}_{name}"

    def term(self, name: str) -> str:
        """How the terms of a spline are named in `rows`."""
        return f"radocraft_{self.peer}_{name}"

    def rows(self, table: exp.Expr) -> exp.Expr:
        """The table with the code of every category and the terms of every spline as columns, computed once.

        With persons, only rows of theirs that count; with a ranking, also with the rank of every row.
        """
        features = self.contract.peers[self.peer].features
        factors = {factor for feature in features.values() if isinstance(feature, Interact) for factor in feature.of}
        looked_up = {
            name: coded(self.column(name), self.kind(name), self.contract.as_read(self.peer, name, feature.categories))
            for name, feature in features.items()
            if isinstance(feature, Categorical)
        } | {shared.name: self.code(shared) for shared in self.contract.shared if shared.name in factors - {*features}}
        if looked_up:
            named = [code.as_(self.coded(name), quoted=True) for name, code in looked_up.items()]
            table = exp.select(exp.Star(), *named, copy=False).from_(table).subquery("radocraft_coded", copy=False)
        curves = [
            name for name, feature in features.items() if isinstance(feature, Spline) and len(self.knots(name)) > 1
        ]
        steps = [spline_levels(self.number(name), self.knots(name), self.term(name)) for name in curves]
        for at, level in enumerate(zip(*steps, strict=True)):
            named = [column for columns in level for column in columns]
            table = exp.select(exp.Star(), *named).from_(table).subquery(f"radocraft_step_{at}")
        codes = [self.code(shared) for shared in self.contract.shared]
        if self.persons is not None:
            label = replace(self, ranking=None).label(none=_NO_LABEL)
            table = self.persons.rows(table, [*codes, label, *self.codes()], self.plain())
        if self.ranking is not None:
            table = self.ranking.rows(table, codes, self.private())
        return table

    def number(self, name: str) -> exp.Expr:
        """A feature's column as a double: itself, its logarithm, or a number of its date."""
        raw, kind = self.column(name), self.kind(name)
        feature = self.contract.peers[self.peer].features.get(name)
        if feature is not None and feature.kind == "date":
            return number(date_number(raw, kind, feature.part, feature.at), "integer")
        value = number(raw, kind)
        return logarithm(value) if feature is not None and feature.kind == "log" else value

    def factor(self, name: str) -> list[exp.Expr]:
        """The columns of a feature as they enter a product: numbers in units, truth values as +1 and -1."""
        feature = self.contract.peers[self.peer].features.get(name)
        if feature is None:
            shared = next(shared for shared in self.contract.shared if shared.name == name)
            return encoded(exp.column(self.coded(name), quoted=True), shared)
        values = self.values(name, feature)
        if isinstance(feature, Boolean):
            return [moved(value, feature.centre, feature.scale) for value in values]
        if isinstance(feature, Quantity):
            centre, scale = self.constants.get(name, (feature.centre or 0.0, feature.scale or 1.0))
            return [moved(value, centre, scale) for value in values]
        return values

    def private(self) -> list[exp.Expr]:
        """One expression for each private column, in the order of `private_columns`."""
        features = sorted(self.contract.peers[self.peer].features.items())
        return [value for name, feature in features for value in self.values(name, feature)]

    def summed(self) -> list[exp.Expr]:
        """One expression for each column to be summed, in the order of `summed_columns`."""
        label = self.contract.label
        return self.private() + ([self.number(label.column)] if isinstance(label, Number) else [])

    @cached_property
    def layout(self) -> RowLayout:
        """Which of the columns to be summed are the categories of one feature."""
        columns = [column.feature for column in summed_columns(self.contract, self.peer)]
        coded = [(name, columns.index(name)) for name in self.categorical]
        return RowLayout(len(columns), tuple((start, columns.count(name)) for name, start in coded))

    @property
    def categorical(self) -> list[str]:
        """The features with a code, in the order of their columns."""
        features = sorted(self.contract.peers[self.peer].features.items())
        return [name for name, feature in features if isinstance(feature, Categorical)]

    def plain(self) -> list[exp.Expr]:
        """Those of `summed` that are numbers of their own, not indicators of a code."""
        features = sorted(self.contract.peers[self.peer].features.items())
        values = [value for name, f in features if not isinstance(f, Categorical) for value in self.values(name, f)]
        label = self.contract.label
        return values + ([self.number(label.column)] if isinstance(label, Number) else [])

    def codes(self) -> list[exp.Expr]:
        """The code of each feature in `categorical`, looked up in `rows`."""
        return [exp.column(self.coded(name), quoted=True) for name in self.categorical]

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
        numbers = [s.name for s in self.contract.shared if s.edges is not None and s.date is None]
        booleans = []
        for name, feature in self.contract.peers[self.peer].features.items():
            if isinstance(feature, Quantity | Spline) and feature.kind != "date":
                numbers.append(name)
            if isinstance(feature, Boolean):
                booleans.append(name)
        return [name for name in numbers if self.kind(name) == "text"] + [
            name for name in booleans if self.kind(name) != "boolean"
        ]
