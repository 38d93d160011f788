"""Approximate confidence intervals."""

import math


def wilson(share: float, rounds: int, level: float) -> tuple[float, float]:
    """Return Wilson's (1927) interval for the chance of a mistake, averaged over the rounds.

    The chance may differ between the rounds and depend on those before: the variance of the number of mistakes is then
    at most that of equal chances.
    """
    from scipy.special import ndtri  # noqa: PLC0415

    z = float(ndtri(0.5 + level / 2.0))
    middle = (share + z * z / (2.0 * rounds)) / (1.0 + z * z / rounds)
    half = z / (1.0 + z * z / rounds) * math.sqrt(share * (1.0 - share) / rounds + z * z / (4.0 * rounds * rounds))
    # If all rounds are correct or all are wrong, one end is 0 or 1 up to rounding.
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))
