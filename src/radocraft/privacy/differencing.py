"""Whether a release, put beside an earlier one of the same table, gives a few rows away.

Two releases that differ by a few rows give those rows' sums by subtraction. So
the ledger keeps of every release how many rows each cell holds and two numbers
that change when any sum or moment does (a fixed random projection, of no use to
anyone else). A new release is compared with each earlier one:

- region by region, where a region is a cell or all cells that begin with the
  same codes: if one release's region lies inside the other's (under the same
  contract, or another one's bins), the rows between them must be none or enough;
- under the same contract a region with as many rows as before must have the same
  sums, and if no region changed, the same moments.
"""

from __future__ import annotations

import hashlib
import math
from itertools import pairwise
from typing import Any

import numpy as np

from radocraft.arrays import Floats, Ints, Truths, add_up, first_of_each, number_rows
from radocraft.cells import ROLLED, Cells
from radocraft.contract import Contract
from radocraft.errors import PolicyRefusal

_SAME = 1e-10
Trace = dict[str, Any]


def trace(cells: Cells, contract: Contract) -> Trace:
    """What the ledger keeps of a release to compare later ones with."""
    codes, labels, group = regions(cells)
    weights = np.array([_weight(name) for name in cells.columns])
    raw = cells.sums * cells.scale + cells.present * cells.centre
    size = cells.rows * (weights @ (np.abs(cells.scale) + np.abs(cells.centre)))
    count = len(labels)
    stretch = np.concatenate([cells.scale * weights, [_weight(name) for name in contract.shared_columns], [1.0]])
    return {
        "shared": [
            shared.model_dump(mode="json", include={"name", "edges", "categories"}) for shared in contract.shared
        ],
        "label": contract.label.model_dump(mode="json"),
        "codes": codes.tolist(),
        "labels": labels.tolist(),
        "rows": _pooled(cells.rows, group, count).tolist(),
        "sketch": _pooled(raw @ weights, group, count).tolist(),
        "size": _pooled(size, group, count).tolist(),
        "moments": float(stretch @ cells.moments @ stretch),
    }


def regions(cells: Cells) -> tuple[Ints, Ints, Ints]:
    """Codes and label of every cell and of all that begins with the same codes; and per level and cell its region."""
    depth = cells.codes.shape[1]
    levels = np.repeat(cells.codes[None], depth + 1, axis=0)
    for level in range(depth):
        levels[level, :, level:] = ROLLED
    flat = levels.reshape(-1, depth)
    labels = np.tile(cells.labels, depth + 1)
    keys = np.column_stack([flat, labels])
    group = number_rows(keys).reshape(depth + 1, -1)
    for level in range(1, depth + 1):  # a rolled-up cell is the same region at several levels: count it once
        same = (levels[level] == levels[level - 1]).all(axis=1)
        group[level, same] = -1
    first = first_of_each(number_rows(keys))
    return keys[first, :-1], keys[first, -1], group


def _pooled(values: Any, group: Ints, count: int) -> Any:
    flat = np.tile(values, group.shape[0])
    kept = group.ravel() >= 0
    return add_up(flat[kept], group.ravel()[kept], count)


def check_difference(new: Trace, old: Trace, limit: int, *, same_contract: bool, when: str) -> None:
    """Refuse ``new`` if beside ``old`` it gives away fewer rows than the limit."""
    if new["label"] != old["label"]:
        return
    mine, theirs = np.array(new["rows"]), np.array(old["rows"])
    inside, around = contained(new, old), contained(old, new).T
    between = theirs[None, :] - mine[:, None]
    few = (np.abs(between) > 0) & (np.abs(between) < limit)
    if (few & (inside | around)).any():
        raise PolicyRefusal(
            f"Beside the release of {when}, this one would give away the sums of a few rows by subtraction: a cell "
            f"differs from one released before by fewer than {limit} rows. Release again when more rows have changed."
        )
    if same_contract:
        _check_values(new, old, (inside & around) & (between == 0), when)


def _check_values(new: Trace, old: Trace, same: Truths, when: str) -> None:
    mine, theirs = (np.array(side["sketch"]) for side in (new, old))
    slack = _SAME * np.maximum.outer(np.array(new["size"]), np.array(old["size"])) + _SAME
    changed = bool((same & (np.abs(mine[:, None] - theirs[None, :]) > slack)).any())
    if not changed and same.any(axis=1).all() and same.any(axis=0).all():
        largest = max(abs(new["moments"]), abs(old["moments"]), sum(new["size"]))
        changed = abs(new["moments"] - old["moments"]) > _SAME * largest
    if changed:
        raise PolicyRefusal(
            f"Beside the release of {when}, this one would give away how single rows have changed since: values "
            "differ where the number of rows does not. Release again when more rows have come."
        )


def contained(inner: Trace, outer: Trace) -> Truths:
    """Which regions of one release lie inside which of another, of the same label."""
    labels = np.equal.outer(np.array(inner["labels"]), np.array(outer["labels"]))
    for name in {shared["name"] for side in (inner, outer) for shared in side["shared"]}:
        elements = _elements([shared for side in (inner, outer) for shared in side["shared"] if shared["name"] == name])
        within, beyond = _covers(inner, name, elements), _covers(outer, name, elements)
        labels &= within @ (1.0 - beyond).T == 0
    out: Truths = labels
    return out


def _elements(spellings: list[dict[str, Any]]) -> list[Any]:
    """The finest pieces of a shared feature that the contracts tell apart; the last two are missing and all else."""
    edges = sorted({edge for spelled in spellings for edge in spelled["edges"] or ()})
    words = sorted({str(word) for spelled in spellings for word in spelled["categories"] or ()})
    bounds = [-math.inf, *edges, math.inf]
    return [*pairwise(bounds), *words, "missing", "unseen"]


def _covers(side: Trace, name: str, elements: list[Any]) -> Floats:
    """Per region, the elements of a feature it holds; all of them if the contract does not have the feature."""
    held = [at for at, shared in enumerate(side["shared"]) if shared["name"] == name]
    regions = len(side["labels"])
    if not held:
        return np.ones((regions, len(elements)))
    spelled = side["shared"][held[0]]
    rows = np.array([_of_code(code, spelled, elements) for code in range(_count(spelled))])
    codes = np.array(side["codes"], dtype=np.int64).reshape(regions, -1)[:, held[0]]
    return np.where((codes == ROLLED)[:, None], 1.0, rows[codes])


def _count(spelled: dict[str, Any]) -> int:
    return len(spelled["edges"]) + 2 if spelled["edges"] is not None else len(spelled["categories"]) + 2


def _of_code(code: int, spelled: dict[str, Any], elements: list[Any]) -> list[float]:
    if spelled["edges"] is not None:
        bounds = [-math.inf, *spelled["edges"], math.inf]
        if code == len(bounds) - 1:
            return [float(piece == "missing") for piece in elements]
        low, high = bounds[code], bounds[code + 1]
        return [float(isinstance(piece, tuple) and low <= piece[0] and piece[1] <= high) for piece in elements]
    words = [*map(str, spelled["categories"]), "missing"]
    if code < len(words):
        return [float(piece == words[code]) for piece in elements]
    return [float(isinstance(piece, tuple) or piece not in words) for piece in elements]


def _weight(name: str) -> float:
    """A fixed number between 1 and 2 that nobody would guess a column to have."""
    return 1.0 + int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big") / 2**48
