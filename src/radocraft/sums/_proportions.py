"""Peers without the label: their sums by label, estimated from the proportions of the label in each signature.

The holders of the label release cells by signature and label, hence the share
``pi_gc`` of class c in each group g of rows (a cell of a peer without the label).
That peer releases the mean ``m_g`` of its columns there, and

    m_g = sum_c pi_gc mu_gc                                               (docs, eq. 6)

with ``mu_gc`` unknown. Three ways to them:

- Mean Map (Quadrianto et al. 2009): they are the same in all groups, ``mu_gc = mu_c``;
  least squares over groups gives them, exactly where that holds.
- Laplacian Mean Map (Patrini et al. 2014): they differ, the less the more alike two
  signatures are,
  ``minimise sum_g n_g (m_g - sum_c pi_gc mu_gc)^2 + gamma sum_gh v_gh (mu_gc - mu_hc)^2``.
- Adjusted (ours, the default): the shared features explain what they can first, and what
  proportions add is believed as far as it holds for the columns of the label's
  holders, where the truth is known; see `label_differences`.

What stays unexplained of a group's mean is added to all its classes, so that its
sums are what was released.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np
from scipy.sparse import csr_array

from radocraft.arrays import Floats, Ints, number_rows
from radocraft.contract import ANY_LABEL, Contract
from radocraft.sums._cells import ROLLED, Cells, locate
from radocraft.sums._label_differences import label_differences

Method = Literal["adjusted", "mean-map", "laplacian"]
GAMMA = 1.0
_MOST = 4000
_RARE = 1e-6
_LEAST = 1e-3
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


@dataclass(frozen=True)
class Labelled:
    """A peer's cells by label, as estimated.

    ``certainty`` is how far proportions could be trusted where it was tested, from 0 to 1;
    ``uncertainty``, for every score of the model, the covariance of the peer's part of r / M that
    comes from estimating. Both are None where nothing was estimated or tested.
    """

    cells: Cells
    certainty: float | None = None
    uncertainty: Floats | None = None


def with_labels(cells: tuple[Cells, ...], contract: Contract, method: Method = "adjusted") -> tuple[Labelled, ...]:
    """Every peer's cells by label; those of holders, and of peers that labelled their rows themselves, as they are."""
    holders = tuple(peer for peer in cells if contract.labelled(peer.peer))
    codes, out = contract.label.codes, []
    for peer in cells:
        if contract.labelled(peer.peer) or (peer.labels != ANY_LABEL).any():
            out.append(Labelled(peer))
            continue
        overlaps = [overlap(peer, holder) for holder in holders]
        shares = proportions(holders, overlaps, codes)
        certainty = uncertainty = None
        if method == "adjusted":
            differences = label_differences(peer, shares, list(zip(holders, overlaps, strict=True)), codes)
            means, certainty, uncertainty = differences.contrasts, differences.certainty, differences.uncertainty
        else:
            means = class_means(peer, shares, method)
        out.append(Labelled(by_label(peer, shares, match_sums(peer, shares, means), codes), certainty, uncertainty))
    return tuple(out)


def guess_by_label(peer: Cells, holders: tuple[Cells, ...], codes: tuple[int, ...]) -> tuple[Cells, Floats, float]:
    """A peer's cells by label as proportions have it, the share of each label in each, and how certain that is."""
    overlaps = [overlap(peer, cells) for cells in holders]
    shares = proportions(holders, overlaps, codes)
    differences = label_differences(peer, shares, list(zip(holders, overlaps, strict=True)), codes)
    guessed = by_label(peer, shares, match_sums(peer, shares, differences.contrasts), codes)
    return guessed, shares, differences.certainty


def overlap(peer: Cells, holder: Cells) -> csr_array:
    """What share of each cell of a holder of the label (rows) lies in each cell of a peer without it (columns).

    A cell lies in the finest of the peer's cells that contains it. One that is coarser
    than all of them holds what is not shown elsewhere: it is divided among those
    of the peer's cells inside it that show no rows of its label yet, by the rows they have left.
    """
    place = locate(peer.codes, np.zeros(len(peer.rows), np.int64), holder.codes, np.zeros(len(holder.rows), np.int64))
    fine = np.flatnonzero(place >= 0)
    cells, places, parts = [fine], [place[fine]], [np.ones(len(fine))]
    size = peer.rows * (holder.rows.sum() / peer.rows.sum())
    left = size - np.bincount(place[fine], holder.rows[fine], len(size))
    shown = {
        label: np.bincount(place[fine][holder.labels[fine] == label], minlength=len(size)) > 0
        for label in np.unique(holder.labels).tolist()
    }
    for cell, inside in _inside(peer, holder, np.flatnonzero(place < 0)):
        hidden = inside[~shown[holder.labels[cell]][inside]]
        chosen = hidden if len(hidden) else inside
        room = np.maximum(left[chosen], _LEAST * size[chosen])
        cells.append(np.full(len(chosen), cell))
        places.append(chosen)
        parts.append(room / room.sum())
        left[chosen] -= holder.rows[cell] * parts[-1]
        shown[holder.labels[cell]][inside] = True
    joined = (np.concatenate(parts), (np.concatenate(cells), np.concatenate(places)))
    return csr_array(joined, shape=(len(holder.rows), len(size)))


