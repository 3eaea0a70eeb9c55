"""The contract: what the peers agree on before anything is computed.

One TOML file, the same at every peer::

    name = "default within a year"

    [label]
    column = "defaulted"
    positive = "yes"                # or, for three classes and more,
    negative = "no"                 # classes = ["paid", "late", "never"]; for a number,
                                    # kind = "numeric", edges = [5, 6] (bins for blocks, or none)
                                    # held_by = ["bank"] if only some peers have the label

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
    savings = "spline"              # a smooth curve; { kind = "spline", knots = [0, 500, 2000] }
    income_by_age = { kind = "interact", of = ["income", "age"] }

    [peers.insurer.features]
    claims = "numeric"              # a feature listed at several peers is held by all of them

    [peers.insurer.columns]         # where the peer's own name differs
    age = "customer_age"

    [peers.insurer]                 # optional: then its parts count only if they
    public_key = "MFkwEwYH..."      # are signed by this key (`radocraft identity`)

Where a peer's table says things otherwise, the contract says how it is read, by
the peer's own columns. Nobody has to change a table first::

    [peers.bank]
    missing = ["NA", "-", ""]       # in every column of its table

    [peers.bank.cleaning]
    Region = { fold = true }        # NORTH and " North" are north
    defaulted = { values = { ja = "yes", nein = "no" } }
    balance = { decimal = "," }     # 15.654,98; "15,654.98" by decimal = "."
    opened = { format = "%d.%m.%Y" }

    [peers.bank.features]
    opened = { kind = "date", part = "days", at = 2025-01-01 }
    salary = "log"                  # log(1 + value)

Or each peer adds one score: it fits a model on its own columns, the model stays
there, and only its scores are summed. Either all peers do this or none::

    [[key]]                         # optional: an attribute that says nothing about the
    name = "birthday"               # label; it shows how scores are related, and is no feature
    day_of_year = true              # or categories, edges, last_digits = 2, hash = 365 with a secret

    [peers.bank.features]
    bank_score = "score"            # boosted trees on all of the bank's columns;
                                    # { kind = "score", of = ["income", "job"], model = "linear" }

    [peers.insurer.features]        # no row is scored by a model that saw its customer
    insurer_score = { kind = "score", group = "customer" }

    [peers.shop.features]           # scores of a model that the shop already has
    shop_score = { kind = "score", column = "old_risk", fitted_elsewhere = true }

The fingerprint is a hash of what the file means: comments, order of keys and
the way a number is written do not change it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import tomllib
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from radocraft.arrays import Tabular
from radocraft.contract._cleaning import Cleaning, Marks
from radocraft.contract._disagreements import disagreements
from radocraft.contract._features import ANY, Feature, Interact, Score, Shared, Value
from radocraft.contract._keys import Key
from radocraft.contract._labels import ANY_LABEL, Label, Number
from radocraft.contract._mistakes import Mistake, contradictions, from_validation, report, steering
from radocraft.contract._record import Record
from radocraft.errors import ContractError
from radocraft.files import read_text

if TYPE_CHECKING:
    import pyarrow as pa


def _where_different(columns: dict[str, str]) -> dict[str, str]:
    return {name: column for name, column in columns.items() if name != column}


def _where_dirty(cleaning: dict[str, Cleaning]) -> dict[str, Cleaning]:
    return {column: rule for column, rule in cleaning.items() if rule != Cleaning()}


def _public_key(text: str) -> str:
    try:
        inner = base64.b64decode(text, validate=True)
    except ValueError:
        inner = b""
    if not 40 <= len(inner) <= 200:
        raise ValueError("`public_key` must be an Ed25519 or P-256 key as base64, as `radocraft identity` shows it")
    return text


class Peer(Record):
    """What one peer brings: its private features, and its own column names where they differ."""

    features: dict[str, Feature] = Field(min_length=1)
    """Its private features, by name: the kind, or a section with more."""
    columns: Annotated[dict[str, str], AfterValidator(_where_different)] = Field(default_factory=dict)
    """Where its own column is called differently: the contract's name, then its own."""
    public_key: Annotated[str, AfterValidator(_public_key)] | None = None
    """The key that signs its parts, if they must be signed."""
    missing: Marks = ()
    """Cells of its table, in whichever column, that mean that nothing is known."""
    cleaning: Annotated[dict[str, Cleaning], AfterValidator(_where_dirty)] = Field(default_factory=dict)
    """How columns of its table are read that do not say things as agreed, by their own names."""

    @model_serializer(mode="wrap")
    def _without_nothing(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what is not said: such a contract means what it meant before it could be said."""
        fields = {name: value for name, value in write(self).items() if name in ("features", "columns") or value}
        rules = fields.get("cleaning", {})
        cleaning = {column: {n: v for n, v in rule.items() if v} for column, rule in rules.items()}
        return fields | ({"cleaning": cleaning} if cleaning else {})


def _one_key(given: Any) -> Any:
    """The key out of the list that the file has for it."""
    if given is None or isinstance(given, Key):
        return given
    if not isinstance(given, list | tuple):
        raise ValueError("must be a list: write it below `[[key]]`")
    if len(given) > 1:
        raise ValueError("only one key is allowed; keep the best one")
    return given[0] if given else None


class Contract(Tabular, Record):
    """What the peers agree on: the label, the features all share, and what each has of its own.

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
    """What the model is about; in every part and report."""
    label: Label
    """The column to predict."""
    shared: tuple[Shared, ...] = ()
    """What every peer holds; the first is kept longest when a block is too small."""
    key: Annotated[Key | None, BeforeValidator(_one_key)] = None
    """What relates the scores of different peers, if there is such an attribute; at most one."""
    peers: dict[str, Peer] = Field(min_length=1)
    """Who takes part."""
    intercept: bool = True
    """Whether the model has a constant."""

    @model_serializer(mode="wrap")
    def _as_the_file(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The key as the list it is in the file; left out if there is none, as in contracts older than keys."""
        fields = {name: value for name, value in write(self).items() if name != "key"}
        return fields if self.key is None else fields | {"key": [self.key.model_dump(mode="json")]}

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
        return cls.parse(read_text(path, "contract"))

    @classmethod
    def expect(cls, given: object, call: str) -> None:
        """Refuse what is no contract, most often since arguments are in another order than in this ``call``."""
        if not isinstance(given, cls):
            raise ContractError(
                f"A contract is needed where a {type(given).__name__} was given. Call it as {call}; "
                "Contract.load reads a contract's file."
            )

    def to_arrow(self) -> pa.Table:
        """Every agreed feature: who holds it, and of what kind it is."""
        import pyarrow as pa  # noqa: PLC0415 - most commands need a contract and no table

        lines = [("all", shared.name, "edges" if shared.edges else "categories") for shared in self.shared]
        lines += [(peer, name, f.kind) for peer, held in self.peers.items() for name, f in held.features.items()]
        return pa.table(dict(zip(("held by", "feature", "kind"), zip(*lines, strict=True), strict=True)))

    def in_one_line(self) -> str:
        """Its name, its peers and the beginning of its fingerprint."""
        return f"Contract({self.name!r}, peers {', '.join(self.peers)}, fingerprint {self.fingerprint[:16]})"

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

    def cleaning_of(self, peer: str, name: str) -> Cleaning:
        """How ``peer`` reads the column in which it keeps the contract's ``name``."""
        return self.peers[peer].cleaning.get(self.column_of(peer, name), Cleaning())

    def as_read(self, peer: str, name: str, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """Agreed values as the cells of ``peer`` say them once they are cleaned."""
        return tuple(map(self.cleaning_of(peer, name).word, values))

    def peer(self, name: str) -> Peer:
        """The peer of that name, or an error that lists the peers there are."""
        if name not in self.peers:
            raise ContractError(
                f"The contract '{self.name}' has no peer '{name}'. Its peers are: {', '.join(self.peers)}."
            )
        return self.peers[name]

    def labelled(self, peer: str) -> bool:
        """Whether a peer has the label."""
        holders = None if isinstance(self.label, Number) else self.label.held_by
        return holders is None or peer in holders

    def label_codes(self, peer: str) -> dict[int, str]:
        """The codes of the label that rows of a peer can have, with their names."""
        if not self.labelled(peer):
            return {ANY_LABEL: ANY}
        return dict(zip(self.label.codes, self.label.names, strict=True))

    @cached_property
    def label_names(self) -> dict[int, str]:
        """Every code of the label with its name, and what stands for a label that is not known."""
        return {ANY_LABEL: ANY} | dict(zip(self.label.codes, self.label.names, strict=True))

    @cached_property
    def of_scores(self) -> bool:
        """Whether each peer adds one score instead of columns."""
        return any(isinstance(f, Score) for peer in self.peers.values() for f in peer.features.values())

    def score_of(self, peer: str) -> tuple[str, Score]:
        """The name of a peer's score, and what it is."""
        for name, feature in self.peer(peer).features.items():
            if isinstance(feature, Score):
                return name, feature
        raise ContractError(
            f"In the contract '{self.name}' the peer '{peer}' has columns and no score. Give each peer one feature "
            'of kind "score", as `radocraft contract new` drafts it.'
        )

    def summed(self, peer: str) -> dict[str, Feature]:
        """What a peer sums column by column: its private features but for a score, and a numeric label."""
        features: dict[str, Feature] = {
            name: f for name, f in self.peer(peer).features.items() if not isinstance(f, Score)
        }
        return features | ({self.label.column: self.label.feature} if isinstance(self.label, Number) else {})

    def own_columns(self, peer: str) -> tuple[str, ...]:
        """The private features of a peer that are columns of its table; products and scores are made of others."""
        return tuple(name for name, f in self.peer(peer).features.items() if not isinstance(f, Interact | Score))

    def encode_shared(self, codes: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Encode full signatures (one row of codes each) as the model sees them."""
        parts = [shared.matrix[codes[:, index]] for index, shared in enumerate(self.shared)]
        return np.hstack([np.empty((len(codes), 0)), *parts])


def check_contract(path: str | Path) -> list[Mistake]:
    """Every mistake in a contract file, each with its place and its remedy; empty if there is none."""
    return _read(read_text(path, "contract"))[1]


def _read(text: str) -> tuple[Contract | None, list[Mistake]]:
    try:
        tree = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return None, [Mistake("the file", f"not valid TOML: {error}", "fix the syntax at that line")]
    mistakes = [*contradictions(tree, text), *steering(tree, text)]
    try:
        contract = Contract.model_validate(tree)
    except ValidationError as error:
        return None, [*from_validation(error, text), *mistakes]
    mistakes += disagreements(contract, text)
    return (None, mistakes) if mistakes else (contract, [])
