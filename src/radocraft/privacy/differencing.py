"""Whether a release, put beside an earlier one of the same table, gives a few rows away.

Two releases that differ by a few rows give those rows' sums by subtraction. So
the ledger keeps of every release how many rows each cell holds and two numbers
that change when any sum or moment does (a fixed random projection, of no use to
anyone else). A new release is compared with each earlier one:

- region by region, where a region is a cell or all cells that begin with the
  same codes: if one release's region lies inside the other's (under the same
  contract, or by another one's bins, categories or labels, whatever it calls the
  column), the rows between them must be none or enough; in a table that has grown,
  under contracts that split it alike, only what is the same region is compared;
- where the contracts tell labels apart differently, or one of them not at all, the
  same for regions of all labels together too;
- where both sum the same columns, a region with as many rows as before must have
  the same sums, and under the same contract, if no region changed, the same moments;
- where all rows are as many as before, so must be the sum of each column that both
  sum, whatever else they do.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from radocraft.arrays import Floats, Ints, Truths, add_up, first_of_each, number_rows
from radocraft.cells import ROLLED, Cells
from radocraft.contract import Contract
from radocraft.encoding import summed_columns
from radocraft.errors import PolicyRefusal
from radocraft.features import UNSEEN, Boolean, Categorical, Numeric
from radocraft.labels import ANY_LABEL
from radocraft.policy.groups import Groups
from radocraft.privacy.splits import Trace, covers, elements, splits

_SAME = 1e-10
_CHANGED = (
    "Beside the release of {}, this one would give away how single rows have changed since: values "
    "differ where the number of rows does not. Release again when more rows have come."
)


def trace(cells: Cells, contract: Contract, groups: Groups) -> Trace:
    """What the ledger keeps of a release to compare later ones with."""
    codes, labels, group = regions(cells)
    weights = np.array([_weight(name) for name in cells.columns])
    raw = cells.sums * cells.scale + cells.present * cells.centre
    reach = np.sqrt(np.maximum(np.diag(cells.moments)[: len(cells.columns)], 0.0) / max(cells.total, 1))
    size = cells.rows * (weights @ (np.abs(cells.scale) * np.maximum(reach, 1.0) + np.abs(cells.centre)))
    count = len(labels)
    stretch = np.concatenate([cells.scale * weights, [_weight(name) for name in contract.shared_columns], [1.0]])
    return {
        "shared": [
            {
                "name": contract.column_of(cells.peer, shared.name),
                **shared.model_dump(mode="json", include={"edges", "categories"}),
            }
            for shared in contract.shared
        ],
        "label": {
            **contract.label.model_dump(mode="json", exclude={"held_by"}),
            "column": contract.column_of(cells.peer, contract.label.column),
        },
        "columns": plain_sums(cells, contract, raw),
        "codes": codes.tolist(),
        "labels": labels.tolist(),
        "rows": _pooled(cells.rows, group, count).tolist(),
        "sketch": _pooled(raw @ weights, group, count).tolist(),
        "size": _pooled(size, group, count).tolist(),
        "moments": float(stretch @ cells.moments @ stretch),
        "groups": groups.written(),
    }


def plain_sums(cells: Cells, contract: Contract, raw: Floats) -> dict[str, float]:
    """The table's sums of numbers, truth values and agreed categories, by the names of the table's own columns."""
    held, out = contract.summed(cells.peer), {}
    for column, total in zip(summed_columns(contract, cells.peer), raw.sum(axis=0).tolist(), strict=True):
        kind, name = held[column.feature], contract.column_of(cells.peer, column.feature)
        if isinstance(kind, Categorical) and not column.name.endswith(f"={UNSEEN}"):
            out[f"{name}{column.name.removeprefix(column.feature)}"] = total
        if isinstance(kind, Numeric | Boolean):
            out[name] = total
    return out


def regions(cells: Cells) -> tuple[Ints, Ints, Ints]:
    """Codes and label of every cell and of all that begins with the same codes; and per level and cell its region."""
    depth = cells.codes.shape[1]
    levels = np.repeat(cells.codes[None], depth + 1, axis=0)
    for level in range(depth):
        levels[level, :, level:] = ROLLED
    flat = levels.reshape((depth + 1) * len(cells.labels), depth)
    labels = np.tile(cells.labels, depth + 1)
    keys = np.column_stack([flat, labels])
    group = number_rows(keys).reshape(depth + 1, -1)
    for level in range(1, depth + 1):  # a rolled-up cell is the same region at several levels: count it once
        same = (levels[level] == levels[level - 1]).all(axis=1)
        group[level, same] = -1
    first = first_of_each(number_rows(keys))
    return keys[first, :-1], keys[first, -1], group


def cells_of(side: Trace) -> tuple[Ints, Ints, Ints]:
    """Codes, label and rows of the cells of a release: of each region, the rows that are in none of its own regions."""
    codes = np.array(side["codes"], dtype=np.int64).reshape(len(side["labels"]), len(side["shared"]))
    labels, rows = np.array(side["labels"], dtype=np.int64), np.array(side["rows"], dtype=np.int64)
    depth = (codes != ROLLED).sum(axis=1)
    around = codes.copy()
    around[depth > 0, depth[depth > 0] - 1] = ROLLED
    number = number_rows(np.column_stack([np.vstack([codes, around]), np.tile(labels, 2)]))
    own, parent = number[: len(labels)], number[len(labels) :]
    inside = np.zeros(number.max() + 1, dtype=np.int64)
    np.add.at(inside, parent[depth > 0], rows[depth > 0])
    left = rows - inside[own]
    return codes[left > 0], labels[left > 0], left[left > 0]


def _pooled(values: Any, group: Ints, count: int) -> Any:
    flat = np.tile(values, group.shape[0])
    kept = group.ravel() >= 0
    return add_up(flat[kept], group.ravel()[kept], count)


def check_difference(new: Trace, old: Trace, limit: int, *, same_contract: bool, when: str) -> None:
    """Refuse ``new`` if beside ``old`` it gives away fewer rows than the limit."""
    if (new["label"], {*new["labels"]}) != (old["label"], {*old["labels"]}):
        _check_rows(with_any_label(new), with_any_label(old), limit, when)
    else:
        same = _check_rows(new, old, limit, when)
        if {*new["columns"]} == {*old["columns"]}:
            _check_values(new, old, same, when, moments=same_contract)
    _check_sums(new, old, when)


def with_any_label(side: Trace) -> Trace:
    """A release's regions, and those of all labels together."""
    pooled = any_label(side)
    more = {name: [*side[name], *pooled[name]] for name in ("codes", "labels", "rows")}
    return {**side, **more}


