"""Gradients of the log loss of a softmax model p, with respect to the scores, for each kind of feedback.

    the true label is y    -ln p_y          r = p - e_y
    label a is wrong       -ln(1 - p_a)     r = p_a/(1 - p_a)·(e_a - p)
    label a has reward s   s times the first (with y = a) and 1 - s times the second, 0 ≤ s ≤ 1

The gradient with respect to the weights is r ⊗ x. Natural logarithms.
"""

from gaptron.kernels.compile.jit import jit
from gaptron.types import Vector

MIN_COMPLEMENT = 1e-3  # the least 1 - p_a that is divided by


@jit
def label_gradient(p: Vector, y: int, r: Vector) -> None:
    """Write r = p - e_y. r may be p."""
    for k in range(p.shape[0]):
        r[k] = p[k]
    r[y] -= 1.0


@jit
def reward_coefficient(p: float, reward: float) -> float:
    """Return the factor of (e_a - p) in the gradient for a label of probability p; 1 - p counts as at least 0.001."""
    return -reward + (1.0 - reward) * (p / max(1.0 - p, MIN_COMPLEMENT))


@jit
def reward_gradient(p: Vector, label: int, reward: float, r: Vector) -> None:
    """Write the gradient for a label with this reward; for reward 1 it equals `label_gradient`. r may be p."""
    weight = reward_coefficient(p[label], reward)
    for k in range(p.shape[0]):
        r[k] = -weight * p[k]
    r[label] += weight
