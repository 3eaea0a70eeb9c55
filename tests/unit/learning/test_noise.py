"""What noise costs, told beforehand and measured."""

import numpy as np
import pytest

from radocraft import Contract, Policy, release
from radocraft.contract._columns import private_columns
from radocraft.gate import Noise
from radocraft.learning._blocks import Blocks, merge_cells
from radocraft.learning._matching import fit_matching
from radocraft.learning._noise import noise_cost
from radocraft.rows import craft_rows

UNIT = {"kind": "numeric", "centre": 0.0, "scale": 1.0}
CONTRACT = Contract.model_validate(
    {
        "name": "noise",
        "label": {"column": "y", "positive": 1, "negative": -1},
        "shared": [{"name": "s", "edges": [-0.7, 0.0, 0.7]}],
        "peers": {peer: {"features": {f"{peer}{at}": UNIT for at in range(4)}} for peer in ("a", "b")},
    }
)


def table(rows: int) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    shared = rng.normal(size=rows)
    values = {peer: 0.4 * shared[:, None] + rng.normal(size=(rows, 4)) for peer in ("a", "b")}
    score = shared + values["a"] @ [1.0, -0.5, 0.3, 0.0] + values["b"] @ [0.6, 0.0, -0.4, 0.2]
    codes = np.searchsorted([-0.7, 0.0, 0.7], shared, side="right")[:, None]
    return codes, np.where(score + rng.normal(size=rows) > 0, 1, -1), values


def blocks(policy: Policy, rows: int, seed: int = 0) -> Blocks:
    codes, labels, values = table(rows)
    found = []
    for peer, own in values.items():
        noise = Noise.seeded(seed, peer)
        names = tuple(column.name for column in private_columns(CONTRACT, peer))
        tally = craft_rows(CONTRACT, peer, names, codes=codes, labels=labels, values=own, bounds=policy.bounds)
        found.append(release(tally, CONTRACT, policy, noise).cells)
    return merge_cells(tuple(found), CONTRACT)


def loss(theta: np.ndarray, rows: int) -> float:
    codes, labels, values = table(rows)
    design = np.hstack([np.ones((rows, 1)), CONTRACT.encode_shared(codes), values["a"], values["b"]])
    return float(np.mean((labels - design @ theta) ** 2))


@pytest.mark.parametrize(("rows", "noise"), [(3000, 0.5), (3000, 2.0), (12000, 1.0)])
def test_the_cost_told_is_the_cost_measured_within_a_factor_of_three(rows: int, noise: float) -> None:
    """Bounds are wide here, so that noise alone costs."""
    base = loss(fit_matching(blocks(Policy.exact(), rows), 0.0).theta, rows)
    policy = Policy(noise=noise, bound=8.0, row_bound=4.0)
    fits = [(found, fit_matching(found, 0.0)) for found in (blocks(policy, rows, seed) for seed in range(12))]
    measured = np.mean([loss(fit.theta, rows) - base for _, fit in fits])
    told = np.mean([noise_cost(found, fit) for found, fit in fits])
    assert measured / 3 < told < 3 * measured


def test_more_noise_costs_more() -> None:
    fits = [(found, fit_matching(found, 0.0)) for found in (blocks(Policy(noise=f), 3000) for f in (0.2, 1.0, 4.0))]
    costs = [noise_cost(found, fit) for found, fit in fits]
    assert 0 < costs[0] < costs[1] < costs[2]


def test_without_noise_it_costs_nothing() -> None:
    found = blocks(Policy.exact(), 1000)
    assert noise_cost(found, fit_matching(found, 0.25)) == 0.0
