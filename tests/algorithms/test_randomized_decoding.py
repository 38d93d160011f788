"""Facts of Sakaue et al. 2024 and Shibukawa et al. 2025 alone."""

import copy
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gaptron
from gaptron.algorithms import randomized_decoding as file
from gaptron.errors import NoBoundError, SettingError
from gaptron.types import UNKNOWN, Comparator, Feedback, Loss, Problem
from tests.conftest import INTERPRETED, noisy_stream, random_stream, separable_stream

LN2 = math.log(2)
FULL, BANDIT = Feedback.FULL, Feedback.BANDIT


def problem(feedback, K=3, X=1.0, D=1.0, T=1000):
    return Problem(K, 2, feedback, Loss.LOGISTIC, X, D, T)


def softmax(z):
    e = np.exp(z - np.max(z))
    return e / e.sum()


def decoded(pi, gamma=0.0):
    p = min(1.0, 2 * (1 - pi.max())) * pi
    p[pi.argmax()] += 1 - p.sum()
    return (1 - gamma) * p + gamma / len(pi)


def logistic_losses(X, y, U):
    return np.array([-math.log2(softmax(U @ x)[k]) for x, k in zip(X, y)])


scores = st.lists(st.floats(-40, 40), min_size=2, max_size=12).map(np.array)


@settings(deadline=None)
@given(scores)
def test_the_probability_of_a_mistake_is_at_most_ln_2_times_the_loss(z):
    pi, p = softmax(z), np.zeros(len(z))
    top = int(z.argmax())
    file.decode(pi, np.ones(len(z), dtype=bool), top, float(np.delete(pi, top).sum()), 0.0, p)
    np.testing.assert_allclose(p, decoded(pi), atol=1e-12)
    for y in range(len(z)):
        loss = (math.log(np.exp(z - z.max()).sum()) + z.max() - z[y]) / LN2
        assert 1 - p[y] <= LN2 * loss + 1e-12


def test_the_contraction_is_not_idle():
    """Two labels level: a coin, at a loss of one bit."""
    p, both = np.zeros(2), np.ones(2, dtype=bool)
    file.decode(np.array([0.5, 0.5]), both, 0, 0.5, 0.0, p)
    np.testing.assert_allclose(p, 0.5)
    file.decode(np.array([0.9, 0.1]), both, 0, 0.1, 0.0, p)
    np.testing.assert_allclose(p, [0.8 + 0.2 * 0.9, 0.2 * 0.1])
    file.decode(np.array([0.9, 0.1]), both, 0, 0.1, 0.5, p)
    np.testing.assert_allclose(p, [0.49 + 0.25, 0.01 + 0.25])


@settings(deadline=None)
@given(scores, st.data())
def test_the_squared_gradient_is_at_most_2_over_ln_2_times_the_loss(z, data):
    y = data.draw(st.integers(0, len(z) - 1))
    pi = softmax(z)
    gradient = (pi - np.eye(len(z))[y]) / LN2
    loss = (math.log(np.exp(z - z.max()).sum()) + z.max() - z[y]) / LN2
    assert gradient @ gradient <= file.C * loss + 1e-12


def test_the_settings_are_the_theorems():
    s = file.recommend(problem(FULL, X=2.0))
    assert s.eta == pytest.approx(LN2 * (1 - LN2) / 4) and s.gamma == 0.0 and s.ball == math.inf and not s.bandit
    s = file.recommend(problem(BANDIT, K=4, D=3.0, T=10_000))
    assert s.gamma == pytest.approx(3 * math.sqrt(4 / 10_000)) and s.ball == 3.0 and s.bandit
    assert file.recommend(problem(BANDIT, K=4, D=30.0, T=1000)).gamma == 1.0
    assert "Sakaue" in file.theorem(problem(FULL), file.recommend(problem(FULL)))
    assert "Shibukawa" in file.theorem(problem(BANDIT), s)


