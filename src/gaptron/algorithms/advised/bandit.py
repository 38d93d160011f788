"""Advised Gaptron under bandit feedback: lines 1-5 of the pseudocode, where only the label played is answered."""

import math
from typing import Any, NamedTuple

import numpy as np

from gaptron.algorithms.advised.council import (
    COPIES,
    MOST_STAY,
    available,
    centre,
    forced,
    invite,
    log_odds,
    place_of,
    watch,
)
from gaptron.algorithms.advised.newton import Blocks, Desk, n_blocks, new_blocks, new_desk, new_diagonal, teach
from gaptron.kernels import demands
from gaptron.kernels.jit import lean
from gaptron.kernels.likelihood import pull_of, rewarded
from gaptron.kernels.losses import LN2
from gaptron.kernels.oracles import sigmoid
from gaptron.kernels.rows import add_from, add_one, scores, sqnorm, zeros
from gaptron.kernels.simplex import best, draw, least_exploration, point, softmax
from gaptron.types import UNKNOWN, Integers, Matrix, Problem, Round, Row, Vector, named

EXPERTS = ("certified", "one-vs-all", "newton", "tracker")
INSIDE = len(EXPERTS)
VOICES = INSIDE + COPIES + 1  # the caller's copies, and the labels it does not say
SIDE, ONE, NEWTON, TRACKER, CERTIFIED = range(5)  # learners, each with dK weights, side by side
LEARNERS = 5
PULL = 0.1  # ρ²: how fast v moves
REACH = 10.0  # the range of a
LEAST = 1e-12  # the least probability whose logarithm is taken
SURE = 1e-3  # an expert's φ lies this far from 0 and 1
SHARE, EVIDENCE = 0.01, 5.0  # of the weight is dealt out evenly after an answer, less where it says little
OPTIMISM = 0.2
SMALL_HIT, SMALL_MISS = 0.1, 1e-3  # an adviser passes over answers it was this sure of
CURVATURE, TRACKING = 0.5, 0.25  # newton's times K, the tracker's
HARDEST = 0.5  # the tracker's precision never rises above this, so that it goes on learning
TINY = 1e-280  # rows of a smaller ‖x‖² count as zero


class AdvisedBandit(NamedTuple):
    """The settings under bandit feedback."""

    reach: float  # D > 0: the ‖U‖X that steps and budget are balanced for
    budget: float  # θ ≥ 0: how much free rounds may cost, in terms of what the certified ones cost; 0: none is free
    pace: float  # c > 0: ε ≤ cD/√(Kt)
    guard: float  # at most 1.1 times the caller's mistakes and this many more; infinite: no guard
    first: float  # e₀: the largest ε


class AdvisedBanditState(NamedTuple):
    """What is learned."""

    W: Matrix  # side by side: -Σ ĝ of the side run, the three advisers' weights, -Σ ĝ of the certified learner
    P: Blocks  # newton's inverse precision in blocks, or
    A: Vector  # its precision on a diagonal
    C: Vector  # the tracker's precision
    G: Matrix  # Σ|r_k| of newton and the tracker
    omega: Vector  # the weights of the experts and the caller's copies
    ahead: Vector  # bounds on mistakes of ours less those of each expert alone
    hits: Vector  # of every label
    asked: Vector  # plays of every label since the last answer about it
    stay: Any  # whether the last right label is right again more often than thought
    other: Any  # the same of all other labels
    total: Any


class AdvisedBanditScratch(NamedTuple):
    """Work space. Vectors over labels hold the labels available, one behind the other."""

    labels: Integers  # which these are
    raw: Vector  # scores of all learners and labels
    F: Matrix  # what each expert says: probabilities
    side: Vector  # scores of the side run, before its step
    base: Vector  # Σ ω_j f_j
    B: Vector  # the same with stickiness and optimism
    a: Vector  # ln B, cut and centred: a feature of the certified learner
    w: Vector  # the certified scores with the advice
    p: Vector  # p̃
    b: Vector  # what each label's gap is without its q
    c: Vector  # what it costs to see the label rarely
    q: Vector
    r: Vector
    all: Vector  # a coefficient for every label
    desk: Desk
    now: Any


