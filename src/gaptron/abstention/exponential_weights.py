"""Exponential weights with abstention.

Neu & Zhivotovskiy, "Fast Rates for Online Prediction with Abstention", COLT 2020: exponential weights with the fixed
step η = 1 - 2c and AdaHedge's rule to abstain (for experts that say ±1, with p* the weight of the majority, it abstains
with probability 2(1 - p*)).   Cost: O(d) a round.

    L = 0;  for t = 1, 2, ...
      1   p̂_i ∝ exp(-η L_i),   η = 1 - 2c
      2   see the experts' y_i ∈ [-1, 1];  ŷ = ⟨p̂, y⟩;  b = 1 - |ŷ|
      3   predict sign(ŷ) with probability 1 - b, else abstain
      4   see the label y;  ℓ_i = ½(1 - y y_i);   L ← L + ℓ

The round's expected loss is at most its mix loss -(1/η) ln Σ p̂_i exp(-η ℓ_i). By convexity that is smallest, for a
given ŷ, when the experts say ±1; then it asks for (1 - e^{-η})/η ≥ 2c if sign(ŷ) is right, (e^η - 1)/η ≤ 2(1 - c) if
wrong, and η = 1 - 2c satisfies both. So the bound holds for experts in [-1, 1] too.
"""

import math

from gaptron.errors import NoBoundError, SettingError
from gaptron.types import Vector

ADAPTS = False


def first(cost: float | None) -> float:
    """η, for costs of at most `cost`."""
    if cost is None or cost >= 0.5:
        raise SettingError(
            "exponential-weights sets its step from the largest cost: give cost=... below 1/2, or take adahedge"
        )
    return 1.0 - 2.0 * cost


def certificate(n_experts: int, eta: float, mixability: float) -> float:
    """Σh is at most this above the loss of any expert, on every path: the mix losses are, by ln d/η."""
    return math.log(n_experts) / eta + mixability


def theorem(costs: Vector | None) -> str:
    """Where the bound comes from, in words."""
    return "Neu & Zhivotovskiy 2020, for losses in [0, 1]"


def regret(n_experts: int, eta: float, variance: float, dearest: float, costs: Vector | None = None) -> float:
    """The expected loss is at most ln d/(1 - 2c) above the loss of any expert, if no round costs more than c.

    Assumes that answers come before the next decision.
    """
    promised = (1.0 - eta) / 2.0
    if dearest > promised * (1.0 + 1e-12):
        raise NoBoundError(f"a round cost {dearest:.6g}, and the step was set for costs of at most {promised:.6g}")
    return math.log(n_experts) / eta
