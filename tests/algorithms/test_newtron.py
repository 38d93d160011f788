"""Facts of Hazan & Kale 2011 alone."""

import math

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import newtron as file
from gaptron.data.examples import sealed_row
from gaptron.errors import NoBoundError, SettingError
from gaptron.learner.seeds import generator
from gaptron.types import Comparator, Feedback, Loss, Problem, new_round
from tests import plain
from tests.algorithms.test_ons import nearest
from tests.conftest import KINDS, random_stream, separable_stream
from tests.one_round import decide_once


def problem(K=3, d=4):
    return Problem(K, d, Feedback.BANDIT, Loss.LOGISTIC, 1.0, 1.0, 100)


def estimate(P, Pt, label, right):
    K = len(P)
    if right:
        return (1 - P[label]) / Pt[label] * (1 / K - np.eye(K)[label]), Pt[label]
    return P[label] / Pt[label] * (np.eye(K)[label] - 1 / K), 1.0


def textbook(X, y, K, u, full, alpha=10.0, beta=0.01, gamma=0.01, D=1.0):
    d = X.shape[1]
    W, b, A, labels = np.zeros(K * d), np.zeros(K * d), np.eye(K * d) / D, []
    for x, truth, luck in zip(X, y, u):
        P = plain.softmax(alpha * W.reshape(K, d) @ x)
        Pt = (1 - gamma) * P + gamma / K
        if luck < gamma:
            V, label = 0 * W, int(K * luck / gamma)
        else:
            V, label = W, plain.draw(P, int(P.argmax()), (luck - gamma) / (1 - gamma))
        labels.append(label)
        g, kappa = estimate(P, Pt, label, label == truth)
        G = np.outer(g, x).ravel()
        A += kappa * beta * (np.outer(G, G) if full else np.diag(G * G))
        b += (1 - kappa * beta * (G @ V)) * G
        W = -np.linalg.solve(A, b)
        size = np.linalg.norm(W)
        W = nearest(A, W, D) if full else W * min(1.0, D / size)
    return np.array(labels), W.reshape(K, d)


def test_six_rounds_by_hand():
    """K = 2, d = 1, so that W is (-w, w), G = ±size·(½, -½)s; A stays equal for both."""
    learner = gaptron.Learner(
        "newtron", n_classes=2, feedback="bandit", alpha=2.0, beta=0.5, gamma=0.5, ball=0.6, seed=3
    )
    luck = generator(3).random(6)
    A, b = 1 / 0.6, 0.0  # of the weight of label 1
    seen = set()
    for u, (s, y) in zip(luck, [(1.0, 1), (1.0, 1), (-0.5, 0), (1.0, 0), (2.0, 1), (1.0, 1)]):
        w = -b / A
        w *= min(1.0, 0.6 / (math.sqrt(2) * abs(w))) if w else 1.0
        P1 = 1 / (1 + math.exp(-4 * w * s))
        decision = learner.decide([s])
        np.testing.assert_allclose(decision.distribution, [0.5 * (1 - P1) + 0.25, 0.5 * P1 + 0.25], atol=1e-14)
        label = decision.label
        assert label == (int(4 * u) if u < 0.5 else int((u - 0.5) / 0.5 >= 1 - P1))
        learner.learn(decision, correct=label == y)
        P, Pt = (P1, 0.5 * P1 + 0.25) if label == 1 else (1 - P1, 0.5 * (1 - P1) + 0.25)
        size = -(1 - P) / Pt if label == y else P / Pt  # of e_label - ½
        kappa = Pt if label == y else 1.0
        g = (size if label == 1 else -size) / 2 * s
        A += kappa * 0.5 * g * g
        b += (1 - kappa * 0.5 * (0.0 if u < 0.5 else 2 * g * w)) * g
        seen.add((label == y, u < 0.5))
        w = -b / A
        w *= min(1.0, 0.6 / (math.sqrt(2) * abs(w)))
        np.testing.assert_allclose(learner.weights[:, 0], [-w, w], atol=1e-13)
    assert len(seen) >= 3


