"""Many draws from one u."""

import numpy as np
from scipy.stats import kstest

from gaptron.kernels.dice import new_dice, normal, shake, throw, uniform
from gaptron.kernels.jit import jit


@jit
def many(dice, count, out, kind):
    for i in range(count):
        out[i] = uniform(dice) if kind == 0 else normal(dice)


def test_uniform_and_normal_have_their_laws():
    for kind, law in ((0, "uniform"), (1, "norm")):
        for u in (0.0, 0.123, 0.999):
            dice, out = new_dice(), np.empty(20_000)
            shake(dice, u, 0)
            many(dice, len(out), out, kind)
            assert kstest(out, law).pvalue > 1e-3


def test_neighbouring_u_and_other_purposes_give_unrelated_draws():
    starts = [(0.5, 0), (0.5 + 2.0**-53, 0), (0.5, 1), (0.0, 0)]
    runs = np.empty((len(starts), 5_000))
    for row, (u, purpose) in zip(runs, starts, strict=True):
        dice = new_dice()
        shake(dice, u, purpose)
        many(dice, len(row), row, 0)
    assert np.abs(np.corrcoef(runs) - np.eye(len(starts))).max() < 0.06


def test_first_draws_over_many_u_are_uniform():
    dice, first = new_dice(), []
    for u in np.random.default_rng(0).random(5_000):
        shake(dice, u, 0)
        first.append(uniform(dice))
    assert kstest(first, "uniform").pvalue > 1e-3


def test_interpreted_equals_compiled():
    dice, plain = new_dice(), new_dice()
    shake(dice, 0.3, 2)
    plain[:] = dice
    assert [throw(dice) for _ in range(5)] == [getattr(throw, "py_func", throw)(plain) for _ in range(5)]
