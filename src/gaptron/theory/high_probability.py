"""Bounds on the number of mistakes, with probability 1 - δ, from the expected number.

With full information A_T = Σ(1 - p_t(y_t)) and V_T = Σ p_t(y_t)(1 - p_t(y_t)) are known (`expected_mistakes` and
`variance` of a trace), and M_T - A_T is a martingale with increments in [-1, 1] and variance V_T. The deviation is
determined by V_T, not by A_T.
"""

import math
from collections.abc import Callable

from gaptron.errors import NoBoundError, SettingError
from gaptron.types import Certificate, Comparator

EXACT = 1e10  # for larger variances the terms of the closed form cancel, and the explicit form is used


def any_time(expected: float, variance: float, delta: float) -> float:
    """Return a bound on M_T that holds for all T at once, against any adversary, with probability 1 - δ.

    Bennett's supermartingale exp(sN - (eˢ - s - 1)V), N = M_T - A_T, mixed over θ = eˢ with θ - 1 ~ Exp(1), has a
    closed form; by Ville's inequality it never exceeds 1/δ. With v = 1 + V and Q the regularised upper incomplete
    gamma function: v + ln Γ(N + v) + ln Q(N + v, v) - (N + v) ln v ≤ ln 1/δ, solved for N.

    Args:
        expected: A_T.
        variance: V_T.
        delta: δ in (0, 1).

    Returns:
        The bound.
    """
    from scipy.special import gammaincc, gammaln  # noqa: PLC0415

    budget, v = _log_inverse(delta), 1.0 + variance

    def excess(n: float) -> float:
        return float(v + gammaln(n + v) + math.log(gammaincc(n + v, v)) - (n + v) * math.log(v)) - budget

    d = budget + 0.5 * math.log(v) + 0.09  # the explicit form is slightly larger, so it brackets the root
    most = 1.0 + d / 3 + math.sqrt(d * d / 9 + 2 * v * d)
    return expected + (_root(excess, 0.0, most) if v <= EXACT else most)


def one_time(expected: float, variance: float, delta: float) -> float:
    """Return a bound on M_T at one T, for T and data fixed in advance, with probability 1 - δ (Bernstein).

    Not valid if the data depend on the draws, because V_T is random then.

    Args:
        expected: A_T.
        variance: V_T.
        delta: δ in (0, 1).

    Returns:
        The bound.
    """
    d = _log_inverse(delta)
    return expected + d / 3 + math.sqrt(d * d / 9 + 2 * variance * d)


def with_risk(certificate: Certificate, comparator: Comparator, delta: float) -> float:
    """Return L_T(U) + C_T(U) + ln(1/δ)/s, a bound on M_T for all T and U at once, with probability 1 - δ.

    The last term is a constant. s > 0 solves (eˢ - 1)/s = r, so the learner must have played with risk r > 1.

    Args:
        certificate: the certificate of a learner with full information and risk > 1.
        comparator: the loss and norm of U.
        delta: δ in (0, 1).

    Returns:
        The bound.

    Raises:
        NoBoundError: if the learner had bandit feedback, or risk 1.
    """
    budget, r = _log_inverse(delta), certificate.risk
    if certificate.in_expectation:
        raise NoBoundError("under bandit feedback the certificate only bounds the expected mistakes")
    if r <= 1.0:
        raise NoBoundError(
            "a bound with a constant excess and high probability needs risk > 1, but this learner has risk 1"
        )
    s = _root(lambda s: math.expm1(s) / s - r, min(1e-9, r - 1.0), 2.0)
    return comparator.loss + certificate.cost(comparator.norm) + budget / s


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of an increasing function by bisection; importing SciPy's solver takes far longer."""
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if function(middle) < 0.0 else (low, middle)
    return high


def _log_inverse(delta: float) -> float:
    if not 0.0 < delta < 1.0:
        raise SettingError(f"delta={delta!r} must lie in (0, 1)")
    return math.log(1.0 / delta)
