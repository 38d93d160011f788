"""Advised Gaptron with full information: lines 1-5 of the pseudocode, where the truth is told."""

import math
from typing import Any, NamedTuple

import numpy as np

from gaptron.algorithms.advised import council
from gaptron.algorithms.advised.council import (
    COPIES,
    MEMORY,
    MOST_STAY,
    available,
    centre,
    count_row,
    forced,
    invite,
    log_odds,
    measure,
    place_of,
    watch,
)
from gaptron.algorithms.advised.newton import Desk, n_blocks, new_blocks, new_desk, new_diagonal, teach
from gaptron.kernels import demands
from gaptron.kernels.jit import inner, jit
from gaptron.kernels.likelihood import told
from gaptron.kernels.losses import LN2
from gaptron.kernels.rounding import put_from
from gaptron.kernels.rows import scores, zeros
from gaptron.kernels.simplex import best, draw, least_exploration, point, rival, softmax
from gaptron.kernels.vectors import Blocks
from gaptron.types import UNCOUNTED, UNKNOWN, Integers, Matrix, Problem, Round, Row, Vector, named

EXPERTS = ("certified", "newton", "tracker")
LEARNERS = len(EXPERTS)  # each with dK weights, side by side
VOICES = LEARNERS + COPIES + 1  # with the caller's copies, and stickiness last
STICK = VOICES - 1
PULL = 0.04  # ρ²: how fast v moves
REACH = 5.0  # R: the range of a
FIRST = 2 * LN2**2 / (1 + PULL * REACH**2)  # e₀
LEAST = FIRST / 50
HEARD = 10.0  # the range of an expert's scores in the stacking
SMALL = 0.1  # an adviser passes over rounds in which it was this close to the truth
DIAGONAL, TRACKING = 0.05, 0.25  # curvature; with blocks 1/K
DISTRUST = -3.0  # a council this far behind the certified learner is not followed: hostile advice costs little then


class AdvisedFull(NamedTuple):
    """The settings with full information."""

    scale: float  # σ > 0  the larger, the tighter the certificate and the more mistakes
    guard: float  # at most 1.1 times the caller's mistakes and this many more; infinite: no guard


class AdvisedFullState(NamedTuple):
    """What is learned."""

    W: Matrix  # side by side: -Σ ĝ of the certified learner, the weights of newton, of the tracker
    P: Blocks  # newton's inverse precision in blocks, or
    A: Vector  # its precision on a diagonal
    C: Vector  # the tracker's precision
    G: Matrix  # Σ|r_k| of the two advisers
    voice: Vector  # u: the weights of the experts, the caller's copies, stickiness
    squares: Vector  # N: of their derivatives
    ahead: Vector  # mistakes of ours less those of each expert alone
    stay: Any
    total: Any
    rounding: Any = UNCOUNTED  # what single precision has cost the certified learner


class AdvisedFullScratch(NamedTuple):
    """Work space. Vectors over labels hold the labels available, one behind the other."""

    labels: Integers  # which these are
    raw: Vector  # scores of all learners and labels
    L: Matrix  # what each expert says: scores, centred
    Z: Matrix  # the advisers' scores as they are
    t: Vector  # the stacked scores
    a: Vector  # those without the certified learner, cut and centred: a feature of its own
    w: Vector  # the certified scores with the advice
    p: Vector  # p̃
    b: Vector  # what each label's gap is without its q
    c: Vector  # zeros
    q: Vector
    r: Vector
    g: Vector  # derivatives in the voices
    all: Vector  # a coefficient for every label
    desk: Desk
    now: Any


