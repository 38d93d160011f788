"""Advised Gaptron under bandit feedback: lines 1-5 of the pseudocode, where the label played gets a reward."""

import math
from typing import Any, NamedTuple

import numpy as np

from gaptron.algorithms.advised import experts, kernel
from gaptron.algorithms.advised.experts import (
    COPIES,
    MAX_STICKINESS,
    TINY,
    add_caller_experts,
    clip_and_centre,
    count_decision,
    guard_binds,
    log_odds,
    measure_example,
    position_of,
    record_decision,
    update_stickiness,
    write_round,
)
from gaptron.algorithms.advised.kernel import Floats
from gaptron.algorithms.advised.newton import (
    HALF_WAY,
    NOT_MEASURED,
    Workspace,
    measure_variance,
    n_blocks,
    new_blocks,
    new_diagonal,
    new_workspace,
    newton_step,
)
from gaptron.kernels import gaps
from gaptron.kernels.compile.exponential import exponentials
from gaptron.kernels.compile.jit import inner, jit
from gaptron.kernels.compile.vectors import Blocks
from gaptron.kernels.likelihood import reward_coefficient, reward_gradient
from gaptron.kernels.losses import LN2
from gaptron.kernels.oracles import sigmoid
from gaptron.kernels.rows import add_from, add_one, scores, zeros
from gaptron.kernels.simplex import best, draw, inverse_gap, least_exploration, point, point_at_best, softmax
from gaptron.types import UNKNOWN, Integers, Matrix, Problem, Round, Row, Vector, named

EXPERTS = ("certified", "one-vs-all", "newton", "tracker", "kernel")  # the last of them not in every learner
F_CERTIFIED, F_ONE, F_NEWTON, F_TRACKER, F_KERNEL = range(len(EXPERTS))  # rows of F
MAX_EXPERTS = len(EXPERTS) + COPIES + 1  # with the caller's experts, and the opposite of the caller's advice
SIDE, ONE, NEWTON, TRACKER, CERTIFIED = range(5)  # learners, each with dK weights, side by side in W
LEARNERS = 5  # the kernel expert has separate tables
V_RATE = 0.1  # ρ²: how fast v moves
ADVICE_RANGE = 10.0  # the range of a
MIN_PROBABILITY = 1e-12  # whose logarithm is taken
CLIP = 1e-3  # Bayes' rule uses probabilities at least this far from 0 and 1
SHARE, INFORMATIVE = 0.01, 5.0  # of the weight is distributed evenly after feedback, less where feedback says little
OPTIMISM = 0.2
NEWTON_OPTIMISM = 0.3  # standard deviations of newton's scores, where most feedback is "no"
MAX_OPTIMISM = 20.0  # of a score
MIN_TRUST = 1e-3  # a smaller trust in newton changes next to nothing, and takes as much time
MIN_HIT_ERROR, MIN_MISS_ERROR = 0.1, 1e-3  # an expert does not learn from feedback that it predicted this well
CURVATURE, TRACKING = 0.5, 0.25  # of newton, times K, and of the tracker
KERNEL_CURVATURE = 1.0  # of the kernel expert, times K
GAMMA = 1000.0  # γ/√t: how rarely exploiting rounds try other labels, once a reward was a fraction
MAX_PRECISION = 0.5  # of the tracker, so that it keeps adapting


class AdvisedBandit(NamedTuple):
    """The settings under bandit feedback."""

    reach: float  # D > 0: the ‖U‖X that steps and budget are balanced for
    budget: float  # θ ≥ 0: what exploiting rounds may cost, relative to the certified ones; 0: every round is certified
    pace: float  # c > 0: ε ≤ cD/√(Kt)
    guard: float  # at most 1.1 times the caller's mistakes and this many more; infinite: no guard
    delay: int  # τ ≥ 0: how many decisions may be without feedback at any time
    first: float  # e₀: the largest ε
    kernel: bool  # with the kernel expert, where the examples allow it?


