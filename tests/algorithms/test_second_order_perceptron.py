"""Facts of the second-order Perceptron alone."""

import math

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import second_order_perceptron as file
from gaptron.errors import NoBoundError, SettingError
from gaptron.types import Comparator, Feedback, Loss, Problem
from tests.conftest import INTERPRETED, noisy_stream, random_stream, separable_stream

NAME = "second-order-perceptron"


def problem(K=3, d=4, X=1.0):
    return Problem(K, d, Feedback.FULL, Loss.HINGE, X, None, None)


def textbook_full(X, y, K, a):
    """By inverting A in each round. Returns labels, W, A, and Σ g'A⁻¹g/(1 + g'A⁻¹g)."""
    d = X.shape[1]
    A, theta, labels, spent = a * np.eye(K * d), np.zeros(K * d), [], 0.0
    for x, truth in zip(X, y):
        z = np.linalg.solve(A, theta).reshape(K, d) @ x
        label = int(z.argmax())
        labels.append(label)
        if label != truth:
            g = np.zeros((K, d))
            g[label] += x
            g[truth] -= x
            r = g.ravel() @ np.linalg.solve(A, g.ravel())
            spent += r / (1 + r)
            A += np.outer(g, g)
            theta -= g.ravel()
    return np.array(labels), np.linalg.solve(A, theta).reshape(K, d), A, spent


def textbook_diagonal(X, y, K, a):
    """As the LIBOL library does it."""
    V, A, labels = np.zeros((K, X.shape[1])), np.full(X.shape[1], a), []
    for x, truth in zip(X, y):
        label = int((V @ (x / (A + x**2))).argmax())
        labels.append(label)
        if label != truth:
            V[truth] += x
            V[label] -= x
            A += x**2
    return np.array(labels), V / A


def test_five_rounds_by_hand_diagonal():
    """K = 2 on one feature, a = 1: numbers that fit on a napkin."""
    learner = gaptron.Learner(NAME, n_classes=2)
    # x, y, label, then weights θ/A of label 1 (label 0 has the opposite)
    rounds = [
        (1.0, 1, 0, 1 / 2),  # all scores 0: label 0, wrong; θ₁ = 1, A = 2
        (2.0, 0, 1, -1 / 6),  # label 1, wrong; θ₁ = 1 - 2 = -1, A = 6
        (-1.0, 1, 1, -1 / 6),  # right: nothing moves
        (3.0, 1, 0, 2 / 15),  # wrong; θ₁ = 2, A = 15
        (1.0, 1, 1, 2 / 15),
        (-1.0, 1, 0, 1 / 16),  # wrong; θ₁ = 1, A = 16
    ]
    for x, y, label, w in rounds:
        decision = learner.decide([x])
        assert decision.label == label
        learner.learn(decision, label=y)
        np.testing.assert_allclose(learner.weights[:, 0], [-w, w], atol=1e-15)


def test_the_scores_count_the_row_they_are_asked_about():
    learner = gaptron.Learner(NAME, n_classes=2)
    learner.learn(learner.decide([1.0]), label=1)  # θ₁ = 1, A = 2
    np.testing.assert_allclose(learner.scores([[3.0]]), [[-3 / 11, 3 / 11]], atol=1e-15)


@pytest.mark.parametrize("a", [0.1, 1.0, 20.0])
def test_whole_runs_equal_the_textbook(a):
    X, y, K = random_stream(120, seed=8)
    for matrix, textbook in (("full", textbook_full), ("diagonal", textbook_diagonal)):
        learner = gaptron.Learner(NAME, n_classes=K, matrix=matrix, a=a)
        trace = learner.play(X, y)
        labels, W = textbook(X, y, K, a)[:2]
        np.testing.assert_array_equal(trace.codes, labels)
        np.testing.assert_allclose(learner.weights, W, atol=1e-9)


def test_ten_thousand_updates_leave_the_inverse_and_the_weights_of_a_fresh_solve():
    T = 200 if INTERPRETED else 14_000
    X, y, K = random_stream(T, seed=2)
    learner = gaptron.Learner(NAME, n_classes=K, matrix="full")
    trace = learner.play(X, y)
    assert trace.mistakes > (100 if INTERPRETED else 10_000)
    n, d = K * X.shape[1], X.shape[1]
    G = np.zeros((trace.mistakes, K, d))
    wrong = np.flatnonzero(trace.wrong)
    G[np.arange(len(wrong)), trace.codes[wrong]] += X[wrong]
    G[np.arange(len(wrong)), y[wrong]] -= X[wrong]
    G = G.reshape(-1, n)
    A = np.eye(n) + G.T @ G
    P = learner._engine.state.A
    np.testing.assert_array_equal(P, P.T)
    np.testing.assert_allclose(P, np.linalg.inv(A), atol=1e-8)
    np.testing.assert_allclose(learner.weights.ravel(), np.linalg.solve(A, -G.sum(axis=0)), atol=1e-8)


def test_a_large_a_is_the_perceptron():
    X, y, K = noisy_stream(150)
    perceptron = gaptron.Learner("perceptron", n_classes=K).play(X, y)
    for matrix in ("full", "diagonal"):
        trace = gaptron.Learner(NAME, n_classes=K, matrix=matrix, a=1e9).play(X, y)
        np.testing.assert_array_equal(trace.codes, perceptron.codes)


