"""Running sums: rounds that are added one by one give the intervals of the whole arrays."""

import numpy as np
import pytest

from gaptron.offpolicy.confidence_sequence import lower_bound, proven_interval, proven_interval_of_sums
from gaptron.offpolicy.estimates import on_policy, on_policy_of_sums
from gaptron.offpolicy.sums import MistakeSums, TermSums, WeightedSums, term_sums


@pytest.mark.parametrize("fractions", [False, True])
def test_mistakes_one_by_one_give_the_interval_of_the_array(fractions):
    rng = np.random.default_rng(4)
    mistakes = rng.random(500) if fractions else (rng.random(500) < 0.2).astype(float)
    sums = MistakeSums()
    for mistake in mistakes:
        sums = sums.add(float(mistake))
    assert on_policy_of_sums(sums, 0.95)[1:] == pytest.approx(on_policy(mistakes, 0.95)[1:], rel=1e-9)


@pytest.mark.parametrize("share", [1.0, 0.3, 0.01])
def test_weighted_mistakes_one_by_one_give_the_proven_interval_of_the_array(share):
    """Rounds with weight 0 are added all at once, before the next one that has a weight."""
    rng = np.random.default_rng(9)
    propensity, mistakes = rng.uniform(share / 2.0, share, 2000), rng.random(2000)
    played = rng.random(2000) < propensity
    weights = played / propensity
    sums, before = WeightedSums(), 0
    for t in np.flatnonzero(played):
        sums = sums.add_zeros(int(t) - before).add(float(weights[t]), float(mistakes[t]))
        before = int(t) + 1
    sums = sums.add_zeros(len(played) - before)
    expected = proven_interval(weights, mistakes, 0.95)
    assert proven_interval_of_sums(sums, 0.95)[1:] == pytest.approx(expected[1:], rel=1e-9)
    assert expected.low < expected.high
    assert sums.weight == pytest.approx(weights.sum()) and sums.add_zeros(0) is sums


@pytest.mark.parametrize("first", [0.0, 0.4, 3.0, 500.0, 1e6])
@pytest.mark.parametrize("zeros", [1, 2, 7, 900])
def test_zeros_at_once_are_zeros_one_by_one(first, zeros):
    expected = term_sums(np.array([first, *[0.0] * zeros]))
    assert TermSums().add(first).add_zeros(zeros) == pytest.approx(expected, rel=1e-9)


def test_a_million_rounds_lose_no_digit_that_matters():
    """One play in a thousand for 10^6 rounds, so that the sums of 1/t² are differences of tiny numbers."""
    played, gap = 1000, 1000
    terms = np.zeros(played * gap)
    terms[gap - 1 :: gap] = 1000.0
    sums = TermSums()
    for _ in range(played):
        sums = sums.add_zeros(gap - 1).add(1000.0)
    assert sums == pytest.approx(term_sums(terms), rel=1e-9)
    assert 0.7 < lower_bound(terms, 0.025) < 1.0
