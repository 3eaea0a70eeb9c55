"""Rolling up: no small cell leaves, nothing is lost, and what comes out is still a second moment."""

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from tests.property.worlds import World, finest_cell, worlds

from radocraft.errors import PolicyRefusal
from radocraft.gate._noise import Noise
from radocraft.gate._policy import Policy
from radocraft.gate._release import release
from radocraft.gate._rolling import rolled_up
from radocraft.learning._blocks import Blocks, merge_cells
from radocraft.learning._completion import complete
from radocraft.rows._craft import craft_rows
from radocraft.sums._cells import ROLLED, standardise

MIN_ROWS = st.sampled_from([1, 2, 3, 4, 5, 7, 10, 15, 50])
SETTINGS = [("VP", False), ("VP", True), ("G", False), ("G", True)]
SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize(("setting", "missing"), SETTINGS)
@given(data=st.data(), min_rows=MIN_ROWS)
def test_no_released_cell_stands_on_few_rows_and_nothing_is_lost(setting, missing, data, min_rows):
    world = data.draw(worlds(setting, missing, rows=(4, 60)))
    for at, part in enumerate(world.parts(min_rows)):
        exact, cells = standardise(world.tally(at), world.contract), part.cells(world.contract)
        hidden = cells.codes == ROLLED
        for sign in (-1, 1):
            mine, all_of_it = cells.labels == sign, exact.labels == sign
            total = exact.rows[all_of_it].sum()
            assert cells.rows[mine].sum() == total
            assert cells.rows[mine].min() >= min(min_rows, total)
            assert total >= min_rows or hidden[mine].all()
            np.testing.assert_array_equal(cells.present[mine].sum(axis=0), exact.present[all_of_it].sum(axis=0))
            np.testing.assert_allclose(cells.sums[mine].sum(axis=0), exact.sums[all_of_it].sum(axis=0), atol=1e-10)
        moved = np.bincount(finest_cell(cells, exact.codes, exact.labels), exact.rows, len(cells.rows))
        np.testing.assert_array_equal(moved, cells.rows)
        size = np.abs(exact.by_label).max()
        np.testing.assert_allclose(cells.by_label, exact.by_label, rtol=1e-12, atol=1e-12 * size)
        assert part.metadata["rows"] == exact.total
        whole = {(*codes, label) for codes, label in zip(cells.codes.tolist(), cells.labels.tolist(), strict=True)}
        left_alone = [
            (*codes, label) in whole for codes, label in zip(exact.codes.tolist(), exact.labels.tolist(), strict=True)
        ]
        assert part.metadata["policy"]["rolled_up"] == len(left_alone) - sum(left_alone)
        assert (np.diff(hidden.astype(int), axis=1) >= 0).all(), "a code stands after an any"


@given(world=worlds(rows=(4, 60), missing=True), min_rows=st.integers(2, 9))
def test_a_large_block_leaves_as_it_is_unless_what_is_left_over_needs_it(world, min_rows):
    exact, cells = standardise(world.tally(0), world.contract), world.parts(min_rows)[0].cells(world.contract)
    shown = {(*codes, label) for codes, label in zip(cells.codes.tolist(), cells.labels.tolist(), strict=True)}
    left_over = {label for *codes, label in shown if codes and all(code == ROLLED for code in codes)}
    for codes, label, rows in zip(exact.codes.tolist(), exact.labels.tolist(), exact.rows, strict=True):
        assert rows < min_rows or (*codes, label) in shown or label in left_over


@given(data=st.data(), seed=SEEDS, least=st.sampled_from([1.0, 5.0, 20.0]))
def test_noisy_counts_below_zero_are_rolled_up_like_others(data, seed, least):
    """Every group counts as much as it must, by its number of blocks, or is all of its label."""
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    rng = np.random.default_rng(seed)
    codes = np.array(np.unravel_index(np.arange(2 * np.prod(sizes)), (*sizes, 2))).T
    codes, labels = codes[:, :-1], np.array([-1, 1])[codes[:, -1]]
    counts = rng.normal(5.0, 10.0, len(labels))
    needed = np.maximum(least, 2.0 * np.arange(len(labels) + 1) ** 0.5)
    out = rolled_up(codes, labels, counts, needed)
    np.testing.assert_array_equal(np.where(out == ROLLED, codes, out), codes)
    assert (np.diff((out == ROLLED).astype(int), axis=1) >= 0).all()
    for group in np.unique(np.column_stack([out, labels]), axis=0):
        mine = (out == group[:-1]).all(axis=1) & (labels == group[-1])
        assert counts[mine].sum() >= needed[mine.sum()] or mine.sum() == (labels == group[-1]).sum()


@pytest.mark.parametrize(("setting", "missing"), SETTINGS)
@given(data=st.data(), min_rows=MIN_ROWS)
def test_the_completed_second_moment_is_positive_semi_definite_at_every_level(setting, missing, data, min_rows):
    world = data.draw(worlds(setting, missing, rows=(4, 60)))
    for blocks in (world.blocks(min_rows), world.gated(min_rows)):
        assert_semi_definite(blocks)


@given(world=worlds(missing=True, rows=(60, 200)), noise=st.sampled_from([0.1, 0.5, 2.0]), seed=SEEDS)
def test_it_is_also_under_noise(world, noise, seed):
    assert_semi_definite(noisy(world, Policy(5, noise=noise), seed))


def noisy(world: World, policy: Policy, seed: int) -> Blocks:
    """The peers' blocks through the usual gate, with noise that can be repeated."""
    cells = []
    for at, (peer, rows) in enumerate(zip(world.peers, world.held, strict=True)):
        drawn = Noise.seeded(seed, peer)
        tally = craft_rows(
            world.contract,
            peer,
            world.tally(at).columns,
            codes=world.codes[rows],
            labels=world.labels[rows],
            values=world.values[at][rows],
            bounds=policy.bounds,
            noise=drawn,
        )
        try:
            cells.append(release(tally, world.contract, policy, drawn).cells)
        except PolicyRefusal:
            reject()
    return merge_cells(tuple(cells), world.contract)


def assert_semi_definite(blocks: Blocks) -> None:
    known = complete(blocks)
    for gram in (known.expected(), known.explained, known.between, *known.unexplained):
        values = np.linalg.eigvalsh(gram)
        assert values.min() >= -1e-12 * max(values.max(), 1.0)
