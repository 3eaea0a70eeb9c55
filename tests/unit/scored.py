"""Models of scores, quickly: scores drawn as log-odds that are true, no peer's model fitted for them."""

import numpy as np
from scipy.special import expit

import radocraft as rc
from radocraft.contract import Contract
from radocraft.gate import Noise, Policy, release_scores
from radocraft.model import ScoreModel
from radocraft.parts import Part

CONTRACT = """
name = "who leaves"
label = { column = "left", positive = "yes", negative = "no" }
shared = [{ name = "age", edges = [40, 60] }]
key = [{ name = "born", day_of_year = true }]
peers.bank.features = { bank_score = "score" }
peers.shop.features = { shop_score = "score" }
"""


def scored_parts(
    rows: int = 4000, related: float = 0.0, contract: str = CONTRACT, *, exact: bool = False
) -> list[Part]:
    """A part of each peer; scores are log-odds of normals that differ by label, and related inside it."""
    rng, agreed = np.random.default_rng(0), Contract.parse(contract)
    signature = rng.integers(0, 3, rows)
    odds = np.array([-1.0, 0.0, 1.0])[signature]
    label = (rng.random(rows) < expit(odds)).astype(int)
    noise = rng.normal(size=(rows, len(agreed.peers)))
    mixed = np.sqrt(1.0 - related) * noise + np.sqrt(related) * rng.normal(size=(rows, 1))
    seen = mixed + 0.8 * (2.0 * label[:, None] - 1.0)
    keys = rng.integers(0, 366, rows)
    policy = Policy.exact(10) if exact else Policy()
    return [
        Part.of(
            release_scores(
                agreed,
                peer,
                signatures=signature,
                labels=np.where(label > 0, 1, -1),
                scores=odds + 1.6 * seen[:, at],
                keys=keys if agreed.key is not None else None,
                policy=policy,
                noise=Noise.seeded(0, peer),
            )
        )
        for at, peer in enumerate(agreed.peers)
    ]


def scored_model(rows: int = 4000, related: float = 0.0, contract: str = CONTRACT) -> ScoreModel:
    """What is learned of them."""
    model = rc.learn(scored_parts(rows, related, contract), Contract.parse(contract))
    assert isinstance(model, ScoreModel)
    return model
