"""Verbs on scores and distributions over labels. All O(K).

A label that is not available in a round has the score -∞, which `exclude` gives it. Every verb here then leaves it out
by itself: it is never the top, never a rival unless there is none, and its probability is exactly 0.
"""

import math

from gaptron.kernels.exponential import exponentials
from gaptron.kernels.jit import jit, jit_reordered
from gaptron.types import Flags, Vector


@jit
def exclude(z: Vector, among: Flags) -> int:
    """Give the labels that are not available the score -∞. Returns how many are available."""
    n = 0
    for k in range(z.shape[0]):
        n += among[k]
        if not among[k]:
            z[k] = -math.inf
    return n


@jit
def available(among: Flags) -> int:
    """How many labels are available."""
    n = 0
    for k in range(among.shape[0]):
        n += among[k]
    return n


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
    exponentials(z, z[top], p)
    p[top], rest = 0.0, 0.0
    for k in range(z.shape[0]):
        rest += p[k]
    p[top] = 1.0
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
def mix_uniform(p: Vector, among: Flags, top: int, a: float) -> None:
    """p = (1 - a) e_top + a/n over the n available labels."""
    n = available(among)
    for k in range(p.shape[0]):
        p[k] = a / n if among[k] else 0.0
    p[top] += 1.0 - a


@jit
def inverse_gap(f: Vector, z: Vector, n: int, top: int, gamma: float, q: Vector) -> None:
    """q(k) = 1/(n + γ(f_top - f_k)) for the n available labels, those with z_k > -∞; what is left goes to the top."""
    rest = 0.0
    for k in range(f.shape[0]):
        q[k] = 0.0
        if k != top and z[k] > -math.inf:
            q[k] = 1.0 / (n + gamma * max(f[top] - f[k], 0.0))
            rest += q[k]
    q[top] = max(1.0 - rest, 1.0 / n)


@jit
def point(p: Vector, top: int) -> None:
    """p = e_top."""
    for k in range(p.shape[0]):
        p[k] = 0.0
    p[top] = 1.0


@jit
def draw(p: Vector, top: int, u: float) -> int:
    """A label from p by its inverse distribution function at u ∈ [0, 1); what rounding leaves goes to the top.

    u is one of 2⁵³ steps and is moved to the middle of its step: u = 0 must not pick a label of probability 1e-300.
    """
    u += 2.0**-54
    # Counting instead of stopping: a branch the processor cannot foresee costs more than the rest of the sum.
    label, reached = 0, 0.0
    for k in range(p.shape[0]):
        reached += p[k]
        label += reached <= u
    return label if label < p.shape[0] else top


@jit_reordered
def roots(b: Vector, c: Vector, level: float, q: Vector) -> float:
    """q_y = the root ρ ≥ 0 of ρ² - (b_y - λ)ρ - c_y = 0, c ≥ 0, without cancellation. Returns their sum.

    No branch: so the vector unit takes several labels at once.
    """
    for y in range(b.shape[0]):
        lead = b[y] - level
        wide = math.sqrt(lead * lead + 4.0 * c[y])
        up = lead > 0.0
        q[y] = (lead + wide if up else 4.0 * c[y]) / (2.0 if up else 2.0 * max(wide - lead, 1e-300))
    total = 0.0
    for y in range(b.shape[0]):
        total += q[y]
    return total


RARE, SELDOM = 2.0**-53, 2.0**-40


@jit
def raise_rare(b: Vector, c: Vector, level: float, q: Vector) -> float:
    """Give labels too rare for a draw of 53 bits ever to find, where c_y > 0 says they count, 2⁻⁴⁰ from the largest.

    Returns the level that the gaps now keep.
    """
    taken = 0.0
    for y in range(q.shape[0]):
        if q[y] < RARE and c[y] > 0.0:
            taken += SELDOM - q[y]
            q[y] = SELDOM
    if taken == 0.0:
        return level
    top = best(q)
    q[top] -= taken
    return max(level, float(b[top] - q[top] + c[top] / q[top]))


@jit
def least_exploration(b: Vector, c: Vector, heir: int, q: Vector) -> tuple[float, bool]:
    """The distribution that gives each label no more than its surrogate gap demands.

    Label y's gap at probability q is b_y - q + c_y/q, so that gap ≤ λ asks for q(y) ≥ ρ_y(λ), the root of
    ρ² - (b_y - λ)ρ - c_y. If the demands at λ = 0 sum to at most 1, they are met and the heir gets what is left. Else λ
    rises until they do: Newton from the left on the convex, falling S(λ) = Σ ρ_y(λ). A label with b = -∞ and c = 0
    demands nothing and gets nothing.
    Returns the level λ that the gaps of the q really played keep, and whether it had to rise.
    """
    K = b.shape[0]
    S = roots(b, c, 0.0, q)
    if S <= 1.0:
        q[heir] += 1.0 - S
        return raise_rare(b, c, 0.0, q), False
    level = 0.0
    for _ in range(100):
        if S <= 1.0 + 1e-12:
            break
        slope = 0.0
        for y in range(K):
            if q[y] > 0.0:  # ∂ρ/∂λ = -ρ/√(b² + 4c), and √(b² + 4c) = 2ρ - b
                slope += q[y] / (2.0 * q[y] - (b[y] - level))
        level += (S - 1.0) / slope
        S = roots(b, c, level, q)
    worst = 0.0  # q = ρ/S leaves gap(y) = λ + (S - 1)(ρ/S + c/ρ), and c/ρ = ρ - b
    for y in range(K):
        if q[y] > 0.0:
            worst = max(worst, q[y] / S + q[y] - (b[y] - level))
        q[y] /= S
    return raise_rare(b, c, level + max(S - 1.0, 0.0) * worst, q), True
