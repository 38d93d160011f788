"""A look at many sparse rows before they are played: one pass over what they store."""

from typing import Any

import numpy as np

from gaptron.kernels.jit import jit_reordered
from gaptron.types import Vector

ONE = np.uint64(1)


@jit_reordered
def inspect(starts: Any, indices: Any, values: Any, width: int, squares: Vector) -> bool:
    """Do the indices of every row go up, from 0 to below the width? Writes ‖x‖² of every row.

    `starts` must not go down. Places are unsigned: the compiler would otherwise look at each for a count from the end.
    """
    tidy = True
    for t in range(squares.shape[0]):
        first, last = np.uint64(starts[t]), np.uint64(starts[t + 1])
        square = 0.0
        for j in range(first, last):
            v = float(np.float64(values[j]))  # float32 is squared in double; past all floats it is infinite
            square += v * v
        squares[t] = square
        if first < last:
            down = np.int32(0)
            for j in range(first, last - ONE):  # counting instead of stopping: several at once
                down += np.int32(indices[j] >= indices[j + ONE])
            tidy = tidy and down == 0 and indices[first] >= 0 and indices[last - ONE] < width
    return tidy
