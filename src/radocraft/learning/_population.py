"""How columns and scores vary over the training population, and the error to expect on new rows.

Nobody has a joined row, but inside a block the score is about normal: a sum of
many columns. Its mean there is known, its variance up to what no one can see
(`Completion`), so error rate, ROC curve and probabilities follow from blocks::

    error = sum_b u_b Phi(-y_b (f_b - t) / s) / M                            (docs, eq. 4)

with ``f_b`` the mean score in block b, ``s`` the standard deviation inside blocks
and ``t`` the score at which the two labels are equally likely. Scores of rows a
model was fitted to flatter it, so residuals are divided by ``1 - df / M`` first,
as generalised cross-validation does: ``f_b`` becomes ``y_b - (y_b - f_b) / (1 - df / M)``
and ``s`` becomes ``s / (1 - df / M)``. Where a peer lacks the label its block means are
estimates; from caution 0 to 1 the two labels' scores move towards each other, by up to two standard
deviations of the estimates.

Which label is likelier is judged with ``s`` at caution 0; how sure a probability is,
with ``s`` at the caution of the fit: where it distrusts what no one can see, its
probabilities do too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import expit, ndtr

from radocraft.arrays import Floats, Truths
from radocraft.learning._blocks import Blocks
from radocraft.learning._completion import DEVIATIONS
from radocraft.learning._fit import Fit
from radocraft.learning._products import coordinates
from radocraft.model import Estimate, Odds, Outlook, Reliability

CAUTIONS = (0.0, 0.25, 0.5, 1.0)
ASSUMPTION = (
    "Inside a block scores are normal, and what one peer's columns say about another's there is as caution assumes: "
    "nothing at 0, the worst there can be at 1."
)
ESTIMATED = (
    " Sums by label of peers that lack it are estimated: taken as they are at 0, less telling by two standard "
    "deviations at 1."
)
TRUSTED = " Sums by label of peers that lack it are estimated, and taken for exact: that flatters the model."
_NO_SPREAD = 1e-12
_BINS = 4096
_POINTS = 201
_TENTHS = 10
RARE = 1e-4


def assumption(blocks: Blocks, fit: Fit) -> str:
    """What an estimate of the error assumes."""
    if all(map(blocks.contract.labelled, blocks.peers)):
        return ASSUMPTION
    return ASSUMPTION + (TRUSTED if fit.known.uncertainty is None else ESTIMATED)


@dataclass(frozen=True)
class Population:
    """How the columns and the scores of a fit spread over the training population.

    ``covariance`` is that of all columns but the constant, ``contributions`` the
    mean contribution per block of the shared columns, then of each peer,
    ``targets`` what the score is to be in each block.
    """

    blocks: Blocks
    fit: Fit
    covariance: Floats
    contributions: Floats
    targets: Floats

    @classmethod
    def of(cls, blocks: Blocks, fit: Fit) -> Population:
        """Read it off the blocks."""
        return cls.of_each(blocks, fit)[0]

    @classmethod
    def of_each(cls, blocks: Blocks, fit: Fit) -> tuple[Population, ...]:
        """One for the score of every class, or one for the only score."""
        known, thetas = fit.known, fit.theta.reshape(len(fit.theta), -1)
        start = fit.layout.shared.start
        total, scores = np.zeros(fit.layout.size), []
        for piece in blocks.pieces():
            means = coordinates(piece, fit.layout)
            total += piece.weights @ means
            scores.append(np.stack([means[:, where] @ thetas[where] for where in fit.layout.groups], axis=1))
        mean = total[start:] / known.total
        covariance = known.expected()[start:, start:] / known.total - np.outer(mean, mean)
        stacked, targets = np.concatenate(scores), blocks.targets.reshape(len(blocks), -1)
        one_by_one = zip(known.each(), thetas.T, strict=True)
        return tuple(
            cls(blocks, replace(fit, known=of_class, theta=theta), covariance, stacked[:, :, at], targets[:, at])
            for at, (of_class, theta) in enumerate(one_by_one)
        )

    def deviations(self) -> Floats:
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

    @property
    def caution(self) -> float:
        """That of the fit; 0 where linked rows showed what no one could see, and for the paper's method."""
        return float(self.fit.settings.get("caution", 0.0))

    @cached_property
    def kept(self) -> float:
        """1 - df / M, the share of a residual that the fit left in place."""
        return max(1.0 - self.fit.freedom / self.fit.known.total, 0.05)

    @cached_property
    def scores(self) -> Floats:
        """Mean score of every block as it would be for new rows."""
        constant = self.fit.theta[0] if self.fit.layout.intercept else 0.0
        out: Floats = self.targets - (self.targets - constant - self.contributions.sum(axis=1)) / self.kept
        return out

    def scores_at(self, caution: float) -> Floats:
        """The same where sums by label that are estimated tell less than it seems."""
        uncertainty = DEVIATIONS * float(self.fit.known.uncertainty_of(self.fit.theta)) / self.kept
        return np.asarray(self.scores - caution * uncertainty * self.targets)

    def deviation(self, caution: float) -> float:
        """Standard deviation of a new row's score inside its block."""
        theta, known = self.fit.theta, self.fit.known
        inside = float(known.squares(theta, caution) - theta @ known.between @ theta)
        return float(max(inside / known.total, _NO_SPREAD) ** 0.5) / self.kept

    def odds(self, prior: bool) -> Odds:
        """How the score becomes a probability; see `line`."""
        offset, slope = self.line(prior)
        return Odds(offset=offset, slope=slope)

    def line(self, prior: bool) -> tuple[float, float]:
        """Offset and slope of the log-odds: Bayes over two normal score distributions with one variance.

        log-odds = v / w * (log(U+ / U-) + (m+ - m-) / v * (score - (m+ + m-) / 2)),
        where ``U`` is the weight of a label, ``m`` the mean score under it, ``v``
        the variance of the score given the label and ``w`` the same at the
        caution of the fit. Without ``prior`` the class is the sign of the score,
        as in the paper, and only the slope is kept.
        """
        weights, positive, score = self.blocks.weights, self.targets > 0, self.scores
        total = np.array([weights[~positive].sum(), weights[positive].sum()])
        mean = np.array([weights[~positive] @ score[~positive], weights[positive] @ score[positive]]) / total
        between = float(weights @ (score - mean[positive.astype(int)]) ** 2) / float(weights.sum())
        v, w = (self.deviation(caution) ** 2 + between for caution in (0.0, self.caution))
        slope = float(mean[1] - mean[0]) / v
        offset = float(np.log(total[1] / total[0]) - slope * mean.mean()) if prior else 0.0
        return offset * v / w, slope * v / w

    def estimate(self, prior: bool) -> Estimate:
        """Error rate, AUC and ROC curve on new rows, without one joined row."""
        offset, slope = self.line(prior)
        threshold = -offset / slope if slope else 0.0
        outlooks = [Outlook(caution=c, error=self.error(threshold, c), auc=self.auc(c)) for c in CAUTIONS]
        false, true = self._roc(0.0)
        places = np.linspace(0, len(false) - 1, _POINTS).astype(int)
        return Estimate(
            error=outlooks[0].error,
            auc=outlooks[0].auc,
            outlooks=tuple(outlooks),
            false_positive_rate=tuple(false[places].tolist()),
            true_positive_rate=tuple(true[places].tolist()),
            reliability=self._reliability(offset, slope),
            kept=self.kept,
            assumption=assumption(self.blocks, self.fit),
        )

    def error(self, threshold: float, caution: float, blur: float = 0.0) -> float:
        """Share of new rows on the wrong side of a threshold, if scores have ``blur`` more variance."""
        deviation = float(np.hypot(self.deviation(caution), blur**0.5))
        wrong = ndtr(-self.targets * (self.scores_at(caution) - threshold) / deviation)
        return float(self.blocks.weights @ wrong) / self.fit.known.total

    def error_of(self, blur: float, prior: bool) -> float:
        """How much more error ``blur`` more variance of the scores gives, in shares of new rows."""
        offset, slope = self.line(prior)
        threshold = -offset / slope if slope else 0.0
        return self.error(threshold, 0.0, blur) - self.error(threshold, 0.0)

    def auc(self, caution: float) -> float:
        """Area under the ROC curve on new rows."""
        false, true = self._roc(caution)
        return float(np.trapezoid(true, false))

    def _reliability(self, offset: float, slope: float) -> tuple[Reliability, ...]:
        """What new rows are told and what is so, at the caution of the fit, as the probabilities are."""
        grid = self._thresholds(self.scores_at(self.caution), self.deviation(self.caution))
        false, true = self._roc(self.caution)
        positive = float(self.blocks.weights @ (self.targets > 0)) / self.fit.known.total
        yes, all_rows = np.diff(true) * positive, np.diff(true) * positive + np.diff(false) * (1.0 - positive)
        return tenths(expit(offset + slope * (grid[1:] + grid[:-1]) / 2), all_rows, yes, above=RARE)

    def _thresholds(self, scores: Floats, deviation: float) -> Floats:
        """Falling scores from above all rows to below all rows."""
        reach = 6 * deviation
        return np.linspace(scores.max() + reach, scores.min() - reach, _BINS)

    def _roc(self, caution: float) -> tuple[Floats, Floats]:
        """False and true positive rates at falling thresholds, block scores gathered into fine bins."""
        scores, deviation, positive = self.scores_at(caution), self.deviation(caution), self.targets > 0
        grid = self._thresholds(scores, deviation)
        return self._rate(scores, ~positive, grid, deviation), self._rate(scores, positive, grid, deviation)

    def _rate(self, scores: Floats, chosen: Truths, grid: Floats, deviation: float) -> Floats:
        """Share of the chosen blocks' rows with a score above each threshold."""
        step = float(grid[0] - grid[-1]) / (_BINS - 1)
        place = np.rint((grid[0] - scores[chosen]) / step).astype(np.int64)
        mass = np.bincount(place, self.blocks.weights[chosen], minlength=_BINS)
        reach = int(np.ceil(6 * deviation / step)) + 1
        kernel = ndtr(np.arange(-reach, reach + 1) * step / deviation)
        rising = np.convolve(mass, kernel)[reach : reach + _BINS]
        above = np.concatenate([np.zeros(reach + 1), np.cumsum(mass)])[:_BINS]
        out: Floats = np.clip((rising + above) / mass.sum(), 0.0, 1.0)
        return out


def tenths(predicted: Floats, rows: Floats, positive: Floats, *, above: float = 0.0) -> tuple[Reliability, ...]:
    """In ten bins of the probability: the share of rows, what they are told, and how many are positive.

    ``rows`` and ``positive`` are shares of all rows; a bin is left out if its share is not ``above`` so much.

    Examples
    --------
    >>> tenths(np.array([0.12, 0.18, 0.9]), np.array([0.3, 0.3, 0.4]), np.array([0.0, 0.12, 0.4]))[0]
    Reliability(share=0.6, predicted=0.15, true=0.2)
    """
    place = np.minimum((_TENTHS * predicted).astype(int), _TENTHS - 1)
    share, sums, hits = (np.bincount(place, mass, _TENTHS) for mass in (rows, rows * predicted, positive))
    return tuple(
        Reliability(share=float(share[at]), predicted=float(sums[at] / share[at]), true=float(hits[at] / share[at]))
        for at in np.flatnonzero(share > above)
    )
