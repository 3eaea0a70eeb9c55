"""RadoCraft and DRL, as the paper has them.

Symbols: ``B`` holds one basic block rado per column,

    B_b = u_b lift(y_b s_b) + sum_j lift(y_b S_jb)                  (paper, eq. 3)

with ``u_b`` the block's weight, ``s_b`` its shared features, ``S_jb`` the sum of
peer j's private columns. The minimiser of the M-loss over all sums of block
rados is (Theorem 4)

    theta = (B B^T + dim_c(B) Gamma)^-1 B 1

with ``dim_c(B)`` the number of columns. Gamma is ``Diag(1 on shared, gamma on
private)``, gamma by cross-validation over the block rados, or the identity. What
the paper's text leaves open of this is in `RadoChoices`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import solve

from radocraft.arrays import Floats, Truths
from radocraft.contract import TwoValues
from radocraft.errors import LearnError
from radocraft.learning._blocks import Blocks
from radocraft.learning._completion import complete
from radocraft.learning._fit import Fit, Layout
from radocraft.learning._losses import m_loss_of
from radocraft.model import Tuning

GAMMAS = (0.01, 1.0, 100.0)
_FOLDS = 10
_POWER = {"columns": 0, "rows": 1, "mean-block": 2}

Regularisation = Literal["tuned", "identity"]


@dataclass(frozen=True)
class RadoChoices:
    """What the paper leaves open about DRL; m are the rows, K the blocks.

    Parameters
    ----------
    score
        How cross-validation scores held-out rados: ``drawn``, by mean and variance of one of them, with the
        penalty; ``all-sums``, by those of a sum of any of them (half their sum, a quarter of their sum of squares),
        the set of which Theorem 4 speaks, without it.
    gamma_scale
        What Gamma is multiplied by: ``columns`` K (Theorem 4), ``rows`` m, ``mean-block`` m^2 / K, as if all rados
        were divided by the mean size of a block.
    """

    score: Literal["drawn", "all-sums"] = "drawn"
    gamma_scale: Literal["columns", "rows", "mean-block"] = "columns"


def fit_drl(
    blocks: Blocks, regularisation: Regularisation = "tuned", seed: int = 0, choices: RadoChoices | None = None
) -> Fit:
    """Distributed Rado-Learn over merged blocks."""
    if not isinstance(blocks.contract.label, TwoValues):
        raise LearnError("The paper's method handles two classes only. Learn with the method `matching`.")
    layout = Layout.of(blocks)
    folds = in_folds(blocks, seed)
    gamma, tuning = choose_gamma(folds, layout.private_mask, float(blocks.counters.sum()), regularisation, choices)
    rados = sum(folds[1:], folds[0])
    settings: dict[str, float | str] = {"regularisation": regularisation}
    return Fit("drl", rados.minimiser(gamma), complete(blocks), settings, tuning, rados.freedom(gamma))


def choose_gamma(
    folds: list[Rados],
    private: Truths,
    rows: float,
    regularisation: Regularisation = "tuned",
    choices: RadoChoices | None = None,
) -> tuple[Floats, Tuning | None]:
    """Gamma, scaled as chosen, and how it was tuned; ``private`` says which coordinates are."""
    choices = choices or RadoChoices()
    scale = (rows / sum(fold.count for fold in folds)) ** _POWER[choices.gamma_scale]
    if regularisation == "identity":
        return scale * np.eye(len(private)), None
    tuning = cross_validate(folds, private, choices.score, scale)
    return scale * weighted(private, tuning.chosen), tuning


def block_rados(blocks: Blocks) -> Floats:
    """The matrix B, one basic block rado per column."""
    constant = [np.ones((len(blocks), 1))] if blocks.contract.intercept else []
    shared = np.hstack([*constant, blocks.shared_means]) * blocks.counters[:, None]
    stacked = np.hstack([shared, *(counted(blocks, index) for index in range(len(blocks.cells)))])
    return (stacked * blocks.labels[:, None]).T.astype(np.float64)


def counted(blocks: Blocks, index: int) -> Floats:
    """Sums of the columns that a peer owns, the mean over their holders, so that Theorem 3 holds for each."""
    names = [blocks.cells[index].columns[column] for column in blocks.owned(index)]
    out: Floats = blocks.pooled(index) / np.array([len(blocks.holders[name]) for name in names])
    return out


@dataclass(frozen=True)
class Rados:
    """What the closed form needs of some block rados, the columns of B: B B^T, B 1 and how many they are."""

    gram: Floats
    sum: Floats
    count: int

    @classmethod
    def of(cls, rados: Floats) -> Rados:
        """Those of a matrix B."""
        return cls(rados @ rados.T, rados.sum(axis=1), rados.shape[1])

    def __add__(self, other: Rados) -> Rados:
        return Rados(self.gram + other.gram, self.sum + other.sum, self.count + other.count)

    def minimiser(self, gamma: Floats) -> Floats:
        """Theorem 4: (B B^T + dim_c(B) Gamma)^-1 B 1."""
        theta: Floats = solve(self.gram + self.count * gamma, self.sum, assume_a="pos")
        return theta

    def freedom(self, gamma: Floats) -> float:
        """The trace of (B B^T + dim_c(B) Gamma)^-1 B B^T."""
        return float(np.trace(solve(self.gram + self.count * gamma, self.gram, assume_a="pos")))

    def loss(self, theta: Floats, gamma: Floats) -> float:
        """The M-loss over these rados."""
        mean = float(self.sum @ theta) / self.count
        variance = float(theta @ self.gram @ theta) / self.count - mean**2
        return m_loss_of(mean, max(variance, 0.0), theta, gamma, self.count)

    def loss_of_sums(self, theta: Floats) -> float:
        """The M-loss over the sums of all subsets of these rados, without a penalty."""
        return float(-(self.sum @ theta / 2.0 - theta @ self.gram @ theta / 4.0))


def in_folds(blocks: Blocks, seed: int) -> list[Rados]:
    """All block rados in at most ten random parts of about one size, each added up piece by piece."""
    size, start = Layout.of(blocks).size, 0
    fold = np.empty(len(blocks), dtype=np.int64)
    order = np.array_split(np.random.default_rng(seed).permutation(len(blocks)), min(_FOLDS, len(blocks)))
    for at, members in enumerate(order):
        fold[members] = at
    out = [Rados(np.zeros((size, size)), np.zeros(size), 0)] * len(order)
    for piece in blocks.pieces():
        rados, here = block_rados(piece), fold[start : start + len(piece)]
        out = [known + Rados.of(rados[:, here == at]) for at, known in enumerate(out)]
        start += len(piece)
    return out


def weighted(private: Truths, gamma: float) -> Floats:
    """Gamma = Diag(1 on shared, gamma on private)."""
    return np.diag(np.where(private, gamma, 1.0))


def cross_validate(
    folds: list[Rados], private: Truths, score: Literal["drawn", "all-sums"] = "drawn", scale: float = 1.0
) -> Tuning:
    """The paper's ten-fold cross-validation over block rados, scored by the M-loss of the held-out ones."""
    kept = [sum(others[1:], others[0]) for fold in range(len(folds)) if (others := folds[:fold] + folds[fold + 1 :])]
    scores = []
    for candidate in GAMMAS:
        gamma = scale * weighted(private, candidate)
        thetas = [rest.minimiser(gamma) for rest in kept]
        losses = [
            out.loss(theta, gamma) if score == "drawn" else out.loss_of_sums(theta)
            for out, theta in zip(folds, thetas, strict=False)
        ]
        scores.append(float(np.mean(losses)) if losses else 0.0)
    chosen = GAMMAS[int(np.argmin(scores))]
    return Tuning(method="cross-validation over rados", chosen=chosen, candidates=GAMMAS, scores=tuple(scores))
