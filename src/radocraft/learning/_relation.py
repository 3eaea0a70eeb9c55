"""How much caution is needed: what block sums show of the relation between peers' columns.

Caution rho takes the peers' scores to be correlated by rho inside blocks. When all
peers see the same people, block sums tell something about it: those who happen to be
in a block move its mean at every peer at once. With ``v_j`` the variance of peer j's
score inside blocks and ``c_jl`` the covariance of two peers', a block of ``n_b`` rows has

    mean of j = what signature and label make of it + e_jb,
    n_b E[e_jb^2] = v_jb,   n_b E[e_jb e_lb] = c_jlb.

The first term is fitted, label by label, linearly in the shared columns, and in the
square of the label's own fit by them: the more the signature tells of the label, the less
a label tells of the columns. With ``h_b`` the share of a block's deviations that the fit leaves
over (1 less its leverage) and weights ``w_b = (n_b - 1) / h_b``,

    R_jl = sum_b w_b n_b rest_jb rest_lb / (M - B) = c_jl + d_jl,

``c_jl`` the mean of ``c_jlb`` over people, and ``d`` what the fit misses. So blocks count as they do
in V_j: few large ones may be unlike many small ones. Known are
``v_j = theta_j^T V_j theta_j / (M - B)``, so ``d_jj = R_jj - v_j``, and ``|d_jl| <= (d_jj d_ll)^(1/2)``,
whatever the fit misses. Hence, but for chance,

    rho <= sum_{j != l} [R_jl + (d_jj d_ll)^(1/2)] / sum_{j != l} (v_j v_l)^(1/2).

Chance is allowed two standard deviations of normal scores, in every d_jj and in the sum of
all R_jl as if peers were unrelated. Where R_jj is less than v_j by more than that, sums are not
what they seem (a gate may hold some back), and tell nothing; nor do they where the fit takes up
blocks with many people. People in such blocks, if they are few, are taken to be at their worst.
The bound is of use where blocks are many, none of them much larger than all others, and the
fit is good. It says nothing about peers who see different people, and is not taken where
their numbers of rows differ in any block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from radocraft.arrays import Floats, Ints
from radocraft.learning._blocks import Blocks
from radocraft.learning._completion import DEVIATIONS, Completion, pseudo_inverse
from radocraft.learning._products import coordinates

_RANK = 1e-9
_LEFT = 0.1
_UNSEEN = 0.05
"""A block tells nothing if the fit leaves less of it, and all blocks if such ones have more of the people."""


def same_people(blocks: Blocks) -> bool:
    """Whether all peers may have seen the same people, and say so without noise.

    Equal numbers of rows in all blocks tell, unless all are the same number, as in a sample by design.
    """
    rows = blocks.rows
    exact = not blocks.certainty and not any(cells.levels.sums or cells.levels.rows for cells in blocks.cells)
    return exact and bool((rows == rows[0]).all()) and bool((rows[0] != rows[0, 0]).any())


def largest_correlation(blocks: Blocks, known: Completion, theta: Floats) -> float:
    """The largest correlation of the peers' scores inside blocks that agrees with the block sums.

    ``theta`` may have several columns, one or more for each of ``known.r`` in turn; then the largest
    of all that use the columns of two peers.
    """
    columns, inside = theta.reshape(len(theta), -1), float(blocks.weights.sum()) - len(blocks)
    if inside <= 0.0:
        return 1.0
    hidden = [known.hidden(one) / inside**0.5 for one in columns.T]
    found = [
        _largest(left, deviations, inside)
        for deviations, left in zip(hidden, left_over(blocks, known, columns), strict=True)
        if np.count_nonzero(deviations) > 1
    ]
    return max(found, default=1.0)


def _largest(left: Residuals, deviations: Floats, inside: float) -> float:
    unseen = 1.0 - left.people / inside
    if unseen > _UNSEEN:
        return 1.0
    chance = DEVIATIONS * (2.0 * left.squares) ** 0.5 / left.people
    moved, worst = left.products / left.people, np.outer(deviations, deviations)
    others, missed = ~np.eye(len(worst), dtype=bool), np.diag(moved) - (1.0 - chance) * deviations**2
    if missed.min() < 0.0:
        return 1.0
    slack = chance * float(np.sum(worst[others] ** 2)) ** 0.5
    seen = float((moved + np.sqrt(np.outer(missed, missed)))[others].sum() + slack) / float(worst[others].sum())
    return (1.0 - unseen) * seen + unseen


@dataclass
class Residuals:
    """Running sums of what a fit leaves over: weighted products of the peers' rests, people, and w_b^2 h_b."""

    products: Floats
    people: float = 0.0
    squares: float = 0.0

    def add(self, rests: Floats, rows: Floats, left: Floats) -> None:
        """Add blocks with so many rows, of which the fit leaves so much over."""
        informative = left > _LEFT
        rests, rows, left = rests[informative], rows[informative], left[informative]
        weights = (rows - 1.0) / left
        self.products += (rests.T * (weights * rows)) @ rests
        self.people += float((rows - 1.0).sum())
        self.squares += float(weights**2 @ left)