def _inside(peer: Cells, holder: Cells, coarse: Ints) -> Iterator[tuple[int, Ints]]:
    """For each of some cells of a holder, finest first, the peer's cells inside it."""
    depth = (holder.codes != ROLLED).sum(axis=1)
    for level in sorted({*depth[coarse].tolist()}, reverse=True):
        these = coarse[depth[coarse] == level]
        keys = np.vstack([peer.codes[:, :level], holder.codes[these, :level]])
        number = number_rows(np.column_stack([np.zeros(len(keys), dtype=np.int64), keys]))
        order = np.argsort(number[: len(peer.rows)], kind="stable")
        mine, theirs = number[order], number[len(peer.rows) :]
        low, high = (np.searchsorted(mine, theirs, side) for side in _SIDES)
        for cell, first, last in zip(these.tolist(), low, high, strict=True):
            yield cell, order[first:last]


def proportions(holders: tuple[Cells, ...], overlaps: list[csr_array], codes: tuple[int, ...]) -> Floats:
    """The share of every label in each cell of a peer without it."""
    counts, overall = np.zeros((overlaps[0].shape[1], len(codes))), np.zeros(len(codes))
    for holder, where in zip(holders, overlaps, strict=True):
        label = (holder.labels[:, None] == np.array(codes)) * holder.rows[:, None]
        counts += where.T @ label
        overall += label.sum(axis=0)
    counts += _RARE * overall / overall.sum()
    out: Floats = counts / counts.sum(axis=1, keepdims=True)
    return out


def class_means(peer: Cells, shares: Floats, method: Method) -> Floats:
    """Means of the columns by label, or by cell and label."""
    rows = peer.rows.astype(np.float64)
    means = peer.sums / rows[:, None]
    if method == "laplacian" and shares.size <= _MOST:
        return laplacian_means(means, rows, shares, peer.codes)
    return mean_map(means, rows, shares)


def match_sums(peer: Cells, shares: Floats, estimates: Floats) -> Floats:
    """Means by cell and label, moved so that a cell's sums are what was released."""
    means = peer.sums / peer.rows[:, None]
    estimates = np.broadcast_to(estimates, (*shares.shape, means.shape[1]))
    middle = np.einsum("gc,gck->gk", shares, estimates)
    return np.asarray(means[:, None, :] + estimates - middle[:, None, :])


def mean_map(means: Floats, rows: Floats, shares: Floats) -> Floats:
    """Class means that are the same in all groups, by weighted least squares.

    Examples
    --------
    >>> shares = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]])
    >>> mean_map(shares @ np.array([[1.0], [5.0]]), np.array([10.0, 20.0, 30.0]), shares).round(9).ravel()
    array([1., 5.])
    """
    root = np.sqrt(rows)[:, None]
    return np.asarray(np.linalg.lstsq(root * shares, root * means, rcond=1e-10)[0], dtype=np.float64)


def laplacian_means(means: Floats, rows: Floats, shares: Floats, codes: Ints, gamma: float = GAMMA) -> Floats:
    """Class means by group, close to each other where signatures are."""
    groups, classes = shares.shape
    apart = (codes[:, None, :] != codes[None, :, :]).sum(axis=2)
    near = np.exp(-apart.astype(np.float64)) * np.sqrt(np.outer(rows, rows))
    near *= rows.sum() / max(near.sum(), 1.0)
    laplacian = np.diag(near.sum(axis=1)) - near
    system = np.kron(gamma * laplacian, np.eye(classes))
    for group in range(groups):
        here = slice(group * classes, (group + 1) * classes)
        system[here, here] += rows[group] * np.outer(shares[group], shares[group])
    target = (rows[:, None, None] * shares[:, :, None] * means[:, None, :]).reshape(groups * classes, -1)
    solution = np.linalg.lstsq(system, target, rcond=1e-10)[0]
    return np.asarray(solution, dtype=np.float64).reshape(groups, classes, -1)


def by_label(peer: Cells, shares: Floats, means: Floats, codes: tuple[int, ...]) -> Cells:
    """The peer's cells divided by label; rows become fractions."""
    groups, classes = shares.shape
    group, of = np.repeat(np.arange(groups), classes), np.tile(np.arange(classes), groups)
    kept = shares[group, of] > 0
    group, of = group[kept], of[kept]
    rows = peer.rows[group] * shares[group, of]
    return replace(
        peer,
        codes=peer.codes[group],
        labels=np.array(codes, dtype=np.int64)[of],
        rows=cast(Ints, rows),
        sums=means[group, of] * rows[:, None],
        present=np.rint(peer.present[group] * shares[group, of][:, None]).astype(np.int64),
        shared=csr_array(peer.shared[group] * shares[group, of][:, None]),
    )