def test_the_constants_of_the_bounds():
    full = file.bound(problem(FULL, X=2.0), file.recommend(problem(FULL, X=2.0)), Comparator(10.0, 3.0, 100))
    assert full == pytest.approx(10 + 2.350793 * 36, rel=1e-6)  # X²‖U‖²/(2 ln 2 (1 - ln 2))
    half = file.bound(problem(FULL), file.recommend(problem(FULL), eta=LN2 * (1 - LN2) / 2), Comparator(10.0, 3.0, 100))
    a = 1 - LN2
    assert half == pytest.approx((1 - a) / (1 - a / 2) * 10 + (1 - a) * (2 / LN2) * 9 / (4 * a * 0.5 * (1 - a / 2)))
    p = problem(BANDIT, K=4, X=2.0, D=3.0, T=10_000)
    bandit = file.bound(p, file.recommend(p), Comparator(10.0, 2.0, 10_000))
    root = 3 * math.sqrt(4 * 10_000)
    assert bandit == pytest.approx(10 + 12.5 * (2 / LN2) * 4 / (4 * a) * root + root * 3 / 4)


def test_seven_rounds_of_full_information_by_hand():
    learner = gaptron.Learner("randomized-decoding", n_classes=3, norm=3.0, eta=0.4, seed=1)
    W = np.zeros((3, 2))
    for x, y in [((1, 2), 0), ((2, -1), 1), ((0, 1), 0), ((-1, 1), 2), ((1, 1), 1), ((2, 2), 0), ((-1, 2), 2)]:
        row = np.array(x, dtype=float)
        pi = softmax(W @ row)
        decision = learner.decide(row)
        np.testing.assert_allclose(decision.distribution, decoded(pi), atol=1e-12)
        learner.learn(decision, label=y)
        W -= 0.4 / LN2 * np.outer(pi - np.eye(3)[y], row)
        np.testing.assert_allclose(learner.weights, W, atol=1e-12)


def test_a_whole_bandit_run_equals_the_textbook():
    X, y, K = random_stream(300, K=4, seed=8)
    B, gamma = 0.7, 0.3
    learner = gaptron.Learner("randomized-decoding", n_classes=K, feedback="bandit", ball=B, gamma=gamma, seed=5)
    W, total, projected, hits = np.zeros((K, X.shape[1])), 0.0, 0, 0
    for x, truth in zip(X, y):
        pi = softmax(W @ x)
        p = decoded(pi, gamma)
        decision = learner.decide(x)
        np.testing.assert_allclose(decision.distribution, p, atol=1e-9)
        right = bool(decision.label == truth)
        learner.learn(decision, correct=right)
        if right and x.any():
            g = np.outer(pi - np.eye(K)[truth], x) / LN2 / p[truth]
            total += (g * g).sum()
            W = W - B / math.sqrt(2 * total) * g
            size = np.linalg.norm(W)
            hits += 1
            if size > B:
                W *= B / size
                projected += 1
        np.testing.assert_allclose(learner.weights, W, atol=1e-9)
    assert 30 < hits < 270 and projected > 3


def test_the_estimated_gradient_is_unbiased():
    """Σ p'(k) ĝ(k) = g over the labels that may be drawn. A step is B ĝ/√(2Σ), so that it shows ĝ."""
    X, y, K = random_stream(80, K=3, seed=1)
    learner = gaptron.Learner("randomized-decoding", n_classes=K, feedback="bandit", ball=1.0, gamma=0.4, seed=0)
    learner.play(X, y)
    x, truth, W = X[3], 2, learner.weights
    P, g = learner.distribution(X[3:4])[0], np.outer(softmax(W @ x) - np.eye(K)[truth], x) / LN2
    mean = np.zeros_like(W)
    for label in range(K):
        state, rd, work = copy.deepcopy((learner._engine.state, learner._engine.round, learner._engine.scratch))
        state.ball[0].square = -1e3  # as if far inside the ball: no projection
        file.decide(learner.settings, state, x, rd, work, 0.5)
        file.learn(learner.settings, state, x, rd, work, label, truth if label == truth else UNKNOWN)
        total, before = state.total[0].square, learner._engine.state.total[0].square
        estimate = (W - file.weights(state, False)) * math.sqrt(2 * total)
        assert estimate.any() == (label == truth)
        assert total - before == pytest.approx((estimate**2).sum())
        mean += P[label] * estimate
    np.testing.assert_allclose(mean, g, atol=1e-9)


