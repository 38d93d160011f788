"""Advised Gaptron for actions with features: its demands, its certificates and its bounds, against textbook numpy."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from gaptron import NoBoundError
from gaptron.algorithms.advised import actions
from gaptron.types import Comparator
from tests.action_games import Game, expected
from tests.plain_actions import (
    LAYOUTS,
    diameter,
    gap,
    give_feedback,
    gradient,
    learner,
    loss,
    rounds,
    together,
    world,
)

RATES = {"full": 0.04, "bandit": 0.1}  # ρ²


def advised(feedback="bandit", **more):
    return learner(feedback, "advised-gaptron", **more)


def with_advice(engine, Phi, rate):
    """The certified scores as those of one rule: rows (φ, ρΔa), which have the second moments of both gradients."""
    now = engine.scratch.now[0]
    a, spread = engine.scratch.a[: len(Phi)], math.sqrt(rate * now.square)
    assert abs(a.sum()) < 1e-9
    w = now.ratio * engine.state.W[:, 3]
    return np.append(w, now.v / spread), np.column_stack([Phi, spread * a]), now.ratio


@pytest.mark.sample(3)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("feedback", ["full", "bandit"])
@pytest.mark.parametrize(("most", "right"), [(5, "least"), (12, "least"), (40, "first"), (5, "rule")])
def test_no_gap_exceeds_the_level_of_its_round(feedback, layout, most, right):
    """In certified rounds, with V, R and the second moments worked out densely, by enumeration of the draws."""
    more = {"budget": 0.0, "reach": 2.0} if feedback == "bandit" else {}
    who, levels, moved = advised(feedback, **more), [], 0.0
    rule = np.array([3.0, -2.0, 1.0, 0.0])
    for t, Phi in enumerate(rounds(80, most=most, seed=3)):
        if t % 10 == 9:
            Phi = np.repeat(Phi, 2, axis=0)
        decision = who.decide(actions=LAYOUTS[layout](Phi))
        engine, q = who._engine, decision.distribution
        assert q.sum() == pytest.approx(1.0)
        if diameter(Phi) > 1e-9 or engine.state.total[0].square > 0.0:
            w, rows, eta = with_advice(engine, Phi, RATES[feedback])
            worst = max(gap(w, rows, q, y, eta, feedback == "bandit") for y in range(len(Phi)))
            assert worst <= engine.scratch.now[0].level + 1e-11
            moved = max(moved, float(np.abs(w[:-1]).max()))
        levels.append(engine.scratch.now[0].level)
        y = {"least": int(q.argmin()), "first": 0, "rule": int((Phi @ rule).argmax())}[right]
        give_feedback(who, decision, y)
    assert moved > 0.0
    if feedback == "full":
        assert max(levels) == 0.0


# --- every path of small games ------------------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("without", [None, "one"])
@pytest.mark.parametrize("budget", [0.0, 0.005, 2.0])
def test_every_path_of_small_games_together_keeps_the_certificate(scale, without, budget):
    """All rounds certified, some, or none; K_t = 1, equal actions, and rounds that react to the draws before them."""
    worst = -math.inf
    for seed in range(8):
        game = Game(seed, scale)
        for u in [np.zeros(2), *(np.random.default_rng(seed).normal(size=(2, 2)) * 2.0 / scale)]:
            value, _ = expected(game, u, lambda: advised(budget=budget), without=without)
            assert value <= 1e-9, (seed, u)
            worst = max(worst, value)
    assert worst > -60.0


@pytest.mark.sample(1)
@pytest.mark.parametrize("v", [-0.3, 0.5, 1.0])
def test_every_path_keeps_the_certificate_of_rules_that_use_the_advice(v):
    for seed in range(8):
        for u in [np.zeros(2), np.random.default_rng(seed).normal(size=2)]:
            value, _ = expected(Game(seed), u, lambda: advised(budget=0.0), v=v)
            assert value <= 1e-9, (seed, u)


# --- full information on every path -------------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ["least likely", "linear", "random", "turning"])
def test_full_information_keeps_the_bound_of_every_rule_and_weight_of_the_advice(kind):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        who, rule, played, wrong = advised("full"), rng.normal(size=3), [], 0.0
        for t, Phi in enumerate(10 ** rng.uniform(-1, 0) * Phi for Phi in rounds(60, d=3, most=5, seed=seed)):
            decision = who.decide(actions=Phi)
            q = decision.distribution
            y = {
                "least likely": int(q.argmin()),
                "linear": int((Phi @ rule).argmax()),
                "random": int(rng.integers(len(Phi))),
                "turning": int((Phi @ rule * (-1) ** (t // 20)).argmax()),
            }[kind]
            wrong += 1.0 - q[y]
            played.append((np.column_stack([Phi, who._engine.scratch.a[: len(Phi)]]), y))
            who.learn(decision, action=y)
        certificate = who.certificate
        assert certificate.level <= 1e-9
        square = max(diameter(rows[:, :3]) for rows, _ in played) ** 2
        assert certificate.norm**2 == pytest.approx(square)
        prices = np.append(np.full(3, square), 25.0) / (2.0 * certificate.step)

        def objective(w, played=played, prices=prices):
            apart = w - np.array([0, 0, 0, 1.0])
            value = sum(loss(w, rows, y) for rows, y in played) + prices @ apart**2
            return value, sum(gradient(w, rows, y) for rows, y in played) + 2.0 * prices * apart

        best = minimize(objective, np.zeros(4), jac=True, method="L-BFGS-B")
        assert wrong <= best.fun + 1e-9
        linear = who.bound([rows[:, :3] for rows, _ in played], [y for _, y in played])
        assert wrong <= linear.value + 1e-9
        assert linear.value >= best.fun - 1e-6


def test_late_feedback_of_full_information_keeps_its_certificate():
    rng = np.random.default_rng(7)
    for seed in range(10):
        offers, right = world(12, d=2, most=4, seed=seed)
        who, held, left = advised("full"), [], 0.0
        for Phi, y in zip(offers, right):
            decision = who.decide(actions=Phi)
            left += 1.0 - decision.distribution[y]
            held.append((decision, y))
            while held and rng.random() < 0.4:
                one, truth = held.pop(int(rng.integers(len(held))))
                who.learn(one, action=int(truth))
        for one, truth in held:
            who.learn(one, action=int(truth))
        for u in 3.0 * rng.normal(size=(20, 2)):
            total = sum(loss(u, Phi, y) for Phi, y in zip(offers, right))
            assert left <= total + who.certificate.cost(float(np.linalg.norm(u))) + 1e-9


# --- before the run -----------------------------------------------------------------------------------------


def test_the_bound_before_the_run_is_at_least_the_certificate():
    reached = 0.0
    for reach, budget, largest in (
        (0.5, 0.0, 3),
        (20.0, 0.0, 6),
        (20.0, 0.0, 2),
        (0.05, 0.0, 12),
        (2.0, 0.3, 6),
        (20.0, 2.0, 6),
    ):
        who, counts = advised(reach=reach, budget=budget), []
        for Phi in rounds(150, d=3, most=largest, seed=1):
            decision = who.decide(actions=Phi)
            give_feedback(who, decision, int(decision.distribution.argmin()))
            counts.append(len(Phi))
        certificate, N = who.certificate, sum(counts)
        assert certificate.level <= actions.largest_level(who.settings, math.sqrt(N))
        reached = max(reached, certificate.level)
        whole = Comparator(0.0, 1.0, len(counts), N, max(counts))
        problem = who.problem._replace(norm=who._conditions.longest)
        assert who._engine.algorithm.bound(problem, who.settings, whole) >= certificate.cost(1.0)
        assert certificate.level == 0.0 or budget < 1.0
    assert reached > 0.05


def test_rounds_are_certified_when_the_budget_is_used_up():
    offers, _ = world(400, noise=0.0)
    who = advised(reach=1.0, budget=0.1)
    trace = who.play(together(offers), [0] * 400)
    exploiting = trace.notes[:, trace.note_names.index("exploiting")]
    assert exploiting[0] == 1.0
    assert 0 < exploiting.sum() < 400
    t = who._engine.state.total[0]
    assert t.mistakes - t.psi <= 0.1 * (1.0 + 10.0) / (2.0 * t.step) + 1e-9  # θ(D² + 10)/(2ε)
    assert who.certificate.exploiting == t.mistakes - t.psi
    assert who.bound(offers, [0] * 400).value >= trace.mistakes


def test_what_has_no_theorem_is_refused():
    offers, right = world(30)
    who = advised()
    who.play(offers, rewards=[np.linspace(0, 1, len(Phi)) for Phi in offers])
    with pytest.raises(NoBoundError, match="fractions"):
        who.bound(offers, right)
    who = advised()
    held = [who.decide(actions=Phi) for Phi in offers[:3]]
    for decision, y in zip(held, right):
        give_feedback(who, decision, y)
    with pytest.raises(NoBoundError, match="late"):
        _ = who.certificate
