"""Parts through the usual gate whose noise is the same in every run of the tests."""

from typing import Any

from radocraft import Contract, Part, Policy, craft, release
from radocraft.gate import Noise


def noisy_part(rows: Any, contract: Contract, peer: str, policy: Policy | None = None, seed: int = 0) -> Part:
    """What `share` makes of the rows, but for its noise."""
    policy, noise = policy or Policy(), Noise.seeded(seed, peer)
    tally = craft(rows, contract, peer, bounds=policy.bounds, noise=noise)
    return Part.of(release(tally, contract, policy, noise))
