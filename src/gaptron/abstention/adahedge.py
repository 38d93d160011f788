"""AdaHedge with abstention.

van der Hoeven, "Exploiting the Surrogate Gap in Online Multiclass Classification", NeurIPS 2020, Algorithm 2, on the
AdaHedge of de Rooij, van Erven, Grünwald & Koolen, "Follow the Leader If You Can, Hedge If You Must", JMLR 2014.
Cost: O(d) per round.

    L = 0, Δ = 0;  for t = 1, 2, ...
      1   η = ln d / Δ;   p̂_i ∝ exp(-η L_i)               η = ∞ at Δ = 0: uniform on the leaders
      2   observe the experts' y_i ∈ [-1, 1];  ŷ = ⟨p̂, y⟩;  b = 1 - |ŷ|
      3   predict sign(ŷ) with probability 1 - b, otherwise abstain (or toss a fair coin, if that is cheaper)
      4   observe the label y;  ℓ_i = ½(1 - y y_i)
      5   h = ⟨p̂, ℓ⟩ = ½(1 - y ŷ);   m = -(1/η) ln Σ p̂_i exp(-η ℓ_i)
      6   Δ ← Δ + (h - m)₊;   L ← L + ℓ

Whatever the label, the expected loss of line 3 is h - (½ - c)b. This is the paper's lemma; the term (½ - c)b offsets
the regret.
"""

import math

import numpy as np

from gaptron.kernels.compile.jit import jit
from gaptron.types import Vector

ADAPTS = True  # η is updated after each round


def initial_eta(cost: float | None) -> float:
    """Return η of the first round; it does not depend on the cost."""
    return math.inf


@jit
def eta_for(n_experts: int, mixability: float) -> float:
    """Return η of line 1."""
    return math.inf if mixability == 0.0 else math.log(n_experts) / mixability


def certificate(n_experts: int, eta: float, mixability: float) -> float:
    """Return a bound on Σh minus the loss of any expert: Δ from lines 5 and 6, plus ln d/η ≤ Δ at the end.

    It holds on every path. If feedback comes before the next decision it is at most 2√(V ln d) + (4/3) ln d + 2, the
    variance bound of de Rooij et al.
    """
    return 2.0 * mixability


def theorem(costs: Vector | None) -> str:
    """Return the name of the theorem behind `regret`."""
    name = "abstention theorem of van der Hoeven 2020"
    return name if costs is None or costs.min() == costs.max() else f"{name}, varying costs"


def regret(n_experts: int, eta: float, variance: float, max_cost: float, costs: Vector | None = None) -> float:
    """Return a bound on the expected loss minus the loss of any expert.

    It is min{ln d/(1 - 2 max c), 2√(V ln d)} + (4/3) ln d + 2, as in the paper. A cost above ½ counts as ½, the
    expected loss of the coin. Given all the costs, the first term is inf_η {ln d/η + ½ Σ(η - (1 - 2c_t))₊}, which is
    never larger (η = 1 - 2 max c gives the paper's term); the paper leaves this as an exercise. Assumes that feedback
    comes before the next decision, and that a cost above ½ is known before its own decision.
    """
    ln_d = math.log(n_experts)
    if costs is not None:
        abstaining = varying_costs(ln_d, costs)
    elif ln_d == 0.0:
        abstaining = 0.0
    else:
        abstaining = ln_d / (1.0 - 2.0 * max_cost) if max_cost < 0.5 else math.inf
    return min(abstaining, 2.0 * math.sqrt(variance * ln_d)) + 4.0 / 3.0 * ln_d + 2.0


def varying_costs(ln_d: float, costs: Vector) -> float:
    """Return inf over η > 0 of ln d/η + ½ Σ(η - (1 - 2c_t))₊, which is convex, with a kink at each 1 - 2c_t."""
    if ln_d == 0.0:
        return 0.0
    kinks, times = np.unique(1.0 - 2.0 * np.minimum(costs, 0.5), return_counts=True)
    passed = np.cumsum(times)
    eta = np.clip(np.sqrt(2.0 * ln_d / passed), kinks, np.append(kinks[1:], math.inf))  # the best η of each piece
    return float(np.min(ln_d / eta + 0.5 * (passed * eta - np.cumsum(times * kinks))))
