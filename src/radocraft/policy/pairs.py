"""Tables of two features in which small counts are hidden.

Both margins are known, so hiding the small counts alone is not enough: a count
alone in its row or column comes back by subtraction. More counts are hidden
until no small one follows from what is left (`recovery`), and the hidden ones
are filled in by what margins and shown counts say: in proportion to the margins,
fitted so that rows and columns add up.
"""

from __future__ import annotations

import numpy as np

from radocraft.arrays import Floats, Ints, Truths
from radocraft.policy.recovery import determined, indicators

_ROUNDS = 500
_CLOSE = 1e-9


def hide_small(table: Floats, limit: int, hidden: Truths | None = None) -> Truths:
    """Which counts of a table with known margins to hide, so that none above 0 and under the limit is known.

    Examples
    --------
    >>> hide_small(np.array([[3.0, 20.0, 11.0], [30.0, 12.0, 40.0], [25.0, 25.0, 25.0]]), 10).astype(int)
    array([[1, 0, 1],
           [0, 0, 0],
           [1, 0, 1]])
    """
    small = (table > 0.5) & (table < limit - 0.5)
    hidden = small.copy() if hidden is None else hidden | small
    while (known := _follows(hidden) & small).any():
        row, column = np.argwhere(known)[0].tolist()
        if not (more := _rectangle(table, hidden, (row, column))):
            return _possible(table)
        hidden[tuple(np.transpose(more))] = True
    return hidden


def hide_small_sums(rows: Floats, limit: int) -> Truths:
    """Which sums, over so many rows each, to hide where their total is known: none hidden then stands on few.

    Those over few rows, and the next larger ones until the hidden stand on enough together.

    Examples
    --------
    >>> hide_small_sums(np.array([3.0, 0.0, 40.0, 12.0]), 10).astype(int)
    array([1, 0, 0, 1])
    """
    hidden = (rows > 0.5) & (rows < limit - 0.5)
    for at in np.argsort(rows, kind="stable"):
        if 0.5 < rows[hidden].sum() < limit - 0.5:
            hidden[at] |= rows[at] > 0.5
    return hidden


def _follows(hidden: Truths) -> Truths:
    """Hidden counts that follow from the margins and the counts shown."""
    at = np.argwhere(hidden)
    out = np.zeros_like(hidden)
    if len(at):
        rows, columns = at[:, 0].astype(np.int64), at[:, 1].astype(np.int64)
        released = [indicators(_numbered(rows), len(at)), indicators(_numbered(columns), len(at))]
        out[hidden] = determined(released, [np.arange(len(at))])[0]
    return out


def _numbered(values: Ints) -> Ints:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _rectangle(table: Floats, hidden: Truths, place: tuple[int, int]) -> list[tuple[int, int]]:
    """The three counts that stand in a rectangle with a hidden one and cost least to hide; none if there is no such."""
    row, column = place
    cost = np.where(hidden, 0.0, np.where(table > 0.5, table, table.sum()))  # an empty place only if need be
    cost[~_possible(table)] = np.inf
    total = cost[[row], :] + cost[:, [column]] + cost
    total[row, :] = total[:, column] = np.inf
    other, beside = np.unravel_index(np.argmin(total), total.shape)
    if not np.isfinite(total[other, beside]):
        return []
    return [(row, int(beside)), (int(other), column), (int(other), int(beside))]


def _possible(table: Floats) -> Truths:
    """Places whose margins leave room for rows; the others are known to be empty."""
    out: Truths = np.logical_and.outer(table.sum(axis=1) > 0.5, table.sum(axis=0) > 0.5)
    return out


def filled(table: Floats, hidden: Truths, guess: Floats) -> Floats:
    """The table with hidden counts in proportion to a guess, fitted to the margins.

    Examples
    --------
    >>> counts = np.array([[3.0, 7.0], [7.0, 3.0]])
    >>> filled(counts, np.ones((2, 2), dtype=bool), np.ones((2, 2)))
    array([[5., 5.],
           [5., 5.]])
    """
    rows = np.where(hidden, table, 0.0).sum(axis=1)
    columns = np.where(hidden, table, 0.0).sum(axis=0)
    guess = np.where(hidden, np.maximum(guess, 1e-6), 0.0)
    for _ in range(_ROUNDS):
        guess *= (rows / np.maximum(guess.sum(axis=1), 1e-300))[:, None]
        guess *= columns / np.maximum(guess.sum(axis=0), 1e-300)
        if np.abs(guess.sum(axis=1) - rows).max(initial=0.0) < _CLOSE:
            break
    return np.where(hidden, guess, table)
