"""High probability: the bounds from expected to actual mistakes, their closed forms, and attacks on them."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

import gaptron
from gaptron.errors import NoBoundError, SettingError
from gaptron.theory.high_probability import any_time, one_time, with_risk
from gaptron.types import Certificate, Comparator
from tests.conftest import noisy_stream

VARIANCES = [0.0, 0.01, 0.3, 1.0, 7.5, 40.0, 153.0, 1000.0, 1e5]
DELTAS = [0.5, 0.1, 0.05, 0.01, 1e-3]


def explicit(variance, delta):
    """THEORY 2.5, item 2, first form."""
    d = math.log(1 / delta) + 0.5 * math.log(1 + variance) + 0.09
    return 1 + d / 3 + math.sqrt(d * d / 9 + 2 * (1 + variance) * d)


def log_mixture(N, V):
    """ln ∫₀^∞ exp(N ln(1+w) - (w - ln(1+w))V) e^{-w} dw, by quadrature around its peak."""

    def f(w):
        return (N + V) * math.log1p(w) - w * (V + 1)

    top = max(0.0, (N + V) / (V + 1) - 1)
    width = 12 * math.sqrt(N + V + 1) / (V + 1) + 40 / (V + 1)
    parts = [0.0, *([top] if top else []), top + width]
    total = sum(quad(lambda w: math.exp(f(w) - f(top)), a, b, epsabs=0, epsrel=1e-11)[0] for a, b in pairwise(parts))
    return f(top) + math.log(total)


# --- formulas -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("variance", VARIANCES)
def test_any_time_is_where_the_mixture_reaches_one_over_delta(variance, delta):
    N = any_time(0.0, variance, delta)
    assert log_mixture(N, variance) == pytest.approx(math.log(1 / delta), abs=1e-6)


@pytest.mark.parametrize("delta", [*DELTAS, 1e-6, 1e-30])
@pytest.mark.parametrize("variance", [*VARIANCES, 1e7])
def test_the_explicit_form_is_larger(variance, delta):
    N = any_time(0.0, variance, delta)
    assert 0 < N < explicit(variance, delta)


@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-30])
@pytest.mark.parametrize("variance", [2e10, 1e15, 1e30])
def test_where_the_closed_form_cancels_the_explicit_form_is_used(variance, delta):
    assert any_time(7.0, variance, delta) == pytest.approx(7.0 + explicit(variance, delta), rel=1e-12)
    below = any_time(0.0, 0.999e10, delta)
    assert 0.95 * explicit(0.999e10, delta) < below < explicit(0.999e10, delta)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("variance", VARIANCES)
def test_all_times_cost_more_than_one(variance, delta):
    assert any_time(3.0, variance, delta) >= one_time(3.0, variance, delta)


def test_but_not_at_absurd_odds_where_bennett_beats_bernstein():
    """Bernstein's 2Δ/3 is loose where Δ ≫ V: the mixture, built on Bennett, is then smaller. Both are valid."""
    assert any_time(0.0, 1.0, 1e-20) < one_time(0.0, 1.0, 1e-20)


@pytest.mark.parametrize("bound", [any_time, one_time])
def test_monotone_in_delta_variance_and_shifted_by_what_is_expected(bound):
    deltas = np.logspace(-12, -0.01, 40)
    for V in VARIANCES:
        falling = [bound(0.0, V, d) for d in deltas]
        assert (np.diff(falling) < 0).all()
    for d in (0.5, 0.05, 1e-6):
        assert (np.diff([bound(0.0, V, d) for V in np.logspace(-3, 6, 60)]) > 0).all()
    assert bound(17.25, 3.0, 0.1) == pytest.approx(17.25 + bound(0.0, 3.0, 0.1), rel=1e-14)


