"""The value that most rows of a column have, if there is one, and the next.

Where half of the rows or more have one value, a sum over a few dozen rows
speaks of the others alone: of how many there are, if they too have one value (a
truth value, however it is spelled), else of what they have. So a tally keeps the
usual value of such a column, and per block how many rows have another.

A column of three values tells by its sum and its sum of squares how many rows
have each. So of a column of few values the next one is kept too, and how many
rows have it; the third is then the rest.
"""

from __future__ import annotations

import numpy as np

from radocraft.arrays import Floats, Ints, Truths

_FEW = 3
_GLANCE = 50


def usual_values(values: Floats) -> Floats:
    """Per column the value that at least half of the present ones are equal to, NaN if there is none.

    Of three values it is the commonest, if the rarest has at most a fifth of the rows.

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
        if np.isnan(out[at]) and (few := few_values(present)) and 5 * few[1][:2].sum() >= 4 * len(present):
            out[at] = few[0][0]
    return out


def next_values(values: Floats, usual: Floats) -> Floats:
    """Per column of two or three values with a usual one the commonest of the others, NaN for other columns.

    Examples
    --------
    >>> next_values(np.array([[0.0, 1.5], [0.0, 2.5], [0.0, 3.5], [7.0, 4.5]]), np.array([0.0, np.nan]))
    array([ 7., nan])
    """
    out = np.full(values.shape[1], np.nan)
    for at in np.flatnonzero(~np.isnan(usual)):
        if few := few_values(values[~np.isnan(values[:, at]), at]):
            out[at] = next((value for value in few[0] if value != usual[at]), np.nan)
    return out


def few_values(present: Floats) -> tuple[Floats, Ints] | None:
    """The values there are, commonest first, and how many rows have each; None if there are none, or many."""
    if not 0 < len(np.unique(present[:_GLANCE])) <= _FEW:
        return None
    found, rows = np.unique(present, return_counts=True)
    if len(found) > _FEW or not np.isfinite(found).all():
        return None
    order = np.argsort(-rows, kind="stable")
    return found[order], rows[order]


def other_than(values: Floats, usual: Floats) -> Truths:
    """Which values are present and not the usual one."""
    out: Truths = ~np.isnan(values) & (values != usual)
    return out
