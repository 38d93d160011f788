"""The bound on excess mistakes over a given rule, in small worlds whose truth is known."""

import numpy as np
import pytest

from gaptron import InputError, SettingError
from gaptron.offpolicy import Log, max_excess_mistakes
from tests.offpolicy.worlds import some_log

K, T, DELTA = 5, 2000, 0.2


def world(seed, floor, reacts=False):
    """(log, rule, truth): both often err, with other labels; the log plays each with probability `floor` at least."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(K, size=T)
    rule = np.where(rng.random(T) < 0.3, truth, rng.integers(K, size=T))
    favourite = np.where(rng.random(T) < 0.3, truth, rng.integers(K, size=T))
    P = np.full((T, K), floor)
    P[np.arange(T), favourite] += 1.0 - K * floor
    played = (rng.random((T, 1)) > P.cumsum(axis=1)[:, :-1]).sum(axis=1)
    if reacts:
        rule = np.where(played == truth, (truth + 1) % K, truth)  # right just where the draw was wrong
    propensities = P[np.arange(T), played]
    log = Log.from_arrays(np.ones((T, 1)), played, played == truth, propensities, classes=range(K), distribution=P)
    return log, rule, truth


def regret(log, rule, truth):
    return int((log.codes != truth).sum() - (rule != truth).sum())


@pytest.mark.parametrize("floor", [0.005, 0.05, 0.1])
def test_it_fails_no_more_often_than_it_says_and_often_says_more_than_the_count(floor):
    failed, tighter = 0, 0
    for seed in range(100):
        log, rule, truth = world(seed, floor)
        most, count = max_excess_mistakes(log, rule, delta=DELTA), log.count_against(rule).more
        failed += regret(log, rule, truth) > most
        tighter += most < count
        assert regret(log, rule, truth) <= count and most <= count
    assert failed <= 100 * DELTA
    assert tighter <= 10 if floor == 0.005 else tighter >= 80


def test_a_rule_made_from_the_draws_breaks_it_and_not_the_count():
    """Why the docstring asks for a rule that does not know the draws."""
    broken = 0
    for seed in range(20):
        log, rule, truth = world(seed, 0.1, reacts=True)
        broken += regret(log, rule, truth) > max_excess_mistakes(log, rule, delta=DELTA)
        assert regret(log, rule, truth) <= log.count_against(rule).more
    assert broken > 15


@pytest.mark.parametrize("propensity", [0.5, 0.25, 0.01])
def test_the_bound_by_hand_where_the_rule_is_never_found_correct(propensity):
    """Its label is drawn a hundred times and always wrong: only the budget ln(18/δ) is left, divided by -ln(1 - fβ).

    δ is shared by 6 values of f and 3 of β. The largest β is the best one, with the largest f that the logger kept to.
    """
    P = np.tile([1.0 - propensity, propensity, 0.0], (200, 1))
    codes, wrong = np.arange(200) % 2, np.zeros(200)
    log = Log.from_arrays(np.ones((200, 1)), codes, wrong, P[np.arange(200), codes], classes=range(3), distribution=P)
    assert log.count_against([1] * 200).more == 100
    floor = max(f for f in (0.5, 0.2, 0.1, 0.05, 0.02, 0.01) if f <= propensity)
    by_hand = np.log(18 / 0.05) / -np.log1p(-0.9 * floor)
    assert max_excess_mistakes(log, [1] * 200, delta=0.05) == pytest.approx(min(by_hand, 100))
    assert (by_hand < 100) == (propensity > 0.01)


def test_with_several_right_labels():
    """The rule's label is always right; ours too, so that nobody errs."""
    rng = np.random.default_rng(0)
    P = np.full((T, 2), 0.5)
    log = Log.from_arrays(
        np.ones((T, 1)), rng.integers(2, size=T), np.ones(T), np.full(T, 0.5), classes=[0, 1], distribution=P
    )
    assert max_excess_mistakes(log, [1] * T, several_right=True) == 0.0
    assert max_excess_mistakes(log, [1] * T) < -100  # true only if one label is right in a round


def test_what_cannot_be_said_is_refused():
    log = some_log(whole=False, classes=(0, 1, 2))
    with pytest.raises(InputError, match="probability of every label"):
        max_excess_mistakes(log, [0] * 40)
    with pytest.raises(SettingError, match="delta=0 must lie between 0 and 1"):
        max_excess_mistakes(some_log(classes=(0, 1, 2)), [0] * 40, delta=0)
    with pytest.raises(InputError, match="only rewards of 1"):
        max_excess_mistakes(some_log(classes=(0, 1, 2), fractional=True), [0] * 40)
