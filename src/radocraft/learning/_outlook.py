"""What to expect of a model over scores, from what left alone: the head on fresh rows that could be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from radocraft.arrays import Floats, Ints
from radocraft.learning._correlation import Correlation
from radocraft.learning._head import Head
from radocraft.learning._metrics import auc
from radocraft.learning._quality_curves import reliability, roc
from radocraft.learning._virtual import Merged, VirtualRows, virtual_rows
from radocraft.model import ExpectedQuality, ScoreOutlook

EXPECT = 1
"""Seed of the rows that show what to expect; heads are fitted on others."""
_CLOSE = 1e-6


@dataclass(frozen=True)
class Quality:
    """How good probabilities are: error rate, area under the ROC curve, log loss."""

    error: float
    auc: float
    log_loss: float

    @classmethod
    def of(cls, log_odds: Floats, labels: Ints) -> Quality:
        """Of these log-odds against labels 0 and 1."""
        share = np.clip(expit(log_odds), _CLOSE, 1.0 - _CLOSE)
        loss = -np.mean(np.where(labels > 0, np.log(share), np.log1p(-share)))
        return cls(float(np.mean((log_odds > 0) != labels)), auc(log_odds, labels), float(loss))


@dataclass(frozen=True)
class Expected:
    """What a head should reach, from what left alone: at the correlation found, and two standard errors off.

    ``rows`` is what so many rows leave open about the error besides, ``alone`` each
    peer's own score by itself, ``without`` the heads that leave one peer out.
    """

    here: Quality
    low: Quality
    high: Quality
    rows: float
    alone: tuple[Quality, ...]
    base_rate: float


def expect(merged: Merged, head: Head, correlation: Correlation) -> Expected:
    """The head on fresh virtual rows."""
    drawn, *off = (virtual_rows(merged, correlation.moved(errors), EXPECT) for errors in (0.0, -2.0, 2.0))
    here, low, high = (_quality(head, rows) for rows in (drawn, *off))
    alone = tuple(Quality.of(drawn.features[:, at], drawn.labels) for at in range(len(merged.peers)))
    share = float(drawn.labels.mean())
    rows_error = (here.error * (1.0 - here.error) / merged.total) ** 0.5
    return Expected(here, low, high, rows_error, alone, min(share, 1.0 - share))


def _quality(head: Head, rows: VirtualRows) -> Quality:
    return Quality.of(head.log_odds(rows.features), rows.labels)


def outlook_of(merged: Merged, heads: Sequence[Head], correlation: Correlation) -> ScoreOutlook:
    """What to expect of the last of the heads, and of those that lack one of its peers."""
    whole = heads[-1]
    expected = expect(merged, whole, correlation)
    rows = virtual_rows(merged, correlation.mean, EXPECT)
    log_odds = whole.log_odds(rows.features)
    false, true = roc(log_odds, rows.labels)
    without = {
        merged.names[({*whole.places} - {*head.places}).pop()]: _as_expected(_quality(head, rows))
        for head in heads
        if len(head.places) == len(whole.places) - 1
    }
    return ScoreOutlook(
        here=_as_expected(expected.here),
        low=_as_expected(expected.low),
        high=_as_expected(expected.high),
        rows=expected.rows,
        base_rate=expected.base_rate,
        alone={name: _as_expected(quality) for name, quality in zip(merged.names, expected.alone, strict=True)},
        without=without,
        false_positive_rate=false,
        true_positive_rate=true,
        reliability=reliability(log_odds, rows.labels),
    )


def _as_expected(quality: Quality) -> ExpectedQuality:
    return ExpectedQuality(error=quality.error, auc=quality.auc, log_loss=quality.log_loss)
