"""Facts of AROW alone."""

import math

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import arow as file
from gaptron.errors import NoBoundError, SettingError
from gaptron.types import Comparator, Feedback, Loss, Problem
from tests.conftest import INTERPRETED, noisy_stream, random_stream
from tests.plain import rival

WAYS = [(matrix, update) for matrix in ("diagonal", "full") for update in ("precision", "drop")]


def textbook(X, y, K, r0, matrix, update):
    """By the definitions: Σ is always a d × d matrix here, its off-diagonal thrown away if it should be diagonal."""
    d = X.shape[1]
    W, S, labels = np.zeros((K, d)), np.array([np.eye(d)] * K), []
    keep = np.eye(d) if matrix == "diagonal" else np.ones((d, d))
    for x, truth in zip(X, y):
        z = W @ x
        labels.append(int(z.argmax()))
        r = rival(z, truth)
        m = z[truth] - z[r]
        if m < 1:
            beta = 1 / (x @ S[truth] @ x + x @ S[r] @ x + r0)
            for k, sign in ((truth, 1), (r, -1)):
                W[k] += sign * (1 - m) * beta * S[k] @ x
                if update == "drop":
                    S[k] = (S[k] - beta * np.outer(S[k] @ x, S[k] @ x)) * keep
                else:
                    S[k] = np.linalg.inv(np.linalg.inv(S[k]) + np.outer(x, x) * keep / r0)
    return np.array(labels), W, S


def test_five_rounds_by_hand():
    """K = 2 on one feature, r₀ = 1, precision: both labels share Σ = 1/(1 + Σx²)."""
    learner = gaptron.Learner("arow", n_classes=2)
    w, lam = 0.0, 1.0  # weight of label 1, precision
    moved = []
    for x, y in [(1.0, 1), (2.0, 1), (1.0, 0), (-1.0, 1), (3.0, 1), (0.5, 0), (-2.0, 0), (-20.0, 0)]:
        decision = learner.decide([x])
        assert decision.label == (1 if w * x > 0 else 0)
        learner.learn(decision, label=y)
        m = 2 * w * x if y == 1 else -2 * w * x
        moved.append(m < 1)
        if m < 1:
            w += (1 if y == 1 else -1) * (1 - m) / (2 * x * x / lam + 1) * x / lam
            lam += x * x
        np.testing.assert_allclose(learner.weights[:, 0], [-w, w], atol=1e-15)
    assert moved[0] and not moved[-1]


@pytest.mark.sample(5)
@pytest.mark.parametrize("matrix, update", WAYS)
@pytest.mark.parametrize("r0", [0.05, 1.0, 30.0])
def test_whole_runs_equal_the_textbook(matrix, update, r0):
    X, y, K = random_stream(150, K=5, seed=8)
    learner = gaptron.Learner("arow", n_classes=K, matrix=matrix, update=update, r0=r0)
    trace = learner.play(X, y)
    labels, W, _ = textbook(X, y, K, r0, matrix, update)
    np.testing.assert_array_equal(trace.codes, labels)
    np.testing.assert_allclose(learner.weights, W, atol=1e-9)


def test_ten_thousand_updates_leave_the_covariances_of_a_fresh_inverse():
    T, r0 = 300 if INTERPRETED else 11_000, 0.5
    X, y, K = random_stream(T, K=3, seed=2)
    learner = gaptron.Learner("arow", n_classes=K, matrix="full", r0=r0)
    d, updates = X.shape[1], 0
    A = np.array([np.eye(d)] * K)
    for x, truth in zip(X, y):
        decision = learner.decide(x)
        z = learner._engine.round.z.copy()
        learner.learn(decision, label=int(truth))
        other = rival(z, truth)
        if z[truth] - z[other] < 1:
            updates += 1
            A[truth] += np.outer(x, x) / r0
            A[other] += np.outer(x, x) / r0
    assert updates > (250 if INTERPRETED else 10_000)
    for k, S in enumerate(learner._engine.state.S.reshape(K, d, d)):
        np.testing.assert_array_equal(S, S.T)
        np.testing.assert_allclose(S, np.linalg.inv(A[k]), atol=1e-8)
        np.testing.assert_allclose(S @ A[k], np.eye(d), atol=1e-8)


def test_right_labels_with_a_small_margin_update_and_with_a_wide_one_do_not():
    learner = gaptron.Learner("arow", n_classes=3)
    learner.learn(learner.decide([1.0, 0.0]), label=0)  # a tie, played right
    first = learner.weights
    assert first[0, 0] > 0
    learner.learn(learner.decide([50.0, 0.0]), label=0)
    np.testing.assert_array_equal(learner.weights, first)


@pytest.mark.parametrize("matrix", ["diagonal", "full"])
def test_a_margin_of_exactly_one_changes_no_variance(matrix):
    """With r0 = 2 the first update of x = 1 ends at a margin of 1/2: x = 2 then has a margin of 1."""
    learner = gaptron.Learner("arow", n_classes=2, matrix=matrix, r0=2.0)
    learner.learn(learner.decide([1.0]), label=0)
    before = learner._engine.state.S.copy()
    assert learner.scores([[2.0]]).tolist() == [[0.5, -0.5]]
    learner.learn(learner.decide([2.0]), label=0)
    np.testing.assert_array_equal(learner._engine.state.S, before)


def test_variances_only_fall_and_stay_positive():
    X, y, K = noisy_stream(300)
    for matrix, update in WAYS:
        learner = gaptron.Learner("arow", n_classes=K, matrix=matrix, update=update, r0=0.01)
        last = np.inf
        for start in range(0, 300, 100):
            learner.play(X[start : start + 100], y[start : start + 100])
            S = learner._engine.state.S
            if matrix == "full":
                S = np.array([np.linalg.eigvalsh(block) for block in S.reshape(K, X.shape[1], -1)])
            assert (S > 0).all() and S.sum() < last
            last = S.sum()


def test_rare_features_take_larger_steps():
    learner = gaptron.Learner("arow", n_classes=2)
    for y in (0, 1) * 10:
        learner.learn(learner.decide([1.0, 0.0]), label=y)
    before = learner.weights
    learner.learn(learner.decide([1.0, 1.0]), label=1)
    step = np.abs(learner.weights - before)[1]
    assert step[1] > 5 * step[0] > 0


@pytest.mark.parametrize(
    "bad", [{"r0": 0.0}, {"r0": -1.0}, {"r0": math.inf}, {"r0": math.nan}, {"matrix": "banded"}, {"update": "both"}]
)
def test_impossible_settings_are_refused(bad):
    with pytest.raises(SettingError, match=next(iter(bad))):
        gaptron.Learner("arow", n_classes=3, **bad)


def test_matrices_that_do_not_fit_are_refused_early_or_at_the_first_row():
    told = r"100000 × 10000 numbers, 8\.0 GB.*matrix='diagonal'"
    with pytest.raises(SettingError, match=told):
        gaptron.Learner("arow", n_classes=10, n_features=10_000, matrix="full")
    learner = gaptron.Learner("arow", n_classes=10, matrix="full")
    with pytest.raises(SettingError, match=told):
        learner.play(np.ones((1, 10_000)), [0])


def test_no_bound_is_claimed():
    p = Problem(3, 4, Feedback.FULL, Loss.HINGE, 1.0, None, None)
    with pytest.raises(NoBoundError, match="two labels"):
        file.bound(p, file.recommend(p), Comparator(1.0, 1.0, 10))
    assert "none" in file.theorem(p, file.recommend(p))
