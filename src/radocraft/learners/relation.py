"""How much caution is due: what block sums tell of the relation between peers' columns.

Caution rho takes the peers' scores to be correlated by rho inside blocks. When all
peers see the same people, block sums tell something about it: those who happen to be
in a block move its mean at every peer at once. With ``v_j`` the variance of peer j's
score inside blocks and ``c_jl`` the covariance of two peers', a block of ``n_b`` rows has

    mean of j = what signature and label make of it + e_jb,
    n_b E[e_jb^2] = v_j,   n_b E[e_jb e_lb] = c_jl.

The first term is fitted, label by label, linearly in the shared columns, and in the
square of the label's own fit by them: the more the signature tells of the label, the less
a label tells of the columns. What is left over has, for ``f`` blocks more than the fit has
parameters,

    R_jl = 1/f sum_b n_b rest_jb rest_lb = c_jl + d_jl,

``d`` what the fit misses. Known are ``v_j = theta_j^T V_j theta_j / (M - B)``, so
``d_jj = R_jj - v_j``, and ``|d_jl| <= (d_jj d_ll)^(1/2)``, whatever the fit misses. Hence,
but for chance,

    rho <= sum_{j != l} [R_jl + (d_jj d_ll)^(1/2)] / sum_{j != l} (v_j v_l)^(1/2).

Chance is allowed three standard deviations of normal scores. Where R_jj is less than
v_j by more than that, sums are not what they seem (a gate may hold some back), and tell
nothing. The bound is of use where blocks are many and the fit is good. It says nothing about peers who see different
people, and is not taken where their numbers of rows differ in any block.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from radocraft.arrays import Floats
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
    found = zip(columns.T, left_over(blocks, known, columns), strict=True)
    return max(
        _largest(moved, freedom, known.hidden(one) / inside**0.5) if min(freedom, inside) > 0 else 1.0
        for one, (moved, freedom) in found
    )


def _largest(moved: Floats, freedom: int, deviations: Floats) -> float:
    worst, others = np.outer(deviations, deviations), ~np.eye(len(deviations), dtype=bool)
    if not worst[others].sum() > 0:
        return 1.0
    chance = _DEVIATIONS * (2.0 / freedom) ** 0.5
    missed = np.diag(moved) - (1.0 - chance) * deviations**2
    if missed.min() < 0.0:
        return 1.0
    missed = missed**0.5
    slack = chance * float(np.sum(worst[others] ** 2)) ** 0.5
    return float(((moved + np.outer(missed, missed))[others].sum() + slack) / worst[others].sum())


def left_over(blocks: Blocks, known: Completion, theta: Floats) -> Iterator[tuple[Floats, int]]:
    """For every column of ``theta``, R of the peers' scores, and f."""
    by_label, peers, count = products_by_label(blocks, known, theta), len(blocks.cells), theta.shape[1]
    targets = known.r.size // len(known.r)
    carriers = len(by_label[0]) - targets - peers * count
    for at in range(count):
        own = carriers + targets + at + count * np.arange(peers)
        pick = np.concatenate([np.arange(carriers), [carriers + at % targets], own])
        rests, ranks = zip(*(fitted(products[np.ix_(pick, pick)], peers) for products in by_label), strict=True)
        freedom = len(blocks) - sum(ranks)
        yield np.sum(rests, axis=0) / max(freedom, 1), freedom


def products_by_label(blocks: Blocks, known: Completion, theta: Floats) -> list[Floats]:
    """Products of block means, label by label: 1, shared columns, squares of the label's fits, every peer's scores."""
    labels, shared = np.unique(blocks.labels), slice(0, known.layout.shared.stop)
    slopes = pseudo_inverse(known.between[shared, shared]) @ known.r.reshape(len(known.r), -1)[shared]
    out: list[Floats | float] = [0.0] * len(labels)
    for piece in blocks.pieces():
        means = coordinates(piece, known.layout)
        scores = [means[:, where] @ theta[where] for where in known.layout.private]
        told = (means[:, shared] @ slopes) ** 2
        columns = np.hstack([np.ones((len(piece), 1)), piece.shared_means, told, *scores])
        for at, label in enumerate(labels):
            some = piece.labels == label
            out[at] += (columns[some].T * piece.weights[some]) @ columns[some]
    return [np.asarray(products) for products in out]


def fitted(products: Floats, last: int) -> tuple[Floats, int]:
    """What is left of the products of the last columns when the others are fitted, and the rank of these."""
    size = np.sqrt(np.diag(products)[:-last])
    size = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(products[:-last, :-last] / np.outer(size, size))
    kept = values > _RANK * float(values.max(initial=1.0))
    slopes = (vectors[:, kept] / np.sqrt(values[kept])).T @ (products[:-last, -last:] / size[:, None])
    return products[-last:, -last:] - slopes.T @ slopes, int(kept.sum())
