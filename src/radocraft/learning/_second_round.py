"""The second round: the distribution of a model's scores, from each peer's histograms of its own share.

A score is a sum of what each peer's columns contribute. When a model is learned, every
peer may count, label by label, how far its own contributions are from their means in
the blocks, which the model holds; the counts leave with noise, like sums
(`radocraft.share_counts`). Inside a block, contributions of different peers are taken
to be unrelated, so the histograms are convolved with each other and with the means of
the blocks; probabilities, error rate, AUC and ROC curve follow (`recalibrate`) without
the assumption that scores are normal. Scores of rows the model was fitted to flatter
it; residuals are divided by the share that the fit left of them, as in `population`.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from scipy.special import expit

from radocraft.arrays import Floats
from radocraft.errors import LearnError
from radocraft.learning._population import RARE, tenths
from radocraft.model import (
    Estimate,
    Model,
    Odds,
    Outlook,
    Reliability,
    bin_width,
    check_single,
    contributions,
    identity,
    number,
)
from radocraft.parts import BINS, REACH, Histograms

ASSUMPTION = (
    "Inside a block what one peer's columns contribute is unrelated to what another's do; "
    "how each peer's contributions are distributed there was counted, not assumed."
)
_FINE = 8
"""Steps of the grid on which histograms are convolved, in the narrowest bin of a peer."""
_MOST_STEPS = 2**20
_NARROW = 1e-4
_ROUNDS = 100
_NOTHING = 1e-12
_POINTS = 201


def recalibrate(model: Model, histograms: list[Histograms]) -> Model:
    """The model with probabilities from every peer's counts, and what to expect of it then (`second_round`).

    Raises
    ------
    LearnError
        If a peer's counts are missing, twice there or of another model.

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=2000)
    >>> model = rc.learn([rc.share(tables[peer], contract, peer) for peer in tables], contract)
    >>> counts = [rc.share_counts(tables[peer], model, peer) for peer in tables]
    >>> abs(rc.recalibrate(model, counts).second_round.error - model.estimate.error) < 0.05
    True
    """
    check_single(model)
    by_peer = {counts.peer: counts for counts in histograms}
    if len(histograms) != len(by_peer) or {*by_peer} != {*model.peers}:
        raise LearnError(f"The second round needs one file of counts per peer: {', '.join(model.peers)}.")
    for counts in histograms:
        counts.check(counts.peer, identity(model))
    edges, negative, positive = score_histograms(model, by_peer)
    kept = model.estimate.kept
    below, above = -1.0 - (-1.0 - edges) / kept, 1.0 - (1.0 - edges) / kept
    odds = calibrated(below, negative, above, positive)
    estimate = judged(odds, (below, negative), (above, positive), kept)
    return model.model_copy(update={"odds": odds, "second_round": estimate})


def score_histograms(model: Model, by_peer: dict[str, Histograms]) -> tuple[Floats, Floats, Floats]:
    """Edges of a grid, and how scores are spread over it under each label: block means and all peers, convolved."""
    from scipy.signal import fftconvolve  # noqa: PLC0415 - slow to import

    means = np.sum([contributions(model, peer) for peer in model.peers], axis=0)
    widths = {peer: bin_width(model, peer) for peer in model.peers}
    reach = float(np.ptp(means)) + sum(BINS * width for width in widths.values())
    step = max(min(widths.values()) / _FINE, reach / _MOST_STEPS)
    place = np.rint((means - means.min()) / step).astype(np.int64)
    labels, weights = np.array(model.blocks.labels), np.array(model.blocks.weights)
    masses = []
    for label, name in ((-1, "negative"), (1, "positive")):
        at_means = np.bincount(place[labels == label], weights[labels == label], int(place.max()) + 1)
        shapes = [_shape(getattr(by_peer[peer], name), widths[peer], step) for peer in model.peers]
        masses.append(np.maximum(reduce(fftconvolve, shapes, at_means), 0.0))
    half = sum(len(_shape((1,) * BINS, widths[peer], step)) // 2 for peer in model.peers)
    edges = float(means.min()) + step * (np.arange(len(masses[0]) + 1) - half - 0.5)
    return np.asarray(edges, dtype=np.float64), masses[0], masses[1]


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


Spread = tuple[Floats, Floats]


def judged(odds: Odds, negative: Spread, positive: Spread, kept: float) -> Estimate:
    """Error, AUC, ROC curve and reliability of two distributions of scores (edges and mass), even inside bins."""
    threshold = -number(odds.offset) / odds.single_slope
    cuts = np.unique(np.concatenate([negative[0], positive[0], [threshold]]))[::-1]
    false, true = above(*negative, cuts), above(*positive, cuts)
    area = float(np.trapezoid(true, false))
    share = float(positive[1].sum() / (negative[1].sum() + positive[1].sum()))
    chosen = int(np.flatnonzero(cuts == threshold)[0])
    error = float((1.0 - share) * false[chosen] + share * (1.0 - true[chosen]))
    places = np.linspace(0, len(cuts) - 1, _POINTS).astype(int)
    return Estimate(
        error=error,
        auc=area,
        outlooks=(Outlook(caution=0.0, error=error, auc=area),),
        false_positive_rate=tuple(false[places].tolist()),
        true_positive_rate=tuple(true[places].tolist()),
        reliability=_reliability(odds, negative, positive),
        assumption=ASSUMPTION,
        kept=kept,
    )


def _reliability(odds: Odds, negative: Spread, positive: Spread) -> tuple[Reliability, ...]:
    """Predicted probabilities and true labels of rows."""
    edges = np.concatenate([negative[0][:-1] + negative[0][1:], positive[0][:-1] + positive[0][1:]])
    total = float(negative[1].sum() + positive[1].sum())
    rows = np.concatenate([negative[1], positive[1]]) / total
    return tenths(
        odds.probability(edges / 2), rows, np.concatenate([np.zeros_like(negative[1]), positive[1] / total]), above=RARE
    )


def above(edges: Floats, mass: Floats, cuts: Floats) -> Floats:
    """Share of the mass above each cut, where the mass is even between two edges.

    Examples
    --------
    >>> above(np.array([0.0, 1.0, 3.0]), np.array([1.0, 3.0]), np.array([0.5, 2.0]))
    array([0.875, 0.375])
    """
    below = np.concatenate([[0.0], np.cumsum(mass)]) / mass.sum()
    return np.asarray(1.0 - np.interp(cuts, edges, below))
