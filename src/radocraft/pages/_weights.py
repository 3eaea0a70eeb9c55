"""What the model learned: whose columns move the score, by how much, and along which curves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log10
from xml.etree.ElementTree import Element

import numpy as np

from radocraft.contract import Boolean, Categorical, Feature, Interact, Quantity, Spline, spline_columns
from radocraft.model import Coefficient, Explanation, Model, Weight
from radocraft.pages._bars import SHADES, signed_bar, stacked_bar
from radocraft.pages._charts import Axis, Polyline, line_chart
from radocraft.pages._markup import Child, breakable, tag
from radocraft.pages._numbers import each, plain, signed
from radocraft.pages._page import Section, TableCell, figure, scrolling, search, table
from radocraft.pages._quality import has_two_values, is_number

_TOP = 10
_STEPS = 61
_NOTHING = 1e-9


@dataclass(frozen=True)
class LabelScore:
    """One of the model's scores: its place, and what it speaks for; None if there is only one."""

    at: int
    name: str | None

    def of(self, weight: Weight) -> float:
        """The number of a weight for this score."""
        return each(weight)[self.at]


def scores(model: Model) -> list[LabelScore]:
    """The scores of a model: one, or one for each class."""
    if isinstance(model.intercept, float):
        return [LabelScore(0, None)]
    return [LabelScore(index, name) for index, name in enumerate(model.contract.label.names)]


def weights(model: Model, explanation: Explanation) -> Section:
    """The section."""
    curves = list(_curves(model))
    return Section(
        "weights",
        "What it learned",
        [
            tag("p", list(_who_moves(explanation)), class_="lead"),
            _shares(explanation),
            tag("p", list(_how_to_read(model))),
            tag("div", list(_cards(model)), class_="pair"),
            tag("h3", "Curves", class_="apart") if curves else None,
            tag("div", curves, class_="pair") if curves else None,
            _every(model, explanation),
        ],
    )


def _cards(model: Model) -> Iterator[Element]:
    """One for each peer, or, with several classes, one for each of them."""
    straight = [c for c in model.coefficients if not isinstance(_feature(model, c), Spline)]
    largest = max((abs(effect) for c in straight for effect in each(c.effect)), default=0.0)
    for score in scores(model):
        if score.name is not None:
            yield _card(model, straight, score, largest, f"Towards “{score.name}”")
            continue
        for peer in [*model.peers, None]:
            if any(c.peer == peer for c in model.coefficients):
                title = peer or "Shared features"
                yield _card(model, [c for c in straight if c.peer == peer], score, largest, title)


def _feature(model: Model, c: Coefficient) -> Feature | None:
    """What the contract says of a private column; None for a shared one."""
    return model.contract.peers[c.peer].features[c.feature] if c.peer else None


def _who_moves(explanation: Explanation) -> Iterator[Child]:
    shares = [peer for peer in explanation.peers if peer.share > 0]
    yield "What moves the score: "
    for index, peer in enumerate(shares):
        yield f"{_from(peer.name)} "
        yield tag("b", f"{peer.share:.0%}")
        yield "." if index == len(shares) - 1 else ", "


def _shares(explanation: Explanation) -> Element:
    pieces = [(_from(peer.name), peer.share) for peer in explanation.peers]
    legend = [
        tag("li", tag("span", class_=f"swatch {SHADES[min(index, len(SHADES) - 1)]}"), name)
        for index, (name, _) in enumerate(pieces)
    ]
    label = "; ".join(f"{name} {share:.0%}" for name, share in pieces)
    return tag("div", stacked_bar(pieces, label), tag("ul", legend, class_="legend"), class_="shares")


def _from(name: str | None) -> str:
    return "shared features" if name in (None, "shared") else str(name)


def _how_to_read(model: Model) -> Iterator[Child]:
    yield "A bar is how far a column moves the score when it goes up by one standard deviation: to the right "
    if has_two_values(model):
        negative, positive = model.contract.label.names
        yield from ("towards ", tag("b", f"“{positive}”"), ", to the left towards ", tag("b", f"“{negative}”"))
    else:
        yield "up, to the left down" if is_number(model) else "towards the class, to the left away from it"
    yield ". The weight beside it is for the column in its own units, per so many of them."


def _card(model: Model, ours: list[Coefficient], score: LabelScore, largest: float, title: str) -> Element:
    moving = [c for c in ours if abs(score.of(c.effect)) > _NOTHING * largest]
    rows = [
        (
            tag("span", breakable(c.name)),
            signed_bar(score.of(c.effect), largest, f"{c.name}: effect {signed(score.of(c.effect))}"),
            *_weight(c, score, _feature(model, c)),
        )
        for c in sorted(moving, key=lambda c: -abs(score.of(c.effect)))[:_TOP]
    ]
    features = model.contract.peers[title].features if title in model.peers else {}
    curves = sorted(name for name, feature in features.items() if isinstance(feature, Spline))
    more = [f"{len(moving) - _TOP:,} more in the table below."] if len(moving) > _TOP else []
    more += [] if moving or curves else ["No column moves the score."]
    more += [f"As curves below: {', '.join(curves)}."] if curves else []
    return tag(
        "div",
        tag("h3", title),
        table(("Column", "", "#Weight", ""), rows) if rows else None,
        tag("p", " ".join(more), class_="muted small") if more else None,
        class_="card weights",
    )


