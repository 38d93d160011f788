"""Facts of EXP4 over linear experts alone."""

import math

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import exp4 as file
from gaptron.errors import NoBoundError, SettingError
from gaptron.learner.seeds import generator
from gaptron.types import UNKNOWN, Comparator, Feedback, Loss, Problem
from tests.algorithms.laws import some_available
from tests.conftest import INTERPRETED, noisy_stream, random_stream
from tests.one_round import state_after


def problem(K=3, d=6, T=1000):
    return Problem(K, d, Feedback.BANDIT, Loss.HINGE, None, None, T)


def learner(K=3, seed=0, **more):
    return gaptron.Learner("exp4", n_classes=K, feedback="bandit", seed=seed, **more)


def brute(X, y, K, W, eta, u, available=None):
    """The textbook, in plain Python: every expert, every round, no logarithms and nothing subtracted."""
    lost, labels, propensities = [0.0] * len(W), [], []
    for t, (x, truth) in enumerate(zip(X, y), start=1):
        rate = eta or math.sqrt(math.log(len(W)) / (t * K))
        trust = [math.exp(-rate * cost) for cost in lost]
        there = range(K) if available is None else np.flatnonzero(available[t - 1])
        said = [max(there, key=lambda k, w=w: (sum(a * b for a, b in zip(w[k], x)), -k)) for w in W]
        p = [sum(a for a, k in zip(trust, said) if k == label) / sum(trust) for label in range(K)]
        label, reached = 0, p[0]
        while reached <= u[t - 1] and label < K - 1:
            label += 1
            reached += p[label]
        if label != truth:
            lost = [cost + (k == label) / p[label] for cost, k in zip(lost, said)]
        labels.append(label)
        propensities.append(p[truth])
    return labels, propensities, lost


@pytest.mark.sample(1)
@pytest.mark.parametrize("horizon, some", [(None, False), (80, False), (80, True)])
def test_a_whole_run_equals_brute_force(horizon, some):
    X, y, K = random_stream(80, K=3, seed=2)
    mine = learner(K, experts=12, horizon=horizon, seed=5)
    available = some_available(y, K) if some else None
    trace = mine.play(X, y, available=available)
    W = file.experts(mine.settings, problem(K))
    assert W.shape == (12, 3, 6)
    eta = math.sqrt(2 * math.log(12) / (80 * K)) if horizon else 0.0
    labels, propensities, lost = brute(X, y, K, W, eta, generator(5).random(80), available)
    np.testing.assert_array_equal(trace.codes, labels)
    np.testing.assert_allclose(trace.truth_probability, propensities, atol=1e-12)
    np.testing.assert_allclose(mine._engine.state.L, np.array(lost) - min(lost), atol=1e-9)


def test_six_rounds_by_hand():
    """K = 2, d = 1, four experts on the grid (±1, ±1): two of them say 0 whatever x is, for they tie."""
    mine = learner(2, experts=4, eta=0.5, seed=3)
    said = {1.0: [0, 1, 0, 0], -1.0: [0, 0, 1, 0]}  # experts (-1,-1), (-1,1), (1,-1), (1,1)
    lost, wrong = [0.0] * 4, 0
    for x, y in [(1.0, 1), (-1.0, 0), (1.0, 1), (1.0, 1), (-1.0, 0), (1.0, 1), (-1.0, 0), (1.0, 0)]:
        trust = [math.exp(-0.5 * cost) for cost in lost]
        p1 = sum(a for a, k in zip(trust, said[x]) if k == 1) / sum(trust)
        decision = mine.decide([x])
        np.testing.assert_allclose(decision.distribution, [1 - p1, p1], atol=1e-13)
        mine.learn(decision, correct=decision.label == y)
        if decision.label != y:
            wrong += 1
            lost = [c + (k == decision.label) / (p1, 1 - p1)[decision.label == 0] for c, k in zip(lost, said[x])]
    assert 0 < wrong < 8


