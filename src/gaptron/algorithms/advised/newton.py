"""Newton softmax: an expert f = softmax(Wx̃) whose steps are divided by the curvature of its past examples.

All labels share one precision, which saves a root and a division per weight: a diagonal A, or its inverse P in blocks
of 16 neighbouring features while there are few enough of them. With r the gradient in the scores and m its size:

    G_k ← G_k + |r_k|;   r_k ← r_k·(ΣG/(K·G_k))^power, clipped to [¼, 4] times r_k
    h = curvature·m
    diagonal   g = x̃/A;   v = ⟨x̃, g⟩;   W_k ← W_k - r_k g/(1 + hv);   A ← min(A + h x̃², max_precision)
    blocks     g = Px̃;    v = ⟨x̃, g⟩;   W_k ← W_k - r_k g/(1 + hv);   P_q ← P_q - h g_q g_q'/(1 + h⟨x̃_q, g_q⟩)

With power ½, `HALF_WAY`, the steps are half-way to a curvature per label, and with power 1 there.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from gaptron.kernels.compile.jit import by_rows, jit
from gaptron.kernels.compile.vectors import BLOCK, Blocks, add_scaled, lower, multiply
from gaptron.kernels.rows import aligned_zeros
from gaptron.types import Flags, Integers, Matrix, Vector

MAX_BLOCK_FEATURES = 1_024  # with more features A replaces P, whose 16 numbers per feature would not fit the cache
VARIANCE = 16.0  # of the weights before the first example
HALF_WAY = 0.5  # the power of the factor per label
NOT_MEASURED = -1.0  # ⟨x̃, g⟩, where g is not in the workspace


class Workspace(NamedTuple):
    """Buffers for one step of an expert."""

    r: Vector  # the gradient in the scores of all labels
    x: Vector  # x̃ in blocks of 16, for dense examples
    g: Vector  # x̃ times the inverse precision
    own: Vector  # ⟨x̃_q, g_q⟩ of every block; -1: the example is zero there
    invalid: Flags  # whether rounding has made the block of P invalid: the next step resets it


def n_blocks(n_features: int) -> int:
    """The number of blocks of neighbouring features; 0: a diagonal is kept. The same for dense and sparse examples."""
    return -(-n_features // BLOCK) if n_features <= MAX_BLOCK_FEATURES else 0


def new_blocks(n_features: int) -> Blocks:
    """P before the first example."""
    P = aligned_zeros((n_blocks(n_features), BLOCK, BLOCK))
    P[:] = VARIANCE * np.eye(BLOCK)
    return P


def new_diagonal(n: int) -> Vector:
    """A before the first example."""
    return np.full(n, 1.0 / VARIANCE)


def new_workspace(n_classes: int, n_features: int, sparse: bool) -> Workspace:
    """The buffers; sparse examples are not converted to dense ones."""
    padded, blocks = BLOCK * n_blocks(n_features), n_blocks(n_features)
    x, g = aligned_zeros((0 if sparse else padded,)), aligned_zeros((max(padded, 0 if sparse else n_features),))
    return Workspace(np.zeros(n_classes), x, g, np.zeros(blocks), np.zeros(blocks, dtype=np.bool_))


# --- blocks ---------------------------------------------------------------------------------------------------


@jit
def reset_block(P: Matrix) -> None:
    """Set a block to what it was before the first example."""
    for i in range(BLOCK):
        for j in range(BLOCK):
            P[i, j] = VARIANCE if i == j else 0.0


@jit
def is_valid(own: float) -> bool:
    """Whether a number can be ⟨x̃, Px̃⟩ of a positive matrix P."""
    return 0.0 <= own < math.inf


def _precondition_dense(P: Blocks, x: Any, scale: float, workspace: Workspace) -> float:
    for i in range(x.shape[0]):
        workspace.x[i] = scale * x[i]  # the entries after the last feature stay 0
    v = 0.0
    for q in range(P.shape[0]):
        at = slice(q * BLOCK, (q + 1) * BLOCK)
        part, g = workspace.x[at], workspace.g[at]
        own = multiply(P[q], part, g)
        workspace.invalid[q] = not is_valid(own)
        if workspace.invalid[q]:
            own = 0.0
            for i in range(BLOCK):
                g[i] = VARIANCE * part[i]
                own += part[i] * g[i]
        workspace.own[q] = own if own > 0.0 else -1.0
        v += own
    return v


def _precondition_sparse(P: Blocks, x: Any, scale: float, workspace: Workspace) -> float:
    for q in range(P.shape[0]):
        workspace.own[q], workspace.invalid[q] = -1.0, False
    v, start, n = 0.0, 0, x.indices.shape[0]
    while start < n:  # block by block: indices are sorted
        q = x.indices[start] // BLOCK
        first, stop = q * BLOCK, start
        g = workspace.g[first : first + BLOCK]
        for i in range(BLOCK):
            g[i] = 0.0
        while stop < n and x.indices[stop] < first + BLOCK:
            add_scaled(g, P[q, x.indices[stop] - first], scale * x.values[stop])
            stop += 1
        own = 0.0
        for j in range(start, stop):
            own += scale * x.values[j] * g[x.indices[j] - first]
        workspace.invalid[q] = not is_valid(own)
        if workspace.invalid[q]:
            own = 0.0
            for i in range(BLOCK):
                g[i] = 0.0
            for j in range(start, stop):
                xi = scale * x.values[j]
                g[x.indices[j] - first] = VARIANCE * xi
                own += xi * VARIANCE * xi
        workspace.own[q] = own if own > 0.0 else -1.0
        v += own
        start = stop
    return v


precondition = by_rows(_precondition_dense, _precondition_sparse)
precondition.__doc__ = """Write g = Px̃ with x̃ = scale·x, in the blocks where the example is not zero. Returns ⟨x̃, g⟩.

