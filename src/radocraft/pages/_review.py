"""What a data officer sees: exactly what would leave, how much noise is in it, what it costs, and two buttons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from radocraft.files import size
from radocraft.gate import describe_rows
from radocraft.pages._bars import stacked_bar
from radocraft.pages._charts import Axis, histogram
from radocraft.pages._markup import Child, tag
from radocraft.pages._numbers import day, plain
from radocraft.pages._page import Section, TableCell, document, figure, key_figures, scrolling, search, table
from radocraft.pages._sizes import sizes
from radocraft.parts import Part
from radocraft.peer import Pending
from radocraft.sums import EDGES

_NUMBERS = 60_000
_FEWEST = 200


@dataclass(frozen=True)
class ReviewForm:
    """What the page's form sends back: a secret of this page, and what was typed before."""

    secret: str
    name: str = ""
    reason: str = ""
    problem: str | None = None


def review_page(waiting: Pending, form: ReviewForm, nonce: str) -> str:
    """The page, as HTML."""
    part = waiting.content
    besides = [_besides(part)] if part.of_scores else []
    sections = [_leaving(waiting, part), *besides, _cells(part), _decision(form)]
    foot = [tag("p", "Served by radocraft on this machine only, from the pending file. Nothing has left.")]
    return document(f"Review of {part.peer} · radocraft", _head(waiting, part, form), sections, foot, nonce)


def closing_page(title: str, words: str, nonce: str) -> str:
    """The last page: what came of it."""
    head = [tag("p", "Review", class_="eyebrow"), tag("h1", title), tag("p", words, class_="lead", role="status")]
    return document(f"{title} · radocraft", head, [], [tag("p", "You can close this window.")], nonce)


def _head(waiting: Pending, part: Part, form: ReviewForm) -> Iterator[Child]:
    metadata, policy = part.metadata, part.metadata["policy"]
    yield tag("p", "Waits for review", class_="eyebrow")
    yield tag("h1", f"May this leave {part.peer}?")
    if form.problem:
        yield tag("p", form.problem, class_="problem", role="alert")
    yield tag(
        "p",
        f"Sums of {describe_rows(metadata['rows'], policy['mode'])} rows of “{waiting.line.table}”, "
        f"for the contract “{waiting.line.contract}”. "
        "Everything in the file is shown below; it contains no row.",
        class_="lead",
    )
    noise = [(name.capitalize(), *_halves(words)) for name, words in waiting.noise.items()]
    yield key_figures(
        [
            ("Rows behind it", f"{metadata['rows']:,}", f"in {part.table.num_rows:,} cells"),
            *noise,
            ("Rolled up", f"{policy['rolled_up']:,}", "blocks, shown only inside coarser cells"),
            ("Would leave", size(part.nbytes), "one score a row" if part.of_scores else _columns(metadata)),
        ]
    )


def _columns(metadata: dict[str, Any]) -> str:
    return f"{len(metadata['columns']):,} private columns"


def _halves(words: str) -> tuple[str, str]:
    """A figure and what it is of: ``4.2`` and ``at delta 1e-06``."""
    figure, _, rest = words.removeprefix("at least ").partition(" ")
    return figure.rstrip(":"), rest


def _leaving(waiting: Pending, part: Part) -> Section:
    metadata, line = part.metadata, waiting.line
    facts: list[tuple[str, Child]] = [
        ("Guarantee", line.policy),
        *((name.capitalize(), words) for name, words in waiting.noise.items()),
        ("Contract", [f"{line.contract} (", tag("code", line.fingerprint[:16]), ")"]),  # type: ignore[list-item]
        ("Made", f"{day(metadata['created'])} by radocraft {metadata['radocraft']}"),
        ("Also holds", _SCORES_HOLD if part.of_scores else _COLUMNS_HOLD),
        ("Last release", waiting.since),
        ("Ledger", [f"{waiting.note.ledger}, head ", tag("code", waiting.head[:16])]),  # type: ignore[list-item]
        ("Hash", tag("code", line.file[:32])),
    ]
    card = tag(
        "div",
        tag("h3", "The release"),
        tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts], class_="facts"),
        tag(
            "p", tag("a", "Download the part as it would leave", href="/part.parquet", download=True), class_="download"
        ),
        class_="card",
    )
    rows = np.asarray(part.table.column("rows").to_numpy(), dtype=np.float64)
    chart = sizes(np.maximum(rows, 1.0), "cell", "How many cells hold how many rows, noise included.")
    return Section(
        "leaves", "What would leave", [tag("div", card, chart, class_="pair"), *_budget(waiting), *_notes(metadata)]
    )


def _budget(waiting: Pending) -> Iterator[Element]:
    before, after = waiting.before, waiting.after
    if before is None or after is None:
        return
    spent, now = min(before.share, 1.0), min(after.share, 1.0)
    shares = [("spent before", spent), ("this release", now - spent), ("left for life", 1.0 - now)]
    label = "; ".join(f"{name} {share:.0%}" for name, share in shares)
    legend = [
        tag("li", tag("span", class_=f"swatch {kind}"), f"{name} {share:.0%}")
        for (name, share), kind in zip(shares, _SHADES, strict=True)
    ]
    yield tag(
        "div",
        tag("h3", "Budget for the life of this table"),
        tag("p", "This is already spent, whether or not the release leaves.", class_="muted"),
        stacked_bar(shares, f"Budget: {label}", _SHADES),
        tag("ul", legend, class_="legend"),
        tag("p", f"Before: {before.spent}. With this release: {after.spent}. Remains: {after.remains}."),
        class_="card",
    )