def _weight(c: Coefficient, score: LabelScore, feature: Feature | None) -> tuple[str, str]:
    """The weight for a step of the raw column that is round and about as large as its values spread."""
    raw = score.of(c.raw)
    if not isinstance(feature, Quantity):
        return signed(raw), ""
    step = 10.0 ** round(log10(c.scale)) if c.scale > 0 else 1.0
    return signed(raw * step), f"per {step:,.0f}" if step >= 1 else f"per {step:g}"


def _curves(model: Model) -> Iterator[Element]:
    for peer in model.peers:
        for name, feature in sorted(model.contract.peers[peer].features.items()):
            if isinstance(feature, Spline):
                knots = (
                    feature.knots if isinstance(feature.knots, tuple) else model.constants.get(peer, {}).get(name, ())
                )
                if len(knots) > 1:
                    yield from (_curve(model, peer, name, knots, score) for score in scores(model))


def _curve(model: Model, peer: str, name: str, knots: tuple[float, ...], score: LabelScore) -> Element:
    terms = [c for c in model.of_peer(peer) if c.feature == name]
    raw, centre = np.array([score.of(c.raw) for c in terms]), np.array([c.centre for c in terms])
    whose = f"the score of “{score.name}”" if score.name else "the score"
    margin = 0.08 * (knots[-1] - knots[0])
    at = np.linspace(knots[0] - margin, knots[-1] + margin, _STEPS)
    columns = np.zeros((_STEPS, len(terms)))
    filled = spline_columns(at, knots)
    columns[:, : filled.shape[1]] = filled
    adds = (columns - centre) @ raw
    points = tuple(zip(at.tolist(), adds.tolist(), strict=True))
    x = Axis.over(name, [knots[0] - margin, knots[-1] + margin])
    x = Axis(x.title, float(at[0]), float(at[-1]), tuple(t for t in x.ticks if at[0] <= t[0] <= at[-1]))
    y = Axis.over("", [0.0, *adds.tolist()])
    zero = Polyline(((x.low, 0.0), (x.high, 0.0)), "quiet")
    tips = tuple(f"{name} {plain(round(value, 4))}: score {signed(height)}" for value, height in points)
    chart = line_chart(f"What {name} adds to {whose}", x, y, [zero, Polyline(points, "main", tips=tips)])
    rows = [(plain(float(f"{value:.4g}")), signed(height)) for value, height in points[:: _STEPS // 10]]
    words = f"What {name} of {peer} adds to {whose}, beside its average. Pieces meet at {_knots(knots)}."
    return figure(f"{name}, “{score.name}”" if score.name else name, chart, words, table((f"#{name}", "#adds"), rows))


def _knots(knots: tuple[float, ...]) -> str:
    return ", ".join(plain(float(f"{knot:.4g}")) for knot in knots)


def _every(model: Model, explanation: Explanation) -> Element:
    several = len(scores(model)) > 1
    odds = [] if model.odds is None or several else ["#Odds ×"]
    effects = [f"#Effect on {score.name}" for score in scores(model)] if several else ["#Effect"]
    last = [] if several else ["#Weight", "Weight is for"]
    rows = [_line(model, c, bool(odds), bool(last)) for c in explanation.coefficients]
    grid = table(("Column", "From", *effects, *odds, *last), rows, sortable=True)
    grid.set("id", "columns")
    words = "Effect: weight times standard deviation."
    words += " Odds ×: by how much one standard deviation up multiplies the odds." if odds else ""
    words += "" if several else f" The constant is {signed(each(model.raw_intercept)[0])} in raw units."
    return tag(
        "details",
        tag("summary", f"All {len(rows):,} columns of the model"),
        search("columns", "Find a column"),
        scrolling(grid, "All columns of the model"),
        tag("p", words, class_="muted small"),
        class_="wide",
    )


def _line(model: Model, c: Coefficient, odds: bool, weight: bool) -> list[Child | TableCell]:
    line: list[Child | TableCell] = [
        c.name,
        _from(c.peer),
        *(TableCell(signed(effect), effect) for effect in each(c.effect)),
    ]
    if odds and model.odds is not None:
        times = exp(max(min(model.odds.single_slope * each(c.effect)[0], 50.0), -50.0))
        line.append(TableCell(f"{times:.3g}", times))
    if weight:
        raw = each(c.raw)[0]
        line += [TableCell(signed(raw), raw), _unit(c, _feature(model, c))]
    return line


def _unit(c: Coefficient, feature: Feature | None) -> str:
    if isinstance(feature, Boolean):
        return f"{c.feature} yes, against no"
    if isinstance(feature, Categorical):
        return f"{c.name}, against not"
    if isinstance(feature, Spline):
        return "a piece of the curve"
    if isinstance(feature, Interact):
        return "1 of the product"
    if c.peer is None:
        return f"{c.name}, against not" if "=" in c.name else "from the middle code to the last"
    return f"1 of {c.feature}"
