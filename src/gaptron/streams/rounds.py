"""Rounds of a stream as they are passed to a learner."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.types import Integers, Matrix


class Rounds(NamedTuple):
    """Examples, as numbers or as a table with named columns, and the feedback on each."""

    X: Any
    y: Integers  # codes
    available: NDArray[np.bool_] | None = None  # as in a `Stream`, like `rewards`
    rewards: Matrix | None = None

    def part(self, X: Any, chosen: slice | Integers) -> "Rounds":
        """Return some of the rounds, whose examples are X."""
        available, rewards = self.available, self.rewards
        return Rounds(
            X,
            self.y[chosen],
            None if available is None else available[chosen],
            None if rewards is None else rewards[chosen],
        )
