"""Advised Gaptron for actions with features, with full information.

The ensemble is that of labels (`full.py`), whose experts are here the softmaxes A and C of `actions.py`. Advice is one
more feature of the actions, a, with a separate step:

    for t = 1, 2, ...
      1   observe φ_1 ... φ_K;  Δ = largest ‖φ_j - φ_k‖ of a round so far;  η = ε/Δ²,  w_k = η⟨θ, φ_k⟩
          ε = min{e₀, max{σ²/H*, e₀/50}},  e₀ = 4 ln²2/(1 + ρ²R²) = 2 ln²2
      2   the experts predict; stacking gives scores, their top action k̂, and without f_0 the advice a of range R
      3   z = w + va,  p = softmax z,  m = Σ p_k φ_k,  μ = ⟨p, a⟩,  κ' = η/(2 ln²2)
          q(y) ≥ 1 + log₂ p_y + κ'(‖m - φ_y‖² + ρ²Δ²(μ - a_y)²);  these sum to at most 1, and the rest goes to k̂
          (actions that tie for k̂ share it)
      4   play y' ~ q
      5   θ ← θ - (m - φ_y)/ln 2,  v ← v - ερ²(μ - a_y)/ln 2;   the weights of the experts, and the experts

On every path, for all u and v at once, with ρ² = 0.04 and R = 5:
    Σ(1 - q_t(y_t)) ≤ L_T(u, v) + (Δ²‖u‖² + 25(v - 1)²)/(2ε_T),  1/(2ε_T) ≤ 26.1
"""

from typing import Any, NamedTuple

import numpy as np

from gaptron.algorithms.advised import experts, full, table
from gaptron.algorithms.advised.actions import inverse_length
from gaptron.algorithms.advised.experts import TINY
from gaptron.algorithms.advised.full import (
    CERTIFIED,
    MIN_TRUST,
    NEWTON,
    TRACKER,
    TRACKING,
    V_RATE,
    add_v_moment,
    clip_experts,
    combine_experts,
    expert_gradient,
    step_weights,
    update_costs,
)
from gaptron.algorithms.advised.table import SCORES, add_actions, new_table, score_actions, step_between
from gaptron.kernels import gaps
from gaptron.kernels.compile.jit import inner, jit
from gaptron.kernels.losses import LN2
from gaptron.kernels.rows import sqnorm
from gaptron.kernels.simplex import best, draw, least_exploration, softmax
from gaptron.types import UNKNOWN, Integers, Matrix, Problem, Round, Vector, named

EXPERTS = ("certified", "newton", "tracker")
OF_LABELS = 2.0  # K labels with one example x are actions with Δ² = 2‖x‖², so that steps in Δ² are twice those in X²
FIRST_STEP, LEAST_STEP = OF_LABELS * full.FIRST_STEP, OF_LABELS * full.LEAST_STEP
CURVATURE = 1.0  # of newton


class AdvisedActionsFull(NamedTuple):
    """The settings with full information."""

    scale: float  # σ > 0  the larger, the tighter the certificate and the more mistakes


class AdvisedActionsFullState(NamedTuple):
    """What is learned."""

    W: Matrix  # the table of `table.py`
    u: Vector  # the weights of the experts
    squares: Vector  # N: Σ of their squared derivatives
    regret: Vector  # the learner's mistakes minus those of each expert alone
    total: Any


class AdvisedActionsFullScratch(NamedTuple):
    """Buffers. Vectors have one number per action."""

    table: Matrix  # what `score_actions` writes
    L: Matrix  # scores of each expert, clipped and centred
    Z: Matrix  # scores of newton and the tracker
    combined: Vector  # Σ u_j L_j
    a: Vector  # the same without the certified learner, clipped and centred
    w: Vector  # the certified scores w, then z = w + va
    p: Vector
    b: Vector  # each action's surrogate gap without its q
    c: Vector  # zeros
    q: Vector
    r: Vector  # coefficients of an update
    s: Vector  # of another
    columns: Integers  # a buffer, one number per feature
    now: Any


