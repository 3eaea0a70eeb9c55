"""What to expect of a model over scores on new rows, as its file says it, and what it gains over the best peer."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, inf
from typing import TYPE_CHECKING

from pydantic import Field

from radocraft.contract import Record
from radocraft.model._fields import Reliability

if TYPE_CHECKING:
    from radocraft.model._scores import ScoreModel


class Interval(Record):
    """What to expect of one number on new rows, and from where to where.

    ``parts`` are standard errors, by what they come of: the `relation` of what peers know,
    the `sample` there was, the `noise` in what left, and the `shape` that rows are assumed to
    have. The interval is twice all of them together on either side, as far as that is possible.

    Examples
    --------
    >>> told = Interval.around(0.5, {"relation": 0.03, "sample": 0.04}, most=0.55)
    >>> told.low, told.high, 0.45 in told
    (0.4, 0.55, True)
    """

    value: float
    low: float
    high: float
    parts: dict[str, float] = Field(default_factory=dict)

    @classmethod
    def around(cls, value: float, parts: dict[str, float], least: float = -inf, most: float = inf) -> Interval:
        """Two standard errors either side, within what is possible."""
        half = 2.0 * hypot(*parts.values())
        low, middle, high = (min(max(at, least), most) for at in (value - half, value, value + half))
        return cls(value=middle, low=low, high=high, parts=parts)

    def __contains__(self, value: float) -> bool:
        """Whether it holds a value."""
        return self.low <= value <= self.high


class ExpectedQuality(Record):
    """Error rate, AUC and log loss to expect on new rows."""

    error: float
    auc: float
    log_loss: float


class ScoreOutlook(Record):
    """What to expect: here, and with every correlation two standard errors lower and higher.

    ``alone`` is each peer's score by itself, ``without`` the model that lacks one peer,
    ``rows`` the standard error of an error rate on so many rows, ``base_rate`` the error
    of always giving the likelier label. ROC curve and reliability are of the rows that could
    be from which all of this is told.
    """

    here: ExpectedQuality
    low: ExpectedQuality
    high: ExpectedQuality
    rows: float
    base_rate: float
    alone: dict[str, ExpectedQuality]
    without: dict[str, ExpectedQuality] = Field(default_factory=dict)
    false_positive_rate: tuple[float, ...] = ()
    true_positive_rate: tuple[float, ...] = ()
    reliability: tuple[Reliability, ...] = ()


@dataclass(frozen=True)
class Gain:
    """How much better than the best peer alone a model of scores should be, in log loss and in one sentence."""

    peer: str
    loss: float
    low: float
    high: float
    sentence: str


def gain_of(model: ScoreModel) -> Gain:
    """What the joint model gains over the best peer's own score, as far as what left tells."""
    outlook = model.outlook
    peer, alone = min(outlook.alone.items(), key=lambda item: item[1].log_loss)
    low, high = sorted(alone.log_loss - quality.log_loss for quality in (outlook.low, outlook.high))
    gain = alone.log_loss - outlook.here.log_loss
    points = 100.0 * (alone.error - outlook.here.error)
    found = f"{points:.1f} points of error and {gain:.3f} of log loss (from {low:.3f} to {high:.3f})"
    if low > 0.0:
        sentence = f"Together they should do better than {peer} alone by {found}."
    else:
        sentence = f"Whether they do better than {peer} alone cannot be told from what left: expected are {found}."
    return Gain(peer, gain, low, high, sentence)
