"""Whom the model describes: the blocks' weights, and how far each peer's people are from them."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

import numpy as np

from radocraft.learning import CHANCE
from radocraft.model import Model, Seen
from radocraft.pages._bars import plain_bar
from radocraft.pages._markup import Child, tag
from radocraft.pages._numbers import listed
from radocraft.pages._page import Section, scrolling, table

PRIVATE = "noise"
_SAME = 0.005
_LABELS = 4


def people(model: Model) -> Section | None:
    """The section on the population; none for a model file of before it was kept."""
    if not model.population:
        return None
    noisy = [origin.peer for origin in model.learned_from if origin.gate and origin.gate.mode == PRIVATE]
    children: list[Child] = [tag("p", _words(model.population, noisy), class_="lead")]
    cards = [_shares(model), _tests(model)]
    shape = "people" if len(_shown(model)) > 1 else "pair people"
    children.append(tag("div", [card for card in cards if card is not None], class_=shape))
    return Section("people", "Whom it describes", children)


def _words(population: tuple[Seen, ...], noisy: list[str]) -> str:
    counting = [seen for seen in population if seen.counts > 0]
    silent = listed([seen.peer for seen in population if not seen.counts])
    lacking = f" Without the label, rows do not count in the weights: {silent}." if silent else ""
    if not noisy and all(seen.apart < _SAME for seen in counting):
        return (
            "All peers that count saw the same kind of people, block by block, and the model describes them: "
            f"each block counts with its rows.{lacking}"
        )
    shares = listed([f"{seen.peer} for {seen.counts:.0%}" for seen in counting])
    opening = (
        f"It is not known whether the peers saw the same people: {listed(noisy)} added noise to the counts."
        if noisy
        else "The peers saw different people."
    )
    return (
        f"{opening} A block counts with its rows at each of them, averaged over their columns "
        f"(the weight u): {shares} of the whole. The model describes that mixture, which is no "
        f"peer’s own population; what it says about the average there need not hold at one peer.{lacking}"
    )


def _shown(model: Model) -> tuple[str, ...]:
    """The labels whose shares are shown: one of two, or the first few."""
    names = model.contract.label.names if model.contract.label.codes != (0,) else ()
    return names[-1:] if len(names) == 2 else names[:_LABELS]


def _shares(model: Model) -> Element:
    shown = _shown(model)
    heads = ("People of", "#Count for", *(f"#{model.contract.label.column} {name}" for name in shown))
    rows: list[list[Child]] = [
        [
            seen.peer,
            f"{seen.counts:.0%}",
            *(f"{seen.labels[name]:.1%}" if name in seen.labels else "–" for name in shown),
            f"{seen.apart:.1%}",
            plain_bar(seen.apart, 1.0, "down"),
        ]
        for seen in model.population
    ]
    rows.append(["the model", "100%", *(f"{share:.1%}" for share in _model_shares(model, shown)), "", ""])
    words = (
        "In other blocks: the share of a peer’s rows that would have to be in other blocks for its people to match the "
        "model’s. For a peer without the label: in other signatures."
    )
    grid = table((*heads, "#In other blocks", ""), rows)
    return tag(
        "div",
        tag("h3", "The population"),
        scrolling(grid, "The population"),
        tag("p", words, class_="muted small"),
        class_="card",
    )


def _model_shares(model: Model, names: tuple[str, ...]) -> Iterator[float]:
    weights, labels = np.array(model.blocks.weights), np.array(model.blocks.labels)
    code = dict(zip(model.contract.label.names, model.contract.label.codes, strict=True))
    yield from (float(weights[labels == code[name]].sum() / weights.sum()) for name in names)


def _tests(model: Model) -> Element | None:
    if not model.differences:
        return None
    rows = [
        (
            " – ".join(difference.peers),
            difference.of,
            f"{difference.statistic:,.1f} on {difference.freedom:,}",
            tag("strong", f"< {CHANCE:g}") if difference.p < CHANCE else f"{difference.p:.3f}",
        )
        for difference in model.differences
    ]
    words = (
        "A signature is the combination of a row’s codes for all shared features. "
        f"G is the statistic of the two peers’ counts, with its degrees of freedom. By chance p is below {CHANCE:g} "
        "once in a thousand times. Such peers saw different people, and no sum can repair that."
    )
    return tag(
        "div",
        tag("h3", "Do two peers differ?"),
        scrolling(table(("Peers", "In their", "#G", "#p"), rows), "Do two peers differ?"),
        tag("p", words, class_="muted small"),
        class_="card",
    )
