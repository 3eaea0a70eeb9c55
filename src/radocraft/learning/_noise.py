"""How much the noise in the parts costs a fit.

In the directions of G / M (the constant eliminated) with eigenvalues l_i and the
label's products t_i, ridge gives t_i / (l_i + alpha), and without noise t_i / l_i
would be best. Let n_i be the variance of the noise in t_i: that of the sums, and
that of the second moments times the weights they are multiplied with. Then the
noise, and the alpha it calls for, raise the loss by about

    sum_i  t_i^2 / l_i (alpha / (l_i + alpha))^2  +  n_i l_i / (l_i + alpha)^2

where t_i^2 is what is seen less n_i, no less than 0, and 0 in directions that
the noise of the second moments drowns: nobody can tell what is lost there.
"""

from __future__ import annotations

import numpy as np

from radocraft.arrays import Floats
from radocraft.learning._blocks import Blocks
from radocraft.learning._fit import Fit

_RANK = 1e-9


def noise_cost(blocks: Blocks, fit: Fit) -> float:
    """How much more loss the parts' noise is expected to have cost; 0 without noise, and for the paper's method."""
    noisy = noise_of(blocks, fit)
    if not noisy.any() or "alpha" not in fit.settings:
        return 0.0
    known, alpha = fit.known, float(fit.settings["alpha"])
    gram, r = known.expected() / known.total, (known.r / known.total).reshape(len(known.r), -1)
    if known.layout.intercept:
        edge = gram[0, 1:]
        gram, r, noisy = gram[1:, 1:] - np.outer(edge, edge), r[1:] - np.outer(edge, r[0]), noisy[1:]
    values, vectors = np.linalg.eigh(gram)
    kept = values > _RANK * values.max(initial=0.0)
    values, vectors = values[kept], vectors[:, kept]
    noise = (vectors**2).T @ noisy
    seen = np.maximum(np.mean((vectors.T @ r) ** 2, axis=1) - noise, 0.0) * (values > known.noise)
    return float(np.sum(seen / values * (alpha / (values + alpha)) ** 2 + noise * values / (values + alpha) ** 2))


def noise_of(blocks: Blocks, fit: Fit) -> Floats:
    """Per coordinate the variance of the noise in r / M, and in G / M times the weights of the same peer."""
    out = np.zeros(fit.layout.size)
    for cells, places in zip(blocks.cells, fit.layout.held, strict=True):
        length = float(np.mean(np.sum(fit.theta[places].reshape(len(places), -1) ** 2, axis=0)))
        sums, moments = len(cells.rows) * cells.levels.sums**2, len(cells.by_label) * cells.levels.moments**2
        out[places] += (sums + moments * length) / cells.total**2
    return out


def noise_gain(blocks: Blocks, fit: Fit) -> float:
    """By how much a fit follows the noise: what r^T theta / M gains by it, and new rows do not.

    In the directions of G / M a target whose noise has the variance n_i gains n_i / (l_i + alpha).
    """
    noisy = noise_of(blocks, fit)
    if not noisy.any() or "alpha" not in fit.settings:
        return 0.0
    known = fit.known
    values, vectors = np.linalg.eigh(known.expected() / known.total)
    return float(np.sum((vectors**2).T @ noisy / (np.maximum(values, known.noise) + float(fit.settings["alpha"]))))
