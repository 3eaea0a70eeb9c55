"""What to expect of a model over scores on new rows, as its file says it, and what it gains over the best peer."""

from __future__ import annotations

from math import hypot, inf

from pydantic import Field

from radocraft.contract import Record
from radocraft.model._fields import Reliability


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

    def words(self, form: str, *, best: float = 0.0, middle: bool = False) -> str:
        """From where to where, after the value if ``middle``; one side only where it reaches the best there is.

        Examples
        --------
        >>> Interval(value=0.1, low=0.08, high=0.12).words(".1%")
        '8.0% to 12.0%'
        >>> Interval(value=0.1, low=0.08, high=0.12).words(".1%", middle=True)
        '10.0% (8.0% to 12.0%)'
        >>> Interval(value=0.002, low=0.0, high=0.012).words(".1%")
        'below 1.2%'
        >>> Interval(value=0.998, low=0.99, high=1.0).words(".3f", best=1.0)
        'above 0.990'
        """
        if best in (self.low, self.high):
            return f"above {self.low:{form}}" if best == self.high else f"below {self.high:{form}}"
        ends = f"{self.low:{form}} to {self.high:{form}}"
        return f"{self.value:{form}} ({ends})" if middle else ends


class ExpectedQuality(Record):
    """Error rate, AUC and log loss to expect on new rows."""

    error: Interval
    auc: Interval
    log_loss: Interval


class ScoreOutlook(ExpectedQuality):
    """What to expect of a model of scores on new rows.

    ``base_rate`` is the error of always giving the likelier label, and ``base_log_loss`` the log loss
    of always giving its share. ``gain`` is how much better it is than the best peer's own score: less error, more
    AUC, less log loss. ``alone`` is each peer's score by itself, from its own count of its scores,
    ``without`` the model that lacks one peer. Where it was ``measured`` how related scores are, the values
    are told, else only from where to where. ROC curve and reliability are of the rows that could be from which
    all of this is told.
    """

    measured: bool
    base_rate: float
    base_log_loss: float
    best_peer: str
    gain: ExpectedQuality
    alone: dict[str, ExpectedQuality]
    without: dict[str, ExpectedQuality] = Field(default_factory=dict)
    false_positive_rate: tuple[float, ...] = ()
    true_positive_rate: tuple[float, ...] = ()
    reliability: tuple[Reliability, ...] = ()

    @property
    def by_chance(self) -> bool:
        """Whether it cannot be told from chance."""
        return self.auc.low <= 0.5

    @property
    def sentence(self) -> str:
        """What to expect, from where to where, beside what needs no model."""
        chance = " This cannot be told from chance." if self.by_chance else ""
        error, loss = self.error.words(".1%", middle=self.measured), self.log_loss.words(".3f", middle=self.measured)
        area = self.auc.words(".3f", best=1.0, middle=self.measured)
        naive = f"Always predicting the commoner label errs {self.base_rate:.1%}."
        return f"Expect an error of {error}, an AUC of {area} and a log loss of {loss}. {naive}{chance}"

    @property
    def worth(self) -> str:
        """Whether it is worth it: the gain over the best peer, in one sentence."""
        error, loss, peer = self.gain.error, self.gain.log_loss, self.best_peer
        told = (
            f"{100 * error.value:.1f} points of error (from {100 * error.low:.1f} to {100 * error.high:.1f}) and "
            f"{loss.value:.3f} of log loss (from {loss.low:.3f} to {loss.high:.3f})"
        )
        if loss.low > 0.0:
            return f"Together they should do better than {peer} alone, by {told}."
        if loss.high < 0.0:
            return f"{peer} alone should do better than all together. Expected gain: {told}."
        return f"Whether they do better than {peer} alone cannot be told from what left. Expected gain: {told}."
