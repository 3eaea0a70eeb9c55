"""What to expect of a model over scores on new rows, as its file says it, and what it gains over the best peer."""

from __future__ import annotations

from pydantic import Field

from radocraft.contract import Record
from radocraft.model._fields import Reliability
from radocraft.model._interval import Interval


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
