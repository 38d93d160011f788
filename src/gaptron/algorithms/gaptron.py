"""Gaptron: online multiclass classification through the surrogate gap.

van der Hoeven, "Exploiting the Surrogate Gap in Online Multiclass Classification", NeurIPS 2020,
Algorithm 1 with the settings of Theorems 1-6.   Feedback: full, bandit.   Cost: O(dK) a round.

    for t = 1, 2, ...
      1   see x;  z_k = ⟨W_k, x⟩;  y* = argmax z;  m* = z_y* - max over the others
      2   p' = (1 - max{a, γ}) e_y* + max{a, γ}/K           a the gap map:
              logistic        a = 1 - p̃* 1[p̃* ≥ ½]          p̃ = softmax z
              hinge           a = (1 - m*) 1[m* ≤ β]
              smooth hinge    a = (1 - min{1, m*})²
      3   play y' ~ p'
      4   W ← W - η g,  g = ∇ℓ(W; x, y)                     bandit: g·1[y' = y]/p'(y)
          project onto ‖W‖ ≤ D if there is a ball

Where the printed table and theorems disagree with their proofs, the settings here follow the proofs: see
the errata page.

Labels that are not available in a round have z = -∞, and lines 1 and 2 are about the others. An answer worth a reward
s, 0 < s < 1, counts as 1[y' = y] = s in line 4. The theorems are for neither.

Example:

    >>> from gaptron import Learner
    >>> from gaptron.streams import open_stream, prepare
    >>> stream = prepare(open_stream("digits"), unit_norm=True)
    >>> learner = Learner("gaptron", classes=stream.classes, loss="hinge", seed=0)
    >>> trace = learner.play(stream)
    >>> round(trace.expected_mistakes)
    555
    >>> round(learner.bound(stream.X, stream.y, trace).value)
    595

To cite:

    @inproceedings{vanderhoeven2020exploiting,
      title     = {Exploiting the Surrogate Gap in Online Multiclass Classification},
      author    = {van der Hoeven, Dirk},
      booktitle = {Advances in Neural Information Processing Systems},
      year      = {2020}
    }
"""

import math
from typing import Any, NamedTuple

import numpy as np

from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.ball import moved, new_ball, scale
from gaptron.kernels.losses import LN2, LOGISTIC, gap_map, paper_step, pull
from gaptron.kernels.play import algorithm
from gaptron.kernels.rounding import keep, put, put_one
from gaptron.kernels.rows import by_label, score_one, scores, sqnorm, zeros
from gaptron.kernels.simplex import best, draw, exclude, mix_uniform, rival
from gaptron.types import (
    UNCOUNTED,
    UNKNOWN,
    Card,
    Comparator,
    Feedback,
    Flags,
    Loss,
    Matrix,
    Problem,
    Round,
    Rounding,
    Row,
    Variant,
    Vector,
)

CARD = Card(
    paper="van der Hoeven 2020, Algorithm 1",
    feedback=(Feedback.FULL, Feedback.BANDIT),
    losses=(Loss.LOGISTIC, Loss.HINGE, Loss.SMOOTH_HINGE),
    time="O(dK)",
    memory="dK",
    regret_full="O(K ‖U‖²)",
    regret_bandit="O(K D √T)",
    among=True,
    rewards=True,
    single=("W",),
    traits=frozenset({"floor"}),
    variants={
        "ball": Variant({"ball": 0.05}, (Feedback.FULL,)),
        "free": Variant({"radius": 0.1, "horizon": 10**9, "eta": 0.05}, (Feedback.BANDIT,), (Loss.LOGISTIC,)),
        "exploring": Variant({"ball": 0.05, "gamma": 0.2}, (Feedback.BANDIT,), (Loss.HINGE,)),
    },
)
NOTES = ("gap",)  # a, before the exploration floor γ
GAP = NOTES.index("gap")


class Gaptron(NamedTuple):
    """The settings."""

    loss: int  # logistic, hinge or smooth hinge
    eta: float  # η > 0      step size
    gamma: float  # γ ∈ [0, 1] least exploration
    beta: float  # β ∈ [0, 1) margin past which the hinge is sure
    ball: float  # radius of the ball W is kept in; inf: none
    bandit: bool  # weight what was seen by 1/p'?


class GaptronState(NamedTuple):
    """What is learned."""

    W: Matrix  # without the ball's scale
    ball: Any
    rounding: Any = UNCOUNTED  # what single precision has cost


def init(settings: Gaptron, problem: Problem, sparse: bool) -> GaptronState:
    """Line 0: W = 0."""
    return GaptronState(zeros(problem.n_classes, problem.n_features, sparse), new_ball())


