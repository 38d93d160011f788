"""Weights in single precision: the bound with what rounding costs holds, and the bound without it would not."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import gaptron
from gaptron.algorithms import load
from gaptron.algorithms.advised import bandit as advised_bandit
from gaptron.kernels.losses import confident
from gaptron.types import Comparator, Feedback, Loss, Problem, Rounding
from tests import plain
from tests.conftest import noisy_stream, random_stream, separable_stream
from tests.theory.test_late_answers import ORDERS, PROVED, rules, run

slow = pytest.mark.slow
LOGISTIC, HINGE = {"loss": "logistic"}, {"loss": "hinge"}


def single(algorithm, K, **given):
    return gaptron.Learner(algorithm, n_classes=K, precision="single", seed=0, **given)


def answer(who, decision, truth):
    told = {"correct": decision.label == truth} if "bandit" in repr(who) else {"label": int(truth)}
    who.learn(decision, **told)


# --- the sums are those of the run ------------------------------------------------------------------------------


def by_gaptron(core, before, truth):
    c = before.ball[0].scale
    return 0, core.scratch.r, c * c, c


def by_perceptron(core, before, truth):
    r = np.zeros(len(core.round.z))
    r[truth], r[core.round.p.argmax()] = 1.0, -1.0
    return 0, r * (core.round.p.argmax() != truth), 1.0, 1.0


def by_frugal(core, before, truth):
    kept = core.scratch.kept[0]
    return 0, core.scratch.r, kept.step / kept.square, 1.0


def by_frugal_hinge(core, before, truth):
    """The textbook's c, centred where the learner is sure."""
    z, p, reward, beta = core.round.z, core.round.p, core.round.answer[0].reward, core.settings.beta
    top, r = int(z.argmax()), np.zeros(len(z))
    if confident(z, top, beta):
        r[top] -= 1.0
        if reward:
            r[truth] += reward / p[truth]
        r += (1.0 - (reward / p[truth] if reward else 0.0)) / len(z)
    elif reward:
        other = max((k for k in range(len(z)) if k != truth), key=lambda k: z[k])
        if z[truth] - z[other] < 1.0:
            r[truth], r[other] = reward / p[truth], -reward / p[truth]
    return 0, r, *by_frugal(core, before, truth)[2:]


def by_advised(core, before, truth):
    now = core.scratch.now[0]
    return 0, core.scratch.all, now.step / now.square, 1.0


def by_advised_bandit(core, before, truth):
    K, now, free = len(core.round.z), core.scratch.now[0], core.round.mark[0].free
    if not free:
        return advised_bandit.CERTIFIED * K, core.scratch.all, now.step / now.square, 1.0
    r = core.scratch.all * (core.round.answer[0].reward > 0.0)
    return advised_bandit.SIDE * K, r, before.total[0].side_step / now.square, 1.0


CASES = {
    "gaptron": ("gaptron", LOGISTIC, by_gaptron),
    "gaptron in a ball": ("gaptron", {"ball": 0.3}, by_gaptron),
    "perceptron": ("perceptron", {}, by_perceptron),
    "frugal": ("frugal-gaptron", LOGISTIC, by_frugal),
    "frugal bandit": ("frugal-gaptron", {"feedback": "bandit"}, by_frugal),
    "frugal bandit hinge": ("frugal-gaptron", {"feedback": "bandit", **HINGE}, by_frugal_hinge),
    "advised": ("advised-gaptron", {}, by_advised),
    "advised bandit": ("advised-gaptron", {"feedback": "bandit"}, by_advised_bandit),
    "advised bandit, none free": ("advised-gaptron", {"feedback": "bandit", "budget": 0.0}, by_advised_bandit),
}


