"""Facts of Foster & Rakhlin 2020 alone, and of the oracles it learns with."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import gaptron
from gaptron.algorithms import squarecb as file
from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels import oracles, simplex
from gaptron.learner.seeds import generator
from gaptron.types import Comparator, Feedback, Loss, Problem, SparseRow
from tests.conftest import INTERPRETED, noisy_stream, random_stream

ORACLES = ("squared", "logistic", "softmax")


def problem(K=3, X=1.0):
    return Problem(K, 2, Feedback.BANDIT, Loss.LOGISTIC, X, None, None)


def learner(K=3, seed=0, **more):
    return gaptron.Learner("squarecb", n_classes=K, feedback="bandit", seed=seed, **{"norm": 4.0, **more})


def predicted(oracle, z):
    if oracle == "squared":
        return np.clip(z, 0, 1)
    if oracle == "logistic":
        return 1 / (1 + np.exp(-z))
    e = np.exp(z - z.max())
    return e / e.sum()


def inverse_gap(f, top, gamma):
    q = 1 / (len(f) + gamma * (f[top] - f))
    q[top] = 0.0
    q[top] = 1 - q.sum()
    return q


def coefficients(oracle, f, label, right):
    e = np.eye(len(f))[label]
    if oracle == "softmax":
        return f - e if right else f[label] / max(1 - f[label], 1e-3) * (e - f)
    return e * (f[label] - right)


@pytest.mark.parametrize("steps", ["constant", "adagrad"])
@pytest.mark.parametrize("oracle", ORACLES)
def test_a_whole_run_equals_the_textbook(oracle, steps):
    X, y, K = random_stream(250, K=4, seed=8)
    c, exponent, step = 5.0, 0.4, 0.3
    run = learner(K, seed=5, oracle=oracle, steps=steps, c=c, exponent=exponent, step=step)
    trace = run.play(X, y)
    W, N, kinds = np.zeros((K, X.shape[1])), np.zeros((K, X.shape[1])), set()
    for t, (x, u) in enumerate(zip(X, generator(5).random(250))):
        z = W @ x
        top = int(z.argmax())
        f = predicted(oracle, z)
        q = inverse_gap(f, top, c * (t + 1) ** exponent)
        label = min(int(np.searchsorted(np.cumsum(q), u, side="right")), K - 1)
        assert trace.codes[t] == label and trace.top[t] == top
        assert trace.truth_probability[t] == pytest.approx(q[y[t]], abs=1e-10)
        right = bool(label == y[t])
        G = np.outer(coefficients(oracle, f, label, right), x)
        N += G**2
        W -= step * (G / np.sqrt(N + 1e-8) if steps == "adagrad" else G)
        kinds.add((right, label == top))
    np.testing.assert_allclose(run.weights, W, atol=1e-9)
    assert len(kinds) == 4


@pytest.mark.parametrize("exponent", [0.0, 0.5])
def test_six_rounds_by_hand(exponent):
    """K = 2, squared, γ_t = 4 or 4√t, step ½, on a line. The label drawn is read from the decision."""
    run = learner(2, seed=3, oracle="squared", c=4.0, exponent=exponent, step=0.5)
    W = [0.0, 0.0]
    rounds = [(1.0, 0), (1.0, 0), (1.0, 1), (0.5, 0), (2.0, 0), (-1.0, 1), (1.0, 0), (1.0, 0)]
    for t, (x, y) in enumerate(rounds, 1):
        z = [w * x for w in W]
        f = [min(max(v, 0.0), 1.0) for v in z]
        top = 0 if z[0] >= z[1] else 1
        other = 1 - top
        q = 1 / (2 + 4 * t**exponent * (f[top] - f[other]))
        decision = run.decide([x])
        assert decision.distribution[other] == pytest.approx(q) and decision.distribution[top] == pytest.approx(1 - q)
        right = decision.label == y
        run.learn(decision, correct=bool(right))
        W[decision.label] += 0.5 * (right - f[decision.label]) * x
        np.testing.assert_allclose(run.weights[:, 0], W, atol=1e-12)


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=30).map(np.array), st.floats(0, 1e6))
@example(np.zeros(9), 0.0)  # eight times 1/9 and what is left: less than 1/9, by rounding
def test_q_is_a_distribution_and_no_label_falls_below_its_floor(f, gamma):
    K, top, q = len(f), int(f.argmax()), np.zeros(len(f))
    simplex.inverse_gap(f, f, len(f), top, gamma, q)
    assert q.sum() == pytest.approx(1.0, abs=1e-12)
    assert (q >= (1 - 1e-12) / (K + gamma)).all()
    assert q[top] == q.max() and q[top] >= (1 - 1e-12) / K
    order = np.argsort(f)
    others = [k for k in order if k != top]
    assert (np.diff(q[others]) >= -1e-15).all()  # the smaller the gap, the likelier


def test_the_exploration_counts_decisions_with_and_without_feedback():
    run = learner(3, c=10.0, step=0.5)
    run._engine.rng = np.random.default_rng(1)
    x = np.array([1.0, 0.5])
    run.learn(run.decide(x), correct=True)
    seen = [run.decide(x).distribution for _ in range(3)]
    f = predicted("squared", run.weights @ x)
    for t, q in enumerate(seen, start=2):
        np.testing.assert_allclose(q, inverse_gap(f, int((run.weights @ x).argmax()), 10 * math.sqrt(t)), atol=1e-12)
    assert len({q.tobytes() for q in seen}) == 3


numbers = st.lists(st.floats(-8, 8), min_size=2, max_size=7).map(np.array)


@settings(deadline=None)
@given(numbers, st.data(), st.booleans(), st.sampled_from([1, 2]))
def test_the_coefficients_are_the_derivative_of_the_feedbacks_log_loss(z, data, right, oracle):
    label = data.draw(st.integers(0, len(z) - 1))

    def loss(z):
        f = np.zeros(len(z))
        oracles.predict(oracle, z, int(z.argmax()), f)
        return -math.log(f[label] if right else 1 - f[label])

    f, r = np.zeros(len(z)), np.zeros(len(z))
    oracles.predict(oracle, z, int(z.argmax()), f)
    np.testing.assert_allclose(f, predicted(ORACLES[oracle], z), atol=1e-12)
    if 1 - f[label] < 2e-3:
        return
    W, N, x = np.zeros((len(z), 1)), np.zeros((len(z), 1)), np.array([1.0])
    oracles.fit(W, N, x, oracle, oracles.CONSTANT, 1.0, f, label, float(right), r)
    h = 1e-5
    slopes = [(loss(z + h * e) - loss(z - h * e)) / (2 * h) for e in np.eye(len(z))]
    np.testing.assert_allclose(-W[:, 0], slopes, atol=1e-4, rtol=1e-4)


def test_a_confident_softmax_that_missed_moves_by_no_more_than_the_guard_allows():
    f, r = np.array([1.0, 0.0]), np.zeros(2)
    W = np.zeros((2, 1))
    oracles.fit(W, W.copy(), np.array([1.0]), oracles.SOFTMAX, oracles.CONSTANT, 1.0, f, 0, 0.0, r)
    np.testing.assert_allclose(W[:, 0], [0.0, 0.0])  # e_a - f = 0
    f = np.array([1 - 1e-5, 1e-5])
    oracles.fit(W, W.copy(), np.array([1.0]), oracles.SOFTMAX, oracles.CONSTANT, 1.0, f, 0, 0.0, r)
    np.testing.assert_allclose(W[:, 0], [-(1 - 1e-5) * 1e-2, (1 - 1e-5) * 1e-2])


def test_the_squared_oracle_learns_nothing_where_the_clip_already_agrees():
    W, r = np.zeros((2, 1)), np.zeros(2)
    for z, reward in [(np.array([1.7, -3.0]), 1.0), (np.array([-0.4, -3.0]), 0.0)]:
        f = np.zeros(2)
        oracles.predict(oracles.SQUARED, z, 0, f)
        oracles.fit(W, W.copy(), np.array([1.0]), oracles.SQUARED, oracles.CONSTANT, 0.5, f, 0, reward, r)
        assert not W.any()


@pytest.mark.parametrize("z", [-1e308, -800.0, 0.0, 800.0, 1e308])
def test_no_score_is_too_large(z):
    for oracle in range(3):
        f = np.zeros(2)
        scores = np.array([z, 0.0])
        oracles.predict(oracle, scores, int(scores.argmax()), f)
        assert np.isfinite(f).all() and (f >= 0).all() and (f <= 1).all()


@pytest.mark.parametrize("oracle", range(3))
@pytest.mark.parametrize("steps", range(2))
def test_fit_on_sparse_rows_is_fit_on_dense_ones(oracle, steps):
    rng = np.random.default_rng(0)
    K, d = 3, 5
    W, N = rng.normal(size=(K, d)), rng.random((K, d))
    WT, NT = np.ascontiguousarray(W.T), np.ascontiguousarray(N.T)
    x = np.array([0.0, 2.0, 0.0, -1.0, 0.5])
    at = np.flatnonzero(x).astype(np.int32)
    f = np.array([0.2, 0.4, 0.4])
    before = W.copy()
    for reward in (1.0, 0.35, 0.0):
        oracles.fit(W, N, x, oracle, steps, 0.3, f, 1, reward, np.zeros(K))
        oracles.fit(WT, NT, SparseRow(at, x[at]), oracle, steps, 0.3, f, 1, reward, np.zeros(K))
    np.testing.assert_allclose(WT.T, W, atol=1e-14)
    np.testing.assert_allclose(NT.T, N, atol=1e-14)
    assert (W[1, at] != before[1, at]).all() and (W[:, [0, 2]] == before[:, [0, 2]]).all()
    assert (W[0] != before[0]).any() == (oracle == oracles.SOFTMAX)


def test_the_step_follows_the_norm_and_scaling_the_rows_changes_nothing():
    assert file.recommend(problem(X=2.0)).step == 0.125
    assert file.recommend(problem(X=2.0), oracle="softmax").step == 0.25
    assert file.recommend(problem(X=2.0), oracle="logistic", steps="adagrad").step == 0.5
    assert file.recommend(problem(X=2.0), step=0.3).step == 0.3
    X, y, K = random_stream(200)
    for oracle in ORACLES:
        one = gaptron.Learner("squarecb", n_classes=K, feedback="bandit", seed=1, oracle=oracle).play(X, y)
        two = gaptron.Learner("squarecb", n_classes=K, feedback="bandit", seed=1, oracle=oracle).play(8 * X, y)
        np.testing.assert_array_equal(one.codes, two.codes)


@pytest.mark.parametrize("oracle", ORACLES)
def test_it_learns(oracle):
    X, y, K = noisy_stream(600 if INTERPRETED else 3000, noise=0.1)
    trace = learner(K, oracle=oracle, norm=1.0).play(X, y)
    late = trace.wrong[len(y) // 2 :].mean()
    assert late < 0.25 < trace.wrong[:40].mean() + 0.1  # a coin over three labels errs on 67 %


def test_there_is_no_bound_and_the_reason_is_said():
    with pytest.raises(NoBoundError, match="no bound on mistakes for arbitrary data"):
        file.bound(problem(), file.recommend(problem()), Comparator(0.0, 1.0, 10))
    assert "realisability" in file.theorem(problem(), file.recommend(problem()))


@pytest.mark.parametrize(
    "wanted, word",
    [
        ({"oracle": "cubic"}, "squared, logistic, softmax"),
        ({"steps": "newton"}, "constant, adagrad"),
        ({"c": 0.0}, "c="),
        ({"c": math.inf}, "c="),
        ({"c": math.nan}, "c="),
        ({"exponent": -0.1}, "exponent"),
        ({"exponent": 1.1}, "exponent"),
        ({"step": 0.0}, "step="),
        ({"step": math.nan}, "step="),
    ],
)
def test_refusals(wanted, word):
    with pytest.raises(SettingError, match=word):
        learner(**wanted)


@pytest.mark.parametrize("oracle", ORACLES)
def test_first_order_weighting_is_the_loss_of_the_best_in_both_places(oracle):
    """q(k) = ℓ*/(Kℓ* + γ(ℓ_k - ℓ*)) with ℓ = 1 - f, in textbook numpy, along a run."""
    s = noisy_stream(T=80, K=3)
    who = learner(oracle=oracle, weighting="first-order")
    for t in range(60):
        P = who.distribution(s.X[t : t + 1])[0]
        f = predicted(oracle, who.scores(s.X[t : t + 1])[0])
        top, loss = int(who.scores(s.X[t : t + 1])[0].argmax()), 1 - f
        least, gamma = max(loss[top], 1e-12), 10 * math.sqrt(t + 1)
        q = least / (3 * least + gamma * (loss - loss[top]))
        q[top] = 0.0
        q[top] = 1 - q.sum()
        np.testing.assert_allclose(P, q, atol=1e-10)
        decision = who.decide(s.X[t])
        who.learn(decision, correct=bool(decision.label == s.y[t]))


def test_first_order_weighting_explores_less_than_the_plain_one():
    s = noisy_stream(T=400, K=3)
    plain, fast = learner(oracle="softmax"), learner(oracle="softmax", weighting="first-order")
    plain.play(s.X, s.y)
    fast._engine.state, fast._engine.problem = plain._engine.state, plain.problem
    assert (fast.distribution(s.X).max(axis=1) >= plain.distribution(s.X).max(axis=1) - 1e-12).all()


def test_an_unknown_weighting_is_refused():
    with pytest.raises(SettingError, match="first-order"):
        learner(weighting="cubic")
