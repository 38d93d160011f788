"""Exponential weights with abstention.

Neu & Zhivotovskiy, "Fast Rates for Online Prediction with Abstention", COLT 2020: exponential weights with the fixed
learning rate η = 1 - 2c and AdaHedge's abstention rule (for experts that predict ±1, with p* the weight of the
majority, it abstains with probability 2(1 - p*)).   Cost: O(d) per round.

    L = 0;  for t = 1, 2, ...
      1   p̂_i ∝ exp(-η L_i),   η = 1 - 2c
      2   observe the experts' y_i ∈ [-1, 1];  ŷ = ⟨p̂, y⟩;  b = 1 - |ŷ|
      3   predict sign(ŷ) with probability 1 - b, otherwise abstain
      4   observe the label y;  ℓ_i = ½(1 - y y_i);   L ← L + ℓ

The round's expected loss is at most its mix loss -(1/η) ln Σ p̂_i exp(-η ℓ_i). By convexity that is smallest, for a
given ŷ, when the experts predict ±1. Then the claim needs (1 - e^{-η})/η ≥ 2c if sign(ŷ) is correct and
(e^η - 1)/η ≤ 2(1 - c) if it is wrong, and η = 1 - 2c satisfies both. Therefore the bound also holds for experts in
[-1, 1].
"""

import math

from gaptron.errors import NoBoundError, SettingError
from gaptron.types import Vector

ADAPTS = False  # η is fixed


def initial_eta(cost: float | None) -> float:
    """Return η for costs of at most `cost`."""
    if cost is None or cost >= 0.5:
        raise SettingError(
            "exponential-weights sets its learning rate from the largest cost: give cost=... below 1/2, or use adahedge"
        )
    return 1.0 - 2.0 * cost


def certificate(n_experts: int, eta: float, mixability: float) -> float:
    """Return a bound on Σh minus the loss of any expert, on every path: the mix losses exceed it by at most ln d/η."""
    return math.log(n_experts) / eta + mixability


def theorem(costs: Vector | None) -> str:
    """Return the name of the theorem behind `regret`."""
    return "Neu & Zhivotovskiy 2020, for losses in [0, 1]"


def regret(n_experts: int, eta: float, variance: float, max_cost: float, costs: Vector | None = None) -> float:
    """Return ln d/(1 - 2c), a bound on the expected loss minus the loss of any expert if no round costs more than c.

    Assumes that feedback comes before the next decision.
    """
    assumed = (1.0 - eta) / 2.0
    if max_cost > assumed * (1.0 + 1e-12):
        raise NoBoundError(
            f"a round cost {max_cost:.6g}, but the learning rate was set for costs of at most {assumed:.6g}"
        )
    return math.log(n_experts) / eta
