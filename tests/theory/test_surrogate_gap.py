"""Lemma 1's surrogate gap is never positive, for every setting `recommend` gives.

Scores z stand for W and x: any z with ‖z‖ ≤ D‖x‖ comes from some ‖W‖ ≤ D. The gap is worked out twice: in
textbook numpy (`tests.plain`), and by the kernels that the learner runs.
"""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gaptron.algorithms import gaptron as file
from gaptron.kernels import losses, simplex
from gaptron.types import Feedback, Loss, Problem
from tests import plain

TINY = 1e-9
SETTINGS = [
    *[(loss, Feedback.FULL, "") for loss in Loss],
    (Loss.LOGISTIC, Feedback.BANDIT, "explored"),
    (Loss.LOGISTIC, Feedback.BANDIT, "free"),
    (Loss.HINGE, Feedback.BANDIT, ""),
    (Loss.SMOOTH_HINGE, Feedback.BANDIT, ""),
]


def name(setting):
    loss, feedback, regime = setting
    return "-".join(filter(None, (loss.word, feedback.word, regime)))


def through_the_kernels(s, z, y, xx):
    """The gap from the learner's own kernels: gap map, mixture, loss, gradient coefficients."""
    K, q, p = len(z), np.zeros(len(z)), np.zeros(len(z))
    top = simplex.best(z)
    a = file.gap_map(s.loss, s.beta, z, q, top)
    simplex.mix_uniform(p, np.ones(len(p), dtype=bool), top, max(a, s.gamma))
    if s.loss == int(Loss.LOGISTIC):
        c = q.copy()
        c[y] -= 1.0
        square = float(c @ c) / math.log(2) ** 2
    else:
        square = 2 * losses.pull(s.loss, s.beta, z, y) ** 2
    if s.bandit and square > 0:
        assert p[y] > 0
        square /= p[y]
    value = losses.value(s.loss, s.beta, z, y)
    return (1 - a) * (top != y) + a * (K - 1) / K - value + s.eta / 2 * square * xx, p


def check(setting, z, y, X, D, T, shorter=1.0):
    """Every number of one round: ‖x‖ = X·shorter ≤ X."""
    loss, feedback, regime = setting
    K = len(z)
    s = file.recommend(Problem(K, 3, feedback, loss, X, D, T))
    if feedback is Feedback.BANDIT and loss is Loss.LOGISTIC:
        assert (s.gamma == 0.0) == (regime == "free")
    if s.ball < math.inf:  # ‖W‖ ≤ D, so ‖z‖ ≤ D‖x‖
        size = np.linalg.norm(z)
        limit = s.ball * X * shorter
        z = z * (limit / size) if size > limit else z
    xx = (X * shorter) ** 2
    textbook = plain.surrogate_gap(loss.word, z, y, xx, s.eta, s.gamma, s.beta, s.bandit)
    ours, p = through_the_kernels(s, z, y, xx)
    scale = max(1.0, float(np.abs(z).max()))
    assert textbook <= TINY * scale
    assert ours <= TINY * scale
    assert ours == pytest.approx(textbook, rel=1e-9, abs=1e-9 * scale)
    # Lemma 1's last step: what is really lost is at most the gap's first two terms and γ(K-1)/K.
    assert 1 - p[y] <= ours + losses.value(s.loss, s.beta, z, y) + s.gamma * (K - 1) / K + 1e-9 * scale


def promises(setting, draw):
    """X, D and T that lead to the regime asked for."""
    X = draw(st.sampled_from([1e-3, 0.5, 1.0, 20.0]))
    if setting[2] == "free":
        return X, draw(st.floats(1e-3, 3.0)) / X, 10**15
    if setting[2] == "explored":
        return X, draw(st.floats(5.0, 40.0)) / X, draw(st.sampled_from([1, 100, 10**4]))
    return X, draw(st.floats(1e-3, 10.0)) / X, draw(st.sampled_from([1, 100, 10**4, 10**9]))


