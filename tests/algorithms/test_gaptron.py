"""Facts of van der Hoeven 2020 alone."""

import itertools
import math

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import gaptron as file
from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.ball import REFRESH
from gaptron.learner.seeds import generator
from gaptron.types import Comparator, Feedback, Loss, Problem
from tests import plain
from tests.conftest import EVERY_KIND, KINDS, needs_compiler, random_stream, separable_stream

LN2 = math.log(2)
LOSSES = [loss.word for loss in Loss]
PROBLEMS = [(2, 1.0, 1.0, 1000), (3, 0.5, 2.0, 10), (10, 1.0, 0.1, 10**6), (30, 7.0, 3.0, 10**5), (2, 1.0, 0.3, 10**9)]


def problem(loss, feedback, K=3, X=1.0, D=1.0, T=1000, d=4):
    return Problem(K, d, Feedback[feedback.upper()], Loss[loss.upper().replace("-", "_")], X, D, T)


def play_by_hand(learner, rounds):
    """Each round: x, y, expected p', expected weights after it."""
    for t, (x, y, p, W) in enumerate(rounds, 1):
        decision = learner.decide(x)
        np.testing.assert_allclose(decision.distribution, p, rtol=0, atol=1e-14, err_msg=f"round {t}")
        learner.learn(decision, label=y)
        np.testing.assert_allclose(learner.weights, W, rtol=0, atol=1e-14, err_msg=f"round {t}")


# --- rounds worked out by hand ------------------------------------------------------------------------------


def test_six_rounds_of_the_hinge_by_hand():
    """K = 2, X = 1: β = ½, η = ½/2 = ¼."""
    learner = gaptron.Learner("gaptron", loss="hinge", n_classes=2, norm=1.0, seed=0)
    assert (learner.settings.eta, learner.settings.beta, learner.settings.gamma) == (0.25, 0.5, 0.0)
    play_by_hand(
        learner,
        [
            # z = 0: a = 1, uniform; m(1) = 0 < 1, a step of ¼ from label 0 to label 1
            ([1, 0], 1, [0.5, 0.5], [[-0.25, 0], [0.25, 0]]),
            # m* = ½ is not above β: a = ½
            ([1, 0], 1, [0.25, 0.75], [[-0.5, 0], [0.5, 0]]),
            # m* = 1 > β and right: sure, and silent
            ([1, 0], 1, [0.0, 1.0], [[-0.5, 0], [0.5, 0]]),
            # sure, and wrong
            ([1, 0], 0, [0.0, 1.0], [[-0.25, 0], [0.25, 0]]),
            # a new direction, half as long
            ([0, 0.5], 0, [0.5, 0.5], [[-0.25, 0.125], [0.25, -0.125]]),
            # z = (-.05, .05): a = .9; p'(1) = .1 + .45
            ([0.6, 0.8], 0, [0.45, 0.55], [[-0.1, 0.325], [0.1, -0.325]]),
        ],
    )


def test_five_rounds_of_the_smooth_hinge_by_hand():
    """K = 2, X = 1: η = 1/8."""
    learner = gaptron.Learner("gaptron", loss="smooth-hinge", n_classes=2, norm=1.0, seed=0)
    assert learner.settings.eta == 0.125
    play_by_hand(
        learner,
        [
            # m(1) = 0: v = 2, step ¼
            ([1, 0], 1, [0.5, 0.5], [[-0.25, 0], [0.25, 0]]),
            # m = ½: a = ¼, v = 1
            ([1, 0], 1, [0.125, 0.875], [[-0.375, 0], [0.375, 0]]),
            # m* = ¾: a = 1/16; wrong: v = 2
            ([1, 0], 0, [0.03125, 0.96875], [[-0.125, 0], [0.125, 0]]),
            ([0, 1], 0, [0.5, 0.5], [[-0.125, 0.25], [0.125, -0.25]]),
            # z = ±.125: m = ¼, a = 9/16, v = 3/2, step 3/16
            ([0.6, 0.8], 0, [0.71875, 0.28125], [[-0.0125, 0.4], [0.0125, -0.4]]),
        ],
    )


