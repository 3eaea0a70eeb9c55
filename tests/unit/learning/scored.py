"""Rows that peers score rightly, from their own columns alone, and what leaves of their scores.

Each peer has one column, normal inside label and signature with means a distance apart, so
its true log-odds are linear in it; peers' columns are correlated inside label and signature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logit

from radocraft import Contract, Policy
from radocraft.arrays import Floats, Ints
from radocraft.gate import Noise, Release, release_scores
from radocraft.learning._virtual import Merged
from radocraft.sums import ScoreCells

DAYS = 365
SIGNATURES = 7
"""Six bins, and one for who has no value."""


def agreed(peers: int, *, key: bool = False) -> Contract:
    """A contract of scores over one shared feature."""
    return Contract.model_validate(
        {
            "name": "scored",
            "label": {"column": "y", "positive": 1, "negative": 0},
            "shared": [{"name": "s", "edges": [*range(1, SIGNATURES - 1)]}],
            "peers": {f"p{at}": {"features": {f"score{at}": "score"}} for at in range(peers)},
            **({"key": [{"name": "born", "edges": [*range(1, DAYS)]}]} if key else {}),
        }
    )


@dataclass(frozen=True)
class People:
    """Everybody: label and signature, true log-odds by peer, day of birth; and whom each peer knows."""

    labels: Ints
    signatures: Ints
    scores: Floats
    born: Ints
    known: tuple[Ints, ...]
    log_odds: Floats
    contract: Contract

    def release(self, peer: int, policy: Policy, seed: object = 0) -> Release[ScoreCells]:
        """What leaves a peer."""
        own = self.known[peer]
        return release_scores(
            self.contract,
            f"p{peer}",
            signatures=self.signatures[own],
            labels=np.where(self.labels[own] > 0, 1, -1),
            scores=self.scores[own, peer],
            keys=self.born[own] if self.contract.key else None,
            policy=policy,
            noise=Noise.seeded(seed, peer),
        )

    def cells(self, peer: int, policy: Policy, seed: object = 0) -> ScoreCells:
        """Its numbers."""
        return self.release(peer, policy, seed).cells

    def merged(self, policy: Policy | None = None, seed: object = 0) -> Merged:
        """What leaves all peers."""
        policy = policy or Policy.exact()
        return Merged(self.contract, tuple(self.cells(at, policy, seed) for at in range(self.scores.shape[1])))


def people(
    rows: int,
    seed: int,
    *,
    peers: int = 2,
    positive: float = 0.5,
    related: float = 0.0,
    in_common: float = 1.0,
    apart: float = 1.5,
    key: bool = False,
) -> People:
    """So many at every peer, of whom a share is known to all of them."""
    rng = np.random.default_rng(seed)
    shared = round(in_common * rows)
    everyone = shared + peers * (rows - shared)
    signatures = rng.integers(0, SIGNATURES, everyone)
    log_odds = logit(positive) + 0.7 * (signatures - (SIGNATURES - 1) / 2)
    labels = (rng.random(everyone) < 1 / (1 + np.exp(-log_odds))).astype(np.int64)
    root = np.linalg.cholesky((1 - related) * np.eye(peers) + related)
    values = rng.normal(size=(everyone, peers)) @ root.T + apart * (labels - 0.5)[:, None]
    alone = [shared + at * (rows - shared) + np.arange(rows - shared) for at in range(peers)]
    known = tuple(np.concatenate([np.arange(shared), mine]) for mine in alone)
    scores = apart * values + log_odds[:, None]
    return People(labels, signatures, scores, rng.integers(0, DAYS, everyone), known, log_odds, agreed(peers, key=key))
