"""From expected mistakes to mistakes: what the luck of the draws can add, with probability 1 - δ.

With full information A_T = Σ(1 - p_t(y_t)) and V_T = Σ p_t(y_t)(1 - p_t(y_t)) are known (`expected_mistakes` and
`variance` of a trace), and M_T - A_T is a martingale with increments in [-1, 1] and variance V_T. V_T, not A_T,
measures the luck.
"""

import math
from collections.abc import Callable

from gaptron.errors import NoBoundError, SettingError
from gaptron.types import Certificate, Comparator


def any_time(expected: float, variance: float, delta: float) -> float:
    """M_T stays below this for every T at once, against any adversary, with probability 1 - δ.

    Bennett's supermartingale exp(sN - (eˢ - s - 1)V), N = M_T - A_T, mixed over θ = eˢ with θ - 1 ~ Exp(1), has a
    closed form; Ville's inequality bounds it by 1/δ for ever. With v = 1 + V and Q the regularised upper incomplete
    gamma function: v + ln Γ(N + v) + ln Q(N + v, v) - (N + v) ln v ≤ ln 1/δ, solved for N.
    """
    from scipy.special import gammaincc, gammaln  # noqa: PLC0415

    budget, v = _log_inverse(delta), 1.0 + variance

    def excess(n: float) -> float:
        return float(v + gammaln(n + v) + math.log(gammaincc(n + v, v)) - (n + v) * math.log(v)) - budget

    d = budget + 0.5 * math.log(v) + 0.09  # the explicit form is a little larger, so it brackets the root
    most = 1.0 + d / 3 + math.sqrt(d * d / 9 + 2 * v * d)
    return expected + (_root(excess, 0.0, most) if excess(0.0) < 0.0 < excess(most) else most)


def one_time(expected: float, variance: float, delta: float) -> float:
    """M_T stays below this at one T chosen in advance, for data fixed in advance, with probability 1 - δ (Bernstein).

    Not valid if the data react to the draws: V_T is then random.
    """
    d = _log_inverse(delta)
    return expected + d / 3 + math.sqrt(d * d / 9 + 2 * variance * d)


def paid_in_the_gap(certificate: Certificate, comparator: Comparator, delta: float) -> float:
    """M_T ≤ L_T(U) + C_T(U) + ln(1/δ)/s for all T and U at once, with probability 1 - δ: a constant beside C_T.

    s > 0 is the number with (eˢ - 1)/s = r, so the learner must have played with risk r > 1.
    """
    budget, r = _log_inverse(delta), certificate.risk
    if certificate.in_expectation:
        raise NoBoundError("under bandit feedback the certificate bounds expectations only")
    if r <= 1.0:
        raise NoBoundError(
            "a constant bound with high probability is paid through risk > 1: this learner played with 1"
        )
    s = _root(lambda s: math.expm1(s) / s - r, min(1e-9, r - 1.0), 2.0)
    return comparator.loss + certificate.cost(comparator.norm) + budget / s


def _root(rises: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that rises from below 0 to above 0 is 0, by halving: to import SciPy's way takes far longer."""
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if rises(middle) < 0.0 else (low, middle)
    return high


def _log_inverse(delta: float) -> float:
    if not 0.0 < delta < 1.0:
        raise SettingError(f"delta={delta!r} must lie in (0, 1)")
    return math.log(1.0 / delta)
