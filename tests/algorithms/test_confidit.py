"""Facts of Confidit alone."""

import math

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import confidit as file
from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.simplex import TIE
from gaptron.learner.seeds import generator
from gaptron.types import UNKNOWN, Comparator, Feedback, Loss, Problem
from tests.conftest import INTERPRETED, random_stream, separable_stream
from tests.one_round import state_after


def textbook(X, y, K, alpha, eta, matrix, u):
    """By the definitions, solving in each round."""
    d = X.shape[1]
    A, b, labels = np.array([(1 + alpha) ** 2 * np.eye(d)] * K), np.zeros((K, d)), []
    keep = np.eye(d) if matrix == "diagonal" else np.ones((d, d))
    for t, (x, truth) in enumerate(zip(X, y)):
        x = x / np.linalg.norm(x)
        hope = [np.linalg.solve(A[k], b[k]) @ x + math.sqrt(eta * x @ np.linalg.solve(A[k], x)) for k in range(K)]
        tied = np.flatnonzero(hope >= np.max(hope) - TIE * abs(np.max(hope)))
        label = int(tied[int(u[t] * len(tied))])
        labels.append(label)
        sign = 1 if label == truth or u[t] * len(tied) % 1 < (1 - alpha) / 2 else -1
        A[label] += np.outer(x, x) * keep
        b[label] += sign * x
    return np.array(labels), np.array([np.linalg.solve(A[k], b[k]) for k in range(K)]), A


def test_six_rounds_by_hand():
    """K = 2 on one feature of any length, α = 1: x counts as ±1, A starts at 4."""
    learner = gaptron.Learner("confidit", n_classes=2, feedback="bandit", seed=0)
    # x, y, label, then (b, A) of the label played; its weight is b/A
    rounds = [
        (5.0, 1, 0, -1 / 5),  # hopes ½ and ½: label 0 is drawn, wrong: b = -1, A = 5
        (2.0, 1, 1, 1 / 5),  # hopes -.2 + 1/√5 = .25 and ½: label 1, right
        (0.1, 0, 1, 0 / 6),  # .25 and .2 + 1/√5: label 1, wrong: b = 0, A = 6
        (-7.0, 0, 0, -2 / 6),  # .2 + 1/√5 = .65 and 1/√6 = .41: label 0, right: b = -1 - 1 = -2, A = 6
        (1.0, 0, 1, -1 / 7),  # -.33 + .41 and .41: label 1, wrong: b = -1, A = 7
        (3.0, 0, 1, -2 / 8),  # .07 and -.14 + .38 = .24: label 1, wrong
    ]
    for x, y, label, w in rounds:
        decision = learner.decide([x])
        assert decision.label == label and decision.propensity == (1.0 if learner.rounds else 0.5)
        learner.learn(decision, correct=label == y)
        assert learner.weights[label, 0] == pytest.approx(w, abs=1e-15)


@pytest.mark.sample(4)
@pytest.mark.parametrize("matrix", ["diagonal", "full"])
@pytest.mark.parametrize("alpha, eta", [(1.0, 1.0), (0.0, 3.0), (-0.5, 0.1), (1.0, 0.0)])
def test_whole_runs_equal_the_textbook(matrix, alpha, eta):
    X, y, K = random_stream(120, seed=8)
    X[:, 0] += 0.5  # no zero rows, no exact ties
    learner = gaptron.Learner("confidit", n_classes=K, feedback="bandit", matrix=matrix, alpha=alpha, eta=eta, seed=5)
    trace = learner.play(X, y)
    labels, W, _ = textbook(X, y, K, alpha, eta, matrix, generator(5).random(120))
    np.testing.assert_array_equal(trace.codes, labels)
    np.testing.assert_allclose(learner.weights, W, atol=1e-9)


def test_ten_thousand_updates_leave_the_inverse_and_the_weights_of_a_fresh_solve():
    T = 300 if INTERPRETED else 12_000
    X, y, K = random_stream(T, K=3, seed=2)
    X[:, 0] += 0.5
    learner = gaptron.Learner("confidit", n_classes=K, feedback="bandit", matrix="full")
    trace = learner.play(X, y)
    unit, d = X / np.linalg.norm(X, axis=1, keepdims=True), X.shape[1]
    for k in range(K):
        mine = trace.codes == k
        A = 4 * np.eye(d) + unit[mine].T @ unit[mine]
        P = learner._engine.state.S[k * d : (k + 1) * d]
        np.testing.assert_array_equal(P, P.T)
        np.testing.assert_allclose(P, np.linalg.inv(A), atol=1e-8)
        sign = np.where(y[mine] == k, 1.0, -1.0)
        np.testing.assert_allclose(learner.weights[k], np.linalg.solve(A, unit[mine].T @ sign), atol=1e-8)