class AdvisedBanditState(NamedTuple):
    """What is learned."""

    W: Matrix  # side by side: -Σ ĝ of the side run, the weights of three experts, -Σ ĝ of the certified learner
    P: Blocks  # newton's inverse precision in blocks, or
    A: Vector  # its precision on a diagonal
    C: Vector  # the tracker's precision
    U: Matrix  # the kernel expert's weights on the example,
    V: Floats  # and on its features φ
    B: Blocks  # its inverse precision of the example,
    R: Floats  # and of φ
    knots: Matrix  # sorted, of every column
    G: Matrix  # Σ|r_k| of newton, the tracker and the kernel expert
    omega: Vector  # the weights of the experts and the caller's experts
    regret: Vector  # bounds on the learner's mistakes minus those of each expert alone
    hits: Vector  # of every label
    plays: Vector  # of every label since its last feedback; with delay, expected ones
    stay: Any  # how often the last true label was true again
    other: Any  # the same for all other labels
    total: Any


class AdvisedBanditScratch(NamedTuple):
    """Buffers. Vectors over labels hold the available labels, in the order of `labels`."""

    labels: Integers  # the available labels
    raw: Vector  # scores of all learners and labels
    F: Matrix  # the probabilities of each expert
    side: Vector  # scores of the side run, before its step
    base: Vector  # Σ ω_j f_j
    combined: Vector  # the same with stickiness
    B: Vector  # the same with optimism
    a: Vector  # ln B, clipped and centred: a feature of the certified learner
    w: Vector  # the certified scores w, then z = w + va
    p: Vector  # p̃
    b: Vector  # each label's surrogate gap without its q
    c: Vector  # the cost of observing the label rarely
    q: Vector
    r: Vector
    coefficients: Vector  # of an update, one per label
    workspace: Workspace
    kernel: kernel.Scratch
    late: Any  # what the proof needs of a certified round if its feedback is late
    decision: Any  # what `commit` and `learn` need of the decision as it was made
    now: Any


def init(settings: AdvisedBandit, problem: Problem, sparse: bool) -> AdvisedBanditState:
    """Line 0: nothing is learned; all experts have equal weights."""
    K, d = problem.n_classes, problem.n_features
    tables = kernel.tables(problem, sparse, kernel.is_present(problem, sparse, settings.kernel))
    own = kernel.n_experts(tables[1], len(EXPERTS))
    return AdvisedBanditState(
        zeros(LEARNERS * K, d, sparse),
        new_blocks(d),
        new_diagonal(0 if n_blocks(d) else d),
        new_diagonal(d),
        *tables,
        np.ones((3, K)),
        np.full(MAX_EXPERTS, 1.0 / own),
        np.zeros(len(EXPERTS)),
        np.zeros(K),
        np.zeros(K),
        named(observed=0.0, expected=0.0, rounds=0.0),
        named(observed=0.0, expected=0.0, rounds=0.0),
        named(
            square=0.0,  # X²
            step=settings.first,  # ε of the last round
            last_step=settings.first,  # ε of the last certified round
            level=0.0,  # Λ
            v_gradient=0.0,  # Σ ĝ_v
            certified=0.0,  # certified rounds
            missing=0.0,  # those without feedback
            most_missing=0.0,  # the largest number of them at any decision
            mistakes=0.0,  # M of the exploiting rounds
            waiting=0.0,  # O: exploiting rounds without feedback
            psi=0.0,  # Ψ of their hits
            side_step=2 * LN2**2,  # ε of the side run
            rounds=0.0,
            columns=0.0,  # in use, of encoded examples: 1 + the last one that was not zero in any example
            sqnorms=0.0,  # Σ‖x‖²
            with_caller=0.0,  # rounds with the caller's advice
            caller_regret=0.0,  # an upper bound on the learner's mistakes minus the caller's
            caller_mistakes=0.0,  # a lower bound
            caller_pending=0.0,  # decisions without feedback that may differ from the caller's label
            finds=0.0,  # hits of labels that were never hit before; older ones decay
            tries=0.0,  # plays of such labels
            beta=0.0,  # newton's score for "none of the labels"
            beta_squares=0.0,  # Σ of its squared derivatives
            kernel_beta=0.0,  # the same of the kernel expert
            kernel_beta_squares=0.0,
            fractional=0,  # was a reward neither 0 nor 1?
            last_label=UNKNOWN,  # the last label, if it was true
            earned=0.0,  # Σ of the rewards
            learned=0.0,  # rounds whose feedback was learned
        ),
    )


def copy_weights(old: AdvisedBanditState, new: AdvisedBanditState) -> None:
    """Copy the weights of the experts to a larger state, in which there are too many features for the kernel expert."""
    kept = [*range(kernel.n_experts(new.V, len(EXPERTS))), *range(kernel.n_experts(old.V, len(EXPERTS)), MAX_EXPERTS)]
    new.omega[: len(kept)] = old.omega[kept]


