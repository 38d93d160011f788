"""Frugal Gaptron: explore no more than the proof needs.

This library, docs page "Frugal Gaptron" (2026); it builds on van der Hoeven 2020, Algorithm 1, on the decoders of
Sakaue et al. 2024 and Shibukawa et al. 2025, and on Gappletron (van der Hoeven et al. 2021).
Feedback: full, bandit.   Cost: O(dK) a round.   Nothing to know in advance: no horizon, no radius, no norm.

    Λ = 0;  for t = 1, 2, ...
      1   see x;  X = max ‖x_s‖ so far;  ε = e₀, bandit: min{e₀, σ²/(2Λ)};  η = ε/X²
          z_k = ⟨W_k, x⟩ with W = -η Σ ĝ;  y* = argmax z
      2   ask of every label y the least q(y) that keeps its surrogate gap
              gap(y) = r(1 - q(y)) - ℓ^y + (η/2) E‖ĝ‖²  at most λ
          λ = 0 if these demands sum to at most 1 (what is left goes to y*), else the least λ that makes them
      3   play y' ~ q;  Λ ← Λ + λ
      4   ĝ = c^y ⊗ x                                        bandit: (B + 1[y' = y]/q(y')·(c^{y'} - B)) ⊗ x

Then E[M_T] ≤ (L_T(U) + ‖U‖²/(2η_T) + Λ_T)/r: with full information λ is never above 0 and it holds for all U at
once on every path; under bandit feedback in expectation, for U fixed before the draws.

The baselines B are p̃ (logistic) and e_y* (hinge, when sure), centred over labels; B = 0 else. Centring moves all
scores of a round alike and so no prediction: the sums here leave it out and `weights` puts it in. (In single precision
they hold it: the rounding that is counted is that of the sums.)

Labels that are not available in a round are left out of its scores, softmax, margins, demands and draw. n labels are
left, the theorem stands with n for K in line 2 and U's loss over them, and centring is over them alone: then it does
count, and the sums hold it. An answer worth a reward s, 0 < s < 1, counts as 1[y' = y] = s in line 4.

Late answers with full information: W of line 4 is that of the day the answer is learned, q that of the decision. Then
Σ(1 - q(y)) ≤ (L(U) + ‖U‖²/(2η) + G)/r over the answers learned, whatever their order and delay, on every path, with
G = Σ gap(y) at that W and that q, which the state sums; at once no gap is above 0.

Example:

    >>> from gaptron import Learner
    >>> from gaptron.streams import open_stream, prepare
    >>> stream = prepare(open_stream("digits"), unit_norm=True)
    >>> learner = Learner("frugal-gaptron", classes=stream.classes, seed=0)
    >>> trace = learner.play(stream)
    >>> round(trace.expected_mistakes)
    198
    >>> round(learner.bound(stream.X, stream.y).value)
    1538

To cite:

    @software{gaptron,
      title     = {gaptron: online multiclass classification with guarantees you can see},
      author    = {{The gaptron developers}},
      year      = {2026}
    }
"""

import math
from typing import Any, NamedTuple

import numpy as np

from gaptron.errors import SettingError
from gaptron.kernels import demands
from gaptron.kernels.jit import jit
from gaptron.kernels.losses import HINGE, LN2, LOGISTIC, confident, margin, pull
from gaptron.kernels.play import algorithm
from gaptron.kernels.rounding import counts, put, put_one
from gaptron.kernels.rows import by_label, scores, sqnorm, zeros
from gaptron.kernels.simplex import available, best, draw, exclude, least_exploration, rival
from gaptron.types import (
    UNCOUNTED,
    UNKNOWN,
    Card,
    Certificate,
    Comparator,
    Feedback,
    Flags,
    Growth,
    Integers,
    Loss,
    Matrix,
    Problem,
    Round,
    Row,
    Vector,
    named,
)

CARD = Card(
    paper="this library; builds on van der Hoeven 2020, Sakaue et al. 2024",
    feedback=(Feedback.FULL, Feedback.BANDIT),
    losses=(Loss.LOGISTIC, Loss.HINGE, Loss.SMOOTH_HINGE),
    time="O(dK)",
    memory="dK",
    regret_full="O(‖U‖²) logistic, O(K ‖U‖²) hinges",
    regret_bandit="O(‖U‖² √(KT))",
    among=True,
    rewards=True,
    growth=Growth(centred=("W",)),
    single=("W",),
)
TINY = 1e-280  # while all ‖x‖² are below this, no step is taken
NOTES = ("level", "step", "explored", "solved")  # λ, ε = ηX², 1 - q(y*), whether λ had to rise
LEVEL, STEP, EXPLORED, SOLVED = range(len(NOTES))