def init(settings: AdvisedActionsFull, problem: Problem, sparse: bool) -> AdvisedActionsFullState:
    """Nothing is learned; all experts have equal weights, except the certified learner, which has none."""
    u = np.full(len(EXPERTS), 0.5)
    u[CERTIFIED] = 0.0
    return AdvisedActionsFullState(
        new_table(problem.n_features),
        u,
        np.zeros(len(EXPERTS)),
        np.zeros(len(EXPERTS)),
        named(
            square=0.0,  # Δ²
            step=FIRST_STEP,  # ε of the last round
            cost=0.0,  # H
            largest=0.0,  # H*
            trust=0.0,  # of the last thousand rounds: those that the ensemble's k̂ won minus those the certified top won
            v_gradient=0.0,  # Σ ĝ_v
            gap=0.0,  # Σ of the surrogate gaps, signed; above 0 only after late feedback
            rounds=0.0,
            sqnorms=0.0,  # Σ of the rounds' largest ‖φ‖²
        ),
    )


def scratch(settings: AdvisedActionsFull, problem: Problem, sparse: bool) -> AdvisedActionsFullScratch:
    """About thirty numbers per action, and one per feature."""
    K = problem.n_classes
    return AdvisedActionsFullScratch._make(
        (
            np.zeros((K, SCORES)),
            np.zeros((len(EXPERTS), K)),
            np.zeros((len(EXPERTS) - 1, K)),
            *(np.zeros(K) for _ in range(9)),
            np.zeros(problem.n_features, dtype=np.int64),
            named(
                n=0,  # K
                n_own=len(EXPERTS),  # the number of experts
                n_experts=len(EXPERTS),  # the same: the caller has none
                square=0.0,  # Δ² with this round
                own=0.0,  # Δ² of this round
                sqnorm=0.0,  # the round's largest ‖φ‖²
                step=0.0,  # ε
                ratio=0.0,  # η
                scale=0.0,  # φ is multiplied by this for the experts
                level=0.0,  # λ
                v=0.0,
                stickiness=0.0,  # always 0, and
                sticky=UNKNOWN,  # no action: actions have no names
                top=0,  # of the combined scores
                advised_top=0,  # k°: the same without the certified learner
                certified_top=0,  # of z
                heir=0,  # k̂: the action that gets the rest of q
            ),
        )
    )


@inner
def score_learners(state: AdvisedActionsFullState, x: Any, rd: Round, work: AdvisedActionsFullScratch) -> None:
    """Lines 1 and 2: Δ, η, the scores of the learners, and the experts."""
    t, now = state.total[0], work.now[0]
    now.n, now.own = rd.z.shape[0], sqnorm(x)
    now.square = max(t.square, now.own)
    now.ratio = now.step / now.square if now.square > TINY else 0.0
    score_actions(state.W, x.rows, work.table)
    now.sqnorm = 0.0
    for k in range(now.n):
        now.sqnorm = max(now.sqnorm, work.table[k, table.SQUARE])
    now.scale = inverse_length(now.sqnorm, t.sqnorms, t.rounds)
    for k in range(now.n):
        work.w[k] = now.ratio * work.table[k, table.CERTIFIED]
        work.L[CERTIFIED, k] = work.w[k]
        work.L[NEWTON, k] = work.Z[NEWTON - 1, k] = now.scale * work.table[k, table.NEWTON]
        work.L[TRACKER, k] = work.Z[TRACKER - 1, k] = now.scale * work.table[k, table.TRACKER]
    clip_experts(work.L[:, : now.n], now)


@inner
def certify(t: Any, x: Any, work: AdvisedActionsFullScratch) -> None:
    """Line 3: z = w + va, p = softmax z, and the least q(y) of every action; the rest goes to k̂."""
    now, n = work.now[0], work.now[0].n
    a, z, p, b, c = work.a[:n], work.w[:n], work.p[:n], work.b[:n], work.c[:n]
    now.v = 1.0 - now.step * V_RATE * t.v_gradient
    for k in range(n):
        z[k] += now.v * a[k]
    now.certified_top = best(z)
    use_certified = t.trust < MIN_TRUST
    now.heir = now.certified_top if use_certified else now.top
    gaps.logistic_actions(x, now.own, z, p, now.certified_top, now.ratio, False, 1.0, b, c)
    add_v_moment(now.step, a, p, b)
    now.level, _ = least_exploration(b, c, z if use_certified else work.combined[:n], now.heir, work.q[:n])


