"""Facts of Jézéquel, Gaillard & Rudi 2020 alone."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

import gaptron
from gaptron.algorithms import aioli as file
from gaptron.errors import SettingError
from gaptron.types import Comparator, Feedback, Loss, Problem
from tests import plain
from tests.conftest import EVERY_KIND, KINDS, noisy_stream, random_stream, separable_stream

LN2 = math.log(2)


def problem(d=4, X=1.0, D=1.0):
    return Problem(2, d, Feedback.FULL, Loss.LOGISTIC, X, D, 100)


def sigma(z):
    return 1 / (1 + math.exp(-z))


def textbook(X, y, lam, C):
    d = X.shape[1]
    A, b, zs = lam * np.eye(d), np.zeros(d), []
    for x, label in zip(X, y):
        s = 2 * label - 1
        v, z0 = x @ np.linalg.solve(A, x), x @ np.linalg.solve(A, b)
        z = brentq(lambda t: t + v * math.tanh(t / 2) - z0, -abs(z0) - 1, abs(z0) + 1, xtol=1e-14)  # noqa: B023
        zs.append(z)
        g, h = -s * sigma(-s * z), sigma(z) * sigma(-z) / (1 + C)
        A, b = A + h * np.outer(x, x), b + (h * z - g) * x
    return np.linalg.solve(A, b), np.array(zs), np.log1p(np.exp(-(2 * y - 1) * np.array(zs)))


def test_five_rounds_by_hand():
    """d = 1, λ = 1, C = 1."""
    learner = gaptron.Learner("aioli", n_classes=2, lam=1.0, reach=1.0, play="sample", seed=0)
    A, b = 1.0, 0.0
    for s, y in [(1.0, 1), (1.0, 1), (0.5, 0), (-2.0, 1), (1.0, 0)]:
        v, z0 = s * s / A, s * b / A
        low, high = -abs(z0), abs(z0)
        for _ in range(100):
            z = (low + high) / 2
            low, high = (z, high) if z + v * math.tanh(z / 2) < z0 else (low, z)
        decision = learner.decide([s])
        np.testing.assert_allclose(decision.distribution, [sigma(-z), sigma(z)], atol=1e-13)
        learner.learn(decision, label=y)
        g, h = (sigma(z) - y), sigma(z) * sigma(-z) / 2
        A += h * s * s
        b += (h * z - g) * s
        np.testing.assert_allclose(learner.weights[:, 0], [-b / A / 2, b / A / 2], atol=1e-13)


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_whole_run_equals_the_textbook(kind):
    X, y, _ = noisy_stream(120, K=2)
    learner = gaptron.Learner("aioli", n_classes=2, norm=1.0, radius=2.0)
    trace = learner.play(KINDS[kind](X), y)
    theta, zs, _ = textbook(X, y, 1.0, 2 * math.sqrt(2))
    np.testing.assert_allclose(learner.weights, np.array([-theta / 2, theta / 2]), atol=1e-9)
    np.testing.assert_array_equal(trace.codes, (zs > 0).astype(int))


def test_the_scalar_equation_is_solved():
    rng = np.random.default_rng(0)
    for _ in range(3000):
        v, z0 = 10 ** rng.uniform(-12, 8), rng.choice([-1, 1]) * 10 ** rng.uniform(-12, 8)
        z = file.with_bonus(v, z0)
        assert abs(z + v * math.tanh(z / 2) - z0) <= 1e-12 * max(1.0, abs(z0), min(v, v * abs(z)))
    assert file.with_bonus(3.0, 0.0) == 0.0 and file.with_bonus(0.0, -2.0) == -2.0
    for z in (1e-9, 0.3, 5.0, 20.0):  # where the root is known
        assert file.with_bonus(2.0, z + 2.0 * math.tanh(z / 2)) == pytest.approx(z, rel=1e-12)


def test_the_scalar_equation_is_the_minimum_with_the_bonus():
    rng = np.random.default_rng(1)
    M = rng.normal(size=(3, 3))
    A, b, x = M @ M.T + np.eye(3), rng.normal(size=3) * 3, rng.normal(size=3)
    full = minimize(
        lambda t: t @ A @ t / 2 - b @ t + np.logaddexp(0, t @ x) + np.logaddexp(0, -t @ x), np.zeros(3), tol=1e-12
    )
    v, z0 = x @ np.linalg.solve(A, x), x @ np.linalg.solve(A, b)
    assert file.with_bonus(v, z0) == pytest.approx(full.x @ x, abs=1e-5)


def test_the_lemma_and_the_inequality_the_bound_rests_on():
    """f(b) ≥ f(a) + f'(a)(b - a) + e^a f'(a)²(b - a)²/(2(1 + C)) for |b| ≤ C, any a, f = ln(1 + e^-·)."""
    a = np.linspace(-40, 40, 1601)[:, None]
    f, slope = np.logaddexp(0, -a), -1 / (1 + np.exp(a))
    curve = np.exp(-np.logaddexp(0, a) - np.logaddexp(0, -a))  # e^a f'(a)² = σ(a)σ(-a)
    for C in (0.0, 0.1, 1.0, 5.0, 20.0):
        b = np.linspace(-C, C, 401)[None, :]
        low = f + slope * (b - a) + curve * (b - a) ** 2 / (2 * (1 + C))
        assert (np.logaddexp(0, -b) >= low - 1e-10).all()
    s = 1 / (1 + np.exp(-a))
    assert (s**2 - np.tanh(a / 2) ** 2 <= 2 * s * (1 - s) + 1e-12).all()


@pytest.mark.parametrize("make", [separable_stream, noisy_stream, random_stream])
def test_mistakes_and_regret_keep_the_bound(make):
    s = make(200, K=2, seed=6)
    u = s.X[s.y == 1].sum(axis=0) - s.X[s.y == 0].sum(axis=0)
    U = np.array([-u, u])
    for D, C in [(0.5, None), (4.0, None)]:
        V = D * U / np.linalg.norm(U)
        loss = sum(plain.loss("logistic", V @ x, y, 0.0) for x, y in zip(s.X, s.y))
        learner = gaptron.Learner("aioli", n_classes=2, norm=s.norm, radius=D, reach=C)
        trace = learner.play(s.X, s.y)
        value = file.bound(learner.problem, learner.settings, Comparator(loss, D, 200))
        _, _, losses = textbook(s.X, s.y, learner.settings.lam, learner.settings.reach)
        assert losses.sum() <= LN2 * value
        assert trace.mistakes <= value
        drawn = gaptron.Learner("aioli", n_classes=2, norm=s.norm, radius=D, play="sample", seed=0)
        sampled = drawn.play(s.X, s.y).expected_mistakes
        assert sampled <= file.bound(drawn.problem, drawn.settings, Comparator(loss, D, 200))


def test_the_bound_as_a_number():
    s = file.recommend(problem(), lam=2.0)
    C = math.sqrt(2)
    total = 5 * LN2 + 2.0 * 0.25 + 4 * (1 + C) * math.log(1 + 100 / (4 * 4 * 2.0 * (1 + C)))
    assert file.bound(problem(), s, Comparator(5.0, 0.5, 100)) == pytest.approx(total / LN2)
    assert file.bound(problem(), s, Comparator(5.0, 1.1, 100)) == math.inf


@pytest.mark.parametrize(
    "wrong, word",
    [
        ({"n_classes": 3}, "at most 2 classes, not 3"),
        ({"lam": 0.0}, "lam"),
        ({"reach": -1.0}, "reach"),
        ({"play": "half"}, "play"),
        ({"radius": None}, "radius"),
        ({"n_features": 20_000}, "20000 × 20000 numbers, 3.2 GB"),
    ],
)
def test_refusals(wrong, word):
    with pytest.raises(SettingError, match=word):
        gaptron.Learner("aioli", **{"n_classes": 2, "norm": 1.0, "radius": 1.0, **wrong})
