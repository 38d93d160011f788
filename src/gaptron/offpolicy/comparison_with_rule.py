"""A high-probability bound on how many more mistakes the log made than a given rule.

`Log.count_against` assumes that the rule was correct whenever the log was wrong with another label. Where the logger
drew the rule's label often enough, the log shows how often that label was correct. Let q_t be the logger's probability
of the rule's label, θ_t whether that label was correct, o_t whether it was drawn. For h_t in [0, 1) fixed before the
draw

    Π_t (1 - q_t·h_t)^-θ_t · (1 - h_t)^(o_t·θ_t)

is a martingale with initial value 1. With h_t = fβ/q_t where q_t ≥ f, and s = -ln(1 - fβ), Ville's inequality gives:
with probability 1 - δ, simultaneously for every T, the rule is correct at most

    [ln(1/δ) + Σ -ln(1 - fβ/q_t) over rounds with q_t ≥ f where it was drawn and correct]/s
        + #{q_t < f: it may be correct}

times. The pairs of f and β share δ evenly.
"""

import math
from typing import Any

import numpy as np

from gaptron.data.labels import Classes
from gaptron.errors import InputError, SettingError
from gaptron.offpolicy.log import Log

FLOORS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)  # f
SHARES = (0.3, 0.6, 0.9)  # β
GRID = len(FLOORS) * len(SHARES)


def max_excess_mistakes(log: Log, labels: Any, *, delta: float = 0.05, several_right: bool = False) -> float:
    """Bound how many more mistakes the log made than a rule that plays the given labels.

    The bound holds with probability 1 - delta, simultaneously at every round of the log, and never exceeds
    `log.count_against(labels).more`. The rule's labels must not depend on the log's draws: the rule may know the true
    labels, but it must not have been chosen or trained with this log nor, where the data reacted to earlier decisions,
    with later labels. To compare with several rules, divide delta by their number.

    Args:
        log: A log with the distribution of every round and rewards of 0 or 1.
        labels: The rule's label in each round.
        delta: The probability, over the draws of the log, that the bound does not hold.
        several_right: Whether more than one label may be correct in a round.

    Returns:
        An upper bound on the log's mistakes minus the rule's mistakes. It may be negative.
    """
    if not 0.0 < delta < 1.0:
        raise SettingError(f"delta={delta!r} must lie between 0 and 1")
    count = log.count_against(labels, several_right=several_right)
    if log.distribution is None:
        raise InputError(
            f"{log.name}: this comparison needs the probability of every label; the log has only the propensity of "
            "the label played"
        )
    rule, correct = Classes(log.classes).codes(labels), log.correct
    propensity = log.distribution[np.arange(log.n_rounds), rule]
    drawn = log.codes == rule
    possible = np.where(drawn, correct, True if several_right else ~correct)  # may the rule have been correct?
    most = math.inf
    for floor in FLOORS:
        tried = propensity >= floor
        for share in SHARES:
            found = -np.log1p(-floor * share / propensity[tried & drawn & correct]).sum()
            estimate = (math.log(GRID / delta) + float(found)) / -math.log1p(-floor * share)
            most = min(most, estimate + int(np.count_nonzero(possible & ~tried)))
    return min(float(count.more), most - int(np.count_nonzero(correct)))
