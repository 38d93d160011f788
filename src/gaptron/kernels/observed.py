"""What the answers alone prove of every linear rule: two learners on the side, which never decide anything.

Under bandit feedback the mistakes M are known and the loss of a rule U is not. But each answer shows a part of it, for
every U at once, and a full-information learner on those parts bounds their sum from below (FTRL; convexity):

    Ψ = Σ [loss at W - κ·‖gradient‖²]  ≤  (parts seen of U's loss) + X²‖U‖²/(2ε),    κ = ε‖x‖²/(2 ln²2·X²)

on every path and for all U, also one chosen afterwards; so M ≤ loss of U + X²‖U‖²/(2ε) + max{0, M - Ψ}.

    on hits      softmax over the labels that could be played, loss -log₂ p_y                    `watch_hit`, O(nnz·K)
    on answers   one question per label, loss -log₂ σ(±⟨U_k, x⟩) of the label k played alone     `watch_answer`, O(nnz)

W = -(ε/X²)Θ, Θ the sum of the gradients (p - e_y) ⊗ x/ln 2. X is the longest row so far and ε never rises, so that the
step never does, whatever the order of the answers: ε ← min{ε, D²/(2(M - Ψ))} after each, for rules of ‖U‖X near D. With
κ ≤ 1 no term of Ψ is negative.
"""

import math
from typing import Any, NamedTuple

from gaptron.kernels.exponential import exponentials
from gaptron.kernels.jit import by_type, class_name, jit
from gaptron.kernels.losses import LN2
from gaptron.kernels.rows import add, add_one, row, score_one, scores, sqnorm, zeros
from gaptron.types import Flags, Integers, Matrix, Observed, Proof, Round, Vector, named

FIRST_STEP = 2.0 * LN2**2  # ε before the first answer: κ ≤ 1, and 1/(2ε) is 0.52
RADIUS = 20.0  # D: the ‖U‖X that the step is balanced for; what is proved holds for every U


def new_run() -> Any:
    """The numbers of one learner on the side: X², M, Ψ, ε."""
    return named(square=0.0, mistakes=0, level=0.0, step=FIRST_STEP)


@jit
def lower_step(run: Any) -> None:
    """ε ← min{ε, D²/(2(M - Ψ))}."""
    n = run[0]
    excess = n.mistakes - n.level
    if excess > 0.0:
        n.step = min(n.step, RADIUS**2 / (2.0 * excess))


@jit
def watch_miss(run: Any, square: float) -> None:
    """A label that was wrong, on a row with ‖x‖² = square."""
    run[0].square = max(run[0].square, square)
    run[0].mistakes += 1
    lower_step(run)


@jit
def watch_hit(run: Any, Theta: Matrix, x: Any, square: float, y: int, among: Flags, r: Vector) -> None:
    """The label y was right, and the labels of `among` could be played. r is work."""
    n = run[0]
    n.square = max(n.square, square)
    eta = n.step / n.square if n.square > 0.0 else 0.0
    scores(Theta, x, r)
    shift, top = 0.0, -1
    for k in range(r.shape[0]):
        r[k] *= -eta
        if among[k] and (top < 0 or r[k] > shift):
            shift, top = r[k], k
    below = shift - r[y]
    exponentials(r, shift, r)
    own, others = r[y], 0.0  # times e^shift: e^z of y, and of all others together
    for k in range(r.shape[0]):
        r[k] = r[k] if among[k] and k != y else 0.0
        others += r[k]
    total = own + others
    # -ln p_y; with y on top as the logarithm of 1 + a small number, which rounding cannot make negative.
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
def watch_answer(run: Any, Theta: Matrix, x: Any, square: float, label: int, hit: bool) -> None:
    """The label played was right or wrong: one of its K questions is answered."""
    n = run[0]
    n.square = max(n.square, square)
    eta = n.step / n.square if n.square > 0.0 else 0.0
    z = -eta * score_one(Theta, x, label)
    against = -z if hit else z  # the loss is ln(1 + e^against)
    small = math.exp(-abs(against))
    loss = max(against, 0.0) + math.log1p(small)
    wrong = (1.0 if against > 0.0 else small) / (1.0 + small)  # σ(against) = |f - hit|
    n.level += loss / LN2 - eta * square / (2.0 * LN2**2) * wrong * wrong
    add_one(Theta, x, label, (-wrong if hit else wrong) / LN2)
    if not hit:
        n.mistakes += 1
    lower_step(run)


