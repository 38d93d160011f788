"""The kernel expert over a million updates in single precision, and its certificates and guard on real data."""

import math
from collections import deque

import numpy as np
import pytest

import gaptron
from gaptron.algorithms.advised import kernel
from gaptron.kernels.compile.jit import jit
from gaptron.kernels.rows import aligned_zeros
from gaptron.streams import open_stream, prepare
from gaptron.types import Feedback, Loss, Problem
from tests.conftest import shared_data

FEEDBACKS = ["full", "bandit"]
WIDTH = math.sqrt(12.0)  # of scaled ranks: from -√3 to √3
PRIOR = 16.0
REAL = ["segment", "satimage", "pendigits", "optdigits", "texture", "shuttle"]  # where the bounds are below T


# --- a million updates ------------------------------------------------------------------------------------------


@jit
def force(R, phis, phi, g, h, start, stop):
    """Update R in every round, whatever there is to be learned. Returns how often ⟨φ, Rφ⟩ was not positive."""
    failures = 0
    for t in range(start, stop):
        for i in range(phi.shape[0]):
            phi[i] = phis[t % phis.shape[0], i]
        own = kernel.multiply(R, phi, g)
        failures += not own > 0.0
        own = kernel.precondition_features(R, phi, g)
        kernel.lower(R, g, h / (1.0 + h * own))
    return failures


def waves(u):
    """φ of scaled ranks, one example per row."""
    f = kernel.frequencies(u.shape[1], False)
    near = (f.near[0] * u[:, f.columns[0]]).reshape(len(u), -1, 4).sum(axis=2)
    angles = np.concatenate([near, u @ f.far.T], axis=1)
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / math.sqrt(128)


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def examples(kind):
    """The φ of up to 1024 examples that are played over and over."""
    rng, n = np.random.default_rng(0), 1024
    if kind == "constant":
        return waves(np.zeros((1, 5)))
    if kind == "alternating":
        return waves(np.array([[-0.5] * 5, [0.5] * 5]))
    if kind == "collinear":
        return waves(WIDTH * (rng.random((n, 1)) - 0.5) * np.ones((1, 5)))
    if kind == "heavy":
        return waves(np.clip(1e-3 * rng.standard_cauchy((n, 5)), -WIDTH / 2, WIDTH / 2))
    if kind == "uniform":
        return waves(WIDTH * (rng.random((n, 20)) - 0.5))
    if kind == "nearly equal":
        return waves(WIDTH * (rng.random((1, 20)) - 0.5) + 1e-4 * rng.normal(size=(n, 20)))
    pairs = rng.normal(size=(n, 256))  # no example has such features, but a matrix must survive them
    pairs[:] = np.where(np.arange(n)[:, None] % 2, pairs[0] + 1e-3 * pairs, pairs[0])
    return unit(pairs)


def forced(kind, h, T):
    """R after T updates, how often it failed, and what it is in double precision."""
    phis = np.ascontiguousarray(examples(kind), dtype=np.float32)
    R = kernel.tables(Problem(2, 1, Feedback.FULL, Loss.LOGISTIC), False, True)[3]
    phi, g = aligned_zeros((256,), np.float32), aligned_zeros((256,), np.float32)
    failures = force(R, phis, phi, g, h, 0, T)
    exact, times = phis.astype(float), T // len(phis) + (np.arange(len(phis)) < T % len(phis))
    return R, failures, np.linalg.inv(np.eye(256) / PRIOR + h * (exact.T * times) @ exact), exact


KINDS = ["constant", "alternating", "collinear", "heavy", "uniform", "nearly equal", "parallel pairs"]


