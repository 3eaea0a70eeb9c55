"""What a data officer sees: exactly what would leave, what is held back and why, and two buttons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from radocraft.privacy.pending import Pending
from radocraft.report.bars import stacked_bar
from radocraft.report.markup import Child, tag
from radocraft.report.numbers import day, plain, size
from radocraft.report.page import Cell, Section, document, key_figures, scrolling, search, table
from radocraft.report.sizes import sizes

_NUMBERS = 60_000
_FEWEST = 200


@dataclass(frozen=True)
class Form:
    """What the page's form needs to be sent back: a secret of this page, and what was typed before."""

    secret: str
    name: str = ""
    reason: str = ""
    problem: str | None = None


def review_page(waiting: Pending, form: Form, nonce: str) -> str:
    """The page, as HTML."""
    sections = [_leaving(waiting), _holding(waiting), _cells(waiting), _decision(form)]
    foot = [tag("p", "Served by radocraft on this machine alone, from the pending file; nothing has left.")]
    return document(f"Review of {waiting.part.peer} · radocraft", _head(waiting, form), sections, foot, nonce)


def closing_page(title: str, words: str, nonce: str) -> str:
    """The last page: what came of it."""
    head = [tag("p", "Review", class_="eyebrow"), tag("h1", title), tag("p", words, class_="lead", role="status")]
    return document(f"{title} · radocraft", head, [], [tag("p", "You can close this window.")], nonce)


def _head(waiting: Pending, form: Form) -> Iterator[Child]:
    facts, metadata = waiting.facts, waiting.part.metadata
    yield tag("p", "Waits for review", class_="eyebrow")
    yield tag("h1", f"May this leave {waiting.part.peer}?")
    if form.problem:
        yield tag("p", form.problem, class_="problem", role="alert")
    yield tag(
        "p",
        f"Sums of {metadata['rows']:,} rows of “{facts['table']}”, for the contract “{metadata['contract']}”. "
        "Everything below is what the file holds; no row is in it.",
        class_="lead",
    )
    yield key_figures(
        [
            ("Rows behind it", f"{metadata['rows']:,}", f"in {waiting.part.table.num_rows:,} cells"),
            ("Smallest cell", f"{facts['smallest_cell']:,}", f"rows; the limit is {facts['limit']:,}"),
            ("Held back", f"{facts['rolled_up']['blocks']:,}", "blocks, shown only inside coarser cells"),
            ("Would leave", size(waiting.part.nbytes), f"{len(metadata['columns']):,} private columns"),
        ]
    )


def _leaving(waiting: Pending) -> Section:
    metadata, facts = waiting.part.metadata, waiting.facts
    told: list[tuple[str, Child]] = [
        ("Guarantee", metadata["policy"]["guarantee"]),
        ("Policy", metadata["policy"]["mode"]),
        ("Contract", [f"{metadata['contract']} (", tag("code", metadata["fingerprint"][:16]), ")"]),  # type: ignore[list-item]
        ("Made", f"{day(metadata['created'])} by radocraft {metadata['radocraft']}"),
        ("Also holds", "one matrix of second moments over the whole table, centre and scale of each column"),
        ("Ledger", facts["ledger"]),
        ("Hash", tag("code", metadata["hash"][:32])),
    ]
    card = tag(
        "div",
        tag("h3", "The release"),
        tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in told], class_="facts"),
        tag(
            "p", tag("a", "Download the part as it would leave", href="/part.parquet", download=True), class_="download"
        ),
        class_="card",
    )
    rows = np.asarray(waiting.part.table.column("rows").to_numpy(), dtype=np.float64)
    chart = sizes(np.maximum(rows, 1.0), "cell", "How many cells hold how many rows.")
    return Section("leaves", "What would leave", [tag("div", card, chart, class_="pair"), *_gauges(facts)])


def _gauges(facts: dict[str, Any]) -> Iterator[Element]:
    if facts["budget"]:
        before, after = facts["budget"]["before"], facts["budget"]["after"]
        shares = [("spent before", before), ("this release", after - before), ("left for life", max(1.0 - after, 0.0))]
        label = "; ".join(f"{name} {share:.0%}" for name, share in shares)
        legend = [
            tag("li", tag("span", class_=f"swatch {kind}"), f"{name} {share:.0%}")
            for (name, share), kind in zip(shares, _SHADES, strict=True)
        ]
        words = "Of the budget for the life of this table. It is spent by asking, whether or not the release leaves."
        yield tag(
            "div",
            tag("h3", "Privacy budget"),
            tag("p", words, class_="muted"),
            stacked_bar(shares, f"Budget: {label}", _SHADES),
            tag("ul", legend, class_="legend"),
            class_="card",
        )
    if facts["largest_shares"]:
        rows = [
            (name, Cell(f"{share:.0%}", share))
            for name, share in sorted(facts["largest_shares"].items(), key=_by_share)
        ]
        yield tag(
            "div",
            tag("h3", "Largest contributors"),
            tag(
                "p",
                "The largest share one row has in a cell's sum, by column. This table does not leave.",
                class_="muted",
            ),
            scrolling(table(("Column", "#Largest share"), rows), "Largest contributors"),
            class_="card",
        )


