"""Operations on scores and distributions over labels. All O(K).

A label that is not available in a round has the score -∞ (`mask_unavailable`). Every function here then excludes it: it
is never the top label, never the rival unless there is no other, and its probability is exactly 0.
"""

import math

from gaptron.kernels.compile.exponential import exponentials
from gaptron.kernels.compile.jit import jit, jit_reordered
from gaptron.types import Flags, Vector


@jit
def mask_unavailable(z: Vector, available: Flags) -> int:
    """Set the scores of unavailable labels to -∞, and return how many labels are available."""
    n = 0
    for k in range(z.shape[0]):
        n += available[k]
        if not available[k]:
            z[k] = -math.inf
    return n


@jit
def count_available(available: Flags) -> int:
    """Return how many labels are available."""
    n = 0
    for k in range(available.shape[0]):
        n += available[k]
    return n


@jit
def multiply(z: Vector, c: float) -> None:
    """z ← c·z."""
    for k in range(z.shape[0]):
        z[k] *= c


@jit
def best(z: Vector) -> int:
    """Return the label of the largest score; the lowest one on ties."""
    top, highest = 0, z[0]
    for k in range(1, z.shape[0]):
        if z[k] > highest:
            top, highest = k, z[k]
    return top


@jit
def rival(z: Vector, y: int) -> int:
    """Return the label of the largest score other than y; the lowest one on ties."""
    other = 1 if y == 0 else 0
    highest = z[other]
    for k in range(other + 1, z.shape[0]):
        if k != y and z[k] > highest:
            other, highest = k, z[k]
    return other


