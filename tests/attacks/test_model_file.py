"""The model goes to everybody: from exact parts it says a bank's total to the unit, by default it cannot."""

import numpy as np
import pytest
from tests.attacks.worlds import rms

from radocraft import Part, Policy, craft, example_peers, learn, release
from radocraft.gate import Noise
from radocraft.model import Model

ROWS = 1500
CONTRACT, TABLES = example_peers(rows=ROWS)
BALANCE = TABLES["bank"]["balance"].to_numpy()


def learned(policy: Policy, seed: int = 0) -> tuple[Model, float]:
    """A model, and the noise in the bank's sum of balances as its part tells it."""
    parts, off = [], 0.0
    for peer, table in TABLES.items():
        noise = Noise.seeded("model", peer, seed)
        tally = craft(table, CONTRACT, peer, bounds=policy.bounds, noise=noise)
        cells = release(tally, CONTRACT, policy, noise).cells
        if peer == "bank":
            off = float(cells.scale[cells.columns.index("balance")] * cells.levels.sums * len(cells.rows) ** 0.5)
        noise = Noise.seeded("model", peer, seed, "part")
        parts.append(Part.of(release(tally, CONTRACT, policy, noise)))
    return learn(parts, CONTRACT, caution=0.25), off


def total(model: Model) -> float:
    """What the model file says of the sum of all balances."""
    (found,) = [one for one in model.coefficients if one.name == "balance"]
    return found.centre * model.learned_from[0].rows


def test_from_exact_parts_it_says_the_total_to_the_unit():
    model, _ = learned(Policy.exact(10))
    assert model.learned_from[0].peer == "bank"
    assert model.learned_from[0].rows == ROWS
    assert total(model) == pytest.approx(BALANCE.sum(), abs=0.5)


def test_by_default_it_says_no_total_and_no_count():
    models = [learned(Policy(), seed) for seed in range(4)]
    off = np.mean([off for _, off in models])
    errors = [total(model) - BALANCE.sum() for model, _ in models]
    assert rms(errors) > 0.5 * off, "more than the part tells"
    assert off > BALANCE.std(), "one customer's balance would show in the total"
    counts = [origin.rows - ROWS for model, _ in models for origin in model.learned_from]
    assert rms(counts) > 1.0


def test_what_it_knows_of_a_peer_is_in_the_part():
    """The same parts give the same model but for the time: nothing is asked anywhere else."""
    one, other = (learned(Policy(), 1)[0].model_dump(exclude={"created", "learned_from"}) for _ in range(2))
    assert one == other
