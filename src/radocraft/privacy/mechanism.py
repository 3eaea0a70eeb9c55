"""The discrete Gaussian of OpenDP on exact integers."""

from __future__ import annotations

import numpy as np

from radocraft.arrays import Floats, Ints
from radocraft.privacy.accounting import opendp


def noise_scale(sensitivity: float, rho: float) -> float:
    """The standard deviation that makes a query of that sensitivity ``rho``-zCDP."""
    return float(sensitivity / (2.0 * rho) ** 0.5)


def add_noise(values: Ints, sensitivity: float, rho: float) -> Floats:
    """The values with discrete Gaussian noise; OpenDP checks that it costs no more than ``rho``."""
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    scale = noise_scale(sensitivity, rho) * (1.0 + 1e-9)
    measurement = space >> dp.m.then_gaussian(scale)
    if measurement.map(sensitivity) > rho:
        raise AssertionError("the noise is too small for its budget")
    return np.array(measurement(values.ravel().tolist()), dtype=np.float64).reshape(values.shape)
