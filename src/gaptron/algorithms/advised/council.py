"""What both feedbacks share: the row, the labels available, the caller's advice, whether labels stay, notes, the guard.

A caller's own advice f enters as four experts (1 - m)f + m/n, m = 0, 0.2, 0.5, 0.8: advice that is right seven times in
ten but always sure would else be lost, for each wrong certainty costs it dearly. Experts that are not there in a round
keep the weight they had.

Stickiness: over the last thousand answers or so, how much more often was a label right that had just been right than
the council thought? In log-odds, with S right of n and E thought,

    λ(S, E, n) = logit((5 + S)/(10 + n)) - logit((5 + E)/(10 + n))
"""

import math
from typing import Any

from gaptron.kernels.jit import jit
from gaptron.kernels.rows import sqnorm
from gaptron.kernels.simplex import best
from gaptron.types import UNKNOWN, Flags, Integers, Matrix, Row, Vector

# λ, ε, 1 - q(k̂), whether the round was free, H (full) or what free rounds cost (bandit), stickiness, finds per play of
# a label never hit, v, and the weights of the experts.
NOTES = (
    "level",
    "step",
    "explored",
    "free",
    "cost",
    "stickiness",
    "discovery",
    "v",
    "certified",
    "one-vs-all",
    "newton",
    "tracker",
    "caller",
)
LEVEL, STEP, EXPLORED, FREE, COST, STICKINESS, DISCOVERY, V, CERTIFIED, ONE_VS_ALL, NEWTON, TRACKER, CALLER = range(
    len(NOTES)
)
TINY = 1e-280  # rows of a smaller ‖x‖² count as zero
TEMPERS = (0.0, 0.2, 0.5, 0.8)
COPIES = len(TEMPERS)
MEMORY = 0.999  # of what happened, a round
MOST_STAY = 5.0  # log-odds
SLACK = 0.1  # α of the guard: each mistake of the caller allows this many more of ours


@jit
def measure(x: Row, t: Any, now: Any) -> None:
    """Line 1: ‖x‖² and X² with this row, what it is of X², the step ε/X², and the scale of x̃."""
    now.own = sqnorm(x)
    now.square = max(t.square, now.own)
    size = max(now.own, (t.norms + now.own) / (t.rounds + 1.0))
    now.scale = 1.0 / math.sqrt(size) if size > TINY else 0.0
    now.ratio, now.share = (now.step / now.square, now.own / now.square) if now.square > TINY else (0.0, 0.0)


@jit
def count_row(t: Any, now: Any, apart: int, called: bool) -> None:
    """What every decision fixes, answered or not: X, ε, the mean of ‖x‖², and what the guard must expect."""
    t.square = max(t.square, now.square)
    t.step = min(t.step, now.step)
    t.rounds += 1.0
    t.norms += now.own
    t.called += called
    t.open += apart


@jit
def available(among: Flags, labels: Integers) -> int:
    """Write the labels that may be played one behind the other. Returns how many; all that follows is about them."""
    n = 0
    for k in range(among.shape[0]):
        if among[k]:
            labels[n] = k
            n += 1
    return n


@jit
def place_of(label: int, labels: Integers) -> int:
    """Where a label stands among those available; UNKNOWN: it does not."""
    for i in range(labels.shape[0]):
        if labels[i] == label:
            return i
    return UNKNOWN


@jit
def invite(advice: Vector, labels: Integers, F: Matrix, first: int) -> int:
    """Write the tempered copies of the caller's advice from row `first` on. Returns how many experts speak."""
    n, total = labels.shape[0], 0.0
    if advice.shape[0] == 0:
        return first
    for i in range(n):
        total += advice[labels[i]]
    if total <= 0.0:
        return first
    for j in range(COPIES):
        m = TEMPERS[j]
        for i in range(n):
            F[first + j, i] = (1.0 - m) * advice[labels[i]] / total + m / n
    return first + COPIES


@jit
def centre(a: Vector, reach: float, share: float) -> None:
    """Raise a to at least its largest entry less `reach`; then make the entries sum to 0 and take a share of them."""
    least, mean = a[best(a)] - reach, 0.0
    for i in range(a.shape[0]):
        a[i] = max(a[i], least)
        mean += a[i]
    mean /= a.shape[0]
    for i in range(a.shape[0]):
        a[i] = share * (a[i] - mean)


@jit
def log_odds(stay: Any) -> float:
    """λ(S, E, n): how much more often labels stayed than was thought."""
    right, thought = (5.0 + stay.right) / (10.0 + stay.seen), (5.0 + stay.thought) / (10.0 + stay.seen)
    return math.log(right / (1.0 - right)) - math.log(thought / (1.0 - thought))


@jit
def watch(stay: Any, right: float, thought: float) -> None:
    """One answer more, and a thousandth of the older ones forgotten."""
    stay.right = MEMORY * stay.right + right
    stay.thought = MEMORY * stay.thought + thought
    stay.seen = MEMORY * stay.seen + 1.0


# --- guard ----------------------------------------------------------------------------------------------------


@jit
def forced(guard: float, t: Any) -> bool:
    """Could one disagreement more with the caller break M_T ≤ 1.1·M_T(caller) + guard? Then its label is played."""
    return bool(t.lead + t.open + 1.0 > guard + SLACK * t.caller)
