"""Whether a small group of rows can be worked out from all that is released.

Everything released about numbers of rows is linear in the unknown numbers of
the exact blocks, everything about the sums of a column is linear in the unknown
sums of the blocks, and both by the same groups. Let the rows of A be the
indicators of the released groups. A group with indicator t is determined by
linear algebra exactly if t lies in the row space of A, that is if t is at right
angles to every vector of A's null space. One random vector of the null space
decides that for all groups at once: almost surely it is at right angles to t
only if the whole null space is.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.sparse.linalg import lsmr
from scipy.spatial import cKDTree

from radocraft.arrays import Floats, Ints, Truths, number_rows

_DENSE = 1500
_TOLERANCE = 1e-6
_ALL_SUBSETS = 4
_TRIPLES = 400


def indicators(group: Ints, blocks: int) -> csr_array:
    """One row per group; blocks numbered -1 belong to none."""
    inside = np.flatnonzero(group >= 0)
    shape = (int(group.max(initial=-1)) + 1, blocks)
    return csr_array((np.ones(len(inside)), (group[inside], inside)), shape=shape)


def determined(released: list[csr_array], targets: list[Ints]) -> list[Truths]:
    """Which groups follow from what is released, for each partition of the blocks into groups (-1 for none).

    Examples
    --------
    >>> total, margin = indicators(np.array([0, 0, 0]), 3), indicators(np.array([0, 0, -1]), 3)
    >>> [group.tolist() for group in determined([total, margin], [np.array([0, 1, 2])])]
    [[False, False, True]]
    """
    hidden = null_vectors(stacked(released))
    return [follows(indicators(group, len(group)), hidden) for group in targets]


def determined_few(released: list[csr_array], rows: Ints, limit: int) -> Ints:
    """Blocks that with one or two others make a group of fewer rows than the limit that follows from what is released.

    Where small blocks are very many, only pairs are looked for.

    Examples
    --------
    >>> released = [indicators(np.array([0, 1, 1]), 3)]
    >>> determined_few(released, np.array([9, 2, 3]), 10).tolist()
    [1, 2]
    """
    small = np.flatnonzero(rows < limit)
    if len(small) < 2:
        return small[:0]
    left, right = pairs_of(len(small))
    near = rows[small[left]] + rows[small[right]] < limit
    found = unions(null_vectors(stacked(released))[:, small], (left[near], right[near]))
    few = [one for one in found if rows[small[one]].sum() < limit]
    return np.unique(small[np.array([at for one in few for at in one], dtype=np.int64)])


def stacked(released: list[csr_array]) -> csr_array:
    """Everything released as one system."""
    return vstack([row for row in released if row.shape[0]]).tocsr()


def follows(groups: csr_array, hidden: Floats) -> Truths:
    """Which groups, given by their indicators, are at right angles to the null vectors."""
    size = np.sqrt(np.maximum(groups.sum(axis=1), 1))
    out: Truths = np.abs(groups @ hidden.T).max(axis=1, initial=0.0) / size < _TOLERANCE
    return out


def unions(hidden: Floats, pairs: tuple[Ints, Ints]) -> list[list[int]]:
    """Two blocks, or one of the pairs and a third, that make a group which follows; by the blocks' null vectors."""
    points, found = hidden.T, []
    tree = cKDTree(points)
    for groups in (np.arange(len(points))[:, None], np.column_stack(pairs)):
        near = tree.query_ball_point(-points[groups].sum(axis=1), _TOLERANCE)
        found += [
            [*group, last]
            for group, lasts in zip(groups.tolist(), near, strict=True)
            for last in lasts
            if last not in group
        ]
    return found


def pairs_of(count: int) -> tuple[Ints, Ints]:
    """All pairs of blocks; none where blocks are very many."""
    left, right = np.triu_indices(count if count <= _TRIPLES else 0, 1)
    return left.astype(np.int64), right.astype(np.int64)


def null_vectors(system: csr_array) -> Floats:
    """Two random vectors whose released numbers are all 0, one per row."""
    start = np.random.default_rng(0).normal(size=(2, system.shape[1])).T
    return np.asarray(start - solved(system, system @ start)).T


def solved(system: csr_array, numbers: Floats) -> Floats:
    """For every column of numbers the smallest vector that has them, or comes nearest where they do not go together."""
    if system.shape[1] <= _DENSE:
        return np.asarray(np.linalg.lstsq(system.toarray(), numbers, rcond=1e-9)[0])
    most = 20 * min(system.shape)
    return np.column_stack([lsmr(system, one, atol=1e-13, btol=1e-13, maxiter=most)[0] for one in numbers.T])


def natural_groups(codes: Ints, labels: Ints) -> Iterator[Ints]:
    """Every way to group blocks by some of the shared features, with and without the label.

    With many features, by one, by two and by all of them.
    """
    count = codes.shape[1]
    sizes = range(count + 1) if count <= _ALL_SUBSETS else (0, 1, 2, count)
    for size in sizes:
        for picked in combinations(range(count), size):
            keys = codes[:, list(picked)]
            yield number_rows(np.column_stack([keys, labels]))
            yield number_rows(np.column_stack([keys, np.zeros_like(labels)]))
