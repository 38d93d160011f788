"""What a softmax model p learns from an answer: the gradient, in the scores, of minus the log of its probability.

    "it is y"              -ln p_y          r = p - e_y
    "it is not a"          -ln(1 - p_a)     r = p_a/(1 - p_a)·(e_a - p)
    "a is worth s"         s times the first and 1 - s times the second, 0 ≤ s ≤ 1

The gradient in the weights is r ⊗ x. Natural logarithms.
"""

from gaptron.kernels.jit import jit
from gaptron.types import Vector

LEAST = 1e-3  # the least 1 - p_a that is divided by


@jit
def told(p: Vector, y: int, r: Vector) -> None:
    """r = p - e_y. r may be p itself."""
    for k in range(p.shape[0]):
        r[k] = p[k]
    r[y] -= 1.0


@jit
def pull_of(p: float, reward: float) -> float:
    """How strongly an answer pulls at the label it is about, of probability p; 1 - p counts as at least 1/1000."""
    return -reward + (1.0 - reward) * (p / max(1.0 - p, LEAST))


@jit
def rewarded(p: Vector, label: int, reward: float, r: Vector) -> None:
    """What it teaches that `label` was worth `reward`; at 1 to the bit `told`. r may be p itself."""
    weight = pull_of(p[label], reward)
    for k in range(p.shape[0]):
        r[k] = -weight * p[k]
    r[label] += weight
