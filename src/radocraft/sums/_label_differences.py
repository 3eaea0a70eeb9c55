"""What proportions of the label say about a peer's columns, and how far that can be trusted.

The shared features move a column's mean whatever the label is, so they stand beside
the proportions, over groups g of rows with one signature,

    m_g = a + B s_g + sum_c pi_gc delta_c                                  (docs, eq. 7)

in directions of the columns that are uncorrelated, of variance 1, inside groups.
Least squares gives ``delta`` and its variance ``v`` from what it leaves
unexplained. That is not all that can be wrong: where shared features act together on
columns and label, the proportions take the credit, and no residual shows it. But the
holders of the label have columns of their own. There the same regression gives ``e``
with variance ``v``, and their cells the truth ``t``: so we know how large differences
between classes are here, and by how much proportions miss them,

    A = mean of t^2,    w = mean of (e - t)^2 - v,                         (docs, eq. 8)

``w`` with one column more that missed by all of A, so that few columns do not pass for
proof. Taking the peer's columns to be of the same kind, the best guess of a difference is
``delta A / (A + v + w)``, and its remaining variance is ``A (v + w) / (A + v + w)``. Certainty is the share of
the squared guesses in guesses plus variance: 1 where differences are known, 0 where proportions
say nothing. Then the guess is 0 with variance A, and matching gives the peer's columns almost no weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from radocraft.arrays import Floats
from radocraft.sums._cells import Cells

_RANK = 1e-6
_WHOLE = 0.9
_FEWEST = 2


@dataclass(frozen=True)
class Groups:
    """A peer's rows by signature: their number, the shared features' means, and means in uncorrelated directions.

    ``back`` turns a direction into the peer's columns.
    """

    rows: Floats
    shared: Floats
    means: Floats
    back: Floats

    @classmethod
    def of(cls, rows: Floats, sums: Floats, shared: Floats, moments: Floats) -> Groups:
        """From sums by group, and second moments over the table."""
        means, total, width = sums / rows[:, None], float(rows.sum()), sums.shape[1]
        inside = moments[:width, :width] / total - (means.T * rows) @ means / total
        values, vectors = np.linalg.eigh((inside + inside.T) / 2.0)
        kept = values > _RANK * max(float(values.max(initial=0.0)), np.finfo(float).tiny)
        root, vectors = np.sqrt(values[kept]), vectors[:, kept]
        return cls(rows, shared / rows[:, None], means @ (vectors / root), (vectors * root).T)

    def differences(self, shares: Floats) -> tuple[Floats, Floats]:
        """How far each class but the first is from the first, per direction, by proportions; and the variance."""
        root = np.sqrt(self.rows)[:, None]
        known = root * np.column_stack([np.ones(len(root)), self.shared])
        shares_left, moved = without(known, root * shares[:, 1:]), without(known, root * self.means)
        estimates = np.asarray(np.linalg.lstsq(shares_left, moved, rcond=_RANK)[0], dtype=np.float64)
        rank = int(
            np.linalg.matrix_rank(shares_left, tol=_RANK * max(float(np.abs(shares_left).max(initial=0.0)), 1.0))
        )
        left = len(root) - int(np.linalg.matrix_rank(known, tol=1e-8 * float(self.rows.sum()) ** 0.5)) - rank
        if rank < shares_left.shape[1] or left < _FEWEST:
            return np.zeros_like(estimates), np.full_like(estimates, np.inf)
        noise = np.sum((moved - shares_left @ estimates) ** 2, axis=0) / left
        return estimates, np.outer(np.diag(np.linalg.pinv(shares_left.T @ shares_left)), noise)


@dataclass(frozen=True)
class Trust:
    """What the holders' own columns say about proportions: A and w of eq. 8."""

    size: float
    missed: float

    @classmethod
    def tested(cls, guesses: list[tuple[Floats, Floats, Floats]]) -> Trust:
        """From guesses, their variances and the truth, for every holder of the label."""
        guess, variance, truth = (np.concatenate([each[kind].ravel() for each in guesses]) for kind in range(3))
        size, tested_on = float(np.mean(truth**2)) if len(truth) else 0.0, np.isfinite(variance)
        missed = float(np.sum((guess - truth)[tested_on] ** 2 - variance[tested_on])) + size
        return cls(size, max(missed / (int(tested_on.sum()) + 1), 0.0))

    def kept(self, variance: Floats) -> Floats:
        """The share of a guess to keep."""
        return np.asarray(self.size / np.maximum(self.size + self.missed + variance, np.finfo(float).tiny))

    def uncertainty(self, variance: Floats) -> Floats:
        """The variance that stays."""
        return self.size * (1.0 - self.kept(variance))