def test_by_hand():
    assert one_time(10.0, 0.0, math.exp(-3)) == pytest.approx(12.0)  # 1 + √1
    assert one_time(0.0, 4.0, math.exp(-3)) == pytest.approx(1 + 5.0)  # 1 + √(1 + 24)
    assert any_time(0.0, 0.0, 0.5) == pytest.approx(1.0)  # e·Γ(2, 1) = 2
    assert any_time(0.0, 0.0, 0.2) == pytest.approx(2.0)  # e·Γ(3, 1) = 5
    assert any_time(0.0, 0.0, 1 / 16) == pytest.approx(3.0)  # e·Γ(4, 1) = 16


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2.0, math.nan])
def test_refused_odds(delta):
    certificate = Certificate(0.0, 1.0, 1.0, 1.5, False)
    for call in (
        lambda: any_time(1.0, 1.0, delta),
        lambda: one_time(1.0, 1.0, delta),
        lambda: with_risk(certificate, Comparator(1.0, 1.0, 10), delta),
    ):
        with pytest.raises(SettingError, match="delta"):
            call()


# --- attacks ------------------------------------------------------------------------------------------------

RUNS, ROUNDS, DELTA = 2000, 3000, 0.1
OFTEN = DELTA + 3 * math.sqrt(DELTA * (1 - DELTA) / RUNS)


def curve(bound, variances):
    """The bound on N as a function of V on a fine grid, and exact at the grid points."""
    return np.array([bound(0.0, V, DELTA) for V in variances])


@pytest.fixture(scope="module")
def walks():
    """M_T - A_T of fair coins, run by run."""
    rng = np.random.default_rng(2026)
    steps = rng.integers(0, 2, size=(RUNS, ROUNDS), dtype=np.int8) - np.float32(0.5)
    return np.cumsum(steps, axis=1, dtype=np.float32)


def test_stopping_when_ahead_breaks_one_time_but_not_any_time(walks):
    """Fair coins, stopped at the first T at which the bound is broken."""
    V = np.arange(1, ROUNDS + 1) / 4
    assert np.mean((walks > curve(any_time, V)).any(axis=1)) <= OFTEN
    assert np.mean((walks > curve(one_time, V)).any(axis=1)) > OFTEN
    assert np.mean(walks[:, -1] > one_time(0.0, V[-1], DELTA)) <= OFTEN  # its own promise, one T, it keeps


def test_an_adversary_that_goes_quiet_when_ahead_breaks_one_time_at_a_fixed_horizon(walks):
    """After the first T at which M_T exceeds the bound the data become easy (a = 0): V_T stops there."""
    V = np.arange(1, ROUNDS + 1) / 4
    for bound, breaks in ((one_time, True), (any_time, False)):
        limit = curve(bound, V)
        ahead = walks > limit
        stop = np.where(ahead.any(axis=1), ahead.argmax(axis=1), ROUNDS - 1)
        final = walks[np.arange(RUNS), stop] > limit[stop]  # at T = ROUNDS, nothing moved since
        assert (np.mean(final) > OFTEN) == breaks


@pytest.mark.slow
@pytest.mark.parametrize("bold", [False, True])
def test_skewed_coins_chosen_from_the_past_do_not_break_any_time(bold):
    """Rare large steps up (a small), or a different coin according to how far ahead the run is."""
    rng = np.random.default_rng(7)
    N, V = np.zeros(RUNS), np.zeros(RUNS)
    grid = np.concatenate([np.linspace(0, 5, 401), np.linspace(5, ROUNDS / 4 + 1, 1200)[1:]])
    limit = curve(any_time, grid)
    broken = np.zeros(RUNS, dtype=bool)
    for _ in range(800):
        a = np.where(N > 2, 0.02, np.where(N < -3, 0.9, 0.3)) if bold else np.full(RUNS, 0.03)
        N += (rng.random(RUNS) < a) - a
        V += a * (1 - a)
        at = np.searchsorted(grid, V, side="right") - 1  # the grid point below: a smaller bound, a harder test
        broken |= limit[at] < N
    assert broken.mean() <= OFTEN


@pytest.mark.slow
def test_the_luck_of_a_real_run_stays_within_any_time():
    s = noisy_stream(600, K=4, seed=3, noise=0.3)
    broken = 0
    for seed in range(100):
        trace = gaptron.Learner("frugal-gaptron", n_classes=s.K, seed=seed).play(s.X, s.y)
        broken += trace.mistakes > any_time(trace.expected_mistakes, trace.variance, 0.1)
    assert broken <= 10 + 9