def test_five_rounds_of_the_logistic_loss_by_hand():
    """K = 2, X = 1: η/ln 2 = ¼. With W_0 = -W_1 = -w and s = 2⟨w, x⟩, p̃_1 = 1/(1 + e^-s)."""
    learner = gaptron.Learner("gaptron", loss="logistic", n_classes=2, norm=1.0, seed=0)
    assert learner.settings.eta == pytest.approx(LN2 / 4, rel=1e-15)
    w1 = 0.125  # after round 1: (1 - ½)/4
    q2 = 1 / (1 + math.exp(-2 * w1))
    w2 = w1 + (1 - q2) / 4
    q3 = 1 / (1 + math.exp(-2 * w2))
    w3 = w2 - q3 / 4  # round 3 has label 0
    w4 = 0.25 * 0.5 * 0.5  # round 4: x = (0, ½), a tie again
    s5 = 2 * (0.6 * w3 + 0.8 * w4)
    q5 = 1 / (1 + math.exp(-s5))
    assert 0 < w3 < w2 and q5 > 0.5
    step = (1 - q5) / 4
    W5 = [w3 + 0.6 * step, w4 + 0.8 * step]
    play_by_hand(
        learner,
        [
            # p̃ = (½, ½) and p̃* ≥ ½: a = ½, label 0 is the top
            ([1, 0], 1, [0.75, 0.25], [[-w1, 0], [w1, 0]]),
            ([1, 0], 1, [(1 - q2) / 2, 1 - (1 - q2) / 2], [[-w2, 0], [w2, 0]]),
            ([1, 0], 0, [(1 - q3) / 2, 1 - (1 - q3) / 2], [[-w3, 0], [w3, 0]]),
            ([0, 0.5], 1, [0.75, 0.25], [[-w3, -w4], [w3, w4]]),
            ([0.6, 0.8], 1, [(1 - q5) / 2, 1 - (1 - q5) / 2], [[-v for v in W5], W5]),
        ],
    )


def test_three_classes_below_one_half_play_uniformly():
    learner = gaptron.Learner("gaptron", loss="logistic", n_classes=3, norm=1.0, seed=0)
    decision = learner.decide([1.0])
    np.testing.assert_allclose(decision.distribution, [1 / 3] * 3)
    learner.learn(decision, label=2)
    np.testing.assert_allclose(learner.weights[:, 0], [-1 / 18, -1 / 18, 1 / 9], atol=1e-15)  # (1/6)(e_2 - ⅓)


def test_bandit_rounds_by_hand():
    """Bandit hinge, K = 2, γ = ½, η = 1/8, β = ½: a right guess weighs 1/p', a wrong one nothing."""
    learner = gaptron.Learner(
        "gaptron",
        loss="hinge",
        feedback="bandit",
        n_classes=2,
        norm=1.0,
        radius=1.0,
        horizon=9,
        gamma=0.5,
        eta=0.125,
        seed=3,
    )
    w = 0.0  # W_1 = -W_0 = w on rows x = (1,)
    hits = misses = 0
    for y in [1, 1, 0, 1, 1, 1, 0, 0, 1]:
        s = 2 * abs(w)
        top = 1 if w > 0 else 0
        a = 0.0 if s > 0.5 else 1 - s
        big = max(a, 0.5)
        p_top = 1 - big / 2
        decision = learner.decide([1.0])
        p = [p_top, 1 - p_top] if top == 0 else [1 - p_top, p_top]
        np.testing.assert_allclose(decision.distribution, p, atol=1e-14)
        learner.learn(decision, correct=decision.label == y)
        if decision.label == y:
            hits += 1
            m = 2 * w if y == 1 else -2 * w
            silent = (top == y and s > 0.5) or m >= 1
            if not silent:
                w += (0.125 / p[y]) * (1 if y == 1 else -1)
        else:
            misses += 1
        np.testing.assert_allclose(learner.weights, [[-w], [w]], atol=1e-14)
    assert hits and misses


