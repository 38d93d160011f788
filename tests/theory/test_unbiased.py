"""Averaged over the label drawn, what a bandit learner learns is what full information would give."""

import numpy as np
import pytest

import gaptron
from gaptron.types import UNKNOWN
from tests.conftest import KINDS, random_stream
from tests.one_round import state_after


def update(learner, x, label, truth, *, full=False):
    """How the weights move if `label` is played when `truth` is right, by the real `learn` on a copy."""
    decision, before = learner.decide(x), learner.weights
    state = state_after(learner, decision, label, truth if full or label == truth else UNKNOWN)
    return learner._engine.algorithm.weights(state, learner._engine.sparse) - before, decision.distribution


@pytest.mark.sample(3)
@pytest.mark.parametrize("rows", [KINDS["dense64"], KINDS["csr"]], ids=["dense", "csr"])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "smooth-hinge"])
def test_gaptrons_gradient(loss, rows):
    X, y, K = random_stream(300, seed=13)
    bandit = gaptron.Learner(
        "gaptron",
        loss=loss,
        feedback="bandit",
        n_classes=K,
        norm=3.0,
        radius=1.0,
        horizon=10,
        eta=0.2,
        gamma=0.1,
        seed=0,
    )
    full = gaptron.Learner("gaptron", loss=loss, n_classes=K, norm=3.0, eta=0.2, gamma=0.1, seed=0)
    full.decide(rows(X[:1]))  # allocates its weights
    moved = 0
    for t in range(300):
        x = rows(X[t : t + 1])
        if t % 6 == 0 and t:
            full._engine.state.W[:] = bandit._engine.state.W
            truth = int(y[t])
            mean = 0.0
            for k in range(K):
                step, p = update(bandit, x, k, truth)
                mean = mean + p[k] * step
            exact, _ = update(full, x, truth, truth, full=True)
            np.testing.assert_allclose(mean, exact, atol=1e-12)
            moved += bool(exact.any())
        if full._engine.state is None:
            full.play(x[:0], y[:0])
        bandit.play(x, y[t : t + 1])
    assert moved > 10


@pytest.mark.parametrize("rows", [KINDS["dense64"], KINDS["csr"]], ids=["dense", "csr"])
def test_banditrons_update_is_the_perceptrons(rows):
    """E[update] = (e_y - e_ŷ) ⊗ x."""
    X, y, K = random_stream(200, seed=14)
    learner = gaptron.Learner("banditron", feedback="bandit", n_classes=K, gamma=0.3, seed=0)
    learner.play(rows(X[:100]), y[:100])
    hits = set()
    for t in range(100, 200):
        x, truth = rows(X[t : t + 1]), int(y[t])
        top = int(learner.predict(x)[0])
        mean = 0.0
        for k in range(K):
            step, p = update(learner, x, k, truth)
            mean = mean + p[k] * step
        e = np.eye(K)
        np.testing.assert_allclose(mean, np.outer(e[truth] - e[top], X[t]), atol=1e-12)
        hits.add(top == truth)
    assert hits == {True, False}


@pytest.mark.slow
def test_the_loss_estimate_is_unbiased_too():
    """Expected mistakes under bandit feedback: Σ(1 - p(y)) has the mean of the mistakes."""
    X, y, K = random_stream(150, seed=15)
    gaps = []
    for seed in range(400):
        learner = gaptron.Learner(
            "gaptron",
            loss="hinge",
            feedback="bandit",
            n_classes=K,
            norm=3.0,
            radius=1.0,
            horizon=150,
            eta=0.2,
            gamma=0.2,
            seed=seed,
        )
        trace = learner.play(X, y)
        gaps.append(trace.mistakes - trace.expected_mistakes)
    spread = np.std(gaps) / np.sqrt(len(gaps))
    assert abs(np.mean(gaps)) < 4 * spread
