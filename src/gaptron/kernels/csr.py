"""Check many sparse examples in one pass before they are played."""

from typing import Any

import numpy as np

from gaptron.kernels.compile.jit import jit_reordered
from gaptron.types import Vector

ONE = np.uint64(1)


@jit_reordered
def inspect(starts: Any, indices: Any, values: Any, width: int, squares: Vector) -> bool:
    """Return whether the indices of every row increase and lie in 0..width - 1; write ‖x‖² of every row to `squares`.

    `starts` must not decrease. Positions are unsigned: for signed ones the compiled code would check whether each of
    them counts from the end.
    """
    valid = True
    for t in range(squares.shape[0]):
        first, last = np.uint64(starts[t]), np.uint64(starts[t + 1])
        square = 0.0
        for j in range(first, last):
            v = float(np.float64(values[j]))  # float32 is squared in double; overflow gives infinity
            square += v * v
        squares[t] = square
        if first < last:
            decreases = np.int32(0)
            for j in range(first, last - ONE):  # counting without an early exit is vectorised
                decreases += np.int32(indices[j] >= indices[j + ONE])
            valid = valid and decreases == 0 and indices[first] >= 0 and indices[last - ONE] < width
    return valid
