"""How many mistakes more than a given rule a log made: less than the count says, where the rule's label was tried.

`count_against` takes it that the rule was right whenever the log was wrong with another label. Where the rule's label
was drawn often enough, how often it was right shows. Let q_t be the chance the log gave the rule's label, θ_t whether
that label was right, o_t whether it was drawn. For h_t in [0, 1) fixed before the draw

    Π_t (1 - q_t·h_t)^-θ_t · (1 - h_t)^(o_t·θ_t)

is a martingale that begins at 1. With h_t = fβ/q_t where q_t ≥ f, and s = -ln(1 - fβ), Ville's inequality gives: with
probability 1 - δ, at every T at once, the rule is right at most

    [ln(1/δ) + Σ -ln(1 - fβ/q_t) over rounds with q_t ≥ f where it was drawn and right]/s + #{q_t < f: it may be right}

times. Several f and β share δ evenly.
"""

import math
from typing import Any

import numpy as np

from gaptron.errors import InputError, SettingError
from gaptron.logged.log import Log
from gaptron.validation import Classes

FLOORS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)  # f
SHARES = (0.3, 0.6, 0.9)  # β
GRID = len(FLOORS) * len(SHARES)


def most_more(log: Log, labels: Any, *, delta: float = 0.05, several_right: bool = False) -> float:
    """With probability 1 - delta the log made at most so many mistakes more than a rule that plays these labels.

    That holds at every round of the log at once, and is never above `log.count_against(labels).more`. The rule's labels
    must not depend on the log's draws: it may know the truth, but must not have been chosen or trained with this log,
    nor, where the data reacted to earlier decisions, with later labels. Several rules share delta.

    Args:
        log: with the whole distribution of every round, and answers of right and wrong.
        labels: of the rule, one a round.
        delta: how often it may fail, over the draws of the log.
        several_right: more than one label may be right in a round.
    """
    if not 0.0 < delta < 1.0:
        raise SettingError(f"delta={delta!r} must lie between 0 and 1")
    count = log.count_against(labels, several_right=several_right)
    if log.distribution is None:
        raise InputError(f"{log.name}: the log must hold the chance of every label, not only of those played")
    rule, right = Classes(log.classes).codes(labels), log.right
    chance = log.distribution[np.arange(log.n_rounds), rule]
    drawn = log.codes == rule
    possible = np.where(drawn, right, True if several_right else ~right)  # may the rule have been right?
    most = math.inf
    for floor in FLOORS:
        tried = chance >= floor
        for share in SHARES:
            found = -np.log1p(-floor * share / chance[tried & drawn & right]).sum()
            price = (math.log(GRID / delta) + float(found)) / -math.log1p(-floor * share)
            most = min(most, price + int(np.count_nonzero(possible & ~tried)))
    return min(float(count.more), most - int(np.count_nonzero(right)))
