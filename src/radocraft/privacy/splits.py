"""How releases split a table's columns, and the finest pieces that several of them tell apart together."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from radocraft.arrays import Floats, Ints
from radocraft.cells import ROLLED
from radocraft.labels import ANY_LABEL

Trace = dict[str, Any]
Split = dict[str, Any]


def splits(side: Trace) -> dict[str, tuple[Split, Ints]]:
    """By column, how a release splits it and which piece each region is: the shared features, and the label."""
    labels, label = np.array(side["labels"], dtype=np.int64), side["label"]
    codes = np.array(side["codes"], dtype=np.int64).reshape(len(labels), -1)
    out = {spelled["name"]: (spelled, codes[:, at]) for at, spelled in enumerate(side["shared"])}
    if "positive" in label:
        values, place = [label["negative"], label["positive"]], (labels + 1) // 2
    else:
        values, place = label.get("classes", []), labels - 1
    split = {"edges": label.get("edges") or None, "categories": values}
    return {**out, label["column"]: (split, np.where(labels == ANY_LABEL, ROLLED, place))}


def elements(spellings: list[dict[str, Any]]) -> list[Any]:
    """The finest pieces of a shared feature that the contracts tell apart; the last two are missing and all else."""
    edges = sorted({edge for spelled in spellings for edge in spelled["edges"] or ()})
    words = sorted({str(word) for spelled in spellings for word in spelled["categories"] or ()})
    numbers = any(spelled["edges"] is not None for spelled in spellings)
    bounds = [-math.inf, *edges, math.inf] if numbers else []
    return [*pairwise(bounds), *words, "missing", "unseen"]


def covers(spelled: Split, codes: Ints, pieces: list[Any]) -> Floats:
    """Per region, the elements of a feature it holds; all of them if it is of any code."""
    rows = np.array([_of_code(code, spelled, pieces) for code in range(_count(spelled))])
    return np.where((codes == ROLLED)[:, None], 1.0, rows[codes])


def _count(spelled: dict[str, Any]) -> int:
    return len(spelled["edges"]) + 2 if spelled["edges"] is not None else len(spelled["categories"]) + 2


def _of_code(code: int, spelled: dict[str, Any], pieces: list[Any]) -> list[float]:
    if spelled["edges"] is not None:
        bounds = [-math.inf, *spelled["edges"], math.inf]
        if code == len(bounds) - 1:
            return [float(piece == "missing") for piece in pieces]
        low, high = bounds[code], bounds[code + 1]
        return [float(_between(piece, low, high)) for piece in pieces]
    words = [*map(str, spelled["categories"]), "missing"]
    if code < len(words):
        return [float(piece == words[code]) for piece in pieces]
    return [float(isinstance(piece, tuple) or piece not in words) for piece in pieces]


def _between(piece: Any, low: float, high: float) -> bool:
    """Whether a bin, or a category that is a number, lies between two bounds."""
    if isinstance(piece, tuple):
        return bool(low <= piece[0] and piece[1] <= high)
    try:
        return low <= float(piece) < high
    except ValueError:
        return False
