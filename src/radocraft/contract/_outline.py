"""The outline of a table: what a peer shows of its columns before there is a contract."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from radocraft.contract._cleaning import Cleaning
from radocraft.contract._record import Record
from radocraft.files import read_json

Kind = Literal["number", "never-nan", "integer", "boolean", "text", "date", "other"]
"""How an engine holds a column; ``never-nan`` is a number taken to be free of NaN, which saves asking."""


Unfit = Literal["identifier", "free text", "constant"]
"""Why a column can be no feature."""


class ColumnProfile(Record):
    """One column: its kind, how it has to be read for that and, if outlined, rounded figures.

    Of dates, quartiles and range are of their years.
    """

    name: str
    kind: Kind
    cleaning: Cleaning | None = None
    quartiles: tuple[float, ...] | None = None
    categories: tuple[str, ...] | None = None
    missing: float | None = None
    distinct: int | None = None
    span: tuple[float, float] | None = None
    unfit: Unfit | None = None


class Profile(Record):
    """A table's columns, in order; with an outline, what its noise is worth."""

    columns: tuple[ColumnProfile, ...]
    guarantee: str | None = None

    @property
    def by_name(self) -> dict[str, ColumnProfile]:
        """The columns by name."""
        return {column.name: column for column in self.columns}

    @classmethod
    def load(cls, path: str | Path) -> Profile:
        """Read a profile that `radocraft profile --json` wrote."""
        return read_json(cls, path, "profile", f"Write one with `radocraft profile TABLE --json > {path}`.")
