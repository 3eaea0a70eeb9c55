"""Rolling up by counts, case by case; `tests/property/test_rolling_up.py` has what holds always."""

from collections.abc import Callable

import numpy as np
import pytest

from radocraft.arrays import Ints
from radocraft.gate._rolling import coarsened, rolled_up
from radocraft.sums import ROLLED

A = ROLLED
Cells = dict[tuple[int, ...], float]


def shown(counts: Cells, least: float | np.ndarray, how: Callable[..., Ints] = rolled_up) -> Cells:
    """Blocks (codes..., label) with their counts, rolled up."""
    keys = np.array([*counts], dtype=np.int64)
    needed = np.broadcast_to(np.asarray(least, dtype=np.float64), len(keys) + 1)
    codes = how(keys[:, :-1], keys[:, -1], np.array([*counts.values()]), needed)
    out: Cells = {}
    for key, rows in zip(np.column_stack([codes, keys[:, -1]]).tolist(), counts.values(), strict=True):
        out[tuple(key)] = out.get(tuple(key), 0.0) + rows
    return out


@pytest.mark.parametrize(
    ("counts", "least", "expected"),
    [
        ({(0, 0, 1): 5, (0, 1, 1): 5, (0, 0, -1): 5}, 5, {(0, 0, 1): 5, (0, 1, 1): 5, (0, 0, -1): 5}),
        ({(0, 0, 1): 5, (0, 1, 1): 2, (0, 2, 1): 3, (0, 0, -1): 5}, 5, {(0, 0, 1): 5, (0, A, 1): 5, (0, 0, -1): 5}),
        ({(0, 0, 1): 2, (0, 1, 1): 2, (1, 0, 1): 1, (0, 0, -1): 5}, 5, {(A, A, 1): 5, (0, 0, -1): 5}),
        # One row is left over at the top: the smallest cell joins it ...
        ({(0, 0, 1): 9, (1, 0, 1): 6, (2, 0, 1): 1, (0, 0, -1): 5}, 5, {(0, 0, 1): 9, (A, A, 1): 7, (0, 0, -1): 5}),
        # ... but none that lies inside another.
        (
            {(0, 0, 1): 5, (0, 1, 1): 3, (0, 2, 1): 4, (1, 0, 1): 1, (0, 0, -1): 5},
            5,
            {(0, 0, 1): 5, (A, A, 1): 8, (0, 0, -1): 5},
        ),
        # A label too small as a whole stays together; the other one does not mind.
        ({(0, 0, 1): 1, (1, 0, 1): 2, (0, 0, -1): 5}, 5, {(A, A, 1): 3, (0, 0, -1): 5}),
        # So does one that counts nothing at all, and what is left over of the other one still finds company.
        ({(0, -1): -3, (1, -1): 2, (0, 1): 9, (1, 1): 6, (2, 1): 1}, 5, {(A, -1): -1, (0, 1): 9, (A, 1): 7}),
        # The last code goes first.
        ({(0, 0, 1): 4, (1, 0, 1): 4, (0, 1, 1): 4, (1, 1, 1): 4}, 5, {(0, A, 1): 8, (1, A, 1): 8}),
        # Noise may count fewer rows than none.
        ({(0, 0, 1): 9, (0, 1, 1): -2, (0, 2, 1): 8}, 5, {(0, 0, 1): 9, (A, A, 1): 6}),
    ],
)
def test_small_blocks_join_their_siblings(counts: Cells, least: float, expected: Cells) -> None:
    assert shown(counts, least) == expected


def test_the_more_counts_are_added_the_more_they_must_stand_out() -> None:
    """Two noisy counts of 4 make 8, which is more than 5, but less than the noise of two asks for."""
    counts = {(0, 0, 1): 4.0, (0, 1, 1): 4.0, (1, 0, 1): 20.0}
    assert shown(counts, 5.0) == {(0, A, 1): 8.0, (1, 0, 1): 20.0}
    assert shown(counts, np.array([5.0, 5.0, 9.0, 10.0])) == {(A, A, 1): 28.0}


def test_where_sums_carry_noise_what_is_left_over_stays_alone() -> None:
    """It is mostly of signatures that nobody has; a large cell that joined it would be lost for nothing."""
    counts = {(0, 0, 1): 900.0, (0, 1, 1): 800.0, (2, 0, 1): -3.0, (2, 1, 1): 4.0}
    assert shown(counts, 10.0, coarsened) == {(0, 0, 1): 900.0, (0, 1, 1): 800.0, (A, A, 1): 1.0}
    assert shown(counts, 10.0) == {(0, 0, 1): 900.0, (A, A, 1): 801.0}


def test_blocks_keep_their_order_and_labels_do_not_mix() -> None:
    codes, labels = np.array([[1], [0], [1], [0]]), np.array([2, 1, 1, 2])
    out = rolled_up(codes, labels, np.array([9.0, 1.0, 9.0, 9.0]), np.full(5, 5.0))
    assert out.tolist() == [[1], [A], [A], [0]]