@jit
def softmax(z: Vector, top: int, p: Vector) -> float:
    """Write p_k = exp z_k / Σ exp z, shifted by the top score to avoid overflow.

    Returns 1 - p_top, computed as the sum of the other probabilities, so that it is not rounded to 0.
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
    """Return ln Σ exp z, shifted to avoid overflow."""
    shift = z[best(z)]
    total = 0.0
    for k in range(z.shape[0]):
        total += math.exp(z[k] - shift)
    return float(shift + math.log(total))


@jit
def uniform(p: Vector, available: Flags, a: float) -> None:
    """Write p = a/n over the n available labels."""
    n = count_available(available)
    for k in range(p.shape[0]):
        p[k] = a / n if available[k] else 0.0


@jit
def mix_uniform(p: Vector, available: Flags, top: int, a: float) -> None:
    """Write p = (1 - a) e_top + a/n over the n available labels."""
    uniform(p, available, a)
    p[top] += 1.0 - a


TIE = 1e-12  # scores that differ by less, relatively, were equal before they were rounded


@jit
def add_to_best(p: Vector, z: Vector, top: int, share: float) -> None:
    """Add a share to the label of the largest score. Labels that tie, up to rounding, get equal parts."""
    n, least = 0, z[top] - TIE * abs(z[top])
    for k in range(z.shape[0]):
        n += z[k] >= least
    if n == 1:
        p[top] += share
        return
    for k in range(z.shape[0]):
        if z[k] >= least:
            p[k] += share / n


@jit
def point_at_best(p: Vector, z: Vector, top: int) -> None:
    """Write p = e_top, or the uniform distribution over the labels that tie for the largest score."""
    for k in range(p.shape[0]):
        p[k] = 0.0
    add_to_best(p, z, top, 1.0)


@jit
def inverse_gap(f: Vector, z: Vector, n: int, top: int, gamma: float, q: Vector) -> None:
    """Write q(k) = 1/(n + γ(f_top - f_k)) for the n available labels, z_k > -∞; the remainder goes to the top label."""
    rest = 0.0
    for k in range(f.shape[0]):
        q[k] = 0.0
        if k != top and z[k] > -math.inf:
            q[k] = 1.0 / (n + gamma * max(f[top] - f[k], 0.0))
            rest += q[k]
    q[top] = max(1.0 - rest, 1.0 / n)


@jit
def point(p: Vector, top: int) -> None:
    """Write p = e_top."""
    for k in range(p.shape[0]):
        p[k] = 0.0
    p[top] = 1.0


@jit
def normalise(p: Vector) -> None:
    """Divide p by its sum if rounding took a probability above 1. None exceeds 1 afterwards."""
    if p[best(p)] <= 1.0:
        return
    total = 0.0
    for k in range(p.shape[0]):
        total += p[k]  # at least as large as every part of it, rounded or not
    for k in range(p.shape[0]):
        p[k] /= total


@jit
def draw(p: Vector, top: int, u: float) -> int:
    """Draw a label from p by the inverse distribution function at u ∈ [0, 1); a rounding remainder goes to the top.

    u is a multiple of 2⁻⁵³ and is moved to the middle of its step: u = 0 must not pick a label of probability 1e-300.
    """
    u += 2.0**-54
    # No early exit: a mispredicted branch costs more than the rest of the sum.
    label, reached = 0, 0.0
    for k in range(p.shape[0]):
        reached += p[k]
        label += reached <= u
    return label if label < p.shape[0] else top


@jit_reordered
def roots(b: Vector, c: Vector, level: float, q: Vector) -> float:
    """Write q_y = the root ρ ≥ 0 of ρ² - (b_y - λ)ρ - c_y = 0, c ≥ 0, without cancellation, and return their sum.

    There are no branches, so the loop is vectorised.
    """
    for y in range(b.shape[0]):
        linear = b[y] - level
        root = math.sqrt(linear * linear + 4.0 * c[y])
        positive = linear > 0.0
        q[y] = (linear + root if positive else 4.0 * c[y]) / (2.0 if positive else 2.0 * max(root - linear, 1e-300))
    total = 0.0
    for y in range(b.shape[0]):
        total += q[y]
    return total


TOO_RARE = 2.0**-53  # a draw of 53 bits never finds a label of a smaller probability
RAISED = 2.0**-40  # the probability that such a label gets


@jit
def raise_rare(b: Vector, c: Vector, level: float, q: Vector) -> float:
    """Raise probabilities below `TOO_RARE` of labels with c_y > 0 to `RAISED`, at the expense of the largest one.

    Returns the level that the gaps do not exceed afterwards.
    """
    added = 0.0
    for y in range(q.shape[0]):
        if q[y] < TOO_RARE and c[y] > 0.0:
            added += RAISED - q[y]
            q[y] = RAISED
    if added == 0.0:
        return level
    top = best(q)
    q[top] -= added
    return max(level, float(b[top] - q[top] + c[top] / q[top]))


@jit
def least_exploration(b: Vector, c: Vector, z: Vector, top: int, q: Vector) -> tuple[float, bool]:
    """Write the distribution with the least probability of every label that keeps its surrogate gap at or below λ.

    The gap of label y at probability q is b_y - q + c_y/q. It is at most λ if q(y) ≥ ρ_y(λ), the root of
    ρ² - (b_y - λ)ρ - c_y. If these probabilities sum to at most 1 at λ = 0, they are used, and the label of the largest
    score z, `top`, gets the remainder (`add_to_best`). Otherwise λ increases until they do: Newton's method from the
    left on the convex, decreasing S(λ) = Σ ρ_y(λ). A label with b = -∞ and c = 0 gets probability 0.

    Returns:
        The level λ that the gaps of the final q do not exceed, and whether λ had to increase.
    """
    K = b.shape[0]
    S = roots(b, c, 0.0, q)
    if S <= 1.0:
        add_to_best(q, z, top, 1.0 - S)
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
    worst = 0.0  # q = ρ/S has gap(y) = λ + (S - 1)(ρ/S + c/ρ), and c/ρ = ρ - b
    for y in range(K):
        if q[y] > 0.0:
            worst = max(worst, q[y] / S + q[y] - (b[y] - level))
        q[y] /= S
    return raise_rare(b, c, level + max(S - 1.0, 0.0) * worst, q), True
