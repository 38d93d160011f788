"""Verbs on scores and distributions over labels. All O(K)."""

import math

from gaptron.kernels.jit import jit
from gaptron.types import Vector


@jit
def best(z: Vector) -> int:
    """The top label; of equals, the lowest."""
    top, highest = 0, z[0]
    for k in range(1, z.shape[0]):
        if z[k] > highest:
            top, highest = k, z[k]
    return top


@jit
def rival(z: Vector, y: int) -> int:
    """The best label other than y; of equals, the lowest."""
    other = 1 if y == 0 else 0
    highest = z[other]
    for k in range(other + 1, z.shape[0]):
        if k != y and z[k] > highest:
            other, highest = k, z[k]
    return other


@jit
def softmax(z: Vector, top: int, p: Vector) -> float:
    """p_k = exp z_k / Σ exp z, shifted by the top score so that nothing overflows.

    Returns 1 - p_top as the sum of the others: never rounded to 0 while they are there.
    """
    shift, rest = z[top], 0.0
    for k in range(z.shape[0]):
        p[k] = math.exp(z[k] - shift)
        if k != top:
            rest += p[k]
    share = 1.0 / (1.0 + rest)
    for k in range(z.shape[0]):
        p[k] *= share
    return rest * share


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
    # Counting instead of stopping: a branch the processor cannot foresee costs more than the rest of the sum.
    label, reached = 0, 0.0
    for k in range(p.shape[0]):
        reached += p[k]
        label += reached <= u
    return label if label < p.shape[0] else top
