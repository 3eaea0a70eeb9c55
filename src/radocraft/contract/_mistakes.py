"""Mistakes in a file that a person wrote: all at once, each with its place and its remedy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from radocraft.files import harmless

_PROBLEM = {
    "missing": "this is missing",
    "extra_forbidden": "there is no such entry",
    "union_tag_invalid": "'{tag}' is not a kind of feature",
    "union_tag_not_found": "its kind is missing",
    "model_attributes_type": "this is not a feature",
    "dict_type": "must be a section",
    "tuple_type": "must be a list",
    "string_type": "must be text",
}
_REMEDY = {
    "missing": "add it",
    "extra_forbidden": "remove it, or correct its spelling",
    "union_tag_invalid": 'kinds are "numeric", "log", "date", "boolean", "categorical", "spline", "interact", "score"',
    "union_tag_not_found": 'say what kind of feature it is, e.g. kind = "numeric"',
    "value_error": "",
    "greater_than": "",
    "model_attributes_type": 'say what kind of feature it is, e.g. "numeric"',
    "dict_type": "write NAME = VALUE below it",
    "tuple_type": "in brackets",
    "string_type": "in quotes",
}
_LABELS = "a label has `positive` and `negative`, or `classes`, or is a number"
_OF_LABEL = {
    "held_by": "every peer sums a number; take it out, or make classes of the number",
    "positive": _LABELS,
    "negative": _LABELS,
    "classes": _LABELS,
}
"""Remedies for what one kind of label may have and another not."""
_PRIVATE = "a private feature"
_KEY = r"""(?:"[^"]*"|'[^']*'|[\w\-]+)"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")
_ASSIGNMENT = re.compile(rf"\s*({_DOTTED})\s*=")


@dataclass(frozen=True)
class Mistake:
    """One thing wrong: where, what, and what to do."""

    place: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}{f' ({self.remedy})' if self.remedy else ''}"


def report(mistakes: list[Mistake], what: str = "The contract") -> str:
    """All mistakes as one message."""
    count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    return "\n  ".join([f"{what} has {count}:", *map(str, mistakes)])


def from_validation(
    error: ValidationError, text: str, otherwise: str = "see `radocraft contract new` for a draft"
) -> list[Mistake]:
    """What pydantic found, in our words; ``otherwise`` is the remedy where there is no better one."""
    mistakes = []
    for item in error.errors():
        path = list(item["loc"])
        if path[:1] == ["peers"] and path[2:3] == ["features"]:
            del path[4:5]  # the kind of the feature, which is no step in the file
        if path[:1] == ["key"]:
            path[1:1] = [0]  # the file has a list of them
        if path[:1] == ["label"]:
            del path[1:2]  # the kind of the label, likewise
        message = item["msg"].removeprefix("Value error, ").replace("Input should", "must")
        problem = _PROBLEM.get(item["type"], message).replace("{tag}", str(item.get("ctx", {}).get("tag")))
        remedy = _REMEDY.get(item["type"], otherwise)
        if item["type"] == "extra_forbidden" and path[:1] == ["label"]:
            remedy = _OF_LABEL.get(str(path[-1]), remedy)
        mistakes.append(Mistake(place(path, text), problem, remedy))
    return mistakes


def contradictions(tree: dict[str, Any], text: str) -> list[Mistake]:
    """What each entry alone cannot show: names used twice, or for nothing.

    Takes the file as it is, sound or not, so that its other mistakes do not hide these.
    """
    label = _table(tree.get("label")).get("column")
    shared = [_table(entry).get("name") for entry in _list(tree.get("shared"))]
    peers = {peer: _table(fields) for peer, fields in _table(tree.get("peers")).items()}
    entries: list[tuple[list[int | str], Any, str]] = [
        (["shared", index, "name"], name, "a shared feature") for index, name in enumerate(shared)
    ]
    for peer, fields in peers.items():
        for name in _table(fields.get("features")):
            entries.append((["peers", peer, "features", name], name, f"{_PRIVATE} of {peer}"))
    mistakes = []
    owner: dict[Any, str] = {label: "the label"}
    for path, name, role in entries:
        if isinstance(name, str) and name in owner and owner[name].startswith(_PRIVATE):
            mistakes += _distinct(peers, path, name, text)
        elif isinstance(name, str) and name in owner:
            remedy = "list it once, or give one of the two another name"
            mistakes.append(Mistake(place(path, text), f"'{name}' is already {owner[name]}", remedy))
        if isinstance(name, str):
            owner.setdefault(name, role)
    return [*mistakes, *_key_twice(tree, owner, text), *_columns_for_nothing(tree, peers, text)]


