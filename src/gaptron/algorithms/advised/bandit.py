"""Advised Gaptron under bandit feedback: lines 1-5 of the pseudocode, where only the label played is answered."""

import math
from typing import Any, NamedTuple

import numpy as np

from gaptron.algorithms.advised import council
from gaptron.algorithms.advised.council import (
    COPIES,
    MOST_STAY,
    TINY,
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
from gaptron.kernels.likelihood import pull_of, rewarded
from gaptron.kernels.losses import LN2
from gaptron.kernels.oracles import sigmoid
from gaptron.kernels.rounding import counts, put_from
from gaptron.kernels.rows import add_one, scores, zeros
from gaptron.kernels.simplex import best, draw, inverse_gap, least_exploration, point, softmax
from gaptron.kernels.vectors import Blocks
from gaptron.types import UNCOUNTED, UNKNOWN, Integers, Matrix, Problem, Round, Row, Vector, named

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
CURIOSITY = 1000.0  # γ/√t: how rarely other labels are tried in free rounds, once answers were worth a fraction
HARDEST = 0.5  # the tracker's precision never rises above this, so that it goes on learning


class AdvisedBandit(NamedTuple):
    """The settings under bandit feedback."""

    reach: float  # D > 0: the ‖U‖X that steps and budget are balanced for
    budget: float  # θ ≥ 0: how much free rounds may cost, in terms of what the certified ones cost; 0: none is free
    pace: float  # c > 0: ε ≤ cD/√(Kt)
    guard: float  # at most 1.1 times the caller's mistakes and this many more; infinite: no guard
    delay: int  # τ ≥ 0: answers that may be missing at any time
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
    asked: Vector  # plays of every label since the last answer about it; with delay, expected ones
    stay: Any  # whether the last right label is right again more often than thought
    other: Any  # the same of all other labels
    total: Any
    rounding: Any = UNCOUNTED  # what single precision has cost the two certified ones


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
    due: Any  # what a certified round owes the proof if its answer is late
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
            missing=0.0,  # of them not yet answered
            most_missing=0.0,  # at any decision
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
            partial=0,  # was an answer neither right nor wrong?
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
                joined=0,  # are a, w + v a and p̃ there?
                expected=0.0,  # n̂: certified rounds that may miss its answer, as paid for in its demands
                number=0.0,  # which certified round it is
                kappa=0.0,  # κ of W
                kappa_v=0.0,  # and of v
            ),
            named(
                n=0,  # labels available
                spoke=0,  # experts heard
                square=0.0,  # X² with this row
                own=0.0,  # ‖x‖²
                step=0.0,  # ε
                ratio=0.0,  # ε/X², or 0 while the certified learner knows nothing
                share=0.0,  # ‖x‖²/X²
                scale=0.0,  # x̃ = scale·x
                heard=0.0,  # Σ ω_j of those who speak
                blend=0.0,  # Σ B
                level=0.0,  # λ
                v=0.0,
                none=0.0,  # newton's probability that no label is right
                kappa=0.0,  # stickiness
                found=0.0,  # d: finds per play of a label never hit
                top=0,  # k̂, in its place
                caller=UNKNOWN,  # the caller's label, in its place
            ),
        )
    )


# --- line 1 ---------------------------------------------------------------------------------------------------


@jit
def next_step(s: AdvisedBandit, t: Any, K: int) -> float:
    """ε, never above e₀ and never rising."""
    step = min(float(t.step), s.first, s.pace * s.reach / math.sqrt(K * (t.rounds + 1.0)))
    if s.delay > 0:
        step = min(step, s.first / (1.0 + 12.0 * (missing_at_most(t) + expected(s, t)) / K))
    return min(step, s.reach * s.reach / (2.0 * t.level)) if t.level > 0.0 else step


@jit
def missing_at_most(t: Any) -> float:
    """The largest number of certified rounds that were without an answer when a round was decided, this one too."""
    return float(max(t.most_missing, t.missing))


@jit
def expected(s: AdvisedBandit, t: Any) -> float:
    """n̂: how many certified rounds are expected to miss this one's answer. Chosen before the draw."""
    return min(float(s.delay), 2.0 * missing_at_most(t) + 2.0)


