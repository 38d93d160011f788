"""Verbs of Newton-like steps, where every gradient is an outer product G = r ⊗ x.

Diagonal: A holds one positive number per weight, in the layout of W; only the row's coordinates are touched.
Full: A is a matrix over all weights and is never kept, only its inverse P; vectors over all weights are the raveled
weights. n numbers in a vector, n² in P.
"""

import math
from typing import Any

import numpy as np

from gaptron.kernels.jit import REORDER, by_rows, jit, jit_reordered
from gaptron.kernels.linalg import shrink, sure
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
descend.__doc__ = "A ← A + h ⊗ x²;  W ← W - step·(r ⊗ x)/A, entry by entry. O(nnz·K)."


def _follow_dense(W: Matrix, A: Matrix, x: Any, r: Vector, weight: float, pull: float) -> float:
    change = 0.0
    for k in range(W.shape[0]):
        for i in range(W.shape[1]):
            g, w, a = r[k] * x[i], W[k, i], A[k, i]
            A[k, i] = a + weight * g * g
            W[k, i] = (w * a - pull * g) / A[k, i]
            change += W[k, i] * W[k, i] - w * w
    return change


def _follow_sparse(W: Matrix, A: Matrix, x: Any, r: Vector, weight: float, pull: float) -> float:
    change = 0.0
    for j in range(x.indices.shape[0]):
        at, v = x.indices[j], x.values[j]
        for k in range(r.shape[0]):
            g, w, a = r[k] * v, W[at, k], A[at, k]
            A[at, k] = a + weight * g * g
            W[at, k] = (w * a - pull * g) / A[at, k]
            change += W[at, k] * W[at, k] - w * w
    return change


follow = by_rows(_follow_dense, _follow_sparse, **REORDER)
follow.__doc__ = """W = argmin ½⟨W, AW⟩ + ⟨b, W⟩ kept while A ← A + weight·G², b ← b + pull·G, G = r ⊗ x, A diagonal.

Returns by how much ‖W‖² grew. O(nnz·K).
"""


def _spread_dense(A: Matrix, x: Any, v: Vector) -> None:
    for k in range(A.shape[0]):
        s = 0.0
        for i in range(A.shape[1]):
            t = np.float64(x[i])
            s += t * t / A[k, i]
        v[k] = s


def _spread_sparse(A: Matrix, x: Any, v: Vector) -> None:
    for k in range(v.shape[0]):
        v[k] = 0.0
    for j in range(x.indices.shape[0]):
        a = A[x.indices[j]]
        t = np.float64(x.values[j])
        square = t * t
        for k in range(v.shape[0]):
            v[k] += square / a[k]


spread = by_rows(_spread_dense, _spread_sparse, **REORDER)
spread.__doc__ = "v_k = Σ_i x_i²/A_ki: the variance of a score when A holds precisions. O(nnz·K)."


# --- full -------------------------------------------------------------------------------------------------


@jit
def clear(v: Vector) -> None:
    """v = 0."""
    for i in range(v.shape[0]):
        v[i] = 0.0


@jit_reordered
def dot(a: Vector, b: Vector) -> float:
    """⟨a, b⟩."""
    s = 0.0
    for i in range(a.shape[0]):
        s += a[i] * b[i]
    return s


@jit
def times(P: Matrix, g: Vector, v: Vector) -> None:
    """v = Pg."""
    for i in range(P.shape[0]):
        v[i] = dot(P[i], g)


@jit
def grow(P: Matrix, g: Vector, weight: float, v: Vector) -> float:
    """A ← A + weight·gg', by Sherman and Morrison on P = A⁻¹. Leaves A⁻¹g with the new A in v.

    Returns ⟨g, v⟩. weight ≥ 0.
    """
    times(P, g, v)
    if weight > 0.0:
        rise = 1.0 + weight * sure(dot(g, g), v, dot(g, v))
        share = weight / rise
        shrink(P, v, share)
        left = 1.0 / (rise * math.sqrt(share))  # shrink left v·√share
        for i in range(v.shape[0]):
            v[i] *= left
    return dot(g, v)


@jit
def solve(P: Matrix, level: float, c: Vector, w: Vector, work: Matrix) -> None:
    """(I + λP)w = c by conjugate gradients from the w given. work: 3 × n."""
    rest, way, image = work[0], work[1], work[2]
    times(P, w, image)
    for i in range(w.shape[0]):
        rest[i] = c[i] - w[i] - level * image[i]
        way[i] = rest[i]
    square, goal = dot(rest, rest), TOLERANCE * TOLERANCE * dot(c, c)
    for _ in range(2 * w.shape[0] + 10):
        if square <= goal:
            return
        times(P, way, image)
        bend = dot(way, way) + level * dot(way, image)
        step = square / bend
        for i in range(w.shape[0]):
            w[i] += step * way[i]
            rest[i] -= step * (way[i] + level * image[i])
        before, square = square, dot(rest, rest)
        for i in range(w.shape[0]):
            way[i] = rest[i] + square / before * way[i]


@jit
def into_ball(P: Matrix, aim: Vector, radius: float, w: Vector, work: Matrix) -> float:
    """w = argmin ⟨w - aim, A(w - aim)⟩ over ‖w‖ ≤ radius, A = P⁻¹. Returns λ ≥ 0, 0 if the aim lies inside.

    w = (I + λP)⁻¹aim with the λ that makes ‖w‖ = radius: Newton on 1/‖w‖, which from λ = 0 rises to the root without
    passing it. O(n²) for each of a few dozen products with P; work: 5 × n.
    """
    n = aim.shape[0]
    for i in range(n):
        w[i] = aim[i]
    size, level = math.sqrt(dot(w, w)), 0.0
    if size <= radius:
        return level
    image, slope = work[3], work[4]
    for _ in range(100):
        times(P, w, image)
        for i in range(n):
            slope[i] = image[i]
        solve(P, level, image, slope, work[:3])
        level += size * size / dot(w, slope) * (size - radius) / radius
        solve(P, level, aim, w, work[:3])
        size = math.sqrt(dot(w, w))
        if size <= radius * (1.0 + 1e-12):
            break
    for i in range(n):
        w[i] *= min(1.0, radius / size)
    return level
