"""The columns that a peer's own model is fitted on, and how each is read.

Numbers and truth values are themselves, dates are days, text is a category: the most frequent 200 each
their own, all others together. Text that reads as numbers, truth values or dates throughout is
that: CSV files hold nothing but text. A column that is different in nearly every row and is
no quantity says who somebody is, and is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from radocraft.arrays import Floats
from radocraft.contract import Kind
from radocraft.errors import DataError, MissingColumn, WrongType
from radocraft.rows._checks import listed
from radocraft.rows._expressions import NUMBERS, number, text, truth
from radocraft.rows._instants import LOOKS_LIKE_A_DATE, in_days
from radocraft.rows.engines._base import ROWS, Source

How = Literal["number", "boolean", "date", "category"]
MOST_CATEGORIES = 200
_FEW = 50
_IDENTIFIER = re.compile(r"(^|[_\W])(id|uuid|guid)$|Id$|ID$", re.ASCII)


@dataclass(frozen=True)
class ScorerColumn:
    """A column, how it is read, and the categories that are told apart."""

    name: str
    how: How
    categories: tuple[str, ...] = ()

    def expression(self, kind: Kind) -> exp.Expr:
        """What to ask the engine for, however it holds the column."""
        raw = exp.column(self.name, quoted=True)
        if self.how == "category":
            return text(raw)
        if self.how == "date":
            return raw if kind in ("date", "text") else exp.cast(exp.null(), "TEXT")
        if self.how == "boolean" or kind == "boolean":
            return truth(raw, kind)
        return number(raw, kind) if kind not in ("date", "other") else exp.cast(exp.null(), "DOUBLE")

    def values(self, column: pa.Array) -> Floats:
        """What the engine gave, as numbers; NaN is missing."""
        if self.how == "date":
            return in_days(column)
        if self.how != "category":
            return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
        words = column.cast(pa.string())
        codes = pc.index_in(words, value_set=pa.array(self.categories, pa.string()))
        codes = pc.if_else(pc.is_valid(words), pc.fill_null(codes, len(self.categories)), pa.scalar(None, pa.int32()))
        return np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.float64)

    @property
    def width(self) -> int:
        """How many codes a category has; missing is none of them."""
        return len(self.categories) + 1


@dataclass(frozen=True)
class Chosen:
    """The columns to fit on, and what is to be said about others."""

    columns: tuple[ScorerColumn, ...]
    notes: tuple[str, ...]


def choose(source: Source, names: list[str], *, asked_for: bool) -> Chosen:
    """Look at these columns; those that were asked for by name stay unless they cannot be read.

    Parameters
    ----------
    source
        The rows to fit on.
    names
        The candidates.
    asked_for
        Whether somebody named them, or they are just all there are.
    """
    kinds = source.kinds()
    names, others = candidates(source, names)
    if others and asked_for:
        raise WrongType(
            f"{listed(others)} in '{source.name}' is neither number, truth value, date nor text, so no model can use "
            "it. Convert it first, or leave it out of `of`."
        )
    notes = [f"'{name}' is left out: it is neither number, truth value, date nor text" for name in others]
    facts, columns = _facts(source, kinds, names), list[ScorerColumn]()
    for name in names:
        how = _how(kinds[name], facts[name])
        if not asked_for and facts[name].identifies(name, how):
            notes.append(f"'{name}' is left out: it is different in nearly every row, so it says who somebody is")
        elif facts[name].tells_apart:
            columns.append(ScorerColumn(name, how, _categories(source, name) if how == "category" else ()))
    if not columns:
        raise DataError(
            f"No column of '{source.name}' can tell rows apart, so there is nothing to fit a score on. Give a table "
            "with more columns, or name them (`of` in the contract)."
        )
    notes += [
        f"of '{c.name}' the {MOST_CATEGORIES} most frequent values are told apart, all others are one"
        for c in columns
        if len(c.categories) == MOST_CATEGORIES < facts[c.name].different
    ]
    return Chosen(tuple(columns), tuple(notes))


def candidates(source: Source, names: list[str]) -> tuple[list[str], list[str]]:
    """Those of the columns that can be read, by name, and those that cannot."""
    kinds = source.kinds()
    if absent := [name for name in names if name not in kinds]:
        raise MissingColumn(f"'{source.name}' lacks {listed(absent)}. It has {listed(list(kinds))}.")
    unclear = {name for name in names if kinds[name] == "other"}
    return sorted({*names} - unclear), sorted(unclear)


def as_score(source: Source, name: str) -> ScorerColumn:
    """A column that holds scores of a model that exists already."""
    kinds = source.kinds()
    if name not in kinds:
        raise MissingColumn(
            f"'{source.name}' lacks '{name}', which is to hold scores that were fitted elsewhere. "
            f"It has {listed(list(kinds))}. Correct `column` in the contract."
        )
    facts = _facts(source, kinds, [name])[name]
    if (
        kinds[name] in ("date", "other")
        or (kinds[name] == "text" and facts.numbers < facts.present)
        or not facts.present
    ):
        raise WrongType(f"'{name}' in '{source.name}' holds no scores: they are numbers. Correct `column`.")
    return ScorerColumn(name, "number")


@dataclass(frozen=True)
class _Facts:
    """Of a column: how many cells hold something, how many different things, what they read as, and the range."""

    present: int
    different: int
    numbers: int = 0
    booleans: int = 0
    dates: int = 0
    rows: int = 0
    span: float | None = None

    @property
    def tells_apart(self) -> bool:
        """Whether rows differ in it, if only because some have nothing there."""
        return self.different > 1 or 0 < self.present < self.rows

    def identifies(self, name: str, how: How) -> bool:
        """Whether it is a name or a number of the row, not something about it."""
        if self.different <= _FEW or how in ("boolean", "date"):
            return False
        if how == "category":
            return self.different * 2 > self.present
        dense = self.span is not None and self.span < 1.1 * self.present
        return self.different == self.present == self.rows and (dense or _IDENTIFIER.search(name) is not None)


def _facts(source: Source, kinds: dict[str, Kind], names: list[str]) -> dict[str, _Facts]:
    """All of it in one statement."""
    asked: list[exp.Expr] = [exp.func("COUNT", exp.Star()).as_("n_rows")]
    for at, name in enumerate(names):
        raw, kind = exp.column(name, quoted=True), kinds[name]
        value = number(raw, kind) if kind in NUMBERS else raw
        expressions: dict[str, exp.Expr] = {"present": value}
        if kind == "text":
            looks = exp.RegexpLike(this=exp.func("TRIM", raw.copy()), expression=exp.Literal.string(LOOKS_LIKE_A_DATE))
            expressions["numbers"] = number(raw, kind).this  # with "NaN", which reads as a missing number
            expressions["booleans"] = truth(raw, kind)
            expressions["dates"] = exp.Case().when(looks, exp.Literal.number(1))
        asked += [exp.func("COUNT", each.copy()).as_(f"{fact}_{at}") for fact, each in expressions.items()]
        distinct = exp.Count(this=exp.Distinct(expressions=[_comparable(raw, kind)]))
        asked.append(distinct.as_(f"different_{at}"))
        if kind == "integer":
            low, high = (exp.func(f, number(raw, kind)) for f in ("MIN", "MAX"))
            asked.append(exp.Sub(this=high, expression=low).as_(f"span_{at}"))
    found = source.table(exp.select(*asked).from_(ROWS)).to_pylist()[0]

    def of(at: int) -> dict[str, Any]:
        keys = ("present", "different", "numbers", "booleans", "dates", "span")
        return {key: found[f"{key}_{at}"] for key in keys if f"{key}_{at}" in found}

    return {name: _Facts(rows=found["n_rows"], **of(at)) for at, name in enumerate(names)}


def _comparable(raw: exp.Expr, kind: Kind) -> exp.Expr:
    return text(raw) if kind in ("date", "text") else number(raw, kind) if kind in NUMBERS else raw.copy()


def _how(kind: Kind, facts: _Facts) -> How:
    if kind == "boolean":
        return "boolean"
    if kind in NUMBERS:
        return "number"
    if kind == "date":
        return "date"
    readings: tuple[tuple[How, int], ...] = (
        ("number", facts.numbers),
        ("boolean", facts.booleans),
        ("date", facts.dates),
    )
    return next((how for how, count in readings if facts.present and count == facts.present), "category")


def _categories(source: Source, name: str) -> tuple[str, ...]:
    """The most frequent texts; among equals, in the order of the alphabet."""
    value = text(exp.column(name, quoted=True))
    grouped = exp.select(value.as_("word"), exp.func("COUNT", exp.Star()).as_("held")).from_(ROWS).group_by("word")
    found = source.table(grouped)
    held = zip(found["word"].to_pylist(), found["held"].to_pylist(), strict=True)
    ranked = sorted((-int(rows), str(word)) for word, rows in held if word is not None)
    return tuple(sorted(word for _, word in ranked[:MOST_CATEGORIES]))
