"""A first draft of a contract, from the peers' profiles."""

from __future__ import annotations

import json
import re

from radocraft.contract._outline import ColumnProfile, Profile
from radocraft.errors import ContractError

_AGREE = "# AGREE: "


def draft_contract(
    profiles: dict[str, Profile],
    *,
    name: str,
    label: str,
    positive: str | None = None,
    negative: str | None = None,
    columns: bool = False,
) -> str:
    """Draft a contract's text from what each peer may tell.

    Columns that every peer has become shared features. Of all others each peer
    makes one score; with ``columns`` each of them is a private feature instead.
    What the profiles do not tell (bin edges, categories, the label's values) is
    left open under a line that begins with ``# AGREE:``.

    Examples
    --------
    >>> from radocraft.contract import ColumnProfile, Profile
    >>> def table(*names):
    ...     return Profile(columns=tuple(ColumnProfile(name=name, kind="number") for name in names))
    >>> text = draft_contract({"bank": table("bad", "age", "income"), "shop": table("bad", "age", "visits")},
    ...                       name="risk", label="bad", positive="1", negative="0")
    >>> [line for line in text.splitlines() if '"score"' in line]
    ['bank_score = "score"  # of income, with age', 'shop_score = "score"  # of visits, with age']
    """
    for peer, profile in profiles.items():
        if label not in profile.by_name:
            raise ContractError(
                f"The profile of '{peer}' has no column '{label}' for the label. It has {', '.join(profile.by_name)}. "
                "If it is there under another name, rename it in the profile and map it in the draft."
            )
    tables = list(profiles.values())
    held = [c for c in tables[0].columns if c.name != label and all(c.name in t.by_name for t in tables)]
    dates = [] if columns else [c.name for c in held if all(t.by_name[c.name].kind == "date" for t in tables)]
    common = [c.name for c in held if c.name not in dates]
    lines = [f"name = {_quoted(name)}", "", *_label(tables[0].by_name[label], positive, negative)]
    for column in common:
        lines += ["", "[[shared]]", f"name = {_quoted(column)}", *_codes([t.by_name[column] for t in tables])]
    if not columns:
        lines += _key_hint(dates)
    taken = {label, *common}
    for peer, profile in profiles.items():
        own = [c for c in profile.columns if c.name != label and c.name not in common]
        lines += ["", f"[peers.{_key(peer)}.features]"]
        if columns:
            lines += map(_private, own)
        else:
            score = _score_name(peer, taken)
            taken.add(score)
            lines.append(f'{score} = "score"  # {_made_of([c.name for c in own], common)}')
    return "\n".join(lines) + "\n"


def _score_name(peer: str, taken: set[str]) -> str:
    name = f"{re.sub('[^a-zA-Z0-9_-]', '_', peer)}_score"
    while name in taken:
        name += "_"
    return name


def _made_of(own: list[str], common: list[str]) -> str:
    """What a score is fitted on, as a remark on one line."""
    shared = f", with {', '.join(common)}" if common else ""
    text = f"of {', '.join(own)}{shared}" if own else "this peer has no column of its own, so this adds nothing"
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _key_hint(dates: list[str]) -> list[str]:
    """How a key would be written; whether an attribute is neutral only people know."""
    return [
        "",
        "# What all have and what tells nothing of the label, such as a birthday, may relate the scores:",
        "# [[key]]",
        f"# name = {_quoted(dates[0] if dates else 'birthday')}",
        "# day_of_year = true",
    ]


def _label(column: ColumnProfile, positive: str | None, negative: str | None) -> list[str]:
    lines = ["[label]", f"column = {_quoted(column.name)}"]
    if positive is None or negative is None:
        lines.append(f"{_AGREE}the value to predict, and the other one")
    values = {"positive": positive or "", "negative": negative or ""}
    return lines + [f"{key} = {_value(value)}" for key, value in values.items()]


def _codes(columns: list[ColumnProfile]) -> list[str]:
    """Edges for numbers, categories for text, from the union of what the peers tell."""
    if all(column.kind == "boolean" for column in columns):
        return ["categories = [false, true]"]
    if all(column.kind == "number" for column in columns):
        quartiles = [column.quartiles for column in columns if column.quartiles]
        edges = sorted(quartiles[0]) if quartiles else []
        note = [f"{_AGREE}bin edges, the same at every peer"] if not edges else []
        return [*note, f"edges = [{', '.join(f'{edge:g}' for edge in edges)}]"]
    categories = sorted({category for column in columns for category in column.categories or ()})
    note = [f"{_AGREE}the categories, spelled as in the tables"] if not categories else []
    return [*note, f"categories = [{', '.join(map(_quoted, categories))}]"]


def _private(column: ColumnProfile) -> str:
    key = _key(column.name)
    if column.kind == "number":
        return f'{key} = "numeric"'
    if column.kind == "boolean":
        return f'{key} = "boolean"'
    if column.kind == "date":
        return f'{key} = "date"'
    if column.kind == "other":
        return f"# {key} is neither number, truth value nor text; convert it first"
    categories = ", ".join(map(_quoted, column.categories or ()))
    note = "" if column.categories else f"{_AGREE}its categories\n"
    return f'{note}{key} = {{ kind = "categorical", categories = [{categories}] }}'


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _key(name: str) -> str:
    return name if name and all(c.isascii() and (c.isalnum() or c in "_-") for c in name) else _quoted(name)


def _value(text: str) -> str:
    """A label's value as TOML: numbers and truth values bare, all else quoted."""
    if text in ("true", "false"):
        return text
    try:
        float(text)
    except ValueError:
        return _quoted(text)
    return text if text.strip().lstrip("+-")[:1].isdigit() and "_" not in text else _quoted(text)
