"""What left each peer, what its gate rolled up, and the resulting blocks."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from radocraft.files import size
from radocraft.model import Explanation, Model, Origin, number
from radocraft.pages._bars import plain_bar
from radocraft.pages._markup import Child, tag
from radocraft.pages._numbers import day, each, listed, plain, signed
from radocraft.pages._page import Section, TableCell, scrolling, search, table
from radocraft.pages._sizes import sizes
from radocraft.sums import ROLLED

_BYTES_OF_A_NUMBER = 8
_SHOWN = 100
_CODES = 12


def departures(model: Model) -> Section:
    """The section on what left."""
    return Section(
        "left",
        "What left each peer",
        [
            tag("p", "No row left. Each peer sent one file of sums, through its own gate:", class_="lead"),
            *([] if model.privacy is None else [tag("p", model.privacy.sentence)]),
            tag("div", [_peer(model, origin) for origin in model.learned_from], class_="pair"),
            _notes(model),
        ],
    )


def raw_size(model: Model, origin: Origin) -> int:
    """The bytes of a peer's rows as plain numbers: label, shared and private columns, eight bytes each."""
    label = int(model.contract.labelled(origin.peer))
    wide = label + len(model.contract.shared) + len(model.contract.own_columns(origin.peer))
    return origin.rows * wide * _BYTES_OF_A_NUMBER


def _peer(model: Model, origin: Origin) -> Element:
    raw = raw_size(model, origin)
    largest = max(raw, origin.bytes)
    rows = [
        ("Stayed", f"{origin.rows:,} rows", size(raw), plain_bar(raw, largest, "down")),
        ("Left", f"{origin.cells:,} cells", size(origin.bytes), plain_bar(origin.bytes, largest)),
    ]
    facts: list[tuple[str, Child]] = [
        ("Guarantee", origin.guarantee),
        ("Held back", _held(origin)),
        ("Made", day(origin.created)),
        ("Part", tag("code", origin.hash[:16])),
    ]
    return tag(
        "div",
        tag("h3", origin.peer),
        table(("", "#Holds", "#Bytes", ""), rows),
        tag("p", _compared(raw / origin.bytes), class_="muted small"),
        tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts], class_="facts"),
        class_="card origin",
    )


def _compared(ratio: float) -> str:
    if ratio < 1:
        return "The part is larger than the rows as plain numbers: sums do not shrink a small table."
    return f"The part is {plain(float(f'{ratio:.2g}'))} times smaller than the rows as plain numbers of eight bytes."


def _held(origin: Origin) -> str:
    if origin.gate is None:
        return "not said"
    if not origin.gate.rolled_up:
        return "nothing; every block was large enough"
    return f"{origin.gate.rolled_up:,} agreed blocks, too small or empty, left only as part of coarser ones"


def _notes(model: Model) -> Element | None:
    if not model.notes:
        return None
    return tag("div", tag("h3", "Notes"), tag("ul", [tag("li", note) for note in model.notes]), class_="card")


def blocks(model: Model, explanation: Explanation) -> Section:
    """The section on blocks."""
    rows = np.array(model.blocks.weights)
    names = [feature.name for feature in model.contract.shared]
    label = [] if model.contract.label.codes == (0,) else ["label"]
    same = listed([*label, *names])
    words = (
        f"{len(rows):,} blocks: rows with the same {same}. The smallest "
        f"stands for {rows.min():,.0f} rows, the median one for {np.median(rows):,.0f}, the largest for "
        f"{rows.max():,.0f}."
    )
    pair = tag(
        "div",
        sizes(rows, "block", "How many blocks hold how many rows, averaged over the peers."),
        _grouping(model),
        class_="pair",
    )
    return Section("blocks", "The blocks", [tag("p", words, class_="lead"), pair, _largest(model, explanation)])


def _grouping(model: Model) -> Element:
    shared = model.contract.shared
    rows = [
        (feature.name, ", ".join(feature.codes[:_CODES]) + (", …" if len(feature.codes) > _CODES else ""))
        for feature in shared
    ]
    rolled = int((model.block_codes == ROLLED).any(axis=1).sum())
    words = (
        f"{rolled:,} of the blocks {'holds' if rolled == 1 else 'hold'} “any” in some shared feature: "
        "a peer had rolled up what was small there."
        if rolled
        else "No block had to be coarsened."
    )
    return tag(
        "div",
        tag("h3", "Shared features"),
        tag("p", "The features that every peer holds, with the agreed codes.", class_="muted"),
        table(("Feature", "Codes"), rows),
        tag("p", words, class_="muted small"),
        class_="card",
    )


def _largest(model: Model, explanation: Explanation) -> Element:
    single = isinstance(model.intercept, float)
    names = ["shared", *model.peers] if single else []
    heads = ["#Score"] if single else [f"#Score of {name}" for name in model.contract.label.names]
    rows: list[list[Child | TableCell]] = [
        [
            ", ".join(f"{name} {code}" for name, code in block.signature.items()) or "all",
            block.label,
            TableCell(f"{block.weight:,.0f}", block.weight),
            *(TableCell(signed(part), part) for part in (number(block.contributions[name]) for name in names)),
            *(TableCell(signed(score), score) for score in each(block.score)),
        ]
        for block in explanation.blocks[:_SHOWN]
    ]
    grid = table(("Block", "Label", "#Rows", *(f"#{name}" for name in names), *heads), rows, sortable=True)
    grid.set("id", "blocks-table")
    count = (
        f"The {_SHOWN} largest blocks"
        if len(explanation.blocks) > _SHOWN
        else f"All {len(explanation.blocks):,} blocks"
    )
    return tag(
        "details",
        tag("summary", f"{count}, and what moves their scores"),
        search("blocks-table", "Find a block"),
        scrolling(grid, count),
        class_="wide",
    )