@jit
def spent(t: Any) -> float:
    """What free rounds have cost: M + O - Ψ of them, answers still missing counted as misses."""
    return float(t.missed + t.waiting - t.psi)


# --- line 2 ---------------------------------------------------------------------------------------------------


@jit
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


@inner
def listen(state: AdvisedBanditState, work: AdvisedBanditScratch, rd: Round, n: int) -> None:
    """What each expert says of the labels available, and who speaks."""
    K, now = rd.z.shape[0], work.now[0]
    labels, F = work.labels[:n], work.F
    for i in range(n):
        k = labels[i]
        work.w[i] = now.ratio * work.raw[CERTIFIED * K + k]
        work.side[i] = work.raw[SIDE * K + k]
        F[0, i] = 1.0 / n
        F[1, i] = sigmoid(now.scale * work.raw[ONE * K + k])
        F[2, i] = now.scale * work.raw[NEWTON * K + k]
        F[3, i] = now.scale * work.raw[TRACKER * K + k]
    if now.ratio != 0.0:
        softmax(work.w[:n], best(work.w[:n]), F[0, :n])
    now.none = softmax_or_none(F[2, :n], state.total[0].beta, F[2, :n])
    softmax(F[3, :n], best(F[3, :n]), F[3, :n])
    now.spoke = invite(rd.advice, labels, F, INSIDE)
    now.caller = UNKNOWN
    if now.spoke > INSIDE:
        now.caller = best(F[INSIDE, :n])
        for i in range(n):  # a caller that is always wrong says much, and Bayes' rule has no negative weights
            F[now.spoke, i] = (1.0 - F[INSIDE, i]) / (n - 1.0) if n > 1 else 1.0
        now.spoke += 1


@inner
def blend(state: AdvisedBanditState, work: AdvisedBanditScratch, rd: Round, n: int) -> float:
    """B = Σ ω_j f_j with stickiness and optimism, and its top k̂. Returns P(k̂).

    The scores shown leave the optimism out: it is for playing, to find labels, not for predicting.
    """
    K, now, t, omega = rd.z.shape[0], work.now[0], state.total[0], state.omega
    now.heard = 0.0
    for j in range(now.spoke):
        now.heard += omega[j]
    heard = now.heard
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
    now.top, now.blend = best(work.B[:n]), total
    return float(work.B[now.top] / total)


# --- lines 3 and 4 --------------------------------------------------------------------------------------------


@inner
def join(work: AdvisedBanditScratch, n: int) -> None:
    """a = ln B, cut and centred, and the scores w + v a. Only certified rounds need them."""
    for i in range(n):
        work.a[i] = math.log(max(work.B[i], LEAST))
    centre(work.a[:n], REACH, 1.0)
    for i in range(n):
        work.w[i] += work.now[0].v * work.a[i]
    work.due[0].joined = 1


@jit
def demand_in_v(step: float, a: Vector, p: Vector, b: Vector, c: Vector) -> None:
    """What the second moment of the gradient in v adds to b and c."""
    kappa, mu = step * PULL / (2.0 * LN2 * LN2), 0.0
    for i in range(a.shape[0]):
        mu += p[i] * a[i]
    for i in range(a.shape[0]):
        b[i] += kappa * (mu * mu - 2.0 * mu * a[i])
        c[i] += kappa * a[i] * a[i]


@jit
def late_moment(due: Any, p: Vector, a: Vector, i: int, n: int) -> float:
    """κ‖p̃ - e_i‖² + κ_v(μ - a_i)², or the same of the gradient when the answer is no, whichever is larger.

    The second, because a "no" may be all that is left to come when a "yes" would have come by now.
    """
    square, mu = 0.0, 0.0
    for k in range(n):
        square += p[k] * p[k]
        mu += p[k] * a[k]
    own = (1.0 - p[i]) * (1.0 - p[i]) + (square - p[i] * p[i])
    apart = max(abs(mu - a[i]), abs(mu))
    return float(due.kappa * max(own, square - 1.0 / n) + due.kappa_v * apart * apart)


