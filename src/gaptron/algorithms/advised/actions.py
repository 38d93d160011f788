"""Advised Gaptron for actions with features, under bandit feedback.

Every round offers K actions, action k with the features φ_k, and has a context ψ, which may be empty. The experts:

    O  one-vs-all   f_k = σ(⟨u, φ_k⟩ + ⟨u, ψ⟩ + u₀)      one regression on the reward; knows how uncertain it is
    A  newton       f_k = e^{z_k}/(e^β + Σe^z)            softmax of the actions, or none of them
    C  tracker      f_k = e^{z_k}/Σe^z                    keeps adapting
    f_0 certified   softmax w                             learns only from certified rounds

Each of the first three is a diagonal Newton method on the log loss of the reward (`table.py`), on φ and ψ divided by
their typical lengths.

    for t = 1, 2, ...
      1   observe φ_1 ... φ_K and ψ;  N = Σ K_s so far
          ε = min{ε, 4 ln²2/K, cD/√N, D²/(2Λ)}
      2   the experts predict f_1, ...;   scores  Σ ω_j f_j(k)
          B_k = Σ ω_j f_j(k) + σ(z_k + α√v_k) - σ(z_k)        z the score of O, v_k = Σ φ_ki² P_i its uncertainty
          k̂ = argmax B
      3   exploiting round, while θ(D² + 10)/(2ε) - (M + O - Ψ) ≥ 1:  q = e_k̂
          certified round, else:  Δ = largest ‖φ_j - φ_k‖ of these rounds and of hits,  η = ε/Δ²,  w_k = η⟨θ, φ_k⟩
              a = ln B, clipped and centred;  z = w + va,  p = softmax z,  m = Σ p_k φ_k,  c = mean of φ_k,  μ = ⟨p, a⟩
              V_y = ‖m - φ_y‖² + ρ²Δ²(μ - a_y)²,  R_y = ‖c - φ_y‖² + ρ²Δ²a_y²,  κ' = η/(2 ln²2)
              every y gets the root of  q² - (1 + log₂ p_y + κ'(V_y - R_y) - λ)q - κ'R_y,  with the least λ ≥ 0 that
              makes them sum to at most 1;  the rest of q goes to k̂;  Λ ← Λ + λ
              (actions that tie for k̂ share what it gets, in exploiting rounds too)
      4   play y' ~ q, observe its reward r
      5   exploiting   M ← M + 1 - r;   a hit is a round of a side run, a softmax that proves Ψ ← Ψ + ℓ - κ'V_y
          certified    θ ← θ - [(m - c) + (r/q(y'))(c - φ_y')]/ln 2,   v likewise with a for φ
          ω by Bayes' rule;  a step of each expert

For any experts, E[M_T] ≤ L_T(u) + E[C_T(u)] for u fixed before the draws, if exactly one action is right in each round:
    C_T(u) = c'Δ²‖u‖² + (Δ²‖u‖² + 10)/(2ε) + Λ_T + M - Ψ of the exploiting rounds   (second term: after the first
    certified round; c' = 1/(2ε) of the side run).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from gaptron.algorithms.advised.bandit import (
    ADVICE_RANGE,
    MIN_MISS_ERROR,
    TRACKING,
    V_RATE,
    add_advice,
    add_v_moment,
    expert_gradient,
    exploiting_cost,
    may_exploit,
    softmax_with_none,
    update_own_regret,
    update_weights,
    write_notes,
)
from gaptron.algorithms.advised.experts import TINY
from gaptron.algorithms.advised.table import (
    CERTIFIED,
    NEWTON,
    ONE,
    SCORES,
    SIDE,
    SQUARE,
    TRACKER,
    UNCERTAINTY,
    add_actions,
    new_table,
    score_actions,
    score_context,
    step_along,
    step_between,
    step_on_action,
)
from gaptron.kernels import gaps
from gaptron.kernels.compile.jit import inner, jit
from gaptron.kernels.likelihood import MIN_COMPLEMENT, reward_coefficient
from gaptron.kernels.losses import LN2
from gaptron.kernels.oracles import sigmoid
from gaptron.kernels.rows import moments, sqnorm
from gaptron.kernels.simplex import best, draw, least_exploration, point_at_best, softmax
from gaptron.types import Comparator, Integers, Matrix, Problem, Round, Vector, named

EXPERTS = ("certified", "one-vs-all", "newton", "tracker")
F_CERTIFIED, F_ONE, F_NEWTON, F_TRACKER = range(len(EXPERTS))  # rows of F
OPTIMISM = 0.3  # α
FIRST_STEP = 4 * LN2**2  # ε of a round with one action
CONSTANT_VARIANCE = 4.0  # of u₀


class AdvisedActions(NamedTuple):
    """The settings under bandit feedback."""

    reach: float  # D > 0: the ‖u‖Δ that steps and budget are balanced for
    budget: float  # θ ≥ 0: what exploiting rounds may cost, relative to the certified ones; 0: every round is certified
    pace: float  # c > 0: ε ≤ cD/√N


class AdvisedActionsState(NamedTuple):
    """What is learned."""

    W: Matrix  # one row per feature: the weights of five learners and the variances of three
    omega: Vector  # the weights of the experts
    regret: Vector  # bounds on the learner's mistakes minus those of each expert alone
    total: Any


class AdvisedActionsScratch(NamedTuple):
    """Buffers. Vectors have one number per action."""

    Z: Matrix  # what `score_actions` writes
    F: Matrix  # the probabilities of each expert
    B: Vector  # Σ ω_j f_j with optimism
    a: Vector  # ln B, clipped and centred
    w: Vector  # the certified scores w, then z = w + va
    p: Vector
    b: Vector  # each action's surrogate gap without its q
    c: Vector  # the cost of playing it rarely
    q: Vector
    r: Vector  # coefficients of an update
    s: Vector  # of another
    columns: Integers  # a buffer, one number per feature
    late: Any
    decision: Any  # what `commit` and `learn` need of the decision as it was made
    now: Any


def init(settings: AdvisedActions, problem: Problem, sparse: bool) -> AdvisedActionsState:
    """Nothing is learned; all experts have equal weights."""
    return AdvisedActionsState(
        new_table(problem.n_features),
        np.full(len(EXPERTS), 1.0 / len(EXPERTS)),
        np.zeros(len(EXPERTS)),
        named(
            square=0.0,  # Δ²
            step=FIRST_STEP,  # ε of the last certified round
            level=0.0,  # Λ
            v_gradient=0.0,  # Σ ĝ_v
            certified=0.0,  # certified rounds
            mistakes=0.0,  # M of the exploiting rounds
            waiting=0.0,  # O: exploiting rounds without feedback
            psi=0.0,  # Ψ of their hits
            side_step=FIRST_STEP,  # ε of the side run
            actions=0.0,  # N
            rounds=0.0,
            squares=0.0,  # Σ of the rounds' largest ‖φ‖²
            context_squares=0.0,  # Σ‖ψ‖²
            beta=0.0,  # newton's score for "none of the actions"
            beta_squares=0.0,  # Σ of its squared derivatives
            constant=0.0,  # u₀
            constant_variance=CONSTANT_VARIANCE,
        ),
    )


def scratch(settings: AdvisedActions, problem: Problem, sparse: bool) -> AdvisedActionsScratch:
    """About thirty numbers per action, and one per feature."""
    K = problem.n_classes
    return AdvisedActionsScratch._make(
        (
            np.zeros((K, SCORES)),
            np.zeros((len(EXPERTS), K)),
            *(np.zeros(K) for _ in range(9)),
            np.zeros(problem.n_features, dtype=np.int64),
            named(has_scores=0),  # were a, z = w + va and p computed?
            named(exploiting=0),  # was the round exploiting?
            named(
                n=0,  # K
                n_own=len(EXPERTS),  # the number of experts
                n_experts=len(EXPERTS),  # the same: the caller has none
                square=0.0,  # Δ² with this round, if it is certified
                largest=0.0,  # the round's largest ‖φ‖²
                context_square=0.0,  # ‖ψ‖²
                step=0.0,  # ε
                ratio=0.0,  # η, or 0 before the first certified round
                scale=0.0,  # φ is multiplied by this for the experts
                context_scale=0.0,  # and ψ
                shared=0.0,  # ⟨u, ψ⟩ + u₀
                shared_variance=0.0,  # Σ ψ_i²P_i, with that of u₀
                omega=0.0,  # Σ ω_j over the experts of the round
                none=0.0,  # newton's probability that no action is right
                level=0.0,  # λ
                v=0.0,
                stickiness=0.0,  # always 0: actions have no names
                discovery=0.0,  # the same
                top=0,  # k̂
            ),
        )
    )


# --- theory ---------------------------------------------------------------------------------------------------


def bound(settings: AdvisedActions, spread: float, comparator: Comparator) -> float:
    """What is known before the run, with spread ≥ Δ²‖u‖², N = Σ K_t and K̄ = max K_t.

    L_T(u) + spread·(c + c') + 10c + θ(D² + 10)c + Λ, with the largest Λ of any path, c the largest 1/(2ε), c'
    of the side run.
    """
    D, apart, root = settings.reach, 1 / V_RATE, math.sqrt(comparator.actions)
    level = largest_level(settings, root)
    c = max(comparator.most_actions / (2 * FIRST_STEP), root / (2 * settings.pace * D), level / D**2)
    budget = settings.budget * (D**2 + apart) * c
    side = max(1 / (2 * FIRST_STEP), budget / D**2)
    return comparator.loss + spread * (c + side) + apart * c + budget + level


def largest_level(settings: AdvisedActions, root: float) -> float:
    """Λ_T ≤ (2αc + 2c₁λ̄)D√N on every path: α = 0.21c̃/(2 ln²2), c₁ = 8cc̃/ln²2, c̃ = 1 + 3ρ²A², λ̄ = 3 + 2ρ²A²."""
    square = V_RATE * ADVICE_RANGE**2
    wide = 1 + 3 * square
    alpha, c1, most = 0.21 * wide / (2 * LN2**2), 8 * settings.pace * wide / LN2**2, 3 + 2 * square
    return (2 * alpha * settings.pace + 2 * c1 * most) * settings.reach * root


# --- line 1 ---------------------------------------------------------------------------------------------------


@jit
def next_step(s: AdvisedActions, t: Any, K: int) -> float:
    """ε, which never increases."""
    step = min(float(t.step), FIRST_STEP / K, s.pace * s.reach / math.sqrt(t.actions + K))
    return min(step, s.reach * s.reach / (2.0 * t.level)) if t.level > 0.0 else step


@jit
def inverse_length(square: float, total: float, rounds: float) -> float:
    """1/√ of the larger of ‖x‖² and its mean, so that a short vector stays short; 0 where both are 0."""
    size = max(square, (total + square) / (rounds + 1.0))
    return 1.0 / math.sqrt(size) if size > TINY else 0.0


@inner
def score_learners(state: AdvisedActionsState, x: Any, rd: Round, work: AdvisedActionsScratch) -> None:
    """The scores of all learners, and the lengths that the experts' features are divided by."""
    t, now = state.total[0], work.now[0]
    now.n = rd.z.shape[0]
    score_actions(state.W, x.rows, work.Z)
    now.largest = 0.0
    for k in range(now.n):
        now.largest = max(now.largest, work.Z[k, SQUARE])
    shared, variance, now.context_square = score_context(state.W, x.context)
    now.scale = inverse_length(now.largest, t.squares, t.rounds)
    now.context_scale = inverse_length(now.context_square, t.context_squares, t.rounds)
    now.shared = now.context_scale * shared + t.constant
    now.shared_variance = now.context_scale * now.context_scale * variance + t.constant_variance


@inner
def measure_spread(t: Any, x: Any, certified: bool, now: Any) -> float:
    """Δ² with this round, if it is certified, and η. Returns the round's own Δ²."""
    own = sqnorm(x) if certified else 0.0
    now.square = max(t.square, own)
    now.ratio = now.step / now.square if now.square > TINY else 0.0
    return own


# --- line 2 ---------------------------------------------------------------------------------------------------


@inner
def predict_experts(state: AdvisedActionsState, work: AdvisedActionsScratch) -> None:
    """The probabilities that each expert gives the actions."""
    now, Z, F = work.now[0], work.Z, work.F
    n, w = now.n, work.w[: now.n]
    for k in range(n):
        w[k] = now.ratio * Z[k, CERTIFIED]
        F[F_CERTIFIED, k] = 1.0 / n
        F[F_ONE, k] = sigmoid(now.scale * Z[k, ONE] + now.shared)
        F[F_NEWTON, k] = now.scale * Z[k, NEWTON]
        F[F_TRACKER, k] = now.scale * Z[k, TRACKER]
    if state.total[0].certified > 0.0:
        softmax(w, best(w), F[F_CERTIFIED, :n])
    now.none = softmax_with_none(F[F_NEWTON, :n], state.total[0].beta, F[F_NEWTON, :n])
    softmax(F[F_TRACKER, :n], best(F[F_TRACKER, :n]), F[F_TRACKER, :n])


@inner
def combine_experts(omega: Vector, rd: Round, work: AdvisedActionsScratch) -> None:
    """The scores Σ ω_j f_j, B with the optimism of O, and k̂."""
    now, Z, n = work.now[0], work.Z, work.now[0].n
    now.omega = 0.0
    for j in range(now.n_experts):
        now.omega += omega[j]
    for k in range(n):
        mean = 0.0
        for j in range(now.n_experts):
            mean += omega[j] / now.omega * work.F[j, k]
        rd.z[k] = mean
        z = now.scale * Z[k, ONE] + now.shared
        work.B[k] = mean + sigmoid(z + OPTIMISM * now.scale * math.sqrt(Z[k, UNCERTAINTY])) - work.F[F_ONE, k]
    now.top = best(work.B[:n])


# --- lines 3 and 4 --------------------------------------------------------------------------------------------


@inner
def certify(x: Any, own: float, work: AdvisedActionsScratch) -> None:
    """A certified round: z = w + va, p = softmax z, and the least q(y) of every action; k̂ gets what is left."""
    now, n = work.now[0], work.now[0].n
    add_advice(work)
    z, p, b, c = work.w[:n], work.p[:n], work.b[:n], work.c[:n]
    gaps.logistic_actions(x, own, z, p, best(z), now.ratio, True, 1.0, b, c)
    add_v_moment(now.step, work.a[:n], p, b, c)
    now.level, _ = least_exploration(b, c, work.B[:n], now.top, work.q[:n])


@inner
def decide(s: AdvisedActions, state: AdvisedActionsState, x: Any, rd: Round, work: Any, u: float) -> int:
    """Lines 1-4 of the pseudocode."""
    t, now = state.total[0], work.now[0]
    now.step = next_step(s, t, rd.z.shape[0])  # 1
    score_learners(state, x, rd, work)  # 1
    exploiting = may_exploit(s, t, now.step, 1.0)  # 3
    own = measure_spread(t, x, not exploiting, now)  # 3
    predict_experts(state, work)  # 2
    combine_experts(state.omega, rd, work)  # 2
    q, now.v = work.q[: now.n], 1.0 - now.step * V_RATE * t.v_gradient
    now.level, work.late[0].has_scores = 0.0, 0
    if exploiting:
        point_at_best(q, work.B[: now.n], now.top)
    else:
        certify(x, own, work)
    work.decision[0].exploiting = 1 if exploiting else 0
    for k in range(now.n):
        rd.p[k] = q[k]
    write_notes(rd.note, now, exploiting_cost(t), state.omega, 1.0 - q[now.top], exploiting)
    return int(draw(q, now.top, u))  # 4


@inner
def commit(s: AdvisedActions, state: AdvisedActionsState, rd: Round, work: AdvisedActionsScratch) -> None:
    """Count the decision, before its feedback. Only certified rounds change Δ, ε and Λ."""
    t, now, decision = state.total[0], work.now[0], work.decision[0]
    t.actions += now.n
    t.rounds += 1.0
    t.squares += now.largest
    t.context_squares += now.context_square
    if decision.exploiting:
        t.waiting += 1.0
        return
    t.square = now.square
    t.step = now.step
    t.level += now.level
    t.certified += 1.0


# --- line 5 ---------------------------------------------------------------------------------------------------


@inner
def learn_certified(
    state: AdvisedActionsState, x: Any, rd: Round, work: AdvisedActionsScratch, at: int, reward: float
) -> None:
    """The certified learner: ĝ in θ, and the same with a for φ in v."""
    t, now, n = state.total[0], work.now[0], work.now[0].n
    z, a, p, r = work.w[:n], work.a[:n], work.p[:n], work.r[:n]
    if not work.late[0].has_scores:  # the round was certified when it was decided, and would not be today
        add_advice(work)
        softmax(z, best(z), p)
    if now.square <= TINY:
        return
    weight, mu = reward / rd.p[at], 0.0
    for k in range(n):
        r[k] = ((1.0 - weight) / n - p[k] + (weight if k == at else 0.0)) / LN2
        mu += p[k] * a[k]
    t.v_gradient += (mu - weight * a[at]) / LN2
    add_actions(state.W, x.rows, CERTIFIED, r)


@inner
def learn_exploiting(
    s: AdvisedActions, state: AdvisedActionsState, x: Any, work: AdvisedActionsScratch, at: int, reward: float
) -> None:
    """An exploiting round: a miss is counted; a hit is a round of the side run, which proves part of Ψ."""
    t, n = state.total[0], work.now[0].n
    z, p, r = work.w[:n], work.p[:n], work.r[:n]
    t.waiting -= 1.0
    t.mistakes += 1.0 - reward
    if reward > 0.0:
        own = sqnorm(x)
        t.square = max(t.square, own)
        eta = t.side_step / t.square if t.square > TINY else 0.0
        for k in range(n):
            z[k] = eta * work.Z[k, SIDE]
        top = best(z)
        softmax(z, top, p)
        loss = (z[top] - z[at] - math.log(p[top])) / LN2
        moments(x, p, own, work.b[:n], work.c[:n])
        t.psi += reward * loss - reward * reward * eta / (2.0 * LN2 * LN2) * work.b[at]
        for k in range(n):
            r[k] = reward * ((1.0 if k == at else 0.0) - p[k]) / LN2
        add_actions(state.W, x.rows, SIDE, r)
    excess = t.mistakes - t.psi
    if excess > 0.0:
        t.side_step = min(t.side_step, s.reach * s.reach / (2.0 * excess))


@inner
def learn_one(state: AdvisedActionsState, x: Any, work: AdvisedActionsScratch, at: int, reward: float) -> None:
    """A step of the one-against-all regression, along the features of the action played, the context and 1."""
    t, now, W = state.total[0], work.now[0], state.W
    f = work.F[F_ONE, at]
    h, v = f * (1.0 - f), now.scale * now.scale * work.Z[at, UNCERTAINTY] + now.shared_variance
    rate = (f - reward) / (1.0 + h * v)
    step_on_action(W, x.rows, at, now.scale, rate, h)
    step_along(W, x.context, now.context_scale, rate, h)
    t.constant -= rate * t.constant_variance
    t.constant_variance /= 1.0 + h * t.constant_variance


@jit
def gradient_or_zero(f: Vector, at: int, reward: float, r: Vector) -> float:
    """Write the gradient r of the reward's log loss. Returns the mean error; where it is small both are 0."""
    error = float(expert_gradient(f, at, reward, MIN_MISS_ERROR * min(1.0, 20.0 / f.shape[0]), r))
    if error == 0.0:
        for k in range(r.shape[0]):
            r[k] = 0.0
    return error


@inner
def learn_softmaxes(state: AdvisedActionsState, x: Any, work: AdvisedActionsScratch, at: int, reward: float) -> None:
    """A step of newton and of β, with the Fisher information of a yes or no as the curvature; one of the tracker."""
    t, now, n = state.total[0], work.now[0], work.now[0].n
    f, e, r, s, h, g = work.F[F_NEWTON, :n], work.F[F_TRACKER, :n], work.r[:n], work.s[:n], 0.0, 0.0
    if gradient_or_zero(f, at, reward, r) > 0.0:
        slope = reward_coefficient(f[at], reward)  # r = slope·(e_a - f)
        h = f[at] / max(1.0 - f[at], MIN_COMPLEMENT) / (slope * slope)
        pull = -slope * now.none
        t.beta_squares += pull * pull
        t.beta -= pull / math.sqrt(1.0 + t.beta_squares)
    error = gradient_or_zero(e, at, reward, s)
    if error > 0.0:
        slope = reward_coefficient(e[at], reward)
        g = TRACKING * error / (slope * slope)
    if h > 0.0 or g > 0.0:
        step_between(state.W, x.rows, now.scale, r, h, s, g, x.space, work.columns)


@inner
def learn(s: AdvisedActions, state: AdvisedActionsState, x: Any, rd: Round, work: Any, label: int, truth: int) -> None:
    """Line 5 of the pseudocode."""
    reward, now = rd.feedback[0].reward, work.now[0]
    if work.decision[0].exploiting:
        learn_exploiting(s, state, x, work, label, reward)  # M, Ψ
    else:
        learn_certified(state, x, rd, work, label, reward)  # θ, v
    update_own_regret(state.regret, work.F, now, label, 1.0 if reward < 0.5 else -1.0)
    update_weights(state.omega, work.F, now.n_experts, label, reward)  # ω
    learn_one(state, x, work, label, reward)  # f_1, ...
    learn_softmaxes(state, x, work, label, reward)
