"""Operations on examples, dense or sparse, or on the actions of a round. An algorithm calls them without knowing which.

For dense examples the weights are stored label by label (K × d), so that a score is one long dot product. For sparse
ones they are stored feature by feature (d × K), so that each non-zero of x meets K adjacent numbers. `zeros` allocates
the layout that fits and `by_label` shows either as K × d.

Where a round brings its own actions (`ActionRows`), action k has the features φ_k and all share one row of weights w.
It is as if label k had the weights w and the example φ_k: `scores` gives ⟨w, φ_k⟩ and `add_one` adds v·φ_k. Three
things differ:

    add        centres the coefficients: a softmax does not see what all actions have in common
    sqnorm     is Δ², the squared diameter: the largest ‖φ_j - φ_k‖² of two actions, in place of ‖x‖²
    moments    gives the squared lengths that gradients and estimates have; for labels formulas give them
"""

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gaptron.kernels.compile.jit import by_rows, by_type, holds_sparse
from gaptron.kernels.compile.vectors import add_scaled
from gaptron.types import ActionRows, Matrix, Sparse, SparseRow, Vector

CACHE_LINE = 64  # bytes
FEW_ACTIONS = 32  # for so many the distance of every pair is computed; for more the diameter is bounded, in O(nnz·K)


def zeros(n_classes: int, n_features: int, sparse: bool) -> Matrix:
    """Return zero weights in the layout that fits the examples."""
    return aligned_zeros((n_features, n_classes) if sparse else (n_classes, n_features))


def aligned_zeros(shape: tuple[int, ...], kind: DTypeLike = np.float64) -> NDArray[Any]:
    """Return zeros that start at the beginning of a cache line.

    A vector register is then loaded from one cache line and not from two (measured, dense, d = 784, K = 10: Frugal
    Gaptron 0.9 µs a round instead of 1.2, the default 6.1 instead of 6.5).
    """
    size = math.prod(shape) * np.dtype(kind).itemsize
    buffer = np.zeros(size + CACHE_LINE, dtype=np.uint8)
    first = -buffer.ctypes.data % CACHE_LINE
    return buffer[first : first + size].view(kind).reshape(shape)


def by_label(W: Matrix, sparse: bool) -> Matrix:
    """Return a K × d view of the weights, whatever their layout."""
    return W.T if sparse else W


def _row_dense(X: Any, t: int) -> Any:
    return X[t]


def _row_sparse(X: Any, t: int) -> Any:
    a, b = X.indptr[t], X.indptr[t + 1]
    return SparseRow(X.indices[a:b], X.values[a:b])


row = by_rows(_row_dense, _row_sparse, view=True)
row.__doc__ = "Return a view of example t of X."


def _actions_dense(X: Any, t: int, pairs: Matrix, space: Vector) -> Any:
    return ActionRows(X.rows[X.first[t] : X.first[t + 1]], row(X.contexts, t), pairs, space)


def _actions_sparse(X: Any, t: int, pairs: Matrix, space: Vector) -> Any:
    rows = X.rows
    own = Sparse(rows.indptr[X.first[t] : X.first[t + 1] + 1], rows.indices, rows.values)
    return ActionRows(own, row(X.contexts, t), pairs, space)


actions_of = by_type(lambda X, *_: _actions_sparse if holds_sparse(X) else _actions_dense, _actions_dense, view=True)
actions_of.__doc__ = "Return a view of the actions of round t of X, with these buffers."


def _scores_dense(W: Matrix, x: Any, z: NDArray[np.float64]) -> None:
    for k in range(z.shape[0]):
        s = 0.0
        for i in range(W.shape[1]):
            s += W[k, i] * np.float64(x[i])  # float32 × float32 is computed in double
        z[k] = s


