"""How the columns and scores of a fit spread over the training population, and how it will do on new rows.

Nobody has a joined row, but inside a block the score is about normal: a sum of
many columns. Its mean there is known, its variance up to what no one can see
(`Completion`), so error rate, ROC curve and probabilities follow from blocks::

    error = sum_b u_b Phi(-y_b (f_b - t) / s) / M                            (docs, eq. 4)

with ``f_b`` the mean score in block b, ``s`` the standard deviation inside blocks
and ``t`` the score at which the two labels are equally likely. Scores of rows a
model was fitted to flatter it, so residuals are divided by ``1 - df / M`` first,
as generalised cross-validation does: ``f_b`` becomes ``y_b - (y_b - f_b) / (1 - df / M)``
and ``s`` becomes ``s / (1 - df / M)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from radocraft.arrays import Floats, Truths
from radocraft.blocks import Blocks
from radocraft.learners import Fit
from radocraft.model.record import BlockTable, Estimate, Odds, Outlook

CAUTIONS = (0.0, 0.25, 0.5, 1.0)
ASSUMPTION = (
    "Inside a block scores are normal, and what one peer's columns say about another's there is as caution assumes: "
    "nothing at 0, the worst there can be at 1."
)
_NO_SPREAD = 1e-12
_BINS = 4096
_POINTS = 201


@dataclass(frozen=True)
class Population:
    """How the columns and the scores of a fit spread over the training population.

    ``covariance`` is that of all columns but the constant, ``contributions`` the
    mean contribution per block of the shared columns, then of each peer.
    """

    blocks: Blocks
    fit: Fit
    covariance: Floats
    contributions: Floats

    @classmethod
    def of(cls, blocks: Blocks, fit: Fit) -> Population:
        """Read it off the blocks, one peer at a time."""
        known = fit.known
        means, scores = [], []
        for at, where in enumerate(fit.layout.groups):
            block_means = blocks.shared_means if at == 0 else blocks.means(at - 1)
            means.append(blocks.weights @ block_means / known.total)
            scores.append(block_means @ fit.theta[where])
        mean = np.concatenate(means)
        start = fit.layout.shared.start
        covariance = known.expected()[start:, start:] / known.total - np.outer(mean, mean)
        return cls(blocks, fit, covariance, np.column_stack(scores))

    def spread(self) -> Floats:
        """Standard deviation of every column, in the model's units."""
        return np.maximum(np.diag(self.covariance), 0.0) ** 0.5

    def effects(self) -> dict[str, float]:
        """Standard deviation of the contribution of the shared columns and of each peer."""
        names = ("shared", *self.blocks.peers)
        start, theta = self.fit.layout.shared.start, self.fit.theta
        out = {}
        for name, where in zip(names, self.fit.layout.groups, strict=True):
            inside = slice(where.start - start, where.stop - start)
            out[name] = max(float(theta[where] @ self.covariance[inside, inside] @ theta[where]), 0.0) ** 0.5
        return out

    def table(self) -> BlockTable:
        """The mean contributions per block, for views that lack a peer's columns."""
        return BlockTable(
            codes=self.blocks.codes.tolist(),
            labels=self.blocks.labels.tolist(),
            weights=self.blocks.weights.tolist(),
            shared=self.contributions[:, 0].tolist(),
            peers={peer: self.contributions[:, at].tolist() for at, peer in enumerate(self.blocks.peers, start=1)},
        )

    @cached_property
    def kept(self) -> float:
        """1 - df / M, the share of a residual that the fit left in place."""
        return max(1.0 - self.fit.freedom / self.fit.known.total, 0.05)

    @cached_property
    def scores(self) -> Floats:
        """Mean score of every block as it would be for new rows."""
        constant = self.fit.theta[0] if self.fit.layout.intercept else 0.0
        labels = self.blocks.labels
        out: Floats = labels - (labels - constant - self.contributions.sum(axis=1)) / self.kept
        return out

    def deviation(self, caution: float) -> float:
        """Standard deviation of a new row's score inside its block."""
        theta, known = self.fit.theta, self.fit.known
        worst = float(theta @ known.explained @ theta) + float(known.hidden(theta).sum()) ** 2
        square = (1.0 - caution) * float(theta @ known.expected() @ theta) + caution * worst
        inside = square - float(theta @ known.between @ theta)
        return float(max(inside / known.total, _NO_SPREAD) ** 0.5) / self.kept

    def odds(self, prior: bool) -> Odds:
        """Bayes over two normal score distributions with one variance.

        log-odds = log(U+ / U-) + (m+ - m-) / v * (score - (m+ + m-) / 2), where
        ``U`` is the weight of a label, ``m`` the mean score under it and ``v``
        the variance of the score given the label. Without ``prior`` the class
        is the sign of the score, as in the paper, and only the slope is kept.
        """
        weights, positive, score = self.blocks.weights, self.blocks.labels > 0, self.scores
        total = np.array([weights[~positive].sum(), weights[positive].sum()])
        mean = np.array([weights[~positive] @ score[~positive], weights[positive] @ score[positive]]) / total
        between = float(weights @ (score - mean[positive.astype(int)]) ** 2) / float(weights.sum())
        slope = float(mean[1] - mean[0]) / (self.deviation(0.0) ** 2 + between)
        offset = float(np.log(total[1] / total[0]) - slope * mean.mean()) if prior else 0.0
        return Odds(offset=offset, slope=slope)

    def estimate(self, prior: bool) -> Estimate:
        """Error rate, AUC and ROC curve on new rows, without one joined row."""
        odds = self.odds(prior)
        threshold = -odds.offset / odds.slope if odds.slope else 0.0
        outlooks = [Outlook(caution=c, **self._outlook(threshold, self.deviation(c))) for c in CAUTIONS]
        false, true = self._roc(self.deviation(0.0))
        places = np.linspace(0, len(false) - 1, _POINTS).astype(int)
        return Estimate(
            error=outlooks[0].error,
            auc=outlooks[0].auc,
            outlooks=tuple(outlooks),
            false_positive_rate=tuple(false[places].tolist()),
            true_positive_rate=tuple(true[places].tolist()),
            assumption=ASSUMPTION,
        )

    def _outlook(self, threshold: float, deviation: float) -> dict[str, float]:
        blocks = self.blocks
        wrong = ndtr(-blocks.labels * (self.scores - threshold) / deviation)
        false, true = self._roc(deviation)
        area = float(np.trapezoid(true, false))
        return {"error": float(blocks.weights @ wrong) / self.fit.known.total, "auc": area}

    def _roc(self, deviation: float) -> tuple[Floats, Floats]:
        """False and true positive rates at falling thresholds, block scores gathered into fine bins."""
        reach = 6 * deviation
        grid = np.linspace(self.scores.max() + reach, self.scores.min() - reach, _BINS)
        positive = self.blocks.labels > 0
        return self._rate(~positive, grid, deviation), self._rate(positive, grid, deviation)

    def _rate(self, chosen: Truths, grid: Floats, deviation: float) -> Floats:
        """Share of the chosen blocks' rows with a score above each threshold."""
        step = float(grid[0] - grid[-1]) / (_BINS - 1)
        place = np.rint((grid[0] - self.scores[chosen]) / step).astype(np.int64)
        mass = np.bincount(place, self.blocks.weights[chosen], minlength=_BINS)
        reach = int(np.ceil(6 * deviation / step)) + 1
        kernel = ndtr(np.arange(-reach, reach + 1) * step / deviation)
        rising = np.convolve(mass, kernel)[reach : reach + _BINS]
        above = np.concatenate([np.zeros(reach + 1), np.cumsum(mass)])[:_BINS]
        out: Floats = np.clip((rising + above) / mass.sum(), 0.0, 1.0)
        return out
