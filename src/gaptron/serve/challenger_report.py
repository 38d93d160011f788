"""What the evidence about a challenger proves: intervals from its sums, and how many more outcomes are needed."""

import math
from typing import Literal

from gaptron.offpolicy.confidence_sequence import BETS, PRICES, bound_on_mean, proven_interval_of_sums
from gaptron.offpolicy.sums import TermSums, WeightedSums
from gaptron.serve.challengers import Challenger, Evidence
from gaptron.serve.decisions import as_time
from gaptron.serve.schemas import ChallengerInfo, EstimatedError

LEVEL = 0.95
MIN_OUTCOMES = 20  # for a guess of how many more are needed


class ChallengerFacts:
    """Copies of the values of a challenger, so that its report can be computed in another thread."""

    def __init__(self, challenger: Challenger) -> None:
        self.name, self.spec, self.since = challenger.name, challenger.spec, challenger.since
        self.stopped = challenger.stopped
        self.algorithm = challenger.algorithm
        self.evidence = challenger.evidence


def challenger_info(facts: ChallengerFacts, level: float = LEVEL) -> ChallengerInfo:
    """Compute the report of a challenger."""
    evidence, delta = facts.evidence, (1.0 - level) / 2.0
    own = _interval(evidence.own, level)
    difference = _difference(evidence, delta)
    comparison: Literal["better", "worse", "unknown"] = "unknown"
    needed = None
    if difference.high is not None and difference.high < 0.0:
        comparison = "better"
    elif difference.low is not None and difference.low > 0.0:
        comparison = "worse"
    else:
        needed = min((n for n in map(_needed, (evidence.better, evidence.worse)) if n is not None), default=None)
    return ChallengerInfo(
        name=facts.name,
        algorithm=facts.algorithm,
        settings=facts.spec.settings,
        seed=facts.spec.seed,
        use_features=facts.spec.use_features,
        since=as_time(facts.since),
        decisions=evidence.better.rounds,
        error_rate=own.error_rate,
        low=own.low,
        high=own.high,
        live=_interval(evidence.live, level),
        difference=difference,
        comparison=comparison,
        decisions_needed=needed,
        stopped=facts.stopped,
    )


def _interval(sums: WeightedSums, level: float) -> EstimatedError:
    """The mean error, between a bound from errors and one from rewards."""
    if not sums.mistakes.rounds:
        return EstimatedError(None, None, None)
    interval = proven_interval_of_sums(sums, level)
    return _estimate(interval.mistakes, interval.low, interval.high)


def _difference(evidence: Evidence, delta: float) -> EstimatedError:
    """The mean error minus that of what was played. The terms of the two bounds are shifted by 1."""
    better, worse = evidence.better, evidence.worse
    if not better.rounds:
        return EstimatedError(None, None, None)
    low, high = max(bound_on_mean(worse, delta) - 1.0, -1.0), min(1.0 - bound_on_mean(better, delta), 1.0)
    return _estimate((evidence.own.mistakes.total - evidence.live.mistakes.total) / better.rounds, low, high)


def _estimate(value: float, low: float, high: float) -> EstimatedError:
    """The weights need not average 1, so that the value may be outside of the interval, which is proven."""
    low, high = min(low, high), max(low, high)
    return EstimatedError(min(max(value, low), high), low, high)


def _needed(sums: TermSums) -> int | None:
    """About how many more terms would prove that the mean exceeds 1, if they were like those so far."""
    if sums.rounds < MIN_OUTCOMES:
        return None
    growth = float((BETS * (sums.total - sums.rounds) - PRICES * sums.spread).max()) / sums.rounds
    if growth <= 0.0:
        return None
    price = math.log(2.0 * len(BETS) / (1.0 - LEVEL))
    return max(1, math.ceil(price / growth - sums.rounds))