def test_the_estimate_is_unbiased():
    """Σ_y' p(y')·(what expert j is charged) = 1[ŷ_j ≠ y], for every expert and truth."""
    X, y, K = random_stream(50, K=4, seed=1)
    mine = learner(K, experts=20, horizon=50)
    mine.play(X, y)
    decision = mine.decide(X[0])
    said = mine._engine.scratch.labels[:20].copy()
    assert len(set(said)) > 2
    for truth in range(K):
        mean = np.zeros(20)
        for label in range(K):
            if decision.distribution[label] == 0.0:
                continue
            state = state_after(mine, decision, label, label if label == truth else UNKNOWN)
            charged = state.L - mine._engine.state.L
            charged -= charged.min() if label != truth else 0.0  # up to the shift by the least
            mean += decision.distribution[label] * charged
        np.testing.assert_allclose(mean - mean.min(), (said != truth) - float((said != truth).min()), atol=1e-9)


def test_mean_mistakes_are_within_the_regret_of_the_best_expert():
    T = 60 if INTERPRETED else 2000
    X, y, K = noisy_stream(T, K=3, noise=0.1)
    runs = [learner(K, experts=50, horizon=T, seed=i) for i in range(5)]
    mistakes = np.mean([run.play(X, y).mistakes for run in runs])
    W = file.experts(runs[0].settings, problem(K, X.shape[1]))
    best = min(int(((X @ w.T).argmax(axis=1) != y).sum()) for w in W)
    regret = file.regret_to_experts(problem(K), runs[0].settings, T)
    assert regret == pytest.approx(math.sqrt(2 * T * K * math.log(50)))
    assert mistakes <= best + regret
    assert INTERPRETED or mistakes < (1 - 1 / K) * T - 100  # and it learned: better than guessing
    anytime = [learner(K, experts=50, seed=i) for i in range(5)]
    assert anytime[0].settings.eta == 0.0
    more = file.regret_to_experts(problem(K), anytime[0].settings, T)
    assert more == pytest.approx(2 * math.sqrt(T * K * math.log(50)))
    assert np.mean([run.play(X, y).mistakes for run in anytime]) <= best + more


def test_small_problems_get_a_grid_and_the_seed_chooses_the_others():
    s = file.recommend(problem())
    grid = file.experts(s, problem(2, 2))
    assert grid.shape == (625, 2, 2) and set(grid.ravel()) == {-1.0, -0.5, 0.0, 0.5, 1.0}
    assert (
        len(file.scratch(s, problem(2, 2), False).labels) == len(file.scratch(s, problem(2, 0), False).labels) == 1000
    )
    assert file.experts(s._replace(experts=5), problem(2, 2)).shape == (5, 2, 2)  # too few for a grid
    one, two = file.experts(s, problem()), file.experts(s._replace(experts_seed=1), problem())
    assert (one == file.experts(s, problem())).all() and (one != two).all()


def test_looking_before_the_first_round_says_what_all_experts_say():
    X = np.random.default_rng(0).normal(size=(7, 2))
    mine = learner(2, horizon=10)
    said = (X @ file.experts(mine.settings, problem(2, 2)).transpose(0, 2, 1)).argmax(axis=2)
    np.testing.assert_allclose(mine.distribution(X)[:, 1], said.mean(axis=0), atol=1e-12)


def test_no_bound_on_other_rules():
    with pytest.raises(NoBoundError, match="its own experts"):
        file.bound(problem(), file.recommend(problem()), Comparator(1.0, 1.0, 10))


@pytest.mark.parametrize(
    "wrong", [{"experts": 1}, {"experts": 2.5}, {"eta": 0.0}, {"eta": math.inf}, {"experts_seed": -1}]
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(SettingError, match=next(iter(wrong))):
        learner(**wrong)


def test_experts_that_do_not_fit_are_refused():
    with pytest.raises(SettingError, match="1000 experts of 100 × 10000 numbers"):
        file.init(file.recommend(problem()), problem(100, 10_000), False)
