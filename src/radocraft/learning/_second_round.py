"""The second round: the distribution of a model's scores, from each peer's histograms of its own share.

A score is a sum of what each peer's columns contribute. When a model is learned, every
peer may count, label by label, how far its own contributions are from their means in
the blocks, which the model holds; the counts leave with noise, like sums
(`radocraft.share_counts`). So no score need be normal: contributions of different peers are
drawn from their histograms, related as normal ranks are (a copula), and added to the means of
the blocks; probabilities, error rate, AUC and ROC curve follow (`recalibrate`). Where the
contract has a neutral key, peers also release sums by its groups, and how their contributions
are related is measured (`correlation`); else it is anything from unrelated to the same, as in
`expected`. CountedScores of rows the model was fitted to flatter it; residuals are divided by the share
that the fit left of them, as in `population`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from scipy.special import expit, log_expit, ndtr

from radocraft.arrays import Floats
from radocraft.errors import LearnError
from radocraft.learning._correlation import Correlation
from radocraft.learning._counted import correlate_counts
from radocraft.learning._expected import LEAST_ROWS, Ends, Figures, Possible, intervals, opposed, sample_errors
from radocraft.learning._population import RARE, tenths
from radocraft.model import (
    Estimate,
    Model,
    Odds,
    Outlook,
    number,
)
from radocraft.parts import BINS, REACH, Histograms

ASSUMPTION = (
    "How each peer's contributions are spread inside blocks was counted, not assumed. What one peer's contribute there "
    "is unrelated to what another's do, or as related as can be; the headline is in the middle."
)
MEASURED = (
    "How each peer's contributions are spread inside blocks was counted, and how they are related there was measured "
    "by groups of the key, not assumed."
)
_FINE = 8
"""Steps of the grid on which histograms are convolved, in the narrowest bin of a peer."""
_MOST_STEPS = 2**20
_ROUNDS = 100
_NOTHING = 1e-12
_POINTS = 201
_DRAWS = 200_000
_ERRORS = 2.0


def recalibrate(model: Model, histograms: list[Histograms], in_common: float = 1.0) -> Model:
    """The model with probabilities from every peer's counts, and what to expect of it then (`second_round`).

    Parameters
    ----------
    model
        What `learn` gave.
    histograms
        What `share_counts` gave at every peer.
    in_common
        For a contract with a key: the share of people whom two peers both hold.

    Raises
    ------
    LearnError
        If a peer's counts are missing, twice there or of another model, or if the key is not neutral.

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=2000)
    >>> model = rc.learn([rc.share(tables[peer], contract, peer) for peer in tables], contract)
    >>> counts = [rc.share_counts(tables[peer], model, peer) for peer in tables]
    >>> abs(rc.recalibrate(model, counts).second_round.error - model.estimate.error) < 0.05
    True
    """
    model.check_single()
    by_peer = {one.peer: one for one in histograms}
    if len(histograms) != len(by_peer) or {*by_peer} != {*model.peers}:
        raise LearnError(f"The second round needs one file of counts per peer: {', '.join(model.peers)}.")
    for one in histograms:
        one.check(one.peer, model.identity)
    counted = CountedModel(model, by_peer)
    relation = correlate_counts(model, [by_peer[peer] for peer in model.peers], in_common)
    usual = relation.mean if relation.measured else counted.alike(float(model.settings.get("caution", 0.0)))
    odds = counted.odds(usual)
    return model.model_copy(update={"odds": odds, "second_round": counted.estimate(odds, relation)})


@dataclass(frozen=True)
class CountedScores:
    """Both labels' scores: edges of a grid for each, and the rows between them."""

    below: Floats
    negative: Floats
    above: Floats
    positive: Floats

    @property
    def share(self) -> float:
        """Of the rows, how many are positive."""
        return float(self.positive.sum() / (self.negative.sum() + self.positive.sum()))

    @property
    def middles(self) -> tuple[Floats, Floats]:
        """The score in the middle of every step, by label."""
        return (self.below[1:] + self.below[:-1]) / 2.0, (self.above[1:] + self.above[:-1]) / 2.0

    @property
    def weights(self) -> tuple[Floats, Floats]:
        """The share of all rows in every step, by label."""
        total = self.negative.sum() + self.positive.sum()
        return self.negative / total, self.positive / total