def init(settings: AdvisedBandit, problem: Problem, sparse: bool) -> AdvisedBanditState:
    """Line 0: nothing learned, everybody heard alike."""
    K, d = problem.n_classes, problem.n_features
    return AdvisedBanditState(
        zeros(LEARNERS * K, d, sparse),
        new_blocks(d),
        new_diagonal(0 if n_blocks(d) else d),
        new_diagonal(d),
        np.ones((2, K)),
        np.full(VOICES, 1.0 / INSIDE),
        np.zeros(INSIDE),
        np.zeros(K),
        np.zeros(K),
        named(right=0.0, thought=0.0, seen=0.0),
        named(right=0.0, thought=0.0, seen=0.0),
        named(
            square=0.0,  # X²
            step=settings.first,  # ε of the last round
            last_step=settings.first,  # ε of the last certified round
            level=0.0,  # Λ
            moved=0.0,  # Σ⟨r, a⟩
            certified=0.0,  # rounds that were
            missed=0.0,  # M of the free rounds
            waiting=0.0,  # free rounds not yet answered
            psi=0.0,  # Ψ of their hits
            side_step=2 * LN2**2,  # ε of the side run
            rounds=0.0,
            norms=0.0,  # Σ‖x‖²
            called=0.0,  # rounds with the caller's advice
            lead=0.0,  # at most so many more mistakes than the caller
            caller=0.0,  # at least so many mistakes of the caller
            open=0.0,  # answers missing where another label than the caller's might have been played
            finds=0.0,  # hits of labels never hit before, older ones forgotten
            tries=0.0,  # plays of such labels
            beta=0.0,  # newton's score for "none of the labels"
            pushes=0.0,  # squares of its derivatives
            last=UNKNOWN,  # the last label, if it was right
        ),
    )


def scratch(settings: AdvisedBandit, problem: Problem, sparse: bool) -> AdvisedBanditScratch:
    """Some twenty numbers a label, and a row."""
    K = problem.n_classes
    vectors = (np.zeros(K) for _ in range(11))
    return AdvisedBanditScratch._make(
        (
            np.zeros(K, dtype=np.int64),
            np.zeros(LEARNERS * K),
            np.zeros((VOICES, K)),
            *vectors,
            new_desk(K, problem.n_features, sparse),
            named(
                n=0,  # labels available
                spoke=0,  # experts heard
                square=0.0,  # X² with this row
                own=0.0,  # ‖x‖²
                step=0.0,  # ε
                scale=0.0,  # x̃ = scale·x
                level=0.0,  # λ
                v=0.0,
                joined=0,  # are a and w + v a there?
                none=0.0,  # newton's probability that no label is right
                kappa=0.0,  # stickiness
                found=0.0,  # d: finds per play of a label never hit
                top=0,  # k̂, in its place
                caller=UNKNOWN,  # the caller's label, in its place
            ),
        )
    )


# --- line 1 ---------------------------------------------------------------------------------------------------


@lean
def next_step(s: AdvisedBandit, t: Any, K: int) -> float:
    """ε, never above e₀ and never rising."""
    step = min(float(t.step), s.first, s.pace * s.reach / math.sqrt(K * (t.rounds + 1.0)))
    return min(step, s.reach * s.reach / (2.0 * t.level)) if t.level > 0.0 else step


@lean
def spent(t: Any) -> float:
    """What free rounds have cost: M + O - Ψ of them, answers still missing counted as misses."""
    return float(t.missed + t.waiting - t.psi)


# --- line 2 ---------------------------------------------------------------------------------------------------


