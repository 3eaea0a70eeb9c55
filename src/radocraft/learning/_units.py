"""Converting columns that several peers sum to common units.

A peer's centre and scale come from its own rows unless the contract fixes them.
Where peers sum the same thing, a numeric label above all, the learner moves them
to the mean and standard deviation over all their rows, which needs nothing but
what they released.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import hstack

from radocraft.arrays import Floats
from radocraft.sums import Cells


def same_units(cells: tuple[Cells, ...]) -> tuple[Cells, ...]:
    """Every peer's cells, with columns of the same name in the same units."""
    names = [name for peer in cells for name in peer.columns]
    agreed = {name: pooled_units(cells, name) for name in names if names.count(name) > 1}
    out = []
    for peer in cells:
        units = [agreed.get(name, unit) for name, *unit in zip(peer.columns, peer.centre, peer.scale, strict=True)]
        centre, scale = np.array(units, dtype=np.float64).reshape(-1, 2).T
        out.append(in_units(peer, centre, scale))
    return tuple(out)


def pooled_units(cells: tuple[Cells, ...], name: str) -> tuple[float, float]:
    """Mean and standard deviation of a column over the rows of all who hold it; theirs, if they agree already."""
    moments_by_peer = np.array([_moments_of(peer, peer.columns.index(name)) for peer in cells if name in peer.columns])
    rows, mean, variance, centre, scale = moments_by_peer.T
    if np.ptp(centre) == 0.0 and np.ptp(scale) == 0.0:
        return float(centre[0]), float(scale[0])
    middle = float(rows @ mean / rows.sum())
    spread = float(rows @ (variance + (mean - middle) ** 2) / rows.sum())
    return middle, spread**0.5 if spread > 0 else 1.0


def _moments_of(cells: Cells, column: int) -> tuple[float, float, float, float, float]:
    """Rows, mean and variance in raw units, centre and scale of a column."""
    mean = cells.moments[column, -1] / cells.total
    variance = max(cells.moments[column, column] / cells.total - mean**2, 0.0)
    centre, scale = cells.centre[column], cells.scale[column]
    return float(cells.total), float(centre + scale * mean), float(scale**2 * variance), float(centre), float(scale)


def in_units(cells: Cells, centre: Floats, scale: Floats) -> Cells:
    """The same cells with values as (raw - centre) / scale; a missing value stays where it was."""
    stretch, shift = cells.scale / scale, (cells.centre - centre) / scale
    if np.all(stretch == 1.0) and np.all(shift == 0.0):
        return cells
    change = np.eye(cells.by_label.shape[1])
    width = len(cells.columns)
    change[np.arange(width), np.arange(width)] = stretch
    change[:width, -1] = shift
    moved = np.flatnonzero((stretch != 1.0) | (shift != 0.0))
    sums = cells.sums.copy()
    sums[:, moved] = sums[:, moved] * stretch[moved] + np.outer(cells.rows, shift[moved])
    grown, levels = float(np.max(np.abs(stretch), initial=1.0)), cells.levels
    return replace(
        cells,
        centre=centre,
        scale=scale,
        sums=sums,
        levels=replace(levels, sums=levels.sums * grown, moments=levels.moments * grown**2),
        by_label=change @ cells.by_label @ change.T,
    )


def label_as_shared(cells: Cells, centre: float, scale: float) -> Cells:
    """Cells whose last column is the label, with the label as the last shared column instead, in these units."""
    width, size = len(cells.columns) - 1, cells.by_label.shape[1]
    stretch, shift = cells.scale[-1] / scale, (cells.centre[-1] - centre) / scale
    change = np.eye(size)
    change[width, width], change[width, -1] = stretch, shift
    order = np.r_[0:width, width + 1 : size - 1, width, size - 1]
    label = cells.sums[:, -1] * stretch + cells.rows * shift
    return replace(
        cells,
        columns=cells.columns[:-1],
        centre=cells.centre[:-1],
        scale=cells.scale[:-1],
        sums=cells.sums[:, :-1],
        present=cells.present[:, :-1],
        shared=hstack([cells.shared, label[:, None]], format="csr"),
        by_label=(change @ cells.by_label @ change.T)[:, order][:, :, order],
    )
