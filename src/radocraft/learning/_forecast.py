"""What to expect of a fit: probabilities, and its error on new rows, for one score or one per class.

With two values of the label, or a number, there is one score; `population` says all about it.
With k classes there are k scores, each against all others. Given the class they
are about normal with one covariance, so by Bayes the log-odds are linear in them,
as in discriminant analysis::

    log-odds_c = log U_c + m_c^T S^+ (score - m_c / 2)                       (docs, eq. 5)

with ``U_c`` the weight of a class, ``m_c`` the mean scores under it and ``S`` their
covariance given the class: between blocks of one class, and inside blocks; all of
them times the trace of ``S`` over that at the caution of the fit, as `population`
does. The error is that of this choice, over normal scores drawn block by block. For a
number there are no probabilities, and what to expect on new rows is the loss
with residuals divided by ``1 - df / M``, as generalised cross-validation does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from radocraft.arrays import Floats, Ints
from radocraft.contract import Number
from radocraft.learning._blocks import Blocks
from radocraft.learning._fit import Fit
from radocraft.learning._matching import Ridge
from radocraft.learning._noise import noise_cost
from radocraft.learning._population import CAUTIONS, Population, assumption
from radocraft.model import BlockTable, Estimate, NoiseCost, Odds, Outlook, Weight, plain

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
        """Error rate and AUC (or root mean square error and R²) on new rows, without one joined row."""
        if self.number:
            outlooks = tuple(self._of_number(caution) for caution in CAUTIONS)
            return Estimate(error=outlooks[0].error, r2=outlooks[0].r2, outlooks=outlooks, assumption=OF_NUMBERS)
        if self.fit.theta.ndim == 1:
            return self.populations[0].estimate(self.prior)
        odds = self._joint_odds()
        outlooks = tuple(
            Outlook(
                caution=caution,
                error=self._error(odds, caution),
                auc=float(np.mean([population.auc(caution) for population in self.populations])),
            )
            for caution in CAUTIONS
        )
        return Estimate(
            error=outlooks[0].error,
            auc=outlooks[0].auc,
            outlooks=outlooks,
            assumption=assumption(self.blocks, self.fit),
        )

    def _of_number(self, caution: float) -> Outlook:
        known = self.fit.known
        loss = Ridge(known, 0.0).loss(self.fit.theta, caution) / self.populations[0].kept ** 2
        mean = float(self.blocks.weights @ self.blocks.targets) / known.total
        scale = self.blocks.label_units[1]
        return Outlook(caution=caution, error=scale * loss**0.5, r2=1.0 - loss / (known.square - mean**2))

    def _scores(self, caution: float = 0.0) -> Floats:
        """Mean scores of every block as they would be for new rows."""
        return np.column_stack([population.scores_at(caution) for population in self.populations])

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

    def _error(self, odds: Odds, caution: float) -> float:
        """Share of new rows given a wrong class, over normal scores drawn block by block."""
        score, place, weights = self._scores(caution), self._place(), self.blocks.weights
        values, vectors = np.linalg.eigh(self._inside(caution))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        count = int(np.clip(_DRAWS // score.size, _FEWEST, _MOST))
        draws = np.random.default_rng(0).normal(size=(count, score.shape[1])) @ root.T
        wrong = np.empty(len(score))
        for low in range(0, len(score), _AT_ONCE):
            some = slice(low, low + _AT_ONCE)
            drawn = (score[some, None] + draws).reshape(-1, score.shape[1])
            wrong[some] = np.mean(odds.chosen(drawn).reshape(-1, count) != place[some, None], axis=1)
        return float(weights @ wrong / weights.sum())