P stays as it is: the next step resets a block that rounding has made invalid; g already is that of the reset block.
"""


@jit
def update_precision(P: Blocks, workspace: Workspace, h: float) -> None:
    """P_q ← P_q - h g_q g_q'/(1 + h⟨x̃_q, g_q⟩), after a reset where P_q is invalid."""
    for q in range(P.shape[0]):
        if workspace.invalid[q]:
            reset_block(P[q])
        if workspace.own[q] >= 0.0:
            lower(P[q], workspace.g[q * BLOCK : (q + 1) * BLOCK], h / (1.0 + h * workspace.own[q]))


def _add_step_dense(W: Matrix, x: Any, first: int, K: int, workspace: Workspace, c: float) -> None:
    d = x.shape[0]
    for k in range(K):
        v = c * workspace.r[k]
        if v != 0.0:
            w, g = W[first + k], workspace.g[:d]
            for i in range(d):
                w[i] += v * g[i]


def _add_step_sparse(W: Matrix, x: Any, first: int, K: int, workspace: Workspace, c: float) -> None:
    d = W.shape[0]
    for q in range(workspace.own.shape[0]):
        if workspace.own[q] >= 0.0:
            for i in range(q * BLOCK, min((q + 1) * BLOCK, d)):
                add_scaled(W[i, first : first + K], workspace.r, c * workspace.g[i])


add_step = by_rows(_add_step_dense, _add_step_sparse)
add_step.__doc__ = "W_k ← W_k + c·r_k·g for the K labels from row `first` on."


# --- diagonal -------------------------------------------------------------------------------------------------


def _diagonal_variance_dense(x: Any, scale: float, A: Vector) -> float:
    v = 0.0
    for i in range(x.shape[0]):
        xi = scale * x[i]
        v += xi * xi / A[i]
    return v


def _diagonal_variance_sparse(x: Any, scale: float, A: Vector) -> float:
    v = 0.0
    for j in range(x.indices.shape[0]):
        xi = scale * x.values[j]
        v += xi * xi / A[x.indices[j]]
    return v