@pytest.mark.slow
@pytest.mark.parametrize("h, T", [(1.0, 1_000_000), (0.02, 100_000)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_million_forced_updates_leave_a_positive_symmetric_matrix(kind, h, T):
    R, failures, exact, phis = forced(kind, h, T)
    assert failures == 0  # it was never reset
    np.testing.assert_array_equal(R, R.T)
    R = R.astype(float)
    values = np.linalg.eigvalsh(R)
    assert values[0] > 0.0 and values[-1] < 1.02 * PRIOR
    assert np.abs(R - exact).max() < 0.01 * PRIOR
    own, expected = (np.einsum("ni,ij,nj->n", phis, matrix, phis) for matrix in (R, exact))
    # Single precision stops the shrinking of R, as if at most some thousand examples were alike.
    assert (own > 0.99 * expected).all() and (own < expected + 0.003 / math.sqrt(h)).all()


@pytest.mark.parametrize("kind", ["uniform", "nearly equal"])
def test_ten_thousand_updates_agree_with_double_precision(kind):
    R, failures, exact, phis = forced(kind, 1.0, 10_000)
    assert failures == 0
    own, expected = (np.einsum("ni,ij,nj->n", phis, matrix, phis) for matrix in (R, exact))
    np.testing.assert_allclose(own, expected, rtol=0.01, atol=2e-4)


@pytest.mark.slow
def test_a_matrix_that_is_spoiled_again_and_again_recovers():
    """A negative direction is noticed when an example meets it; the matrix is then that before the first example."""
    rng, resets = np.random.default_rng(0), 0
    phis = np.ascontiguousarray(examples("uniform"), dtype=np.float32)
    R = kernel.tables(Problem(2, 1, Feedback.FULL, Loss.LOGISTIC), False, True)[3]
    phi, g = aligned_zeros((256,), np.float32), aligned_zeros((256,), np.float32)
    for n in range(50):
        bad = phis[rng.integers(len(phis))]
        R -= 2.0 * R.diagonal().max() * np.outer(bad, bad)
        resets += force(R, phis, phi, g, 1.0, 1000 * n, 1000 * (n + 1))
        assert np.isfinite(R).all() and np.linalg.eigvalsh(R.astype(float))[0] > 0.0
    assert 50 <= resets <= 60


# --- real data --------------------------------------------------------------------------------------------------


def real(name, T, seed=0):
    shared_data()
    stream = prepare(prepare(open_stream(name), shuffle=seed), limit=T)
    return prepare(stream, standardize=True, constant=True, unit_norm=True)


def log_loss(stream, U):
    z = stream.X @ U.T
    z = z - z.max(axis=1, keepdims=True)
    return (np.log2(np.exp(z).sum(axis=1)) - z[np.arange(len(stream.y)), stream.y] / math.log(2)).sum()


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_the_certificate_holds_on_real_data(name):
    s = real(name, 3000)
    for seed in range(2):
        who = gaptron.Learner(n_classes=s.n_classes, seed=seed)
        trace = who.play(s.X, s.y)
        assert "kernel" in who.advice.weights
        assert trace.expected_mistakes <= who.bound(s.X, s.y, trace).value < len(s.y)


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0, 10])
@pytest.mark.parametrize("name", REAL)
def test_the_bandit_certificate_holds_on_real_data(name, delay):
    """The mean of the mistakes is at most that of L_T(U) + C_T(U), for a rule U that was fitted to all rounds."""
    s = real(name, 1500)
    linear = gaptron.Learner(n_classes=s.n_classes, seed=0, kernel=False)
    U, mistakes, bounds = linear.bound(s.X, s.y, linear.play(s.X, s.y)).U, [], []
    for seed in range(4):
        given = {"n_classes": s.n_classes, "feedback": "bandit", "seed": seed, "delay": delay, "norm": 1.0}
        who, wrong, waiting = gaptron.Learner(**given), 0, deque()
        for x, y in zip(s.X, s.y):
            waiting.append((who.decide(x), int(y)))
            wrong += waiting[-1][0].label != y
            if len(waiting) > delay:
                decision, truth = waiting.popleft()
                who.learn(decision, correct=bool(decision.label == truth))
        mistakes.append(wrong)
        bounds.append(log_loss(s, U) + who.certificate.cost(np.linalg.norm(U)))
    assert np.mean(mistakes) <= np.mean(bounds)
    assert delay or np.mean(bounds) < len(s.y)


@pytest.mark.slow
@pytest.mark.parametrize("late", [0, 10])
@pytest.mark.parametrize("feedback", FEEDBACKS)
@pytest.mark.parametrize("name", REAL)
def test_the_guard_binds_on_real_data(name, feedback, late):
    """The caller is right in 19 of 20 rounds, and nothing else can be learned: the labels are permuted."""
    s = real(name, 800)
    rng = np.random.default_rng(0)
    y = rng.permutation(s.y)
    said = np.where(rng.random(len(y)) < 0.05, rng.integers(s.n_classes, size=len(y)), y)
    who = gaptron.Learner(n_classes=s.n_classes, feedback=feedback, seed=0, guard=10.0)
    waiting, mistakes = deque(), 0
    for x, truth, advice in zip(s.X, y, said):
        waiting.append((who.decide(x, advice=int(advice)), int(truth)))
        mistakes += waiting[-1][0].label != truth
        if len(waiting) > late:
            decision, right = waiting.popleft()
            told = {"label": right} if feedback == "full" else {"correct": bool(decision.label == right)}
            who.learn(decision, **told)
    assert mistakes <= 1.1 * np.sum(said != y) + 10.0