@lean
def softmax_or_none(z: Vector, beta: float, f: Vector) -> float:
    """f_k = exp z_k/(exp β + Σ exp z). Returns what is left: the probability that no label is right."""
    shift = max(z[best(z)], beta)
    none = math.exp(beta - shift)
    total = none
    for i in range(z.shape[0]):
        f[i] = math.exp(z[i] - shift)
        total += f[i]
    for i in range(z.shape[0]):
        f[i] /= total
    return none / total


@lean
def listen(state: AdvisedBanditState, work: AdvisedBanditScratch, rd: Round, n: int, ratio: float) -> None:
    """What each expert says of the labels available, and who speaks. ratio = 0: the certified one says nothing."""
    K, now = rd.z.shape[0], work.now[0]
    labels, F = work.labels[:n], work.F[:, :n]
    for i in range(n):
        k = labels[i]
        work.w[i] = ratio * work.raw[CERTIFIED * K + k]
        work.side[i] = work.raw[SIDE * K + k]
        F[0, i] = 1.0 / n
        F[1, i] = sigmoid(now.scale * work.raw[ONE * K + k])
        F[2, i] = now.scale * work.raw[NEWTON * K + k]
        F[3, i] = now.scale * work.raw[TRACKER * K + k]
    if ratio != 0.0:
        softmax(work.w[:n], best(work.w[:n]), F[0])
    now.none = softmax_or_none(F[2], state.total[0].beta, F[2])
    softmax(F[3], best(F[3]), F[3])
    now.spoke = invite(rd.advice, labels, F, INSIDE)
    now.caller = UNKNOWN
    if now.spoke > INSIDE:
        now.caller = best(F[INSIDE])
        for i in range(n):  # a caller that is always wrong says much, and Bayes' rule has no negative weights
            F[now.spoke, i] = (1.0 - F[INSIDE, i]) / (n - 1.0) if n > 1 else 1.0
        now.spoke += 1


@lean
def blend(state: AdvisedBanditState, work: AdvisedBanditScratch, rd: Round, n: int) -> float:
    """B = Σ ω_j f_j with stickiness and optimism, and its top k̂. Returns P(k̂).

    The scores shown leave the optimism out: it is for playing, to find labels, not for predicting.
    """
    K, now, t, omega = rd.z.shape[0], work.now[0], state.total[0], state.omega
    heard = 0.0
    for j in range(now.spoke):
        heard += omega[j]
    pushed = place_of(t.last, work.labels[:n]) if t.last != UNKNOWN else UNKNOWN
    now.kappa = 0.0
    if pushed != UNKNOWN:
        now.kappa = min(max(log_odds(state.stay[0]) - max(log_odds(state.other[0]), 0.0), 0.0), MOST_STAY)
    now.found = (1.0 + t.finds) / (K + t.tries)
    more, total = OPTIMISM * t.rounds * now.found * min(1.0, K * now.found), 0.0
    for i in range(n):
        k, outside, certified = work.labels[i], 0.0, omega[0] / heard * work.F[0, i]
        for j in range(1, now.spoke):
            outside += omega[j] / heard * work.F[j, i]
        work.base[i] = outside + certified
        if i == pushed:
            outside *= math.exp(now.kappa)
        rd.z[k] = outside + certified
        if state.hits[k] == 0.0:
            new = (omega[2] * work.F[2, i] + omega[3] * work.F[3, i]) / heard
            outside += more / (1.0 + state.asked[k]) * new
        work.B[i] = outside + certified
        total += work.B[i]
    now.top = best(work.B[:n])
    return float(work.B[now.top] / total)


# --- lines 3 and 4 --------------------------------------------------------------------------------------------


@lean
def join(work: AdvisedBanditScratch, n: int) -> None:
    """a = ln B, cut and centred, and the scores w + v a. Only certified rounds need them."""
    for i in range(n):
        work.a[i] = math.log(max(work.B[i], LEAST))
    centre(work.a[:n], REACH, 1.0)
    for i in range(n):
        work.w[i] += work.now[0].v * work.a[i]
    work.now[0].joined = 1


