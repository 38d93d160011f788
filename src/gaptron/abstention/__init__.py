"""Binary prediction with expert advice: follow the weighted vote of the experts, or abstain at a cost."""

from gaptron.abstention.abstainer import Abstainer, AbstainerBound, AbstainerDecision
from gaptron.abstention.experts import experts_from
from gaptron.abstention.trace import ABSTAIN, AbstainerCurve, AbstainerTrace

__all__ = [
    "ABSTAIN",
    "Abstainer",
    "AbstainerBound",
    "AbstainerCurve",
    "AbstainerDecision",
    "AbstainerTrace",
    "experts_from",
]
