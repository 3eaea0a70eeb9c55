"""The label: what all peers want to predict.

Two values, of which one is to be predicted; several classes; or a number. Every
row has a label code, and blocks are keyed by signature and code::

    kind        written in the contract                    codes
    two values  positive = "yes", negative = "no"          -1 and +1, as in the paper
    classes     classes = ["a", "b", "c"]                  1 to k
    number      kind = "numeric", edges = [5, 6]           the bin, from 1; 0 without edges

The code 0 means "any". A number without edges has blocks by signature alone, all
with this code; so have the rows of a peer that lacks the label (see `proportions`).
Its values are summed like those of a private column, at every peer; a learner
takes them for a shared one.
"""

from __future__ import annotations

import itertools
import math
from functools import cached_property
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Discriminator, Field, SerializerFunctionWrapHandler, Tag, model_serializer, model_validator

from radocraft.arrays import Floats, Ints
from radocraft.contract._features import ANY, Finite, Numeric, Value, check_categories, interval, show
from radocraft.contract._record import Record

ANY_LABEL = 0


class _Held(Record):
    """A label that some peers may lack; ``held_by`` names those who have it, and is left out if all do."""

    column: str = Field(min_length=1)
    """The column that holds it."""
    held_by: tuple[str, ...] | None = Field(default=None, min_length=1)
    """The peers that have it, if not all do."""

    @model_serializer(mode="wrap")
    def _without_nothing(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave ``held_by`` out where it is not given: such a contract means what it meant before there was any."""
        return {name: value for name, value in write(self).items() if name != "held_by" or value is not None}


class TwoValues(_Held):
    """The column to predict and its two values."""

    positive: Value
    """The value to predict."""
    negative: Value
    """The other value."""

    @model_validator(mode="after")
    def _two_values(self) -> Self:
        if show(self.positive) == show(self.negative):
            raise ValueError("positive and negative are the same value; name two different ones")
        return self

    @property
    def values(self) -> tuple[Value, ...]:
        """Negative first, as -1 comes before +1."""
        return (self.negative, self.positive)

    @property
    def codes(self) -> tuple[int, ...]:
        """The code of each value."""
        return (-1, 1)

    @property
    def names(self) -> tuple[str, ...]:
        """The values as text."""
        return tuple(map(show, self.values))

    def targets(self, codes: Ints) -> Floats:
        """What a score is to be for rows with these codes: -1 or +1."""
        return codes.astype(np.float64)


class Classes(_Held):
    """The column to predict and its classes, three or more."""

    classes: tuple[Value, ...]
    """The values it may have."""

    @model_validator(mode="after")
    def _several(self) -> Self:
        check_categories(self.classes)
        if len(self.classes) < 3:
            raise ValueError("`classes` needs three or more values; for two, write `positive` and `negative` instead")
        return self

    @property
    def values(self) -> tuple[Value, ...]:
        """The classes, in the contract's order."""
        return self.classes

    @property
    def codes(self) -> tuple[int, ...]:
        """The code of each class, from 1."""
        return tuple(range(1, len(self.classes) + 1))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The classes as text."""
        return tuple(map(show, self.classes))

    def targets(self, codes: Ints) -> Floats:
        """What the scores are to be, one column per class: +1 for the class, -1 for all others."""
        return np.where(codes[:, None] == np.array(self.codes), 1.0, -1.0)


class Number(Record):
    """A number to predict; with edges, blocks are by its bins too.

    Centre and scale are from each peer's data unless fixed here.
    """

    column: str = Field(min_length=1)
    """The column that holds it."""
    kind: Literal["numeric"]
    edges: tuple[Finite, ...] = ()
    """Where its bins meet, if blocks are to be by them too."""
    centre: Finite | None = None
    """Subtracted from the value; the mean of the peers' data if left out."""
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """What the difference is divided by; the standard deviation if left out."""

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if list(self.edges) != sorted({*self.edges}):
            raise ValueError("`edges` must be numbers in rising order, none twice; leave them out for no bins")
        if (self.centre is None) != (self.scale is None):
            raise ValueError("give both `centre` and `scale`, or neither to take them from the peers' data")
        return self

    @property
    def values(self) -> tuple[Value, ...]:
        """None: a number has no values to choose from."""
        return ()

    @property
    def codes(self) -> tuple[int, ...]:
        """The code of each bin."""
        return tuple(range(1, len(self.edges) + 2)) if self.edges else (0,)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The bins as text."""
        if not self.edges:
            return (ANY,)
        bounds = [-math.inf, *self.edges, math.inf]
        return tuple(interval(low, high) for low, high in itertools.pairwise(bounds))

    @property
    def feature(self) -> Numeric:
        """The label as a column to be summed."""
        return Numeric(centre=self.centre, scale=self.scale)


def _kind(label: Any) -> str:
    fields = label if isinstance(label, dict) else vars(label) if isinstance(label, Record) else {}
    if {"kind", "edges"} & {*fields}:
        return "number"
    return "classes" if "classes" in fields else "two values"


Label = Annotated[
    Annotated[TwoValues, Tag("two values")] | Annotated[Classes, Tag("classes")] | Annotated[Number, Tag("number")],
    Discriminator(_kind),
]
