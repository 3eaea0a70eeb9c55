"""What the blocks say about the joined table's second moments, and what nobody can see.

Symbols: ``mu_b`` is the mean vector of block b (1, shared, every peer's private
columns), ``u_b`` its weight, ``M = sum_b u_b``. The loss of a classifier on the
joined table needs ``r = X y`` and ``G = X X^T``. The first is known, the second up
to how the rows of different peers pair up inside a block:

    G = sum_b u_b mu_b mu_b^T + within                                   (docs, eq. 1)

For one peer j the scatter inside blocks is known from its moments Q_j,

    W_j = (M / N_j) (Q_j - sum_b n_jb mu_jb mu_jb^T)                     (docs, eq. 2)

over its private columns and the shared ones (which vary only in rolled-up
blocks). Split each private column into what the shared ones explain and the
rest: ``beta_j = W_SS^+ W_Sj`` and ``V_j = W_jj - W_jS W_SS^+ W_Sj``. With
``L = (0, I, beta_1, ..., beta_p)``

    G = E + blockdiag(0, V_1, ..., V_p) + C,
    E = sum_b u_b mu_b mu_b^T + L^T W_SS L                               (docs, eq. 3)

where C, the unexplained covariance between peers, is what nobody can see. All
other terms are positive semi-definite by construction.

Only rows of equal signature can be one person, whether or not the learner is
shown the signature; so a joined row has one value in each shared column, the
same at every peer. Hence E is exact when all peers see the same people, also in
rolled-up blocks: a peer's column, centred by block, is its regression on the
shared columns plus a rest at right angles to them, the products of two peers'
regressions follow from beta_j and W_SS, and C holds the products of the rests.
The expectation of C over all such matchings is 0 in blocks of full signatures.
In rolled-up blocks 0 is an assumption: peers' columns have nothing more in
common than the shared columns explain linearly.

A numeric label is such a shared column: a person has one value of it at every
peer, it varies inside blocks, and its moments with all others are known. Once G is
complete its row is r.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from radocraft.arrays import Floats, Ints
from radocraft.contract import Number
from radocraft.learning._blocks import Blocks
from radocraft.learning._fit import Layout
from radocraft.learning._products import Peers, Products, held_by_all
from radocraft.sums import ROLLED, Cells

DEVIATIONS = 2.0
"""How far what is estimated may be off, in standard deviations, for what is guaranteed."""
_RANK = 1e-10


@dataclass(frozen=True)
class Completion:
    """Second moments of the joined table: r and E are known, V_j only per peer, C not at all.

    ``r`` is one vector, or with several classes a matrix with a column for each;
    so is then every ``theta``. ``square`` is the mean of the squared label. ``cross``
    is what linked rows tell of C; without any it is taken to be 0. ``beyond`` are,
    for every peer, the second moments of what columns held by several peers, but not
    by this one, add to a score; none if every such column is held by all. ``uncertainty`` is, for
    every column of ``r``, the covariance of r / M where sums by label are estimated.
    """

    layout: Layout
    total: float
    r: Floats
    between: Floats
    explained: Floats
    unexplained: tuple[Floats, ...]
    cross: Floats | None = None
    noise: float = 0.0
    square: float = 1.0
    beyond: tuple[Floats, ...] = ()
    uncertainty: Floats | None = None

    def expected(self, stretch: Floats | None = None) -> Floats:
        """E + blockdiag(V_j), each V_j stretched; without stretch the expectation of G."""
        gram = self.explained.copy() if self.cross is None else self.explained + self.cross
        for index, (where, scatter) in enumerate(zip(self.layout.alone, self.unexplained, strict=True)):
            gram[np.ix_(where, where)] += scatter if stretch is None else stretch[index] * scatter
        return gram

    def hidden(self, theta: Floats) -> Floats:
        """For each peer ||V_j^(1/2) theta_j||."""
        pieces = zip(self.layout.alone, self.unexplained, strict=True)
        return np.array([np.maximum(quadratic(v, theta[w]), 0.0) for w, v in pieces]) ** 0.5

    def squares(self, theta: Floats, caution: float) -> Floats:
        """M times the mean of the squared score, from expected (0) to the worst there can be (1)."""
        hidden, explained = self.hidden(theta), quadratic(self.explained, theta)
        expected = explained + (hidden**2).sum(axis=0)
        if self.cross is not None:
            expected = expected + quadratic(self.cross, theta)
        worst = explained + hidden.sum(axis=0) ** 2
        for square, carried in zip(hidden, self.beyond, strict=False):
            worst = worst + 2.0 * square * np.maximum(quadratic(carried, theta), 0.0) ** 0.5
        return np.asarray((1.0 - caution) * expected + caution * worst)

    def each(self) -> list[Completion]:
        """One for every class, or the only one."""
        if self.r.ndim == 1:
            return [self]
        uncertainties = (
            [None] * self.r.shape[1] if self.uncertainty is None else [matrix[None] for matrix in self.uncertainty]
        )
        return [
            replace(self, r=column, uncertainty=uncertainty)
            for column, uncertainty in zip(self.r.T, uncertainties, strict=True)
        ]

    def uncertainty_of(self, theta: Floats) -> Floats:
        """Standard deviation of r^T theta / M, for every column of ``theta`` if there are several."""
        if self.uncertainty is None:
            return np.zeros(theta.shape[1:])
        columns = theta.reshape(len(theta), -1)
        quadratics = [
            max(float(quadratic(matrix, column)), 0.0) ** 0.5
            for matrix, column in zip(self.uncertainty, columns.T, strict=True)
        ]
        return np.array(quadratics).reshape(theta.shape[1:])


def quadratic(matrix: Floats, theta: Floats) -> Floats:
    """theta^T matrix theta, for every column of ``theta`` if there are several."""
    return np.asarray(np.sum(theta * (matrix @ theta), axis=0))


def complete(blocks: Blocks) -> Completion:
    """Assemble what is known about the joined table."""
    total, peers = float(blocks.weights.sum()), range(len(blocks.cells))
    number = isinstance(blocks.contract.label, Number)
    layout = Layout.of(blocks).widened(int(number))
    carriers = np.concatenate([np.arange(layout.shared.start, layout.shared.stop), layout.common])
    holders = carried_by(layout, carriers)
    sets = dict.fromkeys([*((index,) for index in peers), *sets_of_holders(holders)])
    products = Products.of(blocks, layout, sets)
    scatters = {held: scatter_of(blocks, held, products.inside[held], total, layout) for held in sets}
    within = [
        within_scatter(scatters[index,], layout.alone[index], slope_noise(blocks, index, total)) for index in peers
    ]
    carried = carried_scatter(scatters, layout, carriers, holders)
    loading = np.zeros((len(carriers), layout.size))
    loading[np.arange(len(carriers)), carriers] = 1.0
    for where, (slopes, _, mine) in zip(layout.alone, within, strict=True):
        loading[np.ix_(np.searchsorted(carriers, mine), where)] = slopes
    known = Completion(
        layout,
        total,
        r=products.r,
        between=products.between,
        explained=symmetric(products.between + loading.T @ carried @ loading),
        unexplained=tuple(rest for _, rest, _ in within),
        noise=max(noise_level(cells) for cells in blocks.cells),
        beyond=beyond_reach(layout, carriers, carried, loading),
        uncertainty=uncertainty_of_blocks(blocks, layout),
    )
    return label_apart(known) if number else known


def uncertainty_of_blocks(blocks: Blocks, layout: Layout) -> Floats | None:
    """Covariance of r / M, for every score, where peers lack the label; None if none does."""
    if not blocks.uncertainty:
        return None
    out = np.zeros((len(next(iter(blocks.uncertainty.values()))), layout.size, layout.size))
    for index, peer in enumerate(blocks.peers):
        if peer in blocks.uncertainty:
            out[:, layout.held[index][:, None], layout.held[index]] += blocks.uncertainty[peer]
    return out


def label_apart(known: Completion) -> Completion:
    """What is known when the last shared column is the label: its moments are r, and it is no coordinate."""
    last = known.layout.shared.stop - 1
    keep = np.delete(np.arange(known.layout.size), last)
    return replace(
        known,
        layout=known.layout.widened(-1),
        r=known.explained[keep, last],
        square=float(known.explained[last, last]) / known.total,
        between=known.between[np.ix_(keep, keep)],
        explained=known.explained[np.ix_(keep, keep)],
        beyond=tuple(carried[np.ix_(keep, keep)] for carried in known.beyond),
    )


def noise_level(cells: Cells) -> float:
    """How far noise in a peer's moments moves the eigenvalues of G / M: 2 sigma sqrt(d_j) / N_j, 0 without noise.

    Moments come by label; those of the table have the noise of all labels together.
    """
    sigma = cells.levels.moments * len(cells.by_label) ** 0.5
    return float(2.0 * sigma * len(cells.columns) ** 0.5 / cells.total)


Scatter = tuple[Ints, Floats, Floats]
"""Of what some peers all hold: coordinates, scatter inside blocks over their rows, and moments."""


def slope_noise(blocks: Blocks, index: int, total: float) -> float:
    """How far noise moves W_Sj of a peer: its cells that hide a code have noisy sums, and a share of these is in it."""
    cells = blocks.cells[index]
    hidden = float((cells.codes == ROLLED).any(axis=1).sum())
    return float(cells.levels.sums * hidden**0.5 * total / blocks.rows[index].sum())


def within_scatter(whole: Scatter, alone: Ints, noise: float = 0.0) -> tuple[Floats, Floats, Ints]:
    """Of one peer: slopes beta_j of its own columns on all it shares with others, the rest V_j, and what it shares.

    It shares the shared columns with all, and some columns with some; the last
    are their coordinates. In a direction in which W_SS is w the slope is W_Sj / w, and
    ``noise`` in W_Sj would be anything where w is small; so it is w W_Sj / (w^2 + noise^2),
    the best guess of a slope that is about 1 in standard deviations.
    """
    places, scatter, moments = whole
    own = np.isin(places, alone)
    mine, others = np.flatnonzero(own), np.flatnonzero(~own)
    between = scatter[np.ix_(others, others)]
    between = positive(between, _RANK * float(np.trace(moments[np.ix_(others, others)])))
    slopes = damped_inverse(between, noise) @ scatter[np.ix_(others, mine)]
    rest = scatter[np.ix_(mine, mine)] - slopes.T @ between @ slopes
    return slopes, lifted(rest), places[others]


def scatter_of(blocks: Blocks, peers: Peers, inside: Floats, total: float, layout: Layout) -> Scatter:
    """Moments over the rows of some peers, less the products of their sums by block."""
    shared = np.arange(layout.shared.start, layout.shared.stop)
    held, orders = held_by_all(layout, peers)
    moments: Floats = np.zeros((len(held) + len(shared), len(held) + len(shared)))
    for index, order in zip(peers, orders, strict=True):
        pick = np.concatenate([order, len(layout.held[index]) + np.arange(len(shared))])
        moments += blocks.cells[index].moments[np.ix_(pick, pick)]
    rows = float(blocks.rows[list(peers)].sum())
    return np.concatenate([held, shared]), symmetric(total / rows * (moments - inside)), moments


def carried_by(layout: Layout, carriers: Ints) -> list[Peers]:
    """Who holds each of the columns that are shared, by all or by some."""
    everyone, shared = tuple(range(len(layout.held))), layout.shared.stop - layout.shared.start
    some = (tuple(index for index in everyone if place in layout.held[index]) for place in carriers[shared:])
    return [*[everyone] * shared, *some]


def sets_of_holders(holders: list[Peers]) -> list[Peers]:
    """All sets of peers that hold two such columns together, the smallest first."""
    distinct = {frozenset(peers) for peers in holders}
    holder_sets = {first & other for first in distinct for other in distinct} - {frozenset()}
    return [tuple(sorted(peers)) for peers in sorted(holder_sets, key=len)]


def carried_scatter(scatters: dict[Peers, Scatter], layout: Layout, carriers: Ints, holders: list[Peers]) -> Floats:
    """Scatter inside blocks of all that is shared, by all or by some: over the rows of all who hold both of a pair.

    Two columns that nobody holds together have in common what the shared columns explain.
    """
    shared = layout.shared.stop - layout.shared.start
    places = {int(place): index for index, place in enumerate(carriers)}
    out, known = np.zeros((len(carriers), len(carriers))), np.zeros((len(carriers), len(carriers)), dtype=bool)
    sets = [frozenset(peers) for peers in holders]
    for peers in sets_of_holders(holders):
        held, scatter, moments = scatters[peers]
        picked = [index for index, place in enumerate(held.tolist()) if place in places]
        rows = np.array([places[int(held[index])] for index in picked], dtype=np.int64)
        mine = np.array([[sets[a] & sets[b] == {*peers} for b in rows] for a in rows]).reshape(len(rows), len(rows))
        where, cut = np.ix_(rows, rows), np.ix_(picked, picked)
        floor = positive(scatter[cut], _RANK * float(np.trace(moments[cut])))
        out[where] = np.where(mine, floor, out[where])
        known[where] |= mine
    if not known.all():
        through = pseudo_inverse(out[:shared, :shared]) @ out[:shared]
        out = np.where(known, out, through.T @ out[:shared, :shared] @ through)
        out = positive(out, 0.0)
    return symmetric(out)


def beyond_reach(layout: Layout, carriers: Ints, carried: Floats, loading: Floats) -> tuple[Floats, ...]:
    """For every peer the moments of what columns add to a score that others hold together and it does not."""
    out = []
    for held in layout.held:
        reached = np.isin(carriers, held) | (carriers < layout.shared.stop)
        mine, others = np.flatnonzero(reached), np.flatnonzero(~reached)
        explained = carried[np.ix_(others, mine)] @ pseudo_inverse(carried[np.ix_(mine, mine)])
        rest = positive(carried[np.ix_(others, others)] - explained @ carried[np.ix_(mine, others)], 0.0)
        out.append(loading[others].T @ rest @ loading[others])
    return tuple(out) if len(layout.common) else ()


def symmetric(matrix: Floats) -> Floats:
    """Remove the rounding that makes a symmetric matrix lopsided."""
    out: Floats = (matrix + matrix.T) / 2.0
    return out


def positive(matrix: Floats, floor: float) -> Floats:
    """Set eigenvalues at or below ``floor`` to zero: what is left over from rounding."""
    if not len(matrix):
        return matrix
    values, vectors = np.linalg.eigh(symmetric(matrix))
    kept = np.where(values > floor, values, 0.0)
    out: Floats = (vectors * kept) @ vectors.T
    return out


def lifted(matrix: Floats) -> Floats:
    """Raise every eigenvalue to at least the size of the most negative one.

    V_j has none below zero. If there is one, its size shows how far off the
    matrix is, by noise or by counts filled in behind a row limit; no direction
    is then taken to be known better. Set to zero instead, such a direction
    would look free of scatter, and the fit would lean on it.
    """
    if not len(matrix):
        return matrix
    values, vectors = np.linalg.eigh(symmetric(matrix))
    out: Floats = (vectors * np.maximum(values, abs(min(values[0], 0.0)))) @ vectors.T
    return out


def damped_inverse(matrix: Floats, noise: float) -> Floats:
    """Of a positive semi-definite matrix with eigenvalues w that with w / (w^2 + noise^2)."""
    if not len(matrix) or not noise:
        return pseudo_inverse(matrix)
    values, vectors = np.linalg.eigh(symmetric(matrix))
    out: Floats = (vectors * (values / (values**2 + noise**2))) @ vectors.T
    return out


def pseudo_inverse(matrix: Floats) -> Floats:
    """Moore-Penrose inverse of a positive semi-definite matrix."""
    if not len(matrix):
        return matrix
    return np.linalg.pinv(matrix, rcond=_RANK, hermitian=True).astype(np.float64)
