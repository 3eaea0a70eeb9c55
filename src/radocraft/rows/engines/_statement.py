"""One statement, written for an engine that is not DuckDB.

Statements are sqlglot expressions over the table `ROWS`. sqlglot writes them in
each engine's SQL; here is only what it cannot know: the table's real name, and
three things that the engines do not have or mean differently.
"""

from __future__ import annotations

from sqlglot import exp

from radocraft.rows.engines._base import ROWS

_NUMBER = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"
_WORDS = ("nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity")


def written(query: exp.Query, dialect: str, table: exp.Table) -> str:
    """The SQL text of a statement over ``table``."""
    own = query.copy()
    for name in list(own.find_all(exp.Table)):
        if name.name == ROWS.name:
            name.replace(table.copy())
    if dialect == "postgres":
        for inner in list(own.find_all(exp.Subquery)):  # a fence: without it every use of a value computes it anew
            inner.this.offset(0, copy=False)
        for asked in list(own.find_all(exp.IsNan)):
            asked.replace(exp.EQ(this=asked.this.copy(), expression=exp.cast(exp.Literal.string("NaN"), "DOUBLE")))
    while tried := own.find(exp.TryCast):
        tried.replace(_if_number(tried.this))
    return own.sql(dialect)


def _if_number(text: exp.Expr) -> exp.Expr:
    """What reads as a number becomes one, all else NULL: Postgres cannot try a cast, and Spark reads "5d" as 5."""
    reads = exp.or_(
        exp.RegexpLike(this=text.copy(), expression=exp.Literal.string(_NUMBER)),
        exp.func("LOWER", text.copy()).isin(*_WORDS),
    )
    return exp.Case().when(reads, exp.cast(text.copy(), "DOUBLE"))