@dataclass(frozen=True)
class CountedModel:
    """A model, and its peers' counts."""

    model: Model
    by_peer: dict[str, Histograms]

    def alike(self, correlation: float) -> Floats:
        """Every two peers related so much."""
        count = len(self.model.peers)
        return np.full((count, count), correlation) + (1.0 - correlation) * np.eye(count)

    def scores(self, correlation: Floats) -> CountedScores:
        """How scores are spread where contributions are so related, as they would be for new rows."""
        edges, negative, positive = score_histograms(self.model, self.by_peer, correlation)
        kept = self.model.estimate.kept
        return CountedScores(-1.0 - (-1.0 - edges) / kept, negative, 1.0 - (1.0 - edges) / kept, positive)

    def odds(self, correlation: Floats) -> Odds:
        """The log-odds that fit these scores."""
        found = self.scores(correlation)
        return calibrated(found.below, found.negative, found.above, found.positive)

    @cached_property
    def limits(self) -> Possible:
        """What is possible with labels of these shares."""
        labels, weights = np.array(self.model.blocks.labels), np.array(self.model.blocks.weights)
        share = float(weights[labels > 0].sum() / weights.sum())
        return Possible.of_shares(np.array([1.0 - share, share]))

    def estimate(self, odds: Odds, relation: Correlation) -> Estimate:
        """What to expect of these log-odds: at the measured relation, or between the ends of what it may be."""
        limits, kept = self.limits, self.model.estimate.kept
        base, rows = limits.worst["error"], float(np.sum(self.model.blocks.weights))
        assumption = MEASURED if relation.measured else ASSUMPTION
        if rows < LEAST_ROWS:
            return Estimate(base_rate=base, kept=kept, assumption=assumption)
        found = {at: self.scores(matrix) for at, matrix in self._ends(relation).items()}
        figures = {at: figures_of(odds, scores) for at, scores in found.items()}
        ends = Ends(figures["low"], figures["one"], figures["other"], figures["high"])
        sample = sample_errors(ends.one, rows, found["one"].share, log_losses(odds, found["one"])[1])
        noise = {name: _ERRORS * one.parts["noise"] for name, one in self.model.estimate.intervals.items()}
        told = intervals(ends, limits, sample, noise)
        false, true = curve(found["one"])
        scores = found["one"]
        return Estimate(
            **{name: interval.value for name, interval in told.items()},
            base_rate=base,
            intervals=told,
            outlooks=tuple(
                Outlook(caution=at, **{name: limits.clip(name, value) for name, value in figures[end].items()})
                for at, end in (() if relation.measured else ((0.0, "one"), (1.0, "other")))
            ),
            false_positive_rate=false,
            true_positive_rate=true,
            reliability=tenths(
                odds.probability(np.concatenate(scores.middles)),
                np.concatenate(scores.weights),
                np.concatenate([np.zeros_like(scores.negative), scores.weights[1]]),
                above=RARE,
            ),
            assumption=assumption,
            kept=kept,
        )

    def _ends(self, relation: Correlation) -> dict[str, Floats]:
        if relation.measured:
            low, high = (relation.moved(errors) for errors in (-_ERRORS, _ERRORS))
            return {"low": low, "one": relation.mean, "other": relation.mean, "high": high}
        lowest = self.alike(opposed(len(self.model.peers)).caution)
        return {"low": lowest, "one": self.alike(0.0), "other": self.alike(1.0), "high": self.alike(1.0)}