def scratch(settings: AdvisedBandit, problem: Problem, sparse: bool) -> AdvisedBanditScratch:
    """About twenty numbers per label, and an example."""
    K = problem.n_classes
    vectors = (np.zeros(K) for _ in range(12))
    present = kernel.is_present(problem, sparse, settings.kernel)
    return AdvisedBanditScratch._make(
        (
            np.zeros(K, dtype=np.int64),
            np.zeros(LEARNERS * K),
            np.zeros((MAX_EXPERTS, K)),
            *vectors,
            new_workspace(K, problem.n_features, sparse),
            kernel.new_scratch(problem, sparse, present),
            named(
                has_scores=0,  # were a, z = w + va and p̃ computed?
                expected=0.0,  # n̂: certified rounds that may be decided before its feedback, as its demands assume
                number=0.0,  # how many certified rounds there were, with this one
                kappa=0.0,  # κ of W
                kappa_v=0.0,  # and of v
            ),
            named(**experts.DECISION),
            named(
                n=0,  # the number of available labels
                n_own=0,  # the number of the learner's own experts
                n_experts=0,  # with the caller's
                square=0.0,  # X² with this example
                sqnorm=0.0,  # ‖x‖²
                step=0.0,  # ε
                ratio=0.0,  # ε/X², or 0 before the first certified round
                share=0.0,  # ‖x‖²/X²
                scale=0.0,  # x̃ = scale·x
                omega=0.0,  # Σ ω_j over the experts of the round
                mass=0.0,  # Σ B
                level=0.0,  # λ
                v=0.0,
                none=0.0,  # newton's probability that no label is true
                kernel_none=0.0,  # the kernel expert's
                variance=NOT_MEASURED,  # ⟨x̃, g⟩ of newton
                stickiness=0.0,
                discovery=0.0,  # hits per play of a label that was never hit
                # Positions in `labels`:
                top=0,  # k̂
                caller=UNKNOWN,  # the caller's label
            ),
        )
    )


# --- line 1 ---------------------------------------------------------------------------------------------------


@jit
def next_step(s: AdvisedBandit, t: Any, K: int) -> float:
    """ε, which never exceeds e₀ and never increases."""
    step = min(float(t.step), s.first, s.pace * s.reach / math.sqrt(K * (t.rounds + 1.0)))
    if s.delay > 0:
        step = min(step, s.first / (1.0 + 12.0 * (missing_at_most(t) + expected_delay(s, t)) / K))
    return min(step, s.reach * s.reach / (2.0 * t.level)) if t.level > 0.0 else step


@jit
def missing_at_most(t: Any) -> float:
    """The largest number of certified rounds without feedback at any decision, including this one."""
    return float(max(t.most_missing, t.missing))


@jit
def expected_delay(s: AdvisedBandit, t: Any) -> float:
    """n̂: the number of certified rounds expected before this round's feedback. Chosen before the draw."""
    return min(float(s.delay), 2.0 * missing_at_most(t) + 2.0)


@inner
def score_learners(state: AdvisedBanditState, x: Row, work: AdvisedBanditScratch) -> None:
    """The scores of all learners; those of the certified learner are zero before the first certified round."""
    now, K = work.now[0], state.hits.shape[0]
    if state.total[0].certified == 0.0:
        now.ratio = 0.0
    scores(state.W, x, work.raw if now.ratio != 0.0 else work.raw[: CERTIFIED * K])


# --- line 2 ---------------------------------------------------------------------------------------------------


@jit
def softmax_with_none(z: Vector, beta: float, f: Vector) -> float:
    """f_k = exp z_k/(exp β + Σ exp z). Returns the rest, the probability that no label is true."""
    shift = max(z[best(z)], beta)
    none = math.exp(beta - shift)
    total = none
    for i in range(z.shape[0]):
        f[i] = math.exp(z[i] - shift)
        total += f[i]
    for i in range(z.shape[0]):
        f[i] /= total
    return none / total