@lean
def demand_in_v(step: float, a: Vector, p: Vector, b: Vector, c: Vector) -> None:
    """What the second moment of the gradient in v adds to b and c."""
    kappa, mu = step * PULL / (2.0 * LN2 * LN2), 0.0
    for i in range(a.shape[0]):
        mu += p[i] * a[i]
    for i in range(a.shape[0]):
        b[i] += kappa * (mu * mu - 2.0 * mu * a[i])
        c[i] += kappa * a[i] * a[i]


@lean
def is_free(s: AdvisedBandit, t: Any, step: float, sure: float) -> bool:
    """May k̂ be played without exploring? While most of the budget is left, yes; near its end only sure rounds."""
    most = s.budget * (s.reach * s.reach + 1.0 / PULL) / (2.0 * step)
    left = most - spent(t)
    return bool(most > 0.0 and left >= 1.0 and 1.0 - sure <= min(1.0, left / most))


@lean
def decide(s: AdvisedBandit, state: AdvisedBanditState, x: Row, rd: Round, work: AdvisedBanditScratch, u: float) -> int:
    """Lines 1-4."""
    K, t, now = rd.z.shape[0], state.total[0], work.now[0]
    n = available(rd.among, work.labels)
    now.n, now.own, now.step, now.level = n, sqnorm(x), next_step(s, t, K), 0.0
    now.square = max(t.square, now.own)
    size = max(now.own, (t.norms + now.own) / (t.rounds + 1.0))
    now.scale = 1.0 / math.sqrt(size) if size > TINY else 0.0
    ratio, share = (now.step / now.square, now.own / now.square) if now.square > TINY else (0.0, 0.0)
    for k in range(K):
        rd.z[k], rd.p[k] = -math.inf, 0.0
    if t.certified == 0.0:  # the certified learner knows nothing yet
        ratio = 0.0
    scores(state.W, x, work.raw if ratio != 0.0 else work.raw[: CERTIFIED * K])
    listen(state, work, rd, n, ratio)
    sure = blend(state, work, rd, n)
    w, q = work.w[:n], work.q[:n]
    now.v, now.joined = 1.0 - now.step * PULL * t.moved, 0
    free, apart = is_free(s, t, now.step, sure), now.caller != UNKNOWN
    if apart and forced(s.guard, t):
        point(q, now.caller)
        free = True
    elif free:
        point(q, now.top)
    else:
        join(work, n)
        demands.logistic(w, work.p[:n], best(w), now.step * share / 2.0, True, 1.0, 0, work.b[:n], work.c[:n])
        demand_in_v(now.step, work.a[:n], work.p[:n], work.b[:n], work.c[:n])
        now.level, _ = least_exploration(work.b[:n], work.c[:n], now.top, q)
    for i in range(n):
        rd.p[work.labels[i]] = q[i]
    mark = rd.mark[0]
    mark.last, mark.free, mark.apart = t.last, 1 if free else 0, 1 if apart and q[now.caller] < 1.0 else 0
    rd.note[0], rd.note[1], rd.note[2], rd.note[3] = now.level, now.step, 1.0 - q[now.top], 1.0 if free else 0.0
    rd.note[4], rd.note[5], rd.note[6], rd.note[7] = spent(t), now.kappa, now.found, now.v
    heard = 0.0
    for j in range(now.spoke):
        heard += state.omega[j]
    rd.note[12] = 0.0
    for j in range(now.spoke):
        rd.note[8 + min(j, INSIDE)] = (rd.note[12] if j >= INSIDE else 0.0) + state.omega[j] / heard
    return int(work.labels[draw(q, now.top, u)])