class Frugal(NamedTuple):
    """The settings."""

    loss: int  # logistic, hinge or smooth hinge
    scale: float  # σ > 0  bandit: the ‖U‖X that the step is balanced for
    risk: float  # r ≥ 1  full information: how much more than one mistake a mistake costs in the gap
    delay: int  # τ ≥ 0  answers that may be missing at any time
    beta: float  # margin past which the hinge is sure
    first: float  # e₀     the largest ε = ηX²
    bandit: bool


class FrugalState(NamedTuple):
    """What is learned."""

    W: Matrix  # -Σ ĝ, not yet times η
    # square: X², level: Λ, step: ε of the next round, last: ε of the last, gap: G, the sum of gaps of answers learned
    total: Any
    rounding: Any = UNCOUNTED  # what single precision has cost


def init(settings: Frugal, problem: Problem, sparse: bool) -> FrugalState:
    """Line 0: no sums yet."""
    W = zeros(problem.n_classes, problem.n_features, sparse)
    return FrugalState(W, named(square=0.0, level=0.0, step=settings.first, last=settings.first, gap=0.0))


class FrugalScratch(NamedTuple):
    """Work space."""

    p: Vector  # p̃, the softmax of the scores
    b: Vector  # what each label's gap is without its q
    c: Vector  # what it costs to see the label rarely
    r: Vector  # coefficients of the update
    kept: Any  # of this round: X², λ and ε


def scratch(settings: Frugal, problem: Problem, sparse: bool) -> FrugalScratch:
    """Four numbers a label, and three."""
    K = problem.n_classes
    return FrugalScratch(np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K), named(square=0.0, level=0.0, step=0.0))


def weights(state: FrugalState, sparse: bool) -> Matrix:
    """W of the next round, if its row is no longer than those before: centred over labels, times η."""
    total, W = state.total[0], by_label(state.W, sparse)
    return np.asarray((W - W.mean(axis=0)) * (total.step / total.square if total.square > TINY else 0.0))


def grown(settings: Frugal, old: FrugalState, new: FrugalState, places: Integers, labels: bool, sparse: bool) -> None:
    """No step is larger than the first for the new number of labels, or than before."""
    new.total[0].step = min(old.total[0].step, settings.first)


def remembers(settings: Frugal) -> tuple[str, ...]:
    """The proof for late answers needs the gradient of the decision's own weights."""
    return ("p", "b", "kept") if settings.delay else ()


def late_proof(settings: Frugal) -> bool:
    """With full information any lateness is paid for by G, unless `delay` asks for the other proof."""
    return not settings.bandit and settings.delay == 0


# --- theory -----------------------------------------------------------------------------------------------


def largest_step(loss: Loss, K: int, risk: float) -> float:
    """The largest ε = ηX² for which λ = 0 in full information, whatever the scores."""
    if loss is Loss.LOGISTIC:
        return 2 * (2 - risk) * LN2**2
    room = 1 - risk * (K - 1) / K
    return room if loss is Loss.HINGE else room / 4


def recommend(
    problem: Problem,
    scale: float = 1.0,
    risk: float = 1.0,
    delay: int = 0,
    beta: float | None = None,
) -> Frugal:
    """The largest step that keeps λ = 0 (full information), or a K-th of it at first (bandit). Turn nothing."""
    K, bandit = problem.n_classes, problem.feedback is Feedback.BANDIT
    if not 1e-100 <= scale <= 1e100:
        raise SettingError(f"scale={scale!r} must be a positive number, of a size that can be squared")
    if not (0 <= delay < math.inf and delay == int(delay)):
        raise SettingError(f"delay={delay!r} must be a whole number of at least 0")
    top = 2.0 if problem.loss is Loss.LOGISTIC else K / (K - 1)
    if bandit and risk != 1.0:
        raise SettingError("risk is for full information: under bandit feedback it must stay 1")
    if not 1.0 <= risk < top:
        raise SettingError(f"risk={risk!r} must lie in [1, {top:.6g}) for the {problem.loss.word} loss, K = {K}")
    low, high = 0.0 if bandit else risk / K, risk * (K - 1) / K
    if beta is None:  # any β in the range is proved; with full information 2/K made the fewest mistakes on 31 data sets
        beta = high if bandit else min(2 * risk / K, high)
    if not low * (1 - 1e-12) <= beta <= high * (1 + 1e-12) or beta == 0.0:
        raise SettingError(f"beta={beta!r} must lie in [{low:.6g}, {high:.6g}] and be positive, for K = {K}")
    first = largest_step(problem.loss, K, risk)
    first = first / K if bandit else first / (1 + 2 * delay)
    return Frugal(int(problem.loss), float(scale), float(risk), int(delay), float(beta), first, bandit)


