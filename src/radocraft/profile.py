"""What a peer may tell about its table before there is a contract: columns, and at most outlines of them.

A profile holds no row. By default it names the columns and their kinds. With
``outline`` it adds what helps to agree on codes: for numbers the quartiles
rounded to two digits, for text the categories held by enough rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict
from sqlglot import exp

from radocraft.expressions import Kind, number, text, truth
from radocraft.sources import Source, open_source
from radocraft.sources.base import ROWS
from radocraft.storage import read_json

_MANY = 30
_READABLE: tuple[Kind, ...] = ("number", "boolean")


class ColumnProfile(BaseModel):
    """One column: its kind and, if outlined, rounded quartiles or frequent categories."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    kind: Kind
    quartiles: tuple[float, ...] | None = None
    categories: tuple[str, ...] | None = None


class Profile(BaseModel):
    """A table's columns, in order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[ColumnProfile, ...]

    @property
    def by_name(self) -> dict[str, ColumnProfile]:
        """The columns by name."""
        return {column.name: column for column in self.columns}

    @classmethod
    def load(cls, path: str | Path) -> Profile:
        """Read a profile that `radocraft profile --json` wrote."""
        return read_json(cls, path, "profile", f"Write one with `radocraft profile TABLE --json > {path}`.")


def profile(data: Any, *, outline: bool = False, min_rows: int = 10) -> Profile:
    """Name a table's columns and kinds; with ``outline``, sketch their values without showing a row.

    Parameters
    ----------
    data
        A path, a data frame, a source; see `open_source`.
    outline
        Add rounded quartiles of numbers, and categories held by at least ``min_rows`` rows each.

    Examples
    --------
    >>> import pyarrow as pa
    >>> [(c.name, c.kind) for c in profile(pa.table({"age": [31, 52], "town": ["Bern", None]})).columns]
    [('age', 'number'), ('town', 'text')]
    """
    source = open_source(data)
    columns = []
    for name, held in source.kinds().items():
        kind = _seen_kind(source, name) if held == "text" else "number" if held == "integer" else held
        if outline and kind == "number":
            columns.append(ColumnProfile(name=name, kind=kind, quartiles=_quartiles(source, name, held)))
        elif outline and kind == "text":
            columns.append(ColumnProfile(name=name, kind=kind, categories=_categories(source, name, min_rows)))
        else:
            columns.append(ColumnProfile(name=name, kind=kind))
    return Profile(columns=tuple(columns))


def _seen_kind(source: Source, name: str) -> Kind:
    """Text that reads as numbers or truth values throughout is just that: CSV files hold nothing but text."""
    raw = exp.column(name, quoted=True)
    readings = {"present": raw, "number": number(raw, "text"), "boolean": truth(raw, "text")}
    counts = [exp.func("COUNT", reading).as_(kind) for kind, reading in readings.items()]
    found = source.table(exp.select(*counts).from_(ROWS)).to_pylist()[0]
    if not found["present"]:
        return "text"
    return next((kind for kind in _READABLE if found[kind] == found["present"]), "text")


def _quartiles(source: Source, name: str, held: Kind) -> tuple[float, ...] | None:
    value = number(exp.column(name, quoted=True), held)
    levels = [
        exp.WithinGroup(
            this=exp.PercentileCont(this=exp.Literal.number(level)),
            expression=exp.Order(expressions=[exp.Ordered(this=value.copy())]),
        ).as_(f"q{at}")
        for at, level in enumerate((0.25, 0.5, 0.75))
    ]
    found = source.table(exp.select(*levels).from_(ROWS)).to_pylist()[0]
    known = [float(value) for value in found.values() if value is not None and np.isfinite(value)]
    rounded = sorted({float(f"{value:.2g}") for value in known})
    return tuple(rounded) or None


def _categories(source: Source, name: str, min_rows: int) -> tuple[str, ...] | None:
    value = text(exp.column(name, quoted=True)).as_("category")
    counted = exp.select(value, exp.func("COUNT", exp.Star()).as_("held")).from_(ROWS).group_by("category")
    common = (
        exp.select("category")
        .from_(counted.subquery("counted"))
        .where(exp.column("held") >= min_rows, exp.Not(this=exp.column("category").is_(exp.null())))
        .order_by("category")
        .limit(_MANY + 1)
    )
    found = [row["category"] for row in source.table(common).to_pylist()]
    return tuple(found) if 0 < len(found) <= _MANY else None