_COLUMNS_HOLD = "second moments of the columns by label, centre and scale of each column"
_SCORES_HOLD = (
    "rows by agreed signature, histograms of scores and of their residuals, and sums by group of the key, each by label"
)
_SHADES = ("piece-3", "piece-0", "rest")


def _notes(metadata: dict[str, Any]) -> Iterator[Element]:
    if metadata["notes"]:
        yield tag("div", tag("h3", "Notes"), tag("ul", [tag("li", note) for note in metadata["notes"]]), class_="card")


def _besides(part: Part) -> Section:
    """All that a part of scores holds beside its cells."""
    told, centre, unit = part.score_tables(), part.metadata["centre"][0], part.metadata["scale"][0]
    words = (
        f"A row’s score is the log-odds that the model of {part.peer} gives it, centred at {plain(round(centre, 3))} "
        f"and divided by {plain(unit)}; its distance is from the mean score of the row’s cell. The epsilon covers "
        "these sums, given the model: a row that it was fitted on also moved the scores of other rows, which no "
        "epsilon counts."
    )
    charts = [_spread(label, counts) for label, counts in told.histogram.items()]
    lists = [("Rows by score", told.margins), ("Rows by agreed signature, in the contract’s order", told.counts)]
    lists += [("Distances summed by group of the key", told.groups)] if any(told.groups.values()) else []
    rows = [
        tag(
            "details",
            tag("summary", f"{title}: {label}, {len(numbers):,} numbers"),
            tag("p", ", ".join(plain(float(f"{number:.5g}")) for number in numbers), class_="small"),
            class_="wide",
        )
        for title, by_label in lists
        for label, numbers in by_label.items()
    ]
    return Section("besides", "Scores", [tag("p", words), tag("div", charts, class_="pair"), *rows])


def _spread(label: str, counts: list[float]) -> Element:
    """Rows by distance from their cell's mean score."""
    edges = [float(edge) for edge in EDGES]
    bars = [
        (low, high, max(rows, 0.0), f"{rows:,.0f} rows between {low:g} and {high:g} deviations")
        for (low, high), rows in zip(pairwise(edges), counts, strict=True)
    ]
    chart = histogram(
        f"Histogram of scores of {label}",
        Axis.over("deviations from the cell's mean score", edges),
        Axis.counts("", [rows for _, _, rows, _ in bars]),
        bars,
    )
    numbers = table(
        ("#from", "#to", "#rows"),
        [(f"{low:g}", f"{high:g}", f"{rows:,.0f}") for (low, high), rows in zip(pairwise(edges), counts, strict=True)],
    )
    return figure(f"Scores of “{label}”", chart, "Rows by distance, noise included.", numbers)


def _cells(released: Part) -> Section:
    part = released.table
    names = [name for name in part.column_names if name != "rows" and not name.startswith("shared-sum:")]
    shown = max(_NUMBERS // (len(names) + 1), _FEWEST)
    smallest = part.sort_by("rows").slice(0, shown)
    columns = [smallest.column(name).to_pylist() for name in ("rows", *names)]
    words = [name.startswith("shared:") or name == "label" for name in names]
    lines = [[TableCell(f"{line[0]:,}", line[0]), *map(_shown, line[1:])] for line in zip(*columns, strict=True)]
    heads = [_heading(name, word) for name, word in zip(names, words, strict=True)]
    heads[len(heads) - 2 :] = ["#sum of scores", "#sum of distances"] if released.of_scores else heads[-2:]
    first = sum(words)
    order = [*range(1, first + 1), 0, *range(first + 1, len(names) + 1)]
    grid = table([["#rows", *heads][at] for at in order], [[line[at] for at in order] for line in lines], sortable=True)
    grid.set("id", "cells")
    said = (
        f"All {part.num_rows:,} cells"
        if part.num_rows <= shown
        else f"The {shown:,} smallest of {part.num_rows:,} cells"
    )
    what = "the sums of their scores and of distances" if released.of_scores else "the sum of each private column"
    lead = f"{said}, the smallest first: rows, and {what} in the model's units."
    body = tag("div", search("cells", "Find a cell"), scrolling(grid, "Cells that would leave"), class_="card")
    return Section("every-cell", "Every cell", [tag("p", lead, class_="lead"), body])


def _heading(name: str, word: bool) -> str:
    plain_name = name.split(":", 1)[-1]
    if word:
        return plain_name
    return f"#{plain_name}" if name.startswith("sum:") else f"#{plain_name} present"


def _shown(value: object) -> Child | TableCell:
    if isinstance(value, float | int) and not isinstance(value, bool):
        return TableCell(plain(float(f"{value:.5g}")), value)
    return str(value)


def _decision(form: ReviewForm) -> Section:
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
