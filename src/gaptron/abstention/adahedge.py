"""AdaHedge with abstention.

van der Hoeven, "Exploiting the Surrogate Gap in Online Multiclass Classification", NeurIPS 2020, Algorithm 2, on the
AdaHedge of de Rooij, van Erven, Grünwald & Koolen, "Follow the Leader If You Can, Hedge If You Must", JMLR 2014.
Cost: O(d) a round.

    L = 0, Δ = 0;  for t = 1, 2, ...
      1   η = ln d / Δ;   p̂_i ∝ exp(-η L_i)               η = ∞ at Δ = 0: uniform on the leaders
      2   see the experts' y_i ∈ [-1, 1];  ŷ = ⟨p̂, y⟩;  b = 1 - |ŷ|
      3   predict sign(ŷ) with probability 1 - b, else abstain (or flip a fair coin, if that is cheaper)
      4   see the label y;  ℓ_i = ½(1 - y y_i)
      5   h = ⟨p̂, ℓ⟩ = ½(1 - y ŷ);   m = -(1/η) ln Σ p̂_i exp(-η ℓ_i)
      6   Δ ← Δ + (h - m)₊;   L ← L + ℓ

Whatever the label, line 3 costs h - (½ - c)b in expectation: that is the paper's lemma, and where the regret goes.
"""

import math

import numpy as np

from gaptron.kernels.jit import jit
from gaptron.types import Vector

ADAPTS = True  # η is set anew after each round


def first(cost: float | None) -> float:
    """η of the first round; the cost plays no part."""
    return math.inf


@jit
def rate(n_experts: int, mixability: float) -> float:
    """η of line 1."""
    return math.inf if mixability == 0.0 else math.log(n_experts) / mixability


def certificate(n_experts: int, eta: float, mixability: float) -> float:
    """Σh is at most this above the loss of any expert: Δ from lines 5 and 6, and ln d/η ≤ Δ once more at the end.

    Holds on every path. If each answer comes before the next decision it is at most 2√(V ln d) + (4/3) ln d + 2, the
    bound by the variance of de Rooij et al.
    """
    return 2.0 * mixability


def theorem(costs: Vector | None) -> str:
    """Where the bound comes from, in words."""
    name = "abstention theorem of van der Hoeven 2020"
    return name if costs is None or costs.min() == costs.max() else f"{name}, varying costs"


def regret(n_experts: int, eta: float, variance: float, dearest: float, costs: Vector | None = None) -> float:
    """The expected loss is at most this above the loss of any expert.

    min{ln d/(1 - 2 max c), 2√(V ln d)} + (4/3) ln d + 2, the paper's. A cost above ½ counts as ½, which is what the
    coin costs. Given all the costs, the first term is inf_η {ln d/η + ½ Σ(η - (1 - 2c_t))₊}, never larger (η = 1 - 2
    max c gives the paper's): the exercise the paper leaves to its reader. Assumes that answers come before the next
    decision, and costs above ½ before their own.
    """
    ln_d = math.log(n_experts)
    if costs is not None:
        abstaining = varying(ln_d, costs)
    elif ln_d == 0.0:
        abstaining = 0.0
    else:
        abstaining = ln_d / (1.0 - 2.0 * dearest) if dearest < 0.5 else math.inf
    return min(abstaining, 2.0 * math.sqrt(variance * ln_d)) + 4.0 / 3.0 * ln_d + 2.0


def varying(ln_d: float, costs: Vector) -> float:
    """inf over η > 0 of ln d/η + ½ Σ(η - (1 - 2c_t))₊, which is convex, with a corner at each 1 - 2c_t."""
    if ln_d == 0.0:
        return 0.0
    corners, times = np.unique(1.0 - 2.0 * np.minimum(costs, 0.5), return_counts=True)
    passed = np.cumsum(times)
    eta = np.clip(np.sqrt(2.0 * ln_d / passed), corners, np.append(corners[1:], math.inf))  # the best in each stretch
    return float(np.min(ln_d / eta + 0.5 * (passed * eta - np.cumsum(times * corners))))
