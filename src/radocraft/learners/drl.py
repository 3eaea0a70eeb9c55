"""RadoCraft and DRL, as the paper has them.

Symbols: ``B`` holds one basic block rado per column,

    B_b = u_b lift(y_b s_b) + sum_j lift(y_b S_jb)                  (paper, eq. 3)

with ``u_b`` the block's weight, ``s_b`` its shared features, ``S_jb`` the sum of
peer j's private columns. The minimiser of the M-loss over all sums of block
rados is (Theorem 4)

    theta = (B B^T + dim_c(B) Gamma)^-1 B 1

with ``dim_c(B)`` the number of columns. Gamma is ``Diag(1 on shared, gamma on
private)``, gamma by cross-validation over the block rados, or the identity.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.linalg import solve

from radocraft.arrays import Floats
from radocraft.blocks import Blocks
from radocraft.learners.completion import complete
from radocraft.learners.fit import Fit, Layout, Tuning
from radocraft.losses import m_loss

GAMMAS = (0.01, 1.0, 100.0)
_FOLDS = 10


def fit_drl(blocks: Blocks, regularisation: Literal["tuned", "identity"] = "tuned", seed: int = 0) -> Fit:
    """Distributed Rado-Learn over merged blocks."""
    layout = Layout.of(blocks)
    rados = block_rados(blocks)
    tuning = None
    gamma: Floats = np.eye(layout.size)
    if regularisation == "tuned":
        tuning = cross_validate(rados, layout, seed)
        gamma = weighted(layout, tuning.chosen)
    theta = minimiser(rados, gamma)
    settings: dict[str, float | str] = {"regularisation": regularisation}
    return Fit("drl", theta, complete(blocks), settings, tuning, freedom(rados, gamma))


def block_rados(blocks: Blocks) -> Floats:
    """The matrix B, one basic block rado per column."""
    constant = [np.ones((len(blocks), 1))] if blocks.contract.intercept else []
    shared = np.hstack([*constant, blocks.shared_means]) * blocks.weights[:, None]
    stacked = np.hstack([shared, *(blocks.sums(at) for at in range(len(blocks.cells)))])
    return (stacked * blocks.labels[:, None]).T.astype(np.float64)


def weighted(layout: Layout, gamma: float) -> Floats:
    """Gamma = Diag(1 on shared, gamma on private)."""
    diagonal = np.ones(layout.size)
    for private in layout.private:
        diagonal[private] = gamma
    return np.diag(diagonal)


def minimiser(rados: Floats, gamma: Floats) -> Floats:
    """Theorem 4: (B B^T + dim_c(B) Gamma)^-1 B 1."""
    theta: Floats = solve(rados @ rados.T + rados.shape[1] * gamma, rados.sum(axis=1), assume_a="pos")
    return theta


def freedom(rados: Floats, gamma: Floats) -> float:
    """The trace of (B B^T + dim_c(B) Gamma)^-1 B B^T."""
    gram = rados @ rados.T
    return float(np.trace(solve(gram + rados.shape[1] * gamma, gram, assume_a="pos")))


def cross_validate(rados: Floats, layout: Layout, seed: int) -> Tuning:
    """The paper's ten-fold cross-validation over block rados, scored by the M-loss of the held-out ones."""
    count = rados.shape[1]
    folds = np.array_split(np.random.default_rng(seed).permutation(count), min(_FOLDS, count))
    scores = []
    for candidate in GAMMAS:
        gamma = weighted(layout, candidate)
        losses = []
        for held_out in folds if count > 1 else []:
            kept = np.setdiff1d(np.arange(count), held_out)
            theta = minimiser(rados[:, kept], gamma)
            losses.append(m_loss(rados[:, held_out].T, theta, gamma, len(held_out)))
        scores.append(float(np.mean(losses)) if losses else 0.0)
    return Tuning("cross-validation over rados", GAMMAS[int(np.argmin(scores))], GAMMAS, tuple(scores))
