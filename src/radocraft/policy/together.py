"""Moments of two private columns that stand on few rows.

The moment of two indicators is the number of rows that have both. That of a
number with a usual value and an indicator is a sum over the rows that have
another value and the indicator; of two such numbers, over the rows where
neither has its usual value (values count from the usual one, whose own sums are
known). Where these are few the moment is hidden, with as many others as it takes
that it does not come back by subtraction, and filled in as if the two columns were
unrelated.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array

from radocraft.arrays import Floats, Ints, Truths
from radocraft.contract import Contract
from radocraft.features import Categorical
from radocraft.policy.pairs import filled, hide_small, hide_small_sums
from radocraft.policy.rare import columns_by_feature, truths
from radocraft.tally import Tally


def without_small_pairs(tally: Tally, contract: Contract, limit: int) -> Tally:
    """The tally, in plain units, with moments of two private columns that stand on few rows hidden."""
    held, told, counts = contract.summed(tally.peer), truths(tally, contract), in_common(tally)
    features = columns_by_feature(tally, contract).items()
    categories = [np.array(where) for feature, where in features if isinstance(held[feature], Categorical)]
    numbers = ~np.isnan(tally.usual) & ~told
    for where in categories:
        numbers[where] = False
    tally = without_few_rows(tally, counts, [*categories, *np.flatnonzero(told)[:, None]], limit)
    if not numbers.any():
        return tally
    for where in categories:
        tally = without_few_of_a_category(tally, counts, numbers, where, limit)
    return without_few_in_common(tally, counts, numbers, told, limit)


def in_common(tally: Tally) -> Floats:
    """In how many rows two columns have, or have not, their usual values; lines are (usual, others)."""
    width, lines = len(tally.columns), tally.lines
    usual = np.where(lines[:, None] >= 0, np.eye(len(tally.moments))[lines], 0.0)
    both = csr_array(np.vstack([usual, np.eye(width, len(tally.moments), k=width) - usual]))
    out: Floats = np.rint(both @ tally.moments @ both.T)
    return out


def without_few_rows(tally: Tally, counts: Floats, features: list[Ints], limit: int) -> Tally:
    """The tally with small counts hidden in tables of two categories or truth values; see `pairs`."""
    moments, width = tally.moments.copy(), len(tally.columns)
    for one, other in combinations(features, 2):
        sides = [width + at if len(at) > 1 else np.append(at, width + at) for at in (one, other)]
        table = counts[np.ix_(*sides)]
        hidden = hide_small(table, limit)
        if hidden.any():
            guess = np.outer(table.sum(axis=1), table.sum(axis=0))
            change = (filled(table, hidden, guess) - table)[-len(one) :, -len(other) :]
            moments[np.ix_(one, other)] += change
            moments[np.ix_(other, one)] += change.T
    return replace(tally, moments=moments)


def without_few_of_a_category(tally: Tally, counts: Floats, numbers: Truths, where: Ints, limit: int) -> Tally:
    """The tally with a number's sums by category hidden where few rows of the category have not the usual value.

    The hidden ones share their total as they share rows.
    """
    moments, width, rows = tally.moments.copy(), len(tally.columns), tally.others[:, where].sum(axis=0)
    for at in np.flatnonzero(numbers):
        hidden = hide_small_sums(counts[width + at, width + where], limit)
        if hidden.any():
            own, columns = np.array([at, width + at]), where[hidden]
            total = tally.moments[np.ix_(own, columns)].sum(axis=1)
            moments[np.ix_(own, columns)] = np.outer(total, rows[hidden] / rows[hidden].sum())
            moments[np.ix_(columns, own)] = moments[np.ix_(own, columns)].T
    return replace(tally, moments=moments)


def without_few_in_common(tally: Tally, counts: Floats, numbers: Truths, told: Truths, limit: int) -> Tally:
    """The tally with a number's moment with another, or with a truth value, hidden where few rows are behind it."""
    width, small = len(tally.columns), (counts > 0.5) & (counts < limit - 0.5)
    few = np.logical_and.outer(numbers, numbers | told) & small[width:, width:]
    few |= np.logical_and.outer(numbers, told) & small[width:, :width]
    few |= few.T
    np.fill_diagonal(few, val=False)
    total = np.concatenate([tally.sums.sum(axis=0), tally.present.sum(axis=0)])
    moments, here = tally.moments.copy(), np.tile(few, (2, 2))
    moments[: 2 * width, : 2 * width][here] = (np.outer(total, total) / tally.total)[here]
    return replace(tally, moments=moments)
