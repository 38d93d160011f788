"""The compiled loop: observe the experts, predict or abstain, observe label and cost, learn."""

from typing import NamedTuple

from gaptron.abstention.adahedge import eta_for
from gaptron.abstention.hedge import Experts, update_losses, vote, weigh
from gaptron.abstention.trace import ABSTAIN
from gaptron.kernels.compile.jit import jit
from gaptron.types import Flags, Integers, Matrix, Vector

ABSTAINED = int(ABSTAIN)


class PendingRound(NamedTuple):
    """What a decision needs to learn from its feedback later."""

    x: Vector  # the experts' predictions
    vote: float  # ŷ
    variance: float  # v
    coin: bool  # whether a fair coin replaces abstaining, which would cost more


class Played(NamedTuple):
    """What is recorded of each round."""

    predictions: Integers
    votes: Vector
    expected_losses: Vector


@jit
def probabilities(vote: float, coin: bool) -> tuple[float, float, float]:
    """Return the probabilities of sign(ŷ), of abstaining and of -sign(ŷ)."""
    b = 1.0 - abs(vote)
    return (1.0 - 0.5 * b, 0.0, 0.5 * b) if coin else (1.0 - b, b, 0.0)


@jit
def draw(vote: float, coin: bool, u: float) -> int:
    """Draw -1, +1 or `ABSTAINED` by u ∈ [0, 1)."""
    sign = 1 if vote >= 0.0 else -1
    if u < probabilities(vote, coin)[0]:
        return sign
    return -sign if coin else ABSTAINED


@jit
def expected_loss(vote: float, coin: bool, y: int, cost: float) -> float:
    """Return the round's loss, in expectation over the draw."""
    agree, abstain, oppose = probabilities(vote, coin)
    wrong = oppose if (vote >= 0.0) == (y > 0) else agree
    return wrong + abstain * cost


@jit
def decide(experts: Experts, x: Vector, coin: bool) -> PendingRound:
    """Compute the experts' vote. Writes nothing."""
    mean, variance = vote(experts, x)
    return PendingRound(x, mean, variance, coin)


@jit
def learn(adapt: bool, experts: Experts, pending: PendingRound, y: int, cost: float) -> float:
    """Add the losses of the round and of every expert, and return the expected loss. `adapt`: update η as AdaHedge."""
    totals = experts.totals[0]
    loss = expected_loss(pending.vote, pending.coin, y, cost)
    h = 0.5 * (1.0 - y * pending.vote)
    totals.expected += loss
    totals.saved += h - loss
    totals.variance += pending.variance
    totals.max_cost = max(totals.max_cost, 0.5 if pending.coin else cost)
    mixability_gap = max(0.0, h - update_losses(experts, pending.x, y))
    totals.mixability += mixability_gap
    if adapt and mixability_gap > 0.0:
        totals.eta = eta_for(experts.gaps.shape[0], totals.mixability)
        totals.weight = weigh(experts.gaps, totals.eta, experts.weights)
    return loss


@jit
def play(
    adapt: bool, experts: Experts, X: Matrix, y: Integers, costs: Vector, coins: Flags, u: Vector, out: Played
) -> None:
    """Play every round of a chunk and count them; an interruption never separates the two."""
    for t in range(y.shape[0]):
        pending = decide(experts, X[t], coins[t])
        out.predictions[t] = draw(pending.vote, pending.coin, u[t])
        out.votes[t] = pending.vote
        out.expected_losses[t] = learn(adapt, experts, pending, y[t], costs[t])
    experts.totals[0].decided += y.shape[0]
    experts.totals[0].learned += y.shape[0]


@jit
def learn_once(adapt: bool, experts: Experts, pending: PendingRound, y: int, cost: float, learned: Flags) -> None:
    """Learn from one feedback, count it and mark its decision as learned; an interruption never separates these."""
    learn(adapt, experts, pending, y, cost)
    experts.totals[0].learned += 1
    learned[0] = True
