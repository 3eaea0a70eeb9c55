"""The fields of a model file; the file itself is `Model`."""

from __future__ import annotations

from math import inf
from typing import Literal

import numpy as np
from pydantic import Field
from scipy.special import expit, softmax

from radocraft.arrays import Floats, Ints
from radocraft.contract import Record
from radocraft.errors import LearnError
from radocraft.model._interval import Interval

Weight = float | tuple[float, ...]
"""One number, or with several classes one for each, in the contract's order."""


def number(weight: Weight) -> float:
    """The number of a model with one score.

    Raises
    ------
    LearnError
        If there is one for each of several classes.
    """
    if isinstance(weight, tuple):
        raise LearnError("This is for models with one score, and this model has one per class.")
    return weight


def plain(weight: Floats) -> Weight:
    """An array without axes as a number, one with an axis as a tuple."""
    out: Weight = tuple(weight.tolist()) if weight.ndim else float(weight)
    return out


class Coefficient(Record):
    """The weight of one column of the model.

    ``peer`` is None for a shared column. ``standardised`` goes with
    ``(raw - centre) / scale``, ``raw`` with the raw value; ``effect`` is the
    standardised weight times the column's standard deviation over the training
    population, which makes columns comparable. A raw value below ``low`` counts as
    ``low``, one above ``high`` as ``high``, as it did where rows were summed.
    """

    name: str
    feature: str
    peer: str | None
    standardised: Weight
    raw: Weight
    centre: float
    scale: float
    effect: Weight
    low: float | None = None
    high: float | None = None


class Gate(Record):
    """What a peer's gate did to its part before it left, as the part says."""

    mode: str
    min_rows: int
    rolled_up: int


class Origin(Record):
    """A part the model was learned from."""

    peer: str
    rows: int
    cells: int
    bytes: int
    created: str
    hash: str
    guarantee: str
    gate: Gate | None = None


class Certificate(Record):
    """Ridge losses on the training population; a numeric label in units of its standard deviation.

    ``expected`` is the mean over all matchings of rows consistent with the
    blocks, ``guaranteed`` bounds the loss under every one of them, ``peers`` is what
    each peer that holds the label reaches alone with the same regularisation. Sums with noise
    bound nothing: then ``guaranteed`` is None, and ``as_released`` what they would have as the bound. Sums by
    label of peers that lack it are estimates: for those in ``uncertain``, the worst case
    allows two standard deviations; those in ``trusted`` are taken for exact.
    """

    expected: float
    guaranteed: float | None = None
    as_released: float | None = None
    peers: dict[str, float]
    uncertain: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()

    @property
    def worst(self) -> float:
        """The loss under the worst matching: a bound, or what noisy sums have as one."""
        found = self.as_released if self.guaranteed is None else self.guaranteed
        return inf if found is None else found


class NoiseCost(Record):
    """What the peers that add noise promise, and what it costs.

    ``loss`` is by how much it is expected to have raised the loss on the training
    population, ``error`` what that is in shares of new rows, for labels of two values.
    """

    guarantee: str
    loss: float
    error: float | None = None

    @property
    def sentence(self) -> str:
        """Both in one sentence."""
        points = "" if self.error is None else f"about {100 * self.error:.1f} points of error, "
        return f"{self.guarantee}; the noise costs {points}{self.loss:.2g} of the loss."


class Tuning(Record):
    """How the strength of the regularisation was chosen: every candidate with its score, lowest best."""

    method: str
    chosen: float
    candidates: tuple[float, ...]
    scores: tuple[float, ...]


