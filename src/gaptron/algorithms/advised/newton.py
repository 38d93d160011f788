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

from gaptron.kernels.jit import REORDER, by_rows, jit
from gaptron.kernels.rows import lined_up
from gaptron.kernels.vectors import BLOCK, Blocks, add_scaled, lower, multiply
from gaptron.types import Integers, Matrix, Vector

WIDEST = 1_024  # features up to which P is kept in blocks: 16 numbers a feature, which fit the processor's cache
VARIANCE = 16.0  # of the weights before the first row


class Desk(NamedTuple):
    """Work space for one step of an adviser."""

    r: Vector  # the gradient in the scores of all labels
    x: Vector  # a dense row, scaled, in blocks of 16
    g: Vector  # the row times the inverse precision
    own: Vector  # ⟨x̃_q, g_q⟩ of every block; -1: the row is zero there


def n_blocks(n_features: int) -> int:
    """How many blocks of neighbouring features; none: a diagonal is kept. The same for dense and sparse rows."""
    return -(-n_features // BLOCK) if n_features <= WIDEST else 0


def new_blocks(n_features: int) -> Blocks:
    """P before the first row."""
    P = lined_up((n_blocks(n_features), BLOCK, BLOCK))
    P[:] = VARIANCE * np.eye(BLOCK)
    return P


def new_diagonal(n: int) -> Vector:
    """A before the first row."""
    return np.full(n, 1.0 / VARIANCE)


def new_desk(n_classes: int, n_features: int, sparse: bool) -> Desk:
    """A sparse row is nowhere written out."""
    room, blocks = BLOCK * n_blocks(n_features), n_blocks(n_features)
    x, g = lined_up((0 if sparse else room,)), lined_up((max(room, 0 if sparse else n_features),))
    return Desk(np.zeros(n_classes), x, g, np.zeros(blocks))


# --- blocks ---------------------------------------------------------------------------------------------------


@jit
def renew(P: Matrix, size: float) -> float:
    """Rounding has cost the block its sense: it begins anew. Returns ⟨x̃, Px̃⟩ for a row of this size ‖x̃‖²."""
    for i in range(BLOCK):
        for j in range(BLOCK):
            P[i, j] = VARIANCE if i == j else 0.0
    return VARIANCE * size


@jit
def makes_sense(own: float) -> bool:
    """Can this be ⟨x̃, Px̃⟩?"""
    return 0.0 <= own < math.inf


def _whiten_dense(P: Blocks, x: Any, scale: float, desk: Desk) -> float:
    for i in range(x.shape[0]):
        desk.x[i] = scale * x[i]  # the places behind the last feature stay 0
    v = 0.0
    for q in range(P.shape[0]):
        at = slice(q * BLOCK, (q + 1) * BLOCK)
        row, g = desk.x[at], desk.g[at]
        own = multiply(P[q], row, g)
        if not makes_sense(own):
            size = 0.0
            for i in range(BLOCK):
                size += row[i] * row[i]
                g[i] = VARIANCE * row[i]
            own = renew(P[q], size)
        desk.own[q] = own if own > 0.0 else -1.0
        v += own
    return v


def _whiten_sparse(P: Blocks, x: Any, scale: float, desk: Desk) -> float:
    for q in range(P.shape[0]):
        desk.own[q] = -1.0
    v, start, n = 0.0, 0, x.indices.shape[0]
    while start < n:  # block by block: indices go up
        q = x.indices[start] // BLOCK
        first, stop = q * BLOCK, start
        g = desk.g[first : first + BLOCK]
        for i in range(BLOCK):
            g[i] = 0.0
        while stop < n and x.indices[stop] < first + BLOCK:
            add_scaled(g, P[q, x.indices[stop] - first], scale * x.values[stop])
            stop += 1
        own = 0.0
        for j in range(start, stop):
            own += scale * x.values[j] * g[x.indices[j] - first]
        if not makes_sense(own):
            size = 0.0
            for i in range(BLOCK):
                g[i] = 0.0
            for j in range(start, stop):
                xi = scale * x.values[j]
                size += xi * xi
                g[x.indices[j] - first] = VARIANCE * xi
            own = renew(P[q], size)
        desk.own[q] = own if own > 0.0 else -1.0
        v += own
        start = stop
    return v


whiten = by_rows(_whiten_dense, _whiten_sparse)
whiten.__doc__ = "g = Px̃ with x̃ = scale·x, block by block where the row is not zero. Returns ⟨x̃, g⟩."


@jit
def harden(P: Blocks, desk: Desk, h: float) -> None:
    """P_q ← P_q - h g_q g_q'/(1 + h⟨x̃_q, g_q⟩)."""
    for q in range(P.shape[0]):
        if desk.own[q] >= 0.0:
            lower(P[q], desk.g[q * BLOCK : (q + 1) * BLOCK], h / (1.0 + h * desk.own[q]))


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
                add_scaled(W[i, first : first + K], desk.r, c * desk.g[i])


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
        add_scaled(W[i, first : first + K], desk.r, c * xi / A[i])
        A[i] = min(A[i] + h * xi * xi, most)


diagonal = by_rows(_diagonal_dense, _diagonal_sparse, **REORDER)
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
        v = whiten(P, x, scale, desk)
        step(W, x, first, K, desk, -1.0 / (1.0 + h * v))
        harden(P, desk, h)
    else:
        diagonal(W, x, first, K, scale, A, most, desk, h)
