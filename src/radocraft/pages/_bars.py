"""Bars in tables, which stay readable without them."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from radocraft.pages._markup import tag

SHADES = ("piece-0", "piece-1", "piece-2", "piece-3", "piece-4")


def signed_bar(value: float, largest: float, tip: str) -> Element:
    """A bar to the right of the middle for a positive value, to the left for a negative one."""
    wide = 50 * min(abs(value) / largest, 1.0) if largest else 0.0
    rect = tag(
        "rect",
        x=f"{50 if value >= 0 else 50 - wide:.3f}%",
        y="15%",
        width=f"{wide:.3f}%",
        height="70%",
        rx=2,
        class_="up" if value >= 0 else "down",
    )
    middle = tag("line", x1="50%", x2="50%", y1="0", y2="100%", class_="axis")
    return tag("svg", rect, middle, class_="hbar", aria_hidden="true", data_tip=tip)


def plain_bar(value: float, largest: float, kind: str = "up") -> Element:
    """A bar from the left."""
    wide = 100 * min(value / largest, 1.0) if largest else 0.0
    rect = tag("rect", x="0", y="15%", width=f"{wide:.3f}%", height="70%", rx=2, class_=kind)
    return tag("svg", rect, class_="hbar", aria_hidden="true")


def stacked_bar(pieces: Sequence[tuple[str, float]], label: str, shades: Sequence[str] = SHADES) -> Element:
    """Shares of a whole, side by side, darkest first."""
    start, rects, gap = 0.0, [], 0.4
    thick = [index for index, (_, share) in enumerate(pieces) if 100 * share > gap]
    for index, (name, share) in enumerate(pieces):
        rects.append(
            tag(
                "rect",
                x=f"{100 * start:.3f}%",
                width=f"{max(100 * share - (gap if index in thick[:-1] else 0), 0):.3f}%",
                height="100%",
                class_=shades[min(index, len(shades) - 1)],
                data_tip=f"{name}: {share:.0%}",
            )
        )
        start += share
    return tag("svg", rects, class_="stack", role="img", aria_label=label)
