"""What a softmax model p learns from an answer: the gradient, in the scores, of minus the log of its probability.

    "it is y"              -ln p_y          r = p - e_y
    "it is not a"          -ln(1 - p_a)     r = p_a/(1 - p_a)·(e_a - p)
    "a is worth s"         s times the first and 1 - s times the second, 0 ≤ s ≤ 1

The gradient in the weights is r ⊗ x. Natural logarithms.
"""

from gaptron.kernels.jit import lean
from gaptron.types import UNKNOWN, Vector

LEAST = 1e-3  # the least 1 - p_a that is divided by


@lean
def told(p: Vector, y: int, r: Vector) -> None:
    """r = p - e_y. r may be p itself."""
    for k in range(p.shape[0]):
        r[k] = p[k]
    r[y] -= 1.0


@lean
def denied(p: Vector, a: int, r: Vector) -> None:
    """r = p_a/(1 - p_a)·(e_a - p), with 1 - p_a at least 1/1000. r may be p itself."""
    weight = p[a] / max(1.0 - p[a], LEAST)
    for k in range(p.shape[0]):
        r[k] = -weight * p[k]
    r[a] += weight


@lean
def answered(p: Vector, label: int, truth: int, r: Vector) -> None:
    """What a bandit answer to `label` teaches: `told` if it was right, `denied` if the truth stays unknown."""
    if truth == UNKNOWN:
        denied(p, label, r)
    else:
        told(p, truth, r)


@lean
def rewarded(p: Vector, label: int, reward: float, r: Vector) -> None:
    """What it teaches that `label` was worth `reward`: to the bit `told` at 1 and `denied` at 0. r may be p itself."""
    weight = -reward + (1.0 - reward) * (p[label] / max(1.0 - p[label], LEAST))
    for k in range(p.shape[0]):
        r[k] = -weight * p[k]
    r[label] += weight
