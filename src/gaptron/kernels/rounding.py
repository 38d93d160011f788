"""Sums whose rounding is counted: where weights are kept in single precision, and a theorem still speaks of the run.

Every number is computed in double, d, and kept rounded, f. Two sums over the run say all that this does to a proof: how
much it added to half of ‖W‖², Σ(f² - d²)/2 (`lean`, which may be negative), and how far it moved the weights, ‖f - d‖
(`drift`). Both are of what was really lost, not of what might have been; f - d is exact in double. Callers say what
each is worth to their proof, `tilt` and `size`.

A number may be rounded once in an update: what is rounded in between would have to be counted with what is added after
it. So an update of several labels is one call, or calls for different labels.

`rounding` is a record in the algorithm's state (`memory.in_single` makes it). For weights in double these verbs are
those of `rows`, and nothing is counted; neither where the record is of none, as in a file of a version without.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gaptron.kernels.ball import REFRESH, SMALLEST
from gaptron.kernels.jit import REORDER, by_precision, by_rows, jit, jit_reordered
from gaptron.kernels.rows import add, add_from, add_one
from gaptron.types import Matrix, Vector


@jit
def charge(rounding: Any, along: float, square: float, tilt: float, size: float) -> float:
    """Count one update's rounding, along = Σ(f - d)d and square = Σ(f - d)². Returns Σ(f² - d²)/2."""
    lean = along + square / 2.0
    if rounding.shape[0] > 0:
        rounding[0].lean += tilt * lean
        rounding[0].drift += size * math.sqrt(square)
    return lean


def _count_dense(
    W: Matrix, x: Any, first: int, r: NDArray[np.float64], rounding: Any, tilt: float, size: float
) -> float:
    along, square = 0.0, 0.0
    for k in range(r.shape[0]):
        v = r[k]
        if v != 0.0:
            for i in range(W.shape[1]):
                meant = np.float64(W[first + k, i]) + v * np.float64(x[i])
                kept = np.float64(np.float32(meant))
                W[first + k, i] = kept
                lost = kept - meant
                along += lost * meant
                square += lost * lost
    return charge(rounding, along, square, tilt, size)


def _count_sparse(
    W: Matrix, x: Any, first: int, r: NDArray[np.float64], rounding: Any, tilt: float, size: float
) -> float:
    along, square = 0.0, 0.0
    for j in range(x.indices.shape[0]):
        w = W[x.indices[j], first : first + r.shape[0]]
        v = np.float64(x.values[j])
        for k in range(r.shape[0]):
            meant = np.float64(w[k]) + r[k] * v
            kept = np.float64(np.float32(meant))
            w[k] = kept
            lost = kept - meant
            along += lost * meant
            square += lost * lost
    return charge(rounding, along, square, tilt, size)


_count = by_rows(_count_dense, _count_sparse, **REORDER)


def _count_one_dense(W: Matrix, x: Any, k: int, v: float, rounding: Any, tilt: float, size: float) -> float:
    along, square = 0.0, 0.0
    for i in range(W.shape[1]):
        meant = np.float64(W[k, i]) + v * np.float64(x[i])
        kept = np.float64(np.float32(meant))
        W[k, i] = kept
        lost = kept - meant
        along += lost * meant
        square += lost * lost
    return charge(rounding, along, square, tilt, size)


def _count_one_sparse(W: Matrix, x: Any, k: int, v: float, rounding: Any, tilt: float, size: float) -> float:
    along, square = 0.0, 0.0
    for j in range(x.indices.shape[0]):
        i = x.indices[j]
        meant = np.float64(W[i, k]) + v * np.float64(x.values[j])
        kept = np.float64(np.float32(meant))
        W[i, k] = kept
        lost = kept - meant
        along += lost * meant
        square += lost * lost
    return charge(rounding, along, square, tilt, size)


_count_one = by_rows(_count_one_dense, _count_one_sparse, **REORDER)


def _put_exact(W: Matrix, x: Any, r: Vector, rounding: Any, tilt: float, size: float) -> float:
    add(W, x, r)
    return 0.0


def _put_counted(W: Matrix, x: Any, r: Vector, rounding: Any, tilt: float, size: float) -> float:
    return _count(W, x, 0, r, rounding, tilt, size)


put = by_precision(_put_exact, _put_counted)
put.__doc__ = "W ← W + r ⊗ x, every label. Returns Σ(f² - d²)/2."


def _put_from_exact(W: Matrix, x: Any, first: int, r: Vector, rounding: Any, tilt: float) -> None:
    add_from(W, x, first, r)


def _put_from_counted(W: Matrix, x: Any, first: int, r: Vector, rounding: Any, tilt: float) -> None:
    _count(W, x, first, r, rounding, tilt, 1.0)


put_from = by_precision(_put_from_exact, _put_from_counted)
put_from.__doc__ = "W_{first + k} ← W_{first + k} + r_k·x: as `put`, for one of several learners side by side."


def _put_one_exact(W: Matrix, x: Any, k: int, v: float, rounding: Any, tilt: float, size: float) -> float:
    add_one(W, x, k, v)
    return 0.0


def _put_one_counted(W: Matrix, x: Any, k: int, v: float, rounding: Any, tilt: float, size: float) -> float:
    return _count_one(W, x, k, v, rounding, tilt, size)


put_one = by_precision(_put_one_exact, _put_one_counted)
put_one.__doc__ = "W_k ← W_k + v·x, one label. Returns Σ(f² - d²)/2."


def _counts_not(W: Matrix) -> bool:
    return False


def _counts(W: Matrix) -> bool:
    return True


counts = by_precision(_counts_not, _counts)
counts.__doc__ = "Is rounding counted into these weights? Known when it is compiled."


# --- in a ball ------------------------------------------------------------------------------------------------


@jit_reordered
def take_up(W: Matrix, ball: Any, radius: float, rounding: Any) -> None:
    """As `ball.refresh`: V ← cV, c ← 1, and the norm from the weights themselves; what it rounds is counted."""
    c, total, along, square = ball[0].scale, 0.0, 0.0, 0.0
    for a in range(W.shape[0]):
        for b in range(W.shape[1]):
            meant = c * np.float64(W[a, b])
            kept = np.float64(np.float32(meant))
            W[a, b] = kept
            lost = kept - meant
            along += lost * meant
            square += lost * lost
            total += kept * kept
    charge(rounding, along, square, 1.0, 1.0)
    now = ball[0]
    now.scale, now.square, now.updates = 1.0, total, 0
    if total > radius * radius:
        now.scale, now.square = radius / math.sqrt(total), radius * radius


def _keep_exact(W: Matrix, ball: Any, radius: float, rounding: Any) -> None:
    pass


def _keep_counted(W: Matrix, ball: Any, radius: float, rounding: Any) -> None:
    if ball[0].updates >= REFRESH - 1 or ball[0].scale < SMALLEST:
        take_up(W, ball, radius, rounding)


keep = by_precision(_keep_exact, _keep_counted)
keep.__doc__ = "After `ball.moved`: take up the scale while it would not yet do so itself, and count what that rounds."
