"""Facts of online softmax regression alone."""

import math

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import softmax as file
from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels import adagrad, likelihood
from gaptron.types import Comparator, Feedback, Loss, Problem
from tests import plain
from tests.conftest import noisy_stream, random_stream, separable_stream

LN2 = math.log(2)


def problem(K=3, X=1.0, D=2.0, T=100):
    return Problem(K, 4, Feedback.FULL, Loss.LOGISTIC, X, D, T)


def textbook(X, y, K, step, eta, D=math.inf, floor=1e-8):
    W, N, total, losses, sizes = np.zeros((K, X.shape[1])), 0.0, 0.0, [], []
    for t, (x, truth) in enumerate(zip(X, y), 1):
        q = plain.softmax(W @ x)
        losses.append(-math.log(q[truth]))
        G = np.outer(q - np.eye(K)[truth], x)
        N, total = N + G**2, total + (G**2).sum()
        rate = {"fixed": eta, "decaying": eta / math.sqrt(t), "adaptive": eta / math.sqrt(total) if total else 0.0}
        W = W - (eta * G / np.sqrt(N + floor) if step == "adagrad" else rate[step] * G)
        size = np.linalg.norm(W)
        W = W * min(1.0, D / size) if size else W
        sizes.append(np.linalg.norm(W))
    return W, np.array(losses), np.array(sizes)


def test_five_rounds_by_hand():
    """K = 2, x = (s,): q_1 = σ(2w) with w the weight of label 1, and W stays (-w, w)."""
    learner = gaptron.Learner("softmax", n_classes=2, norm=1.0)
    assert learner.settings.eta == 1.0
    w = 0.0
    for s, y in [(1.0, 1), (1.0, 1), (0.5, 0), (-1.0, 1), (1.0, 0)]:
        decision = learner.decide([s])
        assert decision.label == int(w * s > 0)
        assert decision.propensity == 1.0
        learner.learn(decision, label=y)
        w += (y - 1 / (1 + math.exp(-2 * w * s))) * s
        np.testing.assert_allclose(learner.weights[:, 0], [-w, w], atol=1e-14)


def test_the_first_step_is_half_a_row():
    learner = gaptron.Learner("softmax", n_classes=2, norm=1.0)
    learner.play(np.array([[1.0, 0.0]]), [1])
    np.testing.assert_allclose(learner.weights, [[-0.5, 0], [0.5, 0]], atol=1e-15)


@pytest.mark.parametrize(
    "step, eta, D",
    [
        ("fixed", 1.0, math.inf),
        ("decaying", 0.5, 0.5),
        ("adaptive", math.sqrt(2) * 0.5, 0.5),
        ("adagrad", 0.3, math.inf),
    ],
)
def test_a_whole_run_equals_the_textbook(step, eta, D):
    X, y, K = noisy_stream(250)
    X[7] = 0.0
    learner = gaptron.Learner("softmax", n_classes=K, norm=1.0, radius=0.5, step=step)
    trace = learner.play(X, y)
    assert learner.settings.eta == pytest.approx(eta)
    W, losses, sizes = textbook(X, y, K, step, eta, D)
    np.testing.assert_allclose(learner.weights, W, atol=1e-9)
    assert trace.mistakes <= losses.sum() / LN2
    if D < math.inf:
        assert sizes.max() == pytest.approx(D) and (sizes < 0.999 * D).any()  # the ball was felt, and not always


@pytest.mark.parametrize("step", ["decaying", "adaptive"])
def test_it_stays_in_the_ball(step):
    X, y, K = random_stream(300)
    learner = gaptron.Learner("softmax", n_classes=K, radius=0.2, norm=4.0, step=step)
    for a in range(0, 300, 20):
        learner.play(X[a : a + 20], y[a : a + 20])
        assert np.linalg.norm(learner.weights) <= 0.2 * (1 + 1e-9)


def test_sampling_plays_the_softmax():
    X, y, K = separable_stream(100)
    learner = gaptron.Learner("softmax", n_classes=K, play="sample", norm=1.0, seed=0)
    learner.play(X, y)
    expected = np.array([plain.softmax(learner.weights @ x) for x in X])
    np.testing.assert_allclose(learner.distribution(X), expected, atol=1e-12)


# --- the kernels it brought ---------------------------------------------------------------------------------


def test_adagrad_moves_every_weight_by_its_own_step():
    W, N, x = np.zeros((2, 3)), np.zeros((2, 3)), np.array([1.0, -2.0, 0.0])
    r = np.array([0.5, -0.5])
    for n in (1, 2, 3):
        before = W.copy()
        adagrad.descend(W, N, x, r, 0.1, 1e-12)
        np.testing.assert_allclose(W - before, 0.1 / math.sqrt(n) * np.array([[-1, 1, 0], [1, -1, 0]]), atol=1e-9)
    np.testing.assert_allclose(N, 3 * np.outer(r, x) ** 2)