@inner
def predict_experts(state: AdvisedBanditState, x: Row, rd: Round, work: AdvisedBanditScratch) -> None:
    """The probabilities that each expert gives the available labels."""
    K, now = rd.z.shape[0], work.now[0]
    n = now.n
    labels, F = work.labels[:n], work.F
    for i in range(n):
        k = labels[i]
        work.w[i] = now.ratio * work.raw[CERTIFIED * K + k]
        work.side[i] = work.raw[SIDE * K + k]
        F[F_CERTIFIED, i] = 1.0 / n
        F[F_ONE, i] = sigmoid(now.scale * work.raw[ONE * K + k])
        F[F_NEWTON, i] = now.scale * work.raw[NEWTON * K + k]
        F[F_TRACKER, i] = now.scale * work.raw[TRACKER * K + k]
    if now.ratio != 0.0:
        softmax(work.w[:n], best(work.w[:n]), F[F_CERTIFIED, :n])
    now.none = softmax_with_none(F[F_NEWTON, :n], state.total[0].beta, F[F_NEWTON, :n])
    softmax(F[F_TRACKER, :n], best(F[F_TRACKER, :n]), F[F_TRACKER, :n])
    now.n_own = kernel.n_experts(state.V, len(EXPERTS))
    if now.n_own > F_KERNEL:
        t = state.total[0]
        kernel.predict(state, x, now.scale, work.kernel)
        for i in range(n):
            F[F_KERNEL, i] = work.kernel.z[labels[i]]
        now.kernel_none = softmax_with_none(F[F_KERNEL, :n], t.kernel_beta, F[F_KERNEL, :n])
    now.n_experts = add_caller_experts(rd.advice, labels, F, now.n_own)
    now.caller = UNKNOWN
    if now.n_experts > now.n_own:
        now.caller = best(F[now.n_own, :n])
        for i in range(n):  # a caller that is always wrong is informative, and Bayes' rule has no negative weights
            F[now.n_experts, i] = (1.0 - F[now.n_own, i]) / (n - 1.0) if n > 1 else 1.0
        now.n_experts += 1


@inner
def combine_experts(state: AdvisedBanditState, work: AdvisedBanditScratch) -> None:
    """B = Σ ω_j f_j with stickiness and optimism.

    The scores of the round leave optimism out: it serves to find labels, not to predict.
    """
    K, now, t, omega = state.hits.shape[0], work.now[0], state.total[0], state.omega
    n = now.n
    now.omega = 0.0
    for j in range(now.n_experts):
        now.omega += omega[j]
    total = now.omega
    sticky = position_of(t.last_label, work.labels[:n]) if t.last_label != UNKNOWN else UNKNOWN
    now.stickiness = 0.0
    if sticky != UNKNOWN:
        more_often = log_odds(state.stay[0]) - max(log_odds(state.other[0]), 0.0)
        now.stickiness = min(max(more_often, 0.0), MAX_STICKINESS)
    now.discovery = (1.0 + t.finds) / (K + t.tries)
    bonus = OPTIMISM * t.rounds * now.discovery * min(1.0, K * now.discovery)
    for i in range(n):
        k, advised, certified = work.labels[i], 0.0, omega[F_CERTIFIED] / total * work.F[F_CERTIFIED, i]
        for j in range(1, now.n_experts):
            advised += omega[j] / total * work.F[j, i]
        work.base[i] = advised + certified
        if i == sticky:
            advised *= math.exp(now.stickiness)
        work.combined[i] = advised + certified
        if state.hits[k] == 0.0:
            new = (omega[F_NEWTON] * work.F[F_NEWTON, i] + omega[F_TRACKER] * work.F[F_TRACKER, i]) / total
            advised += bonus / (1.0 + state.plays[k]) * new
        work.B[i] = advised + certified


@jit
def newton_trust(t: Any, none: float, K: int) -> float:
    """g: the share of the ensemble that newton gets beyond its weight.

    Only newton can say that no label is true. After a switch it says so too, but then labels used to be hit.
    """
    hit_rate = min(1.0, (1.0 + t.earned) / (K + t.learned))
    return float(none * (1.0 - hit_rate) * (1.0 - hit_rate))