class GaptronScratch(NamedTuple):
    """Work space."""

    p: Vector  # p̃, for the gradient of the logistic loss
    r: Vector  # coefficients of the update, one per label


def scratch(settings: Gaptron, problem: Problem, sparse: bool) -> GaptronScratch:
    """Two numbers a label."""
    return GaptronScratch(np.zeros(problem.n_classes), np.zeros(problem.n_classes))


def weights(state: GaptronState, sparse: bool) -> Matrix:
    """W, K × d."""
    return np.asarray(by_label(state.W, sparse) * state.ball[0].scale)


# --- theory -----------------------------------------------------------------------------------------------


def least_gap(K: int, DX: float) -> float:
    """a_min: the smallest value the logistic gap map can take while ‖W‖‖x‖ ≤ DX (E5, E6)."""
    rest = (K - 1) * math.exp(-DX * math.sqrt(K / (K - 1)))
    return 1.0 if rest > 1.0 else rest / (1.0 + rest)


def regret(problem: Problem) -> float:
    """What Theorems 1-6 add to L_T(U) at ‖U‖ = D, for the settings `recommend` gives."""
    K = problem.n_classes
    if problem.feedback is Feedback.FULL:
        X, D = problem.need("norm", "radius")
        factor = {Loss.LOGISTIC: K / LN2, Loss.HINGE: K * K / (2 * (K - 1)), Loss.SMOOTH_HINGE: 2 * K}
        return factor[problem.loss] * (X * D) ** 2
    X, D, T = problem.need("norm", "radius", "horizon")
    XD = X * D
    if problem.loss is Loss.LOGISTIC:
        return min(_explored_regret(K, XD, T), _free_regret(K, XD))
    if problem.loss is Loss.HINGE:
        return max(K**3 * XD**2 / (K - 1), 2 * K * XD * math.sqrt(T / 2))
    return max(4 * (K * XD) ** 2, 2 * K * XD * math.sqrt(2 * T))


def _explored_regret(K: int, XD: float, T: float) -> float:
    return max(2 * (K * XD) ** 2 / LN2, 2 * K * XD * math.sqrt(T / LN2))


def _free_regret(K: int, XD: float) -> float:
    a = least_gap(K, XD)
    return (K * XD) ** 2 / (LN2 * a) if a > 0.0 else math.inf


def recommend(
    problem: Problem,
    eta: float | None = None,
    gamma: float | None = None,
    beta: float | None = None,
    ball: float | None = None,
) -> Gaptron:
    """The theorem's settings for this problem (Theorems 1-6, mended); what you pass replaces the theorem's."""
    K, bandit = problem.n_classes, problem.feedback is Feedback.BANDIT
    beta = 1.0 / K if beta is None else beta
    free = False  # the second regime of the bandit logistic: no forced exploration, but a ball
    if gamma is None:
        gamma = 0.0
        if bandit:
            X, D, T = problem.need("norm", "radius", "horizon")
            ratio = {Loss.LOGISTIC: 1 / LN2, Loss.HINGE: (K / (K - 1)) ** 2 / 2, Loss.SMOOTH_HINGE: 2.0}
            gamma = min(1.0, K * X * D * math.sqrt(ratio[problem.loss] / T))
            free = problem.loss is Loss.LOGISTIC and _free_regret(K, X * D) < _explored_regret(K, X * D, T)
            gamma = 0.0 if free else gamma
    if ball is None:
        ball = problem.need("radius")[0] if free else math.inf
    if eta is None:
        (X,) = problem.need("norm")
        if X == 0.0:
            X = 1.0  # nothing but zero rows: no step is ever taken
        eta = paper_step(problem.loss, K, beta) / (X * X)
        if bandit:
            least = least_gap(K, X * problem.need("radius")[0]) if free else gamma
            if least == 0.0:
                raise SettingError("bandit feedback with gamma=0 leaves no theorem's step size: give eta=... too")
            eta *= least / K
    if not (eta > 0.0 and math.isfinite(eta)):
        raise SettingError(f"eta={eta!r} must be a positive number")
    if not 0.0 <= gamma <= 1.0:
        raise SettingError(f"gamma={gamma!r} must lie in [0, 1]")
    if not 0.0 <= beta < 1.0:
        raise SettingError(f"beta={beta!r} must lie in [0, 1)")
    if not ball > 0.0:
        raise SettingError(f"ball={ball!r} must be positive")
    return Gaptron(int(problem.loss), float(eta), float(gamma), float(beta), float(ball), bandit)