def any_label(side: Trace) -> Trace:
    """The regions of all labels together, with nothing but their rows."""
    codes = np.array(side["codes"], dtype=np.int64).reshape(len(side["labels"]), -1)
    group = number_rows(codes)
    first = first_of_each(group)
    return {
        "codes": codes[first].tolist(),
        "labels": [ANY_LABEL] * len(first),
        "rows": add_up(np.array(side["rows"]), group, len(first)).tolist(),
    }


def _check_rows(new: Trace, old: Trace, limit: int, when: str) -> Truths:
    """Refuse regions that differ by a few rows; gives the pairs that are the same region with as many rows."""
    mine, theirs = np.array(new["rows"]), np.array(old["rows"])
    inside, around = contained(new, old), contained(old, new).T
    between = theirs[None, :] - mine[:, None]
    few = (np.abs(between) > 0) & (np.abs(between) < limit)
    if (few & ((inside & around) if _grown(new, old) else (inside | around))).any():
        raise PolicyRefusal(
            f"Beside the release of {when}, this one would give away the sums of a few rows by subtraction: a cell "
            f"differs from one released before by fewer than {limit} rows. Release again when more rows have changed."
        )
    return np.asarray((inside & around) & (between == 0))


def _grown(new: Trace, old: Trace) -> bool:
    """Whether cells can be compared as they are: spelled alike, in a table that has grown; see `joint.growth`."""
    alike = all(new[name] == old[name] for name in ("shared", "label")) and "groups" in new and "groups" in old
    return alike and _whole(new) != _whole(old)


def _whole(side: Trace) -> int:
    """Rows in all: those of the largest region of all labels."""
    return int(np.max(any_label(side)["rows"]))


def _check_values(new: Trace, old: Trace, same: Truths, when: str, *, moments: bool) -> None:
    mine, theirs = (np.array(side["sketch"]) for side in (new, old))
    slack = _SAME * np.maximum.outer(np.array(new["size"]), np.array(old["size"])) + _SAME
    changed = bool((same & (np.abs(mine[:, None] - theirs[None, :]) > slack)).any())
    if not changed and moments and same.any(axis=1).all() and same.any(axis=0).all():
        largest = max(abs(new["moments"]), abs(old["moments"]), sum(new["size"]))
        changed = abs(new["moments"] - old["moments"]) > _SAME * largest
    if changed:
        raise PolicyRefusal(_CHANGED.format(when))


def _check_sums(new: Trace, old: Trace, when: str) -> None:
    """Refuse if both have as many rows in all, and a column that both sum has another sum."""
    size = _SAME * max(sum(new["size"]), sum(old["size"])) + _SAME
    common = {*new["columns"]} & {*old["columns"]}
    if _whole(new) == _whole(old) and any(abs(new["columns"][name] - old["columns"][name]) > size for name in common):
        raise PolicyRefusal(_CHANGED.format(when))


def contained(inner: Trace, outer: Trace) -> Truths:
    """Which regions of one release lie inside which of another."""
    out: Truths = np.ones((len(inner["labels"]), len(outer["labels"])), dtype=bool)
    sides = splits(inner), splits(outer)
    for name in {*sides[0], *sides[1]}:
        pieces = elements([side[name][0] for side in sides if name in side])
        within, beyond = (
            covers(*side[name], pieces) if name in side else np.ones((count, len(pieces)))
            for side, count in zip(sides, out.shape, strict=True)
        )
        out &= within @ (1.0 - beyond).T == 0
    return out


def _weight(name: str) -> float:
    """A fixed number between 1 and 2 that nobody would guess a column to have."""
    return 1.0 + int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big") / 2**48
