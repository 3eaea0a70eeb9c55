"""What to expect of a fit: probabilities, and its error on new rows, for one score or one per class.

With two values of the label, or a number, there is one score; `population` says all about it.
With k classes there are k scores, each against all others. Given the class they
are about normal with one covariance, so by Bayes the log-odds are linear in them,
as in discriminant analysis::

    log-odds_c = log U_c + m_c^T S^+ (score - m_c / 2)                       (docs, eq. 5)

with ``U_c`` the weight of a class, ``m_c`` the mean scores under it and ``S`` their
covariance given the class: between blocks of one class, and inside blocks; all of
them times the trace of ``S`` over that at the caution of the fit, as `population`
does. Error and log loss are those of these probabilities, over normal scores drawn block
by block with the variances of each class. For a number there are no probabilities, and
what to expect on new rows is the loss with residuals divided by ``1 - df / M``, as
generalised cross-validation does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_softmax

from radocraft.arrays import Floats, Ints
from radocraft.contract import Number
from radocraft.learning._blocks import Blocks
from radocraft.learning._expected import (
    DEVIATIONS,
    LEAST_ROWS,
    RELATED,
    Ends,
    Figures,
    NoiseErrors,
    Possible,
    figures_of,
    intervals,
    log_losses,
    opposed,
    sample_errors,
)
from radocraft.learning._fit import Fit
from radocraft.learning._matching import Ridge
from radocraft.learning._noise import noise_cost
from radocraft.learning._population import INDEPENDENT, Assumed, Population
from radocraft.model import BlockTable, Estimate, NoiseCost, Odds, Outlook, Weight, plain

CAUTIONS = (0.0, 0.25, 0.5, 1.0)
ASSUMPTION = (
    "Inside a block scores are normal, with variances by label, and what one peer's columns say about another's there "
    "is as caution assumes: nothing at 0, the worst there can be at 1. The headline is in the middle."
)
ESTIMATED = (
    " Sums by label of peers that lack it are estimated: taken as they are at 0, less telling by two standard "
    "deviations at 1."
)
TRUSTED = " Sums by label of peers that lack it are estimated, and taken for exact: that flatters the model."
OF_NUMBERS = (
    "New rows are like those learned from, and what one peer's columns say about another's inside a block is as "
    "caution assumes: nothing at 0, the worst there can be at 1."
)
_RANK = 1e-9
_DRAWS = 2_000_000
_FEWEST, _MOST = 32, 1024
_AT_ONCE = 256


@dataclass(frozen=True)
class Forecast:
    """What is known about a fit: a population for every score."""

    blocks: Blocks
    fit: Fit
    populations: tuple[Population, ...]

    @classmethod
    def of(cls, blocks: Blocks, fit: Fit) -> Forecast:
        """Read it off the blocks."""
        return cls(blocks, fit, Population.of_each(blocks, fit))

    @property
    def number(self) -> bool:
        """Whether the label is a number."""
        return isinstance(self.blocks.contract.label, Number)

    @property
    def prior(self) -> bool:
        """Whether classes follow probabilities; the paper's method takes the sign."""
        return self.fit.method == "matching"

    def deviations(self) -> Floats:
        """Standard deviation of every column, in the model's units."""
        return self.populations[0].deviations()

    def effects(self) -> dict[str, Weight]:
        """Standard deviation of the contribution of the shared columns and of each peer."""
        found = [population.effects() for population in self.populations]
        return {name: self._joined(np.array([effects[name] for effects in found])) for name in found[0]}

    def noise(self, promised: dict[str, str]) -> NoiseCost | None:
        """What the parts' noise costs, if there is any; ``promised`` are the guarantees of the peers that added it."""
        if not promised:
            return None
        loss = noise_cost(self.blocks, self.fit)
        error = None if self.number or len(self.populations) > 1 else self.populations[0].error_of(loss, self.prior)
        alike: dict[str, list[str]] = {}
        for peer, guarantee in promised.items():
            alike.setdefault(guarantee, []).append(peer)
        said = "; ".join(f"{', '.join(peers)}: {guarantee}" for guarantee, peers in alike.items())
        return NoiseCost(guarantee=said, loss=loss, error=error)

    def table(self) -> BlockTable:
        """The mean contributions per block, for views that lack a peer's columns."""
        contributions = np.stack([population.contributions for population in self.populations], axis=-1)
        contributions_listed = [self._listed(part) for part in contributions.transpose(1, 0, 2)]
        return BlockTable(
            codes=self.blocks.codes.tolist(),
            labels=self.blocks.labels.tolist(),
            weights=self.blocks.weights.tolist(),
            shared=contributions_listed[0],
            peers=dict(zip(self.blocks.peers, contributions_listed[1:], strict=True)),
        )

    def _joined(self, values: Floats) -> Weight:
        """One number per class, or the only one, a numeric label's in its own units."""
        return plain(values if self.fit.theta.ndim > 1 else values[0] * self.blocks.label_units[1])

    def _listed(self, values: Floats) -> list[Weight]:
        """The same for every block."""
        if self.fit.theta.ndim > 1:
            return [*map(tuple, values.tolist())]
        out: list[Weight] = (values[:, 0] * self.blocks.label_units[1]).tolist()
        return out

    def odds(self) -> Odds | None:
        """How scores become probabilities; a number has none."""
        if self.number:
            return None
        if self.fit.theta.ndim == 1:
            return self.populations[0].odds(self.prior)
        return self._joint_odds()

    def _joint_odds(self) -> Odds:
        means, weight = self._by_class()
        score, weights = self._scores(), self.blocks.weights
        apart = score - means[self._place()]
        between = (apart.T * weights) @ apart / weights.sum()
        spread, cautious = (between + self._inside(caution) for caution in (0.0, self.populations[0].caution))
        slope = means @ np.linalg.pinv(spread, rcond=_RANK, hermitian=True)
        offset = np.log(weight / weight.sum()) - np.sum(slope * means, axis=1) / 2.0
        sure = np.trace(spread) / np.trace(cautious)
        return Odds(offset=tuple((sure * offset).tolist()), slope=tuple(map(tuple, (sure * slope).tolist())))

    def estimate(self) -> Estimate:
        """Error rate, AUC and log loss (or root mean square error and R²) on new rows, without one joined row."""
        limits, assumption, kept = self.limits, self._assumption(), self.populations[0].kept
        base = limits.worst["error"]
        if self.fit.known.total < LEAST_ROWS:
            return Estimate(base_rate=base, kept=kept, assumption=assumption)
        figures = {caution: self.figures(Assumed(caution=caution)) for caution in CAUTIONS}
        noise = {} if self.number else NoiseErrors.of(self.populations[0]).parts(self.figures)
        ends = Ends(*map(self.figures, self._relation()))
        found = intervals(ends, limits, self._sample(ends.one), noise, shape=not self.number)
        several = self.number or len(self.populations) > 1
        false, true = ((), ()) if several else self.populations[0].rates().curve
        clipped = {at: {name: limits.clip(name, value) for name, value in one.items()} for at, one in figures.items()}
        return Estimate(
            **{name: interval.value for name, interval in found.items()},
            base_rate=base,
            intervals=found,
            outlooks=tuple(Outlook(caution=caution, **one) for caution, one in clipped.items()),
            false_positive_rate=false,
            true_positive_rate=true,
            reliability=() if several else self.populations[0].reliability(self.populations[0].line(self.prior)),
            kept=kept,
            assumption=assumption,
        )

    def _relation(self) -> tuple[Assumed, Assumed, Assumed, Assumed]:
        """The ends of what the relation of the peers' scores may be, and between them two whose middle is the headline.

        Where linked rows chose how to treat it, it is as they chose, but for two standard errors on so many rows.
        """
        lowest = opposed(len(self.blocks.peers))
        if self.fit.validation is None:
            return lowest, INDEPENDENT, RELATED, RELATED
        error, chosen = DEVIATIONS / self.fit.validation.rows**0.5, self.populations[0].caution
        low, high = max(lowest.caution, chosen - error), min(chosen + error, RELATED.caution)
        return Assumed(caution=low), Assumed(caution=chosen), Assumed(caution=chosen), Assumed(caution=high)

    def _assumption(self) -> str:
        """What all of this assumes."""
        if self.number:
            return OF_NUMBERS
        if all(map(self.blocks.contract.labelled, self.blocks.peers)):
            return ASSUMPTION
        return ASSUMPTION + (TRUSTED if self.fit.known.uncertainty is None else ESTIMATED)

    @cached_property
    def limits(self) -> Possible:
        """What is possible, with these labels."""
        if self.number:
            deviation = self.blocks.label_units[1] * self._label_variance**0.5
            return Possible({"error": 0.0, "r2": 1.0}, {"error": deviation, "r2": 0.0})
        return Possible.of_shares(self._label_shares)

    @property
    def _label_shares(self) -> Floats:
        return np.bincount(self._place(), self.blocks.weights, len(self.blocks.contract.label.codes)) / float(
            self.blocks.weights.sum()
        )

    @property
    def _label_variance(self) -> float:
        known = self.fit.known
        return float(known.square - (self.blocks.weights @ self.blocks.targets / known.total) ** 2)

    def figures(self, assumed: Assumed = INDEPENDENT) -> Figures:
        """What is to be expected if this is so."""
        if self.number:
            return self._of_number(assumed.caution)
        if len(self.populations) == 1:
            return figures_of(self.populations[0], self.populations[0].line(self.prior), assumed)
        error, loss, _ = self._drawn(assumed)
        areas = [population.rates(assumed).auc for population in self.populations]
        return {"error": error, "auc": float(np.mean(areas)), "log_loss": loss}

    def _sample(self, figures: Figures) -> Figures:
        """Two standard errors of figures on as many rows."""
        total = self.fit.known.total
        if self.number:
            of_loss = DEVIATIONS * (2.0 / total) ** 0.5
            return {"error": figures["error"] * of_loss / 2.0, "r2": (1.0 - figures["r2"]) * of_loss}
        if len(self.populations) == 1:
            (population,) = self.populations
            _, variance = log_losses(population.rates(), population.line(self.prior), population.positive)
            return sample_errors(figures, total, population.positive, variance)
        rarest = float(self._label_shares[self._label_shares > 0].min())
        return sample_errors(figures, total, rarest, self._drawn(INDEPENDENT)[2])

    def _of_number(self, caution: float) -> Figures:
        known = self.fit.known
        loss = Ridge(known, 0.0).loss(self.fit.theta, caution) / self.populations[0].kept ** 2
        return {"error": self.blocks.label_units[1] * loss**0.5, "r2": 1.0 - loss / self._label_variance}

    def _scores(self, assumed: Assumed = INDEPENDENT) -> Floats:
        """Mean scores of every block as they would be for new rows."""
        return np.column_stack([population.scores_at(assumed) for population in self.populations])

    def _place(self) -> Ints:
        """Which class each block is of."""
        return np.searchsorted(self.blocks.contract.label.codes, self.blocks.labels).astype(np.int64)

    def _by_class(self) -> tuple[Floats, Floats]:
        """Mean scores under each class, and its weight; a class without blocks has next to none."""
        score, weights, place = self._scores(), self.blocks.weights, self._place()
        held = (place[:, None] == np.arange(len(self.populations))) * weights[:, None]
        weight = np.maximum(held.sum(axis=0), np.finfo(float).tiny)
        seen = held.sum(axis=0) > 0
        means = np.where(seen[:, None], held.T @ score / weight[:, None], weights @ score / weights.sum())
        return means, weight

    def _inside(self, caution: float) -> Floats:
        """Covariance of a new row's scores inside its block."""
        known, theta = self.fit.known, self.fit.theta
        inside = theta.T @ (known.expected() - known.between) @ theta / known.total / self.populations[0].kept ** 2
        before = np.array([population.deviation(0.0) for population in self.populations])
        now = np.array([population.deviation(caution) for population in self.populations])
        return np.asarray(inside * np.outer(now / before, now / before))

    def _drawn(self, assumed: Assumed) -> tuple[float, float, float]:
        """Error, mean and variance of the log loss, over normal scores drawn block by block."""
        score, place, weights, odds = self._scores(assumed), self._place(), self.blocks.weights, self._joint_odds()
        roots = self._roots(assumed)
        count = int(np.clip(_DRAWS // score.size, _FEWEST, _MOST))
        draws = np.random.default_rng(0).normal(size=(count, score.shape[1]))
        wrong, loss, square = np.empty((3, len(score)))
        for low in range(0, len(score), _AT_ONCE):
            some = slice(low, low + _AT_ONCE)
            own = np.repeat(place[some], count)
            drawn = (score[some, None] + draws @ roots[place[some]].transpose(0, 2, 1)).reshape(-1, score.shape[1])
            log_odds = odds.log_odds(drawn)
            lost = -log_softmax(log_odds, axis=1)[np.arange(len(own)), own]
            wrong[some] = np.mean((log_odds.argmax(axis=1) != own).reshape(-1, count), axis=1)
            loss[some] = np.mean(lost.reshape(-1, count), axis=1)
            square[some] = np.mean((lost**2).reshape(-1, count), axis=1)
        error, mean, squares = (float(weights @ one / weights.sum()) for one in (wrong, loss, square))
        return error, mean, max(squares - mean**2, 0.0)

    def _roots(self, assumed: Assumed) -> Floats:
        """For every class the root of the covariance of scores inside its blocks: correlations of all, its variances.

        Of the parts' noise nothing is told apart for each class.
        """
        values, vectors = np.linalg.eigh(self._inside(0.0))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        apart = np.array([population.deviations_at(assumed) for population in self.populations])
        return np.asarray((apart / np.array([[p.deviation(0.0)] for p in self.populations])).T[:, :, None] * root)
