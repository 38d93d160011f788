"""Advised Gaptron with full information: lines 1-5 of the pseudocode, where the true label is revealed."""

import math
from typing import Any, NamedTuple

import numpy as np

from gaptron.algorithms.advised import experts, kernel
from gaptron.algorithms.advised.experts import (
    COPIES,
    DECAY,
    MAX_STICKINESS,
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
    n_blocks,
    new_blocks,
    new_diagonal,
    new_workspace,
    newton_step,
)
from gaptron.kernels import gaps
from gaptron.kernels.compile.jit import inner, jit
from gaptron.kernels.compile.vectors import Blocks
from gaptron.kernels.likelihood import label_gradient
from gaptron.kernels.losses import LN2
from gaptron.kernels.rows import add_from, scores, zeros
from gaptron.kernels.simplex import best, draw, least_exploration, point, rival, softmax
from gaptron.types import UNKNOWN, Integers, Matrix, Problem, Round, Row, Vector, named

EXPERTS = ("certified", "newton", "tracker", "kernel")  # the last of them not in every learner
CERTIFIED, NEWTON, TRACKER, KERNEL = range(len(EXPERTS))
LEARNERS = KERNEL  # each has dK weights, side by side in W; the kernel expert has separate tables
WEIGHTS = len(EXPERTS) + COPIES + 1  # u: of the experts, of the caller's experts after them, of stickiness
STICKINESS = WEIGHTS - 1
V_RATE = 0.04  # ρ²: how fast v moves
ADVICE_RANGE = 5.0  # R: the range of a
FIRST_STEP = 2 * LN2**2 / (1 + V_RATE * ADVICE_RANGE**2)  # e₀
LEAST_STEP = FIRST_STEP / 50
SCORE_RANGE = 10.0  # of an expert's scores L_j
MIN_ERROR = 0.1  # an expert does not learn from rounds in which its 1 - f(y) is smaller
DIAGONAL, TRACKING = 0.05, 0.25  # curvature of newton on a diagonal (with blocks 1/K), and of the tracker
CURVATURE = 2.0  # of the kernel expert, times K
MIN_TRUST = -3.0  # an ensemble further behind the certified learner is not followed: this limits what bad advice costs


class AdvisedFull(NamedTuple):
    """The settings with full information."""

    scale: float  # σ > 0  the larger, the tighter the certificate and the more mistakes
    guard: float  # at most 1.1 times the caller's mistakes and this many more; infinite: no guard
    kernel: bool  # with the kernel expert, where the examples allow it?


class AdvisedFullState(NamedTuple):
    """What is learned."""

    W: Matrix  # side by side: -Σ ĝ of the certified learner, the weights of newton, of the tracker
    P: Blocks  # newton's inverse precision in blocks, or
    A: Vector  # its precision on a diagonal
    C: Vector  # the tracker's precision
    U: Matrix  # the kernel expert's weights on the example,
    V: Floats  # and on its features φ
    B: Blocks  # its inverse precision of the example,
    R: Floats  # and of φ
    knots: Matrix  # sorted, of every column
    G: Matrix  # Σ|r_k| of newton, the tracker and the kernel expert
    u: Vector  # the weights of the experts, the caller's experts, stickiness
    squares: Vector  # N: Σ of their squared derivatives
    regret: Vector  # the learner's mistakes minus those of each expert alone
    stay: Any
    total: Any


class AdvisedFullScratch(NamedTuple):
    """Buffers. Vectors over labels hold the available labels, in the order of `labels`."""

    labels: Integers  # the available labels
    raw: Vector  # scores of all learners and labels
    L: Matrix  # scores of each expert, clipped and centred
    Z: Matrix  # scores of newton, the tracker and the kernel expert
    combined: Vector  # Σ u_j L_j
    a: Vector  # the same without the certified learner, clipped and centred: a feature of the certified learner
    w: Vector  # the certified scores w, then z = w + va
    p: Vector  # p̃
    b: Vector  # each label's surrogate gap without its q
    c: Vector  # zeros
    q: Vector
    r: Vector
    coefficients: Vector  # of an update, one per label
    workspace: Workspace
    kernel: kernel.Scratch
    decision: Any  # what `commit` and `learn` need of the decision as it was made
    now: Any


