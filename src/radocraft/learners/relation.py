"""How much caution is due: what block sums tell of the relation between peers' columns.

Caution rho takes the peers' scores to be correlated by rho inside blocks. When all
peers see the same people, block sums tell something about it: those who happen to be
in a block move its mean at every peer at once. With ``v_j`` the variance of peer j's
score inside blocks and ``c_jl`` the covariance of two peers', a block of ``n_b`` rows has

    mean of j = what signature and label make of it + e_jb,
    n_b E[e_jb^2] = v_jb,   n_b E[e_jb e_lb] = c_jlb.

The first term is fitted, label by label, linearly in the shared columns, and in the
square of the label's own fit by them: the more the signature tells of the label, the less
a label tells of the columns. With ``h_b`` the share of a block's deviations that the fit leaves over,

    R_jl = sum_b (n_b - 1) n_b rest_jb rest_lb / sum_b (n_b - 1) h_b = c_jl + d_jl,

``c_jl`` the mean of ``c_jlb`` over people, and ``d`` what the fit misses. Blocks count by ``n_b - 1``,
as they do in V_j: few large ones may be unlike many small ones. Known are
``v_j = theta_j^T V_j theta_j / (M - B)``, so ``d_jj = R_jj - v_j``, and ``|d_jl| <= (d_jj d_ll)^(1/2)``,
whatever the fit misses. Hence, but for chance,

    rho <= sum_{j != l} [R_jl + (d_jj d_ll)^(1/2)] / sum_{j != l} (v_j v_l)^(1/2).

Chance is allowed three standard deviations of normal scores in as many blocks as count.
Where R_jj is less than v_j by more than that, sums are not what they seem (a gate may hold
some back), and tell nothing. The bound is of use where blocks are many, none of them much
larger than all others, and the fit is good. It says nothing about peers who see different
people, and is not taken where their numbers of rows differ in any block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from radocraft.arrays import Floats, Ints
from radocraft.blocks import Blocks
from radocraft.learners.completion import Completion, pseudo_inverse
from radocraft.learners.products import coordinates

_RANK = 1e-9
_DEVIATIONS = 3.0


def same_people(blocks: Blocks) -> bool:
    """Whether all peers may have seen the same people, and say so without noise.

    Equal numbers of rows in all blocks tell, unless all are the same number, as in a sample by design.
    """
    rows = blocks.rows
    exact = not blocks.surety and all(cells.noise == cells.total_noise == 0.0 for cells in blocks.cells)
    return exact and bool((rows == rows[0]).all()) and bool((rows[0] != rows[0, 0]).any())


def largest_correlation(blocks: Blocks, known: Completion, theta: Floats) -> float:
    """The largest correlation of the peers' scores inside blocks that agrees with the block sums.

    ``theta`` may have several columns, one or more for each of ``known.r`` in turn; then the largest of all.
    """
    columns, inside = theta.reshape(len(theta), -1), float(blocks.weights.sum()) - len(blocks)
    if inside <= 0.0:
        return 1.0
    found = zip(columns.T, left_over(blocks, known, columns), strict=True)
    return max(_largest(moved, counted, known.hidden(one) / inside**0.5) for one, (moved, counted) in found)


def _largest(moved: Floats, counted: float, deviations: Floats) -> float:
    worst, others = np.outer(deviations, deviations), ~np.eye(len(deviations), dtype=bool)
    if counted <= 0.0 or not worst[others].sum() > 0.0:
        return 1.0
    chance = _DEVIATIONS * (2.0 / counted) ** 0.5
    missed = np.diag(moved) - (1.0 - chance) * deviations**2
    if missed.min() < 0.0:
        return 1.0
    missed = missed**0.5
    slack = chance * float(np.sum(worst[others] ** 2)) ** 0.5
    return float(((moved + np.outer(missed, missed))[others].sum() + slack) / worst[others].sum())


def left_over(blocks: Blocks, known: Completion, theta: Floats) -> list[tuple[Floats, float]]:
    """For every column of ``theta``, R of the peers' scores, and how many blocks count in it."""
    labels = np.unique(blocks.labels)
    totals = [Left(len(blocks.cells)) for _ in range(theta.shape[1])]
    fits = fits_by_label(blocks, known, theta, labels)
    for piece in blocks.pieces():
        columns = Columns.of(piece, known, theta)
        for label, each in zip(labels, fits, strict=True):
            some = piece.labels == label
            for at, (total, fit) in enumerate(zip(totals, each, strict=True)):
                told, scores = columns.pick(at)
                total.add(told[some], scores[some], piece.weights[some], fit)
    return [total.told() for total in totals]


