"""Assigning rows to folds by their content alone.

A row's lot is a number mixed from all of its features. Within a stratum (a label, at a
signature that has enough rows of it) the lots in rising order are cut into as many runs as there
are folds; a row belongs to the run in which its lot lies. So folds are even within
strata, do not depend on the order of rows, and a row that comes later has a fold too: the
model of that fold has seen no row with such a lot, old or new.

Rows that are equal in all features have one lot. That is right where they tell of one
person: dealt into different folds they would give the person's label away. Where a
table has few columns with few values, equal rows are many people, and are distinguished by
their number. With a column that says whose a row is, its value alone is the lot.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from radocraft.arrays import Floats, Ints

Lots = NDArray[np.uint64]
_GOLDEN = 0x9E3779B97F4A7C15
_MANY = 2


def mixed(numbers: Lots) -> Lots:
    """Every number replaced by one that looks drawn by lot (the finaliser of SplitMix64)."""
    out = numbers + np.uint64(_GOLDEN)
    out = (out ^ (out >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    out = (out ^ (out >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(out ^ (out >> np.uint64(31)))


def lots(matrix: Floats, seed: int) -> Lots:
    """One lot per row of a matrix; missing values are all alike, and so are 0 and -0.

    Examples
    --------
    >>> one, other, same = lots(np.array([[1.0, np.nan], [1.0, 0.0], [1.0, -0.0]]), seed=0).tolist()
    >>> one == other, other == same
    (False, True)
    """
    out = np.full(len(matrix), seed, dtype=np.uint64)
    for column in matrix.T:
        values = np.where(np.isnan(column), np.nan, column + 0.0)
        out = mixed(out ^ mixed(values.view(np.uint64)))
    return out


def lots_of_text(column: pa.Array, seed: int) -> Lots:
    """One lot per text; 0 where it is missing."""
    words = column.cast(pa.string()).dictionary_encode()
    each = [
        hashlib.blake2b(word.encode(), digest_size=8, key=seed.to_bytes(8)).digest()
        for word in words.dictionary.to_pylist()
    ]
    numbers = np.array([*(int.from_bytes(digest) | 1 for digest in each), 0], dtype=np.uint64)
    return np.asarray(numbers[words.indices.fill_null(len(each)).to_numpy(zero_copy_only=False)])


def occurrences(number: Lots) -> Ints:
    """How many equal numbers stand before each.

    Examples
    --------
    >>> occurrences(np.array([7, 5, 7, 7], dtype=np.uint64))
    array([0, 0, 1, 2])
    """
    order = np.argsort(number, kind="stable")
    ranked = number[order]
    first = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]])) if len(ranked) else np.zeros(0, int)
    size = np.diff(np.append(first, len(ranked)))
    out = np.empty(len(number), dtype=np.int64)
    out[order] = np.arange(len(number)) - np.repeat(first, size)
    return out


@dataclass(frozen=True)
class Deal:
    """How rows are dealt.

    Parameters
    ----------
    folds
        Into how many.
    strata
        The strata that are cut by themselves, rising; the last rows of `cuts` are for others, by label.
    cuts
        Per stratum, where each run but the first begins.
    """

    folds: int
    strata: Ints
    cuts: Lots

    @classmethod
    def of(cls, lot: Lots, strata: Ints, labels: Ints, count: int, folds: int) -> Deal:
        """Even folds for these rows; ``labels`` are numbers from 0 below ``count``, ``strata`` finer than these."""
        known, size = np.unique(strata, return_counts=True)
        alone = known[size >= _MANY * folds]
        own = np.searchsorted(alone, strata)
        is_alone = np.isin(strata, alone)
        place = np.where(is_alone, own, len(alone) + labels)
        cuts = np.empty((len(alone) + count, folds - 1), dtype=np.uint64)
        order = np.lexsort((lot, place))
        starts = np.searchsorted(place[order], np.arange(len(cuts) + 1))
        everywhere = _cut(np.sort(lot), folds)
        for index, (start, end) in enumerate(itertools.pairwise(starts.tolist())):
            ranked = lot[order[start:end]]
            cuts[index] = _cut(ranked, folds) if len(ranked) else everywhere
        return cls(folds, alone.astype(np.int64), cuts)

    def fold(self, lot: Lots, strata: Ints, labels: Ints) -> Ints:
        """The fold of each row."""
        stratum = np.searchsorted(self.strata, strata).clip(max=max(len(self.strata) - 1, 0))
        alone = self.strata[stratum] == strata if len(self.strata) else np.zeros(len(strata), dtype=bool)
        place = np.where(alone, stratum, len(self.strata) + labels)
        runs = (lot[:, None] >= self.cuts[place]).sum(axis=1)
        return np.asarray(runs, dtype=np.int64)


def _cut(ranked: Lots, folds: int) -> Lots:
    cuts = (np.arange(1, folds) * len(ranked)) // folds
    return ranked[cuts]


def equal_rows_are_one(matrix: Floats, numbers: list[bool], lot: Lots) -> bool:
    """Whether rows with equal features are taken to tell of one person; see the module.

    So it is where equal rows are few, or where some column of numbers distinguishes rows
    about as well as all columns together.
    """
    different = len(np.unique(lot))
    if different * 3 >= len(lot):
        return True
    widest = max((len(np.unique(matrix[:, index])) for index, is_number in enumerate(numbers) if is_number), default=0)
    return different > 50 and widest * 3 >= different * 2


def strata_of(signatures: Ints, labels: Ints, count: int) -> Ints:
    """A number for every signature and label; ``labels`` from 0, below ``count``."""
    return signatures * count + labels


def canonical_order(*columns: Any) -> Ints:
    """The order of rows by these columns, the first first; the same whatever order they came in."""
    return np.lexsort(columns[::-1])