@inner
def demand_if_late(s: AdvisedBandit, t: Any, work: AdvisedBanditScratch, n: int) -> None:
    """What answers that are missing, and this one if it is late, add to b."""
    due, now = work.due[0], work.now[0]
    due.expected, due.number = expected(s, t), t.certified + 1.0
    due.kappa = now.step * now.share / (2.0 * LN2 * LN2)
    due.kappa_v = now.step * PULL / (2.0 * LN2 * LN2)
    late = t.missing + due.expected
    for i in range(n):
        work.b[i] += late * late_moment(due, work.p, work.a, i, n)


@jit
def is_free(s: AdvisedBandit, t: Any, step: float, sure: float) -> bool:
    """May k̂ be played without exploring? While most of the budget is left, yes; near its end only sure rounds."""
    most = s.budget * (s.reach * s.reach + 1.0 / PULL) / (2.0 * step)
    left = most - spent(t)
    return bool(most > 0.0 and left >= 1.0 and 1.0 - sure <= min(1.0, left / most))


@inner
def decide(s: AdvisedBandit, state: AdvisedBanditState, x: Row, rd: Round, work: AdvisedBanditScratch, u: float) -> int:
    """Lines 1-4."""
    K, t, now = rd.z.shape[0], state.total[0], work.now[0]
    n = available(rd.among, work.labels)
    now.n, now.step, now.level = n, next_step(s, t, K), 0.0
    measure(x, t, now)
    for k in range(K):
        rd.z[k], rd.p[k] = -math.inf, 0.0
    if t.certified == 0.0:  # the certified learner knows nothing yet
        now.ratio = 0.0
    scores(state.W, x, work.raw if now.ratio != 0.0 else work.raw[: CERTIFIED * K])
    listen(state, work, rd, n)
    sure = blend(state, work, rd, n)
    w, q = work.w[:n], work.q[:n]
    now.v, work.due[0].joined = 1.0 - now.step * PULL * t.moved, 0
    free, apart = is_free(s, t, now.step, sure), now.caller != UNKNOWN
    if apart and forced(s.guard, t):
        point(q, now.caller)
        free = True
    elif free and t.partial:
        # Advice that fits a steady fraction exactly stops learning, and nothing else would ever be tried.
        inverse_gap(work.B[:n], work.B[:n], n, now.top, CURIOSITY * math.sqrt(t.rounds + 1.0) / now.blend, q)
    elif free:
        point(q, now.top)
    else:
        join(work, n)
        demands.logistic(w, work.p[:n], best(w), now.step * now.share / 2.0, True, 1.0, 0, work.b[:n], work.c[:n])
        demand_in_v(now.step, work.a[:n], work.p[:n], work.b[:n], work.c[:n])
        if s.delay > 0:
            demand_if_late(s, t, work, n)
        now.level, _ = least_exploration(work.b[:n], work.c[:n], now.top, q)
    for i in range(n):
        rd.p[work.labels[i]] = q[i]
    mark = rd.mark[0]
    mark.last, mark.free, mark.apart = t.last, 1 if free else 0, 1 if apart and q[now.caller] < 1.0 else 0
    write_note(rd.note, now, spent(t), state.omega, 1.0 - q[now.top], mark.free)
    return int(work.labels[draw(q, now.top, u)])


@jit
def write_note(note: Vector, now: Any, cost: float, omega: Vector, explored: float, free: int) -> None:
    """What a trace keeps of the round."""
    note[council.LEVEL], note[council.STEP], note[council.EXPLORED], note[council.FREE] = (
        now.level,
        now.step,
        explored,
        free,
    )
    note[council.COST], note[council.STICKINESS] = cost, now.kappa
    note[council.DISCOVERY], note[council.V] = now.found, now.v
    for j in range(INSIDE):  # in the order of EXPERTS
        note[council.CERTIFIED + j] = omega[j] / now.heard
    note[council.CALLER] = 0.0
    for j in range(INSIDE, now.spoke):
        note[council.CALLER] += omega[j] / now.heard