@pytest.mark.parametrize("kind", ["dense64", "csr"])
@pytest.mark.parametrize("full", [False, True])
def test_a_whole_run_equals_the_textbook(full, kind):
    X, y, K = separable_stream(80, d=4)
    own = {"beta": 0.5, "gamma": 0.2, "ball": 0.7}
    learner = gaptron.Learner(
        "newtron", n_classes=K, feedback="bandit", seed=5, matrix="full" if full else "diagonal", **own
    )
    trace = learner.play(KINDS[kind](X), y)
    labels, W = textbook(X, y, K, generator(5).random(80), full, beta=0.5, gamma=0.2, D=0.7)
    np.testing.assert_array_equal(trace.codes, labels)
    np.testing.assert_allclose(learner.weights, W, atol=1e-8)
    assert np.linalg.norm(W) == pytest.approx(0.7)


@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("K", [2, 3, 7])
def test_the_estimate_is_unbiased(K, some):
    """Σ P̃(y')·g(y') = P - e_y, with the code's own estimates, over all labels or those available."""
    rng = np.random.default_rng(K)
    for _ in range(20):
        z, y, gamma = rng.normal(size=K), int(rng.integers(K)), rng.uniform(0.01, 1.0)
        s = file.recommend(problem(K), alpha=2.0, gamma=gamma)
        available = rng.random(K) < (0.5 if some else 1.0)
        available[[y, y - 1]] = True
        z[~available] = -np.inf
        P = plain.softmax(2.0 * z)
        rd = new_round(K, 1)._replace(
            z=z, available=available, p=available * ((1 - gamma) * P + gamma / available.sum())
        )
        mean, r, square = np.zeros(K), np.zeros(K), 0.0
        for label in np.flatnonzero(available):
            kappa = file.estimate(s, rd, label, label == y, r)
            assert kappa == (rd.p[y] if label == y else 1.0)
            mean += rd.p[label] * r
            square += rd.p[label] * kappa * r @ r
        np.testing.assert_allclose(mean, P - np.eye(K)[y], atol=1e-12)
        assert square <= 1 + min(K / gamma, 1 / max(1 - gamma, 1e-9))  # though ‖g‖² alone may reach K/γ·K/γ


def test_the_label_drawn_follows_the_distribution_of_the_round():
    """Over a fine grid of u: how often each label comes is its p."""
    learner = gaptron.Learner("newtron", n_classes=3, feedback="bandit", gamma=0.3, seed=0)
    X, y, _ = random_stream(50, K=3)
    learner.play(X, y)
    core, count = learner._engine, np.zeros(3)
    rd, x = core.round, sealed_row(X[0])
    for u in (np.arange(4000) + 0.5) / 4000:
        count[decide_once(core.settings, core.state, x, rd, core.scratch, u)] += 1
    np.testing.assert_allclose(count / 4000, rd.p, atol=2e-3)


def test_the_length_is_kept_without_looking_at_all_weights():
    X, y, K = random_stream(400)
    learner = gaptron.Learner("newtron", n_classes=K, feedback="bandit", ball=0.5, seed=2)
    learner.play(X, y)
    assert learner._engine.state.total[0].square == pytest.approx(np.sum(learner._engine.state.W**2), rel=1e-9)
    assert np.linalg.norm(learner.weights) <= 0.5 * (1 + 1e-9)


def test_published_settings():
    assert file.recommend(problem()._replace(radius=None)) == (False, 10.0, 0.01, 0.01, 1.0)
    assert file.recommend(problem()._replace(radius=7.0)).ball == 7.0


def test_there_is_no_bound():
    with pytest.raises(NoBoundError, match="order of growth"):
        file.bound(problem(), file.recommend(problem()), Comparator(1.0, 1.0, 10))


@pytest.mark.parametrize(
    "wrong, word",
    [
        ({"matrix": "half"}, "matrix"),
        ({"alpha": 0.0}, "alpha"),
        ({"beta": math.nan}, "beta"),
        ({"gamma": 0.0}, "gamma"),
        ({"gamma": 1.5}, "gamma"),
        ({"ball": math.inf}, "ball"),
        ({"matrix": "full", "n_features": 6000}, "18000 × 18000 numbers"),
        ({"feedback": "full"}, "newtron takes feedback bandit"),
    ],
)
def test_refusals(wrong, word):
    with pytest.raises(SettingError, match=word):
        gaptron.Learner("newtron", **{"n_classes": 3, "feedback": "bandit", **wrong})