@pytest.mark.parametrize("sparse", [False, pytest.param(True, marks=slow)])
@pytest.mark.parametrize("case", [pytest.param(name, marks=[] if name == "frugal" else slow) for name in CASES])
def test_the_sums_are_what_was_lost(case, sparse):
    """Each update again, exactly, from the weights before it and the weights kept."""
    algorithm, given, update = CASES[case]
    s = noisy_stream(60, 5, 3)
    who, lean, drift = single(algorithm, s.K, norm=1.0, **given), 0.0, 0.0
    core = who._core
    for x, y in zip(s.X, s.y):
        decision = who.decide(sp.csr_matrix(x[None]) if sparse else x)
        before = type(core.state)(*(part.copy() for part in core.state))
        answer(who, decision, y)
        first, r, tilt, size = update(core, before, y)
        W, kept = (before.W.T, core.state.W.T) if sparse else (before.W, core.state.W)
        meant = [
            Fraction(float(W[first + k, i])) + Fraction(float(r[k])) * Fraction(float(x[i]))
            for k in range(s.K)
            for i in range(len(x))
        ]
        held = [Fraction(float(v)) for v in kept[first : first + s.K].ravel()]
        lean += tilt * float(sum(f * f - d * d for f, d in zip(held, meant)) / 2)
        drift += size * math.sqrt(sum((f - d) ** 2 for f, d in zip(held, meant)))
    counted = core.rounding
    assert drift > 0.0
    if case == "gaptron in a ball":
        assert 1e-5 < core.state.ball[0].scale < 0.9  # it shrank, and was not taken up in between
        assert core.state.ball[0].square == pytest.approx((who.weights**2).sum(), rel=1e-13)
    assert counted.lean == pytest.approx(lean, rel=1e-5)
    # Labels that are moved one by one are counted one by one: no less, and for two at most √2 times as much.
    one_by_one = math.sqrt(2) if "hinge" in case or case == "perceptron" else 1.0
    assert drift * (1 - 1e-6) <= counted.drift <= drift * one_by_one * (1 + 1e-6)


@slow
def test_a_ball_counts_what_is_lost_when_its_scale_is_taken_up():
    """A ball so small that each step is cut to a fraction: the scale falls below what it may be every few rounds."""
    s, radius = noisy_stream(60, 5, 3), 0.02
    who, lean, drift, taken = single("gaptron", s.K, norm=1.0, ball=radius), 0.0, 0.0, 0
    core = who._core

    def lost(kept, meant, c):
        return c * c * ((kept - meant) * (kept + meant)).sum() / 2, c * np.linalg.norm(kept - meant)

    for x, y in zip(s.X, s.y):
        decision = who.decide(x)
        V, c = core.state.W.astype(np.float64), float(core.state.ball[0].scale)
        answer(who, decision, y)
        meant = V + np.outer(core.scratch.r, x)
        kept = meant.astype(np.float32).astype(np.float64)
        parts = [lost(kept, meant, c)]
        if core.state.ball[0].updates == 0:
            taken += 1
            parts.append(lost(core.state.W.astype(np.float64), min(c, radius / np.linalg.norm(kept)) * kept, 1.0))
        lean, drift = lean + sum(a for a, _ in parts), drift + sum(b for _, b in parts)
        assert np.linalg.norm(who.weights) <= radius * (1 + 1e-12)
    assert taken >= 3
    assert core.rounding == pytest.approx((lean, drift), rel=1e-5)


def test_the_perceptrons_bound_is_above_what_its_two_inequalities_allow():
    """M - L - B‖U‖ ≤ ⟨U, W⟩ ≤ ‖U‖√(2X²M + 2A), solved for the largest M."""
    file, problem = load("perceptron"), Problem(2, 2, Feedback.FULL, Loss.HINGE, norm=0.5)
    for loss, norm, rounding in itertools.product(
        (0.0, 3.0, 500.0), (0.1, 2.0), ((0.0, 9.0), (80.0, 0.0), (-4.0, 7.0))
    ):
        rounding, comparator, most = Rounding(*rounding), Comparator(loss, norm, 1_000), 1e9
        for _ in range(200):
            root = math.sqrt(max(0.0, 2 * 0.25 * most + 2 * rounding.lean))
            most = loss + rounding.drift * norm + norm * root
        assert most <= file.rounded_bound(problem, None, comparator, rounding) * (1 + 1e-12)
    assert file.rounded_bound(problem, None, comparator, Rounding()) == file.bound(problem, None, comparator)


@pytest.mark.parametrize(
    ("algorithm", "given"),
    [("frugal-gaptron", HINGE), pytest.param("gaptron", HINGE, marks=slow), pytest.param("perceptron", {}, marks=slow)],
)
def test_updates_that_are_lost_entirely_are_counted(algorithm, given):
    """A long row, then rows so short that no weight moves at all."""
    T, short = 50, 2.0**-30
    X = np.full((T, 4), short)
    X[0], y = 1.0, np.r_[1, np.zeros(T - 1, dtype=int)]
    who = single(algorithm, 2, norm=2.0, **given)
    first = who.play(X[:1], y[:1])
    weights, before = who.weights, who._core.rounding
    trace = first + who.play(X[1:], y[1:])
    assert np.abs(weights).min() > 0.0
    np.testing.assert_array_equal(who.weights, weights)
    # Each update moves two labels by short·‖(1, 1, 1, 1)‖ in the state's units, and nothing of it is kept.
    unit = who.settings.eta if algorithm == "gaptron" else 1.0
    assert who._core.rounding.drift - before.drift == pytest.approx((T - 1) * 2 * unit * short * 2.0, rel=1e-6)
    assert who.bound(X, y).value >= trace.expected_mistakes