def test_a_full_matrix_sees_through_scaled_and_mixed_features():
    """Features of very different sizes: the Perceptron goes by the large ones, the second order by all."""
    X, y, K = separable_stream(600, seed=3)
    X = X * np.array([10.0, 5.0, 1.0, 0.5, 0.2, 0.1])
    mistakes = {
        "perceptron": gaptron.Learner("perceptron", n_classes=K).play(X, y).mistakes,
        "full": gaptron.Learner(NAME, n_classes=K, matrix="full", a=0.01).play(X, y).mistakes,
    }
    assert mistakes["full"] < mistakes["perceptron"]


# --- refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [{"a": 0.0}, {"a": -1.0}, {"a": math.inf}, {"a": math.nan}, {"matrix": "banded"}])
def test_impossible_settings_are_refused(bad):
    with pytest.raises(SettingError, match=next(iter(bad))):
        gaptron.Learner(NAME, n_classes=3, **bad)


def test_a_matrix_that_does_not_fit_is_refused_early_or_at_the_first_row():
    told = r"30000 × 30000 numbers, 7\.2 GB"
    with pytest.raises(SettingError, match=told):
        gaptron.Learner(NAME, n_classes=30, n_features=1000, matrix="full")
    learner = gaptron.Learner(NAME, n_classes=30, matrix="full")
    with pytest.raises(SettingError, match=told):
        learner.decide(np.ones(1000))
    gaptron.Learner(NAME, n_classes=30).decide(np.ones(1000))


# --- theory -----------------------------------------------------------------------------------------------


def judged(X, y, U):
    z = X @ U.T
    own = z[np.arange(len(y)), y]
    z[np.arange(len(y)), y] = -np.inf
    return own - z.max(axis=1)


def comparators(X, y, K, seed):
    """Rules of many sizes, good and bad."""
    rng = np.random.default_rng(seed)
    mean = np.array([X[y == k].mean(axis=0) if (y == k).any() else np.zeros(X.shape[1]) for k in range(K)])
    for U in (mean - mean.mean(axis=0), rng.normal(size=mean.shape), np.zeros_like(mean)):
        for size in (0.1, 1.0, 3.0, 10.0, 40.0):
            yield size * U / max(1.0, np.linalg.norm(U))


@pytest.mark.parametrize("make", [separable_stream, noisy_stream, random_stream])
@pytest.mark.parametrize("a", [0.3, 1.0, 5.0])
def test_the_theorem_and_the_bound_hold_for_every_rule(make, a):
    X, y, K = make(150 if INTERPRETED else 400, seed=5)
    norm = np.linalg.norm(X, axis=1).max()
    p, s = problem(K, X.shape[1], norm), file.recommend(problem(K, X.shape[1], norm), "full", a)
    M = gaptron.Learner(NAME, n_classes=K, matrix="full", a=a).play(X, y).mistakes
    labels, _, A, spent = textbook_full(X, y, K, a)
    assert (labels != y).sum() == M
    n = K * X.shape[1]
    assert spent <= np.linalg.slogdet(A / a)[1] <= n * math.log1p(2 * norm**2 * M / (a * n))
    for U in comparators(X, y, K, 1):
        m, size = judged(X, y, U), np.linalg.norm(U)
        for kappa in (0.05, 0.2, 0.5, 1.0):
            c = kappa / (2 - kappa)
            loss = np.maximum(1 - 2 * m / (2 - kappa) + c * m**2, 0)
            sharp = loss[labels != y].sum() + a * c * size**2 + spent / (kappa * (2 - kappa))
            whole = file.bound_kappa(p, s, m, size, kappa, M)
            assert M <= sharp + 1e-9
            assert sharp <= whole + 1e-9
        assert M <= file.bound(p, s, Comparator(np.maximum(1 - m, 0).sum(), size, len(y)))


def test_the_bound_is_the_best_c_and_settles():
    p, s, T = problem(3, 4, 2.0), file.recommend(problem(3, 4), "full", 0.5), 10**5
    L, U, n = 30.0, 1.5, 12
    value = file.bound(p, s, Comparator(L, U, T))
    B, S = math.sqrt(2) * 2 * U, n * math.log1p(2 * 4 * value / (0.5 * n))
    grid = np.linspace(1e-4, min(1, 1 / B), 20_001)
    assert value == pytest.approx(((1 + grid * B) * L + 0.5 * grid * U**2 + S * (1 + grid) ** 2 / (4 * grid)).min())
    assert value < T


def test_the_bound_through_the_learner_is_not_vacuous_on_an_easy_stream():
    X, y, K = separable_stream(150 if INTERPRETED else 3000, d=3, margin=0.3)
    learner = gaptron.Learner(NAME, n_classes=K, matrix="full", norm=1.0)
    trace = learner.play(X, y)
    found = learner.bound(X, y)
    assert trace.mistakes <= found.value
    assert INTERPRETED or found.value < 3000 / 4


def test_no_bound_for_the_diagonal():
    s = file.recommend(problem())
    with pytest.raises(NoBoundError, match="matrix='full'"):
        file.bound(problem(), s, Comparator(1.0, 1.0, 10))
    with pytest.raises(NoBoundError):
        file.bound_kappa(problem(), s, np.ones(3), 1.0, 0.5, 3)
    with pytest.raises(SettingError, match="kappa"):
        file.bound_kappa(problem(), file.recommend(problem(), "full"), np.ones(3), 1.0, 0.0, 3)
    assert "none" in file.theorem(problem(), s)
