"""What both kinds of feedback share: the example, the available labels, the caller's experts, stickiness, notes, guard.

The ensemble combines experts, each a distribution over the available labels: the certified learner, the learners of
this package and, where the caller gives advice f, four experts (1 - m)f + m/n with m = 0, 0.2, 0.5, 0.8. The mixtures
are there because advice that puts all its probability on one label, and is right seven times in ten, would otherwise
lose its weight: each confident mistake is expensive. Experts that are absent in a round keep their weight.

Stickiness measures, over about the last thousand rounds, how much more often the label that was true last was true
again than the ensemble expected. In log-odds, with S observed and E expected repetitions in n rounds,

    λ(S, E, n) = logit((5 + S)/(10 + n)) - logit((5 + E)/(10 + n))
"""

import math
from typing import Any

from gaptron.kernels.compile.jit import inner, jit
from gaptron.kernels.rows import sqnorm
from gaptron.kernels.simplex import best
from gaptron.types import UNKNOWN, Flags, Integers, Matrix, Round, Row, Vector

# λ, ε, 1 - q(k̂), whether the round exploited, H (full) or the cost of exploiting rounds (bandit), stickiness, hits per
# play of a label that was never hit, v, and the weights of the experts.
NOTES = (
    "level",
    "step",
    "explored",
    "exploiting",
    "cost",
    "stickiness",
    "discovery",
    "v",
    "certified",
    "one-vs-all",
    "newton",
    "tracker",
    "kernel",
    "caller",
)
LEVEL, STEP, EXPLORED, EXPLOITING, COST, STICKINESS, DISCOVERY, V = range(8)
CERTIFIED, ONE_VS_ALL, NEWTON, TRACKER, KERNEL, CALLER = range(8, len(NOTES))
# What `commit` and `learn` need of a decision as it was made, even if the example was scored again for late feedback.
DECISION = {
    "last_label": UNKNOWN,  # the last true label
    "exploiting": 0,  # bandit: was the round an exploiting one?
    "may_differ": 0,  # might a label other than the caller's be played?
}
TINY = 1e-280  # a smaller ‖x‖² counts as zero
UNIFORM_SHARES = (0.0, 0.2, 0.5, 0.8)  # m
COPIES = len(UNIFORM_SHARES)
DECAY = 0.999  # of a statistic, per round
MAX_STICKINESS = 5.0  # log-odds
SLACK = 0.1  # α of the guard: each mistake of the caller allows this many more of the learner


@jit
def measure_example(x: Row, available: Flags, t: Any, step: float, labels: Integers, now: Any) -> None:
    """Line 1: the available labels, ε, ‖x‖², X² with this example, their ratios, and the scale of x̃."""
    now.n, now.step = list_available(available, labels), step
    now.sqnorm = sqnorm(x)
    now.square = max(t.square, now.sqnorm)
    size = max(now.sqnorm, (t.sqnorms + now.sqnorm) / (t.rounds + 1.0))
    now.scale = 1.0 / math.sqrt(size) if size > TINY else 0.0
    now.ratio, now.share = (now.step / now.square, now.sqnorm / now.square) if now.square > TINY else (0.0, 0.0)


@jit
def list_available(available: Flags, labels: Integers) -> int:
    """Write the available labels into the first entries of `labels`. Returns how many there are."""
    n = 0
    for k in range(available.shape[0]):
        if available[k]:
            labels[n] = k
            n += 1
    return n


@jit
def position_of(label: int, labels: Integers) -> int:
    """The position of a label in `labels`, or UNKNOWN."""
    for i in range(labels.shape[0]):
        if labels[i] == label:
            return i
    return UNKNOWN


@jit
def add_caller_experts(advice: Vector, labels: Integers, F: Matrix, first: int) -> int:
    """Line 2: write the caller's experts into the rows of F from `first` on. Returns the number of experts."""
    n, total = labels.shape[0], 0.0
    if advice.shape[0] == 0:
        return first
    for i in range(n):
        total += advice[labels[i]]
    if total <= 0.0:
        return first
    for j in range(COPIES):
        m = UNIFORM_SHARES[j]
        for i in range(n):
            F[first + j, i] = (1.0 - m) * advice[labels[i]] / total + m / n
    return first + COPIES


@jit
def clip_and_centre(a: Vector, width: float, share: float) -> None:
    """Raise the entries of a to at least the largest less `width`, subtract their mean, and multiply by `share`."""
    least, mean = a[best(a)] - width, 0.0
    for i in range(a.shape[0]):
        a[i] = max(a[i], least)
        mean += a[i]
    mean /= a.shape[0]
    for i in range(a.shape[0]):
        a[i] = share * (a[i] - mean)


# --- stickiness -----------------------------------------------------------------------------------------------


@jit
def log_odds(stay: Any) -> float:
    """λ(S, E, n)."""
    observed, expected = (5.0 + stay.observed) / (10.0 + stay.rounds), (5.0 + stay.expected) / (10.0 + stay.rounds)
    return math.log(observed / (1.0 - observed)) - math.log(expected / (1.0 - expected))


@jit
def update_stickiness(stay: Any, observed: float, expected: float) -> None:
    """Add one round to S, E and n, after a decay."""
    stay.observed = DECAY * stay.observed + observed
    stay.expected = DECAY * stay.expected + expected
    stay.rounds = DECAY * stay.rounds + 1.0


# --- the decision ---------------------------------------------------------------------------------------------


@jit
def guard_binds(guard: float, t: Any, now: Any) -> bool:
    """Could one more disagreement with the caller break M_T ≤ 1.1·M_T(caller) + guard? Its label is played then."""
    return bool(now.caller != UNKNOWN and t.caller_regret + t.caller_pending + 1.0 > guard + SLACK * t.caller_mistakes)


@inner
def write_round(rd: Round, labels: Integers, z: Vector, q: Vector) -> None:
    """Write scores and distribution over the available labels into the round."""
    for k in range(rd.z.shape[0]):
        rd.z[k], rd.p[k] = -math.inf, 0.0
    for i in range(labels.shape[0]):
        rd.z[labels[i]], rd.p[labels[i]] = z[i], q[i]


@jit
def record_decision(decision: Any, t: Any, now: Any, q: Vector, exploiting: bool) -> None:
    """Record what `commit` and `learn` need of the decision as it was made, however late its feedback is."""
    decision.last_label = t.last_label
    decision.exploiting = 1 if exploiting else 0
    decision.may_differ = 1 if now.caller != UNKNOWN and q[now.caller] < 1.0 else 0


@jit
def count_decision(t: Any, now: Any, may_differ: int, with_caller: bool) -> None:
    """Count what every decision fixes before its feedback: X, ε, the mean of ‖x‖², and the guard's open decisions."""
    t.square = max(t.square, now.square)
    t.step = min(t.step, now.step)
    t.rounds += 1.0
    t.sqnorms += now.sqnorm
    t.with_caller += with_caller
    t.caller_pending += may_differ
