"""From parts of scores to a model over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Literal

import numpy as np

from radocraft.contract import Contract
from radocraft.learning._correlation import Correlation, correlate
from radocraft.learning._differences import unlike_codes
from radocraft.learning._head import Head, fit_head
from radocraft.learning._outlook import FEWEST_ROWS, outlook_of, preferred
from radocraft.learning._virtual import Merged
from radocraft.model import HeadKind, HeadWeights, Origin, Relation, ScoreModel
from radocraft.sums import ScoreCells

_ALL_SETS = 5
_SAME = 0.6
_FEW = 500


def learn_scores(
    contract: Contract,
    cells: Sequence[ScoreCells],
    origins: Sequence[Origin],
    notes: Sequence[str],
    *,
    method: Literal["scores", "average"] | None = None,
    in_common: float = 1.0,
) -> ScoreModel:
    """Learn the formula over peers' scores, and what to expect of it.

    Parameters
    ----------
    contract, cells
        What was agreed, and what left each peer.
    origins, notes
        A line on each part, and what the peers note.
    method
        Fitted weights, or the mean of the peers' log-odds. If None weights are fitted, and the mean, or one peer's
        score by itself, takes their place where it is expected to do better.
    in_common
        The share of people whom two peers both hold; sums by group of a key tell as much less.
    """
    merged = Merged(contract, tuple(cells))
    correlation = correlate(merged, in_common)
    sets = _sets(len(cells))
    heads = [_average(places) if method == "average" else fit_head(merged, correlation, places) for places in sets]
    kind: HeadKind = "average" if method == "average" else "fitted"
    better = preferred(merged, correlation, heads[-1], _average(sets[-1])) if method is None else None
    if better is not None and better.kind == "average":
        kind, heads = better.kind, [*map(_average, sets)]
    elif better is not None:
        kind, heads = better.kind, [*heads[:-1], _over_all(better.head, sets[-1])]
    notes = [
        *([better.note(merged.names)] if better else []),
        *unlike_codes(contract, cells),
        *_remarks(merged, correlation, heads[-1], kind),
        *notes,
    ]
    return ScoreModel(
        head=kind,
        contract=contract,
        heads=tuple(_weights(head, merged.names) for head in heads),
        signatures=tuple(merged.log_odds.tolist()),
        relation=_relation(correlation),
        outlook=outlook_of(merged, heads, correlation),
        learned_from=tuple(origins),
        notes=tuple(notes),
    )


def _sets(count: int) -> list[tuple[int, ...]]:
    """Sets of peers that have a formula: all of them, or with many peers single ones, all but one, none and all."""
    sizes = range(count + 1) if count <= _ALL_SETS else (0, 1, count - 1, count)
    return [places for size in sizes for places in combinations(range(count), size)]


def _average(places: tuple[int, ...]) -> Head:
    """The mean of the scores there are; of none the signature's log-odds."""
    count = len(places)
    weights = [*(1.0 / count for _ in places), 0.0] if count else [1.0]
    return Head(places, 0.0, np.array(weights))


def _over_all(head: Head, places: tuple[int, ...]) -> Head:
    """The same with a weight for every peer."""
    weights = dict(zip(head.places, head.weights, strict=False))
    return Head(places, head.intercept, np.array([*(weights.get(place, 0.0) for place in places), head.weights[-1]]))


def _weights(head: Head, names: tuple[str, ...]) -> HeadWeights:
    *weights, signature = head.weights.tolist()
    peers = tuple(names[at] for at in head.places)
    return HeadWeights(peers=peers, intercept=head.intercept, weights=tuple(weights), signature=signature)


def _relation(correlation: Correlation) -> Relation:
    return Relation(
        correlation=tuple(map(tuple, correlation.mean.tolist())),
        error=tuple(map(tuple, correlation.error.tolist())),
        source="linked groups" if correlation.measured else "assumed",
    )


def _remarks(merged: Merged, correlation: Correlation, head: Head, kind: HeadKind) -> Iterator[str]:
    """What whoever uses the model should know."""
    names, contract = merged.names, merged.contract
    if absent := [peer for peer in contract.peers if peer not in names]:
        yield f"learned without {', '.join(absent)}: their part was not given"
    if merged.total < FEWEST_ROWS:
        yield f"of about {merged.total:,.0f} rows nothing can be told of new ones: from {FEWEST_ROWS} on it is"
    if merged.total < _FEW and kind == "fitted":
        yield (
            f"with about {merged.total:,.0f} rows the mean of the peers' log-odds is as good as fitted weights: "
            'learn it with the method "average"'
        )
    if not correlation.measured:
        yield (
            f"how the peers' scores are related is assumed (correlation {correlation.mean[0, -1]:.2f}), not measured: "
            "a neutral key in the contract would tell"
        )
    for a, b in combinations(range(len(names)), 2):
        if correlation.mean[a, b] > _SAME:
            yield (
                f"{names[a]} and {names[b]} know largely the same (correlation {correlation.mean[a, b]:.2f} inside "
                "label and signature): together they tell little more than one of them"
            )
    for place, name in zip(head.places, names, strict=True):
        if kind == "fitted" and head.weights[place] <= 0.0:
            yield f"{name} adds nothing to the others: its weight is 0"
