"""AdaGrad: each weight has its own step, shrinking with the gradients that weight has seen.

Duchi, Hazan & Singer, "Adaptive Subgradient Methods", JMLR 2011, diagonal version. Scores are those of the weights
themselves, so `rows.scores` serves; N, the sums of squares, has the layout of W.
"""

import math
from typing import Any

from gaptron.kernels.jit import by_rows, jit
from gaptron.types import Matrix, Vector


@jit
def pace(g: float, n: float, floor: float) -> float:
    """g/√(n + floor): what a gradient is worth to a weight that has seen n of squares."""
    return g / math.sqrt(n + floor)


def _descend_dense(W: Matrix, N: Matrix, x: Any, r: Vector, step: float, floor: float) -> None:
    for k in range(W.shape[0]):
        if r[k] != 0.0:
            for i in range(W.shape[1]):
                g = r[k] * x[i]
                N[k, i] += g * g
                W[k, i] -= step * pace(g, N[k, i], floor)


def _descend_sparse(W: Matrix, N: Matrix, x: Any, r: Vector, step: float, floor: float) -> None:
    for j in range(x.indices.shape[0]):
        w, n = W[x.indices[j]], N[x.indices[j]]
        v = x.values[j]
        for k in range(r.shape[0]):
            g = r[k] * v
            n[k] += g * g
            w[k] -= step * pace(g, n[k], floor)


descend = by_rows(_descend_dense, _descend_sparse)
descend.__doc__ = "G = r ⊗ x;  N ← N + G²;  W ← W - step·G/√(N + floor), entry by entry; floor > 0. O(nnz·K)."


def _sweep_dense(
    W: Matrix, N: Matrix, x: Any, r: Vector, plain: int, squares: Vector, floor: float, work: Vector
) -> None:
    K, d = N.shape
    for k in range(plain):
        if r[k] != 0.0:
            for i in range(d):
                W[k, i] += r[k] * x[i]
    for k in range(K):
        if squares[k] > 0.0:
            for i in range(d):
                N[k, i] += squares[k] * x[i] * x[i]
                work[i] = pace(x[i], N[k, i], floor)
            for j in range(plain + k, W.shape[0], K):
                for i in range(d):
                    W[j, i] += r[j] * work[i]


def _sweep_sparse(
    W: Matrix, N: Matrix, x: Any, r: Vector, plain: int, squares: Vector, floor: float, work: Vector
) -> None:
    K = N.shape[1]
    for j in range(x.indices.shape[0]):
        w, n = W[x.indices[j]], N[x.indices[j]]
        v = x.values[j]
        for k in range(plain):
            w[k] += r[k] * v
        for k in range(K):
            n[k] += squares[k] * v * v
            work[k] = pace(v, n[k], floor)
        for first in range(plain, w.shape[0], K):
            for k in range(K):
                w[first + k] += r[first + k] * work[k]


sweep = by_rows(_sweep_dense, _sweep_sparse)
sweep.__doc__ = """Several learners, side by side in W, move in one pass over x. O(nnz·K) for all labels K of W.

The first `plain` labels move as W ← W + r ⊗ x. The others belong to learners who share one table N of squares, so that
one root serves them all:  N ← N + squares ⊗ x²;  W ← W + r ⊗ x/√(N + floor), r the step times minus the derivative.
work: max(K, d) numbers.
"""