# --- paid in the gap ----------------------------------------------------------------------------------------


def price_of_luck(risk):
    """1/s, read off the bound at δ = 1/e."""
    free = Certificate(0.0, 1.0, 1.0, risk, False)
    return with_risk(free, Comparator(0.0, 0.0, 1), math.exp(-1))


@pytest.mark.parametrize("risk", [1.0001, 1.01, 1.25, 1.5, 1.75, 1.999])
def test_s_solves_its_equation(risk):
    s = 1 / price_of_luck(risk)
    assert math.expm1(s) / s == pytest.approx(risk, rel=1e-9)


def test_the_numbers_of_the_theory():
    """r = 1.5: M_T ≤ L_T(U) + 1.05 X²‖U‖² + 1.32 ln(1/δ)."""
    assert price_of_luck(1.5) == pytest.approx(1.32, abs=0.01)
    s = noisy_stream(100)
    learner = gaptron.Learner("frugal-gaptron", n_classes=s.K, risk=1.5, seed=0)
    learner.play(s.X, s.y)
    X = learner.certificate.norm
    assert learner.certificate.cost(1 / X) == pytest.approx(1.05, abs=0.012)
    bound = with_risk(learner.certificate, Comparator(7.0, 2.0, 100), 0.05)
    assert bound == pytest.approx(7.0 + learner.certificate.cost(2.0) + math.log(20) * price_of_luck(1.5))


@pytest.mark.parametrize("K", [2, 3, 10, 50])
@pytest.mark.parametrize("loss, square", [("hinge", 1), ("smooth-hinge", 4)])
def test_the_hinges_numbers_of_the_theory(loss, square, K):
    """r = 1 + 1/(2(K-1)): s ≥ 1/K, and K X²‖U‖² (4K for the smooth hinge)."""
    risk = 1 + 1 / (2 * (K - 1))
    learner = gaptron.Learner("frugal-gaptron", loss=loss, n_classes=K, risk=risk, seed=0)
    learner.play(np.eye(1, 3), [1])
    assert learner.certificate.cost(1.0) == pytest.approx(square * K, rel=1e-9)
    assert price_of_luck(risk) <= K


@pytest.mark.slow
def test_the_constant_bound_holds_at_every_time_in_nearly_all_runs():
    """Adversary: the least likely label. δ = 0.2, checked after every round against U = 0 and a hindsight U."""
    rng = np.random.default_rng(0)
    broken, delta, runs, T = 0, 0.2, 100, 60
    X = rng.normal(size=(T, 2))
    for seed in range(runs):
        learner = gaptron.Learner("frugal-gaptron", n_classes=2, risk=1.5, seed=seed)
        mistakes, zero = 0, 0.0
        for x in X:
            decision = learner.decide(x)
            truth = int(decision.distribution.argmin())
            learner.learn(decision, label=truth)
            mistakes += decision.label != truth
            zero += 1.0  # ℓ(0) = log₂ 2
            if mistakes > with_risk(learner.certificate, Comparator(zero, 0.0, 1), delta):
                broken += 1
                break
    assert broken <= delta * runs + 3 * math.sqrt(runs * delta * (1 - delta))


def test_refusals():
    U = Comparator(1.0, 1.0, 10)
    with pytest.raises(NoBoundError, match="bandit"):
        with_risk(Certificate(0.0, 1.0, 1.0, 1.0, True), U, 0.1)
    with pytest.raises(NoBoundError, match="risk > 1"):
        with_risk(Certificate(0.0, 1.0, 1.0, 1.0, False), U, 0.1)


@pytest.mark.parametrize("risk", [1 + 1e-8, 1 + 1e-10, math.nextafter(1.0, 2.0)])
def test_a_risk_a_hair_above_one_gives_a_large_number_or_a_clear_refusal(risk):
    try:
        assert price_of_luck(risk) > 1e6
    except NoBoundError:
        pass