@pytest.mark.parametrize("alpha", [1.0, 0.5, 0.0, -0.4])
def test_what_is_learned_is_unbiased(alpha):
    """Under the model the label is right with probability (α + q)/(1 + α); the mean of s over truth and coin is q."""
    q, grid = -0.3 if alpha > 0.3 else 0.6, (np.arange(2000) + 0.5) / 2000
    learner = gaptron.Learner("confidit", n_classes=2, feedback="bandit", alpha=alpha, seed=0)
    decision = learner.decide([1.0])
    A = (1 + alpha) ** 2 + 1

    def sign(u, truth):
        learner._engine.scratch.coin[0].u = u
        return state_after(learner, decision, 0, truth).W[0, 0] * A

    right, wrong = np.mean([sign(u, 0) for u in grid]), np.mean([sign(u, UNKNOWN) for u in grid])
    propensity = (alpha + q) / (1 + alpha)
    assert 0 <= propensity <= 1
    assert propensity * right + (1 - propensity) * wrong == pytest.approx(q, abs=1e-3)


def test_the_length_of_a_row_does_not_matter():
    X, y, K = separable_stream(200)
    long = X * np.random.default_rng(0).uniform(0.01, 100.0, size=(200, 1))
    one, two = (gaptron.Learner("confidit", n_classes=K, feedback="bandit", seed=0) for _ in range(2))
    np.testing.assert_array_equal(one.play(X, y).codes, two.play(long, y).codes)
    np.testing.assert_allclose(one.weights, two.weights, atol=1e-9)


def test_it_draws_only_among_ties_and_only_the_label_played_moves():
    X, y, K = random_stream(100)
    X[:, 0] += 0.5  # no zero rows
    learners = [gaptron.Learner("confidit", n_classes=K, feedback="bandit", seed=s) for s in range(8)]
    assert len({one.decide(X[0]).label for one in learners}) == K
    for one in learners:
        one.play(X, y)
        assert one.decide(X[3]).propensity == 1.0
    learner = gaptron.Learner("confidit", n_classes=K, feedback="bandit")
    learner.play(X, y)
    before, decision = learner.weights, learner.decide(X[3])
    learner.learn(decision, correct=False)
    moved = (learner.weights != before).any(axis=1)
    assert moved[decision.label] and moved.sum() == 1


def test_little_known_labels_are_tried():
    """The truth is always label 2, and the first guess is 0: without ε it would never be found."""
    X = np.ones((60, 1))
    found = gaptron.Learner("confidit", n_classes=3, feedback="bandit").play(X, np.full(60, 2))
    assert not found.wrong[-50:].any()
    learner = gaptron.Learner("confidit", n_classes=3, feedback="bandit", eta=0.0)
    decision = learner.decide([1.0])
    learner.learn(decision, correct=True)
    assert learner.play(X, np.full(60, 2)).codes[0] == 0


def test_a_zero_row_teaches_nothing():
    learner = gaptron.Learner("confidit", n_classes=3, feedback="bandit")
    learner.learn(learner.decide([0.0, 0.0]), correct=False)
    assert not learner.weights.any() and (learner._engine.state.S == 0.25).all()


@pytest.mark.parametrize(
    "bad", [{"eta": -1.0}, {"eta": math.inf}, {"alpha": -1.0}, {"alpha": 1.1}, {"alpha": math.nan}, {"matrix": "x"}]
)
def test_impossible_settings_are_refused(bad):
    with pytest.raises(SettingError, match=next(iter(bad))):
        gaptron.Learner("confidit", n_classes=3, feedback="bandit", **bad)


def test_matrices_that_do_not_fit_are_refused_early_or_at_the_first_row():
    told = r"100000 × 10000 numbers, 8\.0 GB.*matrix='diagonal'"
    with pytest.raises(SettingError, match=told):
        gaptron.Learner("confidit", n_classes=10, n_features=10_000, feedback="bandit", matrix="full")
    learner = gaptron.Learner("confidit", n_classes=10, feedback="bandit", matrix="full")
    with pytest.raises(SettingError, match=told):
        learner.decide(np.ones(10_000))


def test_no_bound_is_claimed():
    p = Problem(3, 4, Feedback.BANDIT, Loss.HINGE, 1.0, None, None)
    with pytest.raises(NoBoundError, match="does not randomize"):
        file.bound(p, file.recommend(p), Comparator(1.0, 1.0, 10))
    assert "none" in file.theorem(p, file.recommend(p))
