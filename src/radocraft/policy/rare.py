"""Private columns that only a handful of rows fill.

A category of few rows, the rarer side of a truth value, the product of a number
with such a category: their sums and moments are those few rows'. They are
merged with their neighbours before anything is released.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from radocraft.arrays import Floats, Ints
from radocraft.contract import Contract
from radocraft.encoding import private_columns
from radocraft.features import Boolean, Categorical, Feature, Interact
from radocraft.policy.pairs import filled, hide_small
from radocraft.tally import Tally


def without_rare(tally: Tally, contract: Contract, limit: int) -> tuple[Tally, list[str]]:
    """The tally with rare categories counted as unseen (or as the largest), and rare truth values as the other.

    The notes say which, without a count.
    """
    tally = plain_units(tally, contract)
    width = len(tally.columns)
    change = np.eye(2 * width)
    notes = []
    for feature, where in columns_by_feature(tally, contract).items():
        kind = contract.peers[tally.peer].features[feature]
        if isinstance(kind, Categorical):
            rare, target = rare_categories(tally, where, limit)
            change[rare] = 0.0
            change[target, rare] = 1.0
            notes += [f"'{tally.columns[at]}' is rare: counted as '{tally.columns[target]}'" for at in rare]
        if isinstance(kind, Boolean) and (usual := one_sided(tally, where[0], limit)) is not None:
            change[where[0]] = 0.0
            change[where[0], width + where[0]] = usual
            notes.append(f"'{feature}' has one value but for a few rows: taken as constant")
        if isinstance(kind, Interact):
            total = support(tally, contract)[:, where].sum(axis=0)
            thin = [at for at, rows in zip(where, total, strict=True) if 0 < rows < limit]
            change[thin] = 0.0
            notes += [f"'{tally.columns[at]}' is rare: left out" for at in thin]
    if not notes:
        return tally, notes
    sums = np.hstack([tally.sums, tally.present]) @ change[:width].T
    return replace(tally, sums=sums, moments=change @ tally.moments @ change.T), notes


def without_small_pairs(tally: Tally, contract: Contract, limit: int) -> Tally:
    """The tally, in plain units, with small counts in tables of two private categories hidden.

    The moment of two indicators is the number of rows that have both. Where such
    a number is small it is hidden, with as many others as it takes, and filled in
    as if the two features were unrelated; see `pairs`.
    """
    moments, width = tally.moments.copy(), len(tally.columns)
    held = contract.peers[tally.peer].features
    features = [where for name, where in columns_by_feature(tally, contract).items() if _is_indicator(held[name])]
    for one, other in combinations(features, 2):
        left, right = _as_categories(one, width), _as_categories(other, width)
        table = np.rint(left @ tally.moments @ right.T)
        hidden = hide_small(table, limit)
        if hidden.any():
            guess = np.outer(table.sum(axis=1), table.sum(axis=0))
            change = (filled(table, hidden, guess) - table)[-len(one) :, -len(other) :]
            moments[np.ix_(one, other)] += change
            moments[np.ix_(other, one)] += change.T
    return replace(tally, moments=moments)


def _is_indicator(kind: Feature) -> bool:
    return isinstance(kind, Categorical | Boolean)


def _as_categories(where: list[int], width: int) -> Floats:
    """Rows that turn (values, present) into indicators: of every category, or of false and true."""
    if len(where) == 1:
        picked = np.zeros((2, 2 * width))
        picked[0, [where[0], width + where[0]]] = -1.0, 1.0
        picked[1, where[0]] = 1.0
        return picked
    picked = np.zeros((len(where), 2 * width))
    picked[np.arange(len(where)), where] = 1.0
    return picked


def plain_units(tally: Tally, contract: Contract) -> Tally:
    """The tally with indicators and products kept as they are, so that sums of indicators are counts."""
    origin, unit = tally.origin.copy(), tally.unit.copy()
    for feature, where in columns_by_feature(tally, contract).items():
        if isinstance(contract.peers[tally.peer].features[feature], Categorical | Boolean | Interact):
            origin[where], unit[where] = 0.0, 1.0
    return tally.rebased(origin, unit)


def columns_by_feature(tally: Tally, contract: Contract) -> dict[str, list[int]]:
    """Where each private feature's columns stand."""
    out: dict[str, list[int]] = {}
    for at, column in enumerate(private_columns(contract, tally.peer)):
        out.setdefault(column.feature, []).append(at)
    return out


def rare_categories(tally: Tally, where: list[int], limit: int) -> tuple[list[int], int]:
    """Columns of a categorical feature that too few rows have, and the column to count them in."""
    counts = np.rint(tally.sums[:, where].sum(axis=0)).astype(np.int64)
    rare = [at for at, count in zip(where, counts, strict=True) if 0 < count < limit]
    unseen = where[-1]
    if not rare:
        return [], unseen
    pooled = sum(int(counts[where.index(at)]) for at in {*rare, unseen})
    target = unseen if pooled >= limit else where[int(np.argmax(counts))]
    return [at for at in rare if at != target], target


def one_sided(tally: Tally, at: int, limit: int) -> float | None:
    """The usual value of a truth column, if too few rows have the other."""
    true = round(float(tally.sums[:, at].sum()))
    false = int(tally.present[:, at].sum()) - true
    if 0 < true < limit <= false:
        return 0.0
    return 1.0 if 0 < false < limit <= true else None


def support(tally: Tally, contract: Contract) -> Ints:
    """Per block and private column: rows whose value can differ from 0, of a tally in plain units.

    Present values for most columns. A product with a category or a shared code
    is 0 outside it, so its sum is a sum over the rows inside.
    """
    out = tally.present.copy()
    one_hot = {
        column: (tally.codes[:, at] == code) * tally.rows
        for at, shared in enumerate(contract.shared)
        if shared.encoding == "one-hot"
        for code, column in enumerate(shared.encoded)
    }
    for feature, where in columns_by_feature(tally, contract).items():
        if isinstance(contract.peers[tally.peer].features[feature], Categorical):
            one_hot |= {tally.columns[at]: np.rint(tally.sums[:, at]).astype(np.int64) for at in where}
    for feature, where in columns_by_feature(tally, contract).items():
        if isinstance(contract.peers[tally.peer].features[feature], Interact):
            for at in where:
                for factor in tally.columns[at].split(" * "):
                    out[:, at] = np.minimum(out[:, at], one_hot.get(factor, tally.rows))
    return out
