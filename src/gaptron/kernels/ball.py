"""Gradient steps followed by projection onto the ball ‖W‖ ≤ D, at O(1) for the projection.

The weights are stored as W = c·V together with ‖W‖², so that projecting only changes c. A ball has three numbers:
`scale` (c), `square` (‖W‖²) and `updates`, the number of updates since ‖W‖² was last computed from the weights.
Rounding errors accumulate in ‖W‖² and c may become small. Once in `REFRESH` updates, or when c < `SMALLEST`, V is
multiplied by c and the norm is recomputed, which costs O(dK).
"""

import math
from typing import Any

import numpy as np

from gaptron.kernels.compile.jit import inner, jit
from gaptron.kernels.rows import add, sqnorm
from gaptron.types import Matrix, Row, Vector, named

REFRESH = 100_000
SMALLEST = 1e-6
TINY = 1e-280  # squared gradients below this count as zero


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


@inner
def add_and_project(W: Matrix, ball: Any, radius: float, x: Row, r: Vector, z: Vector) -> None:
    """W ← W + r ⊗ x, then the nearest point of ‖W‖ ≤ radius. O(nnz) for each label with r_k ≠ 0.

    Args:
        W: V of W = c·V.
        ball: its three numbers.
        radius: of the ball; inf: no projection.
        x: the example.
        r: one coefficient per label. Overwritten.
        z: the scores ⟨W_k, x⟩ before the update, which give ⟨W, r ⊗ x⟩ = Σ r_k z_k.
    """
    if radius == math.inf:
        add(W, x, r)
        return
    c, inner, square = ball[0].scale, 0.0, 0.0
    for k in range(r.shape[0]):
        if r[k] != 0.0:
            inner += r[k] * z[k]
            square += r[k] * r[k]
            r[k] /= c
    if square > 0.0:
        add(W, x, r)
        project(W, ball, radius, inner, square * sqnorm(x))


@jit
def adaptive_step(radius: float, total: Any, square: float) -> float:
    """η = D/√(2Σ‖g‖²) with this round's ‖g‖² = square added to `total.square`; 0 where g counts as zero."""
    if square < TINY:
        return 0.0
    total[0].square += square
    return float(radius / math.sqrt(2.0 * total[0].square))


@jit
def project(W: Matrix, ball: Any, radius: float, inner: float, square: float) -> None:
    """Project after an update W ← W + G with ⟨W, G⟩ = inner (W before the update) and ‖G‖² = square."""
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
    """V ← cV and c ← 1; recompute the norm from the weights."""
    c = ball[0].scale
    total = 0.0
    for a in range(W.shape[0]):
        for b in range(W.shape[1]):
            W[a, b] *= c
            total += np.float64(W[a, b]) * np.float64(W[a, b])
    b = ball[0]
    b.scale, b.square, b.updates = 1.0, total, 0