def _scores_sparse(W: Matrix, x: Any, z: NDArray[np.float64]) -> None:
    K, n = z.shape[0], x.indices.shape[0]
    for k in range(K):
        z[k] = 0.0
    # Four non-zeros at a time, because each sum waits until the one before it is stored (K = 9, 44 non-zeros, with the
    # update that follows: 161 ns instead of 198).
    whole = n - n % 4
    for j in range(0, whole, 4):
        w0, w1, w2, w3 = W[x.indices[j]], W[x.indices[j + 1]], W[x.indices[j + 2]], W[x.indices[j + 3]]
        v0, v1 = np.float64(x.values[j]), np.float64(x.values[j + 1])  # float32 × float32 is computed in double
        v2, v3 = np.float64(x.values[j + 2]), np.float64(x.values[j + 3])
        for k in range(K):
            z[k] += w0[k] * v0 + w1[k] * v1 + w2[k] * v2 + w3[k] * v3
    for j in range(whole, n):
        w, v = W[x.indices[j]], np.float64(x.values[j])
        for k in range(K):
            z[k] += w[k] * v


def _scores_actions(W: Matrix, x: Any, z: NDArray[np.float64]) -> None:
    for k in range(z.shape[0]):
        z[k] = score_one(W, row(x.rows, k), 0)


scores = by_rows(_scores_dense, _scores_sparse, _scores_actions, reorder=True)
scores.__doc__ = "Write z_k = ⟨W_k, x⟩ for every label k, or for the first len(z) labels. O(nnz·K)."


def _add_dense(W: Matrix, x: Any, r: NDArray[np.float64]) -> None:
    for k in range(W.shape[0]):
        v = r[k]
        if v != 0.0:
            for i in range(W.shape[1]):
                W[k, i] += v * x[i]


def _add_sparse(W: Matrix, x: Any, r: NDArray[np.float64]) -> None:
    changed, first, last = 0, 0, 0
    for k in range(r.shape[0]):  # without branches, which the processor could not predict
        other = r[k] != 0.0
        changed += other
        last = k if other else last
    for k in range(r.shape[0] - 1, -1, -1):
        first = k if r[k] != 0.0 else first
    if changed > 2 or changed == r.shape[0]:
        for j in range(x.indices.shape[0]):
            add_scaled(W[x.indices[j]], r, x.values[j])
    elif changed > 0:
        for j in range(x.indices.shape[0]):
            W[x.indices[j], first] += r[first] * np.float64(x.values[j])
        if changed == 2:
            for j in range(x.indices.shape[0]):
                W[x.indices[j], last] += r[last] * np.float64(x.values[j])


def _add_actions(W: Matrix, x: Any, r: NDArray[np.float64]) -> None:
    mean = 0.0
    for k in range(r.shape[0]):
        mean += r[k]
    mean /= r.shape[0]
    for k in range(r.shape[0]):
        add_one(W, row(x.rows, k), 0, r[k] - mean)


add = by_rows(_add_dense, _add_sparse, _add_actions)
add.__doc__ = "Update W ← W + r ⊗ x. O(nnz·K); O(nnz) for sparse x if at most two of more r_k are not 0."


def _add_from_dense(W: Matrix, x: Any, first: int, r: NDArray[np.float64]) -> None:
    for k in range(r.shape[0]):
        v = r[k]
        if v != 0.0:
            for i in range(W.shape[1]):
                W[first + k, i] += v * x[i]


def _add_from_sparse(W: Matrix, x: Any, first: int, r: NDArray[np.float64]) -> None:
    for j in range(x.indices.shape[0]):
        add_scaled(W[x.indices[j], first : first + r.shape[0]], r, x.values[j])


add_from = by_rows(_add_from_dense, _add_from_sparse)
add_from.__doc__ = "Update W_{first + k} ← W_{first + k} + r_k·x: `add` for one of several learners that share W."


def _add_one_dense(W: Matrix, x: Any, k: int, v: float) -> None:
    for i in range(W.shape[1]):
        W[k, i] += v * np.float64(x[i])


def _add_one_sparse(W: Matrix, x: Any, k: int, v: float) -> None:
    for j in range(x.indices.shape[0]):
        W[x.indices[j], k] += v * np.float64(x.values[j])


def _add_one_actions(W: Matrix, x: Any, k: int, v: float) -> None:
    add_one(W, row(x.rows, k), 0, v)


add_one = by_rows(_add_one_dense, _add_one_sparse, _add_one_actions)
add_one.__doc__ = "Update W_k ← W_k + v·x, one label. O(nnz)."


