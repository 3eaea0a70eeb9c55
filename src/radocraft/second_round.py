"""The second round: how a model's scores are spread, from each peer's histograms of its own share of them.

A score is a sum of what each peer's columns contribute. When a model is learned, every
peer may count, label by label, how far its own contributions are from their means in
the blocks, which the model holds; the counts leave with noise, like sums
(`radocraft.share_scores`). Inside a block, contributions of different peers are taken
to be unrelated, so the histograms are convolved with each other and with the means of
the blocks; probabilities, error rate, AUC and ROC curve follow (`recalibrate`) without
the assumption that scores are normal. Scores of rows the model was fitted to flatter
it; residuals are divided by the share that the fit left of them, as in `population`.

The first peer of the model counts the shared columns and the constant as its own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.signal import fftconvolve
from scipy.special import expit

from radocraft.arrays import Floats, Ints, Truths
from radocraft.cells import locate
from radocraft.checks import check_labels
from radocraft.errors import LearnError, PolicyRefusal
from radocraft.gate.account import rho_of
from radocraft.gate.levels import TOTAL
from radocraft.gate.noise import Noise
from radocraft.gate.policy import Policy
from radocraft.histograms import BINS, REACH, Histograms, identity
from radocraft.labels import TwoValues
from radocraft.model import Model
from radocraft.model.record import Estimate, Odds, Outlook, Record, Reliability, number
from radocraft.model.scoring import View, checked_batches
from radocraft.moments import dense
from radocraft.population import RARE, tenths
from radocraft.sources import Source

ASSUMPTION = (
    "Inside a block what one peer's columns contribute is unrelated to what another's do; "
    "how each peer's contributions are spread there was counted, not assumed."
)
_FINE = 8
"""Steps of the grid on which histograms are convolved, in the narrowest bin of a peer."""
_MOST_STEPS = 2**20
_NARROW = 1e-4
_ROUNDS = 100
_NOTHING = 1e-12
_POINTS = 201


@dataclass(frozen=True)
class Counts:
    """Exact counts by label (negative, positive) and bin; they never leave."""

    rows: Ints

    def digest(self, model: Record) -> str:
        """By which a release of the same counts is known."""
        return hashlib.sha256(identity(model).encode() + self.rows.astype("<i8").tobytes()).hexdigest()

    def released(self, model: Record, peer: str, policy: Policy, noise: Noise | None = None) -> Histograms:
        """The counts as they may leave."""
        exact, sd, rho = self.rows, 0.0, 0.0
        if policy.noisy:
            noise = Noise() if noise is None else noise
            sd, rho = self._level(policy, noise)
            exact = exact + noise.draw(exact.shape, sd).astype(np.int64)
        return Histograms(
            model=identity(model),
            peer=peer,
            guarantee=policy.guarantee,
            noise=sd,
            rho=rho,
            negative=tuple(exact[0].tolist()),
            positive=tuple(exact[1].tolist()),
        )

    def _level(self, policy: Policy, noise: Noise) -> tuple[float, float]:
        """Standard deviation of the noise in every count, and what it costs; a row is in one bin.

        How many rows there are is counted anew, with noise: whoever sent the model may have put any number into it.
        """
        unit = policy.rows_per_person
        if policy.epsilon is not None:
            sd = unit / (2.0 * rho_of(policy.epsilon, policy.delta)) ** 0.5
            return sd, 0.5 * (unit / sd) ** 2
        rows = max(float(self.rows.sum()) + float(noise.draw(1, TOTAL * unit)[0]), 1.0)
        sd = unit * max(1.0, policy.noise * (rows / (2 * BINS)) ** 0.5)
        return sd, 0.5 * ((unit / sd) ** 2 + TOTAL**-2)


def check_scope(model: Record, peer: str, policy: Policy) -> None:
    """One score, a peer of the model, and rules that let counts leave."""
    check_single(model)
    if peer not in model.peers:
        raise LearnError(f"The model was not learned from '{peer}' but from {', '.join(model.peers)}.")
    if policy.contracts is not None and model.contract.fingerprint not in policy.contracts:
        raise PolicyRefusal(
            f"The policy does not allow the contract '{model.contract.name}'. Add its fingerprint to `contracts` if "
            "your data officer agrees."
        )


def check_single(model: Record) -> None:
    """The second round is for labels of two values."""
    if not isinstance(model.contract.label, TwoValues):
        raise LearnError("The second round is for a label of two values; this model has several scores, or a number.")


def count_scores(source: Source, model: Record, peer: str, policy: Policy) -> Counts:
    """Rows by label and by how far the peer's contribution is from its mean in the row's block."""
    view = View.of(model.contract, (peer,), source, model.constants)
    weights = np.array([number(c.raw) for c in model.of_peer(peer)])
    centre = np.array([c.centre for c in model.of_peer(peer)])
    labels, means = np.array(model.blocks.labels), contributions(model, peer)
    counts, step = np.zeros((2, BINS), dtype=np.int64), _width(model, peer)
    keep = () if policy.person is None else (policy.person,)
    turns = Turns(policy.rows_per_person)
    for batch in checked_batches(view, source, keep, with_label=True):
        check_labels(batch.column("label").null_count, source, view.shared)
        codes, label = view.codes(batch), dense(batch.select(["label"]))[:, 0].astype(np.int64)
        score = np.nan_to_num(view.values(batch) - centre, nan=0.0) @ weights
        if peer == model.peers[0]:
            score = score + number(model.intercept) + model.contract.encode_shared(codes) @ model.shared_weights
        block = locate(model.block_codes, labels, codes, label)
        kept = (block >= 0) & (turns.of(batch.column("keep_0")) if keep else True)
        place = np.clip((score[kept] - means[block[kept]]) // step + BINS // 2, 0, BINS - 1).astype(np.int64)
        np.add.at(counts, ((label[kept] > 0).astype(np.int64), place), 1)
    return Counts(counts)


class Turns:
    """Counts the rows of each person as they come, and tells which are among the first so many."""

    def __init__(self, most: int) -> None:
        self._most, self._seen = most, dict[object, int]()

    def of(self, persons: pa.Array) -> Truths:
        """Which rows of a batch count."""
        encoded = pc.dictionary_encode(persons, null_encoding="encode")
        place, names = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
        order = np.argsort(place, kind="stable")
        sizes = np.bincount(place, minlength=len(names))
        turn = np.empty(len(place), dtype=np.int64)
        turn[order] = np.arange(len(place)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        turn += np.array([self._seen.get(name, 0) for name in names], dtype=np.int64)[place]
        self._seen.update({name: self._seen.get(name, 0) + int(n) for name, n in zip(names, sizes, strict=True)})
        return np.asarray(turn < self._most)


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
    >>> counts = [rc.share_scores(tables[peer], model, peer) for peer in tables]
    >>> abs(rc.recalibrate(model, counts).second_round.error - model.estimate.error) < 0.05
    True
    """
    check_single(model)
    by_peer = {one.peer: one for one in histograms}
    if len(histograms) != len(by_peer) or {*by_peer} != {*model.peers}:
        raise LearnError(f"The second round needs one file of counts of each peer: {', '.join(model.peers)}.")
    for one in histograms:
        one.check(one.peer, model)
    edges, negative, positive = spread(model, by_peer)
    kept = model.estimate.kept
    below, above = -1.0 - (-1.0 - edges) / kept, 1.0 - (1.0 - edges) / kept
    odds = calibrated(below, negative, above, positive)
    found = judged(odds, (below, negative), (above, positive), kept)
    return model.model_copy(update={"odds": odds, "second_round": found})