def init(settings: AdvisedFull, problem: Problem, sparse: bool) -> AdvisedFullState:
    """Line 0: nothing is learned; all experts have equal weights, except the certified learner, which has none."""
    K, d = problem.n_classes, problem.n_features
    present = kernel.is_present(problem, sparse, settings.kernel)
    u = np.full(WEIGHTS, 0.5)
    u[CERTIFIED], u[STICKINESS] = 0.0, 1.0
    return AdvisedFullState(
        zeros(LEARNERS * K, d, sparse),
        new_blocks(d),
        new_diagonal(0 if n_blocks(d) else d),
        new_diagonal(d),
        *kernel.tables(problem, sparse, present),
        np.ones((len(EXPERTS) - 1, K)),
        u,
        np.zeros(WEIGHTS),
        np.zeros(len(EXPERTS)),
        named(observed=0.0, expected=0.0, rounds=0.0),
        named(
            square=0.0,  # X²
            step=FIRST_STEP,  # ε of the last round
            cost=0.0,  # H
            largest=0.0,  # H*
            trust=0.0,  # of the last thousand rounds: those that the ensemble's k̂ won minus those the certified top won
            v_gradient=0.0,  # Σ ĝ_v
            gap=0.0,  # Σ of the surrogate gaps, signed; above 0 only after late feedback or where the guard binds
            rounds=0.0,
            columns=0.0,  # in use, of encoded examples: 1 + the last one that was not zero in any example
            sqnorms=0.0,  # Σ‖x‖²
            with_caller=0.0,  # rounds with the caller's advice
            caller_regret=0.0,  # the learner's mistakes minus the caller's
            caller_mistakes=0.0,
            caller_pending=0.0,  # decisions without feedback that may differ from the caller's label
            last_label=UNKNOWN,  # the last true label
        ),
    )


def copy_weights(old: AdvisedFullState, new: AdvisedFullState) -> None:
    """Copy the weights of the experts to a larger state, in which there are too many features for the kernel expert."""
    own, left = kernel.n_experts(old.V, len(EXPERTS)), kernel.n_experts(new.V, len(EXPERTS))
    kept = [*range(left), *range(own, STICKINESS)]
    for was, now in ((old.u, new.u), (old.squares, new.squares)):
        now[: len(kept)], now[STICKINESS] = was[kept], was[STICKINESS]


def scratch(settings: AdvisedFull, problem: Problem, sparse: bool) -> AdvisedFullScratch:
    """About twenty numbers per label, and an example."""
    K = problem.n_classes
    vectors = (np.zeros(K) for _ in range(9))
    present = kernel.is_present(problem, sparse, settings.kernel)
    return AdvisedFullScratch._make(
        (
            np.zeros(K, dtype=np.int64),
            np.zeros(LEARNERS * K),
            np.zeros((len(EXPERTS) + COPIES, K)),
            np.zeros((len(EXPERTS) - 1, K)),
            *vectors,
            new_workspace(K, problem.n_features, sparse),
            kernel.new_scratch(problem, sparse, present),
            named(**experts.DECISION),
            named(
                n=0,  # the number of available labels
                n_own=0,  # the number of the learner's own experts
                n_experts=0,  # with the caller's
                square=0.0,  # X² with this example
                sqnorm=0.0,  # ‖x‖²
                step=0.0,  # ε
                ratio=0.0,  # ε/X²
                share=0.0,  # ‖x‖²/X²
                scale=0.0,  # x̃ = scale·x
                level=0.0,  # λ
                v=0.0,
                stickiness=0.0,
                # Positions in `labels`:
                sticky=UNKNOWN,  # the last true label, which gets the bonus
                caller=UNKNOWN,  # the caller's label
                top=0,  # of the combined scores
                advised_top=0,  # k°: the same without the certified learner
                certified_top=0,  # of z
                heir=0,  # k̂: the label that gets the rest of q
            ),
        )
    )


# --- line 1 ---------------------------------------------------------------------------------------------------


@jit
def next_step(s: Any, t: Any) -> float:
    """ε, which never exceeds e₀ and never increases."""
    return min(FIRST_STEP, max(s.scale * s.scale / (2.0 * t.largest), LEAST_STEP)) if t.largest > 0.0 else FIRST_STEP


# --- line 2 ---------------------------------------------------------------------------------------------------


