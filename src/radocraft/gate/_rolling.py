"""Rolling up: a block with too few rows joins its siblings, decided on noisy counts alone.

It gives up its last code ("any"), and so on, at the end to the label alone, so
that no rows are lost. What is left over at the top may itself be too small. Where sums
are exact it takes the smallest other cell of its label with it. Where they carry noise it
stays as it is: mostly it is of signatures that nobody has, and hardly any row is in it.
"""

from __future__ import annotations

import numpy as np

from radocraft.arrays import Floats, Ints, Truths, first_of_each, number_rows
from radocraft.sums import ROLLED


def rolled_up(codes: Ints, labels: Ints, counts: Floats, least: Floats) -> Ints:
    """New codes of every block, such that no group of equal codes and label counts less than it must.

    Parameters
    ----------
    codes, labels
        The blocks.
    counts
        Their noisy numbers of rows.
    least
        By number of blocks in a group (from 0), the fewest rows that stand out of their noise.

    Examples
    --------
    >>> codes, labels = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([1, 1, 1, 1])
    >>> rolled_up(codes, labels, np.array([50.0, 12.0, 8.0, 4.0]), np.full(5, 10.0))
    array([[ 0,  0],
           [ 0,  1],
           [ 1, -1],
           [ 1, -1]])
    """
    out = coarsened(codes, labels, counts, least)
    for label in np.unique(labels).tolist():
        while (too_small(out, labels, counts, least) & (labels == label)).any():
            absorbed = absorb(out, labels, counts, label)
            if absorbed is None:
                break
            out = absorbed
    return out


def coarsened(codes: Ints, labels: Ints, counts: Floats, least: Floats) -> Ints:
    """The same, but that what is left over at the top of a label may count too little."""
    out = codes.copy()
    for level in reversed(range(out.shape[1])):
        out[too_small(out, labels, counts, least), level] = ROLLED
    return out


def too_small(codes: Ints, labels: Ints, counts: Floats, least: Floats) -> Truths:
    """Blocks whose group, as coded now, counts too little."""
    group = number_rows(np.column_stack([codes, labels]))
    out: Truths = (np.bincount(group, counts) < least[np.bincount(group)])[group]
    return out


def absorb(codes: Ints, labels: Ints, counts: Floats, label: int) -> Ints | None:
    """Roll the smallest cell of a label that still has a code up to the label alone; None if there is none.

    A cell inside another cell stays: everybody can tell where a peer's signature
    went, because it is always the finest of the peer's cells that contains it.
    """
    among = np.flatnonzero((labels == label) & (codes != ROLLED).any(axis=1))
    if not len(among):
        return None
    group = number_rows(codes[among])
    shown = codes[among[first_of_each(group)]]
    outer = ~_inside(shown)
    size = np.where(outer, np.bincount(group, counts[among]), np.inf)
    out = codes.copy()
    out[among[group == int(np.argmin(size))]] = ROLLED
    return out


def _inside(cells: Ints) -> Truths:
    """Which cells lie inside another one, which knows fewer of their codes."""
    out = np.zeros(len(cells), dtype=bool)
    for level in range(1, cells.shape[1]):
        coarse = np.where(np.arange(cells.shape[1]) < level, cells, ROLLED)
        number = number_rows(np.vstack([cells, coarse]))
        known = np.zeros(int(number.max()) + 1, dtype=bool)
        known[number[: len(cells)]] = True
        out |= known[number[len(cells) :]] & (cells != coarse).any(axis=1)
    return out
