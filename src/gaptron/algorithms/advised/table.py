"""The learners of Advised Gaptron for actions with features: one table with a row of numbers per feature.

All actions share the weights, so a learner is one number per feature, and an expert has the variance of each weight
besides. They lie side by side: a non-zero of an action reads one line of the cache.

    step along D with the factor h     v = Σ D_i²P_i;   u_i ← u_i - D_i P_i/(1 + hv);   P_i ← P_i/(1 + h D_i²P_i)

which is a Newton step whose curvature h·DD' is approximated by its diagonal.
"""

from typing import Any

import numpy as np

from gaptron.kernels.compile.jit import by_rows, inner, jit
from gaptron.kernels.rows import aligned_zeros, row
from gaptron.types import Integers, Matrix, SparseRow, Vector

ONE, NEWTON, TRACKER, CERTIFIED, SIDE = range(5)  # weights; of the last two -Σ ĝ
ONE_VARIANCE, NEWTON_VARIANCE, TRACKER_VARIANCE = range(5, 8)  # P
COLUMNS = 8
# What `score_actions` writes of each action: ⟨u, φ⟩ of every learner, and
UNCERTAINTY, SQUARE = 5, 6  # Σφ_i²P_i of `ONE`, and ‖φ‖²
SCORES = 7
FIRST_VARIANCES = 8.0, 16.0, 16.0  # of ONE, NEWTON, TRACKER
LEAST_TRACKER = 2.0  # the tracker's variance stays above this, so that it keeps adapting


def new_table(n_features: int) -> Matrix:
    """Nothing is learned."""
    W = aligned_zeros((n_features, COLUMNS))
    W[:, ONE_VARIANCE:] = FIRST_VARIANCES
    return W


def check(W: Matrix) -> None:
    """Check that the variances of a table are positive."""
    if not (W[:, ONE_VARIANCE:] >= 0.0).all():
        raise ValueError("a variance is negative")


# --- scores ---------------------------------------------------------------------------------------------------


def _score_dense(W: Matrix, x: Any, Z: Matrix) -> None:
    for k in range(x.shape[0]):
        one, newton, tracker, certified, side, uncertainty, square = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(x.shape[1]):
            w, v = W[i], np.float64(x[k, i])
            one += v * w[ONE]
            newton += v * w[NEWTON]
            tracker += v * w[TRACKER]
            certified += v * w[CERTIFIED]
            side += v * w[SIDE]
            uncertainty += v * v * w[ONE_VARIANCE]
            square += v * v
        Z[k, ONE], Z[k, NEWTON], Z[k, TRACKER], Z[k, CERTIFIED], Z[k, SIDE] = one, newton, tracker, certified, side
        Z[k, UNCERTAINTY], Z[k, SQUARE] = uncertainty, square


def _score_sparse(W: Matrix, x: Any, Z: Matrix) -> None:
    for k in range(x.indptr.shape[0] - 1):
        one, newton, tracker, certified, side, uncertainty, square = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(x.indptr[k], x.indptr[k + 1]):
            w, v = W[x.indices[j]], np.float64(x.values[j])
            one += v * w[ONE]
            newton += v * w[NEWTON]
            tracker += v * w[TRACKER]
            certified += v * w[CERTIFIED]
            side += v * w[SIDE]
            uncertainty += v * v * w[ONE_VARIANCE]
            square += v * v
        Z[k, ONE], Z[k, NEWTON], Z[k, TRACKER], Z[k, CERTIFIED], Z[k, SIDE] = one, newton, tracker, certified, side
        Z[k, UNCERTAINTY], Z[k, SQUARE] = uncertainty, square


score_actions = by_rows(_score_dense, _score_sparse)
score_actions.__doc__ = "Write the scores of all learners, the uncertainty and ‖φ‖² of every action. O(nnz·K)."


@jit
def score_context(W: Matrix, x: SparseRow) -> tuple[float, float, float]:
    """Return ⟨u, ψ⟩, Σψ_i²P_i and ‖ψ‖² of the one-against-all regression for a context ψ."""
    one, uncertainty, square = 0.0, 0.0, 0.0
    for j in range(x.indices.shape[0]):
        w, v = W[x.indices[j]], x.values[j]
        one += v * w[ONE]
        uncertainty += v * v * w[ONE_VARIANCE]
        square += v * v
    return one, uncertainty, square


# --- steps ----------------------------------------------------------------------------------------------------


def _add_dense(W: Matrix, x: Any, learner: int, r: Vector) -> None:
    for k in range(r.shape[0]):
        for i in range(x.shape[1]):
            W[i, learner] += r[k] * np.float64(x[k, i])


