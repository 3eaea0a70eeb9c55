"""Rolling up: no small cell leaves, nothing is lost, and what comes out is still a second moment."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.worlds import World, finest_cell, worlds

from radocraft.cells import ROLLED, standardise
from radocraft.errors import PolicyRefusal
from radocraft.learners.completion import complete
from radocraft.parts import Part
from radocraft.policy import Policy, release

MIN_ROWS = st.sampled_from([1, 2, 3, 4, 5, 7, 10, 15, 50])
SETTINGS = [("VP", False), ("VP", True), ("G", False), ("G", True)]


def released(world: World, at: int, min_rows: int):
    """The peer's part as its reader sees it, or None if the gate keeps it back."""
    try:
        return Part.seal(release(world.tally(at), world.contract, Policy(min_rows=min_rows)))
    except PolicyRefusal:
        return None


@pytest.mark.parametrize(("setting", "missing"), SETTINGS)
@given(data=st.data(), min_rows=MIN_ROWS)
def test_no_released_cell_or_sum_stands_on_few_rows_and_nothing_is_lost(setting, missing, data, min_rows):
    world = data.draw(worlds(setting, missing, rows=(4, 60)))
    for at in range(len(world.values)):
        exact = standardise(world.tally(at), world.contract)
        few = [(exact.rows[exact.labels == sign].sum() < min_rows) for sign in (-1, 1)]
        part = released(world, at, min_rows)
        if part is None:
            totals = [exact.present[exact.labels == sign].sum(axis=0) for sign in (-1, 1)]
            narrow = exact.total < 2 * len(exact.columns)
            assert narrow or any(few) or any(((total > 0) & (total < min_rows)).any() for total in totals)
            continue
        assert not any(few)
        cells = part.cells(world.contract)
        assert cells.rows.min() >= min_rows
        assert ((cells.present == 0) | (cells.present >= min_rows)).all()
        missing = cells.rows[:, None] - cells.present
        assert ((missing == 0) | (missing >= (min_rows + 1) // 2)).all()
        told = (missing > 0).any(axis=0)
        np.testing.assert_array_equal(cells.sums[cells.present == 0], 0.0)
        held = [f"'{name}' has one value but for a few rows: taken as constant" for name in exact.columns]
        kept = [at for at, note in enumerate(held) if note not in part.metadata["notes"]]
        np.testing.assert_allclose(cells.sums[:, [at for at in range(len(held)) if at not in kept]], 0.0, atol=1e-12)
        for sign in (-1, 1):
            mine, all_of_it = cells.labels == sign, exact.labels == sign
            assert cells.rows[mine].sum() == exact.rows[all_of_it].sum()
            whole = exact.present[all_of_it].sum(axis=0)
            np.testing.assert_array_equal(cells.present[mine].sum(axis=0)[told], whole[told])
            released_sums, exact_sums = (
                sums[:, kept].sum(axis=0) for sums in (cells.sums[mine], exact.sums[all_of_it])
            )
            np.testing.assert_allclose(released_sums, exact_sums, atol=1e-10)
            hidden = cells.shared[mine & (cells.codes == ROLLED).any(axis=1)].sum(axis=0)
            assert (np.abs(hidden) <= cells.rows[mine].sum() + 1e-9).all()
        width = len(exact.columns)
        own = np.r_[kept, -1].astype(int)
        np.testing.assert_allclose(cells.moments[np.ix_(own, own)], exact.moments[np.ix_(own, own)], atol=1e-12)
        np.testing.assert_allclose(cells.moments[width:-1, -1], cells.shared.sum(axis=0), atol=1e-9)
        if not (cells.codes == ROLLED).any():
            every = np.ix_(*[np.r_[kept, width : len(cells.moments)].astype(int)] * 2)
            np.testing.assert_allclose(cells.moments[every], exact.moments[every], rtol=1e-12, atol=1e-12)
        assert part.metadata["rows"] == exact.total
        moved = np.bincount(finest_cell(cells, exact.codes, exact.labels), exact.rows, len(cells.rows))
        np.testing.assert_array_equal(moved, cells.rows)
        rolled = (cells.codes == ROLLED).any(axis=1)
        assert part.metadata["policy"]["rows_rolled_up"] == cells.rows[rolled].sum()
        assert (np.diff((cells.codes == ROLLED).astype(int), axis=1) >= 0).all(), "a code stands after an any"


@given(world=worlds(rows=(4, 60), missing=True), min_rows=st.integers(2, 9))
def test_a_block_large_enough_in_every_way_leaves_as_it_is(world, min_rows):
    exact = standardise(world.tally(0), world.contract)
    if (part := released(world, 0, min_rows)) is None:
        return
    cells = part.cells(world.contract)
    shown = {(*codes, label) for codes, label in zip(cells.codes.tolist(), cells.labels.tolist(), strict=True)}
    left_over = {label for *codes, label in shown if codes and all(code == ROLLED for code in codes)}
    for codes, label, rows, present in zip(
        exact.codes.tolist(), exact.labels.tolist(), exact.rows, exact.present, strict=True
    ):
        large = rows >= min_rows and ((present == 0) | (present >= min_rows)).all()
        assert not large or (*codes, label) in shown or label in left_over


@pytest.mark.parametrize(("setting", "missing"), SETTINGS)
@given(data=st.data(), min_rows=MIN_ROWS)
def test_the_completed_second_moment_is_positive_semi_definite_at_every_level(setting, missing, data, min_rows):
    world = data.draw(worlds(setting, missing, rows=(4, 60)))
    learned_from = [world.blocks(min_rows)]
    if all(released(world, at, min_rows) is not None for at in range(len(world.values))):
        learned_from.append(world.gated(min_rows))
    for blocks in learned_from:
        known = complete(blocks)
        for gram in (known.expected(), known.explained, known.between, *known.unexplained):
            values = np.linalg.eigvalsh(gram)
            assert values.min() >= -1e-12 * max(values.max(), 1.0)
