"""The compiled loop: see the experts, predict or abstain, be told label and cost, learn."""

from typing import NamedTuple

from gaptron.abstention.adahedge import rate
from gaptron.abstention.hedge import Experts, absorb, vote, weigh
from gaptron.abstention.trace import ABSTAIN
from gaptron.kernels.jit import jit
from gaptron.types import Flags, Integers, Matrix, Vector

SILENT = int(ABSTAIN)


class Sheet(NamedTuple):
    """What a decision must remember to learn from its answer later."""

    x: Vector  # the experts' predictions
    vote: float  # ŷ
    variance: float  # v
    coin: bool  # a fair coin stands in for abstaining, which would cost more


class Played(NamedTuple):
    """What is written down of each round."""

    predictions: Integers
    votes: Vector
    expected: Vector


@jit
def chances(vote: float, coin: bool) -> tuple[float, float, float]:
    """The probability of sign(ŷ), of abstaining and of -sign(ŷ)."""
    b = 1.0 - abs(vote)
    return (1.0 - 0.5 * b, 0.0, 0.5 * b) if coin else (1.0 - b, b, 0.0)


@jit
def draw(vote: float, coin: bool, u: float) -> int:
    """-1, +1 or silence, by u ∈ [0, 1)."""
    sign = 1 if vote >= 0.0 else -1
    if u < chances(vote, coin)[0]:
        return sign
    return -sign if coin else SILENT


@jit
def expected(vote: float, coin: bool, y: int, cost: float) -> float:
    """The round's loss, in expectation over the draw."""
    agree, silent, oppose = chances(vote, coin)
    wrong = oppose if (vote >= 0.0) == (y > 0) else agree
    return wrong + silent * cost


@jit
def decide(experts: Experts, x: Vector, coin: bool) -> Sheet:
    """The experts' vote. Writes nothing."""
    mean, variance = vote(experts, x)
    return Sheet(x, mean, variance, coin)


@jit
def learn(adapt: bool, experts: Experts, sheet: Sheet, y: int, cost: float) -> float:
    """Charge the round and every expert, and return its expected loss. `adapt`: η is AdaHedge's."""
    totals = experts.totals[0]
    loss = expected(sheet.vote, sheet.coin, y, cost)
    h = 0.5 * (1.0 - y * sheet.vote)
    totals.expected += loss
    totals.saved += h - loss
    totals.variance += sheet.variance
    totals.dearest = max(totals.dearest, 0.5 if sheet.coin else cost)
    missed = max(0.0, h - absorb(experts, sheet.x, y))
    totals.mixability += missed
    if adapt and missed > 0.0:
        totals.eta = rate(experts.gaps.shape[0], totals.mixability)
        totals.weight = weigh(experts.gaps, totals.eta, experts.weights)
    return loss


@jit
def play(
    adapt: bool, experts: Experts, X: Matrix, y: Integers, costs: Vector, coins: Flags, u: Vector, out: Played
) -> None:
    """Every round of a block, and their count: whatever interrupts the caller finds the two in step."""
    for t in range(y.shape[0]):
        sheet = decide(experts, X[t], coins[t])
        out.predictions[t] = draw(sheet.vote, sheet.coin, u[t])
        out.votes[t] = sheet.vote
        out.expected[t] = learn(adapt, experts, sheet, y[t], costs[t])
    experts.totals[0].decided += y.shape[0]
    experts.totals[0].learned += y.shape[0]


@jit
def learn_once(adapt: bool, experts: Experts, sheet: Sheet, y: int, cost: float, answered: Flags) -> None:
    """One answer, its count, and that it was given: no interruption comes between."""
    learn(adapt, experts, sheet, y, cost)
    experts.totals[0].learned += 1
    answered[0] = True
