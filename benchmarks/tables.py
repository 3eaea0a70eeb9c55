"""How every benchmark prints: the table of its page in Markdown, or with ``--json`` one JSON value."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from typing import Any

from radocraft.files import size


def arguments(description: str | None) -> ArgumentParser:
    """A parser that knows ``--json``."""
    parser = ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", dest="as_json", help="all figures, for machines")
    return parser


def show(given: Namespace, figures: Any, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print figures as the script was asked to."""
    print(json.dumps(figures, indent=1) if given.as_json else markdown(heads, rows))


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table.

    Examples
    --------
    >>> print(markdown(("work", "wall"), [("craft", "1.2 s")]))
    | work | wall |
    |---|---|
    | craft | 1.2 s |
    """
    lines = ["|" + "---|" * len(heads)]
    lines += [f"| {' | '.join(cells)} |" for cells in rows]
    return "\n".join([f"| {' | '.join(heads)} |", *lines])


def show_lines(given: Namespace, lines: Iterable[str]) -> None:
    """Print Markdown line by line as it comes; with ``--json`` its tables, a list of records under each title."""
    if not given.as_json:
        for line in lines:
            print(line, flush=True)
        return
    print(json.dumps(records("\n".join(lines)), indent=1))


def records(text: str) -> list[dict[str, Any]]:
    r"""The tables of a Markdown text.

    Examples
    --------
    >>> records("Costs\n\n| work | wall |\n|---|---|\n| craft | 1.2 s |")
    [{'title': 'Costs', 'rows': [{'work': 'craft', 'wall': '1.2 s'}]}]
    """
    found: list[dict[str, Any]] = []
    title, heads = "", list[str]()
    for line in text.splitlines():
        if not line.startswith("|"):
            title, heads = line.strip() or title, []
        elif not heads:
            heads = [cell.strip() for cell in line.strip().strip("|").split("|")]
            found.append({"title": title, "rows": []})
        elif not line.startswith("|---"):
            cells = (cell.strip() for cell in line.strip().strip("|").split("|"))
            found[-1]["rows"].append(dict(zip(heads, cells, strict=True)))
    return found


def seconds(value: float) -> str:
    """Seconds, with the digits that mean something.

    Examples
    --------
    >>> seconds(0.164), seconds(26.47), seconds(312.0)
    ('0.16 s', '26.5 s', '312 s')
    """
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s" if value < 100 else f"{value:.0f} s"


__all__ = ["arguments", "markdown", "seconds", "show", "show_lines", "size"]