def test_likelihood_coefficients_are_derivatives():
    z, h = np.array([0.3, -1.0, 0.8]), 1e-6
    p, r = plain.softmax(z), np.zeros(3)
    for reward, value in [(1.0, lambda q: -math.log(q[1])), (0.0, lambda q: -math.log(1 - q[1]))]:
        likelihood.reward_gradient(p, 1, reward, r)
        numeric = [(value(plain.softmax(z + h * e)) - value(plain.softmax(z - h * e))) / (2 * h) for e in np.eye(3)]
        np.testing.assert_allclose(r, numeric, atol=1e-8)


def test_a_fractional_reward_mixes_the_gradients_of_right_and_wrong():
    p, told, wrong, r = plain.softmax(np.array([0.3, -1.0, 0.8])), np.zeros(3), np.zeros(3), np.zeros(3)
    likelihood.label_gradient(p, 1, told)
    likelihood.reward_gradient(p, 1, 1.0, r)
    np.testing.assert_array_equal(r, told)
    likelihood.reward_gradient(p, 1, 0.0, wrong)
    likelihood.reward_gradient(p, 1, 0.35, r)
    np.testing.assert_allclose(r, 0.35 * told + 0.65 * wrong, rtol=1e-14)


def test_a_confident_model_that_was_wrong_moves_at_most_a_thousand():
    r = np.zeros(2)
    likelihood.reward_gradient(np.array([1.0, 0.0]), 0, 0.0, r)
    np.testing.assert_allclose(r, [0.0, 0.0])
    likelihood.reward_gradient(np.array([1.0 - 1e-9, 1e-9]), 0, 0.0, r)
    assert abs(r).max() <= 1e-6 * 1.01


# --- theory -------------------------------------------------------------------------------------------------


def test_the_self_bounding_constant():
    q = np.linspace(1e-6, 1 - 1e-6, 200_001)
    ratio = (1 - q) ** 2 / -np.log(q)
    assert ratio.max() <= file.SELF <= ratio.max() * 1.0001


@pytest.mark.parametrize("step", ["fixed", "decaying", "adaptive"])
@pytest.mark.parametrize("make", [separable_stream, noisy_stream, random_stream])
def test_mistakes_and_regret_keep_the_bound(step, make):
    """Against U fixed: what the bound says of Σ S, and through it of the mistakes, top label or drawn."""
    s = make(300, seed=2)
    rng = np.random.default_rng(0)
    means = np.array([s.X[s.y == k].sum(axis=0) for k in range(s.K)])
    for D, U in [(3.0, 3.0 * means / np.linalg.norm(means)), (1.0, rng.normal(size=means.shape) / 10)]:
        assert np.linalg.norm(U) <= D * (1 + 1e-12)
        loss = sum(plain.loss("logistic", U @ x, y, 0.0) for x, y in zip(s.X, s.y))
        learner = gaptron.Learner("softmax", n_classes=s.K, radius=D, norm=s.norm, step=step)
        trace = learner.play(s.X, s.y)
        value = file.bound(learner.problem, learner.settings, Comparator(loss, float(np.linalg.norm(U)), 300))
        _, losses, _ = textbook(s.X, s.y, s.K, step, learner.settings.eta, learner.settings.ball)
        assert losses.sum() <= LN2 * value
        assert trace.mistakes <= value
        drawn = gaptron.Learner("softmax", n_classes=s.K, radius=D, norm=s.norm, step=step, play="sample", seed=1)
        sampled = file.bound(drawn.problem._replace(n_features=6), drawn.settings, Comparator(loss, D, 300))
        assert drawn.play(s.X, s.y).expected_mistakes <= sampled


def test_the_bounds_as_numbers():
    c = Comparator(10.0, 2.0, 100)
    p = problem()
    fixed, decaying, adaptive = (file.recommend(p, step=s) for s in ("fixed", "decaying", "adaptive"))
    assert file.bound(p, fixed, c) == pytest.approx((10 * LN2 + 2.0) / (1 - 0.40727) / LN2)
    assert file.bound(p, decaying, c) == pytest.approx((10 * LN2 + 4 * 2.0 * 10) / LN2)
    total = file.bound(p, adaptive, c) * LN2
    assert total == pytest.approx(10 * LN2 + 2 * math.sqrt(2) * 2.0 * math.sqrt(2 * 0.40727 * total))
    assert file.bound(p, adaptive, c._replace(norm=2.1)) == math.inf


def test_where_there_is_no_bound():
    c = Comparator(10.0, 1.0, 100)
    with pytest.raises(NoBoundError, match="box"):
        file.bound(problem(), file.recommend(problem(), step="adagrad"), c)
    with pytest.raises(NoBoundError, match="too large"):
        file.bound(problem(), file.recommend(problem(), eta=2.5), c)


@pytest.mark.parametrize(
    "wrong, word",
    [
        ({"step": "magic"}, "step='magic' must be one of fixed"),
        ({"play": "magic"}, "play='magic' must be one of top"),
        ({"eta": 0.0}, "eta"),
        ({"eta": math.inf}, "eta"),
        ({"step": "adaptive", "radius": None}, "radius"),
    ],
)
def test_refusals(wrong, word):
    with pytest.raises(SettingError, match=word):
        gaptron.Learner("softmax", **{"n_classes": 3, "norm": 1.0, "radius": 1.0, **wrong})
