"""Checks that the numbers in a model file are consistent: it may come from anybody.

Fields of another kind are refused where the file is read; here lengths, names and
codes must agree, and every number must be one. What is wrong is raised as a
ValueError, which the reader of the file puts into a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel

from radocraft.contract import Contract, Score, odd_constants, private_columns
from radocraft.sums import ROLLED

if TYPE_CHECKING:
    from radocraft.model._fields import Origin
    from radocraft.model._model import Model
    from radocraft.model._scores import ScoreModel

_LARGEST = 1e150
"""Squares of such numbers, and sums of them, are finite."""


def check_model(model: Model) -> None:
    """A model of columns."""
    contract, blocks, width = model.contract, model.blocks, np.shape(model.intercept)
    _check_origins(contract, model.learned_from)
    weights = [w for c in model.coefficients for w in (c.standardised, c.raw, c.effect)]
    weights += [model.raw_intercept, *model.effects.values(), *blocks.shared]
    weights += [weight for of_peer in blocks.peers.values() for weight in of_peer]
    _check(all(np.shape(weight) == width for weight in weights), "a weight does not have the shape of the intercept")
    _check(width in ((), (len(model.classes),)), "it does not have one weight per class")
    names: dict[str | None, list[str]] = {None: [*contract.shared_columns]}
    names |= {peer: _own(model, peer) for peer in model.peers}
    given = {owner: [c.name for c in model.coefficients if c.peer == owner] for owner in names}
    _check(given == names, "its columns are not the contract's")
    _check(sum(map(len, names.values())) == len(model.coefficients), "it has columns that belong to no peer")
    count = len(blocks.labels)
    lists: list[list[Any]] = [blocks.codes, blocks.weights, blocks.shared, *blocks.peers.values()]
    _check(all(len(each) == count for each in lists), "its lists of blocks differ in length")
    _check({*blocks.peers} == {*model.peers}, "its blocks are of other peers")
    _check({*model.effects} == {"shared", *model.peers}, "its effects are of other peers")
    sizes = [len(shared.codes) for shared in contract.shared]
    _check(all(_are_codes(codes, sizes) for codes in blocks.codes), "a block has codes that nobody agreed on")
    _check({*blocks.labels} <= {*contract.label.codes}, "a block has a label that nobody agreed on")
    _check(all(scale > 0.0 for scale in (c.scale for c in model.coefficients)), "a column has no scale")
    for peer, constants in model.constants.items():
        _check(peer in model.peers and odd_constants(contract, peer, constants) is None, "its constants are not agreed")
    _check(min(blocks.weights, default=0.0) >= 0.0 < sum(blocks.weights), "its blocks have no weight")
    _check_odds(model)
    _check_finite(model)


def check_scores(model: ScoreModel) -> None:
    """A model of scores."""
    contract, peers = model.contract, model.peers
    _check(contract.of_scores, "its contract is of columns")
    _check_origins(contract, model.learned_from)
    heads = {frozenset(head.peers) for head in model.heads}
    _check(len(heads) == len(model.heads), "it has two formulas for the same peers")
    _check(
        all(len(head.weights) == len(head.peers) == len({*head.peers}) for head in model.heads),
        "a formula is malformed",
    )
    needed = (frozenset(), *map(frozenset, combinations(peers, 1)), frozenset(peers))
    _check({*needed} <= heads and all(head <= {*peers} for head in heads), "its formulas are not of its peers")
    _check(
        len(model.signatures) == prod(len(s.codes) for s in contract.shared), "the log-odds of a signature are missing"
    )
    square = [(len(peers),) * 2] * 2
    _check(
        [np.shape(m) for m in (model.relation.correlation, model.relation.error)] == square, "its relation is malformed"
    )
    if (outlook := model.outlook) is not None:
        _check({*outlook.alone} == {*peers} and {*outlook.without} <= {*peers}, "its outlook is of others")
        _check(outlook.best_peer in peers, "its gain is over another peer")
        _check(len(outlook.false_positive_rate) == len(outlook.true_positive_rate), "its ROC curve has ends missing")
    _check_finite(model)


def _own(model: Model, peer: str) -> list[str]:
    """The columns that are in the model as this peer's: of what several hold, the first one's."""
    before: set[str] = set()
    for other in model.peers[: model.peers.index(peer)]:
        before |= {column.name for column in private_columns(model.contract, other)}
    return [column.name for column in private_columns(model.contract, peer) if column.name not in before]


def _check_origins(contract: Contract, origins: tuple[Origin, ...]) -> None:
    peers = [origin.peer for origin in origins]
    _check(bool(peers) and len({*peers}) == len(peers) and {*peers} <= {*contract.peers}, "its peers are not agreed")
    scores = [f for peer in peers for f in contract.peers[peer].features.values() if isinstance(f, Score)]
    _check(not scores or len(scores) == len(peers), "it has a peer without a score")


def _are_codes(codes: list[int], sizes: list[int]) -> bool:
    return len(codes) == len(sizes) and all(
        code == ROLLED or 0 <= code < size for code, size in zip(codes, sizes, strict=True)
    )


def _check_odds(model: Model) -> None:
    if model.odds is None:
        return
    count = len(model.classes)
    many = np.shape(model.intercept) != ()
    _check(np.shape(model.odds.offset) == ((count,) if many else ()), "its offsets are not one for each class")
    _check(np.shape(model.odds.slope) == ((count, count) if many else ()), "its slopes are not one for each class")


def _check_finite(model: BaseModel) -> None:
    content = model.model_dump(exclude={"contract", "estimate", "second_round"})
    _check(
        all(abs(value) <= _LARGEST for value in _numbers([content])), "a number in it is not finite, or far too large"
    )


def _numbers(values: Iterable[Any]) -> Iterator[float]:
    for value in values:
        if isinstance(value, float):
            yield value
        elif isinstance(value, dict):
            yield from _numbers(value.values())
        elif isinstance(value, list | tuple):
            yield from _numbers(value)


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
