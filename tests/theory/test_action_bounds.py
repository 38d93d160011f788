"""Actions with features: bounds of whole runs, also against the best rule in hindsight."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from gaptron import InputError, NoBoundError
from gaptron.types import Comparator
from tests.plain_actions import LAYOUTS, LN2, diameter, give_feedback, gradient, learner, loss, rounds, together, world


def hindsight(offers, right, price):
    """min over u of L(u) + price·‖u‖², by L-BFGS."""

    def objective(u):
        value = sum(loss(u, Phi, y) for Phi, y in zip(offers, right)) + price * u @ u
        slope = sum(gradient(u, Phi, y) for Phi, y in zip(offers, right)) + 2.0 * price * u
        return value, slope

    return minimize(objective, np.zeros(offers[0].shape[1]), jac=True, method="L-BFGS-B")


def hostile(kind, seed, T=60):
    """Full information against labels chosen when q is known. Returns the learner, the rounds and A_T."""
    rng = np.random.default_rng(seed)
    who, right, wrong = learner(), [], 0.0
    rule = rng.normal(size=3)
    offers = [10 ** rng.uniform(-1, 0) * Phi for Phi in rounds(T, d=3, most=5, seed=seed)]
    for t, Phi in enumerate(offers):
        decision = who.decide(actions=Phi)
        q = decision.distribution
        y = {
            "least likely": int(q.argmin()),
            "linear": int((Phi @ rule).argmax()),
            "random": int(rng.integers(len(Phi))),
            "turning": int((Phi @ rule * (-1) ** (3 * t // T)).argmax()),
        }[kind]
        wrong += 1.0 - q[y]
        who.learn(decision, action=y)
        right.append(y)
    return who, offers, right, wrong


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ["least likely", "linear", "random", "turning"])
def test_full_information_keeps_the_bound_of_the_best_rule_on_every_path(kind):
    for seed in range(8):
        who, offers, right, wrong = hostile(kind, seed)
        square = max(diameter(Phi) for Phi in offers) ** 2
        price = square / (8.0 * LN2**2)
        best = hindsight(offers, right, price)
        assert wrong <= best.fun + 1e-9
        bound = who.bound(offers, right)
        assert bound.value == pytest.approx(best.fun, rel=1e-3, abs=1e-6)
        assert who.certificate.level == 0.0
        assert who.certificate.cost(1.0) == pytest.approx(price)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_bound_of_one_rule_is_its_loss_and_the_price_of_its_norm(layout):
    offers, right = world(80)
    who = learner()
    trace = who.play(together(offers, layout), right)
    u = np.array([1.0, -2.0, 0.5, 0.0])
    bound = who.bound(together(offers, layout), right, trace, U=u)
    wanted = sum(loss(u, Phi, y) for Phi, y in zip(offers, right))
    assert bound.comparator.loss == pytest.approx(wanted)
    price = max(diameter(Phi) for Phi in offers) ** 2 / (8.0 * LN2**2)
    assert bound.value == pytest.approx(wanted + price * float(u @ u))
    assert trace.expected_mistakes <= bound.value
    with pytest.raises(InputError, match="finite numbers, one per feature"):
        who.bound(offers, right, U=np.ones(3))
    with pytest.raises(InputError, match="right actions of this trace"):
        who.bound(offers, [0] * len(right), trace)


def test_a_larger_risk_costs_what_the_theorem_says():
    offers, right = world(80)
    who = learner(risk=1.5)
    trace = who.play(offers, right)
    bound = who.bound(offers, right, U=np.zeros(4))
    assert trace.expected_mistakes <= bound.value
    assert bound.value == pytest.approx(sum(np.log2(len(Phi)) for Phi in offers) / 1.5)


def test_bandit_levels_stay_below_the_bound_before_the_run():
    """Λ_T ≤ σ√(0.43 Σ(K_t - 1)) + 3 + σ²K̄/ln²2, against the least likely action, with steps of many sizes."""
    reached = 0.0
    for scale, largest in itertools.product((0.05, 0.3, 1.0, 20.0), (2, 6)):
        who, counts = learner("bandit", scale=scale), []
        for Phi in rounds(150, d=3, most=largest, seed=1):
            decision = who.decide(actions=Phi)
            give_feedback(who, decision, int(decision.distribution.argmin()))
            counts.append(len(Phi))
        level, step, K = who.certificate.level, who.certificate.step, max(counts)
        assert level <= scale * np.sqrt(0.43 * (sum(counts) - len(counts))) + 3.0 + scale**2 * K / LN2**2
        reached = max(reached, level)
        assert step <= 4.0 * LN2**2 / K
        if level:
            assert step >= min(4.0 * LN2**2 / K, scale**2 / (2.0 * level)) * (1 - 1e-12)
        whole = Comparator(0.0, 1.0, len(counts), sum(counts), K)
        problem = who.problem._replace(norm=who._conditions.longest)
        assert who._engine.algorithm.bound(problem, who.settings, whole) >= who.certificate.cost(1.0)
    assert reached > 0.05


def test_bandit_bounds_are_those_of_the_certificate():
    offers, right = world(200)
    who = learner("bandit")
    trace = who.play(offers, right)
    bound = who.bound(offers, right, trace)
    assert bound.value == pytest.approx(who.certificate.bound(bound.comparator))
    assert bound.comparator.actions == sum(map(len, offers))
    assert bound.comparator.most_actions == max(map(len, offers))
    assert trace.expected_mistakes <= bound.value


def test_softmax_has_its_bound():
    offers, right = world(200)
    who = learner(algorithm="softmax")
    trace = who.play(offers, right)
    assert trace.mistakes <= who.bound(offers, right).value


@pytest.mark.parametrize("algorithm", ["squarecb", "epsilon-greedy"])
def test_regressions_have_no_bound(algorithm):
    offers, right = world(50)
    who = learner("bandit", algorithm)
    who.play(offers, right)
    with pytest.raises(NoBoundError):
        who.bound(offers, right)


def test_what_has_no_theorem_is_refused():
    offers, right = world(30)
    who = learner("bandit")
    who.play(offers, rewards=[np.linspace(0, 1, len(Phi)) for Phi in offers])
    with pytest.raises(NoBoundError, match="fractions"):
        who.bound(offers, right)
    who = learner("bandit")
    held = [who.decide(actions=Phi) for Phi in offers[:3]]
    for decision, y in zip(held, right):
        give_feedback(who, decision, y)
    with pytest.raises(NoBoundError, match="late"):
        _ = who.certificate
    who = learner("bandit", epsilon=0.1)
    give_feedback(who, who.decide(actions=offers[0]), 0)
    with pytest.raises(NoBoundError, match="uniform draws"):
        _ = who.certificate
