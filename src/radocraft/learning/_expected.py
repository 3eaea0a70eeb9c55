"""What to expect on new rows, as intervals: between peers' scores unrelated inside blocks and as related as can be.

Nobody sees how peers' scores are related, so the headline is in the middle between these
two. The interval begins lower: some tables have peers whose scores go against each other
(a correlation of -0.2 is two deviations below what is usual). Beyond its ends it goes as
far as three more parts allow, added like independent errors:

- the sample's own, two standard errors of a figure on so many rows;
- the noise in the parts: twice what it makes of variances and means, and what the fit gained by following it;
- the shape of scores, which are not normal: ``c d^(1/2)`` with d how far a figure is from
  perfect, and c about how far figures are off at the true relation in three of four cells of
  the study (`python benchmarks/expected.py shape`).

No figure is worse than the base rate, or a coin, and none better than can be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import hypot

import numpy as np
from scipy.special import log_expit

from radocraft.arrays import Floats
from radocraft.learning._noise import noise_gain
from radocraft.learning._population import INDEPENDENT, Assumed, Population, Rates
from radocraft.model import Interval

LEAST_ROWS = 300
"""With fewer rows nothing is told: the fit flatters itself by more than any correction knows."""
SHAPE = {"error": (0.05, 0.05), "auc": (0.08, 0.005), "log_loss": (0.08, 0.2)}
"""By figure: c, and the least d that counts; labels that seem nearly separable are less so than normals would be."""
DEVIATIONS = 2.0
RELATED = Assumed(caution=1.0)
_OPPOSED, _HALF_WAY = -0.2, 0.5

Widths = tuple[float, float, tuple[float, float]]
Figures = dict[str, float]
"""Error, AUC, log loss or R² by name."""


@dataclass(frozen=True)
class Possible:
    """The best and the worst that is possible: of a perfect model, and of one that tells nothing."""

    best: Figures
    worst: Figures

    @classmethod
    def of_shares(cls, shares: Floats) -> Possible:
        """Where labels have such shares."""
        seen = shares[shares > 0]
        worst = {"error": 1.0 - float(shares.max()), "auc": 0.5, "log_loss": float(-(seen * np.log(seen)).sum())}
        return cls({"error": 0.0, "auc": 1.0, "log_loss": 0.0}, worst)

    def clip(self, name: str, value: float) -> float:
        """The nearest figure that is possible."""
        low, high = sorted((self.best[name], self.worst[name]))
        return min(max(value, low), high)


@dataclass(frozen=True)
class NoiseErrors:
    """Standard errors that noise, and so many rows, leave in scores: in their variance, as a factor, and in means."""

    stretch: float = 0.0
    shift: float = 0.0

    @classmethod
    def of(cls, population: Population) -> NoiseErrors:
        """What the parts' noise, and the sample, leave open about a population."""
        spread = population.spread
        assert spread is not None
        theta, variance = population.fit.theta, noise_gain(population.blocks, population.fit) ** 2
        for cells, own in zip(population.blocks.cells, population.fit.layout.held, strict=True):
            variance += cells.levels.sums**2 * float(theta[own] @ theta[own]) * len(cells.rows) / cells.total**2
        stretch = float(np.sum((spread.shares * spread.ratios * spread.errors) ** 2)) ** 0.5
        return cls(stretch, variance**0.5 / population.kept)

    def parts(self, figures: Callable[[Assumed], Figures]) -> Figures:
        """Half-widths that these make of every figure."""
        if not self.stretch and not self.shift:
            return dict.fromkeys(figures(INDEPENDENT), 0.0)
        wide, narrow = (
            figures(Assumed(stretch=float(np.exp(sign * DEVIATIONS * self.stretch)))) for sign in (1.0, -1.0)
        )
        near, far = (figures(Assumed(shift=sign * DEVIATIONS * self.shift)) for sign in (1.0, -1.0))
        return {name: hypot(wide[name] - narrow[name], near[name] - far[name]) / 2.0 for name in wide}


def opposed(peers: int) -> Assumed:
    """Peers' scores as much against each other as they are in few tables; many peers cannot all be."""
    return Assumed(caution=max(_OPPOSED, -_HALF_WAY / max(peers - 1, 1)))


@dataclass(frozen=True)
class Ends:
    """Figures at the two ends of what the relation may be, and between them the two whose middle is the headline."""

    low: Figures
    one: Figures
    other: Figures
    high: Figures


def intervals(
    ends: Ends, limits: Possible, sample: Figures, noise: Figures, *, shape: bool = True
) -> dict[str, Interval]:
    """Of every figure, from the ends of what the relation may be and the other parts."""
    return {
        name: _interval(
            limits,
            name,
            [limits.clip(name, at[name]) for at in (ends.low, ends.one, ends.other, ends.high)],
            (sample[name], noise.get(name, 0.0), SHAPE[name] if shape else (0.0, 0.0)),
        )
        for name in ends.one
    }


def _interval(limits: Possible, name: str, at: list[float], widths: Widths) -> Interval:
    first, one, other, last = at
    middle, (sample, noise, (scale, least)) = (one + other) / 2.0, widths
    shape = scale * max(abs(middle - limits.best[name]), least) ** 0.5
    slack = (sample**2 + noise**2 + shape**2) ** 0.5
    low, high = limits.clip(name, min(at) - slack), limits.clip(name, max(at) + slack)
    falling = limits.worst[name] > limits.best[name]
    parts = {"relation": abs(first - last) / 2.0, "sample": sample, "noise": noise, "shape": shape}
    return Interval(
        value=(max if falling else min)(middle, (low + high) / 2.0),
        low=low,
        high=high,
        parts={part: half / DEVIATIONS for part, half in parts.items()},
    )


def figures_of(population: Population, line: tuple[float, float], assumed: Assumed) -> Figures:
    """Error, AUC and log loss of a score with these log-odds."""
    rates = population.rates(assumed)
    loss, _ = log_losses(rates, line, population.positive)
    return {"error": population.error(line, assumed), "auc": rates.auc if line[1] else 0.5, "log_loss": loss}


def log_losses(rates: Rates, line: tuple[float, float], positive: float) -> tuple[float, float]:
    """Mean and variance of the log loss of one row."""
    no, yes = rates.masses(positive)
    log_odds = line[0] + line[1] * rates.middles
    total = float(no.sum() + yes.sum())
    if_no, if_yes = -log_expit(-log_odds), -log_expit(log_odds)
    mean = float(no @ if_no + yes @ if_yes) / total
    return mean, max(float(no @ if_no**2 + yes @ if_yes**2) / total - mean**2, 0.0)


def sample_errors(figures: Figures, rows: float, positive: float, variance: float) -> Figures:
    """Two standard errors of figures on so many rows; of the AUC as Hanley and McNeil have it."""
    error, area = figures["error"], figures["auc"]
    yes, no = max(rows * positive, 1.0), max(rows * (1.0 - positive), 1.0)
    above, below = area / (2.0 - area), 2.0 * area**2 / (1.0 + area)
    of_area = area * (1.0 - area) + (yes - 1.0) * (above - area**2) + (no - 1.0) * (below - area**2)
    return {
        "error": DEVIATIONS * (error * (1.0 - error) / rows) ** 0.5,
        "auc": DEVIATIONS * (max(of_area, 0.0) / (yes * no)) ** 0.5,
        "log_loss": DEVIATIONS * (variance / rows) ** 0.5,
    }