def theorem(problem: Problem, settings: Frugal) -> str:
    """Where the certificate comes from."""
    late = f", {settings.delay} answers late" if settings.delay else ""
    return f"certificate of Frugal Gaptron{late}"


def certificate(settings: Frugal, state: FrugalState) -> Certificate:
    """C_T(U) = ‖U‖²X²/(2ε_T) + Λ_T, known from the run itself; Λ_T = max{0, G} where lateness is paid for by G."""
    total = state.total[0]
    level = max(0.0, total.gap) if late_proof(settings) else total.level
    return Certificate(float(level), float(total.last), math.sqrt(total.square), settings.risk, settings.bandit)


def bound(problem: Problem, settings: Frugal, comparator: Comparator) -> float:
    """What is known before the run: with full information (L_T(U) + ‖U‖²X²/(2e₀))/r, for every U on every path.

    Under bandit feedback L_T(U) + max{‖U‖²X²/(2e₀), ω²Λ} + Λ, ω = ‖U‖X/σ, with Λ at its largest on any path; in
    expectation, for U fixed before the draws. The certificate is the smaller number.
    """
    (X,) = problem.need("norm")
    XU = X * comparator.norm
    if not settings.bandit:
        return (comparator.loss + XU**2 / (2 * settings.first)) / settings.risk
    level = largest_level(problem, settings, comparator.rounds)
    return comparator.loss + max(XU**2 / (2 * settings.first), (XU / settings.scale) ** 2 * level) + level


def largest_level(problem: Problem, settings: Frugal, rounds: int) -> float:
    """Λ_T ≤ σ√(αT) + λ̄ on every path, and for the logistic loss + σ²/(2e₁)."""
    K, sigma, tau = problem.n_classes, settings.scale, settings.delay
    if problem.loss is Loss.LOGISTIC:
        alpha, most, early = 0.43 * (K - 1) + 4.2 * tau, 2.0, sigma**2 / (LN2**2 / K)
    elif problem.loss is Loss.SMOOTH_HINGE:
        alpha, most, early = 2 * K + 8 * tau, 1 / (2 * K), 0.0
    else:
        sure = settings.beta > 1 - 1 / K - 1e-9
        alpha = (K / 2 if sure else (K - 1) / settings.beta) + 2 * tau
        most, early = 1 / (2 * K) if sure else 1 / (settings.beta * K), 0.0
    most += tau * settings.first * {Loss.LOGISTIC: 4.2, Loss.HINGE: 2.0, Loss.SMOOTH_HINGE: 8.0}[problem.loss]
    return sigma * math.sqrt(alpha * rounds) + most + early


# --- the algorithm ------------------------------------------------------------------------------------------


@jit
def demands_hinge(s: Frugal, z: Vector, K: int, top: int, h: float, b: Vector, c: Vector) -> None:
    """Line 2 for the hinges: b and c of every label, from the margins. K labels are available."""
    sure = s.loss == HINGE and confident(z, top, s.beta)
    for y in range(z.shape[0]):
        if z[y] == -math.inf:
            b[y], c[y] = -math.inf, 0.0
            continue
        m = margin(z, top) if y == top else z[y] - z[top]
        if s.loss == HINGE:
            loss = 0.0 if sure and y == top else max(1.0 - m, 0.0)
            square = 2.0 if loss > 0.0 else 0.0  # ‖c^y‖²
        elif m <= 0.0:
            loss, square = 1.0 - 2.0 * m, 8.0
        else:
            loss = max(1.0 - m, 0.0) ** 2
            square = 8.0 * loss
        if not s.bandit:
            b[y] = 1.0 - (loss - (1.0 + 2.0 * s.delay) * h * square) / s.risk
            c[y] = 0.0
        elif sure:  # against the baseline e_y* - 1/K
            b[y] = 1.0 - loss + h * ((1.0 / K - 1.0 if y == top else 1.0 + 1.0 / K) + 2.0 * s.delay * square)
            c[y] = h * (1.0 - 1.0 / K)
        else:
            b[y] = 1.0 - loss + 2.0 * s.delay * h * square
            c[y] = h * square


