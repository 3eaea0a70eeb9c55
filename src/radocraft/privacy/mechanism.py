"""The discrete Gaussian of OpenDP on exact integers."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from radocraft.arrays import Floats, Ints
from radocraft.privacy.accounting import opendp


def noise_scale(sensitivity: float, rho: float) -> float:
    """The standard deviation that makes a query of that sensitivity ``rho``-zCDP."""
    return float(sensitivity / (2.0 * rho) ** 0.5)


@lru_cache(maxsize=64)
def gaussian(sensitivity: float, rho: float) -> Any:
    """OpenDP's discrete Gaussian for a query of that sensitivity; OpenDP checks that it costs no more than ``rho``."""
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    measurement = space >> dp.m.then_gaussian(noise_scale(sensitivity, rho) * (1.0 + 1e-9))
    if measurement.map(sensitivity) > rho:
        raise AssertionError("the noise is too small for its budget")
    return measurement


def add_noise(values: Ints, sensitivity: float, rho: float) -> Floats:
    """The values with discrete Gaussian noise that costs ``rho``."""
    noisy = gaussian(sensitivity, rho)(values.ravel().tolist())
    return np.array(noisy, dtype=np.float64).reshape(values.shape)
