"""Why a block does not leave under its own signature, in words and without a count; for the peer's reviewer alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from radocraft.arrays import Ints
from radocraft.cells import ROLLED, Cells
from radocraft.contract import Contract
from radocraft.features import ANY
from radocraft.policy.limits import Limits
from radocraft.policy.rolling import one_label
from radocraft.policy.rules import Policy

_MOST = 1000


@dataclass(frozen=True)
class HeldBack:
    """A block, what it leaves as instead ("any" where a code is given up), and why."""

    signature: tuple[str, ...]
    label: str
    leaves_as: tuple[str, ...]
    reason: str


def held_back(limits: Limits, codes: Ints, contract: Contract, policy: Policy) -> tuple[HeldBack, ...]:
    """The first thousand blocks that leave only inside coarser cells, ``codes`` being what they leave under."""
    alone = np.arange(len(codes))
    few, broken = limits.few(alone, alone), limits.broken(alone, alone)
    single = one_label(limits.cells.codes, limits.cells.labels)

    def reason(at: int) -> str:
        if policy.signatures == "labels-only":
            return "the policy lets no signature leave"
        if few[at]:
            return f"fewer than {limits.rows} rows"
        if broken[at]:
            return "few values, or a few large ones, make up a sum"
        if policy.mixed_labels and single[at]:
            return "all rows of its signature have one label"
        return "what is rolled up beside it would be too small alone"

    return listed(limits.cells, codes, contract, reason)


def listed(cells: Cells, codes: Ints, contract: Contract, reason: Callable[[int], str]) -> tuple[HeldBack, ...]:
    """The first thousand blocks whose codes are given up somewhere, each with its reason."""
    name_of = contract.label_names
    moved = np.flatnonzero((codes == ROLLED).any(axis=1))[:_MOST]
    return tuple(
        HeldBack(
            _words(contract, cells.codes[at]),
            name_of[int(cells.labels[at])],
            _words(contract, codes[at]),
            reason(int(at)),
        )
        for at in moved
    )


def _words(contract: Contract, codes: Ints) -> tuple[str, ...]:
    pairs = zip(contract.shared, codes, strict=True)
    return tuple(ANY if code == ROLLED else shared.codes[code] for shared, code in pairs)
