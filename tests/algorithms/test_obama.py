"""Facts of the tempered mixture under bandit feedback alone."""

import itertools
import math

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import obama as file
from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.mixture import grid_regret, mixture_regret
from gaptron.types import UNKNOWN, Comparator, Feedback, Loss, Problem
from tests.conftest import INTERPRETED, noisy_stream
from tests.one_round import state_after


def problem(K=2, d=1, X=1.0, D=1.0, T=1000):
    return Problem(K, d, Feedback.BANDIT, Loss.LOGISTIC, X, D, T)


def learner(K=2, seed=0, **more):
    return gaptron.Learner("obama", n_classes=K, feedback="bandit", seed=seed, **{"nu": 1.0, "mu": 0.2, **more})


def test_ten_rounds_by_hand():
    """Four points on each axis; a right guess multiplies by softmax to the power (1/p)/(K/μ), a wrong one by 1."""
    mine = learner(grid=18, mu=0.4, seed=4)
    points = list(itertools.product([-4.0, -4 / 3, 4 / 3, 4.0], repeat=2))
    posterior = [math.exp(-(a * a + b * b) / 2) for a, b in points]
    seen = set()
    rounds = [(1.0, 1), (-0.5, 0), (0.25, 1), (1.0, 0), (0.3, 1), (-1.0, 0), (0.7, 1), (0.9, 1), (-0.2, 0), (1.0, 1)]
    for x, y in rounds:
        says = [1 / (1 + math.exp((a - b) * x)) for a, b in points]  # of label 1
        q = sum(w * s for w, s in zip(posterior, says)) / sum(posterior)
        p = [0.6 * (1 - q) + 0.2, 0.6 * q + 0.2]
        decision = mine.decide([x])
        np.testing.assert_allclose(decision.distribution, p, atol=1e-13)
        right = decision.label == y
        mine.learn(decision, correct=right)
        if right:
            power = (1 / p[y]) / (2 / 0.4)
            posterior = [w * (s if y else 1 - s) ** power for w, s in zip(posterior, says)]
        seen.add((right, decision.label))
    assert len(seen) >= 3
    mean = [sum(w * point[k] for w, point in zip(posterior, points)) / sum(posterior) for k in (0, 1)]
    np.testing.assert_allclose(mine.weights[:, 0], mean, atol=1e-12)


def test_the_weights_are_unbiased_and_at_most_one():
    """Σ_y' p(y') v(y')·1[y' = y] = μ/K for every y: each loss counts by the same share, on average."""
    X, y, K = noisy_stream(60, d=4, K=3)
    mine = learner(K, chains=2, mu=0.3)
    mine.play(X, y)
    decision = mine.decide(X[0])
    for truth in range(K):
        total = 0.0
        for label in range(K):
            state = state_after(mine, decision, label, label if label == truth else UNKNOWN)
            before = mine._engine.state.span[0].count
            added = state.span[0].count - before
            assert added == (label == truth)
            if added:
                v = state.v[(state.span[0].first + before) % len(state.v)]
                assert 0 < v <= 1
                total += decision.distribution[label] * v
        assert total == pytest.approx(0.3 / K)


def test_a_wrong_guess_leaves_no_trace():
    X, y, K = noisy_stream(20, d=4, K=3)
    mine = learner(K, chains=2)
    mine.play(X, y)
    before = [np.array(part) for name, part in zip(mine._engine.state._fields, mine._engine.state) if name != "r"]
    mine.learn(mine.decide(X[0]), correct=False)
    after = [np.array(part) for name, part in zip(mine._engine.state._fields, mine._engine.state) if name != "r"]
    for one, two in zip(before, after):
        np.testing.assert_array_equal(one, two)


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="many steps")
def test_chains_agree_with_the_grid():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(80, 1))
    y = (X[:, 0] > 0).astype(int)
    exact, chains = learner(nu=2.0, grid=40_000, mu=0.8), learner(nu=2.0, grid=0, mu=0.8, chains=400, steps=10)
    exact.play(X, y)
    for t in range(80):  # the same feedback to both
        decision = chains.decide(X[t])
        chains.learn(decision, correct=bool(decision.label == y[t]))
    tests = np.linspace(-1, 1, 9)[:, None]
    mine = gaptron.Learner("obama", n_classes=2, feedback="bandit", nu=2.0, mu=0.8, grid=40_000, seed=0)
    mine.decide(X[0])
    for i in range(chains._engine.state.span[0].count):  # the very history of the chains, weighed on a grid
        x = chains._engine.state.values[i : i + 1]
        for c in range(len(mine._engine.state.E)):
            z = mine._engine.state.W[c] @ x
            loss = np.logaddexp(z[0], z[1]) - z[chains._engine.state.y[i]]
            mine._engine.state.E[c] += chains._engine.state.v[i] * loss
    weight = np.exp(mine._engine.state.E.min() - mine._engine.state.E)
    mine._engine.state.a[:] = weight / weight.sum()
    np.testing.assert_allclose(mine.distribution(tests), chains.distribution(tests), atol=0.03)
    pace = chains._engine.state.pace[0]
    assert 0.4 < pace.accepted / pace.tried < 0.8


def test_mu_is_the_square_root():
    p = problem(K=3, d=5, X=2.0, D=1.5, T=10**6)
    s = file.recommend(p)
    assert s.mu == 0.0 and file.exploration(p, s) == pytest.approx(
        math.sqrt(3 * mixture_regret(p, 1.5, 1.5, 10**6) / 10**6)
    )
    assert file.exploration(p._replace(horizon=10), s) == 1.0
    assert file.init(s._replace(memory=10), p, False).explore[0].share == file.exploration(p, s)
    assert file.exploration(p, s._replace(mu=0.3)) == 0.3
    with pytest.raises(SettingError, match="horizon"):
        gaptron.Learner("obama", n_classes=3, feedback="bandit", radius=1.0)


@pytest.mark.parametrize(
    "wrong", [{"mu": 0.0}, {"mu": 1.5}, {"mu": math.nan}, {"nu": -1.0}, {"chains": 0}, {"grid": 7}]
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(SettingError, match=next(iter(wrong))):
        learner(**wrong)


def test_the_bound_is_the_tempered_price():
    p, s = problem(), file.recommend(problem(), mu=0.5)
    R = grid_regret(p, 1.0, s.grid, 0.7, 0.5 * 300 / 2)
    assert file.bound(p, s, Comparator(10.0, 0.7, 300)) == pytest.approx(math.log(2) * 10 + 4 * R + 150)
    with pytest.raises(NoBoundError, match="chains"):
        file.bound(problem(d=3), s, Comparator(1.0, 1.0, 10))


def test_mean_mistakes_are_below_the_bound():
    rng = np.random.default_rng(2)
    T = 40 if INTERPRETED else 1500
    X = rng.choice([-1.0, 1.0], size=(T, 1))
    y = np.where(rng.random(T) < 0.02, rng.integers(0, 2, T), (X[:, 0] > 0).astype(int))
    U = np.array([[-2.0], [2.0]])
    Z = X @ U.T
    loss = float((np.logaddexp(Z[:, 0], Z[:, 1]) - Z[np.arange(T), y]).sum()) / math.log(2)
    runs = [learner(nu=3.0, mu=0.2, seed=i, norm=1.0, grid=900) for i in range(3)]
    mistakes = np.mean([run.play(X, y).mistakes for run in runs])
    bound = file.bound(problem(T=T), runs[0].settings, Comparator(loss, math.sqrt(8), T))
    assert mistakes <= bound
    assert INTERPRETED or bound < T / 2  # it says something: below guessing