def _score_one_dense(W: Matrix, x: Any, k: int) -> float:
    s = 0.0
    for i in range(W.shape[1]):
        s += W[k, i] * np.float64(x[i])
    return s


def _score_one_sparse(W: Matrix, x: Any, k: int) -> float:
    s = 0.0
    for j in range(x.indices.shape[0]):
        s += W[x.indices[j], k] * np.float64(x.values[j])
    return s


score_one = by_rows(_score_one_dense, _score_one_sparse, reorder=True)
score_one.__doc__ = "Return ⟨W_k, x⟩, one label. O(nnz)."


def _sqnorm_dense(x: Any) -> float:
    s = 0.0
    for i in range(x.shape[0]):
        v = float(np.float64(x[i]))  # float32 is squared in double; a Python float overflows without a warning
        s += v * v
    return s


def _sqnorm_sparse(x: Any) -> float:
    s = 0.0
    for j in range(x.values.shape[0]):
        v = float(np.float64(x.values[j]))
        s += v * v
    return s


def _sqnorm_actions(x: Any) -> float:
    pairs, most = x.pairs, 0.0
    K = count(x.rows)
    if K > FEW_ACTIONS:
        for k in range(K):
            pairs[0, k] = 1.0 / K
        distances_to_mean(x.rows, pairs[0, :K], x.space, pairs[1, :K])
        for k in range(K):
            most = max(most, pairs[1, k])
        return 4.0 * most  # Δ is at most twice the largest distance from the mean
    distances(x.rows, pairs, x.space)
    for j in range(K):
        for k in range(j):
            pairs[k, j] = pairs[j, k]
            most = max(most, pairs[j, k])
    return most


sqnorm = by_rows(_sqnorm_dense, _sqnorm_sparse, _sqnorm_actions, reorder=True)
sqnorm.__doc__ = "Return ‖x‖². O(nnz). Of actions: Δ², O(nnz·K) for each of them; for many actions an upper bound."


# --- distances between the actions of a round ---------------------------------------------------------------


def _count_dense(x: Any) -> int:
    return int(x.shape[0])


def _count_sparse(x: Any) -> int:
    return int(x.indptr.shape[0]) - 1


count = by_rows(_count_dense, _count_sparse)
count.__doc__ = "Return the number of rows of a matrix."


def _distances_dense(x: Any, pairs: Matrix, space: Vector) -> None:
    for j in range(x.shape[0]):
        pairs[j, j] = 0.0
        for k in range(j):
            s = 0.0
            for i in range(x.shape[1]):
                v = np.float64(x[j, i]) - np.float64(x[k, i])
                s += v * v
            pairs[j, k] = s


def _distances_sparse(x: Any, pairs: Matrix, space: Vector) -> None:
    """Four rows at a time are written into the buffer side by side, and every later row is compared with them."""
    K = x.indptr.shape[0] - 1
    for first in range(0, K, 4):
        last = min(first + 4, K)
        for j in range(first, last):
            for i in range(x.indptr[j], x.indptr[j + 1]):
                space[4 * x.indices[i] + j - first] = x.values[i]
        for k in range(first, K):
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0  # ‖φ_k - φ_j‖² on the features of row k, j = first, ..., first + 3
            c0, c1, c2, c3 = 0.0, 0.0, 0.0, 0.0  # ‖φ_j‖² on them
            for i in range(x.indptr[k], x.indptr[k + 1]):
                at, v = 4 * x.indices[i], np.float64(x.values[i])
                b0, b1, b2, b3 = space[at], space[at + 1], space[at + 2], space[at + 3]
                s0 += (v - b0) * (v - b0)
                s1 += (v - b1) * (v - b1)
                s2 += (v - b2) * (v - b2)
                s3 += (v - b3) * (v - b3)
                c0 += b0 * b0
                c1 += b1 * b1
                c2 += b2 * b2
                c3 += b3 * b3
            if k < last:  # row k is in the buffer: its square, summed in the same order, so that equal rows cancel
                pairs[k, k] = c0 if k == first else c1 if k == first + 1 else c2 if k == first + 2 else c3
            if k > first:
                pairs[k, first] = s0 + max(pairs[first, first] - c0, 0.0)
            if k > first + 1:
                pairs[k, first + 1] = s1 + max(pairs[first + 1, first + 1] - c1, 0.0)
            if k > first + 2:
                pairs[k, first + 2] = s2 + max(pairs[first + 2, first + 2] - c2, 0.0)
            if k > first + 3:
                pairs[k, first + 3] = s3 + max(pairs[first + 3, first + 3] - c3, 0.0)
        for j in range(first, last):
            for i in range(x.indptr[j], x.indptr[j + 1]):
                space[4 * x.indices[i] + j - first] = 0.0
    for k in range(K):
        pairs[k, k] = 0.0


