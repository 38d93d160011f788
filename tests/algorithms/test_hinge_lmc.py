"""Facts of HingeLMC, in its practical form, alone."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gaptron
from gaptron.algorithms import hinge_lmc as file
from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels import prng
from gaptron.learner.seeds import generator
from gaptron.types import UNKNOWN, Comparator, Feedback, Loss, Problem
from tests.conftest import INTERPRETED, noisy_stream, random_stream
from tests.one_round import state_after


def problem(K=3, d=4, X=1.0, D=1.0, T=1000):
    return Problem(K, d, Feedback.BANDIT, Loss.HINGE, X, D, T)


def learner(K=3, seed=0, **more):
    given = {"norm": 4.0, "horizon": 1000, "radius": 1.0, **more}
    return gaptron.Learner("hinge-lmc", n_classes=K, feedback="bandit", seed=seed, **given)


def hinges(W, x, margin):
    f = W @ x
    return np.maximum(1 + (f - f.mean()) / margin, 0)


def test_nine_rounds_by_hand():
    """Two chains, one step, plain numpy; only the prng are borrowed."""
    X, y, K = random_stream(9, d=2, K=3, seed=6)
    mine = learner(K, seed=2, eta=0.3, mu=0.05, margin=0.8, ball=1.5, chains=2, steps=1, step=0.7)
    W, kept, u = np.zeros((2, K, 2)), [], generator(2).random(9)
    wrong = 0
    for t in range(9):
        psi = [hinges(w, X[t], 0.8) for w in W]
        p = (1 - 0.15) * np.mean([h / h.sum() for h in psi], axis=0) + 0.05
        decision = mine.decide(X[t])
        np.testing.assert_allclose(decision.distribution, p, atol=1e-12)
        mine.learn(decision, correct=bool(decision.label == y[t]))
        if decision.label == y[t]:
            np.testing.assert_allclose(mine._engine.state.W, W, atol=1e-12)
            continue
        wrong += 1
        box = prng.new_prng()
        prng.seed_prng(box, u[t], 1)
        if not kept:
            for c in range(2):
                length = 1.5 * prng.uniform(box) ** (1 / 6)
                noise = np.array([prng.normal(box) for _ in range(6)]).reshape(3, 2)
                W[c] = noise * length / np.linalg.norm(noise)
        kept.append((X[t], decision.label, 1 / p[decision.label]))
        h = 0.7 / (0.3 * sum(v * (x @ x) for x, _, v in kept) / 0.64 + 6 / 1.5**2)
        for c in range(2):
            G = np.zeros((K, 2))
            for x, label, v in kept:
                if hinges(W[c], x, 0.8)[label] > 0:
                    G += 0.3 * v / 0.8 * np.outer(np.eye(K)[label] - 1 / K, x)
            noise = np.array([prng.normal(box) for _ in range(6)]).reshape(3, 2)
            W[c] = W[c] - h / 2 * G + math.sqrt(h) * noise
            W[c] *= min(1, 1.5 / np.linalg.norm(W[c]))
        np.testing.assert_allclose(mine._engine.state.W, W, atol=1e-10)
    assert wrong >= 5


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=8), st.floats(0.1, 5), st.randoms(use_true_random=False))
def test_the_policy_costs_at_most_a_kth_of_the_hinges(scores, margin, random):
    f = np.array(scores)
    K, pi = len(f), np.empty(len(f))
    file.policy(f, margin, pi)
    psi = np.maximum(1 + (f - f.mean()) / margin, 0)
    assert psi.sum() >= K * (1 - 1e-9)
    np.testing.assert_allclose(pi, psi / psi.sum(), atol=1e-9)
    loss = np.array([random.random() for _ in range(K)])
    assert loss @ pi <= loss @ psi / K + 1e-9


def test_the_estimate_is_unbiased():
    """Σ_y' p(y')·1/p(y')·1[y' ≠ y]·ψ(y') = ⟨ℓ, ψ⟩ for every truth: each wrong label is charged its ψ once."""
    X, y, K = random_stream(40, d=4, K=3)
    mine = learner(K, chains=2, eta=0.1)
    mine.play(X, y)
    decision = mine.decide(X[0])
    for truth in range(K):
        mean = np.zeros(K)
        for label in range(K):
            state = state_after(mine, decision, label, label if label == truth else UNKNOWN)
            before = mine._engine.state.span[0].count
            if state.span[0].count > before:
                at = (state.span[0].first + before) % len(state.v)
                assert state.y[at] == label
                mean[label] += decision.distribution[label] * state.v[at]
        np.testing.assert_allclose(mean, np.arange(K) != truth, atol=1e-12)


def test_every_label_keeps_its_least_probability():
    X, y, K = noisy_stream(100)
    mine = learner(K, mu=0.1, eta=5.0, chains=2)
    mine.play(X, y)
    P = mine.distribution(X)
    assert P.min() >= 0.1 * (1 - 1e-12)
    assert (np.linalg.norm(mine._engine.state.W.reshape(2, -1), axis=1) <= 1 + 1e-12).all()


def test_without_loss_the_chains_keep_to_the_uniform_ball():
    """η ≈ 0: projected Langevin in the ball. Its mean stays near zero and its radius near that of the uniform law."""
    X, y, K = random_stream(60 if INTERPRETED else 400, d=2, K=2, seed=1)
    mine = learner(K, eta=1e-12, ball=2.0, chains=20 if INTERPRETED else 200, step=0.02, batch=1)
    mine.play(X, y)
    radius = np.linalg.norm(mine._engine.state.W.reshape(len(mine._engine.state.W), -1), axis=1)
    assert np.abs(mine.weights).max() < (0.8 if INTERPRETED else 0.3)
    assert abs(radius.mean() - 2.0 * 4 / 5) < 0.2  # E‖W‖ = D n/(n + 1)


def test_it_learns():
    X, y, K = noisy_stream(150 if INTERPRETED else 2000, d=5, K=3, noise=0.0)
    for more in ({}, {"batch": 16}):
        mine = learner(K, eta=0.5, mu=0.01, ball=5.0, chains=4, norm=1.0, **more)
        trace = mine.play(X, y)
        half = len(y) // 2
        assert trace.wrong[half:].mean() < (0.66 if INTERPRETED else 0.5), more
        assert INTERPRETED or (mine.predict(X) == y).mean() > 0.7, more


def test_the_papers_settings():
    p = problem(K=3, d=4, X=2.0, D=1.5, T=400)
    s = file.recommend(p, margin=0.5)
    assert (s.mu, s.ball, s.memory) == (pytest.approx(1 / 60), 1.5, 400)
    expected = math.sqrt(12 * 0.25 * math.log(math.e + 3 * 400 * 3 / 0.5) / (5 * 9 * 9 * 400))
    assert file.init(s, p, False).pace[0].eta == pytest.approx(expected)
    with pytest.raises(SettingError, match="horizon"):
        gaptron.Learner("hinge-lmc", n_classes=3, feedback="bandit", radius=1.0)


def test_no_bound():
    with pytest.raises(NoBoundError, match="chains"):
        file.bound(problem(), file.recommend(problem()), Comparator(1.0, 1.0, 10))


@pytest.mark.parametrize(
    "wrong",
    [
        {"mu": 0.0},
        {"mu": 0.4},
        {"eta": 0.0},
        {"margin": -1.0},
        {"ball": math.inf},
        {"step": 0.0},
        {"chains": 0},
        {"steps": 0},
        {"batch": -1},
        {"memory": 0},
        {"nonzeros": 0.5},
    ],
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(SettingError, match=next(iter(wrong))):
        learner(**wrong)
