"""The two losses, on numbers small enough to do by hand."""

import numpy as np
import pytest

from radocraft.learning._losses import m_loss, square_loss


def test_the_square_loss_by_hand():
    examples, labels = np.array([[1.0, 2.0], [3.0, -1.0]]), np.array([1.0, -1.0])
    theta, gamma = np.array([0.5, 1.0]), np.diag([2.0, 3.0])
    # margins 2.5 and -0.5: losses 2.25 and 2.25; penalty 0.5 + 3
    assert square_loss(examples, labels, theta, gamma) == pytest.approx(2.25 + 3.5)


def test_the_m_loss_by_hand():
    rados = np.array([[0.0], [2.0], [4.0], [2.0]])
    # returns 0, 1, 2, 1: mean 1, variance 1/2; penalty (8 / 4) * 3 / 4
    assert m_loss(rados, np.array([0.5]), np.array([[3.0]]), 8) == pytest.approx(-(1.0 - 0.5) + 1.5)
