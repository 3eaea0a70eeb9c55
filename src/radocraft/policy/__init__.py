"""The gate: what a peer lets leave.

`release` is the only way from a tally to a `Release`, and a part can be made
from nothing else. `Policy` is the peer's own file of rules, never sent.
"""

from radocraft.policy.gate import Release, release
from radocraft.policy.rules import Dominance, Policy, check_policy, draft_policy

__all__ = ["Dominance", "Policy", "Release", "check_policy", "draft_policy", "release"]