@lean
def commit(s: AdvisedBandit, state: AdvisedBanditState, rd: Round, work: AdvisedBanditScratch) -> None:
    """What the decision itself fixes, answered or not: X, Λ, ε, the mean of ‖x‖², and what is waited for."""
    t, now = state.total[0], work.now[0]
    t.square = max(t.square, now.square)
    t.step = min(t.step, now.step)
    t.rounds += 1.0
    t.norms += now.own
    t.called += now.spoke > INSIDE
    t.open += rd.mark[0].apart
    state.asked[rd.answer[0].label] += 1.0
    if rd.mark[0].free:
        t.waiting += 1.0
    else:
        t.level += now.level
        t.certified += 1.0
        t.last_step = t.step


# --- line 5 ---------------------------------------------------------------------------------------------------


@lean
def learn_certified(
    state: AdvisedBanditState, x: Row, rd: Round, work: AdvisedBanditScratch, n: int, at: int, reward: float
) -> None:
    """The certified learner: ĝ = r ⊗ x, weighted by the chance of the draw."""
    K, t, labels, w, a, p = rd.z.shape[0], state.total[0], work.labels[:n], work.w[:n], work.a[:n], work.p[:n]
    if not work.now[0].joined:  # when this was decided the round was certified, and today it would not be
        join(work, n)
    softmax(w, best(w), p)
    weight = reward / rd.p[labels[at]]
    # Centring moves all scores of a round alike, and is left out; but it moves only those available.
    level, mu = (1.0 - weight) / n if n < K else 0.0, 0.0
    for k in range(K):
        work.all[k] = 0.0
    for i in range(n):
        work.all[labels[i]] = (level - p[i] + (weight if i == at else 0.0)) / LN2
        mu += p[i] * a[i]
    t.moved += (mu - weight * a[at]) / LN2
    add_from(state.W, x, CERTIFIED * K, work.all)


@lean
def learn_free(
    s: AdvisedBandit,
    state: AdvisedBanditState,
    x: Row,
    rd: Round,
    work: AdvisedBanditScratch,
    n: int,
    at: int,
    reward: float,
) -> None:
    """A free round's answer: a miss is counted, a hit is a round of the side run, which says what it is worth."""
    K, t, now, labels, z, p = rd.z.shape[0], state.total[0], work.now[0], work.labels[:n], work.side[:n], work.p[:n]
    t.waiting -= 1.0
    t.missed += 1.0 - reward
    square = max(t.square, now.own)
    eta = t.side_step / square if square > TINY else 0.0
    if reward > 0.0:
        for i in range(n):
            z[i] *= eta
        top = best(z)
        softmax(z, top, p)
        loss, own = (z[top] - z[at] - math.log(p[top])) / LN2, 0.0
        for k in range(K):
            work.all[k] = 0.0
        for i in range(n):
            e = p[i] - (1.0 if i == at else 0.0)
            own += e * e
            work.all[labels[i]] = -reward * e / LN2
        t.psi += reward * loss - reward * reward * eta * now.own / (2.0 * LN2 * LN2) * own
        add_from(state.W, x, SIDE * K, work.all)
    over = t.missed - t.psi
    if over > 0.0:
        t.side_step = min(t.side_step, s.reach * s.reach / (2.0 * over))


@lean
def believe(omega: Vector, F: Matrix, spoke: int, at: int, reward: float) -> None:
    """Bayes' rule on the answer, then a share for all, as large as the answer says much."""
    total, after, thought = 0.0, 0.0, 0.0
    for j in range(spoke):
        phi = min(max(F[j, at], SURE), 1.0 - SURE)
        total += omega[j]
        if reward == 1.0:
            omega[j] *= phi
        elif reward == 0.0:
            omega[j] *= 1.0 - phi
        else:
            omega[j] *= math.exp(reward * math.log(phi) + (1.0 - reward) * math.log(1.0 - phi))
        after += omega[j]
    for j in range(spoke):
        thought += omega[j] / after * F[j, at]
    share = SHARE * max(reward, min(1.0, EVIDENCE * thought))
    for j in range(spoke):
        omega[j] = total * ((1.0 - share) * omega[j] / after + share / spoke)


