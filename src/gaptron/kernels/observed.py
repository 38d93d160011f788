"""What bandit feedback proves about every linear rule: two auxiliary learners that never decide anything.

Under bandit feedback the number of mistakes M is known and the loss of a rule U is not. But the feedback of each round
reveals a part of that loss, for every U at once, and a full-information learner on those parts bounds their sum from
below (FTRL; convexity):

    Ψ = Σ [loss at W - κ·‖gradient‖²]  ≤  (revealed parts of U's loss) + X²‖U‖²/(2ε),    κ = ε‖x‖²/(2 ln²2·X²)

on every path and for all U, also one chosen afterwards; hence M ≤ loss of U + X²‖U‖²/(2ε) + max{0, M - Ψ}.

    softmax      on correct labels: softmax over the available labels, loss -log₂ p_y           `softmax_hit`, O(nnz·K)
    one-vs-all   on every round: the binary loss -log₂ σ(±⟨U_k, x⟩) of the label k played     `one_vs_all_round`, O(nnz)

W = -(ε/X²)Θ, where Θ is the sum of the gradients (p - e_y) ⊗ x/ln 2. X is the largest norm so far and ε never
increases, so the learning rate never increases either, whatever the order of the feedback. After each round
ε ← min{ε, D²/(2(M - Ψ))}, for rules with ‖U‖X near D. With κ ≤ 1 no term of Ψ is negative.
"""

import math
from typing import Any, NamedTuple

from gaptron.kernels.compile.exponential import exponentials
from gaptron.kernels.compile.jit import by_type, class_name, jit
from gaptron.kernels.losses import LN2
from gaptron.kernels.rows import add, add_one, row, score_one, scores, sqnorm, zeros
from gaptron.types import Flags, Integers, Matrix, Observed, Proof, Round, Vector, named

FIRST_STEP = 2.0 * LN2**2  # ε in the first round: κ ≤ 1, and 1/(2ε) is 0.52
RADIUS = 20.0  # D: the ‖U‖X that ε is optimised for; the inequality holds for every U


def new_run() -> Any:
    """Return the initial X², M, Ψ and ε of one auxiliary learner."""
    return named(square=0.0, mistakes=0, level=0.0, step=FIRST_STEP)


@jit
def lower_step(run: Any) -> None:
    """Update ε ← min{ε, D²/(2(M - Ψ))}."""
    n = run[0]
    excess = n.mistakes - n.level
    if excess > 0.0:
        n.step = min(n.step, RADIUS**2 / (2.0 * excess))


@jit
def softmax_miss(run: Any, square: float) -> None:
    """Update the softmax learner for a wrong label, on an example with ‖x‖² = square."""
    run[0].square = max(run[0].square, square)
    run[0].mistakes += 1
    lower_step(run)


@jit
def softmax_hit(run: Any, Theta: Matrix, x: Any, square: float, y: int, available: Flags, r: Vector) -> None:
    """Update the softmax learner for a correct label y; r is a buffer."""
    n = run[0]
    n.square = max(n.square, square)
    eta = n.step / n.square if n.square > 0.0 else 0.0
    scores(Theta, x, r)
    shift, top = 0.0, -1
    for k in range(r.shape[0]):
        r[k] *= -eta
        if available[k] and (top < 0 or r[k] > shift):
            shift, top = r[k], k
    below = shift - r[y]
    exponentials(r, shift, r)
    own, others = r[y], 0.0  # e^z of y, and the sum of e^z of all others, divided by e^shift
    for k in range(r.shape[0]):
        r[k] = r[k] if available[k] and k != y else 0.0
        others += r[k]
    total = own + others
    # -ln p_y. If y has the largest score, log1p of a small number, which rounding cannot make negative.
    loss = math.log1p(others) if top == y else below + math.log(total)
    slope = (others / total) ** 2
    for k in range(r.shape[0]):
        r[k] /= total
        slope += r[k] * r[k]
        r[k] /= LN2
    r[y] = -others / total / LN2
    n.level += loss / LN2 - eta * square / (2.0 * LN2**2) * slope
    add(Theta, x, r)
    lower_step(run)


@jit
def one_vs_all_round(run: Any, Theta: Matrix, x: Any, square: float, label: int, hit: bool) -> None:
    """Update the one-vs-all learner for the label played, correct (`hit`) or wrong."""
    n = run[0]
    n.square = max(n.square, square)
    eta = n.step / n.square if n.square > 0.0 else 0.0
    z = -eta * score_one(Theta, x, label)
    against = -z if hit else z  # the loss is ln(1 + e^against)
    small = math.exp(-abs(against))
    loss = max(against, 0.0) + math.log1p(small)
    error = (1.0 if against > 0.0 else small) / (1.0 + small)  # σ(against) = |f - hit|
    n.level += loss / LN2 - eta * square / (2.0 * LN2**2) * error * error
    add_one(Theta, x, label, (-error if hit else error) / LN2)
    if not hit:
        n.mistakes += 1
    lower_step(run)


