"""Projection onto the ball ‖W‖ ≤ D in O(1), by keeping W = c·V and the square of its norm.

A ball is three numbers: `scale` (c), `square` (‖W‖²), and `updates`, how many since ‖W‖² was last computed from the
weights themselves. Shrinking W shrinks c alone. Rounding makes ‖W‖² drift, and c may become small: so now and then V
takes up c and the norm is computed afresh, O(dK) once in `REFRESH` updates.
"""

import math
from typing import Any

from gaptron.kernels.jit import jit
from gaptron.types import Matrix, Vector, named

REFRESH = 100_000
SMALLEST = 1e-6


def new_ball() -> Any:
    """The ball's three numbers before the first update."""
    return named(scale=1.0, square=0.0, updates=0)


@jit
def scale(ball: Any, z: Vector) -> None:
    """Turn ⟨V_k, x⟩ into ⟨W_k, x⟩."""
    c = ball[0].scale
    if c != 1.0:
        for k in range(z.shape[0]):
            z[k] *= c


@jit
def moved(W: Matrix, ball: Any, radius: float, inner: float, square: float) -> None:
    """After W ← W + G with ⟨W, G⟩ = inner (before the update) and ‖G‖² = square: project, in O(1)."""
    b = ball[0]
    b.square += 2.0 * inner + square
    b.updates += 1
    if b.updates >= REFRESH or b.scale < SMALLEST:
        refresh(W, ball)
    if b.square > radius * radius:
        b.scale *= radius / math.sqrt(b.square)
        b.square = radius * radius


@jit
def refresh(W: Matrix, ball: Any) -> None:
    """V ← cV, c ← 1, and the norm from the weights themselves."""
    c = ball[0].scale
    total = 0.0
    for a in range(W.shape[0]):
        for b in range(W.shape[1]):
            W[a, b] *= c
            total += W[a, b] * W[a, b]
    b = ball[0]
    b.scale, b.square, b.updates = 1.0, total, 0
