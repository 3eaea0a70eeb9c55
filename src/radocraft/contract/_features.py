"""The kinds of features in a contract: shared and private."""

from __future__ import annotations

import datetime
import itertools
import math
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from radocraft.contract._record import Record

ANY = "any"
MISSING = "missing"
UNSEEN = "unseen"
RESERVED = (ANY, MISSING, UNSEEN)


def _plain(value: object) -> object:
    """A category or label as it is kept: a whole number has one form, however it is written."""
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value.is_integer() else value
    if isinstance(value, bool | int | str):
        return value
    raise ValueError("must be text, a finite number, true or false")


Value = Annotated[bool | int | float | str, Field(union_mode="smart"), BeforeValidator(_plain)]
Finite = Annotated[float, Field(allow_inf_nan=False), AfterValidator(lambda number: number + 0.0)]  # no negative zero


def _no_truth(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be a whole number")
    return value


Whole = Annotated[int, BeforeValidator(_no_truth)]
DatePart = Literal["year", "month", "days"]


class Shared(Record):
    """A feature every peer holds, with the codes all peers map it to."""

    name: str = Field(min_length=1)
    """Its name, and its column where `columns` says nothing else."""
    categories: tuple[Value, ...] | None = None
    """The values it may have; all others are `unseen`. Either this or `edges`."""
    edges: tuple[Finite, ...] | None = None
    """Where the bins of a number meet."""
    encoding: Literal["one-hot", "ordinal"] = "one-hot"
    """One column per code, or one number in the order of the codes."""
    date: DatePart | None = None
    """Of a date, its year or month, or its age in days at the day `at`; then codes are of that number."""
    at: datetime.date | None = None
    """The day at which a date's age is taken."""

    @model_serializer(mode="wrap")
    def _without_nothing(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what is said of dates alone: other features mean what they meant before there was any."""
        return {name: value for name, value in write(self).items() if name not in ("date", "at") or value is not None}

    @model_validator(mode="after")
    def _codes_make_sense(self) -> Self:
        check_day(self.date, self.at, "date")
        if (self.categories is None) == (self.edges is None):
            raise ValueError("give either `edges` (bins of a number) or `categories`, not both")
        if self.edges is not None and (not self.edges or list(self.edges) != sorted({*self.edges})):
            raise ValueError("`edges` must be one or more numbers in rising order, none twice")
        if self.categories is not None:
            check_categories(self.categories)
        return self

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """The agreed codes as text; a row's code is an index into this tuple."""
        if self.categories is not None:
            return (*map(show, self.categories), MISSING, UNSEEN)
        bounds = [-math.inf, *(self.edges or ()), math.inf]
        return (*(interval(low, high) for low, high in itertools.pairwise(bounds)), MISSING)

    @property
    def known(self) -> int:
        """How many codes are of agreed values: all but missing and unseen, which are the last."""
        return sum(code not in RESERVED for code in self.codes)

    @cached_property
    def encoded(self) -> tuple[str, ...]:
        """The columns this feature has in the model."""
        return (self.name,) if self.encoding == "ordinal" else tuple(f"{self.name}={code}" for code in self.codes)

    @cached_property
    def matrix(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Row ``c`` is the encoding of code ``c``.

        One-hot, or one number from -1 to 1 in the order of the codes, where
        missing and unseen stand in the middle.
        """
        if self.encoding == "one-hot":
            return np.eye(len(self.codes))
        scale = np.linspace(-1.0, 1.0, self.known) if self.known > 1 else np.zeros(1)
        return np.concatenate([scale, np.zeros(len(self.codes) - self.known)])[:, None]


class Quantity(Record):
    """What is a number in the end, entering the model as (value - centre) / scale."""

    centre: Finite | None = None
    """Subtracted from the value; the mean of the peer's data if left out."""
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """What the difference is divided by; the standard deviation if left out."""

    @model_validator(mode="after")
    def _both_or_neither(self) -> Self:
        if (self.centre is None) != (self.scale is None):
            raise ValueError("give both `centre` and `scale`, or neither to take them from the peer's data")
        return self


class Numeric(Quantity):
    """A number, entering the model as (value - centre) / scale; from the peer's data unless fixed here."""

    kind: Literal["numeric"] = "numeric"


class Log(Quantity):
    """The logarithm of a number, log(1 + value), for amounts of very different size; below zero, -log(1 - value)."""

    kind: Literal["log"] = "log"


class Date(Quantity):
    """A date as a number: its year, its month, or how many days it lies before an agreed day."""

    kind: Literal["date"] = "date"
    part: DatePart = "year"
    """Which number of it: "year", "month", or "days" before `at`."""
    at: datetime.date | None = None
    """The day at which its age in days is taken."""

    @model_validator(mode="after")
    def _of_a_day(self) -> Self:
        check_day(self.part, self.at, "part")
        return self

    @model_serializer(mode="wrap")
    def _without_nothing(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in write(self).items() if name != "at" or value is not None}


class Boolean(Record):
    """Yes or no, entering the model as +1 or -1."""

    kind: Literal["boolean"] = "boolean"
    centre: ClassVar[float] = 0.5
    scale: ClassVar[float] = 0.5


class Categorical(Record):
    """One of the agreed categories, entering the model one-hot."""

    kind: Literal["categorical"] = "categorical"
    categories: tuple[Value, ...]
    """The values it may have; all others are `unseen`."""

    @model_validator(mode="after")
    def _categories_make_sense(self) -> Self:
        check_categories(self.categories)
        return self

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """The agreed codes as text, missing and unseen last."""
        return (*map(show, self.categories), MISSING, UNSEEN)


class Spline(Record):
    """A number entering the model as a smooth curve: a cubic spline with straight tails.

    ``knots`` are the places where pieces meet, or how many to take from the
    peer's data (at quantiles, rounded; they are released with the part).
    """

    kind: Literal["spline"] = "spline"
    knots: Annotated[int, Field(ge=2, le=20)] | tuple[Finite, ...] = 5
    """Where pieces meet, or how many knots to take from the peer's data."""

    @field_validator("knots", mode="before")
    @classmethod
    def _knots_are(cls, given: Any) -> Any:
        """One mistake with words of ours, instead of one for each of the two things that knots may be."""
        if isinstance(given, int) and not isinstance(given, bool) and 2 <= given <= 20:
            return given
        if isinstance(given, list | tuple) and all(isinstance(at, int | float) and math.isfinite(at) for at in given):
            return given
        raise ValueError("`knots` must be a whole number from 2 to 20, or a list of finite numbers")

    @model_validator(mode="after")
    def _knots_rise(self) -> Self:
        if isinstance(self.knots, tuple) and (len(self.knots) < 2 or list(self.knots) != sorted({*self.knots})):
            raise ValueError("`knots` must be two or more numbers in rising order, none twice")
        return self

    @property
    def width(self) -> int:
        """How many columns it has in the model."""
        return (self.knots if isinstance(self.knots, int) else len(self.knots)) + 1


class Interact(Record):
    """The product of two features: two of the peer's own, or one of them and a shared one."""

    kind: Literal["interact"] = "interact"
    of: tuple[str, str]
    """The two features."""


def _spelled_out(feature: Any) -> Any:
    return {"kind": feature} if isinstance(feature, str) else feature


def _any_order(columns: tuple[str, ...]) -> tuple[str, ...]:
    if not columns:
        raise ValueError("`of` is empty; name a column, or leave it out for all of them")
    if len({*columns}) < len(columns):
        raise ValueError("`of` names a column twice")
    return tuple(sorted(columns))


class Score(Record):
    """What a model of the peer's own makes of a row: fitted at the peer, where it stays; only its score is summed.

    Columns are named as the peer's own table names them. The shared features are
    always among what the model uses; label, key and ``group`` never are.
    """

    kind: Literal["score"] = "score"
    of: Annotated[tuple[str, ...], AfterValidator(_any_order)] | None = None
    """The peer's columns that the model may use; all of them if left out, but for identifiers."""
    model: Literal["boosting", "linear"] = "boosting"
    """What is fitted: boosted trees (up to 20,000 rows with a forest and a linear model), or a linear model."""
    folds: Annotated[Whole, Field(ge=2, le=20)] = 5
    """Rows are scored by models that did not see them; into so many folds they are dealt for it."""
    group: str | None = Field(default=None, min_length=1)
    """The column that says whose a row is; the rows of one person are dealt into one fold."""
    fitted_elsewhere: bool = False
    """Whether the scores come from a model that exists already; they are calibrated here."""
    column: str | None = Field(default=None, min_length=1)
    """The column that holds such scores."""

    @model_validator(mode="after")
    def _from_somewhere(self) -> Self:
        if self.fitted_elsewhere and self.column is None:
            raise ValueError("`column` must name the column of the scores that were fitted elsewhere")
        if self.column is not None and not self.fitted_elsewhere:
            raise ValueError("`column` is for scores of a model that exists already: add `fitted_elsewhere = true`")
        if self.fitted_elsewhere and (self.of is not None or self.model != "boosting"):
            raise ValueError("a score fitted elsewhere is not fitted again: leave `of` and `model` out")
        return self

    @model_serializer(mode="wrap")
    def _without_nothing(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in write(self).items() if value is not None}


Feature = Annotated[
    Annotated[Numeric | Log | Date | Boolean | Categorical | Spline | Interact | Score, Field(discriminator="kind")],
    BeforeValidator(_spelled_out),
]


def check_day(part: DatePart | None, at: datetime.date | None, name: str) -> None:
    """An age in days needs a day, and nothing else has one."""
    if part == "days" and at is None:
        raise ValueError(f'`{name} = "days"` needs the day at which it is taken, such as `at = 2025-01-01`')
    if part != "days" and at is not None:
        raise ValueError(f'`at` is for `{name} = "days"`; add that, or take `at` out')


def check_categories(categories: tuple[Value, ...]) -> None:
    """Refuse an empty list, a category twice, and the words that are codes already."""
    names = [show(value) for value in categories]
    if not names:
        raise ValueError("`categories` is empty; name at least one")
    if len({*names}) < len(names):
        raise ValueError("a category is listed twice")
    if taken := [name for name in names if name in RESERVED]:
        raise ValueError(f"'{taken[0]}' is a code of its own; give the category another name")


def show(value: Value) -> str:
    """A category or label as text: ``true``, ``3``, ``north``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def interval(low: float, high: float) -> str:
    """A bin as text, closed on the left."""
    return f"{'(' if math.isinf(low) else '['}{show(low)}, {show(high)})"
