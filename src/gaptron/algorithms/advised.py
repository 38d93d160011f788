"""Advised Gaptron: the certificate plays what it must, practical learners play the rest.

This library, docs page "Advised Gaptron" (2026); it extends Frugal Gaptron, whose proof asks of a label no more than
q(y) ≥ ρ_y: what is left of the distribution may go anywhere, and goes to the label that a mixture of advisers favours.
Feedback: full, bandit.   Cost: O(dK) a round, some six times Frugal's.   Nothing to know in advance, nothing to tune.

    Λ = H* = 0, v = 1;  for t = 1, 2, ...
      1   see x;  X = max ‖x_s‖ so far;  ε = min{e₀, max{σ²/(2(Λ + H*)), floor_t}};  η = ε/X²
          w_k = ⟨W_k, x⟩ with W = -η Σ ĝ
      2   the advisers give f_1, ..., f_J, the caller perhaps f too, and f_0 = softmax w;  heard together they give P
          k̂ = argmax P;   k° = the same without f_0
      3   z = w                                    bandit: w + v a,  a = ln P, cut to a range of 10 and centred
          ask of every label y the least q(y) that keeps its surrogate gap at most λ, as in Frugal Gaptron, counting
          the second moment of the gradient in v too;  what is left goes to k̂
      4   play y' ~ q;  Λ ← Λ + λ
      5   ĝ as in Frugal Gaptron;                  bandit: v = 1 - ερ² Σ⟨r, a⟩,  ĝ = r ⊗ x,  ρ² = 0.1
          H ← H + 1[k° = y] - q(y)                 bandit, on a hit: + min{1/q(y'), 10}·1[y' = k°] - 1
          H* = max(H*, H);   the advisers learn from (x, y), or from (x, y', right or wrong), unweighted

Whatever the advisers say, with full information on every path and for all U at once
    Σ(1 - q_t(y_t)) ≤ L_T(U) + ‖U‖²X²/(2ε_T),  1/(2ε_T) ≤ 52.1,
and under bandit feedback E[M_T] ≤ L_T(U) + E[(‖U‖²X² + 10)/(2ε_T) + Λ_T] for U fixed before the draws, of order √(KT).
Nothing is promised relative to the advisers.
"""

import math
from typing import NamedTuple

import numpy as np

from gaptron.errors import SettingError
from gaptron.kernels import demands
from gaptron.kernels.adagrad import sweep
from gaptron.kernels.council import COPIES, RANGE, believe, blend, centre, invite, restack, stack
from gaptron.kernels.jit import jit
from gaptron.kernels.likelihood import answered, told
from gaptron.kernels.losses import LN2
from gaptron.kernels.oracles import FLOOR, LOGISTIC_ONE, predict
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import by_label, scores, sqnorm, zeros
from gaptron.kernels.simplex import best, draw, least_exploration, softmax
from gaptron.types import (
    UNKNOWN,
    Advice,
    Card,
    Certificate,
    Comparator,
    Feedback,
    Growth,
    Integers,
    Loss,
    Matrix,
    Problem,
    Round,
    Row,
    Vector,
)