# --- beside a learner -----------------------------------------------------------------------------------------


class Watch(NamedTuple):
    """All that is kept beside a bandit learner."""

    hits: Any  # of Theorem 1: X², M, Ψ, ε
    hit_sum: Matrix  # its Θ
    answers: Any  # of Theorem 2
    answer_sum: Matrix
    count: Any  # answers heard; those that were worth more than nothing and less than all


def new_watch(n_classes: int, n_features: int, sparse: bool) -> Watch:
    """Nothing was heard yet."""
    room = n_classes, n_features, sparse
    return Watch(new_run(), zeros(*room), new_run(), zeros(*room), named(rounds=0, partial=0))


def proved(seen: Watch, waiting: int) -> Observed:
    """What is kept, as a caller reads it; `waiting` decisions have no answer."""
    n = seen.hits[0]
    proofs = [(_proof(run[0]),) for run in (seen.hits, seen.answers)]
    return Observed(int(seen.count[0].rounds), waiting, int(n.mistakes), math.sqrt(n.square), *proofs)


def _proof(n: Any) -> Proof:
    level = float(n.level)
    return Proof(level, 1.0 / (2.0 * float(n.step)), max(0.0, int(n.mistakes) - level))


def check(seen: Watch, learned: int) -> None:
    """Refuse numbers that no run leaves, where they come from a file."""
    count, hits, answers = seen.count[0], seen.hits[0], seen.answers[0]
    if count.rounds + count.partial > learned or hits.mistakes > count.rounds:
        raise ValueError("more answers were observed than learned from")
    if hits.mistakes != answers.mistakes or hits.square != answers.square:
        raise ValueError("the two parts of what was observed are not of the same rounds")
    for n in (hits, answers):
        if not (0.0 < n.step <= FIRST_STEP and n.level >= 0.0 and n.square >= 0.0):
            raise ValueError("what was observed holds a number out of its range")


def _hear(seen: Any, x: Any, label: int, reward: float, among: Flags, r: Vector) -> None:
    if 0.0 < reward < 1.0:
        seen.count[0].partial += 1
        return
    square, hit = sqnorm(x), reward >= 1.0
    seen.count[0].rounds += 1
    if hit:
        watch_hit(seen.hits, seen.hit_sum, x, square, label, among, r)
    else:
        watch_miss(seen.hits, square)
    watch_answer(seen.answers, seen.answer_sum, x, square, label, hit)


hear = by_type(lambda *_: _hear, _hear)  # one body: only to be inlined, which halves its cost
hear.__doc__ = "One answer: the label was worth so much, 1 right, 0 wrong, and those of `among` could be played."


@jit
def hear_all(seen: Any, X: Any, labels: Integers, rewards: Vector, among: Any, allowed: Flags, r: Vector) -> None:
    """Many answers, one after the other. among has a column for each label, or none: then all could be played.

    allowed, true throughout, and r are work.
    """
    for t in range(labels.shape[0]):
        for k in range(among.shape[1]):
            allowed[k] = among[t, k]
        hear(seen, row(X, t), labels[t], rewards[t], allowed, r)


def _watch(seen: Any, x: Any, rd: Round, label: int, r: Vector) -> None:
    hear(seen, x, label, rd.answer[0].reward, rd.among, r)


def _look_away(seen: Any, x: Any, rd: Round, label: int, r: Vector) -> None:
    pass


watch = by_type(lambda seen, *_: _watch if class_name(seen) == "Watch" else _look_away, _watch)
watch.__doc__ = "The answer in the round to the label played; r is work, K numbers. Nothing where nothing is kept."


# --- against a given rule -------------------------------------------------------------------------------------

ALONE_WRONG, ALONE_RIGHT, BOTH_WRONG = 0, 1, 2  # columns of the counts against given rules


@jit
def tally(counts: Any, j: int, other: int, label: int, hit: bool) -> None:
    """Count a round against rule j, which would have played `other`.

    counts[j] = #{miss, other ≠ label}, #{hit, other ≠ label}, #{miss, other = label}.
    """
    if other == label:
        if not hit:
            counts[j, BOTH_WRONG] += 1
    elif hit:
        counts[j, ALONE_RIGHT] += 1
    else:
        counts[j, ALONE_WRONG] += 1