def _add_sparse(W: Matrix, x: Any, learner: int, r: Vector) -> None:
    for k in range(r.shape[0]):
        for j in range(x.indptr[k], x.indptr[k + 1]):
            W[x.indices[j], learner] += r[k] * np.float64(x.values[j])


add_actions = by_rows(_add_dense, _add_sparse)
add_actions.__doc__ = "Update u ← u + Σ r_k φ_k for one learner. O(nnz·K)."


def _along_dense(W: Matrix, x: Any, scale: float, rate: float, h: float) -> None:
    for i in range(x.shape[0]):
        w, D = W[i], scale * np.float64(x[i])
        w[ONE] -= rate * D * w[ONE_VARIANCE]
        w[ONE_VARIANCE] /= 1.0 + h * D * D * w[ONE_VARIANCE]


def _along_sparse(W: Matrix, x: Any, scale: float, rate: float, h: float) -> None:
    for j in range(x.indices.shape[0]):
        w, D = W[x.indices[j]], scale * np.float64(x.values[j])
        w[ONE] -= rate * D * w[ONE_VARIANCE]
        w[ONE_VARIANCE] /= 1.0 + h * D * D * w[ONE_VARIANCE]


step_along = by_rows(_along_dense, _along_sparse)
step_along.__doc__ = "A step of `ONE` along D = scale·x; rate = slope/(1 + hv). O(nnz)."


@inner
def step_on_action(W: Matrix, rows: Any, k: int, scale: float, rate: float, h: float) -> None:
    """`step_along` for action k."""
    step_along(W, row(rows, k), scale, rate, h)


@jit
def _move(w: Vector, D: float, rate: float, h: float, E: float, tracking_rate: float, tracking_h: float) -> None:
    P, Q = w[NEWTON_VARIANCE], w[TRACKER_VARIANCE]
    w[NEWTON] -= rate * D * P
    w[TRACKER] -= tracking_rate * E * Q
    w[NEWTON_VARIANCE] = P / (1.0 + h * D * D * P)
    w[TRACKER_VARIANCE] = max(Q / (1.0 + tracking_h * E * E * Q), LEAST_TRACKER)


def _between_dense(
    W: Matrix, x: Any, scale: float, r: Vector, h: float, s: Vector, g: float, space: Vector, at: Integers
) -> None:
    d, v, u = x.shape[1], 0.0, 0.0
    for k in range(r.shape[0]):
        for i in range(d):
            value = scale * np.float64(x[k, i])
            space[i] += r[k] * value
            space[d + i] += s[k] * value
    for i in range(d):
        v += space[i] * space[i] * W[i, NEWTON_VARIANCE]
        u += space[d + i] * space[d + i] * W[i, TRACKER_VARIANCE]
    for i in range(d):
        _move(W[i], space[i], 1.0 / (1.0 + h * v), h, space[d + i], 1.0 / (1.0 + g * u), g)
        space[i] = space[d + i] = 0.0


def _between_sparse(
    W: Matrix, x: Any, scale: float, r: Vector, h: float, s: Vector, g: float, space: Vector, at: Integers
) -> None:
    n, v, u = 0, 0.0, 0.0
    for k in range(r.shape[0]):
        for j in range(x.indptr[k], x.indptr[k + 1]):
            i, value = x.indices[j], scale * np.float64(x.values[j])
            if space[4 * i + 2] == 0.0:
                space[4 * i + 2] = 1.0
                at[n] = i
                n += 1
            space[4 * i] += r[k] * value
            space[4 * i + 1] += s[k] * value
    for j in range(n):
        i = at[j]
        v += space[4 * i] * space[4 * i] * W[i, NEWTON_VARIANCE]
        u += space[4 * i + 1] * space[4 * i + 1] * W[i, TRACKER_VARIANCE]
    rate, tracking_rate = 1.0 / (1.0 + h * v), 1.0 / (1.0 + g * u)
    for j in range(n):
        i = at[j]
        _move(W[i], space[4 * i], rate, h, space[4 * i + 1], tracking_rate, g)
        space[4 * i] = space[4 * i + 1] = space[4 * i + 2] = 0.0


step_between = by_rows(_between_dense, _between_sparse)
step_between.__doc__ = """A step of `NEWTON` along scale·Σ r_k φ_k with h, of `TRACKER` along scale·Σ s_k φ_k with g.

Both at once, because finding the columns takes most of the time. O(nnz·K). `space` is that of `ActionRows`, `at` a
buffer of one number per feature.
"""
