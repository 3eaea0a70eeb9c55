"""A release under differential privacy, from a peer's rows."""

from __future__ import annotations

from typing import Any

from radocraft.arrays import one_thread
from radocraft.contract import Contract
from radocraft.errors import PolicyRefusal
from radocraft.policy import Policy, Release
from radocraft.policy.private import release_bounded
from radocraft.privacy.bounded import craft_bounded
from radocraft.progress import Progress, quiet


@one_thread
def release_private(data: Any, contract: Contract, peer: str, policy: Policy, *, progress: Progress = quiet) -> Release:
    """Sum a peer's rows in bounded integers, add noise, and let the result leave.

    The ledger must be told before it does; see `radocraft.privacy.record`.

    Parameters
    ----------
    data, contract, peer, progress
        As for `craft`.
    policy
        A policy with mode "differential-privacy".
    """
    if policy.privacy is None:
        raise PolicyRefusal('This release needs a policy with mode = "differential-privacy".')
    return release_bounded(craft_bounded(data, contract, peer, policy.privacy, progress=progress), contract, policy)
