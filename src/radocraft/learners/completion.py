"""What the blocks tell about the joined table's second moments, and what nobody can see.

Symbols: ``mu_b`` is the mean vector of block b (1, shared, every peer's private
columns), ``u_b`` its weight, ``M = sum_b u_b``. The loss of a classifier on the
joined table needs ``r = X y`` and ``G = X X^T``. The first is known, the second up
to how the rows of different peers pair up inside a block:

    G = sum_b u_b mu_b mu_b^T + within                                   (docs, eq. 1)

For one peer j the scatter inside blocks is known from its moments Q_j,

    W_j = (M / N_j) (Q_j - sum_b n_jb mu_jb mu_jb^T)                     (docs, eq. 2)

over its private columns and the shared ones (which vary only in rolled-up
blocks). Split each private column into what the shared ones explain and the
rest: ``beta_j = W_SS^+ W_Sj`` and ``V_j = W_jj - W_jS W_SS^+ W_Sj``. With
``L = (0, I, beta_1, ..., beta_p)``

    G = E + blockdiag(0, V_1, ..., V_p) + C,
    E = sum_b u_b mu_b mu_b^T + L^T W_SS L                               (docs, eq. 3)

where C, the unexplained covariance between peers, is what nobody can see. All
other terms are positive semi-definite by construction.

Only rows of equal signature can be one person, whether or not the learner is
shown the signature; so a joined row has one value in each shared column, the
same at every peer. Hence E is exact when all peers see the same people, also in
rolled-up blocks: a peer's column, centred by block, is its regression on the
shared columns plus a rest at right angles to them, the products of two peers'
regressions follow from beta_j and W_SS, and C holds the products of the rests.
The expectation of C over all such matchings is 0 in blocks of full signatures.
In rolled-up blocks 0 is an assumption: peers' columns have nothing more in
common than the shared columns explain linearly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from radocraft.arrays import Floats
from radocraft.blocks import Blocks
from radocraft.cells import Cells
from radocraft.learners.fit import Layout

_RANK = 1e-10


@dataclass(frozen=True)
class Completion:
    """Second moments of the joined table: r and E are known, V_j only per peer, C not at all.

    ``cross`` is what linked rows tell of C; without any it is taken to be 0.
    """

    layout: Layout
    total: float
    r: Floats
    between: Floats
    explained: Floats
    unexplained: tuple[Floats, ...]
    cross: Floats | None = None
    noise: float = 0.0

    def expected(self, stretch: Floats | None = None) -> Floats:
        """E + blockdiag(V_j), each V_j stretched; without stretch the expectation of G."""
        gram = self.explained.copy() if self.cross is None else self.explained + self.cross
        for at, (where, scatter) in enumerate(zip(self.layout.private, self.unexplained, strict=True)):
            gram[where, where] += scatter if stretch is None else stretch[at] * scatter
        return gram

    def hidden(self, theta: Floats) -> Floats:
        """For each peer ||V_j^(1/2) theta_j||."""
        pieces = zip(self.layout.private, self.unexplained, strict=True)
        return np.array([max(float(theta[w] @ v @ theta[w]), 0.0) for w, v in pieces]) ** 0.5


def complete(blocks: Blocks) -> Completion:
    """Assemble what is known about the joined table."""
    layout = Layout.of(blocks)
    weights, total = blocks.weights, float(blocks.weights.sum())
    constant = [np.ones((len(blocks), 1))] if layout.intercept else []
    means = np.hstack([*constant, blocks.shared_means, *(blocks.means(at) for at in range(len(blocks.cells)))])
    between = (means.T * weights) @ means
    scatters = [within_scatter(blocks, at, total) for at in range(len(blocks.cells))]
    shared_width = layout.shared.stop - layout.shared.start
    shared_scatter = np.mean([scatter[-1] for scatter in scatters], axis=0)
    loading = np.zeros((shared_width, layout.size))
    loading[:, layout.shared] = np.eye(shared_width)
    for where, (slopes, _, _) in zip(layout.private, scatters, strict=True):
        loading[:, where] = slopes
    explained = between + loading.T @ shared_scatter @ loading
    unexplained = tuple(rest for _, rest, _ in scatters)
    r = means.T @ (weights * blocks.labels)
    noise = max(noise_level(cells) for cells in blocks.cells)
    return Completion(layout, total, r, between, symmetric(explained), unexplained, noise=noise)


def noise_level(cells: Cells) -> float:
    """How far noise in a peer's moments moves the eigenvalues of G / M: 2 sigma sqrt(d_j) / N_j, 0 without noise."""
    return float(2.0 * cells.noise * len(cells.columns) ** 0.5 / cells.total)


def within_scatter(blocks: Blocks, at: int, total: float) -> tuple[Floats, Floats, Floats]:
    """Of one peer: slopes beta_j on the shared columns, the rest V_j, and W_SS."""
    cells = blocks.cells[at]
    seen = blocks.rows[at] > 0
    sums = np.hstack([blocks.sums(at), blocks.shared_sums(at)])[seen]
    rows = blocks.rows[at][seen].astype(np.float64)
    moments = cells.moments[:-1, :-1]
    scatter = symmetric(total / cells.total * (moments - (sums.T / rows) @ sums))
    width = len(cells.columns)
    own, cross, shared = scatter[:width, :width], scatter[width:, :width], scatter[width:, width:]
    shared = positive(shared, _RANK * float(np.trace(moments[width:, width:])))
    slopes = pseudo_inverse(shared) @ cross
    rest = own - slopes.T @ shared @ slopes
    return slopes, positive(rest, 0.0), shared


def symmetric(matrix: Floats) -> Floats:
    """Remove the rounding that makes a symmetric matrix lopsided."""
    out: Floats = (matrix + matrix.T) / 2.0
    return out


def positive(matrix: Floats, floor: float) -> Floats:
    """Set eigenvalues at or below ``floor`` to zero: what is left over from rounding."""
    if not len(matrix):
        return matrix
    values, vectors = np.linalg.eigh(symmetric(matrix))
    kept = np.where(values > floor, values, 0.0)
    out: Floats = (vectors * kept) @ vectors.T
    return out


def pseudo_inverse(matrix: Floats) -> Floats:
    """Moore-Penrose inverse of a positive semi-definite matrix."""
    if not len(matrix):
        return matrix
    return np.linalg.pinv(matrix, rcond=_RANK, hermitian=True).astype(np.float64)