class Odds(Record):
    """Log-odds of the positive label: ``offset + slope * score``.

    With several classes one number for each, ``offset + slope @ scores``, whose
    softmax are the probabilities.
    """

    offset: Weight
    slope: float | tuple[tuple[float, ...], ...]

    @property
    def single_slope(self) -> float:
        """The slope of a model with one score."""
        return number(self.slope if isinstance(self.slope, float) else self.slope[0])

    def log_odds(self, score: Floats) -> Floats:
        """Log-odds for these scores."""
        offset, slope = np.array(self.offset), np.array(self.slope)
        return np.asarray(offset + (slope * score if slope.ndim == 0 else score @ slope.T))

    def probability(self, score: Floats) -> Floats:
        """Probability of the positive label, or of every class."""
        log_odds = self.log_odds(score)
        return np.asarray(expit(log_odds) if log_odds.ndim == 1 else softmax(log_odds, axis=1))

    def chosen(self, score: Floats) -> Ints:
        """Which of the label's values is likeliest."""
        log_odds = self.log_odds(score)
        return (log_odds > 0 if log_odds.ndim == 1 else log_odds.argmax(axis=1)).astype(np.int64)


class Outlook(Record):
    """What to expect on new rows, if what no one can see is as this caution assumes; see `Estimate`."""

    caution: float
    error: float
    auc: float | None = None
    log_loss: float | None = None
    r2: float | None = None


class Reliability(Record):
    """Rows to expect with a probability in one bin: their share of all, the predicted mean, the true mean."""

    share: float
    predicted: float
    true: float


class Estimate(Record):
    """How the model will do on new rows, estimated without one joined row; see `population` and `expected`.

    With several classes the AUC is the mean over classes, each against all others,
    and there is no single ROC curve. If the label is a number ``error`` is the root
    mean square error in its units, and R² takes the place of the AUC. ``intervals`` has each
    by name, ``base_rate`` is the error of the answer that needs no model. With too few rows
    nothing is told but that. ``kept`` is the share of a residual that the fit left in place, by
    which optimism is corrected.
    """

    error: float | None = None
    auc: float | None = None
    log_loss: float | None = None
    r2: float | None = None
    base_rate: float | None = None
    intervals: dict[str, Interval] = Field(default_factory=dict)
    outlooks: tuple[Outlook, ...] = ()
    false_positive_rate: tuple[float, ...] = ()
    true_positive_rate: tuple[float, ...] = ()
    reliability: tuple[Reliability, ...] = ()
    kept: float = 1.0
    assumption: str

    @property
    def by_chance(self) -> bool:
        """Whether the model cannot be told from one that knows nothing."""
        error, other = self.intervals.get("error"), self.intervals.get("auc", self.intervals.get("r2"))
        if error is None or other is None or self.base_rate is None:
            return False
        return error.high >= self.base_rate and other.low <= (0.5 if self.r2 is None else 0.0)


class Compared(Record):
    """One way to treat what nobody can see, and its loss on linked rows."""

    kind: Literal["caution", "covariance"]
    value: float
    loss: float


class Validation(Record):
    """A real test on linked rows, in the terms of `Estimate`."""

    rows: int
    loss: float
    error: float
    auc: float | None = None
    r2: float | None = None
    compared: tuple[Compared, ...]


class Difference(Record):
    """Two peers' labels or signatures compared: G, its degrees of freedom, and how likely chance gives as much."""

    peers: tuple[str, str]
    of: Literal["labels", "signatures"]
    statistic: float
    freedom: int
    p: float


class Seen(Record):
    """Whom a peer saw, against the population of the model, whose blocks have the weights u.

    ``counts`` is the peer's share in the weights, 0 if it lacks the label; ``apart`` the
    share of its rows that would have to be in other blocks (or signatures, if it lacks
    the label) for its people to be the model's; ``labels`` the share of each label there.
    """

    peer: str
    counts: float
    apart: float
    labels: dict[str, float] = Field(default_factory=dict)


class BlockTable(Record):
    """Per block: codes (-1 for any), label, weight, and the mean contribution of the shared columns and each peer."""

    codes: list[list[int]]
    labels: list[int]
    weights: list[float]
    shared: list[Weight]
    peers: dict[str, list[Weight]]