@inner
def predict_experts(state: AdvisedFullState, x: Row, rd: Round, work: AdvisedFullScratch) -> None:
    """The scores of each expert, clipped and centred, and the bonus for the last true label."""
    K, now, t = rd.z.shape[0], work.now[0], state.total[0]
    n = now.n
    labels, L = work.labels[:n], work.L[:, :n]
    for i in range(n):
        k = labels[i]
        work.w[i] = now.ratio * work.raw[k]
        L[CERTIFIED, i] = work.w[i]
        L[NEWTON, i] = now.scale * work.raw[NEWTON * K + k]
        L[TRACKER, i] = now.scale * work.raw[TRACKER * K + k]
    now.n_own = kernel.n_experts(state.V, len(EXPERTS))
    if now.n_own > KERNEL:
        kernel.predict(state, x, now.scale, work.kernel)
        for i in range(n):
            L[KERNEL, i] = work.kernel.z[labels[i]]
    for j in range(1, now.n_own):
        for i in range(n):
            work.Z[j - 1, i] = L[j, i]
    now.n_experts = add_caller_experts(rd.advice, labels, L, now.n_own)
    clip_experts(L, now)
    now.caller = best(L[now.n_own]) if now.n_experts > now.n_own else UNKNOWN
    now.sticky = position_of(t.last_label, labels) if t.last_label != UNKNOWN else UNKNOWN
    now.stickiness = min(max(log_odds(state.stay[0]), 0.0), MAX_STICKINESS) if now.sticky != UNKNOWN else 0.0


@inner
def clip_experts(L: Matrix, now: Any) -> None:
    """Clip and centre the scores of all experts but the certified learner."""
    share = 2.0 / (now.n_experts - 1)  # so that all experts but the certified learner start with equal weights
    for j in range(now.n_experts):
        if j >= now.n_own:
            for i in range(now.n):
                L[j, i] = math.log(max(L[j, i], 1e-300))
        clip_and_centre(L[j], SCORE_RANGE, share)


@inner
def combine_experts(u: Vector, work: Any) -> None:
    """Stacking: the scores Σ u_j L_j with the bonus, and a, the same without the certified learner."""
    now = work.now[0]
    n = now.n
    for i in range(n):
        advised = u[STICKINESS] * now.stickiness if i == now.sticky else 0.0
        for j in range(1, now.n_experts):
            advised += u[j] * work.L[j, i]
        work.a[i] = advised
        work.combined[i] = advised + u[CERTIFIED] * work.L[CERTIFIED, i]
    now.top, now.advised_top = best(work.combined[:n]), best(work.a[:n])
    clip_and_centre(work.a[:n], ADVICE_RANGE, 1.0)


# --- lines 3 and 4 --------------------------------------------------------------------------------------------


@jit
def add_v_moment(step: float, a: Vector, p: Vector, b: Vector) -> None:
    """Add to b what the second moment of the gradient in v costs, κ_v(μ - a_y)² with μ = ⟨p̃, a⟩."""
    kappa, mu = step * V_RATE / (2.0 * LN2 * LN2), 0.0
    for i in range(a.shape[0]):
        mu += p[i] * a[i]
    for i in range(a.shape[0]):
        b[i] += kappa * (mu - a[i]) * (mu - a[i])


@inner
def certify(t: Any, work: AdvisedFullScratch) -> None:
    """Line 3: z = w + va, p̃ = softmax z, and the least q(y) of every label; k̂ gets what is left."""
    now = work.now[0]
    n = now.n
    a, z, p, b, c = work.a[:n], work.w[:n], work.p[:n], work.b[:n], work.c[:n]
    now.v = 1.0 - now.step * V_RATE * t.v_gradient
    for i in range(n):
        z[i] += now.v * a[i]
    now.certified_top = best(z)
    use_certified = t.trust < MIN_TRUST
    now.heir = now.certified_top if use_certified else now.top
    gaps.logistic(z, p, now.certified_top, now.step * now.share / 2.0, False, 1.0, 0, b, c)
    add_v_moment(now.step, a, p, b)
    now.level, _ = least_exploration(b, c, z if use_certified else work.combined[:n], now.heir, work.q[:n])


