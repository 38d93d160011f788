"""Experts who give every label a probability, and two ways to hear them together.

Under bandit feedback by Bayes' rule on what was seen, with a share for all so that a change is followed:

    P ∝ Σ_j ω_j f_j;   then ω_j ∝ ω_j·(φ_j if right, else 1 - φ_j),  φ_j = f_j(label);   ω ← 0.99 ω + 0.01/n

With the truth told, by stacking: a logistic regression whose features are the experts' log-probabilities,

    P = softmax Σ_j u_j L_j;   then g_j = ⟨P - e_y, L_j⟩,  N ← N + ‖g‖²,  u ← u - g/√(1 + N)

A caller's own advice enters as four experts (1 - m)f + m/K, m = 0, 0.2, 0.5, 0.8: advice that is right seven times in
ten but always sure would else be lost, for each wrong certainty costs it a factor of 1000. Experts that are not
there in a round keep the weight they had among all.
"""

import math

from gaptron.kernels.jit import jit
from gaptron.kernels.simplex import best
from gaptron.types import Matrix, Vector

TEMPERS = (0.0, 0.2, 0.5, 0.8)
COPIES = len(TEMPERS)
LEAST = 1e-12  # the least probability whose logarithm is taken
SURE = 1e-3  # an expert's φ lies this far from 0 and 1
SHARE = 0.01  # of the weight is dealt out evenly after each round
RANGE = 10.0  # logarithms are raised to this much below their largest


@jit
def invite(advice: Vector, F: Matrix, first: int) -> int:
    """Write the tempered copies of the caller's advice from row `first` on. Returns how many experts speak."""
    K, total = F.shape[1], 0.0
    for k in range(advice.shape[0]):
        total += advice[k]
    if total <= 0.0:
        return first
    for i in range(COPIES):
        m = TEMPERS[i]
        for k in range(K):
            F[first + i, k] = (1.0 - m) * advice[k] / total + m / K
    return first + COPIES


@jit
def centre(a: Vector, share: float) -> None:
    """Raise a to at least its largest entry less RANGE; then make the entries sum to 0 and take a share of them."""
    least, mean = a[best(a)] - RANGE, 0.0
    for k in range(a.shape[0]):
        a[k] = max(a[k], least)
        mean += a[k]
    mean /= a.shape[0]
    for k in range(a.shape[0]):
        a[k] = share * (a[k] - mean)


@jit
def blend(omega: Vector, F: Matrix, n: int, a: Vector) -> tuple[int, int]:
    """a = ln Σ ω_j f_j over the n experts, centred. Returns its top label, and the top label without expert 0."""
    K, total = F.shape[1], 0.0
    for j in range(n):
        total += omega[j]
    outside, highest = 0, -1.0
    for k in range(K):
        a[k] = 0.0
        for j in range(1, n):
            a[k] += omega[j] / total * F[j, k]
        if a[k] > highest:
            outside, highest = k, a[k]
        a[k] += omega[0] / total * F[0, k]
    top = best(a)
    for k in range(K):
        a[k] = math.log(max(a[k], LEAST))
    centre(a, 1.0)
    return top, outside


@jit
def believe(omega: Vector, F: Matrix, n: int, label: int, hit: bool) -> None:
    """Bayes' rule on the answer to `label`, then the share for all. The n experts' total weight stays."""
    total, after = 0.0, 0.0
    for j in range(n):
        phi = min(max(F[j, label], SURE), 1.0 - SURE)
        total += omega[j]
        omega[j] *= phi if hit else 1.0 - phi
        after += omega[j]
    for j in range(n):
        omega[j] = total * ((1.0 - SHARE) * omega[j] / after + SHARE / n)


@jit
def stack(u: Vector, L: Matrix, n: int, a: Vector) -> tuple[int, int]:
    """a = Σ u_j L_j over the n experts. Returns its top label, and the top label without expert 0."""
    outside, highest = 0, -math.inf
    for k in range(L.shape[1]):
        a[k] = 0.0
        for j in range(1, n):
            a[k] += u[j] * L[j, k]
        if a[k] > highest:
            outside, highest = k, a[k]
        a[k] += u[0] * L[0, k]
    return best(a), outside


@jit
def restack(u: Vector, seen: Vector, L: Matrix, n: int, r: Vector, g: Vector) -> None:
    """One step of the stacking, r = P - e_y; g is work, seen[0] the sum of squares N."""
    for j in range(n):
        g[j] = 0.0
        for k in range(L.shape[1]):
            g[j] += r[k] * L[j, k]
        seen[0] += g[j] * g[j]
    for j in range(n):
        u[j] -= g[j] / math.sqrt(1.0 + seen[0])