def _key_twice(tree: dict[str, Any], owner: dict[Any, str], text: str) -> list[Mistake]:
    names = [_table(entry).get("name") for entry in _keys(tree)]
    remedy = "a key is never a feature or the label; choose another column"
    return [
        Mistake(place(["key", index, "name"], text), f"'{name}' is already {owner[name]}", remedy)
        for index, name in enumerate(names)
        if isinstance(name, str) and name in owner
    ]


def _keys(tree: dict[str, Any]) -> list[Any]:
    """The keys, even where there is one that is no list."""
    return _list(tree.get("key")) or [tree.get("key")]


def _columns_for_nothing(tree: dict[str, Any], peers: dict[str, dict[str, Any]], text: str) -> list[Mistake]:
    entries = [tree.get("label"), *_list(tree.get("shared")), *_keys(tree)]
    common = [_table(entry).get(field) for entry in entries for field in ("column", "name")]
    remedy = "put the contract's name on the left and the peer's column on the right"
    return [
        Mistake(place(["peers", peer, "columns", name], text), f"'{name}' is not a feature of {peer}", remedy)
        for peer, fields in peers.items()
        for name in _table(fields.get("columns"))
        if name not in (*common, *_table(fields.get("features")))
    ]


def steering(tree: dict[str, Any], text: str) -> list[Mistake]:
    """Texts that no part may hold, since a terminal would do something else than show them."""
    wrong = [path for path, words in _texts(tree, []) if not harmless(words)]
    problem, remedy = "the text holds a control character", "take it out; such values then count as unseen"
    return [Mistake(place(path, text), problem, remedy) for path in wrong]


def _texts(entry: Any, path: list[int | str]) -> Iterator[tuple[list[int | str], str]]:
    """Every text, and every key, with its place."""
    if isinstance(entry, str):
        yield path, entry
    for key, inner in entry.items() if isinstance(entry, dict) else enumerate(entry if isinstance(entry, list) else []):
        if isinstance(key, str):
            yield [*path, key], key
        yield from _texts(inner, [*path, key])


def _holders(peers: dict[str, dict[str, Any]], name: str) -> list[Any]:
    return [
        feature
        for feature in (_table(peer.get("features")).get(name) for peer in peers.values())
        if feature is not None
    ]


def _distinct(peers: dict[str, dict[str, Any]], path: list[int | str], name: str, text: str) -> list[Mistake]:
    """A feature that several peers hold must be the same thing at each of them, in units that need no rows."""
    spelled = [{"kind": feature} if isinstance(feature, str) else _table(feature) for feature in _holders(peers, name)]
    if any(feature.get("kind") == "score" for feature in spelled):
        return []  # what is wrong with it is said of the scores
    if any(feature != spelled[0] for feature in spelled):
        return [
            Mistake(
                place(path, text), f"'{name}' is a different feature at another peer", "write it the same way at each"
            )
        ]
    kind, knots = spelled[0].get("kind"), spelled[0].get("knots")
    if kind == "spline" and not isinstance(knots, list):
        return [Mistake(place(path, text), "several peers hold this spline", "agree on its knots")]
    if kind == "interact":
        return [Mistake(place(path, text), "several peers hold this product", "let one peer compute it")]
    return []


def _table(entry: Any) -> dict[str, Any]:
    return entry if isinstance(entry, dict) else {}


def _list(entry: Any) -> list[Any]:
    return entry if isinstance(entry, list) else []


def place(path: list[int | str], text: str) -> str:
    """Where in the file: ``shared[0].edges (line 7)``."""
    line = line_of(path, text)
    return dotted(path) + (f" (line {line})" if line else "")


def dotted(path: list[int | str]) -> str:
    """``('shared', 0, 'edges')`` as ``shared[0].edges``."""
    text = ""
    for step in path:
        bare = isinstance(step, str) and re.fullmatch(r"[\w\-]+", step)
        text += f"[{step}]" if isinstance(step, int) else f".{step if bare else json.dumps(step, ensure_ascii=False)}"
    return text.lstrip(".") or "the file"


def line_of(path: list[int | str], text: str) -> int | None:
    """The line where the deepest part of ``path`` that is written out begins, if that is clear."""
    section: list[int | str] = []
    tables: dict[tuple[int | str, ...], int] = {}
    depth, last = 0, None
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            section = _steps(header[2])
            if header[1] == "[[":
                tables[tuple(section)] = tables.get(tuple(section), -1) + 1
                section = [*section, tables[tuple(section)]]
            here = section
        elif assignment := _ASSIGNMENT.match(line):
            here = section + _steps(assignment[1])
        else:
            continue
        if len(here) > depth and here == path[: len(here)]:
            depth, last = len(here), number
    return last


def _steps(key: str) -> list[int | str]:
    return [step.strip("\"'") for step in re.findall(_KEY, key)]
