"""The contract: what the peers agree on before anything is computed.

One TOML file, the same at every peer::

    name = "default within a year"

    [label]
    column = "defaulted"
    positive = "yes"
    negative = "no"

    [[shared]]                      # the first is kept longest, the last is
    name = "region"                 # given up first when a block is too small
    categories = ["north", "south"]

    [[shared]]
    name = "age"
    edges = [30, 45, 60]            # bins (-inf, 30) [30, 45) [45, 60) [60, inf)

    [peers.bank.features]
    income = { kind = "numeric", centre = 30000, scale = 12000 }
    balance = "numeric"             # centre and scale from the bank's data
    job = { kind = "categorical", categories = ["clerk", "farmer"] }
    has_loan = "boolean"

    [peers.insurer.features]
    claims = "numeric"

    [peers.insurer.columns]         # where the peer's own name differs
    age = "customer_age"

The fingerprint is a hash of what the file means: comments, order of keys and
the way a number is written do not change it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from radocraft.errors import ContractError, FileError
from radocraft.mistakes import Mistake, contradictions, from_validation, report

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


class _Agreed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class Label(_Agreed):
    """The column to predict and its two values."""

    column: str = Field(min_length=1)
    positive: Value
    negative: Value

    @model_validator(mode="after")
    def _two_values(self) -> Self:
        if show(self.positive) == show(self.negative):
            raise ValueError("positive and negative are the same value; name two different ones")
        return self

    @property
    def values(self) -> tuple[Value, Value]:
        """Negative first, as -1 comes before +1."""
        return (self.negative, self.positive)


class Shared(_Agreed):
    """A feature every peer holds, with the codes all peers map it to."""

    name: str = Field(min_length=1)
    categories: tuple[Value, ...] | None = None
    edges: tuple[Finite, ...] | None = None
    encoding: Literal["one-hot", "ordinal"] = "one-hot"

    @model_validator(mode="after")
    def _codes_make_sense(self) -> Self:
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
        ordered = [code for code in self.codes if code not in RESERVED]
        scale = np.linspace(-1.0, 1.0, len(ordered)) if len(ordered) > 1 else np.zeros(1)
        return np.concatenate([scale, np.zeros(len(self.codes) - len(ordered))])[:, None]


class Numeric(_Agreed):
    """A number, entering the model as (value - centre) / scale; from the peer's data unless fixed here."""

    kind: Literal["numeric"] = "numeric"
    centre: Finite | None = None
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _both_or_neither(self) -> Self:
        if (self.centre is None) != (self.scale is None):
            raise ValueError("give both `centre` and `scale`, or neither to take them from the peer's data")
        return self


class Boolean(_Agreed):
    """Yes or no, entering the model as +1 or -1."""

    kind: Literal["boolean"] = "boolean"
    centre: ClassVar[float] = 0.5
    scale: ClassVar[float] = 0.5


class Categorical(_Agreed):
    """One of the agreed categories, entering the model one-hot."""

    kind: Literal["categorical"] = "categorical"
    categories: tuple[Value, ...]

    @model_validator(mode="after")
    def _categories_make_sense(self) -> Self:
        check_categories(self.categories)
        return self

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """The agreed codes as text, missing and unseen last."""
        return (*map(show, self.categories), MISSING, UNSEEN)


def _spelled_out(feature: Any) -> Any:
    return {"kind": feature} if isinstance(feature, str) else feature


Feature = Annotated[
    Annotated[Numeric | Boolean | Categorical, Field(discriminator="kind")],
    BeforeValidator(_spelled_out),
]


def _where_different(columns: dict[str, str]) -> dict[str, str]:
    return {name: column for name, column in columns.items() if name != column}


class Peer(_Agreed):
    """What one peer brings: its private features, and its own column names where they differ."""

    features: dict[str, Feature] = Field(min_length=1)
    columns: Annotated[dict[str, str], AfterValidator(_where_different)] = Field(default_factory=dict)


class Contract(_Agreed):
    """What the peers agree on; see the module's docstring for the file.

    Examples
    --------
    >>> contract = Contract.parse('''
    ... name = "risk"
    ... label = { column = "bad", positive = 1, negative = 0 }
    ... shared = [{ name = "age", edges = [40] }]
    ... peers.bank.features = { income = "numeric" }
    ... peers.insurer.features = { claims = "numeric" }
    ... ''')
    >>> contract.shared[0].codes
    ('(-inf, 40)', '[40, inf)', 'missing')
    >>> contract.fingerprint[:8]
    '92e7226e'
    """

    name: str = Field(min_length=1)
    label: Label
    shared: tuple[Shared, ...] = ()
    peers: dict[str, Peer] = Field(min_length=1)
    intercept: bool = True

    @classmethod
    def parse(cls, text: str) -> Contract:
        """Read a contract from TOML text; raises one `ContractError` that lists every mistake."""
        contract, mistakes = _read(text)
        if contract is None:
            raise ContractError(report(mistakes))
        return contract

    @classmethod
    def load(cls, path: str | Path) -> Contract:
        """Read a contract file."""
        return cls.parse(_text(path))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the contract's meaning."""
        meaning = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(meaning.encode()).hexdigest()

    @cached_property
    def shared_columns(self) -> tuple[str, ...]:
        """Names of the shared features' columns in the model, in order."""
        return tuple(name for shared in self.shared for name in shared.encoded)

    def column_of(self, peer: str, name: str) -> str:
        """The column in which ``peer`` keeps the contract's ``name``."""
        return self.peers[peer].columns.get(name, name)

    def peer(self, name: str) -> Peer:
        """The peer of that name, or an error that lists the peers there are."""
        if name not in self.peers:
            raise ContractError(
                f"The contract '{self.name}' has no peer '{name}'. Its peers are: {', '.join(self.peers)}."
            )
        return self.peers[name]

    def encode_shared(self, codes: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Encode full signatures (one row of codes each) as the model sees them."""
        parts = [shared.matrix[codes[:, at]] for at, shared in enumerate(self.shared)]
        return np.hstack([np.empty((len(codes), 0)), *parts])


def check_contract(path: str | Path) -> list[Mistake]:
    """Every mistake in a contract file, each with its place and its remedy; empty if there is none."""
    return _read(_text(path))[1]


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"Cannot read the contract '{path}': {error}. Check the path and its encoding.") from error


def _read(text: str) -> tuple[Contract | None, list[Mistake]]:
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return None, [Mistake("the file", f"not valid TOML: {error}", "mend the syntax at that line")]
    mistakes = contradictions(tree, text)
    try:
        contract = Contract.model_validate(tree)
    except ValidationError as error:
        return None, [*from_validation(error, text), *mistakes]
    mistakes += _columns_twice(contract)
    return (None, mistakes) if mistakes else (contract, [])


def _columns_twice(contract: Contract) -> list[Mistake]:
    """A feature may not have the name of another's one-hot column."""
    encoded = {column: shared.name for shared in contract.shared for column in shared.encoded if column != shared.name}
    for held in contract.peers.values():
        for name, feature in held.features.items():
            if isinstance(feature, Categorical):
                encoded |= {f"{name}={code}": name for code in feature.codes}
    names = [*(shared.name for shared in contract.shared), *(n for p in contract.peers.values() for n in p.features)]
    return [
        Mistake(f"'{name}'", f"this is also a column of '{encoded[name]}' in the model", "give it another name")
        for name in names
        if name in encoded
    ]


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