def theorem(problem: Problem, settings: Gaptron) -> str:
    """Where these settings come from."""
    number = 1 + int(problem.loss) + 3 * int(problem.feedback)
    regime = ""
    if problem.feedback is Feedback.BANDIT and problem.loss is Loss.LOGISTIC:
        regime = ", regime without forced exploration" if settings.gamma == 0.0 else ", regime with exploration γ"
    return f"Theorem {number} of van der Hoeven 2020{regime}"


def bound(problem: Problem, settings: Gaptron, comparator: Comparator) -> float:
    """L_T(U) + ‖U‖²/(2η) + γT(K-1)/K ≥ E[M_T]: Lemma 1 with a surrogate gap that is never positive.

    Holds for the theorem's settings, ‖x‖ ≤ X, answers in order, data that do not see the draw of their own
    round, and under bandit feedback ‖U‖ ≤ D and U fixed before the draws. With full information it holds for
    every U, also one chosen in hindsight. At ‖U‖ = D and T rounds it is at most the theorem's number.
    """
    right = recommend(problem)
    if settings != right:
        changed = [
            f"{name}={getattr(settings, name):g} instead of {getattr(right, name):g}"
            for name in ("eta", "gamma", "beta", "ball")
            if getattr(settings, name) != getattr(right, name)
        ]
        raise NoBoundError(f"{theorem(problem, right)} does not cover {', '.join(changed)}")
    if problem.feedback is Feedback.BANDIT and comparator.norm > problem.need("radius")[0] * (1 + 1e-12):
        return math.inf
    K = problem.n_classes
    return comparator.loss + comparator.norm**2 / (2 * settings.eta) + settings.gamma * comparator.rounds * (K - 1) / K


def rounded_bound(problem: Problem, settings: Gaptron, comparator: Comparator, rounding: Rounding) -> float:
    """The bound + (A + B‖U‖)/η: rounding leaves ‖W - U‖² larger by at most 2A + 2B‖U‖ than the steps themselves do."""
    rounded = (rounding.lean + rounding.drift * comparator.norm) / settings.eta
    return bound(problem, settings, comparator) + rounded


def excused(problem: Problem, notes: Matrix, hit: Flags) -> Flags:
    """The rounds on which the truncated hinge is zero for every U: y = y* and m* > β."""
    return hit & (notes[:, 0] == 0.0) if problem.loss is Loss.HINGE else np.zeros_like(hit)


# --- the algorithm ------------------------------------------------------------------------------------------


def decide(s: Gaptron, state: GaptronState, x: Row, rd: Round, work: GaptronScratch, u: float) -> int:
    """Lines 1-3."""
    scores(state.W, x, rd.z)
    scale(state.ball, rd.z)
    exclude(rd.z, rd.among)
    top = best(rd.z)
    a = gap_map(s.loss, s.beta, rd.z, work.p, top)
    rd.note[GAP] = a
    mix_uniform(rd.p, rd.among, top, max(a, s.gamma))
    return draw(rd.p, top, u)


def learn(s: Gaptron, state: GaptronState, x: Row, rd: Round, work: GaptronScratch, label: int, truth: int) -> None:
    """Line 4. Nothing revealed, nothing learned."""
    if truth == UNKNOWN:
        return
    step = -s.eta * rd.answer[0].reward / rd.p[truth] if s.bandit else -s.eta
    c = state.ball[0].scale
    if s.loss == LOGISTIC:
        step /= LN2
        for k in range(work.r.shape[0]):
            work.r[k] = step * work.p[k]
        work.r[truth] -= step
        if s.ball < math.inf:
            inner, square = 0.0, 0.0
            for k in range(work.r.shape[0]):
                inner += work.r[k] * c * score_one(state.W, x, k)
                square += work.r[k] * work.r[k]
                work.r[k] /= c
            lean = put(state.W, x, work.r, state.rounding, c * c, c)
            moved(state.W, state.ball, s.ball, inner, square * sqnorm(x) + 2.0 * c * c * lean)
            keep(state.W, state.ball, s.ball, state.rounding)
        else:
            put(state.W, x, work.r, state.rounding, 1.0, 1.0)
        return
    v = step * pull(s.loss, s.beta, rd.z, truth)
    if v == 0.0:
        return
    other = rival(rd.z, truth)
    inner, square = 0.0, 0.0
    if s.ball < math.inf:
        inner = v * c * (score_one(state.W, x, other) - score_one(state.W, x, truth))
        square = 2.0 * v * v * sqnorm(x)
    lean = put_one(state.W, x, other, v / c, state.rounding, c * c, c)
    lean += put_one(state.W, x, truth, -v / c, state.rounding, c * c, c)
    if s.ball < math.inf:
        moved(state.W, state.ball, s.ball, inner, square + 2.0 * c * c * lean)
        keep(state.W, state.ball, s.ball, state.rounding)


algorithm(Gaptron, decide, learn)
