"""Facts of the online Laplace approximation alone."""

import math

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import laplace as file
from gaptron.errors import NoBoundError, SettingError
from gaptron.types import Comparator, Feedback, Loss, Problem
from tests import plain
from tests.conftest import KINDS, noisy_stream


def problem(K=3, d=4):
    return Problem(K, d, Feedback.FULL, Loss.LOGISTIC, 1.0, None, None)


def textbook(X, y, K, full, nu):
    d = X.shape[1]
    mu, A = np.zeros(K * d), np.eye(K * d) / nu**2
    for x, truth in zip(X, y):
        q = plain.softmax(mu.reshape(K, d) @ x)
        H = np.kron(np.diag(q) - np.outer(q, q), np.outer(x, x))
        A += H if full else np.diag(np.diag(H))
        mu = mu - np.linalg.solve(A, np.outer(q - np.eye(K)[truth], x).ravel())
    return mu.reshape(K, d), A


def test_five_rounds_of_the_diagonal_by_hand():
    """K = 2, x = (s,), ν = 2: A starts at ¼ and grows by q(1 - q)s²."""
    learner = gaptron.Learner("laplace", n_classes=2, norm=1.0)
    assert learner.settings.nu == 2.0
    w, A = 0.0, 0.25
    for s, y in [(1.0, 1), (1.0, 0), (0.5, 0), (-1.0, 1), (1.0, 0)]:
        decision = learner.decide([s])
        assert decision.label == int(w * s > 0) and decision.propensity == 1.0
        q = 1 / (1 + math.exp(-2 * w * s))
        learner.learn(decision, label=y)
        A += q * (1 - q) * s * s
        w -= (q - y) * s / A
        np.testing.assert_allclose(learner.weights[:, 0], [-w, w], atol=1e-13)


@pytest.mark.parametrize("kind", ["dense64", "csr"])
@pytest.mark.parametrize("matrix", ["diagonal", "full"])
def test_a_whole_run_equals_the_textbook(matrix, kind):
    X, y, K = noisy_stream(80, d=4)
    learner = gaptron.Learner("laplace", n_classes=K, matrix=matrix, nu=1.5)
    learner.play(KINDS[kind](X), y)
    mu, A = textbook(X, y, K, matrix == "full", 1.5)
    np.testing.assert_allclose(learner.weights, mu, atol=1e-9)
    if matrix == "full" and kind == "dense64":
        np.testing.assert_allclose(learner._engine.state.A @ A, np.eye(12), atol=1e-9)


@pytest.mark.parametrize("kind", ["dense64", "csr"])
@pytest.mark.parametrize("matrix", ["diagonal", "full"])
def test_the_mixture_is_that_of_the_gaussian(matrix, kind):
    """Against a million draws of the scores themselves."""
    X, y, K = noisy_stream(40, d=4)
    learner = gaptron.Learner("laplace", n_classes=K, matrix=matrix, nu=2.0, play="sample", samples=4000, seed=0)
    learner.play(KINDS[kind](X), y)
    mu, A = textbook(X, y, K, matrix == "full", 2.0)
    x = X[3]
    E = np.kron(np.eye(K), x[:, None])
    V = E.T @ np.linalg.solve(A, E)
    Z = np.random.default_rng(0).multivariate_normal(mu @ x, V, size=200_000)
    Q = np.exp(Z - Z.max(axis=1, keepdims=True))
    exact = (Q / Q.sum(axis=1, keepdims=True)).mean(axis=0)
    p = learner.distribution(KINDS[kind](X[3:4]))[0]
    np.testing.assert_allclose(p, exact, atol=0.015)
    assert np.abs(p - plain.softmax(mu @ x)).max() > 0.02  # and not the softmax of the mean


def test_the_points_are_standard_and_balanced():
    points = file.scratch(file.recommend(problem(), play="sample", samples=2000), problem(), False).points
    assert points.shape == (2000, 3)
    np.testing.assert_allclose(points.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.cov(points.T), np.eye(3), atol=0.1)


def test_confident_predictions_are_drawn_closer_to_the_middle_than_the_mean():
    """Doubt about the weights is doubt about the label: before any round q̄ is uniform, and later flatter than q."""
    X, y, K = noisy_stream(30, d=4)
    learner = gaptron.Learner("laplace", n_classes=K, nu=3.0, play="sample", norm=1.0)
    np.testing.assert_allclose(learner.distribution(X[:2]), 1 / 3, atol=0.05)
    learner.play(X, y)
    top = np.array([plain.softmax(learner.weights @ x).max() for x in X])
    assert learner.distribution(X).max(axis=1).mean() < top.mean()


def test_there_is_no_bound():
    with pytest.raises(NoBoundError, match="approximate"):
        file.bound(problem(), file.recommend(problem()), Comparator(1.0, 1.0, 10))


@pytest.mark.parametrize(
    "wrong, word",
    [
        ({"matrix": "half"}, "matrix"),
        ({"play": "half"}, "play"),
        ({"nu": 0.0}, "nu"),
        ({"samples": 0}, "samples"),
        ({"samples": 1.5}, "samples"),
        ({"matrix": "full", "n_features": 6000}, "18000 × 18000 numbers"),
    ],
)
def test_refusals(wrong, word):
    with pytest.raises(SettingError, match=word):
        gaptron.Learner("laplace", **{"n_classes": 3, "norm": 1.0, **wrong})
