"""Verbs on variances: the inverse S of a diagonal matrix, one number per label and feature, laid out like the weights.

Where a full matrix grows by h·xxᵀ its diagonal grows by h·x², and S ← S/(1 + h·S·x²) feature by feature. Only the
features of the row move.
"""

from typing import Any

import numpy as np

from gaptron.kernels.jit import REORDER, by_rows
from gaptron.types import Matrix, Vector


def _spreads_dense(S: Matrix, x: Any, r: Vector) -> None:
    for k in range(S.shape[0]):
        s = 0.0
        for i in range(S.shape[1]):
            s += S[k, i] * x[i] * x[i]
        r[k] = s


def _spreads_sparse(S: Matrix, x: Any, r: Vector) -> None:
    K = S.shape[1]
    for k in range(K):
        r[k] = 0.0
    for j in range(x.indices.shape[0]):
        s = S[x.indices[j]]
        v = np.float64(x.values[j])
        v *= v
        for k in range(K):
            r[k] += s[k] * v


spreads = by_rows(_spreads_dense, _spreads_sparse, **REORDER)
spreads.__doc__ = "r_k = Σ S_k x² for every label k. O(nnz·K)."


def _spread_one_dense(S: Matrix, x: Any, k: int) -> float:
    s = 0.0
    for i in range(S.shape[1]):
        s += S[k, i] * x[i] * x[i]
    return s


def _spread_one_sparse(S: Matrix, x: Any, k: int) -> float:
    s = 0.0
    for j in range(x.indices.shape[0]):
        s += S[x.indices[j], k] * x.values[j] * x.values[j]
    return s


spread_one = by_rows(_spread_one_dense, _spread_one_sparse, **REORDER)
spread_one.__doc__ = "Σ S_k x², one label. O(nnz)."


def _add_spread_dense(W: Matrix, S: Matrix, x: Any, k: int, c: float) -> None:
    for i in range(W.shape[1]):
        W[k, i] += c * S[k, i] * x[i]


def _add_spread_sparse(W: Matrix, S: Matrix, x: Any, k: int, c: float) -> None:
    for j in range(x.indices.shape[0]):
        i = x.indices[j]
        W[i, k] += c * S[i, k] * x.values[j]


add_spread = by_rows(_add_spread_dense, _add_spread_sparse)
add_spread.__doc__ = "W_k ← W_k + c·S_k x, one label. O(nnz)."


def _narrow_dense(S: Matrix, x: Any, k: int, h: float) -> None:
    for i in range(S.shape[1]):
        S[k, i] /= 1.0 + h * S[k, i] * x[i] * x[i]


def _narrow_sparse(S: Matrix, x: Any, k: int, h: float) -> None:
    for j in range(x.indices.shape[0]):
        i = x.indices[j]
        S[i, k] /= 1.0 + h * S[i, k] * x.values[j] * x.values[j]


narrow = by_rows(_narrow_dense, _narrow_sparse)
narrow.__doc__ = "1/S_k ← 1/S_k + h·x², one label. O(nnz)."


def _drop_dense(S: Matrix, x: Any, k: int, c: float) -> None:
    for i in range(S.shape[1]):
        S[k, i] *= max(1.0 - c * S[k, i] * x[i] * x[i], 0.0)


def _drop_sparse(S: Matrix, x: Any, k: int, c: float) -> None:
    for j in range(x.indices.shape[0]):
        i = x.indices[j]
        S[i, k] *= max(1.0 - c * S[i, k] * x.values[j] * x.values[j], 0.0)


drop = by_rows(_drop_dense, _drop_sparse)
drop.__doc__ = "S_k ← S_k - c·S_k²x², one label; never below zero. O(nnz)."


def _ridge_dense(W: Matrix, S: Matrix, x: Any, k: int, g: float, h: float) -> None:
    for i in range(W.shape[1]):
        v = np.float64(x[i])
        S[k, i] /= 1.0 + h * S[k, i] * v * v
        W[k, i] += S[k, i] * v * (g - h * v * W[k, i])


def _ridge_sparse(W: Matrix, S: Matrix, x: Any, k: int, g: float, h: float) -> None:
    for j in range(x.indices.shape[0]):
        i, v = x.indices[j], np.float64(x.values[j])
        S[i, k] /= 1.0 + h * S[i, k] * v * v
        W[i, k] += S[i, k] * v * (g - h * v * W[i, k])


ridge = by_rows(_ridge_dense, _ridge_sparse)
ridge.__doc__ = "For W_k = S_k θ_k: 1/S_k ← 1/S_k + h·x² and θ_k ← θ_k + g·x, without keeping θ. O(nnz)."


def _scores_shared_dense(V: Matrix, A: Matrix, x: Any, r: Vector, z: Vector) -> None:
    for i in range(V.shape[1]):
        v = np.float64(x[i])
        r[i] = v / (A[0, i] + v * v)
    for k in range(V.shape[0]):
        s = 0.0
        for i in range(V.shape[1]):
            s += V[k, i] * r[i]
        z[k] = s


def _scores_shared_sparse(V: Matrix, A: Matrix, x: Any, r: Vector, z: Vector) -> None:
    K = V.shape[1]
    for k in range(K):
        z[k] = 0.0
    for j in range(x.indices.shape[0]):
        i, v = x.indices[j], np.float64(x.values[j])
        w = V[i]
        v /= A[0, i] + v * v
        for k in range(K):
            z[k] += w[k] * v


scores_shared = by_rows(_scores_shared_dense, _scores_shared_sparse, **REORDER)
scores_shared.__doc__ = "z_k = Σ V_k x/(A + x²), one diagonal A (1 × d) for all labels; r is work. O(nnz·K)."


def _grow_dense(A: Matrix, x: Any) -> None:
    for i in range(A.shape[1]):
        v = np.float64(x[i])
        A[0, i] += v * v


def _grow_sparse(A: Matrix, x: Any) -> None:
    for j in range(x.indices.shape[0]):
        v = np.float64(x.values[j])
        A[0, x.indices[j]] += v * v


grow = by_rows(_grow_dense, _grow_sparse)
grow.__doc__ = "A ← A + x². O(nnz)."
