"""How a text column is written: numbers, truth values and dates in the ways that people write them.

A column is what all of its cells read as, but for those with a mark of a missing value out of a public list. So a
form tells how a column is written, and no more of a row than its kind does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from radocraft.contract import Cleaning, Kind
from radocraft.rows._cleaning import date_pattern, number_pattern
from radocraft.rows._expressions import NUMBERS, number, text, truth, whole, word
from radocraft.rows.engines._base import ROWS, Source

MARKS = (
    "",
    "-",
    "--",
    ".",
    "?",
    "#N/A",
    "N/A",
    "n/a",
    "NA",
    "na",
    "NaN",
    "nan",
    "NULL",
    "Null",
    "null",
    "None",
    "missing",
)
"""What people write where nothing is known."""
_TRUTHS = (
    *(("ja", "nein"), ("j", "n"), ("oui", "non"), ("o", "n"), ("si", "no"), ("sí", "no"), ("s", "n"), ("sim", "não")),
    *(("tak", "nie"), ("ano", "ne"), ("kyllä", "ei"), ("wahr", "falsch"), ("vrai", "faux"), ("on", "off")),
)
_DATES = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y")
_CODES = re.compile("zip|postal|postcode|plz|postleitzahl", re.IGNORECASE)
_AT_ONCE, _FEW = 10, 1000


@dataclass(frozen=True)
class Form:
    """What a column's cells are, and what has to be said of them to read them so."""

    kind: Kind
    cleaning: Cleaning = field(default_factory=Cleaning)


def forms(source: Source) -> dict[str, Form]:
    """The form of every column, in order: what some rows rule out is not asked of all."""
    kinds, found = source.kinds(), dict[str, Form]()
    ways = {name: list(_ways(name, kind)) for name, kind in kinds.items()}
    few = source.sample(_FEW).subquery("some_rows")
    for rows in (few, ROWS):
        for start in range(0, len(kinds), _AT_ONCE):
            names = list(kinds)[start : start + _AT_ONCE]
            ways |= _fitting(source, rows, kinds, {name: ways[name] for name in names})
    for name, kind in kinds.items():
        plain = Form("number" if kind in NUMBERS else kind)
        found[name] = next((form for _, form in ways[name]), plain)
    return found


Ways = dict[str, list[tuple[exp.Expr, Form]]]


def _fitting(source: Source, rows: exp.Expr, kinds: dict[str, Kind], ways: Ways) -> Ways:
    """The ways in which all cells of these rows can be read, by one statement."""
    asked: list[exp.Expr] = []
    for at, (name, own) in enumerate(ways.items()):
        there = _there(exp.column(name, quoted=True), kinds[name])
        asked.append(exp.func("COUNT", exp.Case().when(there, whole(1))).as_(f"n_{at}"))
        for way, (reads, _) in enumerate(own):
            count = exp.Case().when(exp.and_(there.copy(), exp.not_(reads.is_(exp.null()))), whole(1))
            asked.append(exp.func("COUNT", count).as_(f"n_{at}_{way}"))
    counts = source.table(exp.select(*asked).from_(rows.copy())).to_pylist()[0]
    out: Ways = {}
    for at, (name, own) in enumerate(ways.items()):
        present = counts[f"n_{at}"]
        known = present or rows is not ROWS  # a column with nothing in it is text
        out[name] = [each for way, each in enumerate(own) if known and counts[f"n_{at}_{way}"] == present]
    return out


def _there(raw: exp.Expr, kind: Kind) -> exp.Expr:
    there = exp.not_((number(raw, kind) if kind in NUMBERS else raw).is_(exp.null()))
    return exp.and_(there, exp.not_(exp.func("TRIM", text(raw)).isin(*MARKS))) if kind == "text" else there


def _ways(name: str, kind: Kind) -> Iterator[tuple[exp.Expr, Form]]:
    """What the column may be, the plainest first: an expression that is NULL where a cell is not, and its form."""
    raw = exp.column(name, quoted=True)
    if kind in NUMBERS:
        yield truth(raw, kind), Form("boolean")
    if kind != "text":
        return
    plain = exp.func("TRIM", text(raw))
    yield truth(raw, kind), Form("boolean")
    if not _CODES.search(name):
        code = exp.RegexpLike(this=plain, expression=exp.Literal.string("^0[0-9]"))
        yield exp.Case().when(exp.not_(code), number(raw, kind)), Form("number")
        for mark in (".", ","):
            yield _like(plain, number_pattern(mark)), Form("number", Cleaning.model_validate({"decimal": mark}))
    for yes, no in _TRUTHS:
        found = exp.Case().when(word(raw).isin(yes, no), whole(1))
        yield found, Form("boolean", Cleaning(fold=True, values={yes: True, no: False}))
    for written in _DATES:
        rule = Cleaning() if written == _DATES[0] else Cleaning(format=written)
        yield _like(plain, date_pattern(written)[0]), Form("date", rule)


def _like(plain: exp.Expr, pattern: str) -> exp.Expr:
    looks = exp.RegexpLike(this=plain.copy(), expression=exp.Literal.string(pattern))
    return exp.Case().when(looks, whole(1))
