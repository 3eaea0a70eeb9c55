"""Virtual rows: rows that agree with what the peers released about their scores.

Inside each signature and label correlated normals are drawn, z ~ N(0, R), and each
peer's scores are given out by their ranks within the peer's own cell:

    score = mean_cell + deviation_cell * Q_label(rank of z)

with Q the quantiles of its histogram. Noise in a cell's mean blurs that, so all scores of
a label are then moved to where the peer's own count of its scores by bins has them. So
every peer's own margins are met, whatever the correlation R of peers' scores inside label
and signature; R = identity is expected matching.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from scipy.special import expit, logit

from radocraft.arrays import Floats, Ints
from radocraft.contract import Contract
from radocraft.sums import TOP, ScoreCells, locate

_FEWEST, _MOST, _TIMES = 6_000, 30_000, 4.0
_LEAST_EIGENVALUE = 0.03
_TRACE = 0.01
_PRIOR_LOG_ODDS, _SEEN, _LEAST_TOLD = 2.0, 5.0, 0.02
_UNSURE, _FAINT, _TINY = 0.3, 0.02, 1e-9


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
    def counted(self) -> Floats:
        """Rows of every label and signature: a cell's, in the shares of its signatures; the mean over peers.

        These shares are drawn to equal ones, by as many rows as there is noise in a count.
        """
        return np.asarray(np.mean([*map(self._rows_of, self.peers, self.cells)], axis=0))

    @cached_property
    def rows(self) -> Floats:
        """The same, with labels in each signature as its log-odds say: what is noise in their shares tells nothing."""
        share, total = expit(self.log_odds), self.counted.sum(axis=0)
        rows = np.array([total * (1.0 - share), total * share])
        return np.asarray(rows * (self.counted.sum(axis=1) / rows.sum(axis=1))[:, None])

    @staticmethod
    def _rows_of(cells: ScoreCells, place: Ints) -> Floats:
        clear = np.maximum(cells.counts, 0.0) + np.maximum(cells.levels.rows, _TRACE)
        inside = np.bincount(place.ravel(), clear.ravel(), len(cells.rows))
        return np.asarray(cells.rows[place] * clear / inside[place])

    @cached_property
    def log_odds(self) -> Floats:
        """Log-odds of the second label by signature."""
        noise = float(np.mean([cells.levels.rows**2 for cells in self.peers]) / len(self.peers)) ** 0.5
        return smoothed_log_odds(self.counted, noise)

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
    scores = np.clip(cells.means[own] + cells.deviations[own] * cells.quantile(label, share), -TOP, TOP)
    return matched(scores, cells.margins[label], cells.levels.margins[label], cells.margin_edges)


def matched(scores: Floats, counts: Floats, noise: float, edges: Floats) -> Floats:
    """Scores moved, in their order, so that each bin has the share of them that was counted in it.

    Counts are drawn to the shares the scores have already, by how much of them is noise. Inside a bin
    scores keep their distances.

    Examples
    --------
    >>> scores, edges = np.linspace(-0.9, 0.9, 10), np.array([-1.0, 0.0, 1.0])
    >>> matched(scores, np.array([80.0, 20.0]), 0.0, edges).round(1)
    array([-0.9, -0.8, -0.7, -0.6, -0.4, -0.3, -0.2, -0.1,  0.2,  0.7])
    """
    own = np.sort(scores)
    below = np.searchsorted(own, edges) / len(own)
    below[[0, -1]] = 0.0, 1.0
    expected = np.diff(below) * max(float(counts.sum()), 1.0)
    unsure = (_UNSURE * expected) ** 2 + expected / 4.0
    weight = unsure / np.maximum(unsure + noise**2, _TINY)
    heights = np.maximum(expected + weight * (counts - expected), _FAINT * expected)
    heights = np.where((noise == 0.0) & (expected == 0.0), np.maximum(counts, 0.0), heights)
    reached = np.concatenate([[0.0], np.cumsum(heights)]) / heights.sum()
    share = (np.argsort(np.argsort(scores, kind="stable"), kind="stable") + 0.5) / len(scores)
    return np.asarray(np.interp(np.interp(share, reached, below) * len(own) - 0.5, np.arange(len(own)), own))


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

    Shares differ by chance and noise, with a variance v that is known, and by what signatures tell, with the
    variance t that is left of theirs: each is drawn to the base rate by v / (t + v), as by v / t times its rows
    of the base rate, and two rows more.
    """
    total, base = rows.sum(axis=0), rows[1].sum() / rows.sum()
    share, least = rows[1] / total, np.maximum(total, 1.0)
    chance = base * (1.0 - base) / least + (noise / least) ** 2 * (share**2 + (1.0 - share) ** 2)
    told = float(np.average((share - base) ** 2 - chance, weights=total * (total >= _SEEN)))
    prior = _PRIOR_LOG_ODDS + least * chance / max(told, _LEAST_TOLD * (base * (1.0 - base)) ** 2)
    share = (rows[1] + prior * base) / (total + prior)
    return np.asarray(logit(np.clip(share, 1e-4, 1.0 - 1e-4)))
