"""Boosting together with a forest and a linear model, for tables with few rows.

On small tables none of the three is best everywhere, and nobody knows beforehand which one is. So all are fitted, and
their probabilities are averaged, with the weights under which the labels of rows out of fold are most likely. A large
table has boosting alone: there the other two cost more than they add.
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
    """The three models, not fitted, with equal weights."""
    from sklearn.ensemble import VotingClassifier, VotingRegressor  # noqa: PLC0415

    members = [("boosting", boosting), ("forest", _forest(of_number, seed)), ("linear", linear)]
    if of_number:
        return VotingRegressor(members)
    return VotingClassifier(members, voting="soft", flatten_transform=False)


def _forest(of_number: bool, seed: int) -> Any:
    """Trees with random cuts, limited in size because the scorer's file contains them."""
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor  # noqa: PLC0415

    kind = ExtraTreesRegressor if of_number else ExtraTreesClassifier
    return kind(_TREES, max_leaf_nodes=_LEAVES, min_samples_leaf=2, max_features=0.5, random_state=seed)


def said_by_each(model: Any, rows: Any, classes: int) -> Floats:
    """What each model predicts: (rows, models, classes) probabilities, or (rows, models) numbers."""
    said = np.asarray(model.transform(rows), dtype=np.float64)
    if not classes:
        return said
    out = np.zeros((said.shape[1], len(said), classes))
    out[:, :, np.asarray(model.classes_, dtype=np.int64)] = said.transpose(1, 0, 2)
    return out


def weights_of(said: Floats, aim: Floats | Ints) -> Floats:
    """Weights of the models, not negative and with sum 1, from what they predict out of fold.

    For classes the weights maximise the likelihood of the labels (EM for the shares of a mixture, with one row added
    per model). For numbers they minimise the squared error.

    Examples
    --------
    >>> sure, vague = [0.1, 0.9], [0.5, 0.5]
    >>> weights_of(np.array([[sure, vague], [sure[::-1], vague]] * 20), np.array([1, 0] * 20)).round(2)
    array([0.95, 0.05])
    >>> weights_of(np.array([[1.0, 5.0], [2.0, 2.0], [3.0, 5.0]]), np.array([1.0, 2.0, 3.0])).round(2)
    array([1., 0.])
    """
    count = said.shape[1]
    if said.ndim == 2:
        heavy = _HEAVY * max(float(np.abs(said).max()), 1.0) * len(said) ** 0.5  # makes the sum 1
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
    """The weighted mean of all models."""
    return np.asarray(np.tensordot(said, weights, axes=(1, 0)))
