"""The neutral key: an attribute that all peers hold and that says nothing about the label.

By the values of a key peers sum what their scores leave over, and so a learner sees how
the scores of different peers are related without a row of one ever meeting a row of another.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from radocraft.contract._features import Finite, Value, Whole, check_categories
from radocraft.contract._record import Record

LEAST_VALUES = 3
_WAYS = ("categories", "edges", "day_of_year", "last_digits", "hash")
_SECRET = "`secret` is the SHA-256 of the secret file as 64 hexadecimal digits (`sha256sum FILE`), not the secret"


def _digest(text: str) -> str:
    if not re.fullmatch("[0-9a-fA-F]{64}", text):
        raise ValueError(_SECRET)
    return text.lower()


class Key(Record):
    """An attribute that shows how the peers' scores are related. It is neutral, so it is never a feature.

    Examples
    --------
    >>> Key(name="born", day_of_year=True).values
    366
    >>> Key(name="phone", last_digits=2).values
    100
    """

    name: str = Field(min_length=1)
    """Its name, and its column where `columns` says nothing else."""
    categories: tuple[Value, ...] | None = None
    """The values it may have; rows with others are left out of its groups. Either this or one of those below."""
    edges: tuple[Finite, ...] | None = None
    """Where the bins of a number meet."""
    day_of_year: bool = False
    """The day of the year of a date: 366 values."""
    last_digits: Annotated[Whole, Field(ge=1, le=3)] | None = None
    """How many of the last digits of a number or text are used, such as 2 of a phone number."""
    hash: Annotated[Whole, Field(ge=LEAST_VALUES, le=100_000)] | None = None
    """How many values there are, hashed by HMAC-SHA-256 with a secret that the peers share and the learner lacks."""
    secret: Annotated[str, AfterValidator(_digest)] | None = None
    """The SHA-256 of the file that holds this secret; the file itself is never sent."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        ways = [name for name in _WAYS if getattr(self, name) not in (None, False)]
        if len(ways) != 1:
            raise ValueError(f"give exactly one of {', '.join(f'`{name}`' for name in _WAYS)}")
        if (self.hash is None) != (self.secret is None):
            raise ValueError(f"`hash` and `secret` go together; {_SECRET}")
        if self.categories is not None:
            check_categories(self.categories)
        if self.edges is not None and list(self.edges) != sorted({*self.edges}):
            raise ValueError("`edges` must be numbers in rising order, none twice")
        if self.values < LEAST_VALUES:
            raise ValueError(f"a key needs {LEAST_VALUES} values or more to be useful; a few hundred are best")
        return self

    @property
    def values(self) -> int:
        """How many values it has; a row's is a number from 0 below this."""
        if self.categories is not None:
            return len(self.categories)
        if self.edges is not None:
            return len(self.edges) + 1
        if self.last_digits is not None:
            return int(10**self.last_digits)
        return self.hash if self.hash is not None else 366

    @model_serializer(mode="wrap")
    def _without_nothing(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Only the way that was chosen, so that ways yet to come change no contract of today."""
        return {name: value for name, value in write(self).items() if value is not None and value is not False}
