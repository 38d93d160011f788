"""Frugal Gaptron: the least exploration that the proof allows.

This library, docs page "Frugal Gaptron" (2026); it builds on van der Hoeven 2020, Algorithm 1, on the decoders of
Sakaue et al. 2024 and Shibukawa et al. 2025, and on Gappletron (van der Hoeven et al. 2021).
Feedback: full, bandit.   Cost: O(dK) a round.   Needs no horizon, no radius and no norm in advance.

    Λ = 0;  for t = 1, 2, ...
      1   see x;  X = max ‖x_s‖ so far;  ε = e₀, bandit: min{e₀, σ²/(2Λ)};  η = ε/X²
          z_k = ⟨W_k, x⟩ with W = -η Σ ĝ;  y* = argmax z
      2   for every label y the least q(y) that keeps its surrogate gap
              gap(y) = r(1 - q(y)) - ℓ^y + (η/2) E‖ĝ‖²  at most λ
          λ = 0 if these demands sum to at most 1 (what is left goes to y*, or to the labels that tie for it), else the
          least λ that makes them
      3   play y' ~ q;  Λ ← Λ + λ
      4   ĝ = c^y ⊗ x                                        bandit: (B + 1[y' = y]/q(y')·(c^{y'} - B)) ⊗ x

Then E[M_T] ≤ (L_T(U) + ‖U‖²/(2η_T) + Λ_T)/r. With full information λ is never positive, and the bound holds on every
path for all U at once; under bandit feedback it holds in expectation, for U fixed before the draws.

The baselines B are p̃ (logistic) and e_y* (hinge, where m* > β), centred over labels; otherwise B = 0. Centring shifts
all scores of a round by the same number and changes no prediction. The sums here leave it out and `weights` adds it.

Labels that are not available in a round are left out of its scores, softmax, margins, demands and draw. If n labels are
available, the theorem holds with n for K in line 2 and U's loss over these labels. Centring is then over these labels
only, which does change predictions, and the sums include it. A reward s with 0 < s < 1 replaces 1[y' = y] in line 4.

Rounds may bring their own actions, each with its own features φ_k (docs page "Actions with features"): w is one row,
z_k = ⟨w, φ_k⟩, X is Δ, the largest distance of two actions of a round so far, and line 4 adds Σ r_k φ_k with r as for
labels, but centred. e₀ = 4(2 - r) ln²2, under bandit feedback divided by the largest number of actions so far.

Late feedback with full information: W of line 4 is that of the round in which the feedback arrives, q that of the
decision. Then Σ(1 - q(y)) ≤ (L(U) + ‖U‖²/(2η) + G)/r over the rounds learned from, for every order and delay, on every
path. G = Σ gap(y) at that W and that q is now in the state; without delay no gap is positive.

Example:

    >>> from gaptron import Learner
    >>> from gaptron.streams import open_stream, prepare
    >>> stream = prepare(open_stream("digits"), unit_norm=True)
    >>> learner = Learner("frugal-gaptron", classes=stream.classes, seed=0)
    >>> trace = learner.play(stream)
    >>> round(trace.expected_mistakes)
    199
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
from gaptron.kernels import gaps
from gaptron.kernels.compile.jit import by_rows, inner, jit
from gaptron.kernels.losses import HINGE, LN2, LOGISTIC, confident, descent, margin
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import add, by_label, count, scores, sqnorm, zeros
from gaptron.kernels.simplex import best, count_available, draw, least_exploration, mask_unavailable, multiply
from gaptron.types import (
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
    available=True,
    rewards=True,
    actions=True,
    growth=Growth(centred=("W",)),
    single=("W",),
)
TINY = 1e-280  # no step is taken while all ‖x‖² are below this
NOTES = ("level", "step", "explored", "solved")  # λ, ε = ηX², 1 - q(y*), whether λ > 0 was needed
LEVEL, STEP, EXPLORED, SOLVED = range(len(NOTES))


class Frugal(NamedTuple):
    """The settings."""

    loss: int  # logistic, hinge or smooth hinge
    scale: float  # σ > 0  bandit: the ‖U‖X that the step is tuned for
    risk: float  # r ≥ 1  full information: the cost of a mistake in the gap
    delay: int  # τ ≥ 0  the most decisions that wait for feedback at any time
    beta: float  # β  margin above which the truncated hinge is zero
    first: float  # e₀     the largest ε = ηX²
    bandit: bool


class FrugalState(NamedTuple):
    """The state."""

    W: Matrix  # -Σ ĝ, without the factor η
    # square: X², level: Λ, step: ε of the next round, last: ε of the last round, gap: G
    total: Any


def init(settings: Frugal, problem: Problem, sparse: bool) -> FrugalState:
    """Line 0: sums of zero."""
    W = zeros(problem.n_classes, problem.n_features, sparse)
    return FrugalState(W, named(square=0.0, level=0.0, step=settings.first, last=settings.first, gap=0.0))


class FrugalScratch(NamedTuple):
    """Work space."""

    p: Vector  # p̃, the softmax of the scores
    b: Vector  # gap(y) = b - q + c/q of each label
    c: Vector
    r: Vector  # coefficients of the update
    now: Any  # of this round: X², λ and ε


def scratch(settings: Frugal, problem: Problem, sparse: bool) -> FrugalScratch:
    """Four numbers per label, and three for the round."""
    K = problem.n_classes
    return FrugalScratch(np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K), named(square=0.0, level=0.0, step=0.0))


def weights(state: FrugalState, sparse: bool) -> Matrix:
    """W of the next round, if its example is no longer than those before: centred over labels, times η."""
    total, W = state.total[0], by_label(state.W, sparse)
    if len(W) > 1:  # one row is that of actions
        W = W - W.mean(axis=0)
    return np.asarray(W * (total.step / total.square if total.square > TINY else 0.0))


def grown(settings: Frugal, old: FrugalState, new: FrugalState, places: Integers, labels: bool, sparse: bool) -> None:
    """The step is at most the first one for the new number of labels, and at most the one before."""
    new.total[0].step = min(old.total[0].step, settings.first)


def late_fields(settings: Frugal) -> tuple[str, ...]:
    """The proof for late feedback needs the gradient at the decision's own weights."""
    return ("z", "p", "b", "now") if settings.delay else ()


