"""What the blocks tell about the second moments, against the rows themselves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.worlds import World, worlds

from radocraft import Policy, craft, example_peers, release
from radocraft.gate._noise import Noise
from radocraft.learning._blocks import merge_cells
from radocraft.learning._completion import complete, lifted, within_scatter


def block_means(world: World, blocks, at: int) -> tuple[np.ndarray, np.ndarray]:
    """Of one peer's rows: (shared, private) columns, and the mean of its block in each row."""
    rows = world.held[at]
    columns = np.hstack([world.contract.encode_shared(world.codes[rows]), world.private(at)[rows]])
    keys = np.column_stack([world.codes[rows], world.labels[rows]])
    means = np.empty_like(columns)
    for key in np.unique(keys, axis=0):
        inside = (keys == key).all(axis=1)
        means[inside] = columns[inside].mean(axis=0)
    return columns, means


@pytest.mark.parametrize("setting", ["VP", "G"])
@given(data=st.data())
def test_the_second_moment_is_between_plus_within_as_the_rows_have_them(setting, data):
    """G = sum_b u_b mu_b mu_b^T + within, W_j = (M / N_j) (Q_j - sum_b n_jb mu_jb mu_jb^T), in full blocks."""
    world = data.draw(worlds(setting, missing=True, rows=(6, 40)))
    blocks = world.blocks()
    known = complete(blocks)
    constant = np.ones((len(blocks), int(world.contract.intercept)))
    encoded = world.contract.encode_shared(blocks.codes)
    means = np.hstack([constant, encoded, *(blocks.means(at) for at in range(len(blocks.cells)))])
    weights = blocks.weights
    gram = sum(u * np.outer(mean, mean) for u, mean in zip(weights, means, strict=True))
    for at, private in enumerate(known.layout.private):
        columns, centres = block_means(world, blocks, at)
        rest = (columns - centres)[:, -(private.stop - private.start) :]
        gram[private, private] += weights.sum() / len(world.held[at]) * rest.T @ rest
    size = np.abs(gram).max()
    np.testing.assert_allclose(known.expected(), gram, rtol=1e-8, atol=1e-9 * size)
    r = sum(u * label * mean for u, label, mean in zip(weights, blocks.labels, means, strict=True))
    np.testing.assert_allclose(known.r, r, rtol=1e-9, atol=1e-9 * size)
    assert known.total == pytest.approx(weights.sum(), rel=1e-12)


@given(world=worlds("G", rows=(20, 60), shared=(1, 2)))
def test_labels_only_blocks_split_each_column_into_what_shared_ones_explain_and_the_rest(world):
    """V_j is the residual scatter of a regression on the shared columns, both centred by label."""
    known = complete(world.blocks(1000))
    width = len(world.contract.shared_columns)
    for at, unexplained in enumerate(known.unexplained):
        rows = world.held[at]
        columns = np.hstack([world.contract.encode_shared(world.codes[rows]), world.private(at)[rows]])
        for sign in (-1, 1):
            inside = world.labels[rows] == sign
            columns[inside] -= columns[inside].mean(axis=0)
        shared, private = columns[:, :width], columns[:, width:]
        rest = private - shared @ np.linalg.lstsq(shared, private, rcond=1e-10)[0]
        expected = known.total / len(rows) * rest.T @ rest
        np.testing.assert_allclose(unexplained, expected, atol=1e-8 * max(np.abs(expected).max(), 1.0))


def test_a_direction_is_never_taken_to_be_known_better_than_the_worst_one():
    vectors = np.linalg.qr(np.random.default_rng(3).normal(size=(4, 4)))[0]
    given = (vectors * [-0.5, 0.1, 0.7, 2.0]) @ vectors.T
    np.testing.assert_allclose(np.linalg.eigvalsh(lifted(given)), [0.5, 0.5, 0.7, 2.0], atol=1e-12)
    sound = (vectors * [0.0, 0.1, 0.7, 2.0]) @ vectors.T
    np.testing.assert_allclose(lifted(sound), sound, atol=1e-12)


def test_a_direction_that_hardly_varies_gets_no_slope_from_noise():
    """A code that one hidden row has or lacks, whose products carry the noise of a cell, against one of 500 rows."""
    scatter = np.array([[1000.0, 400.0, 9.0], [400.0, 500.0, 0.0], [9.0, 0.0, 1.0]])
    found = np.arange(3), scatter, scatter
    for noise, slopes in ((0.0, [0.8, 9.0]), (9.0, [0.8, 9.0 / 82.0])):
        told, rest, shared = within_scatter(found, np.array([0]), noise)
        np.testing.assert_allclose(told[:, 0], slopes, rtol=1e-3)
        assert shared.tolist() == [1, 2]
        assert rest[0, 0] > 0.0


@pytest.mark.parametrize("seed", [3, 21, 30, 38])
def test_codes_that_nobody_has_do_not_blow_up_what_is_explained(seed):
    """They stay together in a cell of about one row, whose sums are noise, or with the rows of another cell."""
    contract, tables = example_peers(rows=10_000)
    cells, exact = [], []
    for peer, table in tables.items():
        noise = Noise.seeded(seed, peer)
        cells.append(release(craft(table, contract, peer, noise=noise), contract, noise=noise).cells)
        exact.append(release(craft(table, contract, peer, bounds=None), contract, Policy.exact()).cells)
    noisy, true = (np.linalg.eigvalsh(known.explained / known.total).max() for known in map(completed, (cells, exact)))
    assert noisy < 1.5 * true


def completed(cells):
    return complete(merge_cells(tuple(cells), example_peers(rows=10)[0]))
