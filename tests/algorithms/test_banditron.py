"""Facts of Kakade, Shalev-Shwartz & Tewari 2008 alone."""

import math

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import banditron as file
from gaptron.errors import SettingError
from gaptron.learner.seeds import generator
from gaptron.types import Comparator, Feedback, Loss, Problem
from tests import plain
from tests.conftest import random_stream


def problem(K=3, T=1000, X=1.0):
    return Problem(K, 2, Feedback.BANDIT, Loss.HINGE, X, None, T)


def test_seven_rounds_by_hand():
    """K = 2, γ = ½: p = ¾ on the top, ¼ on the other, so a right guess adds 4/3 x or 4 x."""
    learner = gaptron.Learner("banditron", n_classes=2, feedback="bandit", gamma=0.5, seed=1)
    W = [0.0, 0.0]  # on rows x = (s,)
    seen = set()
    for s, y in [(1, 1), (1, 0), (-1, 1), (2, 1), (-1, 0), (1, 1), (3, 0), (1, 1), (-2, 1), (1, 0)]:
        top = 0 if W[0] * s >= W[1] * s else 1
        decision = learner.decide([float(s)])
        p = [0.75, 0.25] if top == 0 else [0.25, 0.75]
        np.testing.assert_allclose(decision.distribution, p, atol=1e-15)
        right = decision.label == y
        learner.learn(decision, correct=right)
        W[top] -= s
        if right:
            W[y] += s / p[y]
        seen.add((right, decision.label == top))
        np.testing.assert_allclose(learner.weights[:, 0], W, atol=1e-12)
    assert seen >= {(True, True), (False, True), (True, False)}


@pytest.mark.parametrize("reward", [1.0, 0.25])
def test_a_fraction_of_a_reward_teaches_that_fraction(reward):
    """The label played gets x·reward/p, and the top label, here the first, loses x."""
    learner = gaptron.Learner("banditron", n_classes=4, feedback="bandit", gamma=0.5, seed=0)
    decision = learner.decide([1.0, -2.0])
    learner.learn(decision, reward=reward)
    W = np.zeros((4, 2))
    W[0] -= [1.0, -2.0]
    W[decision.label] += np.array([1.0, -2.0]) * reward / decision.propensity
    np.testing.assert_allclose(learner.weights, W, rtol=1e-15)


def test_a_wrong_guess_teaches_too():
    learner = gaptron.Learner("banditron", n_classes=3, feedback="bandit", gamma=0.3, seed=0)
    learner.learn(learner.decide([1.0, -2.0]), correct=False)
    np.testing.assert_array_equal(learner.weights, [[-1, 2], [0, 0], [0, 0]])


def test_a_whole_run_equals_the_textbook():
    X, y, K = random_stream(300, K=5, seed=8)
    learner = gaptron.Learner("banditron", n_classes=K, feedback="bandit", gamma=0.25, seed=5)
    trace = learner.play(X, y)
    labels, W = plain.banditron(X, y, K, 0.25, generator(5).random(300))
    np.testing.assert_array_equal(trace.codes, labels)
    np.testing.assert_allclose(learner.weights, W, atol=1e-10)


def test_bandit_is_what_it_takes():
    with pytest.raises(SettingError, match="banditron takes feedback bandit, not full"):
        gaptron.Learner("banditron", n_classes=3, feedback="full", horizon=10)


@pytest.mark.parametrize("K, T, gamma", [(3, 3000, 0.1), (2, 16, 0.5), (2, 2, 0.5), (8, 8000, 0.1), (10, 10**7, 0.01)])
def test_gamma_is_the_cube_root(K, T, gamma):
    assert file.recommend(problem(K, T)).gamma == pytest.approx(gamma)


def test_the_horizon_is_asked_for():
    with pytest.raises(SettingError, match="horizon"):
        gaptron.Learner("banditron", n_classes=3, feedback="bandit")


@pytest.mark.parametrize("gamma", [0.0, -0.1, 0.6, math.nan])
def test_impossible_exploration_is_refused(gamma):
    with pytest.raises(SettingError, match="gamma"):
        gaptron.Learner("banditron", n_classes=3, feedback="bandit", gamma=gamma)


def test_the_bound_is_the_papers_with_d_prime_twice_the_square():
    s = file.Banditron(0.1)
    D, K, T, L = 2 * (2.0 * 3.0) ** 2, 3, 10**5, 50.0
    expected = L + 0.1 * T + 3 * max(K * D / 0.1, math.sqrt(D * 0.1 * T)) + math.sqrt(K * D * L / 0.1)
    assert file.bound(problem(K, T, X=2.0), s, Comparator(L, 3.0, T)) == pytest.approx(expected)


def test_the_bound_holds_for_every_gamma_it_takes():
    X, y, K = random_stream(40)
    for gamma in (0.05, 0.5):
        learner = gaptron.Learner("banditron", n_classes=K, feedback="bandit", gamma=gamma, seed=0)
        learner.play(X, y)
        assert learner.bound(X, y).value >= gamma * 40
