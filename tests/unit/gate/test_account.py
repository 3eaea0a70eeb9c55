"""The account: exact epsilons of Gaussian noise, against other people's programs, long numbers, and experiments."""

import math

import mpmath as mp
import numpy as np
import pytest
from dp_accounting import dp_event, gaussian_mechanism
from dp_accounting.pld import pld_privacy_accountant
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from radocraft.gate._account import Spend, auc_of, epsilon_of, rho_of
from radocraft.gate._noise import Noise
from radocraft.learning._metrics import auc

DELTAS = [1e-12, 1e-6, 1e-2]
rhos = st.floats(-8.0, 6.0).map(lambda power: 10.0**power)
deltas = st.floats(-12.0, -2.0).map(lambda power: 10.0**power)
epsilons = st.floats(-4.0, 6.0).map(lambda power: 10.0**power)


def delta_of(epsilon: float, rho: float) -> mp.mpf:
    """The formula as it stands in the literature, with many digits."""
    mu, epsilon = mp.sqrt(2 * mp.mpf(rho)), mp.mpf(epsilon)
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("delta", [*DELTAS, 0.3])
@pytest.mark.parametrize("rho", [1e-8, 1e-4, 0.01, 0.5, 10.0, 1000.0, 1e6])
def test_epsilon_solves_the_formula(rho: float, delta: float) -> None:
    epsilon = epsilon_of(rho, delta)
    with mp.workdps(400 if rho < 1000 else 60):
        if epsilon:
            slack = 1e-9 * (1.0 + epsilon)
            assert delta_of(epsilon + slack, rho) < delta < delta_of(max(0.0, epsilon - slack), rho)
        else:
            assert delta_of(0.0, rho) <= delta


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("parts", [[0.01], [0.5], [0.02, 0.3, 0.7], [5.0, 3.0]])
def test_agrees_with_dp_accounting(parts: list[float], delta: float) -> None:
    accountant = pld_privacy_accountant.PLDAccountant()
    for rho in parts:
        accountant.compose(dp_event.GaussianDpEvent((2.0 * rho) ** -0.5))
    total = sum((Spend(rho) for rho in parts), Spend(0.0)).rho
    assert epsilon_of(total, delta) == pytest.approx(accountant.get_epsilon(delta), abs=1e-6)
    sigma = (2.0 * total) ** -0.5
    assert epsilon_of(total, delta) == pytest.approx(gaussian_mechanism.get_epsilon_gaussian(sigma, delta), rel=1e-6)


@given(rhos, deltas)
def test_there_and_back(rho: float, delta: float) -> None:
    epsilon = epsilon_of(rho, delta)
    back = rho_of(epsilon, delta)
    assert back == pytest.approx(rho, rel=1e-8) if epsilon > 1e-6 * rho**0.5 else back >= rho * (1.0 - 1e-8)


@given(epsilons, deltas)
def test_back_and_there_never_exceeds(epsilon: float, delta: float) -> None:
    """A budget turned into rho is kept to the last digit."""
    again = epsilon_of(rho_of(epsilon, delta), delta)
    assert epsilon * (1.0 - 1e-6) - 1e-12 <= again <= epsilon


@given(rhos, deltas, st.floats(1.001, 100.0))
def test_more_rho_more_epsilon_more_delta_less(rho: float, delta: float, more: float) -> None:
    epsilon = epsilon_of(rho, delta)
    assert epsilon_of(rho * more, delta) > epsilon or epsilon_of(rho * more, delta) == 0.0
    assert epsilon_of(rho, delta / more) > epsilon or epsilon_of(rho, delta / more) == 0.0
    assert auc_of(rho * more) >= auc_of(rho) >= 0.5


@given(rhos, deltas)
def test_never_more_than_the_usual_bound_of_zcdp(rho: float, delta: float) -> None:
    assert epsilon_of(rho, delta) <= rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta))


def test_extremes() -> None:
    assert epsilon_of(0.0, 0.0) == epsilon_of(0.0, 1e-6) == epsilon_of(5.0, 1.0) == 0.0
    assert epsilon_of(math.inf, 1e-6) == epsilon_of(0.1, 0.0) == math.inf
    assert epsilon_of(1e-8, 1e-2) == 0.0
    assert rho_of(math.inf, 1e-6) == rho_of(1.0, 1.0) == math.inf
    assert rho_of(1.0, 0.0) == 0.0
    assert epsilon_of(rho_of(0.0, 1e-6), 1e-6) == 0.0
    assert epsilon_of(rho_of(0.0, 1e-6) * 1.00001, 1e-6) > 0.0
    assert auc_of(math.inf) == 1.0


@pytest.mark.parametrize("wrong", [-1.0, math.nan])
def test_nonsense_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="rho is 0 or more"):
        epsilon_of(wrong, 1e-6)
    with pytest.raises(ValueError, match="epsilon is 0 or more"):
        rho_of(wrong, 1e-6)
    with pytest.raises(ValueError, match="delta is a probability"):
        epsilon_of(1.0, wrong)
    with pytest.raises(ValueError, match="rho is 0 or more"):
        auc_of(wrong)
    with pytest.raises(ValueError, match="rho and delta are 0 or more"):
        Spend(wrong)


def test_spends_add_up() -> None:
    total = sum([Spend(0.1, 1e-9), Spend(0.2), Spend(0.3, 2e-9)], Spend(0.0))
    assert (total.rho, total.delta) == pytest.approx((0.6, 3e-9))


@pytest.mark.parametrize("steps", [1, 1024])
@pytest.mark.parametrize("target", [0.5, 1.0, 4.0])
def test_noise_keeps_the_promise_on_a_count(target: float, steps: int) -> None:
    """Count 0 or 1, on a grid of so many steps: the best event for an attacker is `more than a threshold`.

    P(event | 1) - exp(epsilon) P(event | 0) is at most delta; on a fine grid it is delta.
    """
    delta, trials = 1e-2, 2_000_000
    mu = (2.0 * rho_of(target, delta)) ** 0.5
    sd = steps / mu
    without = Noise(bytes(32)).draw(trials, sd)
    with_row = steps + Noise(bytes([1] * 32)).draw(trials, sd)
    best = sd**2 * target / steps + steps / 2.0
    for threshold in best + sd * np.linspace(-1.0, 1.0, 9):
        p, q = (float((seen > threshold).mean()) for seen in (with_row, without))
        error = math.sqrt((p * (1.0 - p) + math.exp(2.0 * target) * q * (1.0 - q)) / trials)
        gain = p - math.exp(target) * q
        assert gain <= delta + 3.0 * error
        if steps > 1 and abs(threshold - best) < 1e-6 * sd:
            assert gain >= delta - 3.0 * error


@pytest.mark.parametrize("rho", [0.01, 0.5, 2.0])
def test_auc_is_what_the_best_attacker_reaches(rho: float) -> None:
    sd, trials = 1024 / (2.0 * rho) ** 0.5, 100_000
    seen = Noise(bytes(32)).draw((2, trials), sd)
    seen[1] += 1024
    reached = auc(seen.ravel(), np.repeat([-1, 1], trials))
    assert reached == pytest.approx(auc_of(rho), abs=3.0 * 0.5 / trials**0.5)
    assert auc_of(rho) == pytest.approx(ndtr((2.0 * rho) ** 0.5 / 2.0**0.5))
