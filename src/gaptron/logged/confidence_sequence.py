"""An interval that holds whatever the logger did, however heavy the weights, at any number of rounds.

For X_t ≥ 0 with means μ_t given the past, X̂_t ∈ [0, 1] chosen before round t and 0 ≤ λ < 1,

    exp(λ Σ(X_t - μ_t) - ψ(λ) Σ(X_t - X̂_t)²),    ψ(λ) = -ln(1 - λ) - λ

is a supermartingale that begins at 1, for exp(λξ - ψ(λ)ξ²) ≤ 1 + λξ where ξ ≥ -1 (Fan, Grama & Liu 2015). Nothing is
asked of how large X_t may be. So is its mean over several λ, and by Ville's inequality that stays below 1/δ for ever
with probability 1 - δ; solved for Σμ_t it is a lower bound. Applied to w·m it bounds mistakes from below, applied to
w·(1 - m) from above, after Waudby-Smith, Wu, Ramdas, Karampatziakis & Mineiro 2022, who bet more cleverly.
"""

import math

import numpy as np
from scipy.optimize import brentq

from gaptron.logged.estimates import Estimate
from gaptron.types import Vector

BETS = 0.9 * 0.5 ** np.arange(12)  # λ
PRICES = -np.log1p(-BETS) - BETS  # ψ(λ)


def proved_interval(weights: Vector, mistakes: Vector, level: float) -> Estimate:
    """Inverse propensity with an interval that is proved, not approximated.

    The interval is made of two bounds, one from mistakes and one from rewards, and not centred at the estimate. Where
    the weights do not average 1 the two disagree, and the estimate may lie outside: the interval is then the one to
    believe, and if its ends have changed places, the logged probabilities are wrong.
    """
    delta = (1.0 - level) / 2.0
    low = lower(weights * mistakes, delta)
    high = 1.0 - lower(weights * (1.0 - mistakes), delta)
    return Estimate("sure", float((weights * mistakes).mean()), low, high)


def lower(terms: Vector, delta: float) -> float:
    """The mean of the μ_t is at least this, with probability 1 - δ."""
    T, total = len(terms), float(terms.sum())
    before = (0.5 + np.concatenate([[0.0], np.cumsum(terms[:-1])])) / np.arange(1, T + 1)
    spread = float(np.square(terms - np.minimum(before, 1.0)).sum())

    def excess(means: float) -> float:
        return float(np.logaddexp.reduce(BETS * (total - means) - PRICES * spread)) - math.log(len(BETS) / delta)

    if excess(0.0) <= 0.0:
        return 0.0
    return min(1.0, float(brentq(excess, 0.0, total)) / T)
