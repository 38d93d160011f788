"""Running standardisation against a few lines of Python."""

import math

import numpy as np
import pytest

from gaptron.kernels.features import FIRST_EPOCH, GOAL, MEAN, SETTLED, VARIANCE, N, standardised


def new_stats(values=()):
    stats = np.zeros((1, 7))
    stats[0, GOAL] = FIRST_EPOCH
    for x in values:
        standardised(stats, 0, x, True)
    return stats


@pytest.mark.parametrize("count", [SETTLED - 1, SETTLED, SETTLED + 1])
def test_outliers_are_clipped_before_they_count_once_ten_values_are_known(count):
    values = [float(i % 2) for i in range(count)]
    stats = new_stats(values)
    mean, deviation = np.mean(values), np.std(values)
    assert (stats[0, MEAN], stats[0, VARIANCE]) == (pytest.approx(mean), pytest.approx(deviation**2))
    assert standardised(stats, 0, 100.0, True) == 4.0  # the encoded value is clipped in any case
    counted = [*values, mean + 4 * deviation if count >= SETTLED else 100.0]
    assert (stats[0, MEAN], stats[0, VARIANCE]) == (pytest.approx(np.mean(counted)), pytest.approx(np.var(counted)))


def test_an_epoch_replaces_all_that_was_before_it():
    """The first epoch starts with the second value, which is the first one that differs."""
    rng = np.random.default_rng(0)
    early, late = rng.normal(size=17), 1.0 + rng.normal(size=32)
    stats = new_stats([*early, *late[:-1]])
    assert stats[0, N] == 47 and stats[0, GOAL] == 32
    standardised(stats, 0, late[-1], True)
    assert stats[0, N] == 32 and stats[0, GOAL] == 64
    assert (stats[0, MEAN], stats[0, VARIANCE]) == (pytest.approx(late.mean()), pytest.approx(late.var()))


def test_an_epoch_of_one_value_is_skipped():
    """Otherwise the deviation would be zero, and the next other value a jump by one standard deviation."""
    values = [float(i % 2) for i in range(17)] + [0.5] * 32
    stats = new_stats(values)
    assert stats[0, N] == 48 and stats[0, GOAL] == 32
    assert stats[0, VARIANCE] == pytest.approx(np.var(values[1:]))
    assert standardised(stats, 0, 1.0, False) == pytest.approx(0.5 / math.sqrt(stats[0, VARIANCE]))


def test_a_value_that_is_not_learned_from_changes_nothing():
    stats = new_stats([3.0, 1.0, 2.0])
    before = stats.copy()
    standardised(stats, 0, 7.0, False)
    np.testing.assert_array_equal(stats, before)