@dataclass(frozen=True)
class Columns:
    """Of some blocks: 1 and shared columns, squares of the label's fits by them, and scores by model and peer."""

    shared: Floats
    told: Floats
    scores: Floats

    @classmethod
    def of(cls, blocks: Blocks, known: Completion, theta: Floats) -> Columns:
        """Of all models at once."""
        means, shared = coordinates(blocks, known.layout), slice(0, known.layout.shared.stop)
        slopes = pseudo_inverse(known.between[shared, shared]) @ known.r.reshape(len(known.r), -1)[shared]
        scores = [means[:, where] @ theta[where] for where in known.layout.private]
        ones = np.ones((len(blocks), 1))
        return cls(np.hstack([ones, blocks.shared_means]), (means[:, shared] @ slopes) ** 2, np.stack(scores, axis=2))

    def pick(self, at: int) -> tuple[Floats, Floats]:
        """What one model's scores are fitted by, and the peers' scores."""
        return np.column_stack([self.shared, self.told[:, at % self.told.shape[1]]]), self.scores[:, at]


@dataclass(frozen=True)
class Fitted:
    """Weighted least squares: ``basis`` makes the columns orthonormal, ``slopes`` are those of the scores on that."""

    basis: Floats
    slopes: Floats

    @classmethod
    def of(cls, products: Floats, last: int) -> Fitted:
        """From the products of all columns, the scores last; columns that tell nothing new do not count."""
        size = np.sqrt(np.diag(products)[:-last])
        size = np.where(size > 0, size, 1.0)
        values, vectors = np.linalg.eigh(products[:-last, :-last] / np.outer(size, size))
        kept = values > _RANK * float(values.max(initial=1.0))
        basis = vectors[:, kept] / np.sqrt(values[kept]) / size[:, None]
        return cls(basis, basis.T @ products[:-last, -last:])


def fits_by_label(blocks: Blocks, known: Completion, theta: Floats, labels: Ints) -> list[list[Fitted]]:
    """For every label and every column of ``theta``, the fit of the scores."""
    products: list[list[Floats | float]] = [[0.0] * theta.shape[1] for _ in labels]
    for piece in blocks.pieces():
        columns = Columns.of(piece, known, theta)
        for label, each in zip(labels, products, strict=True):
            some = piece.labels == label
            for at in range(len(each)):
                stacked = np.hstack(columns.pick(at))[some]
                each[at] += (stacked.T * piece.weights[some]) @ stacked
    return [[Fitted.of(np.asarray(one), len(blocks.cells)) for one in each] for each in products]


class Left:
    """Running sums of what fits leave over."""

    def __init__(self, peers: int) -> None:
        self.rests: Floats = np.zeros((peers, peers))
        self.count = self.squares = 0.0

    def add(self, columns: Floats, scores: Floats, rows: Floats, fit: Fitted) -> None:
        """Add some blocks of one label."""
        coordinates = columns @ fit.basis
        rests = scores - coordinates @ fit.slopes
        left = 1.0 - rows * np.sum(coordinates**2, axis=1)
        self.rests += (rests.T * (rows * (rows - 1.0))) @ rests
        self.count += float((rows - 1.0) @ left)
        self.squares += float((rows - 1.0) ** 2 @ np.maximum(left, 0.0))

    def told(self) -> tuple[Floats, float]:
        """R, and how many blocks count in it; none where a fit leaves nothing over."""
        if self.count <= _RANK * self.squares**0.5:
            return self.rests, 0.0
        return self.rests / self.count, self.count**2 / self.squares
