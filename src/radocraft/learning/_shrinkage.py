"""Shrinkage of noisy block means towards the mean of their label.

A peer's sum over a cell of n rows carries noise of variance tau^2, its mean therefore
tau^2 / n^2. Inside one label the means themselves differ by

    B = A + v / n

where A is how much cells differ in truth and v the variance of rows inside a cell,
whose means the joined table has too: only noise is to go. So with m the mean of the
label, each cell's mean becomes its best linear guess

    m + B / (B + tau^2 / n^2) (mean - m),

and A is found from how much noisy means differ more than v / n and tau^2 / n^2 explain,
each mean counting as its share of these is small.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from radocraft.arrays import Floats, Ints, add_up, number_rows
from radocraft.sums import Cells

_NOTHING = 1e-12
_UNSURE = 1.0


def shrunk(cells: Cells) -> Cells:
    """Cells whose noisy sums are drawn towards their label's mean; the same cells if there is no noise.

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=2000)
    >>> cells = rc.release(rc.craft(tables["bank"], contract, "bank"), contract).cells
    >>> bool(np.abs(shrunk(cells).sums).sum() < np.abs(cells.sums).sum())
    True
    """
    if not cells.levels.sums or not cells.columns:
        return cells
    rows = np.maximum(cells.rows, 1).astype(np.float64)[:, None]
    means, noise = cells.sums / rows, (cells.levels.sums / rows) ** 2
    label = number_rows(cells.labels[:, None])
    between, inside = variances(cells, means, rows, noise, label)
    variance = between + inside / rows
    weight = 1.0 / np.maximum(variance + noise, _NOTHING)
    count = int(label.max()) + 1
    middle = (add_up(weight * means, label, count) / add_up(weight, label, count))[label]
    return replace(cells, sums=(middle + variance * weight * (means - middle)) * cells.rows[:, None])


def variances(cells: Cells, means: Floats, rows: Floats, noise: Floats, label: Ints) -> tuple[Floats, Floats]:
    """By column, how much cells of one label differ in truth, and rows inside a cell.

    Each cell counts by how sure its mean is (DerSimonian and Laird), so that a cell of hardly any row says nothing.
    """
    count = int(label.max()) + 1
    total = add_up(rows, label, count)
    middle = (add_up(rows * means, label, count) / total)[label]
    square = np.diag(cells.moments)[: len(cells.columns)]
    squares = np.where(noise < _UNSURE, means**2 - noise, middle**2)
    inside = np.maximum(square - (rows * squares).sum(axis=0), 0.0) / rows.sum()
    weight = 1.0 / np.maximum(noise + inside / rows, _NOTHING)
    whole = add_up(weight, label, count)
    middle = (add_up(weight * means, label, count) / whole)[label]
    apart = (weight * (means - middle) ** 2).sum(axis=0) - (len(rows) - count)
    left = (weight * (1.0 - weight / whole[label])).sum(axis=0)
    return np.maximum(apart, 0.0) / np.maximum(left, _NOTHING), inside