@inner
def follow_newton(state: AdvisedBanditState, x: Row, work: AdvisedBanditScratch) -> None:
    """B ← (1 - g) B + g f_newton exp(0.3 s), with s the standard deviation of newton's scores; and the top label k̂.

    The scores of the round get newton's probabilities without optimism.
    """
    K, now, G = state.hits.shape[0], work.now[0], state.G[0]
    n, total = now.n, 0.0
    trust, f, bonus = newton_trust(state.total[0], now.none, K), work.F[F_NEWTON, :n], work.r[:n]
    now.variance = NOT_MEASURED
    if trust >= MIN_TRUST:
        now.variance = measure_variance(state.P, state.A, x, now.scale, work.workspace)
        for k in range(K):
            total += G[k]
        for i in range(n):
            bonus[i] = min(NEWTON_OPTIMISM * math.sqrt(now.variance * total / (K * G[work.labels[i]])), MAX_OPTIMISM)
        exponentials(bonus, 0.0, bonus)
        for i in range(n):
            work.combined[i] = (1.0 - trust) * work.combined[i] + trust * f[i]
            work.B[i] = (1.0 - trust) * work.B[i] + trust * f[i] * bonus[i]
    now.mass = 0.0
    for i in range(n):
        now.mass += work.B[i]
    now.top = best(work.B[:n])


# --- lines 3 and 4 --------------------------------------------------------------------------------------------


@jit
def exploiting_cost(t: Any) -> float:
    """M + O - Ψ of the exploiting rounds; missing feedback counts as a mistake."""
    return float(t.mistakes + t.waiting - t.psi)


@jit
def may_exploit(s: Any, t: Any, step: float, confidence: float) -> bool:
    """Whether k̂ may be played without exploration: always while most of the budget is left, then if confident."""
    most = s.budget * (s.reach * s.reach + 1.0 / V_RATE) / (2.0 * step)
    left = most - exploiting_cost(t)
    return bool(most > 0.0 and left >= 1.0 and 1.0 - confidence <= min(1.0, left / most))


@inner
def add_advice(work: Any) -> None:
    """a = ln B, clipped and centred, and the scores z = w + va. Only certified rounds need them."""
    n = work.now[0].n
    for i in range(n):
        work.a[i] = math.log(max(work.B[i], MIN_PROBABILITY))
    clip_and_centre(work.a[:n], ADVICE_RANGE, 1.0)
    for i in range(n):
        work.w[i] += work.now[0].v * work.a[i]
    work.late[0].has_scores = 1


@jit
def add_v_moment(step: float, a: Vector, p: Vector, b: Vector, c: Vector) -> None:
    """Add to b and c what the second moment of the gradient in v costs."""
    kappa, mu = step * V_RATE / (2.0 * LN2 * LN2), 0.0
    for i in range(a.shape[0]):
        mu += p[i] * a[i]
    for i in range(a.shape[0]):
        b[i] += kappa * (mu * mu - 2.0 * mu * a[i])
        c[i] += kappa * a[i] * a[i]


@jit
def late_moment(late: Any, p: Vector, a: Vector, i: int, n: int) -> float:
    """κ‖p̃ - e_i‖² + κ_v(μ - a_i)², or the same of the gradient after a miss, whichever is larger.

    The second, because a miss may be the only feedback left to come when a hit would have come by now.
    """
    square, mu = 0.0, 0.0
    for k in range(n):
        square += p[k] * p[k]
        mu += p[k] * a[k]
    own = (1.0 - p[i]) * (1.0 - p[i]) + (square - p[i] * p[i])
    distance = max(abs(mu - a[i]), abs(mu))
    return float(late.kappa * max(own, square - 1.0 / n) + late.kappa_v * distance * distance)


@inner
def add_late_moments(s: AdvisedBandit, t: Any, work: AdvisedBanditScratch) -> None:
    """Add to b what missing feedback costs, and this round's feedback if it is late."""
    late, now = work.late[0], work.now[0]
    late.expected, late.number = expected_delay(s, t), t.certified + 1.0
    late.kappa = now.step * now.share / (2.0 * LN2 * LN2)
    late.kappa_v = now.step * V_RATE / (2.0 * LN2 * LN2)
    rounds = t.missing + late.expected
    for i in range(now.n):
        work.b[i] += rounds * late_moment(late, work.p, work.a, i, now.n)


@inner
def certify(s: AdvisedBandit, t: Any, work: AdvisedBanditScratch) -> None:
    """A certified round: z = w + va, p̃ = softmax z, and the least q(y) of every label; the rest goes to k̂."""
    now = work.now[0]
    n = now.n
    add_advice(work)
    z, p, b, c = work.w[:n], work.p[:n], work.b[:n], work.c[:n]
    gaps.logistic(z, p, best(z), now.step * now.share / 2.0, True, 1.0, 0, b, c)
    add_v_moment(now.step, work.a[:n], p, b, c)
    if s.delay > 0:
        add_late_moments(s, t, work)
    now.level, _ = least_exploration(b, c, work.B[:n], now.top, work.q[:n])


