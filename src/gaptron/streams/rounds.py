"""Some rounds of a stream, as they are handed to a learner."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.types import Integers, Matrix


class Rounds(NamedTuple):
    """Rows, numbers or given by name, and what belongs to each."""

    X: Any
    y: Integers  # codes
    among: NDArray[np.bool_] | None = None  # the last two as in a `Stream`
    worth: Matrix | None = None

    def part(self, X: Any, chosen: slice | Integers) -> "Rounds":
        """Some of them, whose rows are X."""
        among, worth = self.among, self.worth
        return Rounds(
            X, self.y[chosen], None if among is None else among[chosen], None if worth is None else worth[chosen]
        )
