"""Virtual rows: rows that agree with what the peers released about their scores.

Inside each signature and label correlated normals are drawn, z ~ N(0, R), and each
peer's scores are given out by their ranks within the peer's own cell:

    score = mean_cell + deviation_cell * Q_label(rank of z)

with Q the quantiles of its histogram. So every peer's own margins are met exactly,
whatever the correlation R of peers' scores inside label and signature; R = identity is
expected matching.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from scipy.special import logit

from radocraft.arrays import Floats, Ints
from radocraft.contract import Contract
from radocraft.sums import TOP, ScoreCells, locate

_FEWEST, _MOST, _TIMES = 6_000, 30_000, 4.0
_LEAST_EIGENVALUE = 0.03
_TRACE = 0.01
_PRIOR_LOG_ODDS = 2.0


@dataclass(frozen=True)
class Merged:
    """All peers' scores on the agreed signatures; every peer keeps its own cells."""

    contract: Contract
    peers: tuple[ScoreCells, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The peers, in order."""
        return tuple(cells.peer for cells in self.peers)

    @cached_property
    def codes(self) -> Ints:
        """Codes of every agreed signature."""
        shape = tuple(len(shared.codes) for shared in self.contract.shared)
        count = prod(shape)
        return np.array(np.unravel_index(np.arange(count), shape), dtype=np.int64).T.reshape(count, len(shape))

    @cached_property
    def cells(self) -> tuple[Ints, ...]:
        """Per peer the cell of every label and signature, (2, signatures)."""
        return tuple(self._cells_of(cells) for cells in self.peers)

    def _cells_of(self, cells: ScoreCells) -> Ints:
        known = np.unique(cells.labels)
        every = [locate(cells.codes, cells.labels, self.codes, np.full(len(self.codes), label)) for label in known]
        place = np.array(every)
        for label, missing in enumerate(place < 0):  # a signature outside all cells: to the largest of its label
            own = np.flatnonzero(cells.which == label)
            place[label, missing] = own[np.argmax(cells.rows[own])]
        return place

    @cached_property
    def rows(self) -> Floats:
        """Rows of every label and signature: a cell's, in the shares of its signatures; the mean over peers.

        These shares are drawn to equal ones, by as many rows as there is noise in a count.
        """
        return np.asarray(np.mean([*map(self._rows_of, self.peers, self.cells)], axis=0))

    @staticmethod
    def _rows_of(cells: ScoreCells, place: Ints) -> Floats:
        clear = np.maximum(cells.counts, 0.0) + np.maximum(cells.levels.rows, _TRACE)
        inside = np.bincount(place.ravel(), clear.ravel(), len(cells.rows))
        return np.asarray(cells.rows[place] * clear / inside[place])

    @cached_property
    def log_odds(self) -> Floats:
        """Log-odds of the second label by signature."""
        noise = float(np.mean([cells.levels.rows**2 for cells in self.peers]) / len(self.peers)) ** 0.5
        return smoothed_log_odds(self.rows, noise)

    @cached_property
    def total(self) -> float:
        """Rows of the population: the mean over peers."""
        return float(self.rows.sum())


@dataclass(frozen=True)
class VirtualRows:
    """Features (each peer's score, then the signature's log-odds) and labels, 0 or 1."""

    features: Floats
    labels: Ints


def virtual_rows(merged: Merged, correlation: Floats, seed: int) -> VirtualRows:
    """Draw rows at a correlation of the peers' scores inside label and signature."""
    rng, root = np.random.default_rng(seed), np.linalg.cholesky(positive(correlation))
    wanted, features, labels = np.clip(_TIMES * merged.total, _FEWEST, _MOST), [], []
    for label in (0, 1):
        count = np.rint(merged.rows[label] * wanted / merged.rows.sum()).astype(np.int64)
        count[count.argmax()] = max(int(count.max()), 1)
        signature = np.repeat(np.arange(len(count)), count)
        z = rng.normal(size=(len(signature), len(root))) @ root.T
        columns = [
            _given_out(cells, place[label, signature], label, z[:, at])
            for at, (cells, place) in enumerate(zip(merged.peers, merged.cells, strict=True))
        ]
        features.append(np.column_stack([*columns, merged.log_odds[signature]]))
        labels.append(np.full(len(signature), label))
    return VirtualRows(np.vstack(features), np.concatenate(labels))


def _given_out(cells: ScoreCells, own: Ints, label: int, z: Floats) -> Floats:
    """A peer's scores, by the ranks of z within its cells."""
    order, size = np.lexsort((z, own)), np.bincount(own, minlength=len(cells.rows))
    start, share = np.cumsum(size) - size, np.empty(len(z))
    share[order] = (np.arange(len(z)) - start[own[order]] + 0.5) / size[own[order]]
    scores = cells.means[own] + cells.deviations[own] * cells.quantile(label, share)
    return np.asarray(np.clip(scores, -TOP, TOP))


def positive(correlation: Floats) -> Floats:
    """The nearest matrix with eigenvalues of at least 0.03 and ones on the diagonal.

    Examples
    --------
    >>> positive(np.array([[1.0, 0.2], [0.2, 1.0]]))
    array([[1. , 0.2],
           [0.2, 1. ]])
    """
    values, vectors = np.linalg.eigh(correlation)
    full = (vectors * np.maximum(values, _LEAST_EIGENVALUE)) @ vectors.T
    return np.asarray(full / np.sqrt(np.outer(np.diag(full), np.diag(full))))


def smoothed_log_odds(rows: Floats, noise: float) -> Floats:
    """Log-odds of the second label by signature from rows (2, signatures), drawn to the base rate.

    As many rows of the base rate are added as the noise in a count is worth, and two more.
    """
    total, base = rows.sum(axis=0), rows[1].sum() / rows.sum()
    prior = _PRIOR_LOG_ODDS + noise**2 / np.maximum(total, 1.0)
    share = (rows[1] + prior * base) / (total + prior)
    return np.asarray(logit(np.clip(share, 1e-4, 1.0 - 1e-4)))
