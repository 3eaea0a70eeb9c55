"""Signatures too many to list: those that stand out leave, and nobody's alone does."""

import numpy as np
import pytest

from radocraft import Contract, Policy, Tally, release
from radocraft.gate import Noise, epsilon_of
from radocraft.gate import _signatures as module
from radocraft.gate._signatures import Signatures, count_open
from radocraft.rows import craft_rows
from radocraft.sums import ROLLED

CONTRACT = Contract.parse("""
name = "many codes"
label = { column = "y", positive = 1, negative = -1 }
shared = [{ name = "region", categories = ["north", "south"] }, { name = "town", categories = ["a", "b", "c", "d"] }]
peers.bank.features = { x = { kind = "numeric", centre = 0, scale = 1 } }
""")
LONE = [1, 3, 1]


@pytest.fixture(autouse=True)
def few_can_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regions with labels can (4 codes, 2 labels), towns not (6 codes more)."""
    monkeypatch.setattr(module, "MOST", 10)


def tally(alone: int = 1) -> Tally:
    """Three hundred rows of each of four signatures, with either label; of one more so many, of one label."""
    keys = [[region, town, label] for region in (0, 1) for town in (0, 1) for label in (-1, 1)]
    rows = np.array([*keys * 300, *[LONE] * alone])
    values = np.random.default_rng(0).normal(size=(len(rows), 1))
    return craft_rows(CONTRACT, "bank", ("x",), codes=rows[:, :-1], labels=rows[:, -1], values=values)


def keys(codes: np.ndarray, labels: np.ndarray) -> list[list[int]]:
    return np.column_stack([codes, labels]).tolist()


def test_the_longest_run_of_features_that_can_be_listed_is() -> None:
    found = Signatures.agreed(tally(), CONTRACT)
    assert found.open_set
    assert len(found) == 8
    assert (found.codes[:, 1] == ROLLED).all()
    assert found.codes[found.place, 0].tolist() == tally().codes[:, 0].tolist()


@pytest.mark.parametrize("per_unit", [1, 3])
def test_whom_nobody_shares_a_signature_with_stays_with_the_others(per_unit: int) -> None:
    """As many rows as one person may have: in no release, at a delta so small; those of many in all."""
    whole, shown = tally(per_unit), set()
    found = Signatures.agreed(whole, CONTRACT)
    for seed in range(300):
        counted = count_open(found, whole, 3.0 * per_unit, Noise.seeded(seed, "t"), per_unit=per_unit, delta=1e-6)
        names = keys(counted.codes, counted.labels)
        assert len(names) == 16
        shown |= {tuple(name) for name in names}
        lone = next(at for at, key in enumerate(keys(whole.codes, whole.labels)) if key == LONE)
        assert names[counted.place[lone]] == [1, ROLLED, 1]
    assert tuple(LONE) not in shown


def test_the_threshold_lets_one_through_as_often_as_delta_says() -> None:
    whole, delta, runs = tally(1), 0.02, 4000
    found = Signatures.agreed(whole, CONTRACT)
    through = 0
    for seed in range(runs):
        counted = count_open(found, whole, 3.0, Noise.seeded(seed, "t"), per_unit=1, delta=delta)
        through += LONE in keys(counted.codes, counted.labels)
    assert 0.5 * delta < through / runs < delta + 4 * (delta / runs) ** 0.5


def test_what_is_taken_out_of_a_signature_is_not_counted_in_it_again() -> None:
    whole = tally(0)
    found = Signatures.agreed(whole, CONTRACT)
    counted = count_open(found, whole, 3.0, Noise.seeded(0, "t"), per_unit=1, delta=1e-6)
    coarse = counted.codes[:, 1] == ROLLED
    assert np.abs(counted.counts[coarse]).max() < 6 * (3.0**2 * 3) ** 0.5
    assert counted.counts[~coarse] == pytest.approx(300, abs=18)


def test_a_release_says_what_the_threshold_cost() -> None:
    released = release(tally(), CONTRACT, Policy(), Noise.seeded(0, "bank"))
    assert released.spend.delta == pytest.approx(1e-7)
    assert LONE not in keys(released.cells.codes, released.cells.labels)
    assert [0, 0, 1] in keys(released.cells.codes, released.cells.labels)


def test_what_the_threshold_costs_is_not_spent_again_on_noise() -> None:
    """A stated epsilon holds at the stated delta, which the threshold has a tenth of."""
    policy = Policy(epsilon=2.0)
    released = release(tally(), CONTRACT, policy, Noise.seeded(0, "bank"))
    assert released.spend.delta == pytest.approx(0.1 * policy.delta)
    reached = epsilon_of(released.spend.rho, policy.delta - released.spend.delta)
    assert 0.98 * 2.0 < reached <= 2.0
    assert released.epsilon == reached