def late_proof(settings: Frugal) -> bool:
    """With full information G covers every delay, unless `delay` selects the other proof."""
    return not settings.bandit and settings.delay == 0


# --- theory -----------------------------------------------------------------------------------------------


def largest_step(loss: Loss, K: int, risk: float, actions: bool = False) -> float:
    """The largest ε = ηX² for which λ = 0 in full information, whatever the scores."""
    if loss is Loss.LOGISTIC:
        return (4 if actions else 2) * (2 - risk) * LN2**2
    hinge = 1 - risk * (K - 1) / K
    return hinge if loss is Loss.HINGE else hinge / 4


def recommend(
    problem: Problem,
    scale: float = 1.0,
    risk: float = 1.0,
    delay: int = 0,
    beta: float | None = None,
) -> Frugal:
    """The largest step that keeps λ = 0 (full information), or at first 1/K of it (bandit). Needs no tuning."""
    K, bandit = problem.n_classes, problem.feedback is Feedback.BANDIT
    if not 1e-100 <= scale <= 1e100:
        raise SettingError(f"scale={scale!r} must lie in [1e-100, 1e100]")
    if not (0 <= delay < math.inf and delay == int(delay)):
        raise SettingError(f"delay={delay!r} must be a whole number of at least 0")
    top = 2.0 if problem.loss is Loss.LOGISTIC else K / (K - 1)
    if bandit and risk != 1.0:
        raise SettingError("risk must be 1 under bandit feedback: other values are for full information")
    if not 1.0 <= risk < top:
        raise SettingError(f"risk={risk!r} must lie in [1, {top:.6g}) for the {problem.loss.word} loss, K = {K}")
    if problem.actions:
        if delay or beta is not None:
            raise SettingError("delay and beta have no theorem for actions with features: leave them out")
        first = largest_step(problem.loss, K, risk, actions=True)
        return Frugal(int(problem.loss), float(scale), float(risk), 0, 0.0, first, bandit)
    low, high = 0.0 if bandit else risk / K, risk * (K - 1) / K
    if (
        beta is None
    ):  # every β in the range has a proof; with full information 2/K made the fewest mistakes on 31 data sets
        beta = high if bandit else min(2 * risk / K, high)
    if not low * (1 - 1e-12) <= beta <= high * (1 + 1e-12) or beta == 0.0:
        raise SettingError(f"beta={beta!r} must lie in [{low:.6g}, {high:.6g}] and be positive, for K = {K}")
    first = largest_step(problem.loss, K, risk)
    first = first / K if bandit else first / (1 + 2 * delay)
    return Frugal(int(problem.loss), float(scale), float(risk), int(delay), float(beta), first, bandit)


