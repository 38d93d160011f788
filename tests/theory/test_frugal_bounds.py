"""Frugal Gaptron's promises on whole runs: friendly, noisy, hostile and late."""

import copy
import math

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import frugal as file
from gaptron.errors import NoBoundError, SettingError
from gaptron.theory.comparator import losses as compare
from gaptron.types import Comparator, Loss
from tests.algorithms.test_frugal import (
    EACH,
    LN2,
    LOSSES,
    decided,
    estimate,
    gap,
    give_feedback,
    learner,
    problem,
)
from tests.conftest import STREAMS, noisy_stream, random_stream, separable_stream


def some_risk(loss, K):
    return 1.5 if loss == "logistic" else 1 + 0.6 / (K - 1)


def comparator_of(loss, X, y, U):
    """L_T(U), the hinge without its mask (which is safe)."""
    value, _ = compare(Loss[loss.upper().replace("-", "_")], X @ U.T, np.asarray(y))
    return Comparator(float(value.sum()), float(np.linalg.norm(U)), len(y))


def hostile(who, T, d, seed=0, kind="least", sizes=False):
    """An adversary that sees q before it names the truth. Returns X, y and Σ(1 - q(y))."""
    rng = np.random.default_rng(seed)
    K = len(who.classes)
    X = rng.normal(size=(T, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    if kind == "repeat":
        X[:] = X[0]
    if sizes:
        X *= 10.0 ** rng.uniform(-3, 0, size=(T, 1))
    y, expected = [], 0.0
    for t, x in enumerate(X):
        q = who.distribution(x[None])[0]
        decision = who.decide(x)
        np.testing.assert_array_equal(decision.distribution, q)
        if kind == "second":  # right for a while, then not
            truth = int(np.argsort(q)[-2]) if t % 7 == 0 else 0
        elif kind == "turn":
            truth = (t * 3 // T) % K
        else:
            truth = int(q.argmin())
        give_feedback(who, decision, truth)
        y.append(truth)
        expected += 1 - q[truth]
    return X, np.array(y), expected


# --- full information: on every path ------------------------------------------------------------------------


@pytest.mark.parametrize("risky", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", STREAMS)
def test_streams_keep_the_bound_of_the_best_comparator(name, loss, risky):
    s = STREAMS[name](300)
    who = learner(loss, K=s.K, risk=some_risk(loss, s.K) if risky else 1.0)
    trace = who.play(s.X, s.y)
    bound = who.bound(s.X, s.y, trace)
    assert trace.expected_mistakes <= bound.value
    assert bound.value == pytest.approx(who.certificate.bound(bound.comparator))
    assert trace.note("level").max() <= 1e-12
    before = file.bound(who.problem._replace(norm=s.norm), who.settings, bound.comparator)
    assert bound.value == pytest.approx(before, rel=1e-9)
    rng = np.random.default_rng(0)
    for size in (0.0, 0.1, 1.0, 10.0):  # all U at once, chosen in hindsight
        U = rng.normal(size=bound.U.shape) * size + bound.U
        assert trace.expected_mistakes <= who.certificate.bound(comparator_of(loss, s.X, s.y, U))


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", ["least", "repeat", "second", "turn"])
@pytest.mark.parametrize("loss", LOSSES)
def test_adversaries_do_not_break_the_bound(loss, kind):
    for K, risky in ((2, False), (4, True)):
        who = learner(loss, K=K, risk=some_risk(loss, K) if risky else 1.0)
        X, y, expected = hostile(who, 250, 3, kind=kind, sizes=kind == "least")
        assert expected <= who.bound(X, y).value
        assert who.certificate.level <= 1e-10


@pytest.mark.parametrize("loss", LOSSES)
def test_a_growing_row_every_round_keeps_the_bound(loss):
    """X_t doubles all the time: the step falls every round."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3)) * 2.0 ** np.arange(40)[:, None] / 2**39
    y = rng.integers(0, 3, 40)
    who = learner(loss)
    trace = who.play(X, y)
    for size in (0.0, 1.0, 5.0):
        U = rng.normal(size=(3, 3)) * size
        assert trace.expected_mistakes <= who.certificate.bound(comparator_of(loss, X, y, U))


def late_run(who, X, y, tau, seed):
    """Feedback in a random order, each missing from at most τ rounds (so at most τ are missing at any time)."""
    rng = np.random.default_rng(seed)
    waiting, expected, most = [], 0.0, 0
    for t, x in enumerate(X):
        overdue = [w for w in waiting if t - w[0] > tau]
        chosen = overdue + [w for w in waiting if w not in overdue and rng.random() < 0.2]
        for w in [chosen[i] for i in rng.permutation(len(chosen))]:
            waiting.remove(w)
            give_feedback(who, w[1], int(y[w[0]]))
        most = max(most, len(waiting))
        decision = who.decide(x)
        expected += 1 - decision.distribution[y[t]]
        waiting.append((t, decision))
    for i in rng.permutation(len(waiting)):
        give_feedback(who, waiting[i][1], int(y[waiting[i][0]]))
    assert most == tau
    return expected


@pytest.mark.sample(2)
@pytest.mark.parametrize("tau", [1, 5])
@pytest.mark.parametrize("loss", LOSSES)
def test_late_feedback_keeps_the_bound_of_their_delay(loss, tau):
    for stream in (noisy_stream, separable_stream, random_stream):
        s = stream(250)
        for risk in (1.0, some_risk(loss, s.K)):
            who = learner(loss, K=s.K, delay=tau, risk=risk)
            expected = late_run(who, s.X, s.y, tau, seed=tau)
            assert who.certificate.level <= 1e-10
            assert expected <= who.bound(s.X, s.y).value


@pytest.mark.parametrize("loss", LOSSES)
def test_the_worst_delay_of_one_repeated_row(loss):
    """One row, τ outcomes always missing, the label that q likes least: where the missing ones hurt most."""
    tau, K, T = 4, 3, 200
    who = learner(loss, K=K, delay=tau)
    x, waiting, y, expected = np.ones(1), [], [], 0.0
    for _ in range(T):
        if len(waiting) > tau:
            give_feedback(who, *waiting.pop(0))
        decision = who.decide(x)
        truth = int(decision.distribution.argmin())
        y.append(truth)
        expected += 1 - decision.distribution[truth]
        waiting.append((decision, truth))
    for w in waiting:
        give_feedback(who, *w)
    assert expected <= who.bound(np.ones((T, 1)), y).value


@pytest.mark.parametrize("feedback", ["full", "bandit"])
def test_feedback_later_than_the_delay_ends_the_bound(feedback):
    s = noisy_stream(60)
    late_run(ok := learner("logistic", feedback, s.K, delay=3), s.X, s.y, 3, seed=0)
    assert ok.bound(s.X, s.y).value > 0
    late_run(late := learner("logistic", feedback, s.K, delay=3), s.X, s.y, 4, seed=0)
    with pytest.raises(NoBoundError, match="late"):
        late.bound(s.X, s.y)
    # One outcome alone, missing from four rounds though never more than four are missing
    one = learner("logistic", feedback, s.K, delay=3)
    first = one.decide(s.X[0])
    for t in range(1, 5):
        give_feedback(one, one.decide(s.X[t]), int(s.y[t]))
    give_feedback(one, first, int(s.y[0]))
    with pytest.raises(NoBoundError, match="late"):
        one.bound(s.X[:5], s.y[:5])
    open_one = learner("logistic", feedback, s.K, delay=3)
    open_one.decide(s.X[0])
    with pytest.raises(NoBoundError):
        open_one.bound(s.X[:1], s.y[:1])


# --- bandit -------------------------------------------------------------------------------------------------


def replay(loss, s, seed=0, delay=0, **more):
    """A bandit run, with its estimates rebuilt from their definition. Returns the learner and each η, q, ĝ, z, λ."""
    who = learner(loss, "bandit", s.K, seed=seed, delay=delay, **more)
    rounds, longest = [], 0.0
    for x, truth in zip(s.X, s.y):
        decision = who.decide(x)
        rd = copy.deepcopy(who._engine.round)
        longest = max(longest, float(x @ x))
        g = np.outer(estimate(who.settings, rd.z, rd.p, int(truth), decision._code), x)
        rounds.append((rd.note[1] / longest, rd.p, g, rd.z, rd.note[0]))
        give_feedback(who, decision, int(truth))
    return who, rounds


@pytest.mark.sample(2)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_step_of_the_bandit_proof_on_a_path(loss):
    """W_t is what FTRL says, its inequality holds for any U, and each round's gap at its label is at most its λ."""
    for s in (separable_stream(250), noisy_stream(250, seed=2)):
        who, rounds = replay(loss, s, scale=0.5)
        sums = np.zeros_like(rounds[0][2])
        inner, second = [], 0.0
        for (eta, q, g, z, level), x, truth in zip(rounds, s.X, s.y):
            W = -eta * sums
            centred = W @ x
            np.testing.assert_allclose(z - z.mean(), centred - centred.mean(), atol=1e-8)
            h = eta * float(x @ x) / 2
            assert gap(who.settings, z, q, int(truth), h) <= level + 1e-9
            inner.append((g, W))
            second += eta / 2 * float((g * g).sum())
            sums += g
        rng = np.random.default_rng(0)
        for size in (0.0, 0.3, 3.0, 30.0):
            U = rng.normal(size=sums.shape) * size
            regret = sum(float((g * (W - U)).sum()) for g, W in inner)
            assert regret <= (U * U).sum() / (2 * rounds[-1][0]) + second + 1e-6
        certificate = who.certificate
        assert certificate.level == pytest.approx(sum(r[-1] for r in rounds), rel=1e-9)
        assert certificate.cost(1.0) >= 1 / (2 * rounds[-1][0]) + certificate.level - 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("make", [noisy_stream, separable_stream])
def test_the_bandit_bound_holds_in_the_mean(make, loss):
    """24 seeds, U fixed before the draws: mean mistakes against the mean of L_T(U) + C_T(U)."""
    s = make(400)
    U = np.array([s.X[s.y == k].mean(axis=0) for k in range(s.K)])
    U -= U.mean(axis=0)
    for size in (0.0, 2.0, 5.0):
        rule = comparator_of(loss, s.X, s.y, U / np.linalg.norm(U) * size)
        missed, bounds = [], []
        for seed in range(24):
            who = learner(loss, "bandit", s.K, seed=seed)
            missed.append(who.play(s.X, s.y).mistakes)
            assert who.certificate.in_expectation
            bounds.append(who.certificate.bound(rule))
        error = np.std(missed, ddof=1) / math.sqrt(24)
        assert np.mean(missed) - 3 * error <= np.mean(bounds)
        known = file.bound(who.problem._replace(norm=s.norm), who.settings, rule)
        assert np.mean(bounds) <= known


@pytest.mark.sample(1)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_late_bandit_bound_holds_in_the_mean(loss):
    """Delays fixed in advance (the same arrivals for every seed)."""
    s, tau = separable_stream(300), 3
    U = np.array([s.X[s.y == k].mean(axis=0) for k in range(s.K)])
    rule = comparator_of(loss, s.X, s.y, U / np.linalg.norm(U) * 3)
    missed, bounds = [], []
    for seed in range(20):
        who = learner(loss, "bandit", s.K, seed=seed, delay=tau)
        missed.append(late_run(who, s.X, s.y, tau, seed=99))
        bounds.append(who.certificate.bound(rule))
        assert who.certificate.level <= file.largest_level(who.problem, who.settings, 300)
    assert np.mean(missed) - 3 * np.std(missed, ddof=1) / math.sqrt(20) <= np.mean(bounds)


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", ["least", "repeat", "second", "turn"])
@pytest.mark.parametrize("loss", LOSSES)
def test_no_adversary_makes_the_levels_larger_than_their_bound(loss, kind):
    for K, scale, delay in ((2, 1.0, 0), (5, 0.2, 0), (3, 3.0, 2)):
        who = learner(loss, "bandit", K, scale=scale, delay=delay)
        hostile(who, 200, 2, kind=kind)
        assert who.certificate.level <= file.largest_level(who.problem, who.settings, 200)


def test_long_certain_runs_keep_the_levels_below_their_bound():
    """Separable and one row: nearly every round needs a level."""
    for loss in LOSSES:
        for K in (2, 5):
            who = learner(loss, "bandit", K)
            X = np.ones((20000, 1))
            trace = who.play(X, np.zeros(20000, dtype=int))
            most = file.largest_level(who.problem, who.settings, 20000)
            assert 0 < who.certificate.level <= most
            each = np.cumsum(trace.note("level"))
            T = np.array([100, 1000, 5000])
            assert (each[T - 1] <= [file.largest_level(who.problem, who.settings, int(t)) for t in T]).all()


ALPHA = {
    # loss, β: α, e₀ as THEORY 2.4 proves them
    "hinge": lambda K, beta: K / 2,
    "hinge-any": lambda K, beta: (K - 1) / beta,
    "smooth-hinge": lambda K, beta: 2 * K,
    "logistic": lambda K, beta: 0.43 * (K - 1),
    "logistic-measured": lambda K, beta: 0.092 * K,
}


@pytest.mark.slow
@pytest.mark.parametrize("row", ALPHA)
def test_the_level_is_at_most_alpha_times_the_step(row):
    """λ_t ≤ α ε‖x‖²/X²: random scores of many shapes, steps and lengths; ties; margins at each side of β."""
    loss = row.removesuffix("-any").removesuffix("-measured")
    rng = np.random.default_rng(5)
    worst = 0.0
    for trial in range(2500):
        K = int(rng.choice([2, 3, 4, 10, 40]))
        beta = float(rng.uniform(0.02, 1 - 1 / K)) if row == "hinge-any" else None
        s = file.recommend(problem(loss, "bandit", K), beta=beta)
        most = LN2**2 / (2 * K) if row == "logistic" else s.first  # κ ≤ 1/(4K)
        step = most * (1.0 if trial % 3 == 0 else 10.0 ** rng.uniform(-5, 0))
        share = 1.0 if trial % 2 else 10.0 ** rng.uniform(-3, 0)
        top = rng.choice([s.beta + 1e-9, s.beta, 10.0 ** rng.uniform(-2, 1.3), rng.uniform(0, 1.2)])
        z = -top - rng.choice([0.0, 10.0 ** rng.uniform(-3, 1)]) * rng.random(K)
        z[0] = 0.0
        rd, _, _, _ = decided(s, z, share, step)
        limit = ALPHA[row](K, s.beta) * step * share
        assert rd.note[0] <= limit * (1 + 1e-9) + 1e-12, (K, z, step, share)
        worst = max(worst, rd.note[0] / limit)
    assert worst > 0.05  # the search does meet levels


@pytest.mark.sample(2)
@pytest.mark.parametrize("tau", [1, 6])
@pytest.mark.parametrize("loss, extra", [("hinge", 2.0), ("smooth-hinge", 8.0), ("logistic", 4.2)])
def test_a_delay_adds_to_alpha_what_the_theory_says(loss, extra, tau):
    rng = np.random.default_rng(tau)
    for _ in range(600):
        K = int(rng.choice([2, 3, 10]))
        on_time, late = (file.recommend(problem(loss, "bandit", K), delay=d) for d in (0, tau))
        assert late.first == on_time.first
        step = late.first * 10.0 ** rng.uniform(-4, 0)
        z = rng.normal(size=K) * 10.0 ** rng.uniform(-2, 1)
        more = decided(late, z, 1.0, step)[0].note[0] - decided(on_time, z, 1.0, step)[0].note[0]
        assert -1e-12 <= more <= extra * tau * step * (1 + 1e-9) + 1e-12


def test_the_bandit_bound_known_before_the_run():
    """THEORY 2.4's display, number by number."""
    K, T, XU, sigma = 4, 900, 3.0, 2.0
    for loss, alpha, first, rest in (
        ("hinge", K / 2, 1 / K**2, 1 / (2 * K)),
        ("smooth-hinge", 2 * K, 1 / (4 * K**2), 1 / (2 * K)),
        ("logistic", 0.43 * (K - 1), 2 * LN2**2 / K, 2 + sigma**2 * K / LN2**2),
    ):
        p = problem(loss, "bandit", K, X=1.5)
        s = file.recommend(p, scale=sigma)
        level = sigma * math.sqrt(alpha * T) + rest
        assert file.largest_level(p, s, T) == pytest.approx(level, rel=1e-12)
        value = 100 + max(XU**2 / (2 * first), (XU / sigma) ** 2 * level) + level
        assert file.bound(p, s, Comparator(100.0, XU / 1.5, T)) == pytest.approx(value, rel=1e-12)


def test_a_hinge_that_is_zero_at_any_margin_is_refused():
    """(K-1)/β is not a number at β = 0."""
    with pytest.raises(SettingError, match="beta"):
        file.recommend(problem("hinge", "bandit", 3), beta=0.0)


def test_the_rule_compared_with_under_bandit_feedback_is_chosen_without_the_draws():
    """The lemma is for U fixed before the draws: a U tuned to the run's own Λ and ε would make the bound too small."""
    s = separable_stream(300)
    rules = []
    for seed in (0, 1):
        who = learner("hinge", "bandit", s.K, seed=seed)
        who.play(s.X, s.y)
        rules.append(who.bound(s.X, s.y).U)
    np.testing.assert_array_equal(rules[0], rules[1])


def test_a_certificate_is_not_shown_once_feedback_came_too_late():
    """Like `bound`: what it says does not hold then (with full information it does: test_late_feedback)."""
    s = noisy_stream(60)
    who = learner("logistic", "bandit", s.K)
    late_run(who, s.X, s.y, 5, seed=0)
    with pytest.raises(NoBoundError):
        who.bound(s.X, s.y)
    with pytest.raises(NoBoundError):
        _ = who.certificate


# --- how much better ----------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("loss, factor", [("logistic", 1.5), ("hinge", 1.0), ("smooth-hinge", 1.0)])
def test_frugal_makes_far_fewer_mistakes_than_the_paper(loss, factor):
    s = noisy_stream(2000, d=8, K=5, noise=0.05)
    frugal = learner(loss, K=s.K).play(s.X, s.y).expected_mistakes
    paper = gaptron.Learner("gaptron", loss=loss, n_classes=s.K, seed=0).play(s.X, s.y).expected_mistakes
    assert paper >= factor * frugal


@pytest.mark.parametrize("loss, feedback", EACH)
def test_a_separable_stream_is_learned(loss, feedback):
    s = separable_stream(3000)
    trace = learner(loss, feedback, s.K).play(s.X, s.y)
    last = slice(2000, None)
    assert trace.wrong[last].mean() < 0.2