# --- the bound without it would not hold ------------------------------------------------------------------------


def against(who, X):
    """The label that the learner favours less, in every round; and Σ(1 - q(y)), and Σ of its own hinge losses."""
    y, expected, suffered = [], 0.0, 0.0
    for x in X:
        z, decision = who.scores(x[None])[0], who.decide(x)
        truth = int(decision.distribution.argmin())
        expected += 1.0 - decision.distribution[truth]
        suffered += max(0.0, 1.0 - (z[truth] - z[1 - truth]))
        answer(who, decision, truth)
        y.append(truth)
    return np.array(y), expected, suffered


def orthogonal(d):
    return np.linalg.qr(np.random.default_rng(0).normal(size=(d, d)))[0]


def in_reals(X, y, eta):
    """The weights that these updates sum to if nothing is rounded."""
    signs = 2.0 * y - 1.0
    return eta * np.vstack([-signs @ X, signs @ X])


@pytest.mark.parametrize("d", [32, 128])
def test_the_certificate_without_the_rounding_would_be_broken(d):
    """Rows at right angles to all before: whatever was learned, in real numbers every score is 0.

    So two labels have ½ each, every gap is 0, the hinge is linear up to U and the bound is met with equality. Weights
    that are rounded lean to one label by chance, and the adversary names the other.
    """
    X = orthogonal(d)
    double = gaptron.Learner("frugal-gaptron", n_classes=2, norm=1.0, seed=0, **HINGE)
    y, expected, _ = against(double, X)
    assert expected == pytest.approx(double.bound(X, y, U=in_reals(X, y, 0.5)).value, abs=1e-11)
    who = single("frugal-gaptron", 2, norm=1.0, **HINGE)
    y, expected, _ = against(who, X)
    proved, rounding = who.bound(X, y, U=in_reals(X, y, 0.5)), who.certificate.rounding
    drift = rounding.drift * proved.comparator.norm
    assert proved.value - drift - rounding.lean < expected - 1e-7  # broken, by far more than double precision loses
    assert proved.value - drift < expected - 1e-7  # one of the two is not enough
    assert expected <= proved.value


@slow
def test_gaptrons_regret_without_the_rounding_would_be_broken():
    """The same adversary: Σℓ(W) ≤ L(U) + ‖U‖²/(2η) + (η/2)Σ‖g‖² is met with equality in real numbers."""
    X = orthogonal(128)
    who = single("gaptron", 2, norm=1.0, **HINGE)
    y, expected, suffered = against(who, X)
    eta, rounding = who.settings.eta, who._core.rounding
    U = in_reals(X, y, eta)
    margins = (2 * y - 1) * (X @ (U[1] - U[0]))
    regret = np.maximum(0.0, 1.0 - margins).sum() + (U**2).sum() / (2 * eta) + eta * len(X)
    assert suffered > regret + 1e-7
    assert suffered <= regret + (rounding.lean + rounding.drift * np.linalg.norm(U)) / eta
    assert expected <= who.bound(X, y, U=U).value


# --- and with it, it holds --------------------------------------------------------------------------------------


@slow
@pytest.mark.parametrize("stream", [noisy_stream, separable_stream, random_stream])
@pytest.mark.parametrize(
    ("algorithm", "given"),
    [
        *(("gaptron", {"loss": loss}) for loss in ("logistic", "hinge", "smooth-hinge")),
        *(("frugal-gaptron", {"loss": loss}) for loss in ("logistic", "hinge", "smooth-hinge")),
        *(("perceptron", {"update": update}) for update in ("worst", "uniform", "proportional")),
        ("advised-gaptron", {}),
    ],
)
def test_full_information_on_every_path(algorithm, given, stream):
    s = stream(300)
    rows = s.X.astype(np.float32) if stream is random_stream else s.X
    who = single(algorithm, s.K, **given)
    trace = who.play(rows, s.y)
    proved, rounding = who.bound(s.X, s.y, trace), who._core.rounding
    assert trace.expected_mistakes <= proved.value
    assert rounding.drift > 0.0
    in_double = gaptron.Learner(algorithm, n_classes=s.K, seed=0, **given)
    same = in_double.bound(s.X, s.y, in_double.play(s.X, s.y), U=proved.U).value
    assert proved.value == pytest.approx(same, rel=1e-4, abs=1e-3)  # rounding costs next to nothing


