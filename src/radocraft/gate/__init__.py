"""From a peer's tally to what may leave: roll up, add noise, account for the privacy spent.

In come a tally and the peer's policy. Out goes a release in which every number carries noise. Arithmetic only:
no files and no ledger.

To add a policy rule: a field in `_policy.py`; what it means in words in `_words.py`; where it holds in `_release.py`.
To add a warning about what leaves: `_remarks.py`.
"""

from radocraft.gate._account import Spend, epsilon_of, rho_of
from radocraft.gate._levels import TOTAL
from radocraft.gate._noise import Noise
from radocraft.gate._policy import Policy, check_policy, draft_policy
from radocraft.gate._release import Release, check_allowed, release
from radocraft.gate._scores import ScoreTerms, release_scores
from radocraft.gate._signatures import threshold
from radocraft.gate._units import estimate_units, histograms
from radocraft.gate._words import describe_epsilon, describe_policy, describe_rows

__all__ = [
    "TOTAL",
    "Noise",
    "Policy",
    "Release",
    "ScoreTerms",
    "Spend",
    "check_allowed",
    "check_policy",
    "describe_epsilon",
    "describe_policy",
    "describe_rows",
    "draft_policy",
    "epsilon_of",
    "estimate_units",
    "histograms",
    "release",
    "release_scores",
    "rho_of",
    "threshold",
]
