"""The second round: how a model's scores are spread, from each peer's histograms of its own share of them.

A score is a sum of what each peer's columns contribute. When a model is
learned, every peer may count, block by block, how its own contributions are
spread (`tell_scores`); what leaves are counts in bins of at least ``min_rows``
rows. Inside a block, contributions of different peers are taken to be unrelated,
so the histograms are convolved; probabilities, error rate, AUC and ROC curve
follow (`recalibrate`) without the assumption that scores are normal. Scores of
rows the model was fitted to flatter it; residuals are divided by the share that
the fit left of them, as in `population`.

The first peer of the model counts the shared columns and the constant as its
own. The grid of bins follows from the model file and not from a row; one that
is far finer than the scores here spread is refused. How counts leave is in
`telling`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from radocraft.arrays import Floats, Ints
from radocraft.cells import locate
from radocraft.checks import check_labels
from radocraft.errors import LearnError, PolicyRefusal
from radocraft.labels import TwoValues
from radocraft.model import Model
from radocraft.model.record import Estimate, Odds, Outlook, Record, Reliability, number
from radocraft.model.scoring import View, checked_batches
from radocraft.moments import dense
from radocraft.policy import Policy
from radocraft.policy.bins import joined_bins
from radocraft.population import RARE, tenths
from radocraft.sources import Source, open_source
from radocraft.telling import Told, identity

ASSUMPTION = (
    "Inside a block what one peer's columns contribute is unrelated to what another's do; "
    "how each peer's contributions are spread there was counted, not assumed."
)
_FINE = 96.0
_FINEST = 200.0  # bins in the standard deviation of a peer's scores; a sound model has at most about _FINE
_AT_ONCE = 1_000
_REACH = 6.0
_NARROW = 1e-4
_ROUNDS = 100
_NOTHING = 1e-12
_POINTS = 201
_MOST = 100_000_000  # counts in memory at a time; a model may come from anybody


@dataclass(frozen=True)
class Grid:
    """Where a peer's contributions may lie, in bins of one width for all peers."""

    low: float
    step: float
    bins: int

    @classmethod
    def of(cls, model: Record, peer: str) -> Grid:
        """From the model file alone: the block means and how far contributions scatter."""
        step = sum(number(effect) ** 2 for effect in model.effects.values()) ** 0.5 / _FINE
        if not step > 0:
            raise LearnError("This model gives every row the same score: there is nothing to count.")
        mean = contributions(model, peer)
        reach = _REACH * sum(number(model.effects[name]) for name in owned(model, peer))
        low = float(mean.min()) - reach
        return cls(low, step, int(np.ceil((float(mean.max()) + reach - low) / step)) + 1)

    def place(self, scores: Floats) -> Ints:
        """The bin of each score; what lies beyond the grid goes to its ends."""
        return np.clip((scores - self.low) // self.step, 0, self.bins - 1).astype(np.int64)


def tell_scores(data: Any, model: Record, peer: str, policy: Policy | None = None) -> Told:
    """Count how a peer's share of the score is spread, for the learner's second round.

    Parameters
    ----------
    data
        The peer's table, as for `open_source`.
    model
        What `learn` gave.
    peer
        Whose table it is.
    policy
        The peer's rules; those of `Policy()` if None. The ledger hears of it
        when the counts are written (`let_scores_go`).

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=2000)
    >>> parts = [rc.Part.seal(rc.release(rc.craft(tables[peer], contract, peer), contract)) for peer in tables]
    >>> model = rc.learn(parts, contract)
    >>> told = [rc.tell_scores(tables[peer], model, peer) for peer in tables]
    >>> min(rows for one in told for block in one.rows for rows in block) >= 10
    True
    >>> abs(rc.recalibrate(model, told).second_round.error - model.estimate.error) < 0.03
    True
    """
    policy = policy or Policy()
    check_scope(model, peer, policy)
    counts = count_scores(open_source(data), model, peer)
    found = {at: joined_bins(row, policy.limit) for at, row in enumerate(counts)}
    kept = {at: bins for at, bins in found.items() if bins[0]}
    return Told(
        model=identity(model),
        peer=peer,
        guarantee=policy.guarantee,
        blocks=tuple(kept),
        starts=tuple(starts for starts, _ in kept.values()),
        rows=tuple(rows for _, rows in kept.values()),
    )


def check_scope(model: Record, peer: str, policy: Policy) -> None:
    """One score, a peer of the model, and rules that let counts leave."""
    check_single(model)
    if peer not in model.peers:
        raise LearnError(f"The model was not learned from '{peer}' but from {', '.join(model.peers)}.")
    if policy.mode == "differential-privacy":
        raise PolicyRefusal(
            "Counts of scores are exact, and beside them a differentially private release has no protection left. "
            "Do without the second round, or learn from exact sums."
        )
    if policy.contracts is not None and model.contract.fingerprint not in policy.contracts:
        raise PolicyRefusal(f"The policy does not allow the contract '{model.contract.name}'.")


def check_single(model: Record) -> None:
    """The second round is for labels of two values."""
    if not isinstance(model.contract.label, TwoValues):
        raise LearnError("The second round is for a label of two values; this model has several scores, or a number.")


def count_scores(source: Source, model: Record, peer: str) -> Ints:
    """Rows by block (first axis) and bin of the peer's contribution."""
    grid = Grid.of(model, peer)
    view = View.of(model.contract, (peer,), source, model.constants)
    weights = np.array([number(c.raw) for c in model.of_peer(peer)])
    centre = np.array([c.centre for c in model.of_peer(peer)])
    labels = np.array(model.blocks.labels)
    if len(labels) * grid.bins > _MOST:
        raise LearnError(f"This model asks for {len(labels):,} blocks of {grid.bins:,} bins each: too many to count.")
    counts, powers = np.zeros((len(labels), grid.bins), dtype=np.int64), np.zeros(3)
    for batch in checked_batches(view, source, with_label=True):
        check_labels(batch.column("label").null_count, source, view.shared)
        codes, label = view.codes(batch), dense(batch.select(["label"]))[:, 0].astype(np.int64)
        score = np.nan_to_num(view.values(batch) - centre, nan=0.0) @ weights
        if peer == model.peers[0]:
            score = score + number(model.intercept) + model.contract.encode_shared(codes) @ model.shared_weights
        powers += [len(score), score.sum(), score @ score]
        block = locate(model.block_codes, labels, codes, label)
        seen = block >= 0
        np.add.at(counts, (block[seen], grid.place(score[seen])), 1)
    check_fineness(powers, grid)
    return counts


def check_fineness(powers: Floats, grid: Grid) -> None:
    """Refuse bins so fine that their edges would tell rows' scores: the model says how far scores spread, falsely.

    ``powers`` are the number, sum and sum of squares of the peer's scores.
    """
    mean, square = powers[1:] / max(powers[0], 1.0)
    if max(square - mean**2, 0.0) ** 0.5 > _FINEST * grid.step:
        raise PolicyRefusal(
            f"This model asks for bins of less than 1/{_FINEST:.0f} of how far scores spread here, and the edges of "
            "such bins would tell the scores of single rows. It does not describe this table; have one learned anew."
        )


def recalibrate(model: Model, told: list[Told]) -> Model:
    """The model with probabilities from every peer's counts, and what to expect of it then (`second_round`).

    See `tell_scores` for an example.

    Raises
    ------
    LearnError
        If a peer's counts are missing, twice there or of another model.
    """
    check_single(model)
    by_peer = {one.peer: one for one in told}
    if len(told) != len(by_peer) or {*by_peer} != {*model.peers}:
        raise LearnError(f"The second round needs one file of counts of each peer: {', '.join(model.peers)}.")
    for one in told:
        one.check(one.peer, model)
    grids = {peer: Grid.of(model, peer) for peer in model.peers}
    step = next(iter(grids.values())).step
    low = sum(grid.low for grid in grids.values()) + step * (len(grids) - 1) / 2
    negative, positive = spread(model, by_peer, grids)
    edges: Floats = low + step * np.arange(len(positive) + 1, dtype=np.float64)
    kept = model.estimate.kept
    below, above = -1.0 - (-1.0 - edges) / kept, 1.0 - (1.0 - edges) / kept
    odds = calibrated(below, negative, above, positive)
    found = judged(odds, (below, negative), (above, positive), kept)
    return model.model_copy(update={"odds": odds, "second_round": found})


def spread(model: Record, told: dict[str, Told], grids: dict[str, Grid]) -> tuple[Floats, Floats]:
    """How scores are spread over the grid under each label: the convolution of all peers, block by block."""
    length = sum(grid.bins for grid in grids.values())
    weights, labels = np.array(model.blocks.weights), np.array(model.blocks.labels)
    by_label = np.stack([weights * (labels == -1), weights * (labels == 1)])
    total = np.zeros((2, length // 2 + 1), dtype=np.complex128)
    for first in range(0, len(labels), _AT_ONCE):
        some = slice(first, min(first + _AT_ONCE, len(labels)))
        waves = [np.fft.rfft(densities(model, told[peer], grid, some), length) for peer, grid in grids.items()]
        total += by_label[:, some] @ np.prod(waves, axis=0)
    negative, positive = np.maximum(np.fft.irfft(total, length), 0.0)
    return negative, positive


def densities(model: Record, told: Told, grid: Grid, some: slice) -> Floats:
    """Per block the peer's shares by fine bin: as counted over bins, normal inside one; normal without counts."""
    edges = grid.low + grid.step * np.arange(1, grid.bins)
    inside = ndtr((edges - contributions(model, told.peer)[some, None]) / deviation(model, told.peer))
    out: Floats = np.diff(inside, axis=1, prepend=0.0, append=1.0) + np.finfo(float).tiny
    low, high = np.searchsorted(told.blocks, [some.start, some.stop])
    for block, starts, rows in zip(*(field[low:high] for field in (told.blocks, told.starts, told.rows)), strict=True):
        row = out[block - some.start]
        row *= np.repeat(np.array(rows) / sum(rows) / np.add.reduceat(row, starts), np.diff([*starts, grid.bins]))
    return out


def deviation(model: Record, peer: str) -> float:
    """Standard deviation of the contribution of a peer's private columns inside blocks."""
    mean, weights = model.stacked(model.blocks.peers[peer]), np.array(model.blocks.weights)
    between = float(np.average((mean - np.average(mean, weights=weights)) ** 2, weights=weights))
    return float(max(number(model.effects[peer]) ** 2 - between, _NARROW * number(model.effects[peer]) ** 2) ** 0.5)


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


def owned(model: Record, peer: str) -> tuple[str, ...]:
    """Whose effects are in the peer's contribution."""
    return ("shared", peer) if peer == model.peers[0] else (peer,)
