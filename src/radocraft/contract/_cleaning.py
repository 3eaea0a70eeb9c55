"""Cleaning rules, by peer and column: how to read values that a peer's table does not write as agreed.

A cell is read in this order: spaces around it go; what marks a missing value becomes one; then it is a
number, a date, or a word, which is folded and put into the agreed spelling.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from radocraft.contract._features import Value, show
from radocraft.contract._record import Record

_WRITTEN = re.compile("%[dmyY]([./-]?)%[dmyY]\\1%[dmyY]")
_FORMAT = (
    '`format` has %d, %m and %Y (or %y) once each, with one of . / - or nothing between, such as "%d.%m.%Y"; a time '
    "after it is left out by itself"
)


def toml(value: object) -> str:
    """A value as TOML on one line.

    Examples
    --------
    >>> toml({"ja": True, "not so": ("NA", 2)})
    '{ ja = true, "not so" = ["NA", 2] }'
    """
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key(name)} = {toml(inner)}' for name, inner in value.items())} }}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else show(value)  # type: ignore[arg-type]


def key(name: str) -> str:
    """A name as a key in TOML."""
    return name if name and all(c.isascii() and (c.isalnum() or c in "_-") for c in name) else toml(name)


def _ordered(marks: tuple[Value, ...]) -> tuple[Value, ...]:
    """Marks in one order, whichever they were written in, and none twice."""
    return tuple({show(mark): mark for mark in sorted(marks, key=show)}.values())


Marks = Annotated[tuple[Value, ...], AfterValidator(_ordered)]


def _dated(text: str) -> str:
    """A format that can be read: day, month and year once each, and one mark between them, or none."""
    if not _WRITTEN.fullmatch(text) or sorted(re.findall("[a-z]", text.lower())) != ["d", "m", "y"]:
        raise ValueError(_FORMAT)
    return text


class Cleaning(Record):
    """How one column of a peer's table is read.

    Examples
    --------
    >>> Cleaning(missing=("NA", "-", "NA"), decimal=",").missing
    ('-', 'NA')
    """

    missing: Marks = ()
    """Cells that mean that nothing is known, besides those of the whole table."""
    fold: bool = False
    """Whether capitals, and spaces around a word, make no difference."""
    values: dict[str, Value] = Field(default_factory=dict)
    """What stands in the table, and what it is called in the contract."""
    decimal: Literal[",", "."] | None = None
    """What a number's fraction comes after; the other mark, spaces and apostrophes part thousands."""
    format: Annotated[str, AfterValidator(_dated)] | None = None
    """How dates are written, such as "%d.%m.%Y"; 2001-12-31 needs none."""

    def __str__(self) -> str:
        """As a contract writes it, without the braces."""
        said = {name: getattr(self, name) for name in type(self).model_fields}
        return ", ".join(f"{name} = {toml(value)}" for name, value in said.items() if value)

    @model_validator(mode="after")
    def _one_reading(self) -> Self:
        ways = [name for name in ("decimal", "format") if getattr(self, name) is not None]
        ways += ["values"] if self.values else ["fold"] if self.fold else []
        if len(ways) > 1:
            raise ValueError(f"a column holds numbers, dates or words: take `{ways[0]}` or `{ways[1]}` out")
        if len({self.word(word) for word in self.values}) < len(self.values):
            raise ValueError("with `fold`, two of `values` are the same word")
        return self

    def word(self, value: Value) -> Value:
        """A value as cells of the column say it: without capitals and spaces around it where these make no difference.

        Examples
        --------
        >>> Cleaning(fold=True).word(" North"), Cleaning(fold=True).word(3), Cleaning().word(" North")
        ('north', 3, ' North')
        """
        return value.strip(" ").lower() if self.fold and isinstance(value, str) else value