diagonal_variance = by_rows(_diagonal_variance_dense, _diagonal_variance_sparse, reorder=True)
diagonal_variance.__doc__ = "Returns Σ x̃²/A."


def _diagonal_step_dense(
    W: Matrix, x: Any, first: int, K: int, scale: float, A: Vector, max_precision: float, workspace: Workspace, h: float
) -> None:
    d, v = x.shape[0], 0.0
    g = workspace.g[:d]
    for i in range(d):
        xi = scale * x[i]
        g[i] = xi / A[i]
        v += xi * g[i]
        A[i] = min(A[i] + h * xi * xi, max_precision)
    add_step(W, x, first, K, workspace, -1.0 / (1.0 + h * v))


def _diagonal_step_sparse(
    W: Matrix, x: Any, first: int, K: int, scale: float, A: Vector, max_precision: float, workspace: Workspace, h: float
) -> None:
    c = -1.0 / (1.0 + h * diagonal_variance(x, scale, A))
    for j in range(x.indices.shape[0]):
        i, xi = x.indices[j], scale * x.values[j]
        add_scaled(W[i, first : first + K], workspace.r, c * xi / A[i])
        A[i] = min(A[i] + h * xi * xi, max_precision)


diagonal_step = by_rows(_diagonal_step_dense, _diagonal_step_sparse, reorder=True)
diagonal_step.__doc__ = "Take a step with the diagonal precision A, and update A."


# --- a step ----------------------------------------------------------------------------------------------------


@jit
def measure_variance(P: Blocks, A: Vector, x: Any, scale: float, workspace: Workspace) -> float:
    """Return v = ⟨x̃, g⟩. With blocks, g stays in the workspace for a step on the same example."""
    return precondition(P, x, scale, workspace) if P.shape[0] > 0 else diagonal_variance(x, scale, A)


@jit
def rescale(G: Vector, labels: Integers, r: Vector, power: float, workspace: Workspace) -> None:
    """Add |r| to G, and write r_k·(ΣG/(K·G_k))^power, clipped; labels that are not available get 0."""
    K, total = G.shape[0], 0.0
    for i in range(r.shape[0]):
        G[labels[i]] += abs(r[i])
    for k in range(K):
        total += G[k]
        workspace.r[k] = 0.0
    for i in range(r.shape[0]):
        k = labels[i]
        ratio = total / (K * G[k])
        factor = math.sqrt(ratio) if power == HALF_WAY else ratio**power
        workspace.r[k] = r[i] * min(max(factor, 0.25), 4.0)


@jit
def newton_step(
    W: Matrix,
    first: int,
    x: Any,
    scale: float,
    P: Blocks,
    A: Vector,
    max_precision: float,
    G: Vector,
    labels: Integers,
    r: Vector,
    power: float,
    h: float,
    v: float,
    workspace: Workspace,
) -> None:
    """Take a step on the gradient r over the available labels.

    Args:
        W: the weights of all learners.
        first: the row of W that holds the expert's first label.
        x: the example.
        scale: x̃ = scale·x.
        P: the inverse precision in blocks; none: A is used.
        A: the diagonal precision.
        max_precision: the largest entry of A.
        G: Σ|r_k| of every label.
        labels: the available labels.
        r: the gradient in their scores.
        power: of the factor per label.
        h: the curvature times the size of r.
        v: what `measure_variance` returned, if the workspace has its g and P is the same; or NOT_MEASURED.
        workspace: buffers.
    """
    K = G.shape[0]
    rescale(G, labels, r, power, workspace)
    if P.shape[0] > 0:
        if v == NOT_MEASURED:
            v = precondition(P, x, scale, workspace)
        add_step(W, x, first, K, workspace, -1.0 / (1.0 + h * v))
        update_precision(P, workspace, h)
    else:
        diagonal_step(W, x, first, K, scale, A, max_precision, workspace, h)