@inner
def choose_distribution(s: AdvisedBandit, t: Any, work: AdvisedBanditScratch) -> bool:
    """Line 3: write q. Returns whether the round is an exploiting one."""
    now, n = work.now[0], work.now[0].n
    B, q = work.B[:n], work.q[:n]
    now.v, now.level, work.late[0].has_scores = 1.0 - now.step * V_RATE * t.v_gradient, 0.0, 0
    if guard_binds(s.guard, t, now):
        point(q, now.caller)
    elif not may_exploit(s, t, now.step, float(B[now.top] / now.mass)):
        certify(s, t, work)
        return False
    elif t.fractional:
        # An ensemble that fits a constant fraction exactly stops learning, and would never try another label.
        inverse_gap(B, B, n, now.top, GAMMA * math.sqrt(t.rounds + 1.0) / now.mass, q)
    else:
        point_at_best(q, B, now.top)
    return True


@inner
def decide(s: AdvisedBandit, state: AdvisedBanditState, x: Row, rd: Round, work: AdvisedBanditScratch, u: float) -> int:
    """Lines 1-4 of the pseudocode."""
    t, now = state.total[0], work.now[0]
    measure_example(x, rd.available, t, next_step(s, t, rd.z.shape[0]), work.labels, now)  # 1
    score_learners(state, x, work)  # 1
    predict_experts(state, x, rd, work)  # 2
    combine_experts(state, work)  # 2
    follow_newton(state, x, work)  # 2
    exploiting = choose_distribution(s, t, work)  # 3
    labels, q = work.labels[: now.n], work.q[: now.n]
    record_decision(work.decision[0], t, now, q, exploiting)
    write_round(rd, labels, work.combined, q)
    write_notes(rd.note, now, exploiting_cost(t), state.omega, 1.0 - q[now.top], exploiting)
    return int(labels[draw(q, now.top, u)])  # 4


@jit
def write_notes(note: Vector, now: Any, cost: float, omega: Vector, explored: float, exploiting: bool) -> None:
    """The numbers that a trace records of the round."""
    note[experts.LEVEL], note[experts.STEP], note[experts.EXPLORED] = now.level, now.step, explored
    note[experts.EXPLOITING], note[experts.COST], note[experts.STICKINESS] = exploiting, cost, now.stickiness
    note[experts.DISCOVERY], note[experts.V] = now.discovery, now.v
    note[experts.KERNEL], note[experts.CALLER] = 0.0, 0.0
    for j in range(now.n_own):  # in the order of EXPERTS
        note[experts.CERTIFIED + j] = omega[j] / now.omega
    for j in range(now.n_own, now.n_experts):
        note[experts.CALLER] += omega[j] / now.omega


@inner
def commit(s: AdvisedBandit, state: AdvisedBanditState, rd: Round, work: AdvisedBanditScratch) -> None:
    """Count the decision, before its feedback: Λ, the plays, and what feedback is missing."""
    t, now, decision = state.total[0], work.now[0], work.decision[0]
    if now.n_own > F_KERNEL:
        kernel.commit(state, work.kernel)
    count_decision(t, now, decision.may_differ, now.n_experts > now.n_own)
    if s.delay > 0 and not decision.exploiting:  # the proof: no decision depends on this draw before its feedback
        for k in range(rd.p.shape[0]):
            state.plays[k] += rd.p[k]
    else:
        state.plays[rd.feedback[0].label] += 1.0
    if decision.exploiting:
        t.waiting += 1.0
    else:
        t.level += now.level
        t.certified += 1.0
        t.most_missing = max(t.most_missing, t.missing)
        t.missing += 1.0
        t.last_step = t.step


# --- line 5 ---------------------------------------------------------------------------------------------------


@inner
def add_late_cost(t: Any, work: AdvisedBanditScratch, at: int, reward: float) -> None:
    """Add to Λ the cost of the certified rounds before this feedback that its demands did not expect."""
    late, largest, n = work.late[0], 0.0, work.now[0].n
    more = t.certified - late.number - late.expected
    if more > 0.0:
        for i in range(n):
            if reward < 1.0 or i == at:  # the labels that may be the true one
                largest = max(largest, late_moment(late, work.p, work.a, i, n))
        t.level += more * largest