RULES = ("mistakes", "certificate")
CARD = Card(
    paper="this library; extends Frugal Gaptron (2026)",
    feedback=(Feedback.FULL, Feedback.BANDIT),
    losses=(Loss.LOGISTIC,),
    time="O(dK)",
    memory="6dK",
    regret_full="O(‖U‖²)",
    regret_bandit="O(‖U‖² √(KT))",
    advice=True,
    words={"rule": RULES},
    growth=Growth(joint="blocks", by_hand=("W",)),
    traits=frozenset({"mixture", "axes"}),
)
# The experts, by feedback: the certified learner, four advisers side by side, and the caller's, if it has one.
BANDIT_EXPERTS = ("certified", "one-vs-all", "softmax 2", "softmax 8", "adagrad 0.3")
FULL_EXPERTS = ("certified", "softmax 2", "adagrad 0.1", "adagrad 0.3", "adagrad 1")
INSIDE = len(FULL_EXPERTS)
EXPERTS = INSIDE + COPIES
BANDIT_STEPS = (1.0, 2.0, 8.0, 0.3)
FULL_STEPS = (2.0, 0.1, 0.3, 1.0)
# λ, ε, 1 - q(k̂), whether λ had to rise, H so far, and the weights: of the certified learner, the advisers, the caller.
NOTES = ("level", "step", "explored", "solved", "cost", "certified", "first", "second", "third", "fourth", "caller")
PULL = 0.1  # ρ²: how fast v moves
MOST = 10.0  # the most a hit may count in the estimate of H
SMALL = 1e-3  # an adviser lets smaller derivatives pass: they teach it nothing and cost a root for every feature
TINY = 1e-280  # while all ‖x‖² are below this, rows count as zero
MISTAKES = RULES.index("mistakes")

SQUARE, LEVEL, STEP, COST, LARGEST, MOVED, CLOCK, SUM, CALLED, SEEN = range(10)  # what state.total holds
SHEET = 6  # numbers on the sheet after the experts: X², ‖x‖², λ, ε, k°, how many experts spoke


class Advised(NamedTuple):
    """The settings."""

    scale: float  # σ > 0  the larger, the tighter the certificate and the more mistakes
    rule: int  # mistakes: ε shrinks by what the certificate cost against the advice; or certificate: by Λ alone
    first: float  # e₀     the largest ε = ηX²
    least: float  # full information: the least ε; bandit: s, and the least ε is s/√(Kt)
    bandit: bool


class AdvisedState(NamedTuple):
    """What is learned."""

    W: Matrix  # side by side: -Σ ĝ of the certified learner, then the advisers' weights
    N: Matrix  # sums of squares, shared by the advisers that use AdaGrad
    # X², Λ, ε of the last round, H, H*, Σ⟨r, a⟩, rounds, Σ‖x‖², rounds with the caller's advice, N of the stacking
    total: Vector
    omega: Vector  # the experts' weights


class AdvisedScratch(NamedTuple):
    """Work space."""

    memo: Vector
    r: Vector  # coefficients of the update
    squares: Vector  # mean square of the AdaGrad advisers' derivatives
    sweep: Vector  # of the sweep
    w: Vector  # the certified scores, then with the advice
    b: Vector  # what each label's gap is without its q
    c: Vector  # what it costs to see the label rarely
    g: Vector  # derivatives in the experts' weights


def init(settings: Advised, problem: Problem, sparse: bool) -> AdvisedState:
    """Line 0: nothing learned, everybody heard alike."""
    K, d = problem.n_classes, problem.n_features
    total = np.zeros(10)
    total[STEP] = settings.first
    omega = np.full(EXPERTS, 1.0 / INSIDE)
    return AdvisedState(zeros(INSIDE * K, d, sparse), zeros(K, d, sparse), total, omega)


def scratch(settings: Advised, problem: Problem, sparse: bool) -> AdvisedScratch:
    """The experts' f, with full information their logarithms, p̃, and a few numbers."""
    K, d = problem.n_classes, problem.n_features
    size = (EXPERTS * (1 if settings.bandit else 2) + 1) * K + SHEET
    return AdvisedScratch(*(np.zeros(n) for n in (size, INSIDE * K, K, max(K, d), K, K, K, EXPERTS)))