def init(settings: AdvisedFull, problem: Problem, sparse: bool) -> AdvisedFullState:
    """Line 0: nothing learned; the two advisers are heard alike, the certified learner not yet."""
    K, d = problem.n_classes, problem.n_features
    voice = np.full(VOICES, 0.5)
    voice[0], voice[STICK] = 0.0, 1.0
    return AdvisedFullState(
        zeros(LEARNERS * K, d, sparse),
        new_blocks(d),
        new_diagonal(0 if n_blocks(d) else d),
        new_diagonal(d),
        np.ones((2, K)),
        voice,
        np.zeros(VOICES),
        np.zeros(LEARNERS),
        named(right=0.0, thought=0.0, seen=0.0),
        named(
            square=0.0,  # X²
            step=FIRST,  # ε of the last round
            cost=0.0,  # H
            largest=0.0,  # H*
            trust=0.0,  # how many more of the last thousand rounds the council's label was right than the certified one
            moved=0.0,  # M: Σ of the gradients in v
            gap=0.0,  # Σ of the surrogate gaps, signed; above 0 only if answers are late or the guard forces
            rounds=0.0,
            norms=0.0,  # Σ‖x‖²
            called=0.0,  # rounds with the caller's advice
            lead=0.0,  # mistakes of ours less those of the caller
            caller=0.0,  # mistakes of the caller
            open=0.0,  # answers missing where another label than the caller's might have been played
            last=UNKNOWN,  # the last right label
        ),
    )


def scratch(settings: AdvisedFull, problem: Problem, sparse: bool) -> AdvisedFullScratch:
    """Some twenty numbers a label, and a row."""
    K = problem.n_classes
    vectors = (np.zeros(K) for _ in range(8))
    return AdvisedFullScratch._make(
        (
            np.zeros(K, dtype=np.int64),
            np.zeros(LEARNERS * K),
            np.zeros((LEARNERS + COPIES, K)),
            np.zeros((2, K)),
            *vectors,
            np.zeros(VOICES),
            np.zeros(K),
            new_desk(K, problem.n_features, sparse),
            named(
                n=0,  # labels available
                spoke=0,  # experts heard
                square=0.0,  # X² with this row
                own=0.0,  # ‖x‖²
                step=0.0,  # ε
                ratio=0.0,  # ε/X²
                share=0.0,  # ‖x‖²/X²
                scale=0.0,  # x̃ = scale·x
                level=0.0,  # the largest demand
                v=0.0,
                kappa=0.0,  # stickiness
                pushed=UNKNOWN,  # whom it pushed
                outside=0,  # k°
                own_top=0,  # the top of z
                caller=UNKNOWN,  # the caller's label, in its place
            ),
        )
    )


@jit
def next_step(s: AdvisedFull, t: Any) -> float:
    """Line 1: ε, never above e₀ and never rising."""
    return min(FIRST, max(s.scale * s.scale / (2.0 * t.largest), LEAST)) if t.largest > 0.0 else FIRST


@jit
def demand_in_v(step: float, a: Vector, p: Vector, b: Vector) -> float:
    """What the second moment of the gradient in v adds to b. Returns μ = ⟨p̃, a⟩."""
    kappa, mu = step * PULL / (2.0 * LN2 * LN2), 0.0
    for i in range(a.shape[0]):
        mu += p[i] * a[i]
    for i in range(a.shape[0]):
        b[i] += kappa * (mu - a[i]) * (mu - a[i])
    return mu


@inner
def listen(state: AdvisedFullState, work: AdvisedFullScratch, rd: Round, n: int) -> None:
    """Line 2: what each expert says, in scores centred over the labels; who speaks; whom stickiness pushes."""
    K, now, t = rd.z.shape[0], work.now[0], state.total[0]
    labels, L = work.labels[:n], work.L[:, :n]
    for i in range(n):
        k = labels[i]
        work.w[i] = now.ratio * work.raw[k]
        L[0, i] = work.w[i]
        L[1, i] = now.scale * work.raw[K + k]
        L[2, i] = now.scale * work.raw[2 * K + k]
        work.Z[0, i], work.Z[1, i] = L[1, i], L[2, i]
    now.spoke = invite(rd.advice, labels, L, LEARNERS)
    share = 2.0 / (now.spoke - 1)  # so that the caller's copies and the two advisers start alike
    for j in range(now.spoke):
        if j >= LEARNERS:
            for i in range(n):
                L[j, i] = math.log(max(L[j, i], 1e-300))
        centre(L[j], HEARD, share)
    now.caller = best(L[LEARNERS]) if now.spoke > LEARNERS else UNKNOWN
    now.pushed = place_of(t.last, labels) if t.last != UNKNOWN else UNKNOWN
    now.kappa = min(max(log_odds(state.stay[0]), 0.0), MOST_STAY) if now.pushed != UNKNOWN else 0.0


