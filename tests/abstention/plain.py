"""AdaHedge and the abstention rules, in plain Python and by their definitions: slow but obvious."""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np


class Run(NamedTuple):
    weights: list[list[float]]
    hedge: list[float]  # h
    mixability: float  # Δ
    variance: float  # V


def hedge(losses, eta=None) -> Run:
    """Hedge with a fixed η; AdaHedge if none is given. Mix losses by their definition, limits at η = ∞ by hand."""
    d = len(losses[0])
    L, delta, V, weights, hs = [0.0] * d, 0.0, 0.0, [], []
    for loss in losses:
        step = eta if eta is not None else (math.inf if delta == 0.0 else math.log(d) / delta)
        least = min(L)
        if step == math.inf:
            raw = [1.0 if one == least else 0.0 for one in L]
        else:
            raw = [math.exp(-step * (one - least)) for one in L]
        w = [one / sum(raw) for one in raw]
        h = sum(p * one for p, one in zip(w, loss))
        after = [one + more for one, more in zip(L, loss)]
        if step == math.inf:
            m = min(after) - least  # what -(1/η) ln Σ w exp(-ηℓ) tends to, weights and all
        else:
            m = -math.log(sum(p * math.exp(-step * one) for p, one in zip(w, loss))) / step
        delta += max(0.0, h - m)
        V += sum(p * (one - h) ** 2 for p, one in zip(w, loss))
        L = after
        weights.append(w)
        hs.append(h)
    return Run(weights, hs, delta, V)


def expert_losses(X, y):
    """½(1 - y x) of every expert and round."""
    return 0.5 * (1.0 - np.asarray(y, dtype=float)[:, None] * np.asarray(X, dtype=float))


def expected_loss(vote, y, cost):
    """By the paper's line: sign(ŷ) with probability |ŷ|, else the cost; the sign of 0 never matters."""
    b = 1.0 - abs(vote)
    return (1.0 - b) * float(np.sign(vote) != y) + b * cost


def growing(numbers) -> bool:
    return all(after >= before for before, after in pairwise(numbers))
