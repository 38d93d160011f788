"""Estimates of the mistakes another learner would have made, from weights and logged mistakes.

A round was logged with label a, drawn with probability p(a), and cost m = 1 - reward. Another learner would have played
a with probability q(a); w = q(a)/p(a). With f a guess of the cost of every label, made without this round:

    inverse propensity   mean of w·m                        Horvitz & Thompson 1952
    self-normalised      Σ w·m / Σ w                        Hájek 1971; Swaminathan & Joachims 2015
    doubly robust        mean of Σ_k q(k) f_k + w·(m - f_a)   Dudík, Langford & Li 2011

Given the past each term of the first and third has the mean cost of playing q, so that their errors are sums of
martingale differences: that is what the normal intervals rest on. They hold for long logs with tame weights, also if
the log was kept by a learner that learned all the while.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from gaptron.errors import SettingError
from gaptron.types import Vector


class Estimate(NamedTuple):
    """Mistakes a round, with an interval."""

    name: str
    mistakes: float
    low: float
    high: float


def on_policy(mistakes: Vector, level: float) -> Estimate:
    """What was logged, as it is."""
    return _normal("the log itself", mistakes, float(mistakes.mean()), level)


def inverse_propensity(weights: Vector, mistakes: Vector, level: float) -> Estimate:
    """Unbiased where the logged probabilities are right and no label was out of reach."""
    terms = weights * mistakes
    return _normal("inverse propensity", terms, float(terms.mean()), level)


def self_normalised(weights: Vector, mistakes: Vector, level: float) -> Estimate:
    """Steadier, and biased by an amount that dies out with the rounds. The interval linearises the ratio."""
    mean = float(weights.mean())
    value = float((weights * mistakes).mean()) / mean
    return _normal("self-normalised", weights * (mistakes - value) / mean, value, level)


def doubly_robust(weights: Vector, mistakes: Vector, guessed: Vector, expected: Vector, level: float) -> Estimate:
    """Right if either the probabilities are, or the guesses: f_a of the label played, and Σ q(k) f_k."""
    terms = expected + weights * (mistakes - guessed)
    return _normal("doubly robust", terms, float(terms.mean()), level)


def check_level(level: float) -> float:
    """A level of confidence, or an error."""
    if not 0.0 < level < 1.0:
        raise SettingError(f"level={level!r} must lie in (0, 1), such as 0.95")
    return level


def _normal(name: str, terms: Vector, value: float, level: float) -> Estimate:
    T = len(terms)
    if T < 2:
        return Estimate(name, value, 0.0, 1.0)
    half = float(ndtri(0.5 + level / 2.0)) * float(terms.std(ddof=1)) / math.sqrt(T)
    low, high = np.clip([value - half, value + half], 0.0, 1.0)
    return Estimate(name, value, float(low), float(high))
