"""An interval that is valid for any logger, any importance weights and any number of rounds.

For X_t ≥ 0 with conditional means μ_t given the past, X̂_t ∈ [0, 1] chosen before round t and 0 ≤ λ < 1,

    exp(λ Σ(X_t - μ_t) - ψ(λ) Σ(X_t - X̂_t)²),    ψ(λ) = -ln(1 - λ) - λ

is a supermartingale with initial value 1, because exp(λξ - ψ(λ)ξ²) ≤ 1 + λξ for ξ ≥ -1 (Fan, Grama & Liu 2015). X_t
need not be bounded above. The mean over several λ is a supermartingale as well, and by Ville's inequality it stays
below 1/δ forever with probability 1 - δ. Solving for Σμ_t gives a lower bound. Applied to w·m it bounds mistakes from
below, applied to w·(1 - m) from above, after Waudby-Smith, Wu, Ramdas, Karampatziakis & Mineiro 2022, whose bets are
more refined.
"""

import math

import numpy as np
from scipy.optimize import brentq

from gaptron.offpolicy.estimates import Estimate
from gaptron.offpolicy.sums import TermSums, WeightedSums, term_sums, weighted_sums
from gaptron.types import Vector

BETS = 0.9 * 0.5 ** np.arange(12)  # λ
PRICES = -np.log1p(-BETS) - BETS  # ψ(λ)


def proven_interval(weights: Vector, mistakes: Vector, level: float) -> Estimate:
    """Inverse propensity estimate with an interval from a confidence sequence instead of a normal approximation.

    The interval combines two bounds, one from mistakes and one from rewards, and is not centred at the estimate. Where
    the weights do not average 1 the two bounds disagree and the estimate may lie outside the interval; trust the
    interval then. If its lower end exceeds its upper end, the logged propensities are wrong.
    """
    return proven_interval_of_sums(weighted_sums(weights, mistakes), level)


def proven_interval_of_sums(sums: WeightedSums, level: float) -> Estimate:
    """Compute `proven_interval` from the sums of the rounds."""
    delta = (1.0 - level) / 2.0
    low, high = _lower_bound(sums.mistakes, delta), 1.0 - _lower_bound(sums.rewards, delta)
    return Estimate("proven interval", sums.mistakes.total / sums.mistakes.rounds, low, high)


def lower_bound(terms: Vector, delta: float) -> float:
    """Lower bound on the mean of the μ_t that holds with probability 1 - δ."""
    return _lower_bound(term_sums(terms), delta)


def _lower_bound(sums: TermSums, delta: float) -> float:
    return min(1.0, bound_on_mean(sums, delta))


def bound_on_mean(sums: TermSums, delta: float) -> float:
    """Compute `lower_bound` from the sums of the terms, for terms whose mean may exceed 1."""

    def excess(means: float) -> float:
        return float(np.logaddexp.reduce(BETS * (sums.total - means) - PRICES * sums.spread)) - allowed

    allowed = math.log(len(BETS) / delta)
    if excess(0.0) <= 0.0:
        return 0.0
    return float(brentq(excess, 0.0, sums.total)) / sums.rounds
