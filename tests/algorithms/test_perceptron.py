"""Facts of Crammer & Singer 2003 and Fink et al. 2006 alone."""

import math

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import perceptron as file
from gaptron.errors import SettingError
from gaptron.types import Comparator, Feedback, Loss, Problem
from tests import plain
from tests.conftest import random_stream, separable_stream


def play_by_hand(learner, rounds):
    for t, (x, y, played, W) in enumerate(rounds, 1):
        decision = learner.decide(x)
        assert decision.label == played, f"round {t}"
        assert decision.propensity == 1.0
        learner.learn(decision, label=y)
        np.testing.assert_allclose(learner.weights, W, atol=1e-15, err_msg=f"round {t}")


def test_six_rounds_by_hand():
    learner = gaptron.Learner("perceptron", n_classes=3, seed=0)
    play_by_hand(
        learner,
        [
            ([1, 0], 2, 0, [[-1, 0], [0, 0], [1, 0]]),  # all zero: the lowest label plays
            ([1, 0], 2, 2, [[-1, 0], [0, 0], [1, 0]]),  # z = (-1, 0, 1): right, nothing moves
            ([1, 2], 1, 2, [[-1, 0], [1, 2], [0, -2]]),  # z = (-1, 0, 1)
            ([0, 1], 0, 1, [[-1, 1], [1, 1], [0, -2]]),  # z = (0, 2, -2)
            ([0, -1], 2, 2, [[-1, 1], [1, 1], [0, -2]]),  # z = (-1, -1, 2)
            ([-2, 1], 1, 0, [[1, 0], [-1, 2], [0, -2]]),  # z = (3, -1, -2)
        ],
    )


def test_uniform_rounds_by_hand():
    learner = gaptron.Learner("perceptron", n_classes=3, update="uniform", seed=0)
    play_by_hand(
        learner,
        [
            ([2, 0], 2, 0, [[-1, 0], [-1, 0], [2, 0]]),  # both others tie with the truth: half each
            ([1, 1], 1, 2, [[-1.5, -0.5], [0, 1], [1.5, -0.5]]),  # z = (-1, -1, 2), E = {0, 2}
            ([0, 2], 1, 1, [[-1.5, -0.5], [0, 1], [1.5, -0.5]]),  # z = (-1, 2, -1)
            ([0, 2], 0, 1, [[-1.5, 1.5], [0, 0], [1.5, -1.5]]),  # E = {1, 2}: the tie with the truth pays too
            ([1, 0], 1, 2, [[-1.5, 1.5], [1, 0], [0.5, -1.5]]),  # z = (-1.5, 0, 1.5), E = {2}
        ],
    )


def test_proportional_rounds_by_hand():
    learner = gaptron.Learner("perceptron", n_classes=3, update="proportional", seed=0)
    play_by_hand(
        learner,
        [
            ([4, 0], 2, 0, [[-2, 0], [-2, 0], [4, 0]]),  # no gaps at all: uniform
            ([0, 4], 1, 0, [[-2, -2], [-2, 4], [4, -2]]),  # again
            ([1, 0], 2, 2, [[-2, -2], [-2, 4], [4, -2]]),
            ([1, 1], 0, 1, [[-1, -1], [-2.5, 3.5], [3.5, -2.5]]),  # z = (-4, 2, 2): gaps 6 and 6
            ([2, 0], 1, 2, [[-1.4, -1], [-0.5, 3.5], [1.9, -2.5]]),  # z = (-2, -5, 7): gaps 3 and 12
        ],
    )


@pytest.mark.parametrize("update", file.UPDATES)
def test_a_whole_run_equals_the_textbook(update):
    X, y, K = random_stream(300, K=5, seed=8)
    learner = gaptron.Learner("perceptron", n_classes=K, update=update, seed=0)
    trace = learner.play(X, y)
    tops, W = plain.perceptron(X, y, K, update)
    np.testing.assert_array_equal(trace.codes, tops)
    np.testing.assert_allclose(learner.weights, W, atol=1e-10)


@pytest.mark.parametrize("update", file.UPDATES)
def test_every_update_moves_no_mass_and_points_the_right_way(update):
    """⟨W, update⟩ ≤ 0, ‖update‖² ≤ 2‖x‖², columns sum to zero: all the proof uses."""
    X, y, K = random_stream(200, K=6, seed=3)
    learner = gaptron.Learner("perceptron", n_classes=K, update=update, seed=0)
    before = np.zeros((K, X.shape[1]))
    for t in range(200):
        learner.play(X[t : t + 1], y[t : t + 1])
        step = learner.weights - before
        assert np.sum(before * step) <= 1e-12
        assert np.sum(step**2) <= 2 * X[t] @ X[t] + 1e-12
        np.testing.assert_allclose(step.sum(axis=0), 0, atol=1e-12)
        before = learner.weights


def test_the_scale_of_the_weights_does_not_matter():
    X, y, K = random_stream(200, seed=1)
    one = gaptron.Learner("perceptron", n_classes=K).play(X, y)
    two = gaptron.Learner("perceptron", n_classes=K).play(8 * X, y)
    np.testing.assert_array_equal(one.codes, two.codes)


def test_a_separable_stream_ends_without_mistakes():
    X, y, K = separable_stream(300)
    learner = gaptron.Learner("perceptron", n_classes=K)
    passes = [learner.play(X, y).mistakes for _ in range(30)]
    assert passes[0] > 0 == passes[-1]


def test_the_bound_is_the_mended_one():
    problem = Problem(3, 2, Feedback.FULL, Loss.HINGE, 2.0)
    value = file.bound(problem, file.recommend(problem), Comparator(8.0, 3.0, 100))
    assert value == pytest.approx(8 + 2 * 36 + 6 * math.sqrt(16))


def test_it_needs_no_norm_no_radius_and_no_horizon():
    learner = gaptron.Learner("perceptron", n_classes=3)
    learner.learn(learner.decide([1.0, 2.0]), label=1)
    assert learner.bound([[1.0, 2.0]], [1]).value >= 0


def test_bandit_feedback_is_refused():
    with pytest.raises(SettingError, match="perceptron takes feedback full, not bandit"):
        gaptron.Learner("perceptron", n_classes=3, feedback="bandit")


def test_another_loss_is_refused():
    with pytest.raises(SettingError, match="perceptron takes loss hinge, not logistic"):
        gaptron.Learner("perceptron", n_classes=3, loss="logistic")


def test_an_unknown_update_names_the_choices():
    with pytest.raises(SettingError, match="worst, uniform, proportional"):
        gaptron.Learner("perceptron", n_classes=3, update="best")
