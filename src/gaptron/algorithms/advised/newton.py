"""Newton softmax: an adviser f = softmax(Wx̃) whose steps are divided by the curvature that its rows have met.

One precision serves all labels, so that no root or division is paid per weight: a diagonal A, or its inverse P in
blocks of 16 neighbouring features where there are few enough of them. With r the gradient in the scores, m its size:

    G_k ← G_k + |r_k|;   r_k ← r_k·√(ΣG/(K·G_k)), cut to [¼, 4] times r_k      half-way to a curvature per label
    h = curvature·m
    diagonal   g = x̃/A;   v = ⟨x̃, g⟩;   W_k ← W_k - r_k g/(1 + hv);   A ← min(A + h x̃², most)
    blocks     g = Px̃;    v = ⟨x̃, g⟩;   W_k ← W_k - r_k g/(1 + hv);   P_q ← P_q - h g_q g_q'/(1 + h⟨x̃_q, g_q⟩)
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.kernels.jit import by_rows, jit, jit_reordered
from gaptron.types import Integers, Matrix, Vector

BLOCK = 16
WIDEST = 1_024  # features up to which P is kept in blocks: 16 numbers a feature, which fit the processor's cache
VARIANCE = 16.0  # of the weights before the first row
Blocks = NDArray[np.float64]  # q × 16 × 16


class Desk(NamedTuple):
    """Work space for one step of an adviser."""

    r: Vector  # the gradient in the scores of all labels
    x: Vector  # the row written out, in blocks of 16
    g: Vector  # the row times the inverse precision
    own: Vector  # ⟨x̃_q, g_q⟩ of every block; -1: the row is zero there


def n_blocks(n_features: int) -> int:
    """How many blocks of neighbouring features; none: a diagonal is kept. The same for dense and sparse rows."""
    return -(-n_features // BLOCK) if n_features <= WIDEST else 0


def new_blocks(n_features: int) -> Blocks:
    """P before the first row."""
    return np.tile(VARIANCE * np.eye(BLOCK), (n_blocks(n_features), 1, 1))


def new_diagonal(n: int) -> Vector:
    """A before the first row."""
    return np.full(n, 1.0 / VARIANCE)


def new_desk(n_classes: int, n_features: int, sparse: bool) -> Desk:
    """Sparse rows on a diagonal need no row written out."""
    room, blocks = BLOCK * n_blocks(n_features), n_blocks(n_features)
    return Desk(np.zeros(n_classes), np.zeros(room), np.zeros(max(room, 0 if sparse else n_features)), np.zeros(blocks))


# --- blocks ---------------------------------------------------------------------------------------------------


@jit_reordered
def whiten(P: Blocks, desk: Desk) -> float:
    """g = Px̃, block by block. Returns ⟨x̃, g⟩.

    On slices, with the size of a block read when it runs: else the compiler does not use the vector unit.
    """
    B, v = P.shape[1], 0.0
    for q in range(P.shape[0]):
        x, g, block = desk.x[q * B : (q + 1) * B], desk.g[q * B : (q + 1) * B], P[q]
        size, own = 0.0, 0.0
        for i in range(B):
            size += x[i] * x[i]
        if size == 0.0:
            desk.own[q] = -1.0
            for i in range(B):
                g[i] = 0.0
            continue
        for i in range(B):
            line, s = block[i], 0.0
            for j in range(B):
                s += line[j] * x[j]
            g[i] = s
            own += s * x[i]
        if not 0.0 <= own < math.inf:  # rounding has cost the block its sense: it begins anew
            for i in range(B):
                for j in range(B):
                    block[i, j] = VARIANCE if i == j else 0.0
                g[i] = VARIANCE * x[i]
            own = VARIANCE * size
        desk.own[q] = own
        v += own
    return v


@jit
def harden(P: Blocks, desk: Desk, h: float) -> None:
    """P_q ← P_q - h g_q g_q'/(1 + h⟨x̃_q, g_q⟩), symmetric to the bit."""
    B = P.shape[1]
    for q in range(P.shape[0]):
        if desk.own[q] >= 0.0:
            g, block, c = desk.g[q * B : (q + 1) * B], P[q], h / (1.0 + h * desk.own[q])
            for i in range(B):
                line, gi = block[i], g[i]
                for j in range(B):
                    line[j] -= c * (gi * g[j])