@pytest.mark.parametrize("kind", ORDERS)
@pytest.mark.parametrize(
    "algorithm", [pytest.param(name, marks=[] if name == "frugal-gaptron" else slow) for name in PROVED]
)
def test_late_answers_with_full_information(algorithm, kind):
    s = noisy_stream(200)
    who = single(algorithm, s.K)
    expected, _ = run(who, s, kind)
    certificate = who.certificate
    assert certificate.rounding.drift > 0.0
    for U in rules(who, s):
        loss = sum(plain.loss("logistic", U @ x, int(y), 1 / s.K) for x, y in zip(s.X, s.y))
        assert expected <= loss + certificate.cost(float(np.linalg.norm(U)))


def dual(who, s, learned):
    """Σ⟨ĝ, W - U⟩ - Σ(η/2)‖ĝ‖² as a function of U, of the certified learner, along a run of the bandit kind.

    `learned(core)` has the rows of the table, the coefficients of -ĝ, and the step.
    """
    core, along, total = who._core, 0.0, 0.0
    for x, y in zip(s.X, s.y):
        decision = who.decide(x)
        W = core.state.W.astype(np.float64)
        answer(who, decision, y)
        first, r, eta, _ = learned(core)
        G = -np.outer(r, x)
        along += eta * (G * W[first : first + s.K]).sum() - eta / 2 * (G**2).sum()
        total = total + G
    return lambda U: along - (total * U).sum()


@pytest.mark.parametrize(
    "case",
    [
        pytest.param("frugal bandit", marks=slow),
        pytest.param("frugal bandit hinge", marks=slow),
        pytest.param("advised bandit, none free", marks=slow),
    ],
)
def test_the_proof_under_bandit_feedback_on_every_path(case):
    """Σ⟨ĝ, W - U⟩ ≤ ‖U‖²/(2η) + Σ(η/2)‖ĝ‖² + A + B‖U‖, the one step of the proof that rounding touches."""
    algorithm, given, update = CASES[case]
    s = noisy_stream(300, 5, 3)
    who, truths = single(algorithm, s.K, norm=1.0, **given), iter(s.y)
    regret = dual(who, s, lambda core: update(core, core.state, next(truths)))
    c = who.certificate
    eta = c.step / c.norm**2
    for U in rules(who, s):
        size = float(np.linalg.norm(U))
        assert regret(U) <= size**2 / (2 * eta) + c.rounding.lean + c.rounding.drift * size + 1e-12
    # The gap counts ‖ĝ‖² less what all labels have in common, so the table may hold nothing of that but rounding.
    certified = who._core.state.W[-s.K :].astype(np.float64)
    assert np.abs(certified.sum(axis=0)).max() < 1e-5 < np.abs(certified).max()


@slow
@pytest.mark.parametrize("given", [{}, {"feedback": "bandit"}, {"feedback": "bandit", "budget": 0.0}])
def test_the_certificate_is_the_same_observed_or_not(given):
    s = noisy_stream(200)
    seen, unseen = (single("advised-gaptron", s.K, observe=observe, **given) for observe in (True, False))
    for who in (seen, unseen):
        who.play(s.X, s.y)
    assert seen.certificate == unseen.certificate
    assert seen.certificate.rounding.drift > 0.0
    plainly = seen.certificate._replace(rounding=Rounding())
    assert seen.certificate.cost(2.0) - plainly.cost(2.0) == pytest.approx(
        seen.certificate.rounding.lean + 2.0 * seen.certificate.rounding.drift, rel=1e-3
    )


@slow
@pytest.mark.parametrize("given", [{"loss": "hinge"}, {"loss": "logistic", "radius": 0.1, "horizon": 10**9}])
def test_gaptron_under_bandit_feedback_adds_its_rounding_to_the_theorem(given):
    s = noisy_stream(200)
    who = single("gaptron", s.K, norm=1.0, **{"feedback": "bandit", "radius": 1.0, "horizon": 200, **given})
    who.play(s.X, s.y)
    proved, rounding = who.bound(s.X, s.y), who._core.rounding
    file, problem = load("gaptron"), who.problem
    without = file.bound(problem, who.settings, proved.comparator)
    rounded = (rounding.lean + rounding.drift * proved.comparator.norm) / who.settings.eta
    assert rounding.drift > 0.0
    assert proved.value == pytest.approx(without + rounded, rel=1e-14)
