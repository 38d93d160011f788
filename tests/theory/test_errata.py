"""Where the printed paper disagrees with itself: each erratum by its numbers. See the errata page.

`gap` is Lemma 1's surrogate gap in textbook numpy; "printed" is what the paper says, "mended" what we use.
E15 is a citation and has no test.
"""

import math

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import banditron
from gaptron.algorithms import gaptron as file
from gaptron.kernels import losses
from gaptron.types import UNKNOWN, Comparator, Feedback, Loss, Problem
from tests import plain
from tests.one_round import state_after

LN2 = math.log(2)


def problem(loss, feedback, K, X=1.0, D=1.0, T=1000):
    return Problem(K, 2, feedback, loss, X, D, T)


def gap(name, z, y, eta, gamma=0.0, bandit=False):
    z = np.asarray(z, dtype=float)
    return plain.surrogate_gap(name, z, y, 1.0, eta, gamma, 1 / len(z), bandit)


@pytest.mark.parametrize("K", [2, 3, 10])
def test_e01_smooth_hinge_step_of_the_table_leaves_a_positive_gap(K):
    z = np.eye(K)[0] / 2  # y = y*, m = ½: gap = ¼(4η - 1/K)
    printed, mended = 1 / (2 * K), 1 / (4 * K)
    assert gap("smooth-hinge", z, 0, printed) == pytest.approx(0.25 / K) and 0.25 / K > 0
    assert gap("smooth-hinge", z, 0, mended) == pytest.approx(0.0, abs=1e-15)
    assert file.recommend(problem(Loss.SMOOTH_HINGE, Feedback.FULL, K)).eta == pytest.approx(mended)


@pytest.mark.parametrize("K", [2, 3, 10])
def test_e02_bandit_smooth_hinge_step_of_the_table_leaves_a_positive_gap(K):
    z = np.eye(K)[0] / 2  # with γ = 1, p' = 1/K: gap = ¼(4ηK - 1/K)
    printed, mended = 1 / (2 * K**2), 1 / (4 * K**2)
    assert gap("smooth-hinge", z, 0, printed, 1.0, True) == pytest.approx(0.25 / K)
    assert gap("smooth-hinge", z, 0, mended, 1.0, True) == pytest.approx(0.0, abs=1e-15)
    s = file.recommend(problem(Loss.SMOOTH_HINGE, Feedback.BANDIT, K, T=1))
    assert s.gamma == 1.0 and s.eta == pytest.approx(mended)


def test_e03_bandit_smooth_hinge_exploration_misses_the_claim_from_twelve_classes_on():
    X, D, T = 1.0, 1.0, 10**8

    def regret(K, gamma):  # ‖U‖²/(2η) + γT(K-1)/K at η = γ/(4K²X²)
        return 2 * (K * X * D) ** 2 / gamma + gamma * T * (K - 1) / K

    for K in range(2, 40):
        claimed = 2 * K * X * D * math.sqrt(2 * T)
        printed, mended = math.sqrt(4 * (K * X * D) ** 2 / T), math.sqrt(2 * (K * X * D) ** 2 / T)
        assert (regret(K, printed) > claimed) == (K >= 12)
        assert regret(K, mended) <= claimed
        assert file.recommend(problem(Loss.SMOOTH_HINGE, Feedback.BANDIT, K, X, D, T)).gamma == pytest.approx(mended)


@pytest.mark.parametrize("K", [2, 5])
def test_e04_bandit_logistic_step_is_a_factor_k_too_small_for_the_claim(K):
    D = X = 1.0
    claimed = (K * X * D) ** 2 / (math.exp(-2 * D * X) * LN2)
    printed = LN2 * math.exp(-2 * D * X) / K / (2 * K**2 * X**2)
    without = printed * K
    assert D**2 / (2 * printed) == pytest.approx(K * claimed)
    assert D**2 / (2 * without) == pytest.approx(claimed)


