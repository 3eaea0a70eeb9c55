"""Arrays: names for their types, and adding rows up by group."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Truths: TypeAlias = NDArray[np.bool_]

Numbers = TypeVar("Numbers", Floats, Ints)
_LARGEST = 2**62


def number_rows(rows: Ints) -> Ints:
    """Give equal rows the same number, unequal rows different ones, in lexicographic order.

    Numbers run from 0 and leave none out.

    Examples
    --------
    >>> number_rows(np.array([[2, 0], [1, 5], [2, 0]]))
    array([1, 0, 1])
    """
    number, size = np.zeros(len(rows), dtype=np.int64), 1
    for column in rows.T if len(rows) else []:
        low = int(column.min())
        width = int(column.max()) - low + 1
        if size * width > _LARGEST:
            number, size = _compact(number)
        number, size = number * width + (column - low), size * width
    return _compact(number)[0]


def _compact(numbers: Ints) -> tuple[Ints, int]:
    distinct, place = np.unique(numbers, return_inverse=True)
    return place.astype(np.int64), len(distinct)


def first_of_each(number: Ints) -> Ints:
    """The position of the first row of every group of `number_rows`."""
    return np.unique(number, return_index=True)[1].astype(np.int64)


def add_up(values: Numbers, group: Ints, groups: int) -> Numbers:
    """Sum the rows of ``values`` by group.

    Examples
    --------
    >>> add_up(np.array([1, 2, 3]), np.array([1, 0, 1]), 2)
    array([2, 4])
    """
    member = csr_array(
        (np.ones(len(group), dtype=values.dtype), (group, np.arange(len(group)))), shape=(groups, len(group))
    )
    out: Numbers = member @ values
    return out