# --- the evidence of a bandit learner ------------------------------------------------------------------------


class Evidence(NamedTuple):
    """The state of both auxiliary learners."""

    softmax: Any  # of Theorem 1: X², M, Ψ, ε
    softmax_sum: Matrix  # its Θ
    one_vs_all: Any  # of Theorem 2
    one_vs_all_sum: Matrix
    count: Any  # rounds: with reward 0 or 1, partial: with a reward in between, which are left out


def new_evidence(n_classes: int, n_features: int, sparse: bool) -> Evidence:
    """Return the state before the first feedback."""
    shape = n_classes, n_features, sparse
    return Evidence(new_run(), zeros(*shape), new_run(), zeros(*shape), named(rounds=0, partial=0))


def proved(evidence: Evidence, waiting: int) -> Observed:
    """Return what the evidence proves; `waiting` decisions have no feedback yet."""
    n = evidence.softmax[0]
    proofs = [(_proof(run[0]),) for run in (evidence.softmax, evidence.one_vs_all)]
    return Observed(int(evidence.count[0].rounds), waiting, int(n.mistakes), math.sqrt(n.square), *proofs)


def _proof(n: Any) -> Proof:
    level = float(n.level)
    return Proof(level, 1.0 / (2.0 * float(n.step)), max(0.0, int(n.mistakes) - level))


def check(evidence: Evidence, learned: int) -> None:
    """Refuse evidence, read from a file, that no run can produce."""
    count, softmax, one_vs_all = evidence.count[0], evidence.softmax[0], evidence.one_vs_all[0]
    if count.rounds + count.partial > learned or softmax.mistakes > count.rounds:
        raise ValueError("the evidence has more rounds than were learned from")
    if softmax.mistakes != one_vs_all.mistakes or softmax.square != one_vs_all.square:
        raise ValueError("the two parts of the evidence are not from the same rounds")
    for n in (softmax, one_vs_all):
        if not (0.0 < n.step <= FIRST_STEP and n.level >= 0.0 and n.square >= 0.0):
            raise ValueError("the evidence has a number that is out of range")


def _observe(evidence: Any, x: Any, label: int, reward: float, available: Flags, r: Vector) -> None:
    if 0.0 < reward < 1.0:
        evidence.count[0].partial += 1
        return
    square, hit = sqnorm(x), reward >= 1.0
    evidence.count[0].rounds += 1
    if hit:
        softmax_hit(evidence.softmax, evidence.softmax_sum, x, square, label, available, r)
    else:
        softmax_miss(evidence.softmax, square)
    one_vs_all_round(evidence.one_vs_all, evidence.one_vs_all_sum, x, square, label, hit)


observe = by_type(lambda *_: _observe, _observe)  # one body; `by_type` inlines it, which halves its cost
observe.__doc__ = (
    "Add the feedback of one round to the evidence; the reward is 1 for a correct label and 0 for a wrong one."
)


@jit
def observe_all(
    evidence: Any, X: Any, labels: Integers, rewards: Vector, available: Any, allowed: Flags, r: Vector
) -> None:
    """Add the feedback of many rounds, in order. `available` has a column per label, or none if all are available.

    `allowed`, initially all true, and r are buffers.
    """
    for t in range(labels.shape[0]):
        for k in range(available.shape[1]):
            allowed[k] = available[t, k]
        observe(evidence, row(X, t), labels[t], rewards[t], allowed, r)


def _update(evidence: Any, x: Any, rd: Round, label: int, r: Vector) -> None:
    observe(evidence, x, label, rd.feedback[0].reward, rd.available, r)


def _skip(evidence: Any, x: Any, rd: Round, label: int, r: Vector) -> None:
    pass


update_evidence = by_type(lambda evidence, *_: _update if class_name(evidence) == "Evidence" else _skip, _update)
update_evidence.__doc__ = (
    "Add the round's feedback to the evidence, if the learner collects any; r is a buffer of K numbers."
)


# --- comparison with a given rule -------------------------------------------------------------------------------------

ALONE_WRONG, ALONE_RIGHT, BOTH_WRONG = 0, 1, 2  # columns of the counts


@jit
def tally(counts: Any, j: int, other: int, label: int, hit: bool) -> None:
    """Count a round for the comparison with rule j, which would have played `other`.

    counts[j] = #{miss, other ≠ label}, #{hit, other ≠ label}, #{miss, other = label}.
    """
    if other == label:
        if not hit:
            counts[j, BOTH_WRONG] += 1
    elif hit:
        counts[j, ALONE_RIGHT] += 1
    else:
        counts[j, ALONE_WRONG] += 1
