"""Facts of Online Newton Step alone, and of the Newton verbs it shares."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

import gaptron
from gaptron.algorithms import ons as file
from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels import newton
from gaptron.types import Comparator, Feedback, Loss, Problem
from tests import plain
from tests.conftest import INTERPRETED, KINDS, noisy_stream, separable_stream

LN2 = math.log(2)


def problem(K=3, d=4, X=1.0, D=1.0, T=100):
    return Problem(K, d, Feedback.FULL, Loss.LOGISTIC, X, D, T)


def nearest(A, aim, D):
    """The projection by eigenvectors and bisection."""
    if np.linalg.norm(aim) <= D:
        return aim
    values, Q = np.linalg.eigh(A)
    c, low, high = Q.T @ aim, 0.0, 1.0
    norm = lambda lam: np.linalg.norm(values / (values + lam) * c)  # noqa: E731
    while norm(high) > D:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if norm(middle) > D else (low, middle)
    return Q @ (values / (values + high) * c)


def textbook(X, y, K, full, beta, eps, D=math.inf):
    d = X.shape[1]
    w, A, losses = np.zeros(K * d), eps * np.eye(K * d), []
    for x, truth in zip(X, y):
        q = plain.softmax(w.reshape(K, d) @ x)
        losses.append(-math.log(q[truth]))
        g = np.outer(q - np.eye(K)[truth], x).ravel()
        A += np.outer(g, g) if full else np.diag(g * g)
        w = nearest(A, w - np.linalg.solve(A, g) / beta, D)
    return w.reshape(K, d), np.array(losses)


def test_five_rounds_of_the_diagonal_by_hand():
    """K = 2, x = (s,), ε = 1, β = ½: W stays (-w, w), and each step is 2g/A."""
    learner = gaptron.Learner("ons", n_classes=2, norm=1.0)
    assert (learner.settings.beta, learner.settings.eps, learner.settings.matrix) == (0.5, 1.0, False)
    w, A = 0.0, 1.0
    for s, y in [(1.0, 1), (1.0, 0), (0.5, 0), (-1.0, 1), (1.0, 0)]:
        decision = learner.decide([s])
        assert decision.label == int(w * s > 0)
        g = (1 / (1 + math.exp(-2 * w * s)) - y) * s
        learner.learn(decision, label=y)
        A += g * g
        w -= 2 * g / A
        np.testing.assert_allclose(learner.weights[:, 0], [-w, w], atol=1e-13)


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", ["dense64", "csr"])
@pytest.mark.parametrize(
    "own", [{}, {"matrix": "full", "beta": 0.5, "eps": 1.0, "ball": 1.5}, {"matrix": "full"}], ids=str
)
def test_a_whole_run_equals_the_textbook(own, kind):
    X, y, K = noisy_stream(60, d=4)
    learner = gaptron.Learner("ons", n_classes=K, norm=1.0, radius=0.3, **own)
    learner.play(KINDS[kind](X), y)
    s = learner.settings
    W, _ = textbook(X, y, K, s.matrix, s.beta, s.eps, s.ball)
    np.testing.assert_allclose(learner.weights, W, atol=1e-8)
    if own.get("ball"):
        assert np.linalg.norm(W) == pytest.approx(1.5)  # the ball was felt


# --- the kernels --------------------------------------------------------------------------------------------


def test_sherman_and_morrison_after_many_updates():
    rng = np.random.default_rng(0)
    n, rounds = 6, 300 if INTERPRETED else 10_000
    A, P, v = 0.5 * np.eye(n), 2.0 * np.eye(n), np.zeros(n)
    for _ in range(rounds):
        g, weight = rng.normal(size=n) * 10 ** rng.uniform(-3, 1), rng.random()
        A += weight * np.outer(g, g)
        reached = newton.update_inverse(P, g, weight, v)
        assert reached == pytest.approx(g @ v)
    np.testing.assert_allclose(P @ A, np.eye(n), atol=1e-7)
    np.testing.assert_allclose(v, np.linalg.solve(A, g), rtol=1e-6, atol=1e-12)
    np.testing.assert_array_equal(P, P.T)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("spread", [0.1, 4.0])
def test_the_projection_against_scipy(seed, spread):
    rng = np.random.default_rng(seed)
    n = 7
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    A = Q @ np.diag(10 ** rng.uniform(-spread / 2, spread / 2, n)) @ Q.T
    A = (A + A.T) / 2
    aim, w = rng.normal(size=n) * 3, np.zeros(n)
    level = newton.project_onto_ball(np.linalg.inv(A), aim, 1.0, w, np.zeros((5, n)))
    assert level > 0.0 and np.linalg.norm(w) == pytest.approx(1.0, abs=1e-11)
    np.testing.assert_allclose(w, nearest(A, aim, 1.0), atol=1e-8)
    found = minimize(
        lambda u: (u - aim) @ A @ (u - aim) / 2,
        aim / np.linalg.norm(aim),
        jac=lambda u: A @ (u - aim),
        constraints={"type": "ineq", "fun": lambda u: 1 - u @ u, "jac": lambda u: -2 * u},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert (w - aim) @ A @ (w - aim) / 2 <= found.fun * (1 + 1e-8)


def test_inside_the_ball_nothing_moves():
    aim, w = np.array([0.3, -0.4]), np.zeros(2)
    assert newton.project_onto_ball(np.eye(2), aim, 0.5 + 1e-12, w, np.zeros((5, 2))) == 0.0
    np.testing.assert_array_equal(w, aim)


# --- theory -------------------------------------------------------------------------------------------------


def test_the_loss_lies_above_its_parabola_on_the_ball():
    """What the bound rests on: ℓ(u) ≥ ℓ(w) + ⟨g, u - w⟩ + β/2·⟨g, u - w⟩² for u, w in the ball."""
    rng = np.random.default_rng(1)
    for _ in range(2000):
        K, D = int(rng.integers(2, 6)), 10 ** rng.uniform(-1, 0.7)
        beta = file.largest_beta(K, D)
        U, W = (M / np.linalg.norm(M) * D * rng.random() ** 0.2 for M in rng.normal(size=(2, K, 2)))
        x = rng.normal(size=2)
        x /= np.linalg.norm(x)
        y = int(rng.integers(K))
        q = plain.softmax(W @ x)
        inner = (q - np.eye(K)[y]) @ ((U - W) @ x)
        low = -math.log(q[y]) + inner + beta / 2 * inner**2
        assert -math.log(plain.softmax(U @ x)[y]) >= low - 1e-12


@pytest.mark.parametrize("make", [separable_stream, noisy_stream])
def test_mistakes_and_regret_keep_the_bound(make):
    s = make(150, d=3, seed=4)
    means = np.array([s.X[s.y == k].sum(axis=0) for k in range(s.K)])
    U = 0.5 * means / np.linalg.norm(means)
    loss = sum(plain.loss("logistic", U @ x, y, 0.0) for x, y in zip(s.X, s.y))
    for play in ("top", "sample"):
        learner = gaptron.Learner("ons", n_classes=s.K, norm=1.0, radius=0.5, matrix="full", play=play, seed=0)
        trace = learner.play(s.X, s.y)
        value = file.bound(learner.problem, learner.settings, Comparator(loss, 0.5, 150))
        assert trace.expected_mistakes <= value
        _, losses = textbook(s.X, s.y, s.K, True, *learner.settings[1:4])
        assert losses.sum() <= value * (LN2 if play == "top" else 1.0)


def test_the_bound_as_a_number():
    p = problem()
    s = file.recommend(p, matrix="full")
    beta = 0.5 * min(1 / (8 * math.sqrt(2)), math.exp(-math.sqrt(2)) / 2)
    assert s.beta == pytest.approx(beta) and s.eps == pytest.approx(1 / (4 * beta**2))
    regret = 12 / (2 * beta) * math.log(1 + 200 / (12 * s.eps)) + beta * s.eps * 0.25 / 2
    assert file.bound(p, s, Comparator(7.0, 0.5, 100)) == pytest.approx(7.0 + regret / LN2)
    assert file.bound(p, s, Comparator(7.0, 1.5, 100)) == math.inf


def test_where_there_is_no_bound():
    with pytest.raises(NoBoundError, match="full matrix"):
        file.bound(problem(), file.recommend(problem()), Comparator(1.0, 0.5, 10))
    with pytest.raises(NoBoundError, match="curvature"):
        file.bound(problem(), file.recommend(problem(), matrix="full", beta=0.5), Comparator(1.0, 0.5, 10))


@pytest.mark.parametrize(
    "wrong, word",
    [
        ({"matrix": "half"}, "matrix='half' must be one of diagonal, full"),
        ({"play": "half"}, "play"),
        ({"beta": -1.0}, "beta"),
        ({"eps": 0.0}, "eps"),
        ({"ball": 1.0}, "ball is for matrix"),
        ({"matrix": "full", "ball": -1.0, "beta": 1.0, "eps": 1.0}, "ball"),
        ({"matrix": "full", "ball": 1e4}, "too large"),
        ({"matrix": "full", "radius": None}, "radius"),
        ({"matrix": "full", "n_features": 6000}, "18000 × 18000 numbers, 2.6 GB.*use matrix='diagonal'"),
    ],
)
def test_refusals(wrong, word):
    with pytest.raises(SettingError, match=word):
        gaptron.Learner("ons", **{"n_classes": 3, "norm": 1.0, "radius": 1.0, **wrong})


def test_a_matrix_too_large_is_refused_when_the_rows_come():
    learner = gaptron.Learner("ons", n_classes=3, norm=1.0, radius=1.0, matrix="full")
    with pytest.raises(SettingError, match="18000 × 18000"):
        learner.decide(np.zeros(6000))
