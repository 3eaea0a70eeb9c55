"""Rolling up: a block that is too small joins its siblings.

It gives up its last code ("any"), and so on, at the end to the label alone, so
that no rows are lost and no cell is small. A rolled-up cell must also be large
enough to say how its hidden codes are spread (enough rows for every code, were
they spread evenly); if it is not, it goes on up.
"""

from __future__ import annotations

import numpy as np

from radocraft.arrays import Ints, Truths, first_of_each, number_rows
from radocraft.cells import ROLLED
from radocraft.errors import PolicyRefusal
from radocraft.policy.limits import Limits


def rolled_up(limits: Limits, mixed_labels: bool = False) -> Ints:
    """New codes for every block, such that no group of equal codes and label breaks a limit."""
    codes = limits.cells.codes.copy()
    for level in reversed(range(codes.shape[1])):
        small = too_small(codes, limits)
        if mixed_labels:
            small |= one_label(codes, limits.cells.labels)
        codes[small, level] = ROLLED
    while (small := too_small(codes, limits)).any():
        codes = absorb(codes, limits, int(limits.cells.labels[small][0]))
    return codes


def too_small(codes: Ints, limits: Limits) -> Truths:
    """Blocks whose group, as coded now, breaks a limit."""
    group = number_rows(np.column_stack([codes, limits.cells.labels]))
    broken = limits.broken(group, np.arange(len(codes)))[group]
    return np.asarray(broken | too_thin(codes, group, limits))


def too_thin(codes: Ints, group: Ints, limits: Limits) -> Truths:
    """Blocks of a rolled-up cell, short of the label alone, with too few rows to tell its hidden codes apart."""
    rolled = codes == ROLLED
    kinds = limits.cells.codes.max(axis=0, initial=0) + 1
    needed = np.where(rolled, kinds, 1).max(axis=1, initial=1) * limits.rows
    between = rolled.any(axis=1) & ~rolled.all(axis=1)
    out: Truths = between & (np.bincount(group, limits.cells.rows)[group] < needed)
    return out


def one_label(codes: Ints, labels: Ints) -> Truths:
    """Blocks whose signature, as coded now, has rows of one label only."""
    group = number_rows(codes)
    kinds = np.unique(np.column_stack([group, labels]), axis=0)[:, 0]
    out: Truths = (np.bincount(kinds) == 1)[group]
    return out


def absorb(codes: Ints, limits: Limits, label: int) -> Ints:
    """Roll the smallest cell of a label that still has a code up to the label alone.

    Needed when what is left over at the top is itself too small to leave. A cell
    inside another cell stays: everybody can tell where a peer's signature went,
    because it is always the finest of the peer's cells that contains it.
    """
    cells = limits.cells
    coded = (cells.labels == label) & (codes != ROLLED).any(axis=1)
    if not coded.any():
        raise PolicyRefusal(
            f"At '{cells.peer}' the total of a label breaks a rule: a column, or a numeric label, has too few present "
            f"or unusual values{', or is dominated by a few rows' if limits.dominance else ''}. "
            "Leave that column out of the contract, choose other edges for the label, or give more rows."
        )
    among = np.flatnonzero(coded)
    group = number_rows(codes[among])
    shown = [tuple(cell) for cell in codes[among[first_of_each(group)]].tolist()]
    every = {*shown}
    by_size = np.argsort(np.bincount(group, cells.rows[among]), kind="stable")
    smallest = next(at for at in by_size if not every.intersection(coarser(shown[at])))
    codes = codes.copy()
    codes[among[group == smallest]] = ROLLED
    return codes


def coarser(cell: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Every cell that contains this one, but itself and the label alone."""
    known = sum(code != ROLLED for code in cell)
    return [(*cell[:level], *[ROLLED] * (len(cell) - level)) for level in range(1, known)]