@lean
def count(state: AdvisedBanditState, rd: Round, work: AdvisedBanditScratch, n: int, at: int, reward: float) -> None:
    """Who was ahead: where an expert would have played another label, a miss counts for it and a hit against it."""
    t, now = state.total[0], work.now[0]
    way = 1.0 if reward < 0.5 else -1.0
    for j in range(INSIDE):
        if best(work.F[j, :n]) != at:
            state.ahead[j] += way
    if now.caller != UNKNOWN:
        t.open -= rd.mark[0].apart
        if now.caller != at:
            t.lead += way
        t.caller += (now.caller == at) == (reward < 0.5)


@lean
def remember(
    state: AdvisedBanditState, rd: Round, work: AdvisedBanditScratch, n: int, label: int, reward: float
) -> None:
    """Stickiness, with the label that was the last right one when this was decided; and labels found."""
    t, thought, at = state.total[0], 0.0, place_of(label, work.labels[:n])
    for i in range(n):
        thought += work.base[i]
    thought = work.base[at] / thought
    watch(state.stay[0] if label == rd.mark[0].last else state.other[0], reward, thought)
    t.last = label if reward >= 0.5 else UNKNOWN
    if state.hits[label] == 0.0:
        t.tries += 1.0
        if reward > 0.0:
            t.finds, t.tries = (t.finds + 1.0) / 2.0, t.tries / 2.0
    state.hits[label] += reward
    state.asked[label] = 0.0


@lean
def advise(
    state: AdvisedBanditState, x: Row, K: int, work: AdvisedBanditScratch, n: int, at: int, reward: float
) -> None:
    """Newton and the tracker learn from the answer: what it says of their probabilities, unweighted."""
    t, now, r, labels = state.total[0], work.now[0], work.r[:n], work.labels[:n]
    small = SMALL_MISS * min(1.0, 20.0 / K)
    for j in range(2, INSIDE):
        f = work.F[j, :n]
        pull = pull_of(f[at], reward)
        size = reward * (1.0 - f[at]) + (1.0 - reward) * f[at]
        if reward == 1.0:
            skip = size < SMALL_HIT
        elif reward == 0.0:
            skip = size < small
        else:
            skip = abs(pull) < small
        if skip:
            continue
        rewarded(f, at, reward, r)
        if j == 2:
            none = -pull * now.none
            t.pushes += none * none
            t.beta -= none / math.sqrt(1.0 + t.pushes)
            h = CURVATURE / K * size
            teach(state.W, NEWTON * K, x, now.scale, state.P, state.A, math.inf, state.G[0], labels, r, h, work.desk)
        else:
            h = TRACKING * size
            teach(
                state.W, TRACKER * K, x, now.scale, state.P[:0], state.C, HARDEST, state.G[1], labels, r, h, work.desk
            )


@lean
def learn(
    s: AdvisedBandit, state: AdvisedBanditState, x: Row, rd: Round, work: AdvisedBanditScratch, label: int, truth: int
) -> None:
    """Line 5: the certified learner or the side run, who is heard, what was found, and the advisers."""
    K, n, now, reward = rd.z.shape[0], work.now[0].n, work.now[0], rd.answer[0].reward
    at = place_of(label, work.labels[:n])
    if rd.mark[0].free:
        learn_free(s, state, x, rd, work, n, at, reward)
    else:
        learn_certified(state, x, rd, work, n, at, reward)
    count(state, rd, work, n, at, reward)
    remember(state, rd, work, n, label, reward)
    believe(state.omega, work.F, now.spoke, at, reward)
    if now.scale > 0.0:
        add_one(state.W, x, ONE * K + label, now.scale * (reward - work.F[1, at]))
        advise(state, x, K, work, n, at, reward)
