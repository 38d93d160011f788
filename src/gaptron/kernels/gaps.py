"""The coefficients b and c of the surrogate gap of each label, gap(y) = b_y - q(y) + c_y/q(y).

`simplex.least_exploration` finds the distribution q that keeps all gaps at or below a level. For the logistic loss
ℓ = -log₂ p̃_y, with κ = h/ln²2, h = η‖x‖²/2, K labels, risk r and feedback that is up to τ rounds late:

    full      b_y = 1 - (ℓ^y - (1 + 2τ)κ‖p̃ - e_y‖²)/r                    c_y = 0
    bandit    b_y = 1 - ℓ^y + κ(‖p̃‖² - 2p̃_y + 1/K + 2τ‖p̃ - e_y‖²)       c_y = κ(1 - 1/K)

K counts the available labels, those whose score is not -∞. The others get b = -∞ and c = 0, and therefore q = 0.

Where a round brings its own actions, ‖x‖² goes into the squared lengths of `rows.moments`. Labels have
V_y = ‖x‖²‖p̃ - e_y‖² and R_y = ‖x‖²(1 - 1/K). With κ' = η/(2 ln²2):

    full      b_y = 1 - (ℓ^y - κ'V_y)/r                                  c_y = 0
    bandit    b_y = 1 - ℓ^y + κ'(V_y - R_y)                              c_y = κ'R_y
"""

import math
from typing import Any

from gaptron.kernels.compile.jit import jit
from gaptron.kernels.losses import LN2
from gaptron.kernels.rows import moments
from gaptron.kernels.simplex import softmax
from gaptron.types import Vector


@jit
def logistic(
    z: Vector, p: Vector, top: int, h: float, bandit: bool, risk: float, delay: int, b: Vector, c: Vector
) -> None:
    """Write b and c of every label, and p̃ = softmax z into p; top is the label of the largest score."""
    rest = softmax(z, top, p)
    K, square = 0, 0.0
    for y in range(z.shape[0]):
        K += z[y] > -math.inf
        square += p[y] * p[y]
    log_sum = math.log1p(rest / p[top])  # ln Σ exp z - z_y*
    kappa = h / (LN2 * LN2)
    for y in range(z.shape[0]):
        loss = (log_sum + (z[top] - z[y])) / LN2
        square_error = (1.0 - p[y]) * (1.0 - p[y]) + (square - p[y] * p[y])  # ‖p̃ - e_y‖²
        if bandit:
            b[y] = 1.0 - loss + kappa * (square - 2.0 * p[y] + 1.0 / K + 2.0 * delay * square_error)
            c[y] = kappa * (1.0 - 1.0 / K) if z[y] > -math.inf else 0.0
        else:
            b[y] = 1.0 - (loss - (1.0 + 2.0 * delay) * kappa * square_error) / risk
            c[y] = 0.0


@jit
def logistic_actions(
    x: Any, diameter: float, z: Vector, p: Vector, top: int, eta: float, bandit: bool, risk: float, b: Vector, c: Vector
) -> None:
    """Write b and c of every action of a round, and p̃; `diameter` is Δ², which `sqnorm(x)` returned just before."""
    rest = softmax(z, top, p)
    log_sum = math.log1p(rest / p[top])
    moments(x, p, diameter, b, c)
    kappa = eta / (2.0 * LN2 * LN2)
    for y in range(z.shape[0]):
        loss = (log_sum + (z[top] - z[y])) / LN2
        if bandit:
            b[y] = 1.0 - loss + kappa * (b[y] - c[y])
            c[y] *= kappa
        else:
            b[y] = 1.0 - (loss - kappa * b[y]) / risk
            c[y] = 0.0
