"""Learning with some truly linked rows: they estimate what nobody could see, and validate the model.

A few customers who consented, a pilot study: rows for which all peers' columns
are known together. Their deviations from block means estimate the covariance
between peers inside blocks,

    C_jl = M / L sum_i (x_ij - mu_jb) (x_il - mu_lb)^T,

noisy when columns are many and rows few, so only a share lambda of it enters
G, never more than keeps G positive semi-definite. Shares are compared by
cross-fitting (C from four fifths of the rows, loss on the others), cautions by
their loss on all linked rows; the best of all wins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from radocraft.arrays import Floats, Ints
from radocraft.errors import LearnError
from radocraft.learning._blocks import Blocks
from radocraft.learning._completion import Completion, complete
from radocraft.learning._fit import Fit, LinkedTest
from radocraft.learning._matching import Ridge, describe, generalised_cross_validation
from radocraft.learning._products import coordinates

CAUTIONS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
SHARES = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
FEWEST = 20
_FOLDS = 5
_RANK = 1e-8


@dataclass(frozen=True)
class LinkedRows:
    """Rows known across peers: coordinates as in `Layout`, label codes and targets, the block of each (-1 if none)."""

    design: Floats
    labels: Ints
    targets: Floats
    block: Ints

    def __len__(self) -> int:
        return len(self.labels)

    def pick(self, chosen: Ints) -> LinkedRows:
        """Some of the rows."""
        return LinkedRows(self.design[chosen], self.labels[chosen], self.targets[chosen], self.block[chosen])


def fit_linked(blocks: Blocks, linked: LinkedRows, alpha: float | None = None) -> Fit:
    """The caution, or the share of the estimated covariance, that does best on linked rows."""
    if len(linked) < FEWEST or len(np.unique(linked.targets, axis=0)) < 2:
        raise LearnError(
            f"Linked rows must be at least {FEWEST} and contain both labels. Give more, or learn without them."
        )
    known = complete(blocks)
    tuning = generalised_cross_validation(known) if alpha is None else None
    strength = tuning.chosen if tuning is not None else float(alpha or 0.0)
    problem = Ridge(known, strength)
    thetas = [problem.cautious(caution) for caution in CAUTIONS]
    trials = [("caution", caution, linked.design @ theta) for caution, theta in zip(CAUTIONS, thetas, strict=True)]
    trials += [("covariance", share, scores) for share, scores in cross_fitted(problem, blocks, linked)]
    losses = [float(np.mean((linked.targets - scores) ** 2)) for _, _, scores in trials]
    kind, value, scores = trials[int(np.argmin(losses))]
    if kind == "covariance":
        problem = Ridge(seen(known, blocks, linked, value), strength)
        theta = problem.cautious(0.0)
    else:
        theta = thetas[CAUTIONS.index(value)]
    compared = tuple((name, at, loss) for (name, at, _), loss in zip(trials, losses, strict=True))
    validation = LinkedTest(len(linked), min(losses), scores, linked.labels, linked.targets, compared)
    return describe(problem, theta, blocks, settings={kind: value}, tuning=tuning, validation=validation)


def cross_fitted(problem: Ridge, blocks: Blocks, linked: LinkedRows) -> list[tuple[float, Floats]]:
    """For every share, scores of linked rows by models whose covariance did not see them."""
    fold = np.arange(len(linked)) % _FOLDS
    scores = np.zeros((len(SHARES), *linked.targets.shape))
    for held_out in range(_FOLDS):
        rest = linked.pick(np.flatnonzero(fold != held_out))
        test = np.flatnonzero(fold == held_out)
        for index, share in enumerate(SHARES):
            theta = Ridge(seen(problem.known, blocks, rest, share), problem.alpha).cautious(0.0)
            scores[index, test] = linked.design[test] @ theta
    return list(zip(SHARES, scores, strict=True))


def seen(known: Completion, blocks: Blocks, linked: LinkedRows, share: float) -> Completion:
    """What is known, with a share of the covariance that linked rows show."""
    rows = linked.pick(np.flatnonzero(linked.block >= 0))
    apart = rows.design - coordinates(blocks.pick(rows.block), known.layout)
    cross = np.zeros((known.layout.size, known.layout.size))
    for index, mine in enumerate(known.layout.alone):
        for theirs in known.layout.alone[index + 1 :]:
            products = apart[:, mine].T @ apart[:, theirs] * known.total / max(len(rows), 1)
            cross[np.ix_(mine, theirs)], cross[np.ix_(theirs, mine)] = products, products.T
    return replace(known, cross=min(share, largest_share(known, cross)) * cross)


def largest_share(known: Completion, cross: Floats) -> float:
    """How much of the covariance keeps blockdiag(V_j) + cross positive semi-definite."""
    whiten = np.zeros_like(cross)
    for where, scatter in zip(known.layout.alone, known.unexplained, strict=True):
        values, vectors = np.linalg.eigh(scatter)
        alive = values > _RANK * max(float(values.max(initial=0.0)), np.finfo(float).tiny)
        roots = np.where(alive, 1.0 / np.sqrt(np.where(alive, values, 1.0)), 0.0)
        whiten[np.ix_(where, where)] = (vectors * roots) @ vectors.T
    lowest = float(np.linalg.eigvalsh(whiten @ cross @ whiten).min(initial=0.0))
    return min(1.0, 1.0 / -lowest) if lowest < 0 else 1.0