def test_e05_the_printed_floor_of_p_is_not_kept():
    K, DX, gamma = 3, 1.0, 0.37
    z = np.array([2.0, -1.0, -1.0]) * DX / math.sqrt(6)  # ‖z‖ = DX, the surest scores there are
    p = plain.mixture(plain.gap_map("logistic", z, 0.0), gamma, z)
    printed = ((1 - gamma) * math.exp(-2 * DX) + gamma) / K
    mended = max(file.least_gap(K, DX), gamma) / K
    assert p.min() < printed * 0.9
    assert p.min() >= mended * (1 - 1e-12)


def test_e06_the_gap_map_goes_below_exp_minus_2dx():
    for DX in (0.1, 0.3, 0.6):
        z = np.array([1.0, -1.0]) * DX / math.sqrt(2)
        a = plain.gap_map("logistic", z, 0.0)
        assert a < math.exp(-2 * DX)
        assert a == pytest.approx(file.least_gap(2, DX), rel=1e-12)
    z = np.array([1.0, -1.0]) / math.sqrt(2)
    assert plain.gap_map("logistic", z, 0.0) > math.exp(-2)  # further out the printed floor is true


def test_e07_between_the_two_case_splits_the_printed_case_is_not_proved():
    K, X, D = 3, 1.0, 1.0
    square = (K * X * D) ** 2
    T = 1.2 * square  # above the printed split K²X²D², below the right one K²X²D²/ln 2
    gamma = min(1.0, math.sqrt(square / (T * LN2)))
    assert gamma == 1.0
    proved = square / (LN2 * gamma) + gamma * T
    assert proved > 2 * K * X * D * math.sqrt(T / LN2)  # the case the printed split sends it to
    assert proved <= 2 * square / LN2  # the other one
    assert T < square / LN2


def test_e08_without_the_radius_the_exploration_misses_the_claim():
    K, X, D, T = 3, 1.0, 0.1, 10**4

    def regret(gamma):
        return (K * X * D) ** 2 / (LN2 * gamma) + gamma * T * (K - 1) / K

    claimed = 2 * K * X * D * math.sqrt(T / LN2)
    printed, mended = math.sqrt(2 * K**2 * X**2 / T), math.sqrt((K * X * D) ** 2 / (T * LN2))
    assert regret(printed) > 3 * claimed
    assert regret(mended) <= claimed


@pytest.mark.parametrize("K", [2, 3, 10])
def test_e09_the_printed_hinge_maps_leave_the_unit_interval_or_the_gap(K):
    beta, eta = 1 / K, (1 - 1 / K) / K

    def theorem(m):
        return 1 - max(float(m > beta), m)

    def table(m):
        return 1 - float(m > beta)

    assert theorem(2.0) == -1.0  # not in [0, 1]
    # y = y*, m* = β: gap = a(K-1)/K - (1 - m*) + η, and the table's a = 1 there
    leftover = table(beta) * (K - 1) / K - (1 - beta) + eta
    assert leftover == pytest.approx(eta) and leftover > 0
    z = np.eye(K)[0] * beta
    assert gap("hinge", z, 0, eta) <= 1e-15
    s = file.recommend(problem(Loss.HINGE, Feedback.FULL, K))
    for m, a in [(0.0, 1.0), (beta, 1 - beta), (beta + 1e-9, 0.0), (1.0, 0.0), (2.0, 0.0)]:
        assert file.gap_map(s.loss, s.beta, np.eye(K)[0] * m, np.zeros(K), 0) == pytest.approx(a)


def test_e10_the_printed_smooth_hinge_grows_again_past_margin_one():
    def printed(m):
        return max((1 - m) ** 2, 0)

    for m in (1.5, 3.0, 11.0):
        z = np.array([m, 0.0, 0.0])
        assert printed(m) > 0.2
        assert losses.value(int(Loss.SMOOTH_HINGE), 0.0, z, 0) == 0.0
        assert losses.pull(int(Loss.SMOOTH_HINGE), 0.0, z, 0) == 0.0
    # On a separable stream a surer U would then prove less: L_T(3U) = 4T instead of 0.
    T, X, K = 100, 1.0, 3
    bound_at_margin_one = 0 * T + 2 * K * X**2 * 0.5
    assert printed(3.0) * T > bound_at_margin_one * 100