@st.composite
def rounds(draw, setting):
    K = draw(st.integers(2, 30))
    spread = draw(st.sampled_from([0.3, 1.5, 10.0, 1e4]))
    z = draw(arrays(float, K, elements=st.floats(-spread, spread) | st.sampled_from([0.0, 1.0, -1.0, 1 / K])))
    return z, draw(st.integers(0, K - 1)), *promises(setting, draw), draw(st.sampled_from([1.0, 1.0, 0.3, 0.0]))


@pytest.mark.sample(3)
@pytest.mark.parametrize("setting", SETTINGS, ids=name)
def test_the_surrogate_gap_is_never_positive(setting):
    @settings(max_examples=200, deadline=None)
    @given(rounds(setting))
    def law(case):
        z, y, X, D, T, shorter = case
        check(setting, z, y, X, D, T, shorter)

    law()


REGIMES = {"free": (1.0, 0.7, 10**15), "explored": (1.0, 8.0, 100), "": (1.0, 1.0, 10**4)}


@pytest.mark.sample(3)
@pytest.mark.parametrize("setting", SETTINGS, ids=name)
def test_edges(setting):
    """Ties of two and of all, margins at β, 0 and 1, huge scores either way, two labels and many."""
    X, D, T = REGIMES[setting[2]]
    for K in (2, 3, 12, 30):
        if setting[2] == "free" and K > 3:
            continue
        for top in (0.0, 1e-12, 1 / K - 1e-12, 1 / K, 1 / K + 1e-12, 0.5, 1 - 1e-12, 1.0, 1 + 1e-12, 2.0, 30.0, 1e4):
            z = np.zeros(K)
            z[K - 1] = top
            for y in range(K):
                check(setting, z, y, X, D, T)
                check(setting, -z, y, X, D, T)
        two = np.full(K, -1e4)
        two[:2] = 1e4
        for y in range(K):
            check(setting, two, y, X, D, T)


@pytest.mark.parametrize("setting", SETTINGS, ids=name)
def test_the_gap_is_tight_enough_that_a_bigger_step_would_break_it(setting):
    """Twice the step is too much, but for the logistic losses' slack: so the test above can fail."""
    loss, feedback, regime = setting
    X, D, T = REGIMES[regime]
    T = 1 if loss is Loss.SMOOTH_HINGE else T  # γ = 1: where a < γ this loss has slack
    K = 3
    s = file.recommend(Problem(K, 3, feedback, loss, X, D, T))
    factor = {"free": 32, "explored": 8}.get(regime, 8 if loss is Loss.LOGISTIC else 2)
    worst = -math.inf
    rng = np.random.default_rng(0)
    candidates = [np.zeros(K), *np.eye(K) / K, *rng.normal(size=(300, K)), *(0.1 * rng.normal(size=(300, K)))]
    for z in candidates:
        if s.ball < math.inf:
            z = z * min(1.0, s.ball * X / max(np.linalg.norm(z), 1e-300))
        for y in range(K):
            worst = max(worst, through_the_kernels(s._replace(eta=factor * s.eta), z, y, X * X)[0])
    assert worst > 0.0


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 30), st.floats(0.01, 6.0), st.integers(0, 10**6))
@example(2, 0.3, 0)
def test_no_label_is_ever_rarer_than_the_free_regime_promises(K, DX, seed):
    z = np.random.default_rng(seed).normal(size=K)
    z *= DX / np.linalg.norm(z)
    p = plain.mixture(plain.gap_map("logistic", z, 0.0), 0.0, z)
    assert p.min() >= file.least_gap(K, DX) / K * (1 - 1e-12)


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 30), st.integers(0, 10**6), st.floats(0.1, 100))
def test_lemma_two_the_logistic_gradient_is_small_where_the_loss_is(K, seed, spread):
    """‖∇ℓ‖² ≤ (2/ln 2)‖x‖²ℓ (Pinsker)."""
    z = np.random.default_rng(seed).normal(size=K) * spread
    for y in range(K):
        c = plain.coefficients("logistic", z, y, 0.0)
        assert c @ c <= 2 / math.log(2) * plain.loss("logistic", z, y, 0.0) + 1e-12