@inner
def decide(s: AdvisedFull, state: AdvisedFullState, x: Row, rd: Round, work: AdvisedFullScratch, u: float) -> int:
    """Lines 1-4 of the pseudocode."""
    t, now = state.total[0], work.now[0]
    measure_example(x, rd.available, t, next_step(s, t), work.labels, now)  # 1
    scores(state.W, x, work.raw)  # 1
    predict_experts(state, x, rd, work)  # 2
    combine_experts(state.u, work)  # 2
    certify(t, work)  # 3
    labels, q = work.labels[: now.n], work.q[: now.n]
    if guard_binds(s.guard, t, now):
        point(q, now.caller)
    record_decision(work.decision[0], t, now, q, False)
    write_round(rd, labels, work.combined, q)
    write_notes(rd.note, now, t.cost, state.u, 1.0 - q[now.heir])
    return int(labels[draw(q, now.heir, u)])  # 4


@jit
def write_notes(note: Vector, now: Any, cost: float, u: Vector, explored: float) -> None:
    """The numbers that a trace records of the round."""
    note[experts.LEVEL], note[experts.STEP], note[experts.EXPLORED] = now.level, now.step, explored
    note[experts.COST], note[experts.STICKINESS], note[experts.V] = cost, now.stickiness, now.v
    note[experts.CERTIFIED], note[experts.NEWTON], note[experts.TRACKER] = u[CERTIFIED], u[NEWTON], u[TRACKER]
    note[experts.KERNEL] = u[KERNEL] if now.n_own > KERNEL else 0.0
    note[experts.CALLER] = 0.0
    for j in range(now.n_own, now.n_experts):
        note[experts.CALLER] += u[j]


@inner
def commit(s: AdvisedFull, state: AdvisedFullState, rd: Round, work: AdvisedFullScratch) -> None:
    """Count the decision, before its feedback."""
    now = work.now[0]
    if now.n_own > KERNEL:
        kernel.commit(state, work.kernel)
    count_decision(state.total[0], now, work.decision[0].may_differ, now.n_experts > now.n_own)


# --- line 5 ---------------------------------------------------------------------------------------------------


@inner
def learn_certified(state: AdvisedFullState, x: Row, rd: Round, work: AdvisedFullScratch, y: int) -> None:
    """The certified learner: ĝ = (p̃ - e_y)/ln 2 in w, and its product with a in v; the sum of the gaps."""
    t, now, mu = state.total[0], work.now[0], 0.0
    for k in range(work.coefficients.shape[0]):
        work.coefficients[k] = 0.0
    for i in range(now.n):
        work.coefficients[work.labels[i]] = ((1.0 if i == y else 0.0) - work.p[i]) / LN2
        mu += work.p[i] * work.a[i]
    add_from(state.W, x, 0, work.coefficients)
    t.v_gradient += (mu - work.a[y]) / LN2
    t.step = min(t.step, now.step)  # late feedback is learned from with today's ε
    t.gap += work.b[y] - rd.feedback[0].propensity


@inner
def update_costs(state: Any, work: Any, y: int, wrong: float) -> None:
    """H, the trust in the ensemble, and the regret to each expert."""
    t, now = state.total[0], work.now[0]
    t.cost += (1.0 if y == now.advised_top else 0.0) - work.q[y]
    t.largest = max(t.largest, t.cost)
    t.trust = DECAY * t.trust + (1.0 if now.top == y else 0.0) - (1.0 if now.certified_top == y else 0.0)
    for j in range(now.n_own):
        state.regret[j] += wrong - (1.0 if best(work.L[j, : now.n]) != y else 0.0)


@inner
def update_caller(t: Any, work: AdvisedFullScratch, y: int, wrong: float) -> None:
    """The regret to the caller."""
    now = work.now[0]
    if now.caller != UNKNOWN:
        caller_wrong = 1.0 if now.caller != y else 0.0
        t.caller_pending -= work.decision[0].may_differ
        t.caller_regret += wrong - caller_wrong
        t.caller_mistakes += caller_wrong


@inner
def count_repetition(state: AdvisedFullState, work: AdvisedFullScratch, y: int, tau: Vector) -> None:
    """Stickiness: was the last true label true again, and how likely was that without the bonus?"""
    now, last = work.now[0], work.decision[0].last_label
    at = position_of(last, work.labels[: now.n]) if last != UNKNOWN else UNKNOWN
    if at == UNKNOWN:
        return
    bonus, sticky = math.exp(state.u[STICKINESS] * now.stickiness), now.sticky
    rest = tau[sticky] + (1.0 - tau[sticky]) * bonus if sticky != UNKNOWN else 1.0
    expected = tau[at] * (bonus if sticky != UNKNOWN and at != sticky else 1.0) / rest
    update_stickiness(state.stay[0], 1.0 if y == at else 0.0, min(expected, 1.0))