_SHADES = ("piece-3", "piece-0", "rest")


def _by_share(item: tuple[str, float]) -> float:
    return -item[1]


def _holding(waiting: Pending) -> Section:
    facts = waiting.facts
    blocks, rows, held = facts["rolled_up"]["blocks"], facts["rolled_up"]["rows"], facts.get("held_back", [])
    children: list[Child] = [
        tag(
            "p",
            f"{blocks:,} blocks ({rows:,} rows) do not leave under their own signature."
            if blocks
            else "Every block leaves under its own signature: all are large enough.",
            class_="lead",
        )
    ]
    if held:
        names = _shared(waiting)
        lines = [
            (_signature(names, one["signature"]), one["label"], _signature(names, one["leaves_as"]), one["reason"])
            for one in held
        ]
        grid = table(("Block", "Label", "Leaves as", "Reason"), lines, sortable=True)
        grid.set("id", "held")
        more = f"The first {len(held):,} of {blocks:,}." if len(held) < blocks else None
        children.append(
            tag(
                "div",
                search("held", "Find a block"),
                scrolling(grid, "Blocks held back"),
                tag("p", more, class_="muted small") if more else None,
                class_="card",
            )
        )
    if facts["notes"]:
        children.append(
            tag("div", tag("h3", "Notes"), tag("ul", [tag("li", note) for note in facts["notes"]]), class_="card")
        )
    return Section("held-back", "What is held back", children)


def _shared(waiting: Pending) -> list[str]:
    return [name.removeprefix("shared:") for name in waiting.part.table.column_names if name.startswith("shared:")]


def _signature(names: list[str], codes: list[str]) -> str:
    return ", ".join(f"{name} {code}" for name, code in zip(names, codes, strict=True)) or "all rows"


def _cells(waiting: Pending) -> Section:
    part = waiting.part.table
    names = [name for name in part.column_names if name != "rows" and not name.startswith("shared-sum:")]
    shown = max(_NUMBERS // (len(names) + 1), _FEWEST)
    smallest = part.sort_by("rows").slice(0, shown)
    columns = [smallest.column(name).to_pylist() for name in ("rows", *names)]
    words = [name.startswith("shared:") or name == "label" for name in names]
    lines = [[Cell(f"{line[0]:,}", line[0]), *map(_shown, line[1:])] for line in zip(*columns, strict=True)]
    heads = [_heading(name, word) for name, word in zip(names, words, strict=True)]
    first = sum(words)
    order = [*range(1, first + 1), 0, *range(first + 1, len(names) + 1)]
    grid = table([["#rows", *heads][at] for at in order], [[line[at] for at in order] for line in lines], sortable=True)
    grid.set("id", "cells")
    said = (
        f"All {part.num_rows:,} cells"
        if part.num_rows <= shown
        else f"The {shown:,} smallest of {part.num_rows:,} cells"
    )
    lead = f"{said}, the smallest first: rows, and the sum of each private column in the model's units."
    body = tag("div", search("cells", "Find a cell"), scrolling(grid, "Cells that would leave"), class_="card")
    return Section("every-cell", "Every cell", [tag("p", lead, class_="lead"), body])


def _heading(name: str, word: bool) -> str:
    plain_name = name.split(":", 1)[-1]
    if word:
        return plain_name
    return f"#{plain_name}" if name.startswith("sum:") else f"#{plain_name} present"


def _shown(value: object) -> Child | Cell:
    if isinstance(value, float | int) and not isinstance(value, bool):
        return Cell(plain(float(f"{value:.5g}")), value)
    return str(value)


def _decision(form: Form) -> Section:
    fields = tag(
        "form",
        tag("input", type="hidden", name="secret", value=form.secret),
        tag("label", "Your name", for_="name"),
        tag("input", id="name", name="name", required=True, maxlength="200", autocomplete="name", value=form.name),
        tag("label", "Reason", for_="reason"),
        tag("textarea", form.reason, id="reason", name="reason", required=True, maxlength="2000", rows="3"),
        tag("p", "Both are kept in the ledger for good. A decision is final.", class_="muted small"),
        tag(
            "div",
            tag("button", "Approve: let it leave", type="submit", name="verdict", value="approval", class_="primary"),
            tag("button", "Refuse: keep it back", type="submit", name="verdict", value="refusal", class_="danger"),
            class_="buttons",
        ),
        method="post",
        action="/decide",
        class_="card decide",
    )
    return Section("decide", "Decide", [fields])
