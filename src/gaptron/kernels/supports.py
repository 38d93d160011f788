"""Rows kept for later: the support of a kernel rule, in the layout of weights with one "label" per row kept.

Room for a fixed number of rows is made once by `rows.zeros`; the verbs fill it and compare a new row with it.
"""

from typing import Any

from gaptron.kernels.jit import REORDER, by_rows, jit
from gaptron.types import Matrix, Vector


def _keep_dense(S: Matrix, x: Any, j: int) -> None:
    for i in range(S.shape[1]):
        S[j, i] = x[i]


def _keep_sparse(S: Matrix, x: Any, j: int) -> None:
    for i in range(S.shape[0]):
        S[i, j] = 0.0
    for i in range(x.indices.shape[0]):
        S[x.indices[i], j] += x.values[i]


keep = by_rows(_keep_dense, _keep_sparse)
keep.__doc__ = "S_j ← x, over whatever row was there. O(d)."


def _compare_dense(S: Matrix, x: Any, n: int, out: Vector) -> None:
    for j in range(n):
        s = 0.0
        for i in range(S.shape[1]):
            s += S[j, i] * x[i]
        out[j] = s


def _compare_sparse(S: Matrix, x: Any, n: int, out: Vector) -> None:
    for j in range(n):
        out[j] = 0.0
    for i in range(x.indices.shape[0]):
        w = S[x.indices[i]]
        v = x.values[i]
        for j in range(n):
            out[j] += w[j] * v


compare = by_rows(_compare_dense, _compare_sparse, **REORDER)
compare.__doc__ = "out_j = ⟨S_j, x⟩ for the first n rows kept. O(nnz·n)."


@jit
def rational(inner: Vector, n: int, scale: float) -> None:
    """⟨x, x'⟩ → 1/(1 - ⟨x, x'⟩·scale/2), in place; rows are promised to have ⟨x, x'⟩·scale ≤ 1.

    A row longer than promised (one may look at any) is held to the promise, so that the kernel stays at most 2.
    """
    for j in range(n):
        inner[j] = 1.0 / (1.0 - min(inner[j] * scale, 1.0) / 2.0)
