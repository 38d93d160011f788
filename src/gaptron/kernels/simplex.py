"""Verbs on scores and distributions over labels. All O(K)."""

import math

from gaptron.kernels.jit import jit
from gaptron.types import Vector


@jit
def best(z: Vector) -> int:
    """The top label; of equals, the lowest."""
    top = 0
    for k in range(1, z.shape[0]):
        if z[k] > z[top]:
            top = k
    return top


@jit
def rival(z: Vector, y: int) -> int:
    """The best label other than y; of equals, the lowest."""
    other = 1 if y == 0 else 0
    for k in range(other + 1, z.shape[0]):
        if k != y and z[k] > z[other]:
            other = k
    return other


@jit
def softmax(z: Vector, p: Vector) -> None:
    """p_k = exp z_k / Σ exp z, shifted so that nothing overflows."""
    shift = z[best(z)]
    total = 0.0
    for k in range(z.shape[0]):
        p[k] = math.exp(z[k] - shift)
        total += p[k]
    for k in range(z.shape[0]):
        p[k] /= total


@jit
def logsumexp(z: Vector) -> float:
    """ln Σ exp z, shifted so that nothing overflows."""
    shift = z[best(z)]
    total = 0.0
    for k in range(z.shape[0]):
        total += math.exp(z[k] - shift)
    return float(shift + math.log(total))


@jit
def mix_uniform(p: Vector, top: int, a: float) -> None:
    """p = (1 - a) e_top + a/K."""
    K = p.shape[0]
    for k in range(K):
        p[k] = a / K
    p[top] += 1.0 - a


@jit
def point(p: Vector, top: int) -> None:
    """p = e_top."""
    for k in range(p.shape[0]):
        p[k] = 0.0
    p[top] = 1.0


@jit
def draw(p: Vector, top: int, u: float) -> int:
    """A label from p by its inverse distribution function at u ∈ [0, 1); what rounding leaves goes to the top."""
    for k in range(p.shape[0]):
        u -= p[k]
        if u < 0.0:
            return k
    return top