def weights(state: AdvisedState, sparse: bool) -> Matrix:
    """The certified W at the last ε, centred over labels. The advisers' are not in it."""
    W = by_label(state.W, sparse)
    W = W[: W.shape[0] // INSIDE]
    square = state.total[SQUARE]
    return np.asarray((W - W.mean(axis=0)) * (state.total[STEP] / square if square > TINY else 0.0))


def grown(
    settings: Advised, old: AdvisedState, new: AdvisedState, places: Integers, labels: bool, sparse: bool
) -> None:
    """The weights of all learners, and the mean of the certified one for its new labels."""
    W, was = (new.W.T, old.W.T) if sparse else (new.W, old.W)
    if not labels:
        W[:, places] = was
        return
    K, room = len(places), W.shape[0] // INSIDE
    for j in range(INSIDE):
        W[j * room + places] = was[j * K : (j + 1) * K]
    W[np.setdiff1d(np.arange(room), places)] = was[:K].mean(axis=0)


# --- theory -----------------------------------------------------------------------------------------------


def recommend(problem: Problem, scale: float | None = None, rule: str = "mistakes") -> Advised:
    """σ = 0.3 (bandit; 1 with rule="certificate") or 2 (full information), which served 44 data sets. Turn nothing."""
    K, bandit = problem.n_classes, problem.feedback is Feedback.BANDIT
    if rule not in RULES:
        raise SettingError(f"rule={rule!r} must be one of {', '.join(RULES)}")
    kind = RULES.index(rule)
    if scale is None:
        scale = (0.3 if kind == MISTAKES else 1.0) if bandit else 2.0
    if not 1e-100 <= scale <= 1e100:
        raise SettingError(f"scale={scale!r} must be a positive number, of a size that can be squared")
    first = 2 * LN2**2 / (K if bandit else 1)
    least = 0.0
    if kind == MISTAKES:
        least = scale / 16 if bandit else first / 100
    return Advised(float(scale), kind, first, least, bandit)


def theorem(problem: Problem, settings: Advised) -> str:
    """Where the certificate comes from."""
    return "certificate of Advised Gaptron"


def certificate(settings: Advised, state: AdvisedState) -> Certificate:
    """C_T(U) = (‖U‖²X² + N₀)/(2ε_T) + Λ_T, known from the run; N₀ = 1/ρ² under bandit feedback, where U has v = 0."""
    t = state.total
    apart = 1 / PULL if settings.bandit else 0.0
    return Certificate(float(t[LEVEL]), float(t[STEP]), math.sqrt(t[SQUARE]), 1.0, settings.bandit, apart)


def advice(settings: Advised, state: AdvisedState) -> Advice:
    """What the certificate cost against the advice so far, and who is heard."""
    names = BANDIT_EXPERTS if settings.bandit else FULL_EXPERTS
    omega = state.omega if state.total[CALLED] else state.omega[:INSIDE]
    share = omega / omega.sum() if settings.bandit else omega
    heard = dict(zip(names, map(float, share)))
    if state.total[CALLED]:
        heard["caller"] = float(share[INSIDE:].sum())
    return Advice(float(state.total[COST]), settings.bandit, heard)


def bound(problem: Problem, settings: Advised, comparator: Comparator) -> float:
    """What is known before the run: L_T(U) + N·max 1/(2ε_T) + max Λ_T.

    With full information N = ‖U‖²X², 1/(2ε_T) ≤ 25/ln²2 = 52.1 and Λ_T = 0, for every U on every path. Under bandit
    feedback N = ‖U‖²X² + 10, 1/(2ε_T) ≤ max{K/(4 ln²2), √(KT)/(2s)}, in expectation, for U fixed before the draws.
    The certificate is the smaller number.
    """
    (X,) = problem.need("norm")
    N, first = (X * comparator.norm) ** 2, settings.first
    if not settings.bandit:
        least = first if settings.rule != MISTAKES else settings.least
        return comparator.loss + N / (2 * least)
    N += 1 / PULL
    level = largest_level(problem, settings, comparator.rounds)
    if settings.rule == MISTAKES:
        most = math.sqrt(problem.n_classes * comparator.rounds) / (2 * settings.least)
    else:
        most = level / settings.scale**2
    return comparator.loss + N * max(1 / (2 * first), most) + level


def largest_level(problem: Problem, settings: Advised, rounds: int) -> float:
    """Under bandit feedback Λ_T ≤ σ√(α̃T) + 4α̃s√(T/K) + λ̄ + max{σ²/(2e₁) + λ̄, λ̄s²/(Ke₁²)} on every path."""
    K, sigma, s = problem.n_classes, settings.scale, settings.least
    wide = 1 + 3 * RANGE**2 * PULL
    alpha, early = 0.22 * (K - 1) * wide, LN2**2 / (8 * K * wide)
    most = 2 + PULL * RANGE**2 * (1 + 3 / K)
    grown = sigma * math.sqrt(alpha * rounds) + 4 * alpha * s * math.sqrt(rounds / K)
    return grown + most + max(sigma**2 / (2 * early) + most, most * s * s / (K * early * early))


# --- the algorithm ------------------------------------------------------------------------------------------


@jit
def next_step(s: Advised, total: Vector, K: int) -> float:
    """Line 1: ε, never above e₀ and never rising."""
    lost = total[LEVEL] + (total[LARGEST] if s.rule == MISTAKES else 0.0)
    if lost <= 0.0:
        return s.first
    least = s.least / math.sqrt(K * (total[CLOCK] + 1.0)) if s.bandit else s.least
    return float(min(s.first, max(s.scale * s.scale / (2.0 * lost), least)))


@jit
def demand_in_v(step: float, a: Vector, p: Vector, b: Vector, c: Vector) -> None:
    """Line 3, bandit: what the second moment of the gradient in v adds to b and c."""
    kappa, mu = step * PULL / (2.0 * LN2 * LN2), 0.0
    for k in range(a.shape[0]):
        mu += p[k] * a[k]
    for y in range(a.shape[0]):
        b[y] += kappa * (mu * mu - 2.0 * mu * a[y])
        c[y] += kappa * a[y] * a[y]


def decide(s: Advised, state: AdvisedState, x: Row, rd: Round, work: AdvisedScratch, u: float) -> int:
    """Lines 1-4."""
    K, total = rd.z.shape[0], state.total
    own = sqnorm(x)
    square = max(total[SQUARE], own)
    step = next_step(s, total, K)
    scores(state.W, x, work.memo[: INSIDE * K])
    F = work.memo[: EXPERTS * K].reshape(EXPERTS, K)
    ratio, share = (step / square, own / square) if square > TINY else (0.0, 0.0)
    for k in range(K):
        work.w[k] = ratio * F[0, k]
        F[0, k] = work.w[k]
    n = invite(rd.advice, F, INSIDE)
    end = work.memo.shape[0] - SHEET
    p = work.memo[end - K : end]
    if s.bandit:
        for j in range(INSIDE):
            if j == 1:
                predict(LOGISTIC_ONE, F[j], 0, F[j])
            else:
                softmax(F[j], best(F[j]), F[j])
        top, outside = blend(state.omega, F, n, rd.z)
        v = 1.0 - step * PULL * total[MOVED]
        for k in range(K):
            work.w[k] += v * rd.z[k]
    else:
        L = work.memo[EXPERTS * K : 2 * EXPERTS * K].reshape(EXPERTS, K)
        for j in range(n):
            for k in range(K):
                L[j, k] = F[j, k] if j < INSIDE else math.log(max(F[j, k], 1e-300))
            centre(L[j], INSIDE / n)  # so that n experts start with the weight 1/n each
            if j < INSIDE:
                softmax(F[j], best(F[j]), F[j])
        top, outside = stack(state.omega, L, n, rd.z)
    demands.logistic(work.w, p, best(work.w), step * share / 2.0, s.bandit, 1.0, 0, work.b, work.c)
    if s.bandit:
        demand_in_v(step, rd.z, p, work.b, work.c)
    level, solved = least_exploration(work.b, work.c, top, rd.p)
    sheet = work.memo[end:]
    sheet[0], sheet[1], sheet[2], sheet[3], sheet[4], sheet[5] = square, own, level, step, outside, n
    rd.note[0], rd.note[1], rd.note[2], rd.note[3] = level, step, 1.0 - rd.p[top], 1.0 if solved else 0.0
    rd.note[4], rd.note[10], heard = total[COST], 0.0, 1.0
    if s.bandit:
        heard = state.omega[:n].sum()
    for j in range(n):
        rd.note[5 + min(j, INSIDE)] = (rd.note[10] if j >= INSIDE else 0.0) + state.omega[j] / heard
    return draw(rd.p, top, u)


def commit(s: Advised, state: AdvisedState, rd: Round, work: AdvisedScratch) -> None:
    """What the decision itself fixes, answered or not: X, Λ, ε and the mean of ‖x‖²."""
    sheet, total = work.memo[work.memo.shape[0] - SHEET :], state.total
    total[SQUARE] = max(total[SQUARE], sheet[0])
    total[LEVEL] += sheet[2]
    total[STEP] = sheet[3]
    total[CLOCK] += 1.0
    total[SUM] += sheet[1]
    total[CALLED] += sheet[5] > INSIDE


def learn(s: Advised, state: AdvisedState, x: Row, rd: Round, work: AdvisedScratch, label: int, truth: int) -> None:
    """Line 5: the certified learner, the cost of its demands, the advisers, and who is heard, in one pass over x."""
    K, total, r = rd.z.shape[0], state.total, work.r
    end = work.memo.shape[0] - SHEET
    F, p, sheet = work.memo[: EXPERTS * K].reshape(EXPERTS, K), work.memo[end - K : end], work.memo[end:]
    outside, n = int(sheet[4]), int(sheet[5])
    hit = truth != UNKNOWN
    mu = 0.0
    for k in range(K):
        r[k] = -p[k] / LN2
        mu += p[k] * rd.z[k]
    mean = total[SUM] / max(total[CLOCK], 1.0)
    size = max(sheet[1], mean)
    if s.bandit:
        weight = 1.0 / rd.p[label] if hit else 0.0
        r[label] += weight / LN2
        total[MOVED] += (mu - weight * rd.z[label]) / LN2
        if hit:
            total[COST] += (min(weight, MOST) if label == outside else 0.0) - 1.0
        for k in range(K):
            r[K + k] = 0.0
        r[K + label] = F[1, label] - (1.0 if hit else 0.0)
        for j in range(2, INSIDE):
            answered(F[j], label, truth, r[j * K : (j + 1) * K])
        believe(state.omega, F, n, label, hit)
        plain, steps = 3, BANDIT_STEPS
    else:
        r[truth] += 1.0 / LN2
        total[COST] += (1.0 if truth == outside else 0.0) - rd.p[truth]
        stacked = r[K : 2 * K]  # for a moment: P - e_y
        softmax(rd.z, best(rd.z), stacked)
        told(stacked, truth, stacked)
        L = work.memo[EXPERTS * K : 2 * EXPERTS * K].reshape(EXPERTS, K)
        restack(state.omega, total[SEEN:], L, n, stacked, work.g)
        for j in range(1, INSIDE):
            told(F[j], truth, r[j * K : (j + 1) * K])
        plain, steps = 1, FULL_STEPS
    total[LARGEST] = max(total[LARGEST], total[COST])
    for k in range(K):
        work.squares[k] = 0.0
    for j in range(1, INSIDE):
        step = steps[j - 1] / (max(size, TINY) if j <= plain else math.sqrt(max(mean, TINY)))
        for k in range(j * K, (j + 1) * K):
            if abs(r[k]) < SMALL or size <= TINY:
                r[k] = 0.0
            if j > plain:
                work.squares[k - j * K] += r[k] * r[k] / (INSIDE - 1 - plain)
            r[k] *= -step
    sweep(state.W, state.N, x, r, (plain + 1) * K, work.squares, FLOOR * max(mean, TINY), work.sweep)


algorithm(Advised, decide, learn, commit)
