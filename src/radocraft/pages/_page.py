"""What every page of radocraft is made of: the document, sections, figures, tables, key figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from xml.etree.ElementTree import Element

from radocraft.pages._markup import Child, Children, html, tag
from radocraft.pages._theme import style

ALONE = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def resource(name: str) -> str:
    """A file of this package as text."""
    return (files("radocraft.pages") / name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Section:
    """A part of the page that its navigation leads to."""

    name: str
    title: str
    children: Sequence[Child]

    def element(self) -> Element:
        """The section with its heading."""
        return tag("section", tag("h2", self.title), self.children, id=self.name, aria_label=self.title)


def document(
    title: str, head: Iterable[Child], sections: Sequence[Section], foot: Iterable[Child], nonce: str | None = None
) -> str:
    """A whole page that needs nothing from elsewhere.

    A page that is served says in its headers what it may do, and names its own
    style and script by ``nonce``; a page in a file says it itself.
    """
    links = [tag("a", section.title, href=f"#{section.name}") for section in sections]
    page = tag(
        "html",
        tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", http_equiv="Content-Security-Policy", content=ALONE) if nonce is None else None,
            tag("title", title),
            tag("style", style() + resource("look.css"), nonce=nonce),
        ),
        tag(
            "body",
            tag("a", "Skip to content", href="#content", class_="skip"),
            tag("div", _brand(), tag("nav", links, aria_label="Sections"), _toggle(), class_="top", role="banner"),
            tag(
                "main",
                tag("header", list(head), class_="head"),
                [section.element() for section in sections],
                id="content",
            ),
            tag("footer", list(foot)),
            tag("div", id="tip", role="status", hidden=True),
            tag("script", resource("behaviour.js"), nonce=nonce),
        ),
        lang="en",
    )
    return "<!doctype html>\n" + html(page) + "\n"


def _brand() -> Element:
    return tag("a", "radocraft", href="#content", class_="brand")


def _toggle() -> Element:
    return tag("button", "Dark", type="button", id="theme", aria_label="Switch between light and dark", hidden=True)


def key_figures(figures: Sequence[tuple[str, str, str]]) -> Element:
    """Large numbers with what they are and what to hold them against."""
    cards = [
        tag("div", tag("dt", what), tag("dd", number), tag("dd", against, class_="against"), class_="card")
        for what, number, against in figures
    ]
    return tag("dl", cards, class_="figures")


def figure(title: str, chart: Element, words: Children, numbers: Element | None = None) -> Element:
    """A chart with its title, what it says, and its numbers folded below."""
    folded = (
        tag("details", tag("summary", "Numbers"), scrolling(numbers, f"{title}, numbers"))
        if numbers is not None
        else None
    )
    return tag("figure", tag("figcaption", tag("h3", title), tag("p", words)), chart, folded, class_="card")


def scrolling(inner: Element, label: str) -> Element:
    """Something wide that scrolls inside its own frame, by keyboard too."""
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=label)


@dataclass(frozen=True)
class TableCell:
    """A table cell that shows one thing and sorts by another."""

    show: Child
    sort: float | str


def table(columns: Sequence[str], rows: Iterable[Sequence[Child | TableCell]], *, sortable: bool = False) -> Element:
    """A table; a column whose heading begins with # holds numbers."""
    kinds = ["number" if name.startswith("#") else None for name in columns]
    head = [
        tag("th", _heading(name, sortable), scope="col", class_=kind) for name, kind in zip(columns, kinds, strict=True)
    ]
    body = [tag("tr", [_cell(cell, kind) for cell, kind in zip(row, kinds, strict=True)]) for row in rows]
    return tag("table", tag("thead", tag("tr", head)), tag("tbody", body), class_="sortable" if sortable else None)


def _heading(name: str, sortable: bool) -> Child:
    text = name.removeprefix("#")
    return tag("button", text, type="button") if sortable else text


def _cell(cell: Child | TableCell, kind: str | None) -> Element:
    if isinstance(cell, TableCell):
        sort = cell.sort if isinstance(cell.sort, str) else f"{cell.sort:.9g}"
        return tag("td", cell.show, class_=kind, data_sort=sort)
    return tag("td", cell, class_=kind)


def search(target: str, label: str) -> Element:
    """A field that filters the rows of the table with this id; shown where scripts run."""
    return tag(
        "p",
        tag("label", label, for_=f"search-{target}"),
        tag("input", type="search", id=f"search-{target}", data_filters=target, autocomplete="off"),
        tag("span", id=f"found-{target}", role="status", class_="muted"),
        class_="search",
        hidden=True,
    )
