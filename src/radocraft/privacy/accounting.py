"""Budgets: from (epsilon, delta) to zero-concentrated differential privacy (zCDP) and back.

rho-zCDP adds up over releases, which (epsilon, delta) does not. The conversion is
OpenDP's.
"""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import Any

from radocraft.errors import SourceError

_HALVINGS = 60


@lru_cache(maxsize=1)
def opendp() -> Any:
    """OpenDP, or an error that says how to get it."""
    try:
        prelude = importlib.import_module("opendp.prelude")
    except ImportError as error:
        raise SourceError("Differential privacy needs OpenDP: pip install 'radocraft[privacy]'.") from error
    prelude.enable_features("contrib")
    return prelude


@lru_cache(maxsize=256)
def epsilon_of(rho: float, delta: float) -> float:
    """The epsilon at ``delta`` that ``rho``-zCDP guarantees."""
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    measured = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(space >> dp.m.then_gaussian(1.0)), delta)
    return float(measured.map((2.0 * rho) ** 0.5)[0])


@lru_cache(maxsize=256)
def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho (to a billionth) whose guarantee is no weaker than (epsilon, delta).

    Examples
    --------
    >>> round(rho_of(1.0, 1e-6), 4)
    0.0244
    """
    low, high = 0.0, epsilon
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if epsilon_of(middle, delta) <= epsilon else (low, middle)
        if high - low < 1e-9 * high:
            break
    return low
