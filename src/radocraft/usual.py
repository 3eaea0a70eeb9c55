"""The value that most rows of a column have, if there is one.

Where half of the rows or more have one value, a sum over a few dozen rows
speaks of the others alone: of how many there are, if they too have one value (a
truth value, however it is spelled), else of what they have. So a tally keeps the
usual value of such a column, and per block how many rows have another.
"""

from __future__ import annotations

import numpy as np

from radocraft.arrays import Floats, Truths


def usual_values(values: Floats) -> Floats:
    """Per column the value that at least half of the present ones are equal to, NaN if there is none.

    Examples
    --------
    >>> usual_values(np.array([[0.0, 1.5, 1.0], [0.0, 2.5, 1.0], [3.0, 3.5, np.nan]]))
    array([ 0., nan,  1.])
    """
    out = np.full(values.shape[1], np.nan)
    for at, column in enumerate(values.T):
        present = column[~np.isnan(column)]
        middle = {(len(present) - 1) // 2, len(present) // 2}
        for value in np.partition(present, sorted(middle))[sorted(middle)] if len(present) else ():
            if np.isfinite(value) and 2 * np.count_nonzero(present == value) >= len(present):
                out[at] = value
    return out


def other_than(values: Floats, usual: Floats) -> Truths:
    """Which values are present and not the usual one."""
    out: Truths = ~np.isnan(values) & (values != usual)
    return out
