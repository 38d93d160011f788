"""Exponential weights over experts for any learning rate η, shared by both algorithms.

Weights are computed from the gap G_i = L_i - min L of an expert to the best one, not from its loss L_i. The gaps of
experts with a relevant weight stay small however long the run, and with them the rounding errors.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from gaptron.kernels.compile.exponential import exponentials
from gaptron.kernels.compile.jit import jit
from gaptron.types import Vector, named


class Experts(NamedTuple):
    """The state of d experts and of the run."""

    gaps: Vector  # G, d
    weights: Vector  # exp(-ηG), not divided by their sum
    losses: Vector  # L, d
    # eta: η, weight: Σ weights, mixability: Δ = Σ(h - m)₊, variance: V = Σv, saved: Σ(h - expected loss),
    # expected: Σ expected loss, max_cost: the largest cost, decided and learned: numbers of rounds
    totals: Any


def init(n_experts: int, eta: float) -> Experts:
    """Return the state before the first round."""
    totals = named(
        eta=eta,
        weight=float(n_experts),
        mixability=0.0,
        variance=0.0,
        saved=0.0,
        expected=0.0,
        max_cost=0.0,
        decided=0,
        learned=0,
    )
    return Experts(np.zeros(n_experts), np.ones(n_experts), np.zeros(n_experts), totals)


@jit
def weigh(G: Vector, eta: float, w: Vector) -> float:
    """Write w = exp(-ηG), and return its sum. At η = ∞ the leaders have equal weights and the others 0."""
    total = 0.0
    for i in range(G.shape[0]):
        w[i] = (0.0 if G[i] == 0.0 else -math.inf) if eta == math.inf else -eta * G[i]
    exponentials(w, 0.0, w)
    for i in range(G.shape[0]):
        total += w[i]
    return total


@jit
def vote(experts: Experts, x: Vector) -> tuple[float, float]:
    """Return ŷ = ⟨p̂, x⟩ and v = ¼ Σ p̂_i (x_i - ŷ)², the variance of the experts' losses for either label."""
    w, total = experts.weights, experts.totals[0].weight
    mean = 0.0
    for i in range(x.shape[0]):
        mean += w[i] * x[i]
    mean = min(1.0, max(-1.0, mean / total))
    square = 0.0
    for i in range(x.shape[0]):
        square += w[i] * (x[i] - mean) ** 2
    return mean, 0.25 * square / total


@jit
def update_losses(experts: Experts, x: Vector, y: float) -> float:
    """Add the loss ½(1 - y x_i) of every expert, update the weights at the same η, and return the round's mix loss.

    The mix loss is M(L + ℓ) - M(L) with M(L) = min L - (1/η) ln Σ exp(-ηG), which is also valid for late feedback.
    """
    G, totals = experts.gaps, experts.totals[0]
    eta, before = totals.eta, totals.weight
    least = math.inf
    for i in range(x.shape[0]):
        loss = 0.5 * (1.0 - y * x[i])
        experts.losses[i] += loss
        G[i] += loss
        least = min(least, G[i])
    for i in range(x.shape[0]):
        G[i] -= least
    totals.weight = weigh(G, eta, experts.weights)
    return least if eta == math.inf else least - math.log(totals.weight / before) / eta