STREAMS = {"separable": separable_stream(400), "noisy": noisy_stream(400), "random": random_stream(400, K=3)}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("share", [0.1, 0.5, 1.0, 2.0])
def test_with_full_information_the_bound_holds_on_every_path(name, share):
    X, y, K = STREAMS[name]
    norm = float(np.linalg.norm(X, axis=1).max()) * (1 + 1e-9)
    eta = share * file.published_eta(problem(FULL, X=norm))
    learner = gaptron.Learner("randomized-decoding", n_classes=K, norm=norm, eta=eta, seed=0)
    trace = learner.play(X, y)
    rng = np.random.default_rng(1)
    means = np.array([X[y == k].mean(axis=0) for k in range(K)])
    for U in [0 * means, *(c * means for c in (0.3, 1, 3, 10)), *(rng.normal(size=(5, *means.shape)))]:
        comparator = Comparator(logistic_losses(X, y, U).sum(), float(np.linalg.norm(U)), len(y))
        assert trace.expected_mistakes <= file.bound(learner.problem, learner.settings, comparator)
    found = learner.bound(X, y)
    assert trace.expected_mistakes <= found.value < len(y) * 3


@pytest.mark.sample(1)
@pytest.mark.skipif(INTERPRETED, reason="many runs")
@pytest.mark.parametrize("name", ["separable", "noisy"])
def test_under_bandit_feedback_the_bound_holds_in_the_mean(name):
    """Long enough for the number to be below T, so that it says something."""
    make = {"separable": separable_stream, "noisy": noisy_stream}[name]
    X, y, K = make(60_000, d=3, K=2)
    means = np.array([X[y == k].mean(axis=0) for k in range(K)])
    U = means / np.linalg.norm(means)
    comparator = Comparator(logistic_losses(X, y, U).sum(), 1.0, len(y))
    mistakes = []
    for seed in range(5):
        learner = gaptron.Learner(
            "randomized-decoding", n_classes=K, feedback="bandit", norm=1.0, radius=1.0, horizon=len(y), seed=seed
        )
        mistakes.append(learner.play(X, y).mistakes)
    number = file.bound(learner.problem, learner.settings, comparator)
    assert np.mean(mistakes) <= number < len(y)


def test_a_comparator_outside_the_ball_proves_nothing():
    p = problem(BANDIT)
    assert file.bound(p, file.recommend(p), Comparator(0.0, 1.1, 10)) == math.inf
    assert file.bound(problem(FULL), file.recommend(problem(FULL), ball=1.0), Comparator(0.0, 1.1, 10)) == math.inf


def test_too_long_a_step_has_no_bound():
    s = file.recommend(problem(FULL), eta=LN2)
    with pytest.raises(NoBoundError, match="below"):
        file.bound(problem(FULL), s, Comparator(0.0, 1.0, 10))


def test_refusals():
    def make(**more):
        return gaptron.Learner("randomized-decoding", n_classes=3, norm=1.0, **more)

    with pytest.raises(SettingError, match="leave eta out"):
        make(feedback="bandit", radius=1.0, horizon=10, eta=0.1)
    with pytest.raises(SettingError, match="gamma is for bandit"):
        make(gamma=0.1)
    with pytest.raises(SettingError, match="radius"):
        make(feedback="bandit", horizon=10)
    with pytest.raises(SettingError, match="horizon"):
        make(feedback="bandit", radius=1.0)
    for gamma in (0.0, -1.0, 1.5, math.nan):
        with pytest.raises(SettingError, match="gamma"):
            make(feedback="bandit", radius=1.0, gamma=gamma)
    for ball in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(SettingError, match="ball"):
            make(feedback="bandit", horizon=10, ball=ball, gamma=0.1)
    for eta in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(SettingError, match="eta"):
            make(eta=eta)


def test_a_ball_keeps_the_weights_inside():
    X, y, K = separable_stream(300)
    learner = gaptron.Learner("randomized-decoding", n_classes=K, ball=0.8, norm=1.0, seed=0)
    learner.play(X, y)
    assert np.linalg.norm(learner.weights) == pytest.approx(0.8, abs=1e-9)