@pytest.mark.parametrize("feedback", ["full", "bandit"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_whole_run_equals_the_textbook(loss, feedback):
    X, y, K = random_stream(300, K=5, seed=8)
    learner = gaptron.Learner(
        "gaptron",
        loss=loss,
        feedback=feedback,
        n_classes=K,
        norm=1.7,
        radius=3.0,
        horizon=300,
        seed=5,
        eta=0.3,
        gamma=0.25,
    )
    u = generator(5).random(300)
    trace = learner.play(X, y)
    labels, tops, propensities, W = plain.gaptron(loss, X, y, K, 0.3, 0.25, 1 / K, feedback == "bandit", u)
    np.testing.assert_array_equal(trace.codes, labels)
    np.testing.assert_array_equal(trace.top, tops)
    np.testing.assert_allclose(trace.truth_probability, propensities, atol=1e-12)
    np.testing.assert_allclose(learner.weights, W, atol=1e-10)


# --- settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("K, X, D, T", PROBLEMS)
def test_recommend_is_the_table(K, X, D, T):
    rows = plain.table(K, X, D, T)
    for (loss, feedback, regime), (eta, gamma, regret) in rows.items():
        setting = file.recommend(problem(loss, feedback, K, X, D, T))
        free = feedback == "bandit" and loss == "logistic" and setting.gamma == 0.0
        if loss == "logistic" and feedback == "bandit":
            better = min(("explored", "free"), key=lambda r: rows[loss, feedback, r][2])
            assert free == (better == "free")
            if regime != better:
                continue
        assert setting.eta == pytest.approx(eta, rel=1e-12)
        assert setting.gamma == pytest.approx(gamma, rel=1e-12)
        assert setting.beta == 1 / K
        assert setting.ball == (D if free else math.inf)
        assert setting.bandit == (feedback == "bandit")
        assert file.regret(problem(loss, feedback, K, X, D, T)) == pytest.approx(regret, rel=1e-12)


def test_both_regimes_of_the_bandit_logistic_are_reached():
    small, large = problem("logistic", "bandit", 3, 1.0, 0.1, 10**9), problem("logistic", "bandit", 3, 1.0, 5.0, 1000)
    assert file.recommend(small).gamma == 0.0 and file.recommend(small).ball == 0.1
    assert file.recommend(large).gamma > 0.0 and file.recommend(large).ball == math.inf
    assert "without forced exploration" in file.theorem(small, file.recommend(small))
    assert "with exploration" in file.theorem(large, file.recommend(large))


def test_the_theorem_is_named_by_its_number():
    names = [
        file.theorem(problem(loss, feedback), file.recommend(problem(loss, feedback)))
        for feedback in ("full", "bandit")
        for loss in LOSSES
    ]
    for number, name in enumerate(names, 1):
        assert name.startswith(f"Theorem {number} of van der Hoeven 2020")


@pytest.mark.parametrize("K", [2, 3, 10, 100])
@pytest.mark.parametrize("DX", [1e-3, 0.1, 0.5, 1.0, 3.0, 10.0, 26.0, 40.0, 300.0])
def test_least_gap_is_the_formula_and_never_zero(K, DX):
    E = math.exp(-DX * math.sqrt(K / (K - 1)))
    a = file.least_gap(K, DX)
    assert a > 0.0
    if (K - 1) * E > 1:
        assert a == 1.0
    else:
        assert a == pytest.approx((K - 1) * E / (1 + (K - 1) * E), rel=1e-13)


def test_least_gap_at_forty_is_not_rounded_away():
    """1 - p̃* is exactly 0 in floats here; the gap is not."""
    a = file.least_gap(2, 40.0)
    assert 1 - 1 / (1 + math.exp(-40 * math.sqrt(2))) == 0.0
    assert a == pytest.approx(math.exp(-40 * math.sqrt(2)), rel=1e-12)
    setting = file.recommend(problem("logistic", "bandit", 2, 1.0, 40.0, 10**6))
    assert setting.gamma > 0.0 and setting.eta > 0.0
    assert math.isfinite(file.regret(problem("logistic", "bandit", 2, 1.0, 40.0, 10**6)))


def test_least_gap_is_reached_and_never_passed():
    rng = np.random.default_rng(0)
    for K in (2, 3, 7):
        for DX in (0.2, 0.8, 2.0):
            best = np.full(K, -DX / math.sqrt(K * (K - 1)))
            best[0] = DX * math.sqrt((K - 1) / K)
            assert np.linalg.norm(best) == pytest.approx(DX)
            floor = file.least_gap(K, DX)
            if 1 / (1 + (K - 1) * math.exp(-DX * math.sqrt(K / (K - 1)))) > 0.5:
                assert plain.gap_map("logistic", best, 0.0) == pytest.approx(floor, rel=1e-12)
            for z in rng.normal(size=(300, K)):
                z *= DX * rng.random() ** 0.2 / np.linalg.norm(z)
                assert plain.gap_map("logistic", z, 0.0) >= floor * (1 - 1e-12)


@pytest.mark.parametrize(
    "wrong, word",
    [
        ({"eta": 0.0}, "eta"),
        ({"eta": -1.0}, "eta"),
        ({"eta": math.nan}, "eta"),
        ({"eta": math.inf}, "eta"),
        ({"gamma": -0.1}, "gamma"),
        ({"gamma": 1.1}, "gamma"),
        ({"gamma": math.nan}, "gamma"),
        ({"beta": 1.0}, "beta"),
        ({"beta": -0.1}, "beta"),
        ({"ball": 0.0}, "ball"),
        ({"ball": math.nan}, "ball"),
    ],
)
def test_impossible_settings_are_refused_by_name(wrong, word):
    with pytest.raises(SettingError, match=word):
        gaptron.Learner("gaptron", n_classes=3, norm=1.0, **wrong)


def test_bandit_asks_for_radius_and_horizon():
    with pytest.raises(SettingError, match=r"radius=.*horizon="):
        gaptron.Learner("gaptron", n_classes=3, feedback="bandit")
    with pytest.raises(SettingError, match="horizon="):
        gaptron.Learner("gaptron", n_classes=3, feedback="bandit", radius=1.0)
    with pytest.raises(SettingError, match="radius="):
        gaptron.Learner("gaptron", n_classes=3, feedback="bandit", horizon=10)


def test_bandit_without_exploration_and_without_step_is_refused():
    with pytest.raises(SettingError, match="eta"):
        gaptron.Learner("gaptron", n_classes=3, feedback="bandit", norm=1.0, radius=1.0, horizon=10, gamma=0.0)


# --- the bound ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("K, X, D, T", PROBLEMS)
@pytest.mark.parametrize("feedback", ["full", "bandit"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_bound_at_radius_and_horizon_is_at_most_the_theorems(loss, feedback, K, X, D, T):
    case = problem(loss, feedback, K, X, D, T)
    at_radius = file.bound(case, file.recommend(case), Comparator(123.0, D, T))
    assert at_radius <= 123.0 + file.regret(case) * (1 + 1e-12)
    if feedback == "full":
        assert at_radius == pytest.approx(123.0 + file.regret(case))


def test_the_bound_is_lemma_one():
    case = problem("hinge", "bandit", 4, 1.0, 2.0, 500)
    s = file.recommend(case)
    assert file.bound(case, s, Comparator(10.0, 1.5, 300)) == 10 + 1.5**2 / (2 * s.eta) + s.gamma * 300 * 3 / 4
    assert file.bound(case, s, Comparator(10.0, 2.1, 300)) == math.inf


@pytest.mark.parametrize(
    "changed, named",
    [({"eta": 0.5}, "eta"), ({"gamma": 0.4}, "gamma"), ({"beta": 0.1}, "beta"), ({"ball": 3.0}, "ball")],
)
def test_no_bound_for_settings_of_ones_own_and_the_reason(changed, named):
    X, y, K = random_stream(50)
    learner = gaptron.Learner("gaptron", n_classes=K, norm=2.0, seed=0, **changed)
    learner.play(X, y)
    with pytest.raises(NoBoundError, match=rf"Theorem 1.*{named}="):
        learner.bound(X, y)


def test_settings_given_but_equal_to_the_theorems_keep_the_bound():
    X, y, K = random_stream(50)
    eta = gaptron.Learner("gaptron", n_classes=K, norm=2.0).settings.eta
    learner = gaptron.Learner("gaptron", n_classes=K, norm=2.0, eta=eta, seed=0)
    learner.play(X, y)
    assert learner.bound(X, y).value > 0


# --- limits and special cases ---------------------------------------------------------------------------------


def test_gamma_one_is_uniform_play():
    X, _, K = random_stream(40)
    learner = gaptron.Learner("gaptron", n_classes=K, norm=2.0, gamma=1.0, seed=0)
    np.testing.assert_allclose(learner.distribution(X), 1 / K)


def test_a_separable_stream_is_learned():
    X, y, K = separable_stream(2000)
    for loss in LOSSES:
        learner = gaptron.Learner("gaptron", n_classes=K, loss=loss, seed=0)
        learner.play(X, y)
        assert (learner.predict(X) == y).mean() > 0.95


def test_zero_examples_change_nothing():
    for loss in LOSSES:
        learner = gaptron.Learner("gaptron", n_classes=3, loss=loss, norm=1.0, seed=0)
        learner.play(np.zeros((5, 2)), [0, 1, 2, 0, 1])
        assert not learner.weights.any()


def test_the_gap_is_noted():
    X, y, K = random_stream(60)
    learner = gaptron.Learner("gaptron", n_classes=K, norm=2.0, loss="smooth-hinge", eta=0.5, seed=0)
    Z = np.array([learner_scores for learner_scores in _scores_before(learner, X, y)])
    again = gaptron.Learner("gaptron", n_classes=K, norm=2.0, loss="smooth-hinge", eta=0.5, seed=0).play(X, y)
    expected = [plain.gap_map("smooth-hinge", z, 1 / K) for z in Z]
    np.testing.assert_allclose(again.note("gap"), expected, atol=1e-12)
    with pytest.raises(gaptron.InputError, match="gap"):
        again.note("nothing")


def _scores_before(learner, X, y):
    for t in range(len(y)):
        yield learner.scores(X[t : t + 1])[0]
        learner.play(X[t : t + 1], y[t : t + 1])


# --- the ball -----------------------------------------------------------------------------------------------


@pytest.mark.sample(5)
@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize("eta", [0.1, 5.0], ids=["gentle", "refreshing-often"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_lazy_ball_is_projected_gradient_descent(loss, eta, kind):
    X, y, K = random_stream(600, seed=2)
    D = 0.3
    learner = gaptron.Learner("gaptron", n_classes=K, loss=loss, norm=3.0, eta=eta, ball=D, seed=0)
    reference = plain.gaptron(loss, X, y, K, eta, 0.0, 1 / K, False, generator(0).random(600), ball=D)[3]
    longest = 0.0
    for start in range(0, 600, 5):
        learner.play(KINDS[kind](X[start : start + 5]), y[start : start + 5])
        longest = max(longest, float(np.linalg.norm(learner.weights)))
    assert D * 0.99 < longest <= D * (1 + 1e-9)
    np.testing.assert_allclose(learner.weights, reference, atol=1e-9)


def test_the_bandit_ball_is_projected_gradient_descent():
    """The free regime: γ = 0, ‖W‖ ≤ D, p' never below a_min/K."""
    X, y, K = random_stream(800, seed=6)
    learner = gaptron.Learner(
        "gaptron", n_classes=K, loss="logistic", feedback="bandit", norm=2.0, radius=0.2, horizon=10**9, eta=0.2, seed=4
    )
    assert learner.settings.gamma == 0.0 and learner.settings.ball == 0.2
    trace = learner.play(X, y)
    u = generator(4).random(800)
    labels, _, propensities, W = plain.gaptron("logistic", X, y, K, 0.2, 0.0, 1 / K, True, u, ball=0.2)
    np.testing.assert_array_equal(trace.codes, labels)
    np.testing.assert_allclose(trace.truth_probability, propensities, atol=1e-9)
    np.testing.assert_allclose(learner.weights, W, atol=1e-9)
    assert np.linalg.norm(learner.weights) <= 0.2 * (1 + 1e-9)
    assert trace.truth_probability.min() >= file.least_gap(K, 0.2 * 2.0) / K


@needs_compiler
def test_the_ball_survives_its_own_refresh():
    """More updates than REFRESH, against projection written out in plain floats."""
    T = REFRESH + 20_000
    rng = np.random.default_rng(1)
    X = rng.normal(size=(T, 2))
    y = rng.integers(0, 2, T)
    D, eta = 0.4, 0.01
    learner = gaptron.Learner("gaptron", n_classes=2, loss="logistic", norm=10.0, eta=eta, ball=D, seed=0)
    learner.play(X, y)
    assert learner._engine.state.ball[0].updates < T  # a refresh happened
    a = b = 0.0  # W_1 = -W_0 = (a, b)
    for (p, q), label in zip(X.tolist(), y.tolist()):
        right = 1 / (1 + math.exp(-2 * (a * p + b * q)))
        step = eta / LN2 * ((1 - right) if label else -right)
        a, b = a + step * p, b + step * q
        size = math.sqrt(2 * (a * a + b * b))
        if size > D:
            a, b = a * D / size, b * D / size
    np.testing.assert_allclose(learner.weights, [[-a, -b], [a, b]], atol=1e-9)


def test_play_has_the_same_numbers_for_every_split_of_a_projected_run():
    X, y, K = random_stream(100)
    runs = []
    for cut in (1, 37, 100):
        learner = gaptron.Learner("gaptron", n_classes=K, norm=2.0, eta=1.0, ball=0.2, seed=0)
        for a, b in itertools.pairwise([*range(0, 100, cut), 100]):
            learner.play(X[a:b], y[a:b])
        runs.append(learner.weights)
    assert all((run == runs[0]).all() for run in runs)
