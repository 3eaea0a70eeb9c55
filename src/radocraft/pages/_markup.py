"""HTML and SVG as trees, so that text from a contract is never read as markup."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree.ElementTree import Element, tostring

Child = Element | str | None
Children = Child | Iterable[Child]


def tag(name: str, /, *children: Children, **attributes: str | float | bool | None) -> Element:
    """An element; ``class_`` stands for ``class``, ``data_tip`` for ``data-tip``, and None leaves an attribute out.

    Examples
    --------
    >>> html(tag("p", "less than ", tag("b", "<5"), class_="lead"))
    '<p class="lead">less than <b>&lt;5</b></p>'
    """
    element = Element(name)
    for key, value in attributes.items():
        if value is not None and value is not False:
            element.set(key.rstrip("_").replace("_", "-"), _text(value))
    for child in children:
        _append(element, child)
    return element


def breakable(name: str) -> list[Child]:
    """A name that may go on in the next line after an underscore or an equals sign.

    Examples
    --------
    >>> html(tag("td", breakable("has_mortgage")))
    '<td>has_<wbr>mortgage</td>'
    """
    first, *rest = re.split("(?<=[_=])", name)
    return [first, *(piece for part in rest if part for piece in (tag("wbr"), part))]


def html(element: Element) -> str:
    """An element as it stands in an HTML document."""
    return tostring(element, encoding="unicode", method="html")


def _append(element: Element, child: Children) -> None:
    if child is None:
        return
    if isinstance(child, Element):
        element.append(child)
    elif not isinstance(child, str):
        for each in child:
            _append(element, each)
    elif len(element):
        element[-1].tail = (element[-1].tail or "") + child
    else:
        element.text = (element.text or "") + child


def _text(value: str | float | bool) -> str:
    if isinstance(value, str):
        return value
    return "" if value is True else f"{value:.6g}"
