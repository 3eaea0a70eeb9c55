"""The paper's learner: block rados, the closed form, and cross-validation over rados."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.worlds import World, agree, worlds

from radocraft.learning._drl import (
    GAMMAS,
    RadoChoices,
    Rados,
    block_rados,
    cross_validate,
    fit_drl,
    in_folds,
    weighted,
)
from radocraft.learning._fit import Layout
from radocraft.learning._losses import m_loss


@given(world=worlds("G", rows=(8, 40)), min_rows=st.integers(1, 4))
def test_block_rados_are_the_papers_equation_3(world, min_rows):
    blocks = world.blocks(min_rows)
    widths = [len(cells.columns) for cells in blocks.cells]
    rados = block_rados(blocks)
    for at in range(len(blocks)):
        counters = [n for n, width in zip(blocks.rows[:, at], widths, strict=True) for _ in range(width)]
        u = sum(counters) / sum(widths)
        assert blocks.weights[at] == pytest.approx(u, rel=1e-12)
        pieces = [[u] if world.contract.intercept else [], u * blocks.shared_means[at]]
        pieces += [blocks.sums(peer)[at] for peer in range(len(widths))]
        np.testing.assert_allclose(rados[:, at], blocks.labels[at] * np.concatenate(pieces), atol=1e-9)


def scores_by_hand(rados: np.ndarray, layout: Layout, seed: int) -> list[float]:
    """Each fold's closed form and M-loss written out, fold by fold."""
    count = rados.shape[1]
    order = np.random.default_rng(seed).permutation(count)
    folds = np.array_split(order, min(10, count))
    scores = []
    for gamma in GAMMAS:
        penalty = np.diag([gamma if at >= layout.shared.stop else 1.0 for at in range(layout.size)])
        losses = []
        for fold in folds:
            train = rados[:, [column for column in range(count) if column not in fold]]
            theta = np.linalg.solve(train @ train.T + train.shape[1] * penalty, train.sum(axis=1))
            returns = [theta @ rados[:, column] for column in fold]
            spread = sum((value - sum(returns) / len(fold)) ** 2 for value in returns) / len(fold)
            losses.append(-(sum(returns) / len(fold) - spread) + len(fold) / 4 * theta @ penalty @ theta)
        scores.append(sum(losses) / len(losses))
    return scores


@given(world=worlds(rows=(8, 40), shared=(1, 3)), seed=st.integers(0, 5))
def test_cross_validation_over_rados_equals_its_definition(world, seed):
    blocks = world.blocks()
    layout, rados = Layout.of(blocks), block_rados(blocks)
    tuning = cross_validate(in_folds(blocks, seed), layout.private_mask)
    np.testing.assert_allclose(tuning.scores, scores_by_hand(rados, layout, seed), rtol=1e-6)
    assert tuning.chosen == GAMMAS[int(np.argmin(tuning.scores))]


@given(world=worlds(rows=(8, 30)))
def test_regularisation_is_1_on_shared_and_gamma_on_private_columns(world):
    layout = Layout.of(world.blocks())
    diagonal = np.diag(weighted(layout.private_mask, 100.0))
    private = np.zeros(layout.size, dtype=bool)
    for where in layout.private:
        private[where] = True
    np.testing.assert_array_equal(diagonal, np.where(private, 100.0, 1.0))


@given(world=worlds(rows=(6, 9), shared=(1, 2)), gamma=st.sampled_from(GAMMAS))
def test_loss_of_sums_is_the_m_loss_over_all_subsets(world, gamma):
    blocks = world.blocks()
    rados, penalty = block_rados(blocks), weighted(Layout.of(blocks).private_mask, gamma)
    theta = Rados.of(rados).minimiser(penalty)
    subsets = [
        sum(some, np.zeros(len(theta))) for count in range(rados.shape[1] + 1) for some in combinations(rados.T, count)
    ]
    expected = m_loss(np.array(subsets), theta, np.zeros_like(penalty), 0)
    assert Rados.of(rados).loss_of_sums(theta) == pytest.approx(expected, rel=1e-8, abs=1e-8)


@given(world=worlds(rows=(8, 40), shared=(1, 3)))
def test_gamma_scale_is_columns_rows_or_rows_by_mean_block(world):
    blocks = world.blocks()
    rados, rows, count = Rados.of(block_rados(blocks)), blocks.counters.sum(), len(blocks)
    for scale, factor in (("columns", count), ("rows", rows), ("mean-block", rows**2 / count)):
        theta = np.linalg.solve(rados.gram + factor * np.eye(len(rados.sum)), rados.sum)
        fit = fit_drl(blocks, "identity", choices=RadoChoices(gamma_scale=scale))
        np.testing.assert_allclose(fit.theta, theta, rtol=1e-6, atol=1e-9)


def test_both_ways_to_regularise(two_labels_only):
    tuned, plain = fit_drl(two_labels_only), fit_drl(two_labels_only, "identity")
    assert tuned.tuning is not None
    assert plain.tuning is None
    assert (tuned.method, plain.settings) == ("drl", {"regularisation": "identity"})


@pytest.fixture
def two_labels_only():
    """Blocks by label alone: the fewest there can be."""
    rng = np.random.default_rng(0)
    labels = np.array([-1, 1, 1, -1, 1])
    return World(
        agree([1, 2], []),
        np.empty((5, 0), dtype=np.int64),
        labels,
        (rng.normal(size=(5, 1)), rng.normal(size=(5, 2))),
        (np.arange(5), np.arange(5)),
    ).blocks()