@inner
def stack(u: Vector, work: AdvisedFullScratch, n: int) -> int:
    """Line 2: a = Σ u_j L_j with the push, without the certified learner; t with it. Returns k°, the top of a."""
    now = work.now[0]
    for i in range(n):
        o = u[STICK] * now.kappa if i == now.pushed else 0.0
        for j in range(1, now.spoke):
            o += u[j] * work.L[j, i]
        work.a[i] = o
        work.t[i] = o + u[0] * work.L[0, i]
    return best(work.a[:n])


@inner
def decide(s: AdvisedFull, state: AdvisedFullState, x: Row, rd: Round, work: AdvisedFullScratch, u: float) -> int:
    """Lines 1-4."""
    K, t, now = rd.z.shape[0], state.total[0], work.now[0]
    n = available(rd.among, work.labels)
    now.n, now.step = n, next_step(s, t)
    measure(x, t, now)
    scores(state.W, x, work.raw)
    listen(state, work, rd, n)
    now.outside = stack(state.voice, work, n)
    a, w, p, b, q = work.a[:n], work.w[:n], work.p[:n], work.b[:n], work.q[:n]
    top = best(work.t[:n])
    centre(a, REACH, 1.0)
    now.v = 1.0 - now.step * PULL * t.moved
    for i in range(n):
        w[i] += now.v * a[i]
    now.own_top = best(w)
    if t.trust < DISTRUST:
        top = now.own_top
    demands.logistic(w, p, now.own_top, now.step * now.share / 2.0, False, 1.0, 0, b, work.c[:n])
    demand_in_v(now.step, a, p, b)
    now.level, _ = least_exploration(b, work.c[:n], top, q)
    apart = now.caller != UNKNOWN
    if apart and forced(s.guard, t):
        point(q, now.caller)
        apart = False
    rd.mark[0].last, rd.mark[0].free, rd.mark[0].apart = t.last, 0, 1 if apart and q[now.caller] < 1.0 else 0
    for k in range(K):
        rd.z[k], rd.p[k] = -math.inf, 0.0
    for i in range(n):
        rd.z[work.labels[i]], rd.p[work.labels[i]] = work.t[i], q[i]
    write_note(rd.note, now, t.cost, state.voice, 1.0 - q[top])
    return int(work.labels[draw(q, top, u)])


@jit
def write_note(note: Vector, now: Any, cost: float, voice: Vector, explored: float) -> None:
    """What a trace keeps of the round."""
    note[council.LEVEL], note[council.STEP], note[council.EXPLORED] = now.level, now.step, explored
    note[council.COST], note[council.STICKINESS], note[council.V] = cost, now.kappa, now.v
    note[council.CERTIFIED], note[council.NEWTON] = voice[0], voice[1]
    note[council.TRACKER] = voice[2]
    note[council.CALLER] = 0.0
    for j in range(LEARNERS, now.spoke):
        note[council.CALLER] += voice[j]


@inner
def commit(s: AdvisedFull, state: AdvisedFullState, rd: Round, work: AdvisedFullScratch) -> None:
    """What the decision itself fixes, answered or not."""
    count_row(state.total[0], work.now[0], rd.mark[0].apart, work.now[0].spoke > LEARNERS)


