"""Membership inference under differential privacy, by an attacker who knows every other row.

The attacker knows the table but for one row, the mechanism and its noise, has
seen it run many times, and scores an output by the likelihood ratio of "with the
row" against "without". Under rho-zCDP with Gaussian noise its AUC is at most
Phi(sqrt(rho)).
"""

import numpy as np
import pytest
from radocraft.policy import private
from radocraft.policy.rules import Privacy
from radocraft.privacy import bounded as bounded_module
from radocraft.privacy.bounded import Bounded
from scipy.stats import norm, rankdata

from radocraft import Contract
from radocraft.encoding import private_columns

CONTRACT = Contract.parse("""
name = "risk"
label = { column = "bad", positive = 1, negative = -1 }

[peers.bank.features]
debt = { kind = "numeric", centre = 0, scale = 1 }
income = { kind = "numeric", centre = 0, scale = 1 }
""")
COLUMNS = private_columns(CONTRACT, "bank")
CALIBRATE = 100
TARGET = np.array([[30.0, 40.0]])  # far longer than the norm: the most a row can do


def rules(epsilon: float) -> Privacy:
    return Privacy(epsilon=epsilon, lifetime_epsilon=epsilon, delta=1e-6, row_norm=2.0)


def sums(target: bool) -> Bounded:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(40, 2))
    labels = np.where(np.arange(40) % 2, 1, -1)
    if target:
        values, labels = np.vstack([values, TARGET]), np.append(labels, 1)
    codes = np.empty((len(labels), 0), dtype=np.int64)
    return Bounded.of_rows("bank", COLUMNS, codes=codes, labels=labels, values=values, norm=2.0)


def outputs(exact: Bounded, privacy: Privacy, count: int) -> np.ndarray:
    """What leaves, drawn many times: every noisy number before anything else is done with it."""
    spend = private.Spend(privacy)
    drawn = []
    for _ in range(count):
        _, rows, values = private.noisy_blocks(exact, CONTRACT, privacy, spend)
        moments = private.add_noise(exact.moments, spend.moments_sensitivity, spend.moments_rho)
        drawn.append(np.concatenate([rows * private.COUNT, values.ravel() * private.GRID / 2.0, moments]))
    return np.array(drawn)


def exact_outputs(exact: Bounded, privacy: Privacy) -> np.ndarray:
    place = {tuple(key): at for at, key in enumerate(private.public_blocks(CONTRACT, "bank").tolist())}
    rows, values = np.zeros(len(place)), np.zeros((len(place), 2))
    for at, key in enumerate(np.column_stack([exact.codes, exact.labels]).tolist()):
        rows[place[tuple(key)]], values[place[tuple(key)]] = exact.rows[at], exact.sums[at]
    return np.concatenate([rows * private.COUNT, values.ravel(), exact.moments])


def auc(privacy: Privacy, trials: int) -> float:
    without, having = sums(target=False), sums(target=True)
    shift = exact_outputs(having, privacy) - exact_outputs(without, privacy)
    spread = outputs(without, privacy, CALIBRATE).std(axis=0)
    weights = shift / (spread**2 + 1e-6)
    base = exact_outputs(without, privacy)
    scores = [(outputs(side, privacy, trials) - base) @ weights for side in (without, having)]
    ranks = rankdata(np.concatenate(scores))
    return float((ranks[trials:].sum() - trials * (trials + 1) / 2) / trials**2)


def bound(privacy: Privacy) -> float:
    return float(norm.cdf(private.Spend(privacy).rho ** 0.5))


def three_errors(trials: int) -> float:
    """Three standard errors of an AUC near one half."""
    return float(3 * np.sqrt((2 * trials + 1) / (12 * trials**2)))


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_membership_is_no_easier_to_tell_than_the_theory_says(epsilon):
    privacy, trials = rules(epsilon), 5000
    found = auc(privacy, trials)
    assert 0.5 - three_errors(trials) < found <= bound(privacy) + three_errors(trials)


def test_the_attack_is_a_strong_one():
    """At a large budget it comes close to the bound, so that staying under it means something."""
    privacy = rules(20.0)
    assert auc(privacy, 400) > bound(privacy) - 0.06 > 0.9


def exact_counts(values, sensitivity, rho, real=private.add_noise):
    noisy = real(values, sensitivity, rho)
    if values.ndim == 2:
        noisy[:, 0] = values[:, 0]
    return noisy


def one_column_bare(values, sensitivity, rho, real=private.add_noise):
    noisy = real(values, sensitivity, rho)
    if values.ndim == 2:
        noisy[:, 2] = values[:, 2]
    return noisy


def no_clipping(values, norm, grid):
    return np.trunc(values / norm * grid).astype(np.int64)


@pytest.mark.parametrize(
    ("module", "name", "bug"),
    [
        (private, "add_noise", exact_counts),
        (private, "add_noise", one_column_bare),
        (bounded_module, "bounded", no_clipping),
    ],
)
def test_planted_bugs_are_caught(monkeypatch, module, name, bug):
    privacy, trials = rules(1.0), 200
    monkeypatch.setattr(module, name, bug)
    assert auc(privacy, trials) > bound(privacy) + three_errors(trials) + 0.1
