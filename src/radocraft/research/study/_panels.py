"""Panels: how one set of axes is drawn, in the colours of `pages`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from radocraft.arrays import Floats
from radocraft.pages import GREY, LIGHT
from radocraft.research.study._cell import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

INK, RULE = LIGHT.ink, LIGHT.line
_DARK = 0.6


def grid_of(records: Sequence[Record], measure: str, peers: Sequence[int], shared: Sequence[int]) -> Floats:
    """The mean of a measure for each pair of p and dim(J); NaN where there is no cell."""
    values = np.full((len(shared), len(peers)), np.nan)
    for row, j in enumerate(shared):
        for column, p in enumerate(peers):
            here = [record[measure] for record in records if (record["peers"], record["shared"]) == (p, j)]
            if here:
                values[row, column] = float(np.mean(here))
    return values


@dataclass(frozen=True)
class Frame:
    """What the panels of a page have in common: values of p and dim(J), and the largest delta shown."""

    peers: list[int]
    shared: list[int]
    limit: float

    @classmethod
    def around(cls, records: Sequence[Record]) -> Frame:
        """The frame that holds all of these records."""
        largest = max(abs(record["delta"]) for record in records)
        return cls(
            sorted({record["peers"] for record in records}),
            sorted({record["shared"] for record in records}),
            min(max(largest, 0.02), 0.25),
        )


def surface(axes: Axes, records: Sequence[Record], measure: str, frame: Frame) -> QuadMesh:
    """A measure over (p, dim J): delta in points with the line delta = 0, or q from 0 to 1."""
    peers, shared = frame.peers, frame.shared
    values = grid_of(records, measure, peers, shared)
    is_delta = measure == "delta"
    shown = 100 * values if is_delta else values
    low, high = (-100 * frame.limit, 100 * frame.limit) if is_delta else (0.0, 1.0)
    mesh = axes.pcolormesh(
        np.arange(len(peers) + 1),
        np.arange(len(shared) + 1),
        shown,
        cmap="RdBu_r" if is_delta else "cividis",
        vmin=low,
        vmax=high,
        edgecolors="white",
        linewidth=0.8,
    )
    for (row, column), value in np.ndenumerate(shown):
        if np.isfinite(value):
            strength = abs(value) / high if is_delta else 1.0 - value
            text = f"{value:+.1f}".replace("-", "\N{MINUS SIGN}") if is_delta else f"{value:.1f}"
            colour = "white" if strength > _DARK else INK
            axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=7, color=colour)
    if is_delta:
        _zero_line(axes, values)
    axes.set_xticks(np.arange(len(peers)) + 0.5, [str(p) for p in peers])
    axes.set_yticks(np.arange(len(shared)) + 0.5, [str(j) for j in shared])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return mesh


def _zero_line(axes: Axes, values: Floats) -> None:
    """The border between cells where every peer is beaten and cells where not."""
    side = np.where(np.isfinite(values), np.where(values < 0, -1.0, 1.0), np.nan)
    segments = [[(c + 1, r), (c + 1, r + 1)] for r, c in np.argwhere(side[:, 1:] * side[:, :-1] < 0)]
    segments += [[(c, r + 1), (c + 1, r + 1)] for r, c in np.argwhere(side[1:] * side[:-1] < 0)]
    for (x0, y0), (x1, y1) in segments:
        axes.plot([x0, x1], [y0, y1], color=INK, linewidth=2.0, solid_capstyle="round")


def diagonal(axes: Axes, x: Sequence[float], y: Sequence[float]) -> None:
    """Equal axes around all points, with the line on which both are equal."""
    low, high = min(*x, *y), max(*x, *y)
    margin = 0.06 * (high - low) + 0.2
    span = (max(low - margin, 0.0), high + margin)
    axes.plot(span, span, color=GREY, linewidth=1.0, linestyle="--", zorder=1)
    axes.set_xlim(span)
    axes.set_ylim(span)
    axes.set_aspect("equal")
    tidy(axes)


def tidy(axes: Axes) -> None:
    """No box, a light grid."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(visible=True, color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
