"""What every result is compared with: each peer alone, the oracle, and zip.

All three are ridge regression on labels -1 and +1,

    theta = argmin  mean_i (1 - y_i theta^T x_i)^2 + gamma ||theta||^2
          = (X X^T + m gamma I)^-1 X y

with gamma by stratified ten-fold cross-validation of the held-out square loss
(the constant is not penalised). They differ in the rows: a peer has its own
table; the *oracle* has the truly joined one; *zip* sorts all tables by block
and pairs their rows in order, which is what a competent user would try first.

Cross-validation needs no second pass over the rows: the loss on a fold follows
from the fold's second moments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from radocraft.arrays import Floats, Ints, number_rows
from radocraft.errors import OneClass

Scaling = Literal["standard", "min-max", "none"]

PAPER_GAMMAS = (0.01, 1.0, 100.0)
FINE_GAMMAS = tuple(float(gamma) for gamma in np.logspace(-6, 2, 17))
_FOLDS = 10


@dataclass(frozen=True)
class PeerTable:
    """All that one peer holds: no id, and rows in an order of its own.

    Parameters
    ----------
    name, columns
        Whose it is, and the names of its private columns.
    codes, labels, values
        Per row: the code of each shared feature, +1 or -1, and the raw private
        values, NaN where missing.
    """

    name: str
    columns: tuple[str, ...]
    codes: Ints
    labels: Ints
    values: Floats

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Linear:
    """A linear classifier over (shared columns as encoded, private columns in its own units)."""

    weights: Floats
    constant: float
    gamma: float
    centre: Floats
    scale: Floats

    def scores(self, shared: Floats, values: Floats) -> Floats:
        """Score of every row; its sign is the class."""
        design = np.hstack([shared, in_units(values, self.centre, self.scale)])
        return design @ self.weights + self.constant


def fit_ridge(
    shared: Floats,
    values: Floats,
    labels: Ints,
    *,
    gammas: Sequence[float] = PAPER_GAMMAS,
    scaling: Scaling = "standard",
    intercept: bool = True,
    seed: int = 0,
) -> Linear:
    """Ridge on shared columns (as encoded) and raw private columns (NaN where missing).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> values = rng.normal(size=(60, 2))
    >>> labels = np.where(values[:, 0] > 0, 1, -1)
    >>> model = fit_ridge(np.empty((60, 0)), values, labels)
    >>> float(np.mean(np.sign(model.scores(np.empty((60, 0)), values)) == labels)) > 0.9
    True
    """
    centre, scale = units_of(values, scaling)
    constant = [np.ones((len(labels), 1))] if intercept else []
    design = np.hstack([*constant, shared, in_units(values, centre, scale)])
    penalty = np.ones(design.shape[1])
    penalty[: len(constant)] = 0.0
    gamma = gammas[0] if len(gammas) == 1 else best_gamma(design, labels, penalty, gammas, seed)
    theta = _solve(design.T @ design, design.T @ labels, len(labels), penalty, [gamma])[0]
    start = len(constant)
    return Linear(theta[start:], float(theta[0]) if intercept else 0.0, gamma, centre, scale)


def best_gamma(design: Floats, labels: Ints, penalty: Floats, gammas: Sequence[float], seed: int) -> float:
    """The gamma with the smallest held-out square loss in stratified cross-validation."""
    fold = stratified_folds(labels, _FOLDS, np.random.default_rng(seed))
    count = int(fold.max()) + 1
    if count < 2:
        return gammas[len(gammas) // 2]
    pieces = [(design[fold == number], labels[fold == number].astype(np.float64)) for number in range(count)]
    grams = np.array([x.T @ x for x, _ in pieces])
    targets = np.array([x.T @ y for x, y in pieces])
    gram, target = grams.sum(axis=0), targets.sum(axis=0)
    losses = np.zeros(len(gammas))
    for (_, held_out), own_gram, own_target in zip(pieces, grams, targets, strict=True):
        theta = _solve(gram - own_gram, target - own_target, len(labels) - len(held_out), penalty, gammas)
        losses += len(held_out) - 2.0 * theta @ own_target + np.einsum("gi,ij,gj->g", theta, own_gram, theta)
    return gammas[int(np.argmin(losses))]


def _solve(gram: Floats, target: Floats, rows: int, penalty: Floats, gammas: Sequence[float]) -> Floats:
    """(X X^T + m gamma I)^-1 X y, one row for each gamma."""
    systems = gram + rows * np.asarray(gammas)[:, None, None] * np.diag(penalty)
    theta: Floats = np.linalg.solve(systems, np.broadcast_to(target[:, None], (len(gammas), len(target), 1)))[..., 0]
    return theta


def stratified_folds(labels: Ints, folds: int, rng: np.random.Generator) -> Ints:
    """A fold for every row, each with its part of both labels; fewer folds where a label is rarer than that."""
    by_label = [rng.permutation(np.flatnonzero(labels == sign)) for sign in (-1, 1)]
    rarest = min(len(rows) for rows in by_label)
    if rarest == 0:
        raise OneClass("Only one value of the label occurs among the rows to learn from. A model needs both.")
    fold = np.empty(len(labels), dtype=np.int64)
    fold[np.concatenate(by_label)] = np.arange(len(labels)) % min(folds, rarest)
    return fold


def units_of(values: Floats, scaling: Scaling) -> tuple[Floats, Floats]:
    """Centre and scale of every column, from its present values: mean and standard deviation, minimum and range."""
    width = values.shape[1]
    if scaling == "none":
        return np.zeros(width), np.ones(width)
    present = ~np.isnan(values)
    if scaling == "min-max":
        low = np.min(values, axis=0, where=present, initial=np.inf)
        high = np.max(values, axis=0, where=present, initial=-np.inf)
        return np.where(np.isfinite(low), low, 0.0), np.where(high > low, high - low, 1.0)
    count = np.maximum(present.sum(axis=0), 1)
    mean = np.where(present, values, 0.0).sum(axis=0) / count
    spread = np.sqrt((np.where(present, values - mean, 0.0) ** 2).sum(axis=0) / count)
    return mean, np.where(spread > 1e-12 * np.maximum(np.abs(mean), 1.0), spread, 1.0)


def in_units(values: Floats, centre: Floats, scale: Floats) -> Floats:
    """(x - centre) / scale, 0 where x is missing."""
    out: Floats = np.nan_to_num((values - centre) / scale, nan=0.0)
    return out


def zip_rows(tables: Sequence[PeerTable]) -> PeerTable:
    """Sort all tables by block and pair their rows in order.

    Where a peer has fewer rows in a block than another it starts over; where it
    has none, its values are missing.

    Examples
    --------
    >>> a = PeerTable("a", ("x",), np.array([[1], [0]]), np.array([1, 1]), np.array([[5.0], [6.0]]))
    >>> b = PeerTable("b", ("z",), np.array([[0], [1]]), np.array([1, 1]), np.array([[7.0], [8.0]]))
    >>> zip_rows([a, b]).values.tolist()
    [[6.0, 7.0], [5.0, 8.0]]
    """
    keys = np.vstack([np.column_stack([table.codes, table.labels]) for table in tables])
    block = np.split(number_rows(keys), np.cumsum([len(table) for table in tables])[:-1])
    rows = np.array([np.bincount(places, minlength=max(b.max(initial=0) for b in block) + 1) for places in block])
    longest = rows.max(axis=0)
    of_block = np.repeat(np.arange(len(longest)), longest)
    place = np.arange(len(of_block)) - np.repeat(np.cumsum(longest) - longest, longest)
    values = np.hstack([_in_order(t, b, n, of_block, place) for t, b, n in zip(tables, block, rows, strict=True)])
    first = np.unique(np.concatenate(block), return_index=True)[1]
    paired = keys[first][of_block]
    columns = tuple(name for table in tables for name in table.columns)
    return PeerTable("zip", columns, paired[:, :-1], paired[:, -1], values)


def _in_order(table: PeerTable, block: Ints, rows: Ints, of_block: Ints, place: Ints) -> Floats:
    """One peer's values for the paired rows: its rows of the block in order, again from the first at the end."""
    order = np.argsort(block, kind="stable")
    start = np.cumsum(rows) - rows
    ordered = rows[of_block]
    out = np.full((len(of_block), len(table.columns)), np.nan)
    have = ordered > 0
    out[have] = table.values[order[start[of_block[have]] + place[have] % ordered[have]]]
    return out
