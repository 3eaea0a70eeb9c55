"""The two losses of the paper and why they are one.

Symbols, as in the paper: an example is ``(x_i, y_i)`` with ``y_i`` in {-1, 1};
``y_i x_i`` is its edge; a rado is the sum of a subset of the edges; ``theta`` is
the classifier, ``Gamma`` the regularisation, ``m`` the number of examples.

Theorem 1, for every ``theta``::

    square_loss(X, y, theta, Gamma) = 1 + (4 / m) * m_loss(all 2^m rados, theta, Gamma)

The paper prints the M-loss as ``-(E - V / 2)``. With that factor the theorem
does not hold: the variance over all rados is ``(1/4) sum_i (theta^T x_i)^2``, and
the square loss needs ``(1/m) sum_i (theta^T x_i)^2 = (4/m) V``. So the variance
counts once, and that is what stands here.
"""

from __future__ import annotations

import numpy as np

from radocraft.arrays import Floats


def square_loss(examples: Floats, labels: Floats, theta: Floats, gamma: Floats) -> float:
    """Ridge-regularised square loss, ``mean_i (1 - y_i theta^T x_i)^2 + theta^T Gamma theta``.

    Examples
    --------
    >>> square_loss(np.eye(2), np.array([1.0, -1.0]), np.array([1.0, -1.0]), np.zeros((2, 2)))
    0.0
    """
    margins = labels * (examples @ theta)
    return float(np.mean((1.0 - margins) ** 2) + theta @ gamma @ theta)


def m_loss(rados: Floats, theta: Floats, gamma: Floats, size: int) -> float:
    """Regularised M-loss over the rows of ``rados``: ``-(E - V) + (m / 4) theta^T Gamma theta``.

    Mean and variance are over the rados drawn uniformly; ``size`` is ``m``.
    """
    returns = rados @ theta
    return m_loss_of(float(np.mean(returns)), float(np.var(returns)), theta, gamma, size)


def m_loss_of(mean: float, variance: float, theta: Floats, gamma: Floats, size: int) -> float:
    """The same from mean and variance of ``theta^T rado``."""
    return float(-(mean - variance) + size / 4.0 * (theta @ gamma @ theta))
