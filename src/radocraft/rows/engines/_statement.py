"""One statement, written for an engine.

Statements are sqlglot expressions over the table `ROWS`. sqlglot writes them in
each engine's SQL; here is only what it cannot know: the table's real name, and
four things that the engines do not have or mean differently.
"""

from __future__ import annotations

from sqlglot import exp

from radocraft.rows._expressions import LOOK_UP
from radocraft.rows.engines._base import ROWS

_NUMBER = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"
_CANNOT_TRY = ("postgres", "spark")
_WORDS = ("nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity")


def written(query: exp.Query, dialect: str, table: exp.Table = ROWS, *, pretty: bool = False) -> str:
    """The SQL text of a statement over ``table``."""
    own = query.copy()
    for call in [call for call in own.find_all(exp.Anonymous) if call.name == LOOK_UP]:
        call.replace(_by_hash(call) if dialect == "duckdb" else _one_by_one(call))
    for name in list(own.find_all(exp.Table)):
        if name.name == ROWS.name:
            name.replace(table.copy())
    if dialect == "postgres":
        for inner in list(own.find_all(exp.Subquery)):  # a fence: without it every use of a value computes it anew
            inner.this.offset(0, copy=False)
        for asked in list(own.find_all(exp.IsNan)):
            asked.replace(exp.EQ(this=asked.this.copy(), expression=exp.cast(exp.Literal.string("NaN"), "DOUBLE")))
    while dialect in _CANNOT_TRY and (tried := own.find(exp.TryCast)):
        tried.replace(_if_number(tried.this))
    return own.sql(dialect, pretty=pretty)


def _by_hash(asked: exp.Anonymous) -> exp.Expr:
    """A look-up as a cast to an enumeration, which DuckDB does by a hash table."""
    value, *listed = asked.expressions
    names = exp.DataType(this=exp.DataType.Type.ENUM, expressions=[pair.expressions[0] for pair in listed])
    code = exp.cast(exp.Anonymous(this="ENUM_CODE", expressions=[exp.TryCast(this=value, to=names)]), "INT")
    places = [int(pair.expressions[1].to_py()) for pair in listed]
    if places == [*range(places[0], places[0] + len(places))]:
        return exp.paren(exp.Add(this=code, expression=exp.Literal.number(places[0]))) if places[0] else code
    numbers = exp.array(*(exp.Literal.number(at) for at in places))
    return exp.Anonymous(
        this="LIST_EXTRACT", expressions=[numbers, exp.Add(this=code, expression=exp.Literal.number(1))]
    )


def _one_by_one(asked: exp.Anonymous) -> exp.Expr:
    """A look-up by comparing."""
    value, *listed = asked.expressions
    case = exp.Case(this=value)
    for pair in listed:
        name, at = pair.expressions
        case = case.when(name, at, copy=False)
    return case


def _if_number(text: exp.Expr) -> exp.Expr:
    """What reads as a number becomes one, all else NULL: Postgres cannot try a cast, and Spark reads "5d" as 5."""
    reads = exp.or_(
        exp.RegexpLike(this=text.copy(), expression=exp.Literal.string(_NUMBER)),
        exp.func("LOWER", text.copy()).isin(*_WORDS),
    )
    return exp.Case().when(reads, exp.cast(text.copy(), "DOUBLE"))