def theorem(problem: Problem, settings: Frugal) -> str:
    """The source of the certificate."""
    late = f", up to {settings.delay} decisions late" if settings.delay else ""
    return f"certificate of Frugal Gaptron{late}"


def certificate(settings: Frugal, state: FrugalState) -> Certificate:
    """C_T(U) = ‖U‖²X²/(2ε_T) + Λ_T, from sums over the run; Λ_T = max{0, G} where G covers the delay."""
    total = state.total[0]
    level = max(0.0, total.gap) if late_proof(settings) else total.level
    return Certificate(float(level), float(total.last), math.sqrt(total.square), settings.risk, settings.bandit)


def bound(problem: Problem, settings: Frugal, comparator: Comparator) -> float:
    """The bound before the run: with full information (L_T(U) + ‖U‖²X²/(2e₀))/r, for every U on every path.

    Under bandit feedback L_T(U) + max{‖U‖²X²/(2e₀), ω²Λ} + Λ, ω = ‖U‖X/σ, with the largest Λ of any path; in
    expectation, for U fixed before the draws. The certificate is at most this number.
    """
    (X,) = problem.need("norm")
    if problem.actions:
        return bound_of_actions(settings, 2 * X * comparator.norm, comparator)
    XU = X * comparator.norm
    if not settings.bandit:
        return (comparator.loss + XU**2 / (2 * settings.first)) / settings.risk
    level = largest_level(problem, settings, comparator.rounds)
    return comparator.loss + max(XU**2 / (2 * settings.first), (XU / settings.scale) ** 2 * level) + level


def bound_of_actions(settings: Frugal, spread: float, comparator: Comparator) -> float:
    """The bound before the run, where rounds bring their own actions; spread = Δ‖u‖ ≤ 2X‖u‖.

    Under bandit feedback Λ_T ≤ σ√(0.43 Σ(K_t - 1)) + 3 + σ²K̄/ln²2 on every path, K̄ = max K_t.
    """
    first = settings.first
    if not settings.bandit:
        return (comparator.loss + spread**2 / (2 * first)) / settings.risk
    sigma, most = settings.scale, comparator.most_actions
    level = sigma * math.sqrt(0.43 * (comparator.actions - comparator.rounds)) + 3 + sigma**2 * most / LN2**2
    return comparator.loss + max(spread**2 * most / (2 * first), (spread / sigma) ** 2 * level) + level


