"""A standing audit of the gate: `make audit`.

The attacker of `test_membership` scores tens of thousands of releases, with the row in question and without. Three
testers hold these scores against what an accountant of others' making, dp-accounting, allows for the noise that the
gate says it added:

- likelihood ratio: how often a release with the row scores higher, an AUC of at most Phi(mu / 2^(1/2));
- hockey-stick: P(score > t) - exp(epsilon) Q(score > t), at most delta(epsilon), for several epsilon and the best t;
- Renyi: the divergence of order 2 between binned scores, at most 2 rho.

Each allows three standard errors. Thresholds and bins are chosen on one half of the trials, and tried on the other.
Every planted bug must be caught by two testers at least.
"""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import PLDAccountant
from scipy.special import ndtr
from tests.attacks.test_membership import AUDITS, FIXED, auc_found, planted, scores, three_errors, view

from radocraft import Policy

__all__ = ["planted", "view"]  # fixtures

TRIALS, FEW = 20_000, 2000
EPSILONS = (0.25, 0.5, 1.0, 2.0)
BINS = 12


def likelihood_ratio(found: np.ndarray, truth: np.ndarray, mu: float) -> tuple[float, float]:
    """The AUC, and the most it may be."""
    return auc_found(found, truth), float(ndtr(mu / 2**0.5)) + three_errors(len(found))


def hockey_stick(found: np.ndarray, truth: np.ndarray, mu: float) -> tuple[float, float]:
    """The largest excess over delta among several epsilon, in standard errors; 3 is the most."""
    account, worst, half = PLDAccountant().compose(GaussianDpEvent(1.0 / mu)), -np.inf, len(found) // 2
    grid = np.quantile(found[:half], np.linspace(0.02, 0.98, 49))
    for epsilon in EPSILONS:
        early = [_excess(found[:half], truth[:half], t, epsilon)[0] for t in grid]
        excess, error = _excess(found[half:], truth[half:], grid[int(np.argmax(early))], epsilon)
        worst = max(worst, (excess - account.get_delta(epsilon)) / error)
    return worst, 3.0 + 0.5  # the worst of four


def _excess(found: np.ndarray, truth: np.ndarray, t: float, epsilon: float) -> tuple[float, float]:
    yes, no = (found[truth] > t), (found[~truth] > t)
    error = np.hypot(0.5 / len(yes) ** 0.5, np.exp(epsilon) * max(no.std(), 0.02) / len(no) ** 0.5)
    return float(yes.mean() - np.exp(epsilon) * no.mean()), float(error)


def renyi(found: np.ndarray, truth: np.ndarray, mu: float) -> tuple[float, float]:
    """exp of the divergence of order 2, less 1, and the most it may be: exp(2 rho) - 1 with rho = mu^2 / 2."""
    half, rng = len(found) // 2, np.random.default_rng(0)
    edges = np.quantile(found[:half], np.linspace(0.0, 1.0, BINS + 1)[1:-1])
    place, there = np.digitize(found[half:], edges), truth[half:]
    drawn = [rng.integers(0, len(place), len(place)) for _ in range(200)]
    spread = float(np.std([_square(place[one], there[one]) for one in drawn]))
    return _square(place, there), float(np.expm1(mu**2)) + 3.0 * spread


def _square(place: np.ndarray, there: np.ndarray) -> float:
    """The chi-square distance of the binned scores, less what it is by chance."""
    p, q = (np.bincount(place[which], minlength=BINS) + 0.5 for which in (there, ~there))
    return float(((p / p.sum()) ** 2 / (q / q.sum())).sum() - 1.0 - (BINS - 1) * (1.0 / p.sum() + 1.0 / q.sum()))


TESTERS = (likelihood_ratio, hockey_stick, renyi)


def caught(found: np.ndarray, truth: np.ndarray, rho: float) -> list[str]:
    """The testers that see more than they may."""
    told = {tester.__name__: tester(found, truth, (2.0 * rho) ** 0.5) for tester in TESTERS}
    print(*(f"{name} {value:.4f} (at most {most:.4f})" for name, (value, most) in told.items()), sep=", ")
    return [name for name, (value, most) in told.items() if value > most]


@pytest.mark.parametrize("name", [*AUDITS])
def test_no_tester_sees_more_than_the_account_allows(name, view):
    contract, policy = AUDITS[name]
    assert caught(*scores(contract, policy, view, trials=TRIALS, seen=2000)) == []


@pytest.mark.usefixtures("planted")
def test_two_testers_catch_each_bug(view):
    assert len(caught(*scores(FIXED, Policy(), view, trials=FEW, seen=400))) >= 2
