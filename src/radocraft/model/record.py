"""The model file: what was learned, from what, and how good it is. JSON, self-contained.

A score is linear in the features as the contract encodes them::

    score = intercept + sum over shared columns + sum over private columns of weight * value

with ``value = (raw - centre) / scale`` for a number, 0 where it is missing. The
file holds every weight in these standardised units and in the units of the raw
column, the contract, a line on every part it was learned from, the losses, and
per block the mean contribution of each peer. No sum of a peer's column is in it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from radocraft.arrays import Floats, Ints
from radocraft.contract import Contract
from radocraft.encoding import Constants
from radocraft.errors import FileError
from radocraft.features import Value
from radocraft.storage import writing
from radocraft.version import __version__

FORMAT: Literal[1] = 1


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Coefficient(_Frozen):
    """The weight of one column of the model.

    ``peer`` is None for a shared column. ``standardised`` goes with
    ``(raw - centre) / scale``, ``raw`` with the raw value; ``effect`` is the
    standardised weight times the column's standard deviation over the training
    population, which makes columns comparable.
    """

    name: str
    feature: str
    peer: str | None
    standardised: float
    raw: float
    centre: float
    scale: float
    effect: float


class Origin(_Frozen):
    """A part the model was learned from."""

    peer: str
    rows: int
    cells: int
    bytes: int
    created: str
    hash: str
    guarantee: str


class Certificate(_Frozen):
    """Ridge losses on the training population.

    ``expected`` is the mean over all matchings of rows consistent with the
    blocks, ``guaranteed`` bounds the loss under every one of them, ``peers`` is
    what each peer reaches alone with the same regularisation.
    """

    expected: float
    guaranteed: float
    peers: dict[str, float]


class Tuned(_Frozen):
    """How the strength of the regularisation was chosen: every candidate with its score, lowest best."""

    method: str
    chosen: float
    candidates: tuple[float, ...]
    scores: tuple[float, ...]


class Odds(_Frozen):
    """Log-odds of the positive label: ``offset + slope * score``."""

    offset: float
    slope: float


class Outlook(_Frozen):
    """Error rate and AUC to expect on new rows, if what no one can see is as this caution assumes."""

    caution: float
    error: float
    auc: float


class Estimate(_Frozen):
    """How the model will do on new rows, estimated without one joined row; see `population`."""

    error: float
    auc: float
    outlooks: tuple[Outlook, ...]
    false_positive_rate: tuple[float, ...]
    true_positive_rate: tuple[float, ...]
    assumption: str


class Compared(_Frozen):
    """One way to treat what nobody can see, and its loss on linked rows."""

    kind: Literal["caution", "covariance"]
    value: float
    loss: float


class Validated(_Frozen):
    """A real test on linked rows."""

    rows: int
    loss: float
    error: float
    auc: float
    compared: tuple[Compared, ...]


class BlockTable(_Frozen):
    """Per block: codes (-1 for any), label, weight, and the mean contribution of the shared columns and each peer."""

    codes: list[list[int]]
    labels: list[int]
    weights: list[float]
    shared: list[float]
    peers: dict[str, list[float]]


class Record(_Frozen):
    """All that a model file holds."""

    format: Literal[1] = FORMAT
    radocraft: str = __version__
    created: str = Field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    method: Literal["matching", "drl"]
    settings: dict[str, float | str]
    contract: Contract
    intercept: float
    raw_intercept: float
    coefficients: tuple[Coefficient, ...]
    constants: dict[str, Constants] = Field(default_factory=dict)
    odds: Odds
    estimate: Estimate
    certificate: Certificate | None
    tuning: Tuned | None
    validation: Validated | None = None
    learned_from: tuple[Origin, ...]
    effects: dict[str, float]
    blocks: BlockTable
    notes: tuple[str, ...] = ()

    @property
    def peers(self) -> tuple[str, ...]:
        """The peers it was learned from."""
        return tuple(origin.peer for origin in self.learned_from)

    @property
    def classes(self) -> tuple[Value, Value]:
        """The label's two values, negative first."""
        return self.contract.label.values

    @cached_property
    def shared_weights(self) -> Floats:
        """Weights of the shared columns, in the contract's order."""
        return np.array([c.standardised for c in self.coefficients if c.peer is None])

    def of_peer(self, peer: str) -> tuple[Coefficient, ...]:
        """The coefficients of a peer's private columns, in the contract's order."""
        return tuple(c for c in self.coefficients if c.peer == peer)

    def log_odds(self, score: Floats) -> Floats:
        """Log-odds of the positive label for these scores."""
        return self.odds.offset + self.odds.slope * score

    @cached_property
    def block_codes(self) -> Ints:
        """Codes of the blocks as an array, one row each."""
        return np.array(self.blocks.codes, dtype=np.int64).reshape(len(self.blocks.labels), len(self.contract.shared))

    def save(self, path: str | Path) -> None:
        """Write the model to a JSON file, whole or not at all."""
        with writing(path) as file:
            file.write(self.model_dump_json(indent=1).encode())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model file."""
        try:
            return cls.model_validate_json(Path(path).read_bytes())
        except OSError as error:
            raise FileError(f"Cannot read the model '{path}': {error.strerror}. Check the path.") from error
        except ValidationError as error:
            raise FileError(
                f"'{path}' is not a model this version of radocraft ({__version__}) can read. "
                "It must be a file written by `radocraft learn`; if it is from another version, learn it again."
            ) from error
