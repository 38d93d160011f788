"""Projection onto the ball ‖W‖ ≤ D in O(1), by keeping W = c·V and the square of its norm.

A ball is three numbers: c, ‖W‖², and how many updates ago ‖W‖² was last computed from the weights
themselves. Shrinking W shrinks c alone. Rounding makes ‖W‖² drift, and c may become small: so now and then
V takes up c and the norm is computed afresh, O(dK) once in `REFRESH` updates.
"""

import math

import numpy as np

from gaptron.kernels.jit import jit
from gaptron.types import Matrix, Vector

REFRESH = 100_000
SMALLEST = 1e-6


def new_ball() -> Vector:
    """The ball's three numbers before the first update."""
    return np.array([1.0, 0.0, 0.0])


@jit
def scale(ball: Vector, z: Vector) -> None:
    """Turn ⟨V_k, x⟩ into ⟨W_k, x⟩."""
    c = ball[0]
    if c != 1.0:
        for k in range(z.shape[0]):
            z[k] *= c


@jit
def moved(W: Matrix, ball: Vector, radius: float, inner: float, square: float) -> None:
    """After W ← W + G with ⟨W, G⟩ = inner (before the update) and ‖G‖² = square: project, in O(1)."""
    ball[1] += 2.0 * inner + square
    ball[2] += 1.0
    if ball[2] >= REFRESH or ball[0] < SMALLEST:
        refresh(W, ball)
    if ball[1] > radius * radius:
        ball[0] *= radius / math.sqrt(ball[1])
        ball[1] = radius * radius


@jit
def refresh(W: Matrix, ball: Vector) -> None:
    """V ← cV, c ← 1, and the norm from the weights themselves."""
    c = ball[0]
    total = 0.0
    for a in range(W.shape[0]):
        for b in range(W.shape[1]):
            W[a, b] *= c
            total += W[a, b] * W[a, b]
    ball[0], ball[1], ball[2] = 1.0, total, 0.0