def score_histograms(
    model: Model, by_peer: dict[str, Histograms], correlation: Floats
) -> tuple[Floats, Floats, Floats]:
    """Edges of a grid, and how scores are spread over it under each label: block means and all peers, added up."""
    from scipy.signal import fftconvolve  # noqa: PLC0415 - slow to import

    means = np.sum([model.contributions(peer) for peer in model.peers], axis=0)
    widths = {peer: model.bin_width(peer) for peer in model.peers}
    reach = float(np.ptp(means)) + sum(BINS * width for width in widths.values())
    step = max(min(widths.values()) / _FINE, reach / _MOST_STEPS)
    place = np.rint((means - means.min()) / step).astype(np.int64)
    labels, weights = np.array(model.blocks.labels), np.array(model.blocks.weights)
    half = sum(len(_shape((1,) * BINS, widths[peer], step)) // 2 for peer in model.peers)
    masses = []
    for label, name in ((-1, "negative"), (1, "positive")):
        at_means = np.bincount(place[labels == label], weights[labels == label], int(place.max()) + 1)
        shapes = [_shape(getattr(by_peer[peer], name), widths[peer], step) for peer in model.peers]
        masses.append(np.maximum(fftconvolve(at_means, added(shapes, correlation)), 0.0))
    edges = float(means.min()) + step * (np.arange(len(masses[0]) + 1) - half - 0.5)
    return np.asarray(edges, dtype=np.float64), masses[0], masses[1]


def added(shapes: list[Floats], correlation: Floats) -> Floats:
    """How the sum of numbers spread like this is spread, on the same grid: their ranks are those of related normals.

    Examples
    --------
    >>> fair = np.array([0.5, 0.0, 0.5])
    >>> added([fair, fair], np.eye(2)).round(2)
    array([0.25, 0.  , 0.5 , 0.  , 0.25])
    >>> added([fair, fair], np.ones((2, 2))).round(2)
    array([0.5, 0. , 0. , 0. , 0.5])
    """
    from scipy.signal import fftconvolve  # noqa: PLC0415 - slow to import

    if np.array_equal(correlation, np.eye(len(shapes))):
        return np.asarray(reduce(fftconvolve, shapes))
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    root /= np.sqrt(np.sum(root**2, axis=1))[:, None]
    ranks = ndtr(np.random.default_rng(0).normal(size=(_DRAWS, len(root))) @ root.T)
    places = [np.searchsorted(np.cumsum(one / one.sum()), own) for one, own in zip(shapes, ranks.T, strict=True)]
    most = [len(one) - 1 for one in shapes]
    total = np.sum([np.minimum(place, end) for place, end in zip(places, most, strict=True)], axis=0)
    return np.asarray(np.bincount(total, minlength=sum(most) + 1) / _DRAWS)


def _shape(counts: tuple[int, ...], width: float, step: float) -> Floats:
    """A histogram on the grid, its middle in the middle, its mass 1; noise below zero is cut off."""
    half = int(np.ceil(BINS * width / (2.0 * step)))
    edges = step * (np.arange(-half, half + 2) - 0.5)
    below = np.concatenate([[0.0], np.cumsum(np.maximum(counts, 0))])
    if below[-1] <= 0.0:  # no rows, or noise alone: normal
        middle = (np.arange(BINS) - BINS / 2 + 0.5) * (2 * REACH / BINS)
        below = np.concatenate([[0.0], np.cumsum(np.exp(-(middle**2) / 2.0))])
    return np.asarray(np.diff(np.interp(edges, width * (np.arange(BINS + 1) - BINS / 2), below / below[-1])))


def calibrated(below: Floats, negative: Floats, above: Floats, positive: Floats) -> Odds:
    """The log-odds, linear in the score, that fit how both labels' scores are spread best (logistic regression).

    Edges of the bins and the mass between them, for the negative and for the positive label.
    """
    score = np.concatenate([(below[1:] + below[:-1]) / 2, (above[1:] + above[:-1]) / 2])
    design = np.column_stack([np.ones_like(score), score])
    weight = np.concatenate([negative, positive]) / (negative.sum() + positive.sum())
    label = np.repeat([0.0, 1.0], [len(negative), len(positive)])
    line = np.zeros(2)
    for _ in range(_ROUNDS):
        predicted = expit(design @ line)
        curvature = (design.T * (weight * predicted * (1.0 - predicted))) @ design
        step = np.linalg.solve(curvature + _NOTHING * np.eye(2), design.T @ (weight * (label - predicted)))
        line += step
        if np.abs(step).max() < _NOTHING:
            break
    return Odds(offset=float(line[0]), slope=float(line[1]))


def figures_of(odds: Odds, scores: CountedScores) -> Figures:
    """Error, AUC and log loss of these log-odds."""
    false, true = (above(edges, mass, cuts_of(scores)) for edges, mass in _both(scores))
    share, slope = scores.share, odds.single_slope
    error = min(share, 1.0 - share)
    if slope:
        threshold = np.array([-number(odds.offset) / slope])
        wrong, right = (float(above(edges, mass, threshold)[0]) for edges, mass in _both(scores))
        error = (1.0 - share) * wrong + share * (1.0 - right)
    return {"error": error, "auc": float(np.trapezoid(true, false)), "log_loss": log_losses(odds, scores)[0]}


def log_losses(odds: Odds, scores: CountedScores) -> tuple[float, float]:
    """Mean and variance of the log loss of one row."""
    sides = (-odds.log_odds(scores.middles[0]), odds.log_odds(scores.middles[1]))
    losses = [-log_expit(side) for side in sides]
    mean, square = (
        # not `@`: the last digits of a long dot product depend on where its numbers lie in memory
        sum(float(np.sum(weight * loss**power)) for weight, loss in zip(scores.weights, losses, strict=True))
        for power in (1, 2)
    )
    return mean, max(square - mean**2, 0.0)


def curve(scores: CountedScores) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """False and true positive rates at falling cuts."""
    cuts = cuts_of(scores)
    false, true = (above(edges, mass, cuts) for edges, mass in _both(scores))
    places = np.linspace(0, len(cuts) - 1, _POINTS).astype(int)
    return tuple(false[places].tolist()), tuple(true[places].tolist())


def cuts_of(scores: CountedScores) -> Floats:
    """All edges of both labels, falling."""
    return np.asarray(np.unique(np.concatenate([scores.below, scores.above]))[::-1])


def _both(scores: CountedScores) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    return (scores.below, scores.negative), (scores.above, scores.positive)


def above(edges: Floats, mass: Floats, cuts: Floats) -> Floats:
    """Share of the mass above each cut, where the mass is even between two edges.

    Examples
    --------
    >>> above(np.array([0.0, 1.0, 3.0]), np.array([1.0, 3.0]), np.array([0.5, 2.0]))
    array([0.875, 0.375])
    """
    below = np.concatenate([[0.0], np.cumsum(mass)]) / mass.sum()
    return np.asarray(1.0 - np.interp(cuts, edges, below))
