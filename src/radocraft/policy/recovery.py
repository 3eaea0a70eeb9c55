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
    system = vstack([row for row in released if row.shape[0]]).tocsr()
    rng = np.random.default_rng(0)
    hidden = np.array([null_vector(system, rng) for _ in range(2)])
    out = []
    for group in targets:
        inside, groups = group >= 0, int(group.max(initial=-1)) + 1
        size = np.sqrt(np.maximum(np.bincount(group[inside], minlength=groups), 1))
        seen = [np.abs(np.bincount(group[inside], vector[inside], groups)) / size for vector in hidden]
        out.append(np.max(seen, axis=0) < _TOLERANCE)
    return out


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
    system = vstack([row for row in released if row.shape[0]]).tocsr()
    rng = np.random.default_rng(0)
    points = np.array([null_vector(system, rng)[small] for _ in range(2)]).T
    tree, found = cKDTree(points), []
    for groups in (np.arange(len(small))[:, None], _pairs(rows[small], limit)):
        near = tree.query_ball_point(-points[groups].sum(axis=1), _TOLERANCE)
        whole = [[*group, last] for group, lasts in zip(groups.tolist(), near, strict=True) for last in lasts]
        found += [one for one in whole if len({*one}) == len(one) and rows[small[one]].sum() < limit]
    return np.unique(small[np.array([at for one in found for at in one], dtype=np.int64)])


def _pairs(rows: Ints, limit: int) -> Ints:
    """Pairs of blocks with fewer rows than the limit together; none where blocks are very many."""
    if len(rows) > _TRIPLES:
        return np.empty((0, 2), dtype=np.int64)
    left, right = np.triu_indices(len(rows), 1)
    return np.column_stack([left, right])[rows[left] + rows[right] < limit]


def null_vector(system: csr_array, rng: np.random.Generator) -> Floats:
    """A random vector whose released numbers are all 0."""
    start = rng.normal(size=system.shape[1])
    if system.shape[1] <= _DENSE:
        _, values, right = np.linalg.svd(system.toarray(), full_matrices=False)
        basis = right[values > 1e-9 * values.max(initial=1.0)]
        out: Floats = start - basis.T @ (basis @ start)
        return out
    solved = lsmr(system, system @ start, atol=1e-13, btol=1e-13, maxiter=20 * min(system.shape))[0]
    return np.asarray(start - solved)


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
