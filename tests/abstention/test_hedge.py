"""AdaHedge's numbers against its definition, and its regret against its theorem."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as limits
from hypothesis import strategies as st

from gaptron.abstention import Abstainer
from gaptron.abstention.hedge import weigh
from tests.abstention.plain import expert_losses, growing, hedge
from tests.abstention.streams import ADVICE, random_advice

GRID = st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0])  # sums are exact, so ties are ties in every order of adding


@st.composite
def advice(draw, values=GRID, most=30):
    d, T = draw(st.integers(1, 5)), draw(st.integers(1, most))
    X = draw(st.lists(st.lists(values, min_size=d, max_size=d), min_size=T, max_size=T))
    y = draw(st.lists(st.sampled_from([-1, 1]), min_size=T, max_size=T))
    return np.array(X), np.array(y)


def played(X, y, algorithm="adahedge", cost=0.25):
    abstainer = Abstainer(X.shape[1], algorithm, cost=cost, seed=0)
    weights, gaps = [], []
    for t in range(len(y)):
        weights.append(abstainer.weights)
        abstainer.play(X[t : t + 1], y[t : t + 1])
        gaps.append(abstainer._experts.totals[0].mixability)
    return abstainer, weights, gaps


def agrees(X, y, algorithm="adahedge", cost=0.25, tolerance=1e-9):
    abstainer, weights, gaps = played(X, y, algorithm, cost)
    truth = hedge(expert_losses(X, y).tolist(), None if algorithm == "adahedge" else 1 - 2 * cost)
    np.testing.assert_allclose(weights, truth.weights, rtol=tolerance, atol=tolerance)
    assert gaps[-1] == pytest.approx(truth.mixability, rel=tolerance, abs=tolerance)
    assert abstainer._experts.totals[0].variance == pytest.approx(truth.variance, rel=tolerance, abs=tolerance)
    assert growing(gaps)


@given(advice())
@example((np.zeros((7, 3)), np.ones(7, dtype=int)))
@example((np.ones((7, 3)), np.ones(7, dtype=int)))
@example((np.tile([1.0, 1.0, -1.0], (9, 1)), np.ones(9, dtype=int)))
@example((np.array([[1.0, -1.0], [-1.0, 1.0]] * 5), np.ones(10, dtype=int)))
@limits(max_examples=100)
def test_adahedge_is_its_definition_ties_and_all(case):
    agrees(*case)


@given(advice())
@limits(max_examples=50)
def test_exponential_weights_are_their_definition(case):
    agrees(*case, algorithm="exponential-weights")


@pytest.mark.parametrize("name", ADVICE)
def test_longer_runs_agree_too(name):
    agrees(*ADVICE[name](T=400), tolerance=1e-7)


def test_before_any_loss_the_leaders_share_alike():
    abstainer = Abstainer(4, cost=0.25)
    assert abstainer.eta == math.inf
    np.testing.assert_array_equal(abstainer.weights, [0.25] * 4)
    abstainer.play(np.ones((5, 4)), np.ones(5))  # all right: all losses zero
    assert abstainer.eta == math.inf and abstainer.certificate == 0.0
    np.testing.assert_array_equal(abstainer.weights, [0.25] * 4)


def test_a_single_expert_is_followed_without_regret():
    X, y = random_advice(50, 1)
    abstainer = Abstainer(1, cost=0.5, seed=0)
    abstainer.play(X, y)
    assert abstainer.eta == math.inf
    assert abstainer.expected_loss == pytest.approx(abstainer.expert_losses[0])
    assert Abstainer(1, "exponential-weights", cost=0.2).weights == [1.0]


def test_at_an_infinite_step_only_leaders_count():
    """While Δ = 0 every expert leads, but for rounding; so this is seen only here."""
    w = np.empty(4)
    assert weigh(np.array([0.5, 0.0, 1e-300, 0.0]), math.inf, w) == 2.0
    np.testing.assert_array_equal(w, [0.0, 1.0, 0.0, 1.0])


@given(advice(values=st.floats(-1.0, 1.0), most=60))
@limits(max_examples=100)
def test_the_regret_of_the_vote_keeps_its_bound(case):
    keeps_the_bound(*case)


@pytest.mark.parametrize("name", ADVICE)
@pytest.mark.parametrize("rounds", [10, 3000])
def test_the_regret_of_the_vote_keeps_its_bound_on_hostile_advice(name, rounds):
    keeps_the_bound(*ADVICE[name](T=rounds))


def keeps_the_bound(X, y):
    """R ≤ 2Δ ≤ 2√(V ln d) + (4/3) ln d + 2, the loss being that of ŷ itself: a cost of ½ is just that."""
    d = X.shape[1]
    abstainer = Abstainer(d, cost=0.5, seed=0)
    trace = abstainer.play(X, y)
    lost = 0.5 * (1.0 - y * trace.votes)
    regret = lost.sum() - abstainer.expert_losses.min()
    totals = abstainer._experts.totals[0]
    proved = 2 * math.sqrt(totals.variance * math.log(d)) + 4 / 3 * math.log(d) + 2
    assert regret <= 2 * totals.mixability + 1e-9
    assert 2 * totals.mixability <= proved + 1e-9
    assert abstainer.certificate == pytest.approx(2 * totals.mixability, abs=1e-9)


def test_a_long_run_stays_exact():
    """After 2·10⁵ rounds the losses are large; a million-fold cancellation would show in Δ."""
    X, y = random_advice(200_000, 3, votes=True)
    abstainer = Abstainer(3, "exponential-weights", cost=0.1, seed=0)
    abstainer.play(X, y)
    start = abstainer._experts.totals[0].mixability
    # From here the experts agree: h = m exactly, so Δ may not move.
    abstainer.play(np.ones((1000, 3)), np.ones(1000))
    abstainer.play(np.ones((1000, 3)), -np.ones(1000))
    assert abstainer._experts.totals[0].mixability - start <= 1e-11