@jit
def next_step(s: AdvisedActionsFull, t: Any) -> float:
    """ε, which never exceeds e₀ and never increases."""
    return float(min(t.step, OF_LABELS * full.next_step(s, t)))


@inner
def decide(s: AdvisedActionsFull, state: AdvisedActionsFullState, x: Any, rd: Round, work: Any, u: float) -> int:
    """Lines 1-4 of the pseudocode."""
    t, now = state.total[0], work.now[0]
    now.step = next_step(s, t)  # 1
    score_learners(state, x, rd, work)  # 1, 2
    combine_experts(state.u, work)  # 2
    certify(t, x, work)  # 3
    q = work.q[: now.n]
    for k in range(now.n):
        rd.z[k], rd.p[k] = work.combined[k], q[k]
    write_notes(rd.note, now, t.cost, state.u, 1.0 - q[now.heir])
    return int(draw(q, now.heir, u))  # 4


@jit
def write_notes(note: Vector, now: Any, cost: float, u: Vector, explored: float) -> None:
    """The numbers that a trace records of the round."""
    note[experts.LEVEL], note[experts.STEP], note[experts.EXPLORED] = now.level, now.step, explored
    note[experts.COST], note[experts.V] = cost, now.v
    note[experts.CERTIFIED], note[experts.NEWTON], note[experts.TRACKER] = u[CERTIFIED], u[NEWTON], u[TRACKER]


@inner
def commit(s: AdvisedActionsFull, state: AdvisedActionsFullState, rd: Round, work: AdvisedActionsFullScratch) -> None:
    """Count the decision, before its feedback."""
    t, now = state.total[0], work.now[0]
    t.square = now.square
    t.step = now.step
    t.rounds += 1.0
    t.sqnorms += now.sqnorm


@inner
def learn_certified(state: AdvisedActionsFullState, x: Any, rd: Round, work: AdvisedActionsFullScratch, y: int) -> None:
    """The certified learner: the gradient in θ, and the same with a for φ in v; the sum of the gaps."""
    t, now, mu, n = state.total[0], work.now[0], 0.0, work.now[0].n
    for k in range(n):
        work.r[k] = ((1.0 if k == y else 0.0) - work.p[k]) / LN2
        mu += work.p[k] * work.a[k]
    add_actions(state.W, x.rows, table.CERTIFIED, work.r[:n])
    t.v_gradient += (mu - work.a[y]) / LN2
    t.step = min(t.step, now.step)  # late feedback is learned from with today's ε
    t.gap += work.b[y] - rd.feedback[0].propensity


@jit
def gradient_or_zero(z: Vector, y: int, r: Vector) -> float:
    """Write r = f - e_y with f = softmax z. Returns 1 - f(y); where that is small both are 0."""
    error = float(expert_gradient(z, y, r))
    if error == 0.0:
        for k in range(r.shape[0]):
            r[k] = 0.0
    return error


@inner
def learn_experts(state: AdvisedActionsFullState, x: Any, work: AdvisedActionsFullScratch, y: int) -> None:
    """A step of newton and one of the tracker."""
    now, n = work.now[0], work.now[0].n
    r, s = work.r[:n], work.s[:n]
    h = CURVATURE * gradient_or_zero(work.Z[NEWTON - 1, :n], y, r)
    g = TRACKING * gradient_or_zero(work.Z[TRACKER - 1, :n], y, s)
    if h > 0.0 or g > 0.0:
        step_between(state.W, x.rows, now.scale, r, h, s, g, x.space, work.columns)


@inner
def learn(
    s: AdvisedActionsFull, state: AdvisedActionsFullState, x: Any, rd: Round, work: Any, label: int, truth: int
) -> None:
    """Line 5 of the pseudocode."""
    learn_certified(state, x, rd, work, truth)  # θ, v
    update_costs(state, work, truth, 1.0 if label != truth else 0.0)  # H
    combined, r = work.combined[: work.now[0].n], work.r[: work.now[0].n]
    softmax(combined, best(combined), r)
    step_weights(state.u, state.squares, work, truth)  # u
    learn_experts(state, x, work, truth)