def left_over(blocks: Blocks, known: Completion, theta: Floats) -> list[Residuals]:
    """What the fits of every model, a column of ``theta``, leave over."""
    peers, count, targets = len(blocks.cells), theta.shape[1], known.r.size // len(known.r)
    shared = slice(0, known.layout.shared.stop)
    label_slopes = pseudo_inverse(known.between[shared, shared]) @ known.r.reshape(len(known.r), -1)[shared]
    fits, out = (
        fits_by_label(blocks, known, label_slopes, theta),
        [Residuals(np.zeros((peers, peers))) for _ in range(count)],
    )
    for piece in blocks.pieces():
        carriers, others = columns_of(piece, known, label_slopes, theta)
        for label, fit in fits.items():
            some = piece.labels == label
            rows = piece.weights[some]
            rests, left = fit.rests(carriers[some], others[some], rows)
            for at, total in enumerate(out):
                squared, own = at % targets, targets + at + count * np.arange(peers)
                slopes, size = fit.slopes_on(squared, own)
                gone = rests[:, squared]
                total.add(rests[:, own] - np.outer(gone, slopes), rows, left - rows * gone**2 / size)
    return out


@dataclass(frozen=True)
class Fitted:
    """Least squares with weights, of all other columns by the carriers: 1 and the shared ones.

    ``basis`` makes the carriers orthonormal, ``slopes`` are those of the others on that,
    ``products`` are those of their rests, ``before`` their own squares.
    """

    basis: Floats
    slopes: Floats
    products: Floats
    before: Floats

    @classmethod
    def of(cls, products: Floats, carriers: int) -> Fitted:
        """From the products of all columns, the carriers first; such as tell nothing new do not count."""
        own, others = products[:carriers, :carriers], products[carriers:, carriers:]
        size = np.sqrt(np.diag(own))
        size = np.where(size > 0, size, 1.0)
        values, vectors = np.linalg.eigh(own / np.outer(size, size))
        kept = values > _RANK * float(values.max(initial=1.0))
        basis = vectors[:, kept] / np.sqrt(values[kept]) / size[:, None]
        slopes = basis.T @ products[:carriers, carriers:]
        return cls(basis, slopes, others - slopes.T @ slopes, np.diag(others))

    def rests(self, carriers: Floats, others: Floats, rows: Floats) -> tuple[Floats, Floats]:
        """What is left of some blocks' other columns, and h_b."""
        coordinates = carriers @ self.basis
        return others - coordinates @ self.slopes, 1.0 - rows * np.sum(coordinates**2, axis=1)

    def slopes_on(self, one: int, others: Ints) -> tuple[Floats, float]:
        """Slopes of some rests on one of them, and the size of that: none, and infinite, if it tells nothing new."""
        size = float(self.products[one, one])
        if size <= _RANK * float(self.before[one]):
            return np.zeros(len(others)), np.inf
        return self.products[one, others] / size, size


def fits_by_label(blocks: Blocks, known: Completion, label_slopes: Floats, theta: Floats) -> dict[int, Fitted]:
    """For every label, the fit of `columns_of` its blocks."""
    products: dict[int, Floats] = {}
    for piece in blocks.pieces():
        carriers, others = columns_of(piece, known, label_slopes, theta)
        for label in np.unique(piece.labels).tolist():
            some = piece.labels == label
            columns = np.hstack([carriers[some], others[some]])
            products[label] = products.get(label, 0.0) + (columns.T * piece.weights[some]) @ columns
    return {label: Fitted.of(found, carriers.shape[1]) for label, found in products.items()}


def columns_of(blocks: Blocks, known: Completion, label_slopes: Floats, theta: Floats) -> tuple[Floats, Floats]:
    """Of some blocks: 1 and shared columns; and squares of what they tell of the label, then scores by peer and model.

    ``told`` are the slopes of the label on them.
    """
    means = coordinates(blocks, known.layout)
    scores = [means[:, where] @ theta[where] for where in known.layout.private]
    carriers = np.hstack([np.ones((len(blocks), 1)), blocks.shared_means])
    return carriers, np.hstack([(means[:, : len(label_slopes)] @ label_slopes) ** 2, *scores])