@inner
def learn_certified(
    s: AdvisedBandit, state: AdvisedBanditState, x: Row, rd: Round, work: AdvisedBanditScratch, at: int, reward: float
) -> None:
    """The certified learner: ĝ = (p̃ - (r/q(y'))·e_y')/ln 2 in w, and its product with a in v."""
    K, t, n = rd.z.shape[0], state.total[0], work.now[0].n
    labels, z, a, p = work.labels[:n], work.w[:n], work.a[:n], work.p[:n]
    if not work.late[0].has_scores:  # the round was certified when it was decided, and would not be today
        add_advice(work)
        softmax(z, best(z), p)
    elif s.delay > 0:
        add_late_cost(t, work, at, reward)
    t.missing -= 1.0
    weight = reward / rd.p[labels[at]]
    # Centring the gradient changes no distribution while every label is available, and is then left out.
    level, mu = (1.0 - weight) / n if n < K else 0.0, 0.0
    for k in range(K):
        work.coefficients[k] = 0.0
    for i in range(n):
        work.coefficients[labels[i]] = (level - p[i] + (weight if i == at else 0.0)) / LN2
        mu += p[i] * a[i]
    t.v_gradient += (mu - weight * a[at]) / LN2
    add_from(state.W, x, CERTIFIED * K, work.coefficients)


@inner
def learn_exploiting(
    s: AdvisedBandit, state: AdvisedBanditState, x: Row, work: AdvisedBanditScratch, at: int, reward: float
) -> None:
    """An exploiting round: a miss is counted; a hit is a round of the side run, which proves part of Ψ."""
    K, t, now, n = state.hits.shape[0], state.total[0], work.now[0], work.now[0].n
    z, p = work.side[:n], work.p[:n]
    t.waiting -= 1.0
    t.mistakes += 1.0 - reward
    square = max(t.square, now.sqnorm)
    eta = t.side_step / square if square > TINY else 0.0
    if reward > 0.0:
        for i in range(n):
            z[i] *= eta
        top = best(z)
        softmax(z, top, p)
        loss, own = (z[top] - z[at] - math.log(p[top])) / LN2, 0.0
        for k in range(K):
            work.coefficients[k] = 0.0
        for i in range(n):
            e = p[i] - (1.0 if i == at else 0.0)
            own += e * e
            work.coefficients[work.labels[i]] = -reward * e / LN2
        t.psi += reward * loss - reward * reward * eta * now.sqnorm / (2.0 * LN2 * LN2) * own
        add_from(state.W, x, SIDE * K, work.coefficients)
    excess = t.mistakes - t.psi
    if excess > 0.0:
        t.side_step = min(t.side_step, s.reach * s.reach / (2.0 * excess))


@jit
def update_own_regret(regret: Vector, F: Matrix, now: Any, at: int, change: float) -> None:
    """Where an expert would have played another label, a miss adds one to its regret and a hit subtracts one."""
    for j in range(now.n_own):
        if best(F[j, : now.n]) != at:
            regret[j] += change


@inner
def update_regret(state: AdvisedBanditState, work: AdvisedBanditScratch, at: int, reward: float) -> None:
    """The regret to each expert and to the caller."""
    t, now = state.total[0], work.now[0]
    change = 1.0 if reward < 0.5 else -1.0
    update_own_regret(state.regret, work.F, now, at, change)
    if now.caller != UNKNOWN:
        t.caller_pending -= work.decision[0].may_differ
        if now.caller != at:
            t.caller_regret += change
        t.caller_mistakes += (now.caller == at) == (reward < 0.5)


@inner
def update_labels(state: AdvisedBanditState, work: AdvisedBanditScratch, label: int, at: int, reward: float) -> None:
    """Stickiness, with the last true label at the time of the decision; and the hits of the label played."""
    t, total = state.total[0], 0.0
    if 0.0 < reward < 1.0:
        t.fractional = 1
    for i in range(work.now[0].n):
        total += work.base[i]
    stay = state.stay[0] if label == work.decision[0].last_label else state.other[0]
    update_stickiness(stay, reward, work.base[at] / total)
    t.last_label = label if reward >= 0.5 else UNKNOWN
    t.earned += reward
    t.learned += 1.0
    if state.hits[label] == 0.0:
        t.tries += 1.0
        if reward > 0.0:
            t.finds, t.tries = (t.finds + 1.0) / 2.0, t.tries / 2.0
    state.hits[label] += reward
    state.plays[label] = 0.0