@inner
def restack(state: AdvisedFullState, work: AdvisedFullScratch, n: int, y: int, last: int) -> None:
    """Line 5: stickiness, then one step of the stacking, each weight with a step of its own."""
    u, N, now, r = state.voice, state.squares, work.now[0], work.r[:n]
    softmax(work.t[:n], best(work.t[:n]), r)  # τ
    if last != UNKNOWN:
        push, pushed = math.exp(u[STICK] * now.kappa), now.pushed
        rest = r[pushed] + (1.0 - r[pushed]) * push if pushed != UNKNOWN else 1.0
        thought = r[last] * (push if pushed != UNKNOWN and last != pushed else 1.0) / rest
        watch(state.stay[0], 1.0 if y == last else 0.0, min(thought, 1.0))
    told(r, y, r)
    for j in range(now.spoke):
        g = 0.0
        for i in range(n):
            g += r[i] * work.L[j, i]
        N[j] += g * g
        u[j] -= g / math.sqrt(1.0 + N[j])
    if now.pushed != UNKNOWN:
        g = r[now.pushed] * now.kappa
        N[STICK] += g * g
        u[STICK] -= g / math.sqrt(1.0 + N[STICK])


@jit
def is_sure(z: Vector, y: int) -> bool:
    """Does softmax z certainly give y more than 1 - SMALL? Told without an exponential."""
    n = z.shape[0]
    return bool(n == 1 or z[y] - z[rival(z, y)] > math.log((n - 1) * (1.0 - SMALL) / SMALL) + 1e-9)


@inner
def learn(
    s: AdvisedFull, state: AdvisedFullState, x: Row, rd: Round, work: AdvisedFullScratch, label: int, truth: int
) -> None:
    """Line 5: the certified learner, what its demands cost, who is heard, and the advisers."""
    K, n, t, now = rd.z.shape[0], work.now[0].n, state.total[0], work.now[0]
    labels = work.labels[:n]
    y, a, p, r = place_of(truth, labels), work.a[:n], work.p[:n], work.r[:n]
    mu = 0.0
    for k in range(K):
        work.all[k] = 0.0
    for i in range(n):
        work.all[labels[i]] = ((1.0 if i == y else 0.0) - p[i]) / LN2
        mu += p[i] * a[i]
    t.step = min(t.step, now.step)  # a late answer is learned from with the ε of today
    t.gap += work.b[y] - rd.answer[0].chance
    t.moved += (mu - a[y]) / LN2
    t.cost += (1.0 if y == now.outside else 0.0) - work.q[y]
    t.largest = max(t.largest, t.cost)
    council, certified = best(work.t[:n]) == y, now.own_top == y
    t.trust = MEMORY * t.trust + (1.0 if council else 0.0) - (1.0 if certified else 0.0)
    wrong = 1.0 if label != truth else 0.0
    for j in range(LEARNERS):
        state.ahead[j] += wrong - (1.0 if best(work.L[j, :n]) != y else 0.0)
    if now.caller != UNKNOWN:
        its = 1.0 if now.caller != y else 0.0
        t.open -= rd.mark[0].apart
        t.lead += wrong - its
        t.caller += its
    put_from(state.W, x, 0, work.all, state.rounding, now.ratio)
    last = place_of(rd.mark[0].last, labels) if rd.mark[0].last != UNKNOWN else UNKNOWN
    restack(state, work, n, y, last)
    t.last = truth
    if now.scale == 0.0:
        return
    for j in range(2):
        if is_sure(work.Z[j, :n], y):
            continue
        softmax(work.Z[j, :n], best(work.Z[j, :n]), r)
        size = 1.0 - r[y]
        if size >= SMALL:
            told(r, y, r)
            if j == 0:
                curvature = 1.0 / K if state.P.shape[0] > 0 else DIAGONAL
                teach(
                    state.W,
                    K,
                    x,
                    now.scale,
                    state.P,
                    state.A,
                    math.inf,
                    state.G[0],
                    labels,
                    r,
                    curvature * size,
                    work.desk,
                )
            else:
                h = TRACKING * size
                teach(state.W, 2 * K, x, now.scale, state.P[:0], state.C, math.inf, state.G[1], labels, r, h, work.desk)
