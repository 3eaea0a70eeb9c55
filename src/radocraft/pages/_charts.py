"""Charts as SVG, drawn here in full: they need no script, print as they are, and take their colours from the page.

Each stands in a figure with a caption, and its numbers stand in a table that
opens below it. A script adds only what the pointer is over (``data-tip``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from xml.etree.ElementTree import Element

from radocraft.pages._markup import Child, tag
from radocraft.pages._numbers import plain

WIDTH, HEIGHT = 420.0, 270.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 14.0, 12.0, 44.0
_FEW = 3
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def percent(value: float) -> str:
    """A share as whole percents, or with a decimal where it needs one."""
    number = round(100 * value, 1)
    return f"{number:.0f}%" if number == round(number) else f"{number:.1f}%"


@dataclass(frozen=True)
class Axis:
    """A range of values and the ticks on it; on a log axis values are shown by their powers of ten."""

    title: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    @classmethod
    def over(cls, title: str, values: Sequence[float], show: Callable[[float], str] = plain) -> Axis:
        """A linear axis around some values, with round ticks."""
        low, high = min(values), max(values)
        high = high if high > low else low + (abs(low) or 1.0)
        rough = (high - low) / 4
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * step for step in _STEPS if power * step >= rough * 0.999)
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        ticks = [step_number * step for step_number in range(first, last + 1)]
        return cls(title, ticks[0], ticks[-1], tuple((tick, show(tick)) for tick in ticks))

    @classmethod
    def counts(cls, title: str, values: Sequence[float]) -> Axis:
        """From 0, with whole numbers as ticks."""
        high = max(*values, 1.0)
        power = 10.0 ** max(math.floor(math.log10(high / 4)), 0)
        step = next(power * step for step in (1.0, 2.0, 5.0, 10.0) if power * step >= 0.999 * high / 4)
        ticks = [number * step for number in range(math.ceil(high / step - 1e-9) + 1)]
        return cls(title, 0.0, ticks[-1], tuple((tick, f"{tick:,.0f}") for tick in ticks))

    @classmethod
    def share(cls, title: str) -> Axis:
        """From 0% to 100%."""
        return cls(title, 0.0, 1.0, tuple((quarter / 4, percent(quarter / 4)) for quarter in range(5)))

    @classmethod
    def powers(cls, title: str, values: Sequence[float]) -> Axis:
        """A logarithmic axis around some positive values, which says that it is one."""
        low, high = min(values), max(*values, 1.5 * min(values))
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        if last - first <= 2:
            fine = [times * 10.0**power for power in range(first, last + 1) for times in (1, 2, 5)]
            ticks = [(value, plain(value)) for value in fine]
        else:
            ticks = [(10.0**power, _power(power)) for power in range(first, last + 1, math.ceil((last - first) / 6))]
        inside = [tick for tick in ticks if low <= tick[0] <= high]
        if len(inside) < _FEW:  # the range is narrow: round steps, as on a linear axis
            inside = [tick for tick in cls.over(title, (low, high)).ticks if low <= tick[0] <= high]
        return cls(f"{title} (logarithmic)", low, high, tuple(inside), log=True)

    def place(self, value: float) -> float:
        """Where a value stands, 0 at the low end and 1 at the high one."""
        low, high = (math.log10(self.low), math.log10(self.high)) if self.log else (self.low, self.high)
        return ((math.log10(value) if self.log else value) - low) / (high - low)


@dataclass(frozen=True)
class Polyline:
    """A line through points; ``tips`` say what each is, ``dots`` shows them."""

    points: tuple[tuple[float, float], ...]
    kind: str = "main"
    dots: bool = False
    tips: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Plot:
    """A frame with two axes, in which points have places."""

    x: Axis
    y: Axis

    def at(self, point: tuple[float, float]) -> tuple[float, float]:
        """Where a point stands in the drawing."""
        across = LEFT + self.x.place(point[0]) * (WIDTH - LEFT - RIGHT)
        return across, HEIGHT - BOTTOM - self.y.place(point[1]) * (HEIGHT - TOP - BOTTOM)

    def frame(self) -> list[Element]:
        """Grid, ticks and titles."""
        foot, end = HEIGHT - BOTTOM, WIDTH - RIGHT
        out = []
        for value, text in self.y.ticks:
            _, y = self.at((self.x.low, value))
            out.append(tag("line", x1=LEFT, x2=end, y1=y, y2=y, class_="grid"))
            out.append(tag("text", text, x=LEFT - 8, y=y + 4, text_anchor="end"))
        for value, text in self.x.ticks:
            x, _ = self.at((value, self.y.low))
            out.append(tag("line", x1=x, x2=x, y1=foot, y2=foot + 4, class_="axis"))
            out.append(tag("text", text, x=x, y=foot + 18, text_anchor="middle"))
        out.append(tag("line", x1=LEFT, x2=end, y1=foot, y2=foot, class_="axis"))
        out.append(tag("text", self.x.title, x=(LEFT + end) / 2, y=HEIGHT - 6, text_anchor="middle", class_="title"))
        return out

    def line(self, line: Polyline) -> Element:
        """A line, its dots, and a strip for each point that shows its tip."""
        places = [self.at(point) for point in line.points]
        path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        dots = [tag("circle", cx=x, cy=y, r=3.5, class_="dot") for x, y in places] if line.dots else []
        return tag("g", tag("path", d=path, class_="line"), dots, self._strips(places, line.tips), class_=line.kind)

    def _strips(self, places: list[tuple[float, float]], tips: tuple[str, ...]) -> list[Element]:
        if not tips:
            return []
        borders = [LEFT, *((a[0] + b[0]) / 2 for a, b in pairwise(places)), WIDTH - RIGHT]
        return [
            tag(
                "g",
                tag("rect", x=low, y=TOP, width=max(high - low, 0.1), height=HEIGHT - TOP - BOTTOM),
                tag("circle", cx=x, cy=y, r=4.5),
                class_="strip",
                data_tip=tip,
            )
            for (x, y), low, high, tip in zip(places, borders, borders[1:], tips, strict=False)
        ]


def drawing(label: str, children: Sequence[Child]) -> Element:
    """An SVG of the usual size; ``label`` says it to those who do not see it."""
    return tag("svg", children, viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", role="img", aria_label=label, class_="chart")


def line_chart(label: str, x: Axis, y: Axis, lines: Sequence[Polyline]) -> Element:
    """Lines over two axes, the last on top."""
    plot = Plot(x, y)
    return drawing(label, [*plot.frame(), *(plot.line(line) for line in lines)])


def histogram(label: str, x: Axis, y: Axis, bars: Sequence[tuple[float, float, float, str]]) -> Element:
    """Bars from a low to a high value, so tall, each with its tip."""
    plot = Plot(x, y)
    drawn = []
    for low, high, tall, tip in bars:
        (left, top), (right, foot) = plot.at((low, tall)), plot.at((high, y.low))
        wide = max(right - left - 1.5, 1.0)
        drawn.append(
            tag("rect", x=left + 0.75, y=top, width=wide, height=foot - top, rx=1.5, class_="bar", data_tip=tip)
        )
    return drawing(label, [*plot.frame(), *drawn])


def _power(exponent: int) -> str:
    if -3 <= exponent <= 5:
        return f"{10.0**exponent:,.{max(-exponent, 0)}f}"
    raised = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{raised}"
