"""The outline of a table: what a peer shows of its columns before there is a contract."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from radocraft.contract._record import Record
from radocraft.files import read_json

Kind = Literal["number", "never-nan", "integer", "boolean", "text", "date", "other"]
"""How an engine holds a column; ``never-nan`` is a number taken to be free of NaN, which saves asking."""


class ColumnProfile(Record):
    """One column: its kind and, if outlined, rounded quartiles or frequent categories."""

    name: str
    kind: Kind
    quartiles: tuple[float, ...] | None = None
    categories: tuple[str, ...] | None = None


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
