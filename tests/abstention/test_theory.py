"""The lemma by enumeration, the theorems on kind and hostile advice, and what constant regret looks like."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from gaptron.abstention import Abstainer
from gaptron.abstention.adahedge import regret, varying_costs
from gaptron.abstention.rounds import draw, expected_loss, probabilities
from gaptron.errors import NoBoundError
from tests.abstention.plain import expected_loss as defined_loss
from tests.abstention.streams import ADVICE, against_the_vote, halves, one_good, random_advice
from tests.abstention.test_hedge import advice

VOTES = np.linspace(-1.0, 1.0, 41)
COSTS = [0.0, 0.1, 0.25, 0.4, 0.49, 0.5, 0.8, 3.0]
ALGORITHMS = ["adahedge", "exponential-weights"]


# --- one round, enumerated --------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("y", [-1, 1])
def test_the_round_costs_what_the_paper_says(cost, y):
    for vote in VOTES:
        b, own = 1 - abs(vote), 0.5 * (1 - y * vote)
        assert expected_loss(vote, False, y, cost) == pytest.approx(defined_loss(vote, y, cost), abs=1e-15)
        # The lemma's identity: in both of the proof's cases the round saves (½ - c)b over the vote's own loss.
        assert expected_loss(vote, False, y, cost) - own == pytest.approx((cost - 0.5) * b, abs=1e-15)
        # A coin makes abstaining cost ½ exactly: the vote's own loss.
        assert expected_loss(vote, True, y, cost) == pytest.approx(own, abs=1e-15)


def test_the_abstention_gap_is_never_positive_up_to_its_step_and_positive_beyond():
    for cost in (0.0, 0.1, 0.25, 0.4, 0.49):
        worst = {}
        for scale in (1.0, 1.05):
            eta = scale * (1 - 2 * cost)
            worst[scale] = max(
                expected_loss(vote, False, y, cost) + eta * 0.25 * (1 - vote * vote) - 0.5 * (1 - y * vote)
                for vote in np.linspace(-1, 1, 2001)
                for y in (-1, 1)
            )
        assert worst[1.0] <= 1e-15
        assert worst[1.05] > 0.0


def test_the_variance_is_at_most_half_the_probability_to_abstain():
    """Bhatia and Davis: v ≤ ¼(1 - ŷ²) ≤ ½(1 - |ŷ|), with equality for experts at ±1."""
    corners = [-1.0, -0.5, 0.0, 0.7, 1.0]
    for x in product(corners, repeat=3):
        for p in ([1 / 3] * 3, [0.5, 0.3, 0.2], [0.98, 0.01, 0.01]):
            mean = np.dot(p, x)
            v = 0.25 * np.dot(p, (np.array(x) - mean) ** 2)
            assert v <= 0.25 * (1 - mean**2) + 1e-15 <= 0.5 * (1 - abs(mean)) + 2e-15


@pytest.mark.parametrize("cost", [0.0, 0.05, 0.2, 0.35, 0.49])
def test_exponential_weights_lose_no_more_than_their_mix_loss(cost):
    """The inequality behind ln d/(1 - 2c), for two experts of any weight that say anything."""
    eta = 1 - 2 * cost
    for p, a, b, y in product(np.linspace(0, 1, 21), VOTES[::4], VOTES[::4], (-1, 1)):
        mix = -math.log(p * math.exp(-eta * (1 - y * a) / 2) + (1 - p) * math.exp(-eta * (1 - y * b) / 2)) / eta
        assert expected_loss(p * a + (1 - p) * b, False, y, cost) <= mix + 1e-12


@pytest.mark.parametrize("coin", [False, True])
def test_the_expected_loss_is_the_mean_over_all_draws(coin):
    u = (np.arange(20_000) + 0.5) / 20_000
    for vote, y, cost in product([-1.0, -0.35, 0.0, 0.6, 1.0], (-1, 1), (0.0, 0.3, 0.9)):
        drawn = np.array([draw(vote, coin, one) for one in u[::10]])
        loss = np.where(drawn == 0, cost, drawn == -y)
        assert loss.mean() == pytest.approx(expected_loss(vote, coin, y, cost), abs=1e-3)
        assert sum(probabilities(vote, coin)) == pytest.approx(1.0, abs=1e-15)
        assert not (coin and (drawn == 0).any())


# --- the theorems -----------------------------------------------------------------------------------------


def proved(abstainer, trace):
    """Everything that is promised of a run holds, and each promise is at least as tight as the one after it."""
    bound, plain = abstainer.bound(trace), abstainer.bound()
    assert abstainer.expected_loss == pytest.approx(trace.expected_loss, abs=1e-8)
    regrets = abstainer.expected_loss - bound.expert_losses
    assert bound.measured == regrets.max() == regrets[bound.expert]
    assert bound.value == pytest.approx(bound.expert_losses.min() + bound.regret)
    assert bound.measured <= abstainer.certificate + 1e-8
    assert abstainer.certificate <= bound.regret + 1e-8
    assert bound.regret <= plain.regret + 1e-9
    return bound


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", ADVICE)
@pytest.mark.parametrize("cost", [0.0, 0.2, 0.45, 0.49])
def test_the_bound_holds_for_one_cost(algorithm, name, cost):
    X, y = ADVICE[name](T=2000)
    abstainer = Abstainer(X.shape[1], algorithm, cost=cost, seed=0)
    bound = proved(abstainer, abstainer.play(X, y))
    d = X.shape[1]
    assert bound.regret <= math.log(d) / (1 - 2 * cost) + 4 / 3 * math.log(d) + 2 + 1e-9


@pytest.mark.parametrize("name", ADVICE)
@pytest.mark.parametrize("high", [0.45, 0.5, 1.5])
def test_the_bound_holds_for_costs_that_vary_and_exceed_a_half(name, high):
    X, y = ADVICE[name](T=2000)
    costs = np.random.default_rng(1).uniform(0.0, high, 2000)
    abstainer = Abstainer(X.shape[1], seed=0)
    trace = abstainer.play(X, y, costs)
    proved(abstainer, trace)
    assert trace.costs.max() <= 0.5


@given(advice(values=st.floats(-1.0, 1.0), most=40), st.data())
@limits(max_examples=60)
def test_the_bound_holds_whatever_comes(case, data):
    X, y = case
    costs = data.draw(st.lists(st.floats(0.0, 2.0), min_size=len(y), max_size=len(y)))
    abstainer = Abstainer(X.shape[1], seed=0)
    proved(abstainer, abstainer.play(X, y, costs))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("cost", [0.1, 0.4])
def test_the_bound_holds_against_labels_that_defy_the_vote(algorithm, cost):
    abstainer = Abstainer(3, algorithm, cost=cost, seed=0)
    against_the_vote(abstainer)
    bound = abstainer.bound()
    assert bound.measured <= abstainer.certificate + 1e-9 <= bound.regret + 2e-9


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_below_a_half_the_regret_is_constant_and_at_a_half_it_grows(algorithm):
    """T grows a hundredfold; the worst of many coin-tossing streams."""

    def worst(cost, T):
        found = []
        for seed in range(12):
            abstainer = Abstainer(2, algorithm, cost=cost, seed=0)
            abstainer.play(*halves(T, seed))
            found.append(abstainer.expected_loss - abstainer.expert_losses.min())
        return max(found)

    assert worst(0.3, 50_000) <= math.log(2) / 0.4 + 4 / 3 * math.log(2) + 2
    assert worst(0.3, 50_000) <= max(worst(0.3, 500), 1.0)
    if algorithm == "adahedge":
        assert worst(0.5, 50_000) > 5 * worst(0.5, 500) > 25


def test_varying_is_the_infimum_it_says():
    rng = np.random.default_rng(0)
    for costs in (rng.uniform(0, 0.5, 40), rng.uniform(0, 1.0, 40), np.full(9, 0.3), np.array([0.5]), np.zeros(3)):
        for ln_d in (math.log(2), math.log(1000)):
            eta = np.geomspace(1e-3, 1e3, 200_001)
            f = ln_d / eta
            for c in np.minimum(costs, 0.5):
                f = f + 0.5 * np.maximum(eta - (1 - 2 * c), 0.0)
            assert f.min() * (1 - 1e-4) <= varying_costs(ln_d, costs) <= f.min() * (1 + 1e-12)


def test_one_expensive_round_in_a_thousand_does_not_spoil_the_bound():
    costs = np.full(1000, 0.1)
    costs[500] = 0.5
    assert regret(4, math.inf, 1e9, 0.5) > 1e4
    assert regret(4, math.inf, 1e9, 0.5, costs) <= math.log(4) / 0.8 + 0.4 + 4 / 3 * math.log(4) + 2 + 1e-9


def test_costs_up_to_the_promise_keep_neu_and_zhivotovskiys_bound_and_larger_ones_end_it():
    X, y = one_good()
    costs = np.random.default_rng(0).uniform(0.0, 0.2, len(y))
    abstainer = Abstainer(X.shape[1], "exponential-weights", cost=0.2, seed=0)
    proved(abstainer, abstainer.play(X, y, costs))
    abstainer.play(X, y, 0.3)
    with pytest.raises(NoBoundError, match=r"0\.3.*at most 0\.2"):
        abstainer.bound()
    assert abstainer.expected_loss - abstainer.expert_losses.min() <= abstainer.certificate + 1e-9


# --- late feedback and late costs --------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", ADVICE)
def test_the_certificate_survives_late_feedback_in_any_order(algorithm, name):
    X, y = ADVICE[name](T=300)
    abstainer = Abstainer(X.shape[1], algorithm, cost=0.3, seed=0)
    rng, waiting = np.random.default_rng(0), []
    for t in range(len(y)):
        waiting.append((abstainer.decide(X[t]), int(y[t])))
        while len(waiting) > rng.integers(1, 40):
            abstainer.learn(*waiting.pop(rng.integers(len(waiting))))
    for pair in waiting:
        abstainer.learn(*pair)
    assert abstainer.expected_loss - abstainer.expert_losses.min() <= abstainer.certificate + 1e-9
    with pytest.raises(NoBoundError, match="late"):
        abstainer.bound()


def test_a_cost_above_a_half_known_too_late_ends_the_theorem_but_not_the_certificate():
    X, y = random_advice(200)
    abstainer = Abstainer(5, seed=0)
    trace = abstainer.play(X, y, 0.9, known=False)
    assert trace.abstentions and trace.costs.max() == 0.9
    assert abstainer.expected_loss - abstainer.expert_losses.min() <= abstainer.certificate + 1e-9
    with pytest.raises(NoBoundError, match="after its prediction"):
        abstainer.bound()


def test_late_costs_up_to_a_half_change_nothing():
    X, y = random_advice(200)
    costs = np.random.default_rng(0).uniform(0.0, 0.5, 200)
    early, late = Abstainer(5, seed=0), Abstainer(5, seed=0)
    one, two = early.play(X, y, costs), late.play(X, y, costs, known=False)
    np.testing.assert_array_equal(one.predictions, two.predictions)
    assert early.bound(one).regret == late.bound(two).regret
