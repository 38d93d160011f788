"""Operations on variances: the inverse S of a diagonal matrix, one number per label and feature, in the layout of W.

Where h·xxᵀ is added to a full matrix, h·x² is added to its diagonal, and S ← S/(1 + h·S·x²) feature by feature. Only
the features of the example change.
"""

from typing import Any

import numpy as np

from gaptron.kernels.compile.jit import by_rows
from gaptron.types import Matrix, Vector


def _score_variances_dense(S: Matrix, x: Any, r: Vector) -> None:
    for k in range(S.shape[0]):
        s = 0.0
        for i in range(S.shape[1]):
            s += S[k, i] * x[i] * x[i]
        r[k] = s


def _score_variances_sparse(S: Matrix, x: Any, r: Vector) -> None:
    K = S.shape[1]
    for k in range(K):
        r[k] = 0.0
    for j in range(x.indices.shape[0]):
        s = S[x.indices[j]]
        v = np.float64(x.values[j])
        v *= v
        for k in range(K):
            r[k] += s[k] * v


score_variances = by_rows(_score_variances_dense, _score_variances_sparse, reorder=True)
score_variances.__doc__ = "Write r_k = Σ S_k x², the variance of the score, for every label k. O(nnz·K)."


def _score_variance_dense(S: Matrix, x: Any, k: int) -> float:
    s = 0.0
    for i in range(S.shape[1]):
        s += S[k, i] * x[i] * x[i]
    return s


def _score_variance_sparse(S: Matrix, x: Any, k: int) -> float:
    s = 0.0
    for j in range(x.indices.shape[0]):
        s += S[x.indices[j], k] * x.values[j] * x.values[j]
    return s


score_variance = by_rows(_score_variance_dense, _score_variance_sparse, reorder=True)
score_variance.__doc__ = "Return Σ S_k x², the variance of the score of label k. O(nnz)."


def _add_scaled_by_variance_dense(W: Matrix, S: Matrix, x: Any, k: int, c: float) -> None:
    for i in range(W.shape[1]):
        W[k, i] += c * S[k, i] * x[i]


def _add_scaled_by_variance_sparse(W: Matrix, S: Matrix, x: Any, k: int, c: float) -> None:
    for j in range(x.indices.shape[0]):
        i = x.indices[j]
        W[i, k] += c * S[i, k] * x.values[j]


add_scaled_by_variance = by_rows(_add_scaled_by_variance_dense, _add_scaled_by_variance_sparse)
add_scaled_by_variance.__doc__ = "Update W_k ← W_k + c·S_k x, one label. O(nnz)."


def _add_precision_dense(S: Matrix, x: Any, k: int, h: float) -> None:
    for i in range(S.shape[1]):
        S[k, i] /= 1.0 + h * S[k, i] * x[i] * x[i]


def _add_precision_sparse(S: Matrix, x: Any, k: int, h: float) -> None:
    for j in range(x.indices.shape[0]):
        i = x.indices[j]
        S[i, k] /= 1.0 + h * S[i, k] * x.values[j] * x.values[j]


add_precision = by_rows(_add_precision_dense, _add_precision_sparse)
add_precision.__doc__ = "Update 1/S_k ← 1/S_k + h·x², one label. O(nnz)."


def _reduce_variance_dense(S: Matrix, x: Any, k: int, c: float) -> None:
    for i in range(S.shape[1]):
        S[k, i] *= max(1.0 - c * S[k, i] * x[i] * x[i], 0.0)


def _reduce_variance_sparse(S: Matrix, x: Any, k: int, c: float) -> None:
    for j in range(x.indices.shape[0]):
        i = x.indices[j]
        S[i, k] *= max(1.0 - c * S[i, k] * x.values[j] * x.values[j], 0.0)


reduce_variance = by_rows(_reduce_variance_dense, _reduce_variance_sparse)
reduce_variance.__doc__ = "Update S_k ← S_k - c·S_k²x², one label, at least zero. O(nnz)."


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
ridge.__doc__ = "For W_k = S_k θ_k: 1/S_k ← 1/S_k + h·x² and θ_k ← θ_k + g·x, without storing θ. O(nnz)."


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


scores_shared = by_rows(_scores_shared_dense, _scores_shared_sparse, reorder=True)
scores_shared.__doc__ = "Write z_k = Σ V_k x/(A + x²), one diagonal A (1 × d) for all labels; r is a buffer. O(nnz·K)."


def _add_squares_dense(A: Matrix, x: Any) -> None:
    for i in range(A.shape[1]):
        v = np.float64(x[i])
        A[0, i] += v * v


def _add_squares_sparse(A: Matrix, x: Any) -> None:
    for j in range(x.indices.shape[0]):
        v = np.float64(x.values[j])
        A[0, x.indices[j]] += v * v


add_squares = by_rows(_add_squares_dense, _add_squares_sparse)
add_squares.__doc__ = "Update A ← A + x². O(nnz)."
