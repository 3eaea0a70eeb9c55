"""Means of cells, drawn to what is known of them otherwise by as much as their noise deserves.

A cell of n rows made of k noisy blocks has a mean with noise of variance
``s^2 = k sigma^2 / n^2``. If true means scatter around a line with variance t^2,
the best guess of a cell's mean keeps ``t^2 / (t^2 + s^2)`` of its distance to the
line. t^2 is what noisy means scatter beyond their noise (DerSimonian and Laird,
with moderators). There are two lines, the mean of the label, and a regression on
label and shared columns; each column takes the one, or stays as it is, by
Stein's unbiased estimate of the squared error over all rows. Sums of a label stay as
they are. It is arithmetic on noisy numbers: it costs no budget.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from radocraft.arrays import Floats, Ints
from radocraft.cells import Cells

_TINY = 1e-12


def without_noise(cells: Cells, blocks: Ints, sigma: float) -> Cells:
    """The cells with shrunk sums, made of so many noisy blocks each, whose sums have noise ``sigma``."""
    rows = cells.rows.astype(np.float64)
    label = (cells.labels[:, None] == np.unique(cells.labels)).astype(np.float64)
    both = np.hstack([label, cells.shared.toarray() / rows[:, None]])
    noisy = Noisy(cells.sums / rows[:, None], blocks * (sigma / rows) ** 2, rows)
    means = noisy.best([label, both])
    left = label.T @ (cells.sums - rows[:, None] * means) / (label.T @ rows)[:, None]
    return replace(cells, sums=rows[:, None] * (means + label @ left))


@dataclass(frozen=True)
class Noisy:
    """Means of cells (a row each) with noise of known variance, and how much each cell counts."""

    means: Floats
    variance: Floats
    weight: Floats

    def best(self, lines: list[Floats]) -> Floats:
        """Every column drawn to the line that promises least error, or left alone.

        Examples
        --------
        >>> ones = np.ones((4, 1))
        >>> alike = np.array([[1.0], [2.0], [3.0], [2.0]])
        >>> Noisy(alike, np.full(4, 9.0), np.ones(4)).best([ones]).ravel().round(6)
        array([2., 2., 2., 2.])
        >>> Noisy(alike, np.zeros(4), np.ones(4)).best([ones]).ravel()
        array([1., 2., 3., 2.])
        """
        out, least = self.means.copy(), np.full(self.means.shape[1], self.weight @ self.variance)
        if not self.variance.max() > 0:
            return out
        for line in lines:
            for at, scatter in enumerate(self.scatter(line)):
                drawn, risk = self.drawn(line, self.means[:, at], scatter)
                if risk < least[at]:
                    out[:, at], least[at] = drawn, risk
        return out

    def scatter(self, line: Floats) -> Floats:
        """Per column, how far true means scatter around a line: t^2."""
        weight = 1.0 / np.maximum(self.variance, _TINY * self.variance.max())
        slopes = regression(line, weight)
        leverage = np.einsum("cp,pc->c", line, slopes)
        beyond = weight @ (self.means - line @ (slopes @ self.means)) ** 2 - (len(weight) - leverage.sum())
        return np.asarray(np.maximum(beyond, 0.0) / max(float(weight @ (1.0 - leverage)), _TINY))

    def drawn(self, line: Floats, means: Floats, scatter: float) -> tuple[Floats, float]:
        """Means drawn to a line, and an unbiased estimate of their weighted squared error (Stein)."""
        spread = scatter + np.maximum(self.variance, _TINY * self.variance.max())
        slopes, kept = regression(line, 1.0 / spread), scatter / spread
        out = kept * means + (1.0 - kept) * (line @ (slopes @ means))
        own = kept + (1.0 - kept) * np.einsum("cp,pc->c", line, slopes)
        return out, float(self.weight @ ((means - out) ** 2 + (2.0 * own - 1.0) * self.variance))


def regression(line: Floats, weight: Floats) -> Floats:
    """The matrix that turns means into the coefficients of their weighted regression on a line."""
    root = np.sqrt(weight)
    return np.asarray(np.linalg.pinv(root[:, None] * line, rcond=1e-9) * root)
