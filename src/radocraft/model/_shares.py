"""One peer's share of a model's score: its contribution to each block, and its variance inside blocks.

The first peer of the model counts the shared columns and the constant as its own.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from radocraft.arrays import Floats
from radocraft.contract import TwoValues
from radocraft.errors import LearnError
from radocraft.model._fields import number
from radocraft.parts import BINS, REACH

if TYPE_CHECKING:
    from radocraft.model._model import Model

_NARROW = 1e-4


def identity(model: Model) -> str:
    """A hash of what makes the scores: contract, weights, constants and blocks."""
    body = model.model_dump_json(include={"contract", "intercept", "coefficients", "constants", "blocks"})
    return hashlib.sha256(body.encode()).hexdigest()


def check_single(model: Model) -> None:
    """The second round is for labels of two values."""
    if not isinstance(model.contract.label, TwoValues):
        raise LearnError(
            "The second round is for labels with two values; this model has several scores, or predicts a number."
        )


def contributions(model: Model, peer: str) -> Floats:
    """The peer's mean contribution to every block, with the shared columns and the constant if it is the first."""
    mean = np.array([number(value) for value in model.blocks.peers[peer]])
    if peer == model.peers[0]:
        mean = mean + number(model.intercept) + np.array([number(value) for value in model.blocks.shared])
    return np.asarray(mean)


def bin_width(model: Model, peer: str) -> float:
    """Of a peer's bins: a public number, from the model alone."""
    width = 2.0 * REACH / BINS * deviation(model, peer)
    if not width > 0.0:
        raise LearnError("This model gives every row the same score: there is nothing to count.")
    return width


def deviation(model: Model, peer: str) -> float:
    """Standard deviation of the contribution of a peer's private columns inside blocks."""
    mean, weights = model.stacked(model.blocks.peers[peer]), np.array(model.blocks.weights)
    between = float(np.average((mean - np.average(mean, weights=weights)) ** 2, weights=weights))
    largest = max(number(effect) ** 2 for effect in model.effects.values())
    return float(max(number(model.effects[peer]) ** 2 - between, _NARROW * largest) ** 0.5)