def _write_out_dense(x: Any, scale: float, to: Vector) -> None:
    for i in range(x.shape[0]):
        to[i] = scale * x[i]


def _write_out_sparse(x: Any, scale: float, to: Vector) -> None:
    for i in range(to.shape[0]):
        to[i] = 0.0
    for j in range(x.indices.shape[0]):
        to[x.indices[j]] = scale * x.values[j]


write_out = by_rows(_write_out_dense, _write_out_sparse)
write_out.__doc__ = "The row times a scale, every feature in its place; places behind the last feature stay 0."


def _step_dense(W: Matrix, x: Any, first: int, K: int, desk: Desk, c: float) -> None:
    d = x.shape[0]
    for k in range(K):
        v = c * desk.r[k]
        if v != 0.0:
            w, g = W[first + k], desk.g[:d]
            for i in range(d):
                w[i] += v * g[i]


def _step_sparse(W: Matrix, x: Any, first: int, K: int, desk: Desk, c: float) -> None:
    d = W.shape[0]
    for q in range(desk.own.shape[0]):
        if desk.own[q] >= 0.0:
            for i in range(q * BLOCK, min((q + 1) * BLOCK, d)):
                w, v = W[i, first : first + K], c * desk.g[i]
                for k in range(K):
                    w[k] += v * desk.r[k]


step = by_rows(_step_dense, _step_sparse)
step.__doc__ = "W_k ← W_k + c·r_k·g for the K labels from row `first` on."


# --- diagonal -------------------------------------------------------------------------------------------------


def _diagonal_dense(
    W: Matrix, x: Any, first: int, K: int, scale: float, A: Vector, most: float, desk: Desk, h: float
) -> None:
    d, v = x.shape[0], 0.0
    g = desk.g[:d]
    for i in range(d):
        xi = scale * x[i]
        g[i] = xi / A[i]
        v += xi * g[i]
        A[i] = min(A[i] + h * xi * xi, most)
    step(W, x, first, K, desk, -1.0 / (1.0 + h * v))


def _diagonal_sparse(
    W: Matrix, x: Any, first: int, K: int, scale: float, A: Vector, most: float, desk: Desk, h: float
) -> None:
    v = 0.0
    for j in range(x.indices.shape[0]):
        xi = scale * x.values[j]
        v += xi * xi / A[x.indices[j]]
    c = -1.0 / (1.0 + h * v)
    for j in range(x.indices.shape[0]):
        i, xi = x.indices[j], scale * x.values[j]
        w, g = W[i, first : first + K], c * xi / A[i]
        for k in range(K):
            w[k] += g * desk.r[k]
        A[i] = min(A[i] + h * xi * xi, most)


diagonal = by_rows(_diagonal_dense, _diagonal_sparse)
diagonal.__doc__ = "One step with a diagonal precision."


# --- learning -------------------------------------------------------------------------------------------------


@jit
def teach(
    W: Matrix,
    first: int,
    x: Any,
    scale: float,
    P: Blocks,
    A: Vector,
    most: float,
    G: Vector,
    labels: Integers,
    r: Vector,
    h: float,
    desk: Desk,
) -> None:
    """One step on the gradient r over the labels available, for the adviser whose weights begin at row `first`.

    With blocks where there are any, else on the diagonal A, which never rises above `most`. x̃ = scale·x.
    """
    K, total = G.shape[0], 0.0
    for i in range(r.shape[0]):
        G[labels[i]] += abs(r[i])
    for k in range(K):
        total += G[k]
        desk.r[k] = 0.0
    for i in range(r.shape[0]):
        k = labels[i]
        desk.r[k] = r[i] * min(max(math.sqrt(total / (K * G[k])), 0.25), 4.0)
    if P.shape[0] > 0:
        write_out(x, scale, desk.x)
        v = whiten(P, desk)
        step(W, x, first, K, desk, -1.0 / (1.0 + h * v))
        harden(P, desk, h)
    else:
        diagonal(W, x, first, K, scale, A, most, desk, h)
