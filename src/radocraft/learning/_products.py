"""Sums of products over blocks, gathered piece by piece, so that no matrix has a row for every block.

Symbols as in `completion`: with ``mu_b`` the mean vector of block b and ``u_b`` its weight,
between is ``sum_b u_b mu_b mu_b^T`` and r ``sum_b u_b y_b mu_b``. For a set of peers that
hold columns together, with ``S_b`` the sum of those columns and the shared ones over their
rows and ``n_b`` the number of these, it is ``sum_b S_b S_b^T / n_b``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from radocraft.arrays import Floats, Ints
from radocraft.learning._blocks import Blocks
from radocraft.learning._fit import Layout

Peers = tuple[int, ...]


@dataclass(frozen=True)
class Products:
    """What the learner needs of all blocks: between, r, and for every set of peers the products of their sums."""

    between: Floats
    r: Floats
    inside: dict[Peers, Floats]

    @classmethod
    def of(cls, blocks: Blocks, layout: Layout, sets: Iterable[Peers]) -> Products:
        """Walk over the blocks once."""
        shared, size = layout.shared.stop - layout.shared.start, layout.size
        orders = {peers: held_by_all(layout, peers)[1] for peers in sets}
        inside = {peers: np.zeros((len(order[0]) + shared,) * 2) for peers, order in orders.items()}
        between, r = np.zeros((size, size)), np.zeros((size, *blocks.targets.shape[1:]))
        for piece in blocks.pieces():
            means = coordinates(piece, layout)
            between += (means.T * piece.weights) @ means
            r += means.T @ (piece.weights * piece.targets.T).T
            for peers, order in orders.items():
                inside[peers] += _of_sums(piece, peers, order)
        return cls(between, r, inside)


def coordinates(blocks: Blocks, layout: Layout) -> Floats:
    """Mean coordinates of every block, as `Layout` has them."""
    constant = [np.ones((len(blocks), 1))] if layout.intercept else []
    shared = blocks.shared_means[:, : layout.shared.stop - layout.shared.start]
    return np.hstack([*constant, shared, *(blocks.means(index) for index in range(len(blocks.cells)))])


def held_by_all(layout: Layout, peers: Peers) -> tuple[Ints, list[Ints]]:
    """Coordinates of the private columns that some peers all hold, and where they stand among the columns of each."""
    held = layout.held[peers[0]]
    held = held[np.all([np.isin(held, layout.held[index]) for index in peers], axis=0)]
    return held, [
        np.array([int(np.flatnonzero(layout.held[index] == place)[0]) for place in held], dtype=np.int64)
        for index in peers
    ]


def _of_sums(blocks: Blocks, peers: Peers, orders: list[Ints]) -> Floats:
    pairs = zip(peers, orders, strict=True)
    sums = sum(np.hstack([blocks.sums(index)[:, order], blocks.shared_sums(index)]) for index, order in pairs)
    rows = blocks.rows[list(peers)].sum(axis=0).astype(np.float64)
    seen = np.asarray(sums)[rows > 0]
    out: Floats = (seen.T / rows[rows > 0]) @ seen
    return out