def test_e11_a_correct_learner_with_a_wide_margin_that_draws_another_label_learns_nothing():
    learner = gaptron.Learner(
        "gaptron",
        loss="hinge",
        feedback="bandit",
        n_classes=2,
        norm=1.0,
        radius=1.0,
        horizon=10,
        eta=0.5,
        gamma=0.5,
        seed=0,
    )
    decision = learner.decide([1.0])
    learner._engine.state = state_after(learner, decision, 1, 1)  # W_1 = 1 = -W_0
    sure = learner.decide([1.0])
    z = learner._engine.round.z.copy()
    assert z[1] - z[0] > learner.settings.beta
    before = learner.weights
    for label, truth in [(0, UNKNOWN), (1, 1)]:  # y = y* = 1: missed by the draw, and met
        learner._engine.state = state_after(learner, sure, label, truth)
        np.testing.assert_array_equal(learner.weights, before)
    # so the loss averaged over the draw is the full-information loss, 0
    assert losses.value(int(Loss.HINGE), learner.settings.beta, z, 1) == 0.0


def test_e12_the_perceptron_breaks_the_printed_bound_on_a_separable_stream():
    X, y = np.ones((5, 1)), np.ones(5, dtype=int)
    learner = gaptron.Learner("perceptron", n_classes=2)
    M = learner.play(X, y).mistakes
    U = np.array([[-0.5], [0.5]])
    L = sum(plain.loss("hinge", U @ x, 1, math.inf) for x in X)
    U2 = float(np.sum(U * U))
    printed = L + U2 + 2 * math.sqrt(U2) * math.sqrt(2 * L)
    mended = L + 2 * U2 + math.sqrt(U2) * math.sqrt(2 * L)
    assert (M, L, U2) == (1, 0.0, 0.5)
    assert printed < M <= mended
    case = problem(Loss.HINGE, Feedback.FULL, 2)
    assert learner._engine.algorithm.bound(case, learner.settings, Comparator(L, math.sqrt(U2), 5)) == pytest.approx(
        mended
    )


def test_e13_exp4_over_a_grid_of_linear_rules_is_linear_in_k():
    """EXP4's regret is √(TK ln N); a grid of T points in each of dK directions has ln N = dK ln T."""

    def exp4(T, d, K):
        return math.sqrt(T * K * (d * K * math.log(T)))

    T, d = 10**6, 20
    assert exp4(T, d, 3) == pytest.approx(3 * math.sqrt(d * T * math.log(T)))
    assert exp4(T, d, 12) / exp4(T, d, 3) == pytest.approx(4)  # not 2, as √(TdK ln T) would have it


def test_e14_banditrons_regret_grows_with_the_square_of_d():
    K, T = 3, 10**24

    def regret(D):
        gammas = np.geomspace(1e-14, 0.5, 40_000)
        case = problem(Loss.HINGE, Feedback.BANDIT, K, T=T)
        return min(banditron.bound(case, banditron.Banditron(g), Comparator(T / 2, D, T)) - T / 2 for g in gammas)

    assert regret(80.0) / regret(10.0) == pytest.approx(8 ** (2 / 3), rel=0.01)
    assert 8 ** (1 / 3) == pytest.approx(2)  # what (DK)^⅓ T^⅔ would give


def test_e16_the_sum_in_the_logistic_proof_leaves_out_the_top_label():
    p = plain.softmax(np.array([2.0, 0.0, -1.0, 0.5]))
    top, y = 0, 2
    without_top, without_y = 1 - p[top], 1 - p[y]
    assert p[top] >= 0.5
    assert without_top == pytest.approx(p[1:].sum())
    assert without_y != pytest.approx(without_top, rel=0.1)
    assert -0.5 * math.log2(without_top) <= -0.5 * math.log2(p[y])  # the step the proof takes next