@inner
def commit(s: AdvisedBandit, state: AdvisedBanditState, rd: Round, work: AdvisedBanditScratch) -> None:
    """What the decision itself fixes, answered or not; Λ, and what is waited for."""
    t, now = state.total[0], work.now[0]
    count_row(t, now, rd.mark[0].apart, now.spoke > INSIDE)
    if s.delay > 0 and not rd.mark[0].free:  # the proof: no decision depends on this draw before its answer
        for k in range(rd.p.shape[0]):
            state.asked[k] += rd.p[k]
    else:
        state.asked[rd.answer[0].label] += 1.0
    if rd.mark[0].free:
        t.waiting += 1.0
    else:
        t.level += now.level
        t.certified += 1.0
        t.most_missing = max(t.most_missing, t.missing)
        t.missing += 1.0
        t.last_step = t.step


# --- line 5 ---------------------------------------------------------------------------------------------------


@inner
def charge(t: Any, work: AdvisedBanditScratch, n: int, at: int, reward: float) -> None:
    """More certified rounds missed this answer than its demands had paid for: the rest is added to Λ."""
    due, largest = work.due[0], 0.0
    more = t.certified - due.number - due.expected
    if more > 0.0:
        for i in range(n):
            if reward < 1.0 or i == at:  # the labels that may be the right one
                largest = max(largest, late_moment(due, work.p, work.a, i, n))
        t.level += more * largest


@inner
def learn_certified(
    s: AdvisedBandit,
    state: AdvisedBanditState,
    x: Row,
    rd: Round,
    work: AdvisedBanditScratch,
    n: int,
    at: int,
    reward: float,
) -> None:
    """The certified learner: ĝ = r ⊗ x, weighted by the chance of the draw."""
    K, t, now, labels, w, a, p = (
        rd.z.shape[0],
        state.total[0],
        work.now[0],
        work.labels[:n],
        work.w[:n],
        work.a[:n],
        work.p[:n],
    )
    if not work.due[0].joined:  # when this was decided the round was certified, and today it would not be
        join(work, n)
        softmax(w, best(w), p)
    elif s.delay > 0:
        charge(t, work, n, at, reward)
    t.missing -= 1.0
    weight = reward / rd.p[labels[at]]
    # Centring moves all scores of a round alike, and is left out; but it moves only those available, and rounding that
    # is counted is that of all the sums hold.
    level, mu = (1.0 - weight) / n if n < K or counts(state.W) else 0.0, 0.0
    for k in range(K):
        work.all[k] = 0.0
    for i in range(n):
        work.all[labels[i]] = (level - p[i] + (weight if i == at else 0.0)) / LN2
        mu += p[i] * a[i]
    t.moved += (mu - weight * a[at]) / LN2
    eta = now.step / now.square if now.square > TINY else 0.0
    put_from(state.W, x, CERTIFIED * K, work.all, state.rounding, eta)


@inner
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
        put_from(state.W, x, SIDE * K, work.all, state.rounding, eta)
    over = t.missed - t.psi
    if over > 0.0:
        t.side_step = min(t.side_step, s.reach * s.reach / (2.0 * over))


@jit
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


@inner
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


@inner
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


@inner
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


@inner
def learn(
    s: AdvisedBandit, state: AdvisedBanditState, x: Row, rd: Round, work: AdvisedBanditScratch, label: int, truth: int
) -> None:
    """Line 5: the certified learner or the side run, who is heard, what was found, and the advisers."""
    K, n, now, reward = rd.z.shape[0], work.now[0].n, work.now[0], rd.answer[0].reward
    at = place_of(label, work.labels[:n])
    if 0.0 < reward < 1.0:
        state.total[0].partial = 1
    if rd.mark[0].free:
        learn_free(s, state, x, rd, work, n, at, reward)
    else:
        learn_certified(s, state, x, rd, work, n, at, reward)
    count(state, rd, work, n, at, reward)
    remember(state, rd, work, n, label, reward)
    believe(state.omega, work.F, now.spoke, at, reward)
    if now.scale > 0.0:
        add_one(state.W, x, ONE * K + label, now.scale * (reward - work.F[1, at]))
        advise(state, x, K, work, n, at, reward)
