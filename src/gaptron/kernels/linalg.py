"""Operations on the inverse P = A⁻¹ of a full matrix with rank-one updates, A ← A + h·zzᵀ.

No matrix is inverted: with v = Pz and r = ⟨z, v⟩ the new inverse is P - vvᵀ·h/(1 + h·r) (Sherman and Morrison), O(n²).
Long vectors z exhaust the precision of P: along z it decreases to 1/(h‖z‖²), and below the last digit of its former
value only rounding errors remain, of either sign. Then v is a rounding error too and is replaced by 0
(`discard_rounding`), because an update with it could make P indefinite.
There are two kinds. One matrix for all labels has n = dK and z = (e_a - e_b) ⊗ x; feature i of label k has index
k·d + i. One matrix per label has n = d and z = x, and the K matrices are stacked in one K·d × d array.
"""

import math
from typing import Any

from gaptron.errors import SettingError
from gaptron.kernels.compile.jit import by_rows, jit
from gaptron.kernels.rows import sqnorm
from gaptron.types import Matrix, Vector

MATRICES = ("diagonal", "full")
FULL = MATRICES.index("full")
LARGEST = 2**31  # bytes
MIN_COSINE = 1e-8  # a smaller cosine between z and Pz is a rounding error


def matrix_kind(name: str) -> int:
    """Return the number of a kind of matrix."""
    if name not in MATRICES:
        raise SettingError(f"matrix={name!r} must be one of {', '.join(MATRICES)}")
    return MATRICES.index(name)


def check_matrix_size(rows: int, columns: int) -> None:
    """Refuse a full matrix of more than 2 GiB."""
    size = 8 * rows * columns
    if size > LARGEST:
        text = f"{size / 1e9:,.1f} GB" if size < 1e12 else f"{size / 1e12:,.1f} TB"
        raise SettingError(
            f"matrix='full' would store {rows} × {columns} numbers, {text}, more than the allowed 2 GiB: "
            "use matrix='diagonal'"
        )


@jit
def discard_rounding(z2: float, v: Vector, r: float) -> float:
    """Return r if it exceeds the rounding error; otherwise write v = 0 and return 0. z2 = ‖z‖², v = Pz, r = ⟨z, Pz⟩.

    For P of condition κ the cosine between z and Pz is at least 2√κ/(κ + 1). Below 1e-8 no digit of P is correct.
    """
    v2 = 0.0
    for i in range(v.shape[0]):
        v2 += v[i] * v[i]
    if r > MIN_COSINE * math.sqrt(z2) * math.sqrt(v2):
        return r
    for i in range(v.shape[0]):
        v[i] = 0.0
    return 0.0


def _times_pair_dense(P: Matrix, x: Any, d: int, a: int, b: int, v: Vector) -> float:
    for i in range(v.shape[0]):
        s = 0.0
        for j in range(d):
            s += (P[i, a * d + j] - P[i, b * d + j]) * x[j]
        v[i] = s
    r = 0.0
    for j in range(d):
        r += (v[a * d + j] - v[b * d + j]) * x[j]
    return discard_rounding(2.0 * sqnorm(x), v, r)


def _times_pair_sparse(P: Matrix, x: Any, d: int, a: int, b: int, v: Vector) -> float:
    for i in range(v.shape[0]):
        v[i] = 0.0
    for j in range(x.indices.shape[0]):
        up, down, c = P[a * d + x.indices[j]], P[b * d + x.indices[j]], x.values[j]
        for i in range(v.shape[0]):
            v[i] += (up[i] - down[i]) * c
    r = 0.0
    for j in range(x.indices.shape[0]):
        r += (v[a * d + x.indices[j]] - v[b * d + x.indices[j]]) * x.values[j]
    return discard_rounding(2.0 * sqnorm(x), v, r)


times_pair = by_rows(_times_pair_dense, _times_pair_sparse)  # in order: see `by_rows`
times_pair.__doc__ = "Write v = Pz for z = (e_a - e_b) ⊗ x, and return ⟨z, v⟩ ≥ 0. O(dK·nnz)."


def _times_one_dense(P: Matrix, x: Any, k: int, v: Vector) -> float:
    d = v.shape[0]
    r = 0.0
    for i in range(d):
        s = 0.0
        for j in range(d):
            s += P[k * d + i, j] * x[j]
        v[i] = s
        r += s * x[i]
    return discard_rounding(sqnorm(x), v, r)


def _times_one_sparse(P: Matrix, x: Any, k: int, v: Vector) -> float:
    d = v.shape[0]
    for i in range(d):
        v[i] = 0.0
    for j in range(x.indices.shape[0]):
        column, c = P[k * d + x.indices[j]], x.values[j]
        for i in range(d):
            v[i] += column[i] * c
    r = 0.0
    for j in range(x.indices.shape[0]):
        r += v[x.indices[j]] * x.values[j]
    return discard_rounding(sqnorm(x), v, r)


times_one = by_rows(_times_one_dense, _times_one_sparse)  # in order: see `by_rows`
times_one.__doc__ = "Write v = P_k x for the matrix of label k, and return ⟨x, v⟩ ≥ 0. O(d·nnz)."


def _move_dense(W: Matrix, x: Any, v: Vector, c: float) -> None:
    d = W.shape[1]
    for k in range(W.shape[0]):
        for i in range(d):
            W[k, i] += c * v[k * d + i]


def _move_sparse(W: Matrix, x: Any, v: Vector, c: float) -> None:
    d = W.shape[0]
    for i in range(d):
        for k in range(W.shape[1]):
            W[i, k] += c * v[k * d + i]


move = by_rows(_move_dense, _move_sparse)
move.__doc__ = "Update W ← W + c·v, every label; x only tells the layout of W. O(dK)."


def _move_one_dense(W: Matrix, x: Any, k: int, v: Vector, c: float) -> None:
    for i in range(v.shape[0]):
        W[k, i] += c * v[i]


def _move_one_sparse(W: Matrix, x: Any, k: int, v: Vector, c: float) -> None:
    for i in range(v.shape[0]):
        W[i, k] += c * v[i]


move_one = by_rows(_move_one_dense, _move_one_sparse)
move_one.__doc__ = "Update W_k ← W_k + c·v, one label; x only tells the layout of W. O(d)."


@jit
def shrink(P: Matrix, v: Vector, c: float) -> None:
    """Update P ← P - c·vvᵀ, c ≥ 0. O(n²). Overwrites v by v·√c.

    v is scaled by √c first, so that the same number is subtracted from the entries (i, j) and (j, i): a symmetric P
    stays symmetric to the last bit.
    """
    root = c**0.5
    for i in range(v.shape[0]):
        v[i] *= root
    for i in range(v.shape[0]):
        own = v[i]
        if own != 0.0:
            for j in range(v.shape[0]):
                P[i, j] -= own * v[j]
