"""Settings, numbers and rows as plain trees and back: to the bit."""

import math
from typing import NamedTuple

import numpy as np
import pytest

from gaptron.data import state_tree
from gaptron.types import named


class Settings(NamedTuple):
    step: float
    guard: float
    delay: int


RECOMMENDED = Settings(0.1, math.inf, 3)


def test_settings_are_those_of_the_file_to_the_last_bit():
    """Another machine may round a formula differently, and its model must continue as it began."""
    tree = {"step": math.nextafter(0.1, 1.0), "guard": math.inf, "delay": 3}
    assert state_tree.same_settings(RECOMMENDED, tree) == Settings(**tree) != RECOMMENDED


@pytest.mark.parametrize(
    "other",
    [{"step": 0.1001}, {"step": -0.1}, {"step": math.nan}, {"guard": 1e308}, {"guard": -math.inf}, {"delay": 4}],
)
def test_other_settings_are_refused(other):
    with pytest.raises(ValueError, match=f"its setting {next(iter(other))} is"):
        state_tree.same_settings(RECOMMENDED, RECOMMENDED._asdict() | other)


def test_a_number_may_be_infinite_only_where_a_new_state_has_it():
    empty = named(least=math.inf, total=0.0, rounds=0)
    tree = {"least": math.inf, "total": 2.0, "rounds": 7}
    assert state_tree.spread(state_tree.fill(empty, tree, "state")) == tree
    for name, value in (("total", math.inf), ("total", math.nan), ("least", -math.inf), ("least", math.nan)):
        with pytest.raises(ValueError, match=f"state.{name}=.* is not a finite number"):
            state_tree.fill(named(least=math.inf, total=0.0, rounds=0), tree | {name: value}, "state")


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_come_back_to_the_bit(sparse):
    """A negative zero is not a zero: 1/x tells them apart."""
    rows = [np.array([0.0, -0.0, 1.5, 0.0]), np.zeros(4), np.array([5e-324, 0.0, 0.0, -0.0])]
    back = state_tree.rows_from(state_tree.rows_of(rows), 3, sparse, 4)
    for row, same in zip(rows, back):
        dense = np.zeros(4)
        if sparse:
            dense[same.indices] = same.values
        assert (dense if sparse else same).tobytes() == row.tobytes()