def largest_level(problem: Problem, settings: Frugal, rounds: int) -> float:
    """Λ_T ≤ σ√(αT) + λ̄ on every path, and for the logistic loss + σ²/(2e₁)."""
    K, sigma, tau = problem.n_classes, settings.scale, settings.delay
    if problem.loss is Loss.LOGISTIC:
        alpha, most, early = 0.43 * (K - 1) + 4.2 * tau, 2.0, sigma**2 / (LN2**2 / K)
    elif problem.loss is Loss.SMOOTH_HINGE:
        alpha, most, early = 2 * K + 8 * tau, 1 / (2 * K), 0.0
    else:
        largest = settings.beta > 1 - 1 / K - 1e-9
        alpha = (K / 2 if largest else (K - 1) / settings.beta) + 2 * tau
        most, early = 1 / (2 * K) if largest else 1 / (settings.beta * K), 0.0
    most += tau * settings.first * {Loss.LOGISTIC: 4.2, Loss.HINGE: 2.0, Loss.SMOOTH_HINGE: 8.0}[problem.loss]
    return sigma * math.sqrt(alpha * rounds) + most + early


# --- the algorithm ------------------------------------------------------------------------------------------


@jit
def demands_hinge(s: Frugal, z: Vector, K: int, top: int, h: float, b: Vector, c: Vector) -> None:
    """Line 2 for the hinges: b and c of every label, from the margins. K labels are available."""
    baseline = s.loss == HINGE and confident(z, top, s.beta)
    for y in range(z.shape[0]):
        if z[y] == -math.inf:
            b[y], c[y] = -math.inf, 0.0
            continue
        m = margin(z, top) if y == top else z[y] - z[top]
        if s.loss == HINGE:
            loss = 0.0 if baseline and y == top else max(1.0 - m, 0.0)
            square = 2.0 if loss > 0.0 else 0.0  # ‖c^y‖²
        elif m <= 0.0:
            loss, square = 1.0 - 2.0 * m, 8.0
        else:
            loss = max(1.0 - m, 0.0) ** 2
            square = 8.0 * loss
        if not s.bandit:
            b[y] = 1.0 - (loss - (1.0 + 2.0 * s.delay) * h * square) / s.risk
            c[y] = 0.0
        elif baseline:  # against the baseline e_y* - 1/K
            b[y] = 1.0 - loss + h * ((1.0 / K - 1.0 if y == top else 1.0 + 1.0 / K) + 2.0 * s.delay * square)
            c[y] = h * (1.0 - 1.0 / K)
        else:
            b[y] = 1.0 - loss + 2.0 * s.delay * h * square
            c[y] = h * square


def _largest(s: Frugal, x: Row) -> float:
    return math.inf


def _largest_actions(s: Frugal, x: Any) -> float:
    return s.first / count(x.rows) if s.bandit else s.first


largest = by_rows(_largest, _largest, _largest_actions)
largest.__doc__ = "Return the largest ε that the number of actions of this round allows; of labels it never changes."


@inner
def fix_step(total: Any, own: float, most: float, now: Any) -> tuple[float, float]:
    """X and ε ≤ most of line 1 into `now` for an example of ‖x‖² = own. Returns η and η‖x‖²/2."""
    square, step = max(total[0].square, own), min(total[0].step, most)
    now[0].square, now[0].step = square, step
    return (step / square, step * (own / square) / 2.0) if square > TINY else (0.0, 0.0)


@inner
def keep_level(risk: float, available: Flags, b: Vector, p: Vector, now: Any, level: float) -> float:
    """λ of the round, which `now` holds until `commit`.

    Where X² is too small to divide by there is no update, and the round costs its whole gap.
    """
    level *= risk
    if 0.0 < now[0].square <= TINY:
        now[0].square = 0.0
        for y in range(p.shape[0]):
            if available[y]:
                b[y] = 1.0
                level = max(level, risk * (1.0 - p[y]))
    now[0].level = level
    return level


def _demands(s: Frugal, x: Row, own: float, z: Vector, n: int, top: int, eta: float, h: float, work: Any) -> None:
    if s.loss == LOGISTIC:
        gaps.logistic(z, work.p, top, h, s.bandit, s.risk, s.delay, work.b, work.c)
    else:
        demands_hinge(s, z, n, top, h, work.b, work.c)


