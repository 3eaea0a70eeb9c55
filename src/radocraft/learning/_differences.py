"""Whether two peers saw the same kind of people: their labels and their signatures, compared over common blocks.

For every pair of peers a G-test of the two rows of counts,

    G = 2 sum O ln(O / E),   chi-square with one degree of freedom less than there are groups,

once with blocks pooled by label, once by signature. Peers with the same people
have equal counts and G near 0. Two samples of one population pass a p of 0.001
once in a thousand times. Sums cannot repair a difference: a model learned from
both describes a population with the blocks' weights, which is neither peer's own.

Noisy counts differ by their noise alone more than chance allows, so peers whose
counts are noisy are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Literal

import numpy as np
from scipy.special import chdtrc, xlogy

from radocraft.arrays import Floats, Ints, add_up, number_rows
from radocraft.contract import ANY_LABEL, MISSING, UNSEEN, Contract
from radocraft.learning._blocks import Blocks
from radocraft.model import Difference, Seen
from radocraft.sums import ROLLED, Cells, ScoreCells

CHANCE = 0.001
_UNLIKE, _SDS = 0.05, 4.0
Counted = Cells | ScoreCells


def compare_peers(blocks: Blocks) -> Iterator[Difference]:
    """Every pair of peers without noise, by label where both have it, and by signature."""
    by_label = number_rows(blocks.labels[:, None])
    by_signature = number_rows(blocks.codes)
    exact = [index for index, cells in enumerate(blocks.cells) if not cells.levels.rows]
    for first, second in combinations(exact, 2):
        pair = (blocks.peers[first], blocks.peers[second])
        counts = np.maximum(blocks.rows[[first, second]].astype(np.float64), 0.0)
        kinds: tuple[tuple[Literal["labels", "signatures"], Ints], ...]
        kinds = (("labels", by_label), ("signatures", by_signature))
        for of, group in kinds:
            if of == "labels" and not all(blocks.contract.labelled(peer) for peer in pair):
                continue
            statistic, freedom = g_test(add_up(counts.T, group, int(group.max()) + 1).T)
            if freedom:
                p = float(chdtrc(freedom, statistic))
                yield Difference(peers=pair, of=of, statistic=statistic, freedom=freedom, p=p)


def compare_with_all(blocks: Blocks) -> Iterator[Seen]:
    """Every peer against the population with the blocks' weights."""
    label, weights = blocks.contract.label, blocks.weights / blocks.weights.sum()
    by_signature, names = number_rows(blocks.codes), dict(zip(label.codes, label.names, strict=True))
    counted = [len(cells.columns) * blocks.contract.labelled(cells.peer) * cells.total for cells in blocks.cells]
    for peer, rows, counts in zip(blocks.peers, blocks.rows, counted, strict=True):
        own = np.maximum(rows.astype(np.float64), 0.0) / max(float(np.maximum(rows, 0).sum()), 1.0)
        off = own - weights
        if not counts:
            off = np.bincount(by_signature, off)
        shares = {name: float(own[blocks.labels == code].sum()) for code, name in names.items() if code != ANY_LABEL}
        yield Seen(
            peer=peer,
            counts=counts / sum(counted),
            apart=float(np.abs(off).sum()) / 2.0,
            labels=shares if counts else {},
        )


def g_test(counts: Floats) -> tuple[float, int]:
    """G of a table of two rows, and its degrees of freedom.

    Examples
    --------
    >>> g_test(np.array([[50.0, 50.0], [50.0, 50.0]]))
    (0.0, 1)
    >>> statistic, _ = g_test(np.array([[50.0, 50.0], [70.0, 30.0]]))
    >>> round(statistic, 1)
    8.4
    """
    counts = counts[:, counts.sum(axis=0) > 0]
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    statistic = 2.0 * float(np.sum(xlogy(counts, counts / expected)))
    return max(statistic, 0.0), counts.shape[1] - 1


def warning(difference: Difference) -> str | None:
    """What to say of a difference, if it is more than chance allows; the statistic is in the model file."""
    if difference.p >= CHANCE:
        return None
    first, second = difference.peers
    return (
        f"{first} and {second} differ in their {difference.of} more than chance allows: the model describes a mixture "
        "of both populations, and no sum can repair that"
    )


def unlike_codes(contract: Contract, peers: Sequence[Counted]) -> Iterator[str]:
    """Shared features of which far more rows are missing, or have no agreed category, at one peer than at another."""
    for at, shared in enumerate(contract.shared):
        for code, what, remedy in ((MISSING, "nothing known", "`missing`"), (UNSEEN, "no agreed category", "`fold`")):
            if code not in shared.codes:
                continue
            shares = [_share(contract, cells, at, shared.codes.index(code)) for cells in peers]
            (low, low_error), (high, high_error) = min(shares), max(shares)
            if high - low > max(_UNLIKE, _SDS * float(np.hypot(low_error, high_error))):
                most, least = (peers[shares.index(one)].peer for one in (max(shares), min(shares)))
                yield (
                    f"of '{shared.name}' {high:.0%} of the rows of {most} have {what}, but {low:.0%} of those of "
                    f"{least}: compare how both tables are read (see {remedy} in the contract) before taking them for "
                    "different people"
                )


def _share(contract: Contract, cells: Counted, feature: int, code: int) -> tuple[float, float]:
    """The share of rows with a code among those whose code is known, and its standard error by noise."""
    if isinstance(cells, ScoreCells):
        counts = cells.counts.reshape(-1, *(len(shared.codes) for shared in contract.shared))
        rows, own = np.maximum(counts, 0.0), np.zeros(counts.shape, dtype=bool)
        np.moveaxis(own, feature + 1, 0)[code] = True
        known = np.ones_like(own)
    else:
        rows, own = np.maximum(cells.rows.astype(np.float64), 0.0), cells.codes[:, feature] == code
        known = cells.codes[:, feature] != ROLLED
    total = max(float(rows[known].sum()), 1.0)
    return float(rows[own].sum()) / total, float(cells.levels.rows * np.sqrt(own.sum())) / total
