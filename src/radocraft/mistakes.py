"""Mistakes in a file a person wrote: all of them at once, each with its place and its remedy."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import ValidationError

_REMEDY = {
    "missing": "add it",
    "extra_forbidden": "remove it, or correct its spelling",
    "union_tag_invalid": 'kinds are "numeric", "boolean" and "categorical"',
    "union_tag_not_found": 'say what kind of feature it is, e.g. kind = "numeric"',
    "value_error": "",
}


@dataclass(frozen=True)
class Mistake:
    """One thing wrong: where, what, and what to do."""

    place: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}{f' ({self.remedy})' if self.remedy else ''}"


def report(mistakes: list[Mistake]) -> str:
    """All mistakes as one message."""
    count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    return "\n  ".join([f"The contract has {count}:", *map(str, mistakes)])


def from_validation(error: ValidationError, text: str) -> list[Mistake]:
    """What pydantic found, in our words."""
    mistakes = []
    for item in error.errors():
        path = [step for step in item["loc"] if step not in ("numeric", "boolean", "categorical")]
        line = line_of(path, text)
        place = dotted(path) + (f" (line {line})" if line else "")
        problem = item["msg"].removeprefix("Value error, ")
        mistakes.append(Mistake(place, problem, _REMEDY.get(item["type"], "see `radocraft contract new` for a draft")))
    return mistakes


def dotted(path: list[int | str]) -> str:
    """``('shared', 0, 'edges')`` as ``shared[0].edges``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.lstrip(".") or "the file"


def line_of(path: list[int | str], text: str) -> int | None:
    """The line where the deepest part of ``path`` that is written out begins, if it can be told."""
    names = [step for step in path if isinstance(step, str)]
    nth = next((step for step in path if isinstance(step, int)), 0)
    section: list[str] = []
    seen: dict[str, int] = {}
    best: tuple[int, int] | None = None
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.split("#")[0].strip()
        if header := re.fullmatch(r"\[\[?\s*([^\]]+?)\s*\]\]?", line):
            section = [step.strip(" \"'") for step in header[1].split(".")]
            seen[header[1]] = seen.get(header[1], -1) + 1
            here = section
            in_place = not line.startswith("[[") or seen[header[1]] == nth
        elif assignment := re.match(r"([\w\-\"'. ]+?)\s*=", line):
            here = section + [step.strip(" \"'") for step in assignment[1].split(".")]
            in_place = best is None or here[: len(section)] != section or seen.get(".".join(section), nth) == nth
        else:
            continue
        depth = len(here)
        if in_place and here == names[:depth] and (best is None or depth > best[0]):
            best = (depth, number)
    return best[1] if best else None
