"""Newton-like steps, where every gradient is an outer product G = r ⊗ x.

Diagonal: A has one positive number per weight, in the layout of W; only the features of the example change.
Full: A is a matrix over all weights. Only its inverse P is stored; vectors over all weights are the raveled weights.
A vector has n numbers and P has n².
"""

import math
from typing import Any

import numpy as np

from gaptron.kernels.compile.jit import by_rows, jit, jit_reordered
from gaptron.kernels.linalg import discard_rounding, shrink
from gaptron.types import Matrix, Vector

TOLERANCE = 1e-13


# --- diagonal ---------------------------------------------------------------------------------------------


def _descend_dense(W: Matrix, A: Matrix, x: Any, r: Vector, h: Vector, step: float) -> None:
    for k in range(W.shape[0]):
        if r[k] != 0.0 or h[k] != 0.0:
            for i in range(W.shape[1]):
                A[k, i] += h[k] * x[i] * x[i]
                W[k, i] -= step * r[k] * x[i] / A[k, i]


def _descend_sparse(W: Matrix, A: Matrix, x: Any, r: Vector, h: Vector, step: float) -> None:
    for j in range(x.indices.shape[0]):
        w, a = W[x.indices[j]], A[x.indices[j]]
        v = x.values[j]
        for k in range(r.shape[0]):
            a[k] += h[k] * v * v
            w[k] -= step * r[k] * v / a[k]


descend = by_rows(_descend_dense, _descend_sparse)
descend.__doc__ = "Update A ← A + h ⊗ x²;  W ← W - step·(r ⊗ x)/A, entry by entry. O(nnz·K)."


def _ftrl_step_dense(W: Matrix, A: Matrix, x: Any, r: Vector, weight: float, pull: float) -> float:
    change = 0.0
    for k in range(W.shape[0]):
        for i in range(W.shape[1]):
            g, w, a = r[k] * x[i], W[k, i], A[k, i]
            A[k, i] = a + weight * g * g
            W[k, i] = (w * a - pull * g) / A[k, i]
            change += W[k, i] * W[k, i] - w * w
    return change


def _ftrl_step_sparse(W: Matrix, A: Matrix, x: Any, r: Vector, weight: float, pull: float) -> float:
    change = 0.0
    for j in range(x.indices.shape[0]):
        at, v = x.indices[j], x.values[j]
        for k in range(r.shape[0]):
            g, w, a = r[k] * v, W[at, k], A[at, k]
            A[at, k] = a + weight * g * g
            W[at, k] = (w * a - pull * g) / A[at, k]
            change += W[at, k] * W[at, k] - w * w
    return change


ftrl_step = by_rows(_ftrl_step_dense, _ftrl_step_sparse, reorder=True)
ftrl_step.__doc__ = """Update W = argmin ½⟨W, AW⟩ + ⟨b, W⟩ for A ← A + weight·G², b ← b + pull·G, G = r ⊗ x, A diagonal.

Returns the change of ‖W‖². O(nnz·K).
"""


def _score_variances_dense(A: Matrix, x: Any, v: Vector) -> None:
    for k in range(A.shape[0]):
        s = 0.0
        for i in range(A.shape[1]):
            t = np.float64(x[i])
            s += t * t / A[k, i]
        v[k] = s


def _score_variances_sparse(A: Matrix, x: Any, v: Vector) -> None:
    for k in range(v.shape[0]):
        v[k] = 0.0
    for j in range(x.indices.shape[0]):
        a = A[x.indices[j]]
        t = np.float64(x.values[j])
        square = t * t
        for k in range(v.shape[0]):
            v[k] += square / a[k]


score_variances = by_rows(_score_variances_dense, _score_variances_sparse, reorder=True)
score_variances.__doc__ = "Write v_k = Σ_i x_i²/A_ki, the variance of each score where A holds precisions. O(nnz·K)."


# --- full -------------------------------------------------------------------------------------------------


@jit
def clear(v: Vector) -> None:
    """Write v = 0."""
    for i in range(v.shape[0]):
        v[i] = 0.0


@jit_reordered
def dot(a: Vector, b: Vector) -> float:
    """Return ⟨a, b⟩."""
    s = 0.0
    for i in range(a.shape[0]):
        s += a[i] * b[i]
    return s


@jit
def times(P: Matrix, g: Vector, v: Vector) -> None:
    """Write v = Pg."""
    for i in range(P.shape[0]):
        v[i] = dot(P[i], g)


@jit
def update_inverse(P: Matrix, g: Vector, weight: float, v: Vector) -> float:
    """Update P = A⁻¹ for A ← A + weight·ggᵀ (Sherman and Morrison), weight ≥ 0. Writes v = Pg with the new P.

    Returns ⟨g, v⟩.
    """
    times(P, g, v)
    if weight > 0.0:
        growth = 1.0 + weight * discard_rounding(dot(g, g), v, dot(g, v))
        share = weight / growth
        shrink(P, v, share)
        scale = 1.0 / (growth * math.sqrt(share))  # shrink has replaced v by v·√share
        for i in range(v.shape[0]):
            v[i] *= scale
    return dot(g, v)


@jit
def solve(P: Matrix, level: float, c: Vector, w: Vector, work: Matrix) -> None:
    """Solve (I + λP)w = c by conjugate gradients, starting at w. work is a buffer, 3 × n."""
    residual, direction, image = work[0], work[1], work[2]
    times(P, w, image)
    for i in range(w.shape[0]):
        residual[i] = c[i] - w[i] - level * image[i]
        direction[i] = residual[i]
    square, goal = dot(residual, residual), TOLERANCE * TOLERANCE * dot(c, c)
    for _ in range(2 * w.shape[0] + 10):
        if square <= goal:
            return
        times(P, direction, image)
        curvature = dot(direction, direction) + level * dot(direction, image)
        if not 0.0 < curvature < math.inf:  # beyond what floating-point numbers hold
            return
        step = square / curvature
        for i in range(w.shape[0]):
            w[i] += step * direction[i]
            residual[i] -= step * (direction[i] + level * image[i])
        before, square = square, dot(residual, residual)
        for i in range(w.shape[0]):
            direction[i] = residual[i] + square / before * direction[i]


@jit
def project_onto_ball(P: Matrix, target: Vector, radius: float, w: Vector, work: Matrix) -> float:
    """Write w = argmin ⟨w - target, A(w - target)⟩ over ‖w‖ ≤ radius, A = P⁻¹. Returns λ ≥ 0, 0 for a target inside.

    w = (I + λP)⁻¹target with the λ for which ‖w‖ = radius: Newton's method on 1/‖w‖, which increases from λ = 0 to the
    root without passing it. O(n²) for each of a few dozen products with P; work is a buffer, 5 × n.
    """
    n = target.shape[0]
    for i in range(n):
        w[i] = target[i]
    size, level = math.sqrt(dot(w, w)), 0.0
    if size <= radius:
        return level
    image, slope = work[3], work[4]
    for _ in range(100):
        times(P, w, image)
        for i in range(n):
            slope[i] = image[i]
        solve(P, level, image, slope, work[:3])
        fall = dot(w, slope)
        if not 0.0 < fall < math.inf:  # beyond what floating-point numbers hold: w is scaled instead
            break
        level += size * size / fall * (size - radius) / radius
        solve(P, level, target, w, work[:3])
        size = math.sqrt(dot(w, w))
        if size <= radius * (1.0 + 1e-12):
            break
    for i in range(n):
        w[i] *= min(1.0, radius / size)
    return level
