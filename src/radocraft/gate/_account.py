"""What a release costs: rho, which adds up, and the epsilon it means.

All noise here is Gaussian. Releases with rho_1, rho_2, ... are together as telling as
one number with Gaussian noise whose mean a row can move by mu = sqrt(2 (rho_1 + rho_2 +
...)) standard deviations, whatever their sizes and order (Gaussian differential
privacy). So epsilon is not a bound but what an attacker really gets:

    delta(epsilon) = Phi(mu / 2 - epsilon / mu) - exp(epsilon) Phi(-mu / 2 - epsilon / mu)

(Balle and Wang 2018, theorem 8).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from scipy.optimize import bisect
from scipy.special import erf, erfcx, erfinv, ndtr, ndtri

_ROOT2 = math.sqrt(2.0)
_SAFE = 1e-9


@dataclass(frozen=True)
class Spend:
    """What has been spent: rho of Gaussian noise, and delta beside it. Both add up.

    Examples
    --------
    >>> Spend(0.5) + Spend(0.25, delta=1e-8)
    Spend(rho=0.75, delta=1e-08)
    """

    rho: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not (self.rho >= 0.0 and self.delta >= 0.0):
            raise ValueError(f"rho and delta are 0 or more, not {self.rho} and {self.delta}.")

    def __add__(self, other: Spend) -> Spend:
        return Spend(self.rho + other.rho, self.delta + other.delta)


def epsilon_of(rho: float, delta: float) -> float:
    """Give the exact epsilon at ``delta`` of Gaussian noise that costs ``rho``.

    It is 0 where delta alone covers everything, and infinite where rho is.

    Examples
    --------
    >>> round(epsilon_of(0.5, 1e-6), 3)
    4.887
    >>> round(epsilon_of(0.5 + 0.5, 1e-6), 3)
    7.286
    """
    _check("rho", rho, delta)
    mu = math.sqrt(2.0 * rho)
    if float(erf(mu / (2.0 * _ROOT2))) <= delta:  # delta(0)
        return 0.0
    if delta == 0.0 or math.isinf(mu):
        return math.inf
    target = math.log(delta)
    s = _crossing(lambda s: _log_delta(s, mu) - target, -mu / 2.0, 1.0 - float(ndtri(delta)))
    return max(0.0, mu * (s + mu / 2.0))


@lru_cache(maxsize=256)
def rho_of(epsilon: float, delta: float) -> float:
    """Give the largest rho, to a billionth, that is no more than ``epsilon`` at ``delta``.

    Examples
    --------
    >>> round(rho_of(1.0, 1e-6), 4)
    0.028
    """
    _check("epsilon", epsilon, delta)
    if math.isinf(epsilon) or delta >= 1.0:
        return math.inf
    if delta == 0.0:
        return 0.0
    target = math.log(delta)
    least = 2.0 * _ROOT2 * float(erfinv(delta))  # what epsilon = 0 allows
    most = 2.0 * (math.sqrt(2.0 * epsilon) + least + 1.0)
    log_mu = _crossing(lambda log: target - _log_delta_at(epsilon, math.exp(log)), math.log(least), math.log(most))
    return 0.5 * math.exp(2.0 * log_mu) * (1.0 - _SAFE)


def auc_of(rho: float) -> float:
    """Give the best AUC that any test of membership can reach: Phi(mu / sqrt 2).

    The attacker knows every other row, and whose row it is that may be there.

    Examples
    --------
    >>> [round(auc_of(rho), 3) for rho in (0.0, 0.01, 0.5, 5.0)]
    [0.5, 0.54, 0.76, 0.987]
    """
    _check("rho", rho, 0.0)
    return float(ndtr(math.sqrt(rho)))


def _log_delta_at(epsilon: float, mu: float) -> float:
    """The logarithm of delta(epsilon)."""
    return _log_delta(epsilon / mu - mu / 2.0, mu)


def _log_delta(s: float, mu: float) -> float:
    """The logarithm of delta(epsilon) in s = epsilon / mu - mu / 2, which loses no digits to small mu or large epsilon.

    With erfcx(x) = exp(x^2) erfc(x), delta = exp(-s^2 / 2) (erfcx(s / sqrt 2) - erfcx((s + mu) / sqrt 2)) / 2.
    """
    beyond = float(erfcx((s + mu) / _ROOT2)) / 2.0
    if s < 0.0:  # where erfcx(s) may overflow
        return _log(float(ndtr(-s)) - math.exp(-s * s / 2.0) * beyond)
    return _log(float(erfcx(s / _ROOT2)) / 2.0 - beyond) - s * s / 2.0


def _log(value: float) -> float:
    """The logarithm, also of what is 0 or less by rounding."""
    return math.log(value) if value > 0.0 else -math.inf


def _crossing(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function is 0; ``low`` where it is negative there already, by rounding."""
    return low if falling(low) <= 0.0 else float(bisect(falling, low, high, xtol=1e-15))


def _check(name: str, value: float, delta: float) -> None:
    """Say what is wrong with the numbers given."""
    if not value >= 0.0:
        raise ValueError(f"{name} is 0 or more, not {value}.")
    if not 0.0 <= delta <= 1.0:
        raise ValueError(f"delta is a probability, from 0 to 1, not {delta}. The usual value is 1e-6.")