@dataclass(frozen=True)
class LabelDifferences:
    """How a peer's columns differ by label, as far as proportions say.

    ``contrasts`` is how far each class is from the first, per column; ``uncertainty``, for every
    score of the model, the covariance of the peer's part of r / M; ``certainty``, from 0 to 1,
    how much of the differences is known.
    """

    contrasts: Floats
    uncertainty: Floats
    certainty: float


def label_differences(
    peer: Cells, shares: Floats, tests: list[tuple[Cells, csr_array]], codes: tuple[int, ...]
) -> LabelDifferences:
    """What the shares of the label in a peer's cells say about its columns.

    ``tests`` are the holders' cells, and where their rows are: for
    every holder a matrix says what share of each of its cells (rows) lies in each of the peer's (columns).
    """
    groups = Groups.of(peer.rows.astype(np.float64), peer.sums, peer.shared.toarray(), peer.moments)
    trust = Trust.tested([tested_on(holder, overlap, codes) for holder, overlap in tests])
    estimates, variance = groups.differences(shares)
    weight = groups.rows / groups.rows.sum()
    sure, unsure = float(np.sum((estimates * trust.kept(variance)) ** 2)), trust.uncertainty(variance)
    contrasts = np.vstack([np.zeros(estimates.shape[1]), estimates * trust.kept(variance)])
    within_groups = contrasts - (shares @ contrasts)[:, None, :]
    within = np.einsum("g,gc,gck,gcl->kl", weight, shares, within_groups, within_groups)
    largest = float(np.linalg.eigvalsh(within).max(initial=0.0))
    contrasts *= min(1.0, (_WHOLE / largest) ** 0.5) if largest > 0 else 1.0
    mixed = 2.0 * (np.diag(weight @ shares) - (shares.T * weight) @ shares)
    scores = mixed[1:, 1:] if len(codes) == 2 else mixed[:, 1:]
    uncertainty = np.einsum("oj,jk,ka,kb->oab", scores**2, unsure, groups.back, groups.back)
    return LabelDifferences(
        contrasts @ groups.back, uncertainty, sure / max(sure + float(np.sum(unsure)), np.finfo(float).tiny)
    )


def tested_on(holder: Cells, overlap: csr_array, codes: tuple[int, ...]) -> tuple[Floats, Floats, Floats]:
    """On a holder's own columns: what proportions say, its variance, and the truth inside groups."""
    label = (holder.labels[:, None] == np.array(codes)).astype(np.float64)
    counts = overlap.T @ (label * holder.rows[:, None])
    rows = counts.sum(axis=1)
    seen = rows > 0
    counts, rows = counts[seen], rows[seen]
    groups = Groups.of(
        rows, (overlap.T @ holder.sums)[seen], (overlap.T @ holder.shared).toarray()[seen], holder.moments
    )
    shares = counts / rows[:, None]
    guess, variance = groups.differences(shares)
    whitening = np.linalg.pinv(groups.back)
    mixed = np.diag(counts.sum(axis=0)) - counts.T @ shares
    beyond = (label * overlap.sum(axis=1)[:, None]).T @ holder.sums @ whitening - counts.T @ groups.means
    truth = np.linalg.lstsq(mixed[1:, 1:], beyond[1:], rcond=_RANK)[0]
    return guess, variance, np.asarray(truth, dtype=np.float64)


def without(known: Floats, values: Floats) -> Floats:
    """What is left of values when all that is known has explained what it can."""
    return np.asarray(values - known @ np.linalg.lstsq(known, values, rcond=1e-9)[0])
