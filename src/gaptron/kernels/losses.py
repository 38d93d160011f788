"""The surrogate losses of van der Hoeven 2020 at label y, as functions of the scores.

    logistic       ℓ = -log₂ p̃_y                                          c = (p̃ - e_y)/ln 2
    hinge          ℓ = 0 if y = y* and m* > β, else max(1 - m(y), 0)       c = e_k̃ - e_y  where ℓ > 0
    smooth hinge   ℓ = 1 - 2m(y) if m(y) ≤ 0, else max(1 - m(y), 0)²       c = 2(e_k̃ - e_y)·(1 - m(y)₊)₊

The gradient in the weights is c ⊗ x, and `descent` gives the coefficients of a step against it. For both hinges
c = v·(e_k̃ - e_y), k̃ the rival of y, has two entries, so that an update costs O(nnz); `pull` gives the number v.
"""

import math

from gaptron.kernels.compile.jit import inner, jit
from gaptron.kernels.simplex import best, logsumexp, rival, softmax
from gaptron.types import Loss, Vector

LN2 = math.log(2.0)
LOGISTIC, HINGE, SMOOTH_HINGE = int(Loss.LOGISTIC), int(Loss.HINGE), int(Loss.SMOOTH_HINGE)


@jit
def margin(z: Vector, y: int) -> float:
    """m(y) = z_y - max over the others."""
    return float(z[y] - z[rival(z, y)])


@jit
def confident(z: Vector, top: int, beta: float) -> bool:
    """m* > β: the test that mask, gap map and update of the truncated hinge share."""
    return margin(z, top) > beta


@jit
def value(loss: int, beta: float, z: Vector, y: int) -> float:
    """ℓ at label y."""
    if loss == LOGISTIC:
        return float((logsumexp(z) - z[y]) / LN2)
    m = margin(z, y)
    if loss == HINGE:
        top = best(z)
        if y == top and confident(z, top, beta):
            return 0.0
        return max(1.0 - m, 0.0)
    if m <= 0.0:
        return 1.0 - 2.0 * m
    return max(1.0 - m, 0.0) ** 2


@jit
def pull(loss: int, beta: float, z: Vector, y: int) -> float:
    """v of the hinges' gradient v·(e_k̃ - e_y), k̃ the rival of y."""
    m = margin(z, y)
    if loss == HINGE:
        top = best(z)
        if m >= 1.0 or (y == top and confident(z, top, beta)):
            return 0.0
        return 1.0
    if m <= 0.0:
        return 2.0
    return 2.0 * max(1.0 - m, 0.0)


@inner
def descent(loss: int, beta: float, z: Vector, p: Vector, y: int, step: float, r: Vector) -> None:
    """r = -step·c, so that W ← W + r ⊗ x is a gradient step at label y. Reads p̃ from p for the logistic loss."""
    if loss == LOGISTIC:
        v = -step / LN2
        for k in range(r.shape[0]):
            r[k] = v * p[k]
        r[y] -= v
        return
    for k in range(r.shape[0]):
        r[k] = 0.0
    v = step * pull(loss, beta, z, y)
    r[rival(z, y)] = -v
    r[y] = v


@jit
def gap_map(loss: int, beta: float, z: Vector, p: Vector, top: int) -> float:
    """a of the paper: the share of the uniform distribution in Gaptron's. Writes p̃ into p for the logistic loss."""
    if loss == LOGISTIC:
        rest = softmax(z, top, p)
        return 1.0 if p[top] < 0.5 else rest
    if loss == HINGE:
        return 0.0 if confident(z, top, beta) else 1.0 - margin(z, top)
    return (1.0 - min(1.0, margin(z, top))) ** 2


def paper_step(loss: Loss, K: int, beta: float) -> float:
    """ηX² of Theorems 1-3 (van der Hoeven 2020); with it and `gap_map` the surrogate gap is never positive."""
    return {Loss.LOGISTIC: LN2 / 2, Loss.HINGE: 1 - beta, Loss.SMOOTH_HINGE: 0.25}[loss] / K
