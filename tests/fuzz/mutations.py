"""Inputs made from others: bytes changed, cut, doubled, put together; in JSON, values changed for others."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

ODD = (None, True, -1, 0, 1, 1e308, -1e-320, 2**53, 10**40, float("nan"), float("inf"), "", "x", "\x1b[2J", "\ud800")
ODD += ([], {}, [[]], [0] * 50, {"x": {"x": {}}}, "y" * 5000)


def mutate(content: bytes, others: Sequence[bytes], words: Sequence[bytes], rng: random.Random) -> bytes:
    """A changed input."""
    if words and rng.random() < 0.4 and (tree := changed_tree(content, rng)) is not None:
        return tree
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        content = rng.choice(STEPS)(content, others, words, rng)
    return content


def changed_tree(content: bytes, rng: random.Random) -> bytes | None:
    """A JSON document (behind one byte, or none) with a value changed, lost, or put elsewhere."""
    for start in (0, 1):
        try:
            tree = json.loads(content[start:].split(b"\n")[0])
        except (ValueError, RecursionError):
            continue
        places = list(inner(tree))
        if not places:
            return None
        holder, key = rng.choice(places)
        source, name = rng.choice(places)
        act = rng.random()
        if act < 0.2 and isinstance(holder, dict):
            del holder[key]
        elif act < 0.5:
            holder[key] = json.loads(json.dumps(source[name])) if (source, name) != (holder, key) else None
        else:
            holder[key] = rng.choice(ODD)
        lines = content[start:].split(b"\n")[1:]
        return content[:start] + b"\n".join([json.dumps(tree).encode(), *lines])
    return None


def inner(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a document: what holds it, and its key."""
    keys = tree.keys() if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in list(keys):
        yield tree, key
        yield from inner(tree[key])


def flip(content: bytes, others: Sequence[bytes], words: Sequence[bytes], rng: random.Random) -> bytes:
    out = bytearray(content or b"\0")
    out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def overwrite(content: bytes, others: Sequence[bytes], words: Sequence[bytes], rng: random.Random) -> bytes:
    start, new = place(content, rng), rng.choice((b"\0", b"\xff", b"\x7f", b"9", b'"', b"-", rng.randbytes(4)))
    return content[:start] + new * rng.choice((1, 1, 4)) + content[start + len(new) :]


def cut(content: bytes, others: Sequence[bytes], words: Sequence[bytes], rng: random.Random) -> bytes:
    start = place(content, rng)
    return content[:start] + content[start + rng.choice((1, 2, 8, 64, 10**6)) :]


def double(content: bytes, others: Sequence[bytes], words: Sequence[bytes], rng: random.Random) -> bytes:
    start, size = place(content, rng), rng.choice((1, 8, 64, 512))
    return content[:start] + content[start : start + size] * rng.choice((2, 3, 50)) + content[start + size :]


def insert(content: bytes, others: Sequence[bytes], words: Sequence[bytes], rng: random.Random) -> bytes:
    start = place(content, rng)
    return content[:start] + rng.choice([*words, rng.randbytes(3)]) + content[start:]


def splice(content: bytes, others: Sequence[bytes], words: Sequence[bytes], rng: random.Random) -> bytes:
    other = rng.choice([*others, content])
    return content[: place(content, rng)] + other[place(other, rng) :]


def place(content: bytes, rng: random.Random) -> int:
    return rng.randrange(len(content) + 1)


STEPS = (flip, flip, overwrite, cut, double, insert, insert, splice)