distances = by_rows(_distances_dense, _distances_sparse, reorder=True)
distances.__doc__ = "Write ‖φ_k - φ_j‖² of every two rows j ≤ k into the lower triangle. O(nnz·K) for each row."


def _to_mean_dense(x: Any, p: Vector, space: Vector, out: Vector) -> None:
    for i in range(x.shape[1]):
        mean = 0.0
        for k in range(p.shape[0]):
            mean += p[k] * np.float64(x[k, i])
        space[i] = mean
    for k in range(p.shape[0]):
        s = 0.0
        for i in range(x.shape[1]):
            v = np.float64(x[k, i]) - space[i]
            s += v * v
        out[k] = s
    for i in range(x.shape[1]):
        space[i] = 0.0


def _to_mean_sparse(x: Any, p: Vector, space: Vector, out: Vector) -> None:
    for k in range(p.shape[0]):
        for i in range(x.indptr[k], x.indptr[k + 1]):
            space[x.indices[i]] += p[k] * np.float64(x.values[i])
    whole = 0.0  # ‖m‖² = Σ p_k ⟨m, φ_k⟩
    for k in range(p.shape[0]):
        s, inner = 0.0, 0.0
        for i in range(x.indptr[k], x.indptr[k + 1]):
            m, v = space[x.indices[i]], np.float64(x.values[i])
            s += v * (v - 2.0 * m)
            inner += m * v
        out[k] = s
        whole += p[k] * inner
    for k in range(p.shape[0]):
        out[k] = max(out[k] + whole, 0.0)
        for i in range(x.indptr[k], x.indptr[k + 1]):
            space[x.indices[i]] = 0.0


distances_to_mean = by_rows(_to_mean_dense, _to_mean_sparse)
distances_to_mean.__doc__ = "Write ‖φ_k - m‖² of every row k, m = Σ p_k φ_k. O(nnz·K)."


def _moments(x: Any, p: Vector, diameter: float, V: Vector, R: Vector) -> None:
    K, pairs = p.shape[0], x.pairs
    if K > FEW_ACTIONS:
        distances_to_mean(x.rows, p, x.space, V)
        for k in range(K):
            R[k] = pairs[1, k]
    else:  # Σ_k p_k ‖φ_k - φ_y‖² = V_y + Σ_k p_k V_k, and the last sum is half of the mean of the left side
        mean_v, mean_r = 0.0, 0.0
        for y in range(K):
            v, r = 0.0, 0.0
            for k in range(K):
                v += p[k] * pairs[y, k]
                r += pairs[y, k]
            V[y], R[y] = v, r / K
            mean_v += p[y] * v
            mean_r += R[y] / K
        for y in range(K):
            V[y], R[y] = V[y] - mean_v / 2.0, R[y] - mean_r / 2.0
    for y in range(K):  # the limits hold in exact arithmetic
        V[y] = min(max(V[y], 0.0), diameter * (1.0 - p[y]) * (1.0 - p[y]))
        R[y] = min(max(R[y], 0.0), diameter * (1.0 - 1.0 / K) * (1.0 - 1.0 / K))


moments = by_rows(_moments, _moments, _moments)
moments.__doc__ = """Write V_y = ‖m - φ_y‖² and R_y = ‖c - φ_y‖² of every action y. m is Σ p_k φ_k, and c the mean.

`diameter` is Δ², which `sqnorm(x)` returned just before: it fills `x.pairs`. O(K²), for many actions O(nnz·K).
"""
