"""Boosting in company, where rows are few: with a forest and a linear model.

Each of the three is best on some tables, and nobody knows beforehand on which. All are fitted, and a score is made of
the mean of their probabilities, by weights under which the labels of rows out of fold are likeliest. A large table has
boosting alone: there the others cost more than they add.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import nnls

from radocraft.arrays import Floats, Ints

POOLED_ROWS = 20_000
_TREES, _LEAVES = 50, 1000
_STEPS, _PRIOR, _HEAVY = 200, 1.0, 100.0


def pool(boosting: Any, linear: Any, *, of_number: bool, seed: int) -> Any:
    """Boosting, a forest and a linear model, not fitted and of equal weight."""
    from sklearn.ensemble import VotingClassifier, VotingRegressor  # noqa: PLC0415

    members = [("boosting", boosting), ("forest", _forest(of_number, seed)), ("linear", linear)]
    if of_number:
        return VotingRegressor(members)
    return VotingClassifier(members, voting="soft", flatten_transform=False)


def _forest(of_number: bool, seed: int) -> Any:
    """Trees with cuts by lot; how large they grow is bounded, as they are kept in a file."""
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor  # noqa: PLC0415

    kind = ExtraTreesRegressor if of_number else ExtraTreesClassifier
    return kind(_TREES, max_leaf_nodes=_LEAVES, min_samples_leaf=2, max_features=0.5, random_state=seed)


def said_by_each(model: Any, rows: Any, classes: int) -> Floats:
    """What each model of a pool says of rows: (rows, models, classes) probabilities, or (rows, models) numbers."""
    said = np.asarray(model.transform(rows), dtype=np.float64)
    if not classes:
        return said
    out = np.zeros((said.shape[1], len(said), classes))
    out[:, :, np.asarray(model.classes_, dtype=np.int64)] = said.transpose(1, 0, 2)
    return out


def weights_of(said: Floats, aim: Floats | Ints) -> Floats:
    """The weights, adding up to 1, by which what models say out of fold is best.

    Of classes those that make the labels likeliest (the EM steps for the shares of a mixture, with a row of each
    model's added so that none is certain); of numbers those of least squares, not negative.

    Examples
    --------
    >>> sure, vague = [0.1, 0.9], [0.5, 0.5]
    >>> weights_of(np.array([[sure, vague], [sure[::-1], vague]] * 20), np.array([1, 0] * 20)).round(2)
    array([0.98, 0.02])
    >>> weights_of(np.array([[1.0, 5.0], [2.0, 2.0], [3.0, 5.0]]), np.array([1.0, 2.0, 3.0])).round(2)
    array([1., 0.])
    """
    count = said.shape[1]
    if said.ndim == 2:
        heavy = _HEAVY * max(float(np.abs(said).max()), 1.0) * len(said) ** 0.5  # as good as a rule: they add up to 1
        found = nnls(np.vstack([said, np.full(count, heavy)]), np.append(aim, heavy))[0]
        return np.asarray(found / found.sum())
    likelihood = np.maximum(said[np.arange(len(said)), :, aim], 1e-4)
    weights = np.full(count, 1.0 / count)
    for _ in range(_STEPS):
        owed = likelihood * weights
        owed /= owed.sum(axis=1, keepdims=True)
        weights = (owed.sum(axis=0) + _PRIOR) / (len(said) + _PRIOR * count)
    return weights


def together(said: Floats, weights: Floats) -> Floats:
    """The weighted mean of what all models say."""
    return np.asarray(np.tensordot(said, weights, axes=(1, 0)))