@inner
def step_weights(u: Vector, N: Vector, work: Any, y: int) -> None:
    """One gradient step of the stacking, from its probabilities r; leaves r - e_y in r."""
    now, r = work.now[0], work.r[: work.now[0].n]
    label_gradient(r, y, r)
    for j in range(now.n_experts):
        g = 0.0
        for i in range(now.n):
            g += r[i] * work.L[j, i]
        N[j] += g * g
        u[j] -= g / math.sqrt(1.0 + N[j])


@inner
def update_weights(state: AdvisedFullState, work: AdvisedFullScratch, y: int) -> None:
    """Stickiness, then one gradient step of the stacking; each weight u_j has its own step size."""
    u, N, now = state.u, state.squares, work.now[0]
    combined, r = work.combined[: now.n], work.r[: now.n]
    softmax(combined, best(combined), r)
    count_repetition(state, work, y, r)
    step_weights(u, N, work, y)
    if now.sticky != UNKNOWN:
        g = r[now.sticky] * now.stickiness
        N[STICKINESS] += g * g
        u[STICKINESS] -= g / math.sqrt(1.0 + N[STICKINESS])


@jit
def is_confident(z: Vector, y: int) -> bool:
    """Whether softmax z surely gives y more than 1 - MIN_ERROR; found without an exponential."""
    n = z.shape[0]
    return bool(n == 1 or z[y] - z[rival(z, y)] > math.log((n - 1) * (1.0 - MIN_ERROR) / MIN_ERROR) + 1e-9)


@jit
def expert_gradient(z: Vector, y: int, r: Vector) -> float:
    """Write r = f - e_y with f = softmax z. Returns 1 - f(y), or 0 where that is below MIN_ERROR."""
    if is_confident(z, y):
        return 0.0
    softmax(z, best(z), r)
    error = 1.0 - r[y]
    label_gradient(r, y, r)
    return float(error) if error >= MIN_ERROR else 0.0


@inner
def update_experts(state: AdvisedFullState, x: Row, work: AdvisedFullScratch, y: int) -> None:
    """A step of newton, one of the tracker and one of the kernel expert."""
    K, now, n = state.G.shape[1], work.now[0], work.now[0].n
    W, labels, r, scale = state.W, work.labels[:n], work.r[:n], now.scale
    if scale == 0.0:
        return
    error = expert_gradient(work.Z[0, :n], y, r)
    if error > 0.0:
        h = (1.0 / K if state.P.shape[0] > 0 else DIAGONAL) * error
        precision = state.P, state.A, math.inf, state.G[0]
        newton_step(W, NEWTON * K, x, scale, *precision, labels, r, HALF_WAY, h, NOT_MEASURED, work.workspace)
    error = expert_gradient(work.Z[1, :n], y, r)
    if error > 0.0:
        h, precision = TRACKING * error, (state.P[:0], state.C, math.inf, state.G[1])
        newton_step(W, TRACKER * K, x, scale, *precision, labels, r, HALF_WAY, h, NOT_MEASURED, work.workspace)
    if now.n_own > KERNEL:
        error = expert_gradient(work.Z[2, :n], y, r)
        if error > 0.0:
            h = CURVATURE / K * error
            kernel.kernel_step(state, x, scale, state.G[2], labels, r, h, work.workspace, work.kernel)


@inner
def learn(
    s: AdvisedFull, state: AdvisedFullState, x: Row, rd: Round, work: AdvisedFullScratch, label: int, truth: int
) -> None:
    """Line 5 of the pseudocode."""
    y = position_of(truth, work.labels[: work.now[0].n])
    learn_certified(state, x, rd, work, y)  # ĝ
    wrong = 1.0 if label != truth else 0.0
    update_costs(state, work, y, wrong)  # H
    update_caller(state.total[0], work, y, wrong)
    update_weights(state, work, y)  # u
    update_experts(state, x, work, y)  # f_1, ...
    state.total[0].last_label = truth