@jit
def update_weights(omega: Vector, F: Matrix, n_experts: int, at: int, reward: float) -> None:
    """Bayes' rule, then an even share for all experts that is larger the more the feedback says."""
    total, after, expected = 0.0, 0.0, 0.0
    for j in range(n_experts):
        phi = min(max(F[j, at], CLIP), 1.0 - CLIP)
        total += omega[j]
        if reward == 1.0:
            omega[j] *= phi
        elif reward == 0.0:
            omega[j] *= 1.0 - phi
        else:
            omega[j] *= math.exp(reward * math.log(phi) + (1.0 - reward) * math.log(1.0 - phi))
        after += omega[j]
    for j in range(n_experts):
        expected += omega[j] / after * F[j, at]
    share = SHARE * max(reward, min(1.0, INFORMATIVE * expected))
    for j in range(n_experts):
        omega[j] = total * ((1.0 - share) * omega[j] / after + share / n_experts)


@jit
def expert_gradient(f: Vector, at: int, reward: float, least: float, r: Vector) -> float:
    """Write the gradient r of the feedback's log loss. Returns the mean error s(1 - f) + (1 - s)f, or 0 if small."""
    error = reward * (1.0 - f[at]) + (1.0 - reward) * f[at]
    if reward == 1.0:
        small = error < MIN_HIT_ERROR
    elif reward == 0.0:
        small = error < least
    else:
        small = abs(reward_coefficient(f[at], reward)) < least
    if small:
        return 0.0
    reward_gradient(f, at, reward, r)
    return float(error)


@inner
def update_experts(
    state: AdvisedBanditState, x: Row, work: AdvisedBanditScratch, label: int, at: int, reward: float
) -> None:
    """A step of each expert on what the feedback says of its probabilities, without importance weights."""
    t, now, K, n = state.total[0], work.now[0], state.hits.shape[0], work.now[0].n
    W, labels, r, scale = state.W, work.labels[:n], work.r[:n], now.scale
    if scale == 0.0:
        return
    add_one(W, x, ONE * K + label, scale * (reward - work.F[F_ONE, at]))
    least, f = MIN_MISS_ERROR * min(1.0, 20.0 / K), work.F[F_NEWTON, :n]
    error = expert_gradient(f, at, reward, least, r)
    if error > 0.0:
        g = -reward_coefficient(f[at], reward) * now.none
        t.beta_squares += g * g
        t.beta -= g / math.sqrt(1.0 + t.beta_squares)
        h = CURVATURE / K * error
        precision, power = (state.P, state.A, math.inf, state.G[0]), HALF_WAY * (1.0 + now.none)
        newton_step(W, NEWTON * K, x, scale, *precision, labels, r, power, h, now.variance, work.workspace)
    error = expert_gradient(work.F[F_TRACKER, :n], at, reward, least, r)
    if error > 0.0:
        h, precision = TRACKING * error, (state.P[:0], state.C, MAX_PRECISION, state.G[1])
        newton_step(W, TRACKER * K, x, scale, *precision, labels, r, HALF_WAY, h, NOT_MEASURED, work.workspace)
    if now.n_own > F_KERNEL:
        f = work.F[F_KERNEL, :n]
        error = expert_gradient(f, at, reward, least, r)
        if error > 0.0:
            g = -reward_coefficient(f[at], reward) * now.kernel_none
            t.kernel_beta_squares += g * g
            t.kernel_beta -= g / math.sqrt(1.0 + t.kernel_beta_squares)
            h = KERNEL_CURVATURE / K * error
            kernel.kernel_step(state, x, scale, state.G[2], labels, r, h, work.workspace, work.kernel)


@inner
def learn(
    s: AdvisedBandit, state: AdvisedBanditState, x: Row, rd: Round, work: AdvisedBanditScratch, label: int, truth: int
) -> None:
    """Line 5 of the pseudocode."""
    now, reward = work.now[0], rd.feedback[0].reward
    at = position_of(label, work.labels[: now.n])
    if work.decision[0].exploiting:
        learn_exploiting(s, state, x, work, at, reward)  # M, Ψ
    else:
        learn_certified(s, state, x, rd, work, at, reward)  # ĝ
    update_regret(state, work, at, reward)
    update_labels(state, work, label, at, reward)
    update_weights(state.omega, work.F, now.n_experts, at, reward)  # ω
    update_experts(state, x, work, label, at, reward)  # f_1, ...
