"""How columns and scores vary over the training population, and the error to expect on new rows.

Nobody has a joined row, but inside a block the score is about normal: a sum of
many columns. Its mean there is known, its variance up to what no one can see
(`Completion`), so error rate, ROC curve and probabilities follow from blocks::

    error = sum_b u_b Phi(-y_b (f_b - t) / s_y) / M                          (docs, eq. 4)

with ``f_b`` the mean score in block b, ``s_y`` the standard deviation inside blocks of
its label (`spread`) and ``t`` the score at which the two labels are equally likely. Scores
of rows a model was fitted to flatter it, so residuals are divided by ``1 - df / M`` first,
as generalised cross-validation does: ``f_b`` becomes ``y_b - (y_b - f_b) / (1 - df / M)``
and ``s`` becomes ``s / (1 - df / M)``. Where a peer lacks the label its block means are
estimates; from caution 0 to 1 the two labels' scores move towards each other, by up to two standard
deviations of the estimates.

Log-odds are linear in the score, and those that fit both labels' scores best (logistic
regression over them). Which label is likelier is judged with ``s`` at caution 0; how sure
a probability is, with ``s`` at the caution of the fit: where it distrusts what no one can
see, its probabilities do too. Scores that are no higher under the positive label than
under the other tell nothing: then all rows get the base rate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import expit, ndtr

from radocraft.arrays import Floats, Ints, Truths
from radocraft.contract import Number
from radocraft.learning._blocks import Blocks
from radocraft.learning._completion import DEVIATIONS
from radocraft.learning._fit import Fit
from radocraft.learning._products import coordinates
from radocraft.learning._spread import LabelSpread, spread_by_label, variance_inside
from radocraft.model import Odds, Reliability

_BINS = 4096
_TENTHS = 10
_POINTS = 201
_ROUNDS, _SETTLED, _STEP = 200, 1e-10, 3.0
_LEAST_KEPT = 0.05
RARE = 1e-4


@dataclass(frozen=True)
class Assumed:
    """What is taken to be so of new rows: how peers' scores are related, and by how much noise misleads.

    ``caution`` is the correlation of the peers' scores inside blocks, ``stretch`` a factor on
    their variance there, ``shift`` by how much scores go away from their label's side.
    """

    caution: float = 0.0
    stretch: float = 1.0
    shift: float = 0.0


INDEPENDENT = Assumed()


@dataclass(frozen=True)
class Rates:
    """Falling thresholds, and the shares of both labels' rows with a score above each."""

    grid: Floats
    false: Floats
    true: Floats

    @property
    def middles(self) -> Floats:
        """The score in the middle of every step."""
        return np.asarray((self.grid[1:] + self.grid[:-1]) / 2.0)

    def masses(self, positive: float) -> tuple[Floats, Floats]:
        """Share of all rows in every step, by label, if so many of them are positive."""
        return np.diff(self.false) * (1.0 - positive), np.diff(self.true) * positive

    @property
    def curve(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The ROC curve at some of the thresholds."""
        places = np.linspace(0, len(self.false) - 1, _POINTS).astype(int)
        return tuple(self.false[places].tolist()), tuple(self.true[places].tolist())

    @property
    def auc(self) -> float:
        """Area under the ROC curve."""
        return float(np.trapezoid(self.true, self.false))


@dataclass(frozen=True)
class Population:
    """How the columns and the scores of a fit spread over the training population.

    ``covariance`` is that of all columns but the constant, ``contributions`` the
    mean contribution per block of the shared columns, then of each peer,
    ``targets`` what the score is to be in each block, ``spread`` how scores vary inside
    blocks of every label (None where the label is a number).
    """

    blocks: Blocks
    fit: Fit
    covariance: Floats
    contributions: Floats
    targets: Floats
    spread: LabelSpread | None

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
        number = isinstance(blocks.contract.label, Number)
        spreads = [None] * thetas.shape[1] if number else [*spread_by_label(blocks, fit)]
        return tuple(
            cls(
                blocks,
                replace(fit, known=of_class, theta=thetas[:, at]),
                covariance,
                stacked[:, :, at],
                targets[:, at],
                spreads[at],
            )
            for at, of_class in enumerate(known.each())
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
        return max(1.0 - self.fit.freedom / self.fit.known.total, _LEAST_KEPT)

    @cached_property
    def scores(self) -> Floats:
        """Mean score of every block as it would be for new rows."""
        constant = self.fit.theta[0] if self.fit.layout.intercept else 0.0
        out: Floats = self.targets - (self.targets - constant - self.contributions.sum(axis=1)) / self.kept
        return out

    def scores_at(self, assumed: Assumed) -> Floats:
        """The same where sums by label that are estimated tell less than it seems, and noise misleads."""
        uncertainty = DEVIATIONS * float(self.fit.known.uncertainty_of(self.fit.theta)) / self.kept
        return np.asarray(self.scores - (assumed.caution * uncertainty + assumed.shift) * self.targets)

    def deviation(self, caution: float) -> float:
        """Standard deviation of a new row's score inside its block, over all labels."""
        return float(variance_inside(self.fit.known, self.fit.theta, caution) ** 0.5 / self.kept)

    def deviations_at(self, assumed: Assumed) -> Floats:
        """The same by label, in the contract's order."""
        assert self.spread is not None
        worst = 1.0 + assumed.caution * (self.spread.worst - 1.0)
        return np.asarray(self.deviation(0.0) * (assumed.stretch * self.spread.ratios * worst) ** 0.5)

    @cached_property
    def label_at(self) -> Ints:
        """Which of the contract's labels every block has."""
        return np.searchsorted(self.blocks.contract.label.codes, self.blocks.labels).astype(np.int64)

    @property
    def positive(self) -> float:
        """Share of rows with the positive label."""
        return float(self.blocks.weights @ (self.targets > 0)) / self.fit.known.total

    def odds(self, prior: bool) -> Odds:
        """How the score becomes a probability; see `line`."""
        offset, slope = self.line(prior)
        return Odds(offset=offset, slope=slope)

    def line(self, prior: bool) -> tuple[float, float]:
        """Offset and slope of the log-odds; see `_line`."""
        return self._lines[prior]

    @cached_property
    def _lines(self) -> tuple[tuple[float, float], tuple[float, float]]:
        return self._line(prior=False), self._line(prior=True)

    def _line(self, *, prior: bool) -> tuple[float, float]:
        """Log-odds are 0 where two normals of one variance cross, and rise as both labels' scores have it.

        The place is ``(m+ + m-) / 2 - v log(U+ / U-) / (m+ - m-)``, with ``U`` the weight of a label, ``m`` the mean
        score under it and ``v`` the variance given the label at caution 0. The slope is that of a logistic regression
        through it, over both labels' scores at the caution of the fit. Without ``prior`` the class is the sign of the
        score, as in the paper.
        """
        weights, positive, score = self.blocks.weights, self.targets > 0, self.scores
        total = np.array([weights[~positive].sum(), weights[positive].sum()])
        mean = np.array([weights[~positive] @ score[~positive], weights[positive] @ score[positive]]) / total
        base = float(np.log(total[1] / total[0])) if prior else 0.0
        apart = float(mean[1] - mean[0])
        if apart <= 0.0:
            return base, 0.0
        between = float(weights @ (score - mean[positive.astype(int)]) ** 2) / float(weights.sum())
        variance = self.deviation(0.0) ** 2 + between
        zero = float(mean.mean()) - variance * base / apart if prior else 0.0
        rates = self.rates(Assumed(caution=self.caution))
        slope = slope_through(zero, rates.middles, *rates.masses(self.positive), rows=self.fit.known.total)
        return -slope * zero, slope

    def error(self, line: tuple[float, float], assumed: Assumed = INDEPENDENT, blur: float = 0.0) -> float:
        """Share of new rows that these log-odds give the wrong label, if scores have ``blur`` more variance."""
        offset, slope = line
        if not slope:
            return self.positive if offset <= 0.0 else 1.0 - self.positive
        deviation = np.hypot(self.deviations_at(assumed)[self.label_at], blur**0.5)
        wrong = ndtr(-self.targets * (self.scores_at(assumed) + offset / slope) / deviation)
        return float(self.blocks.weights @ wrong) / self.fit.known.total

    def error_of(self, blur: float, prior: bool) -> float:
        """How much more error ``blur`` more variance of the scores gives, in shares of new rows."""
        return self.error(self.line(prior), blur=blur) - self.error(self.line(prior))

    def reliability(self, line: tuple[float, float]) -> tuple[Reliability, ...]:
        """What new rows are told and what is so, at the caution of the fit, as the probabilities are."""
        rates = self.rates(Assumed(caution=self.caution))
        no, yes = rates.masses(self.positive)
        return tenths(expit(line[0] + line[1] * rates.middles), no + yes, yes, above=RARE)

    def rates(self, assumed: Assumed = INDEPENDENT) -> Rates:
        """False and true positive rates at falling thresholds, block scores gathered into fine bins."""
        scores, deviations = self.scores_at(assumed), self.deviations_at(assumed)
        seen = deviations[np.unique(self.label_at)]
        reach = 6.0 * float(seen.max())
        grid = np.linspace(scores.max() + reach, scores.min() - reach, _BINS)
        positive, shares = self.targets > 0, np.zeros((2, _BINS))
        for at in np.unique(self.label_at).tolist():
            chosen = self.label_at == at
            side = int(positive[chosen][0])
            shares[side] += self._rows_above(scores, chosen, grid, float(deviations[at]))
        false, true = np.clip(shares / shares[:, -1:], 0.0, 1.0)
        return Rates(grid, false, true)

    def _rows_above(self, scores: Floats, chosen: Truths, grid: Floats, deviation: float) -> Floats:
        """How many of the chosen blocks' rows have a score above each threshold."""
        step = float(grid[0] - grid[-1]) / (_BINS - 1)
        place = np.rint((grid[0] - scores[chosen]) / step).astype(np.int64)
        mass = np.bincount(place, self.blocks.weights[chosen], minlength=_BINS)
        reach = int(np.ceil(6 * deviation / step)) + 1
        kernel = ndtr(np.arange(-reach, reach + 1) * step / deviation)
        rising = np.convolve(mass, kernel)[reach : reach + _BINS]
        above = np.concatenate([np.zeros(reach + 1), np.cumsum(mass)])[:_BINS]
        out: Floats = np.clip(rising + above, 0.0, mass.sum())
        return out


def slope_through(zero: float, scores: Floats, negative: Floats, positive: Floats, *, rows: float) -> float:
    """Slope of log-odds that are 0 at a score, from the shares of both labels' rows at some scores.

    Logistic regression with Platt's targets, which as few rows as there are keep from 0 and 1; never below 0.

    Examples
    --------
    >>> scores = np.array([-1.0, 1.0])
    >>> round(slope_through(0.0, scores, np.array([0.4, 0.1]), np.array([0.1, 0.4]), rows=1e9), 6)
    1.386294
    """
    high, low = (rows * positive.sum() + 1.0) / (rows * positive.sum() + 2.0), 1.0 / (rows * negative.sum() + 2.0)
    away, weight, wanted = scores - zero, negative + positive, low * negative + high * positive
    unit = float(weight @ np.abs(away)) / float(weight.sum())
    away, slope = away / unit, 0.0
    for _ in range(_ROUNDS):
        share = expit(slope * away)
        curvature = float((weight * share * (1.0 - share)) @ away**2)
        step = float((wanted - weight * share) @ away) / max(curvature, _SETTLED)
        slope = max(slope + float(np.clip(step, -_STEP, _STEP)), 0.0)
        if abs(step) < _SETTLED:
            break
    return slope / unit


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
