"""Cubic splines with straight tails, as sums of terms an engine can compute.

Between the first and the last knot the curve is made of cubic pieces that meet
smoothly; beyond them it goes on straight. With ``t`` the place between the outer
knots (0 to 1), ``u`` the same held to that range and ``r = t - u``, the terms are

    1,  t,  u^2 + 2 u r,  u^3 + 3 u^2 r,  and for every inner knot  h^3 + 3 h^2 r,  h = max(u - knot, 0)

and the columns of the model are B-splines, fixed combinations of these terms:
each is felt in its own part of the range, which suits ridge better than the
bare terms. The last B-spline is left out, since all of them add up to 1.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from radocraft.arrays import Floats

Knots = tuple[float, ...]
_DEGREE = 3


def terms(values: Floats, knots: Knots) -> Floats:
    """The terms above, one column each."""
    low, high = knots[0], knots[-1]
    t = (values - low) / (high - low)
    u = np.clip(t, 0.0, 1.0)
    r = t - u
    columns = [np.ones_like(t), t, u**2 + 2 * u * r, u**3 + 3 * u**2 * r]
    for knot in knots[1:-1]:
        h = np.maximum(u - (knot - low) / (high - low), 0.0)
        columns.append(h**3 + 3 * h**2 * r)
    return np.column_stack(columns)


@lru_cache(maxsize=1024)
def combinations(knots: Knots) -> Floats:
    """How the B-splines (columns) are made of the terms (rows).

    Examples
    --------
    >>> knots = (0.0, 1.0, 3.0)
    >>> combinations(knots).shape
    (5, 4)
    """
    from scipy.interpolate import BSpline  # noqa: PLC0415 - slow to import, and few contracts have splines

    inner = _DEGREE * [knots[0]] + list(knots) + _DEGREE * [knots[-1]]
    count = len(knots) + _DEGREE - 1
    points = np.linspace(knots[0], knots[-1], 16 * count)
    points = np.unique(np.concatenate([points, *(np.linspace(a, b, 8) for a, b in pairwise(knots))]))
    wanted = BSpline.design_matrix(points, np.array(inner), _DEGREE).toarray()[:, : count - 1]
    made: Floats = np.linalg.lstsq(terms(points, knots), wanted, rcond=None)[0].astype(np.float64)
    return np.where(np.abs(made) < 1e-12, 0.0, made)


@lru_cache(maxsize=1024)
def spline_units(knots: Knots) -> list[tuple[float, float]]:
    """Mean and deviation of each column, rounded, if as many rows lie between any two neighbouring knots.

    Examples
    --------
    >>> spline_units((0.0, 1.0, 3.0))
    [(0.125, 0.2362), (0.3194, 0.2546), (0.2361, 0.1674), (0.1944, 0.197)]
    """
    if len(knots) < 2:
        return [(knots[0], abs(knots[0]) or 1.0)] if knots else []
    nodes, weights = np.polynomial.legendre.leggauss(4)  # exact for the squares of cubic pieces
    points = np.concatenate([low + (high - low) * (nodes + 1) / 2 for low, high in pairwise(knots)])
    values, weight = spline_columns(points, knots), np.tile(weights, len(knots) - 1) / weights.sum() / (len(knots) - 1)
    mean = weight @ values
    deviation = np.sqrt(weight @ (values - mean) ** 2)
    return [(float(f"{m:.4g}"), float(f"{d:.4g}")) for m, d in zip(mean.tolist(), deviation.tolist(), strict=True)]


def spline_columns(values: Floats, knots: Knots) -> Floats:
    """The columns of the model for some values.

    Examples
    --------
    >>> columns = spline_columns(np.array([-1.0, 0.0, 2.0]), (0.0, 1.0, 3.0))
    >>> columns.shape
    (3, 4)
    """
    out: Floats = terms(values, knots) @ combinations(knots)
    return out