def _demands_actions(
    s: Frugal, x: Any, own: float, z: Vector, n: int, top: int, eta: float, h: float, work: Any
) -> None:
    gaps.logistic_actions(x, own, z, work.p, top, eta, s.bandit, s.risk, work.b, work.c)


demands = by_rows(_demands, _demands, _demands_actions)
demands.__doc__ = "Line 2: b and c of every label, and p̃ of the logistic loss."


def decide(s: Frugal, state: FrugalState, x: Row, rd: Round, work: FrugalScratch, u: float) -> int:
    """Lines 1-3."""
    own = sqnorm(x)
    eta, h = fix_step(state.total, own, largest(s, x), work.now)
    scores(state.W, x, rd.z)
    multiply(rd.z, eta)
    n = mask_unavailable(rd.z, rd.available)
    top = best(rd.z)
    demands(s, x, own, rd.z, n, top, eta, h, work)
    level, solved = least_exploration(work.b, work.c, rd.z, top, rd.p)
    level = keep_level(s.risk, rd.available, work.b, rd.p, work.now, level)
    rd.note[LEVEL], rd.note[STEP] = level, work.now[0].step
    rd.note[EXPLORED], rd.note[SOLVED] = 1.0 - rd.p[top], 1.0 if solved else 0.0
    return draw(rd.p, top, u)


def commit(s: Frugal, state: FrugalState, rd: Round, work: FrugalScratch) -> None:
    """Line 3: update X and Λ with the decision, and from them the next ε."""
    total, now = state.total[0], work.now[0]
    total.square = max(total.square, now.square)
    total.level += now.level
    total.last = now.step
    if s.bandit:
        total.step = now.step
        if total.level > 0.0:
            total.step = min(total.step, s.scale * s.scale / (2.0 * total.level))


@inner
def estimate(s: Frugal, z: Vector, p: Vector, available: Flags, y: int, weight: float, r: Vector) -> None:
    """Line 4: r = -(B + weight·(c^y - B)); where B = 0, or with full information, -weight·c^y."""
    unit = LN2 if s.loss == LOGISTIC else 1.0
    for k in range(r.shape[0]):
        r[k] = -p[k] / unit if s.loss == LOGISTIC else 0.0
    if s.loss != LOGISTIC:
        if not (s.bandit and s.loss == HINGE and confident(z, best(z), s.beta)):
            if weight > 0.0:
                descent(s.loss, s.beta, z, p, y, weight, r)
            return
        r[best(z)] = -1.0
    if weight > 0.0:
        r[y] += weight / unit
    centre(available, (1.0 - weight) / unit, r)


@inner
def centre(available: Flags, amount: float, r: Vector) -> None:
    """Spread an amount over the available labels. If all are, this changes no prediction and is left out."""
    n = count_available(available)
    if n < available.shape[0]:
        for k in range(available.shape[0]):
            if available[k]:
                r[k] += amount / n


def learn(s: Frugal, state: FrugalState, x: Row, rd: Round, work: FrugalScratch, label: int, truth: int) -> None:
    """Line 4. Under bandit feedback a wrong label leads to an update too, through the baseline."""
    weight = rd.feedback[0].reward / rd.p[label] if s.bandit else 1.0
    if not s.bandit:
        if truth == UNKNOWN:
            return
        state.total[0].gap += s.risk * (work.b[truth] - rd.feedback[0].propensity)
    if work.now[0].square > 0.0:
        estimate(s, rd.z, work.p, rd.available, truth, weight, work.r)
        add(state.W, x, work.r)


def cut(s: Frugal, work: FrugalScratch, n: int) -> FrugalScratch:
    """The work space of a round with n actions."""
    return FrugalScratch(work.p[:n], work.b[:n], work.c[:n], work.r[:n], work.now)


algorithm(Frugal, decide, learn, commit, cut)