def spread(model: Record, by_peer: dict[str, Histograms]) -> tuple[Floats, Floats, Floats]:
    """Edges of a grid, and how scores are spread over it under each label: block means and all peers, convolved."""
    means = np.sum([contributions(model, peer) for peer in model.peers], axis=0)
    widths = {peer: _width(model, peer) for peer in model.peers}
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


def _width(model: Record, peer: str) -> float:
    """Of a peer's bins: a public number, from the model alone."""
    width = 2.0 * REACH / BINS * deviation(model, peer)
    if not width > 0.0:
        raise LearnError("This model gives every row the same score: there is nothing to count.")
    return width


def deviation(model: Record, peer: str) -> float:
    """Standard deviation of the contribution of a peer's private columns inside blocks."""
    mean, weights = model.stacked(model.blocks.peers[peer]), np.array(model.blocks.weights)
    between = float(np.average((mean - np.average(mean, weights=weights)) ** 2, weights=weights))
    largest = max(number(effect) ** 2 for effect in model.effects.values())
    return float(max(number(model.effects[peer]) ** 2 - between, _NARROW * largest) ** 0.5)


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
        told = expit(design @ line)
        curvature = (design.T * (weight * told * (1.0 - told))) @ design
        step = np.linalg.solve(curvature + _NOTHING * np.eye(2), design.T @ (weight * (label - told)))
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
    at = int(np.flatnonzero(cuts == threshold)[0])
    error = float((1.0 - share) * false[at] + share * (1.0 - true[at]))
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
    """What rows are told and what is so."""
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


def contributions(model: Record, peer: str) -> Floats:
    """The peer's mean contribution to every block, with the shared columns and the constant if it is the first."""
    mean = np.array([number(value) for value in model.blocks.peers[peer]])
    if peer == model.peers[0]:
        mean = mean + number(model.intercept) + np.array([number(value) for value in model.blocks.shared])
    return np.asarray(mean)