def decide(s: Frugal, state: FrugalState, x: Row, rd: Round, work: FrugalScratch, u: float) -> int:
    """Lines 1-3."""
    total, kept = state.total[0], work.kept[0]
    own = sqnorm(x)
    square = max(total.square, own)
    step = total.step
    scores(state.W, x, rd.z)
    ratio, share = (step / square, own / square) if square > TINY else (0.0, 0.0)
    for k in range(rd.z.shape[0]):
        rd.z[k] *= ratio
    K = exclude(rd.z, rd.among)
    top = best(rd.z)
    h = step * share / 2.0
    if s.loss == LOGISTIC:
        demands.logistic(rd.z, work.p, top, h, s.bandit, s.risk, s.delay, work.b, work.c)
    else:
        demands_hinge(s, rd.z, K, top, h, work.b, work.c)
    level, solved = least_exploration(work.b, work.c, top, rd.p)
    level *= s.risk
    if 0.0 < square <= TINY:  # too short to divide by: a round without an update, which costs its whole gap
        square = 0.0
        for y in range(rd.z.shape[0]):
            if rd.among[y]:
                work.b[y] = 1.0
                level = max(level, s.risk * (1.0 - rd.p[y]))
    kept.square, kept.level, kept.step = square, level, step
    rd.note[LEVEL], rd.note[STEP] = level, step
    rd.note[EXPLORED], rd.note[SOLVED] = 1.0 - rd.p[top], 1.0 if solved else 0.0
    return draw(rd.p, top, u)


def commit(s: Frugal, state: FrugalState, rd: Round, work: FrugalScratch) -> None:
    """What the decision itself fixes, answered or not: X, Λ, and from them the next ε."""
    total, kept = state.total[0], work.kept[0]
    total.square = max(total.square, kept.square)
    total.level += kept.level
    total.last = kept.step
    if s.bandit and total.level > 0.0:
        total.step = min(s.first, s.scale * s.scale / (2.0 * total.level))


@jit
def centre(among: Flags, amount: float, r: Vector, always: bool) -> bool:
    """Spread an amount over the available labels, unless all are: then it moves no prediction and may be left out."""
    n = available(among)
    if n == among.shape[0] and not always:
        return False
    for k in range(among.shape[0]):
        if among[k]:
            r[k] += amount / n
    return True


def learn(s: Frugal, state: FrugalState, x: Row, rd: Round, work: FrugalScratch, label: int, truth: int) -> None:
    """Line 4. Under bandit feedback a wrong guess teaches too, through the baseline."""
    weight = 1.0  # 1[seen]/q(y'), or 1 when the truth is told
    if s.bandit:
        weight = rd.answer[0].reward / rd.p[label]
    elif truth == UNKNOWN:
        return
    else:
        state.total[0].gap += s.risk * (work.b[truth] - rd.answer[0].chance)
    if work.kept[0].square == 0.0:  # rows of zero, or next to it
        return
    W, rounding, counted = state.W, state.rounding, counts(state.W)
    eta = work.kept[0].step / work.kept[0].square
    if s.loss == LOGISTIC:
        for k in range(work.r.shape[0]):
            work.r[k] = -work.p[k] / LN2
        if weight > 0.0:
            work.r[truth] += weight / LN2
        centre(rd.among, (1.0 - weight) / LN2, work.r, counted)
        put(W, x, work.r, rounding, eta, 1.0)
        return
    top = best(rd.z)
    if s.bandit and s.loss == HINGE and confident(rd.z, top, s.beta):
        for k in range(work.r.shape[0]):
            work.r[k] = 0.0
        if counted:  # in one, so that each number is rounded once
            work.r[top] = -1.0
            if weight > 0.0:
                work.r[truth] += weight
        else:
            put_one(W, x, top, -1.0, rounding, eta, 1.0)
            if weight > 0.0:
                put_one(W, x, truth, weight, rounding, eta, 1.0)
        if centre(rd.among, 1.0 - weight, work.r, counted):
            put(W, x, work.r, rounding, eta, 1.0)
    elif weight > 0.0:
        v = weight * pull(s.loss, s.beta, rd.z, truth)
        if v != 0.0:
            put_one(W, x, rival(rd.z, truth), -v, rounding, eta, 1.0)
            put_one(W, x, truth, v, rounding, eta, 1.0)


algorithm(Frugal, decide, learn, commit)
