"""Counts by bin: bins with too few rows join their neighbours.

A histogram is a row of cells, so each of its bins holds no row or enough. Bins
lie on a grid that follows from the model alone; where they are joined depends
on which counts were too small, never on a row's value.
"""

from __future__ import annotations

from radocraft.arrays import Ints


def joined_bins(counts: Ints, limit: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where the joined bins start, and their counts, none under the limit; nothing if all of them together are.

    Examples
    --------
    >>> import numpy as np
    >>> joined_bins(np.array([0, 4, 9, 1, 30, 2, 0]), 10)
    ((0, 3), (13, 33))
    >>> joined_bins(np.array([0, 4]), 10)
    ((), ())
    """
    if counts.sum() < limit:
        return (), ()
    starts, sums, gathered = [0], [], 0
    for at, count in enumerate(counts.tolist()):
        if gathered >= limit:
            sums.append(gathered)
            starts.append(at)
            gathered = 0
        gathered += count
    if gathered < limit and sums:
        starts.pop()
        gathered += sums.pop()
    return tuple(starts), (*sums, gathered)
