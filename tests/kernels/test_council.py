"""Experts heard together, each verb against a few lines of numpy."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gaptron.kernels import council
from tests import plain

some = settings(max_examples=100, deadline=None, derandomize=True)
close = np.testing.assert_allclose


@st.composite
def councils(draw):
    """ω, the experts' probabilities, and how many of them speak."""
    K, n, more = draw(st.integers(2, 12)), draw(st.integers(2, 9)), draw(st.integers(0, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    F = rng.dirichlet(np.full(K, draw(st.sampled_from([0.02, 0.3, 3.0]))), size=n + more)
    return rng.gamma(0.3, size=n + more) + 1e-9, F, n, rng


@some
@given(councils(), st.sampled_from([0.0, 1e-300, 1.0, 1e300]))
def test_invite(case, size):
    _, F, _, rng = case
    K = F.shape[1]
    said = rng.dirichlet(np.full(K, 0.3))
    room = np.full((6, K), np.nan)
    n = council.invite(said * size, room, 2)
    assert np.isnan(room[:2]).all()
    if size == 0.0:
        assert n == 2 and np.isnan(room).all()
        return
    assert n == 6
    close(room[2:], [(1 - m) * said + m / K for m in (0, 0.2, 0.5, 0.8)], rtol=1e-9, atol=1e-15)
    assert council.invite(np.zeros(0), room, 2) == 2  # an algorithm that was told nothing


@some
@given(councils())
def test_centre(case):
    _, _, _, rng = case
    a = rng.normal(size=7) * 10.0 ** rng.uniform(-3, 5)
    wanted = np.maximum(a, a.max() - 10)
    council.centre(a, 0.5)
    close(a, 0.5 * (wanted - wanted.mean()), atol=1e-9)


@some
@given(councils())
def test_blend(case):
    omega, F, n, _ = case
    a = np.full(F.shape[1], np.nan)
    top, outside = council.blend(omega, F, n, a)
    share = omega[:n] / omega[:n].sum()
    P, without = share @ F[:n], share[1:] @ F[1:n]
    logs = np.log(np.maximum(P, 1e-12))
    logs = np.maximum(logs, logs.max() - 10)
    close(a, logs - logs.mean(), atol=1e-9)
    assert P[top] >= P.max() * (1 - 1e-12)
    assert without[outside] >= without.max() - 1e-12


def test_labels_that_tie_outside_go_to_the_lowest_whatever_the_first_expert_says():
    """Else which of the two is k° would hang on the rounding of what is taken away."""
    rng = np.random.default_rng(0)
    for K in (2, 3, 7):
        for _ in range(200):
            F = np.full((4, K), 1 / K)
            F[0] = rng.dirichlet(np.ones(K))
            omega = rng.random(4) + 0.01
            assert council.blend(omega, F, 4, np.zeros(K))[1] == 0


@some
@given(councils(), st.booleans())
def test_believe(case, hit):
    omega, F, n, rng = case
    label, before = int(rng.integers(F.shape[1])), omega.copy()
    council.believe(omega, F, n, label, hit)
    phi = np.clip(F[:n, label], 1e-3, 1 - 1e-3)
    after = before[:n] * (phi if hit else 1 - phi)
    close(omega[:n], before[:n].sum() * (0.99 * after / after.sum() + 0.01 / n), rtol=1e-9)
    close(omega[:n].sum(), before[:n].sum(), rtol=1e-12)
    np.testing.assert_array_equal(omega[n:], before[n:])  # who is not there keeps its weight


@some
@given(st.integers(0, 2**32 - 1))
def test_the_blend_is_nearly_as_good_as_the_best_expert_on_what_was_seen(seed):
    """-Σ ln Σ_j ω_j φ_j ≤ min_j -Σ ln φ_j + ln n + 0.0101 a round: Bayes with a share for all."""
    rng = np.random.default_rng(seed)
    n, K, T = 5, 4, 60
    omega, mixed, each = np.full(n, 1 / n), 0.0, np.zeros(n)
    best_one = rng.integers(n)
    for _ in range(T):
        F = rng.dirichlet(np.full(K, 0.4), size=n)
        truth = rng.choice(K, p=F[best_one])
        label = int(rng.integers(K))
        phi = np.clip(F[:, label], 1e-3, 1 - 1e-3)
        seen = phi if label == truth else 1 - phi
        mixed -= math.log(omega @ seen / omega.sum())
        each -= np.log(seen)
        council.believe(omega, F, n, label, bool(label == truth))
    assert mixed <= each.min() + math.log(n) + 0.0101 * T


@some
@given(councils())
def test_stack_and_restack(case):
    _, F, n, rng = case
    L = np.log(F + 1e-5)
    u, K = rng.normal(size=len(F)), F.shape[1]
    a = np.full(K, np.nan)
    top, outside = council.stack(u, L, n, a)
    close(a, u[:n] @ L[:n], rtol=1e-9, atol=1e-9)
    without = u[1:n] @ L[1:n]
    assert top == a.argmax() and without[outside] >= without.max() - 1e-9
    truth, before, seen = int(rng.integers(K)), u.copy(), np.array([rng.random() * 10])
    r = plain.softmax(a) - np.eye(K)[truth]
    g = L[:n] @ r
    N = seen[0] + g @ g
    council.restack(u, seen, L, n, r, np.zeros(len(F)))
    close(seen[0], N, rtol=1e-9)
    close(u[:n], before[:n] - g / math.sqrt(1 + N), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(u[n:], before[n:])
