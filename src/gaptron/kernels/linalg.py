"""Verbs on the inverse P = A⁻¹ of a full matrix that grows by one row a round, A ← A + h·zzᵀ.

Nothing is inverted: with v = Pz and r = ⟨z, v⟩ the new inverse is P - vvᵀ·h/(1 + h·r) (Sherman and Morrison), O(n²).
Long rows wear P out: along a row z it falls to 1/(h‖z‖²), and below the last digit of what it was only rounding is
left, of either sign. Then v is rounding too, and is taken for 0 (`sure`): learning from it would make P anything.
Two kinds are in use. One matrix for all labels has n = dK and z = (e_a - e_b) ⊗ x: label k's feature i is number
k·d + i. One matrix a label has n = d and z = x, and the K matrices lie below each other in one K·d × d array.
"""

import math
from typing import Any

from gaptron.errors import SettingError
from gaptron.kernels.jit import REORDER, by_rows, jit
from gaptron.kernels.rows import sqnorm
from gaptron.types import Matrix, Vector

MATRICES = ("diagonal", "full")
FULL = MATRICES.index("full")
LARGEST = 2**31  # bytes
WORN = 1e-8  # the least cosine between z and Pz that is more than rounding


def matrix_kind(word: str) -> int:
    """The number behind the word users type."""
    if word not in MATRICES:
        raise SettingError(f"matrix={word!r} must be one of {', '.join(MATRICES)}")
    return MATRICES.index(word)


def check_room(rows: int, columns: int) -> None:
    """Refuse a full matrix that is larger than 2 GiB, and say how large it is."""
    size = 8 * rows * columns
    if size > LARGEST:
        words = f"{size / 1e9:,.1f} GB" if size < 1e12 else f"{size / 1e12:,.1f} TB"
        raise SettingError(
            f"matrix='full' would keep {rows} × {columns} numbers, {words}, above the 2 GiB that are allowed: "
            "use matrix='diagonal'"
        )


@jit
def sure(z2: float, v: Vector, r: float) -> float:
    """r = ⟨z, Pz⟩, z2 = ‖z‖², v = Pz, if they are more than rounding; else v = 0 and 0.

    For P of condition κ the cosine between z and Pz is at least 2√κ/(κ + 1): below 1e-8 P has no digits left.
    """
    v2 = 0.0
    for i in range(v.shape[0]):
        v2 += v[i] * v[i]
    if r > WORN * math.sqrt(z2) * math.sqrt(v2):
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
    return sure(2.0 * sqnorm(x), v, r)


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
    return sure(2.0 * sqnorm(x), v, r)


times_pair = by_rows(_times_pair_dense, _times_pair_sparse, **REORDER)
times_pair.__doc__ = "v = Pz for z = (e_a - e_b) ⊗ x; returns ⟨z, v⟩, never negative. O(dK·nnz)."


def _times_one_dense(P: Matrix, x: Any, k: int, v: Vector) -> float:
    d = v.shape[0]
    r = 0.0
    for i in range(d):
        s = 0.0
        for j in range(d):
            s += P[k * d + i, j] * x[j]
        v[i] = s
        r += s * x[i]
    return sure(sqnorm(x), v, r)


def _times_one_sparse(P: Matrix, x: Any, k: int, v: Vector) -> float:
    d = v.shape[0]
    for i in range(d):
        v[i] = 0.0
    for j in range(x.indices.shape[0]):
        line, c = P[k * d + x.indices[j]], x.values[j]
        for i in range(d):
            v[i] += line[i] * c
    r = 0.0
    for j in range(x.indices.shape[0]):
        r += v[x.indices[j]] * x.values[j]
    return sure(sqnorm(x), v, r)


times_one = by_rows(_times_one_dense, _times_one_sparse, **REORDER)
times_one.__doc__ = "v = P_k x for label k's own matrix; returns ⟨x, v⟩, never negative. O(d·nnz)."


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
move.__doc__ = "W ← W + c·v, every label; x only tells how W lies. O(dK)."


def _move_one_dense(W: Matrix, x: Any, k: int, v: Vector, c: float) -> None:
    for i in range(v.shape[0]):
        W[k, i] += c * v[i]


def _move_one_sparse(W: Matrix, x: Any, k: int, v: Vector, c: float) -> None:
    for i in range(v.shape[0]):
        W[i, k] += c * v[i]


move_one = by_rows(_move_one_dense, _move_one_sparse)
move_one.__doc__ = "W_k ← W_k + c·v, one label; x only tells how W lies. O(d)."


@jit
def shrink(P: Matrix, v: Vector, c: float) -> None:
    """P ← P - c·vvᵀ, c ≥ 0. O(n²). Uses v up.

    v takes √c first, so that entries (i, j) and (j, i) lose the very same number: a symmetric P stays symmetric to the
    last bit and never has to be made so again.
    """
    root = c**0.5
    for i in range(v.shape[0]):
        v[i] *= root
    for i in range(v.shape[0]):
        own = v[i]
        if own != 0.0:
            for j in range(v.shape[0]):
                P[i, j] -= own * v[j]
