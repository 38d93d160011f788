"""The best rule in hindsight, on streams of a few rounds."""

import math

import numpy as np
import pytest

from gaptron.theory import comparator
from gaptron.types import Comparator, Loss

X = np.array([[1.0, 0.0], [0.8, 0.1], [0.0, 1.0], [0.1, 0.9], [0.7, 0.7]])
Y = np.array([0, 0, 1, 1, 0])


@pytest.mark.parametrize("loss", list(Loss))
def test_the_coefficients_are_the_gradient_of_the_loss(loss):
    """By finite differences in the scores, away from kinks."""
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    value, C = comparator.losses(loss, Z, y)
    for k in range(3):
        step = np.zeros(3)
        step[k] = 1e-7
        slope = (comparator.losses(loss, Z + step, y)[0] - value) / 1e-7
        np.testing.assert_allclose(C[:, k], slope, atol=1e-5)


@pytest.mark.parametrize("radius", [0.1, 0.5, 2.0])
def test_a_rule_is_inside_the_ball_and_better_than_a_smaller_multiple_of_itself(radius):
    """A bound that is the loss alone wants the longest rule. The ball is used up to a few per cent."""

    def bound(at):
        return at.loss + 1e-3 * at.norm**2 if at.norm <= radius * (1 + 1e-9) else math.inf

    best = comparator.best(X, Y, 2, Loss.LOGISTIC, bound, radius=radius)
    assert 0.9 * radius < np.linalg.norm(best.U) <= radius
    value, _ = comparator.losses(Loss.LOGISTIC, X @ best.U.T, Y)
    assert best.comparator == Comparator(pytest.approx(value.sum()), pytest.approx(np.linalg.norm(best.U)), 5)
    smaller, _ = comparator.losses(Loss.LOGISTIC, 0.8 * X @ best.U.T, Y)
    assert value.sum() < smaller.sum()
