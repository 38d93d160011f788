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

Where the printed table and theorems disagree with their proofs, the settings here follow the proofs; see the errata
page.

Labels that are not available in a round have z = -∞, and lines 1 and 2 leave them out. A reward s with 0 < s < 1
replaces 1[y' = y] in line 4. The theorems cover neither case.

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
from gaptron.kernels.ball import add_and_project, new_ball, scale
from gaptron.kernels.losses import LN2, descent, gap_map, paper_step
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import by_label, scores, zeros
from gaptron.kernels.simplex import best, draw, mask_unavailable, mix_uniform
from gaptron.types import (
    UNKNOWN,
    Card,
    Comparator,
    Feedback,
    Flags,
    Loss,
    Matrix,
    Problem,
    Round,
    Row,
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
    available=True,
    rewards=True,
    single=("W",),
)
NOTES = ("gap",)  # a, before the exploration floor γ
GAP = NOTES.index("gap")


class Gaptron(NamedTuple):
    """The settings."""

    loss: int  # logistic, hinge or smooth hinge
    eta: float  # η > 0      step size
    gamma: float  # γ ∈ [0, 1] least exploration
    beta: float  # β ∈ [0, 1) margin above which the truncated hinge is zero
    ball: float  # radius of the ball that W is projected onto; inf: none
    bandit: bool  # weight the gradient by 1[y' = y]/p'(y)?


class GaptronState(NamedTuple):
    """The state."""

    W: Matrix  # V of W = c·V
    ball: Any  # c and ‖W‖², see `kernels.ball`


def init(settings: Gaptron, problem: Problem, sparse: bool) -> GaptronState:
    """Line 0: W = 0."""
    return GaptronState(zeros(problem.n_classes, problem.n_features, sparse), new_ball())


class GaptronScratch(NamedTuple):
    """Work space."""

    p: Vector  # p̃, for the gradient of the logistic loss
    r: Vector  # coefficients of the update, one per label


def scratch(settings: Gaptron, problem: Problem, sparse: bool) -> GaptronScratch:
    """Two numbers per label."""
    return GaptronScratch(np.zeros(problem.n_classes), np.zeros(problem.n_classes))


def weights(state: GaptronState, sparse: bool) -> Matrix:
    """W, K × d."""
    return np.asarray(by_label(state.W, sparse) * state.ball[0].scale)


# --- theory -----------------------------------------------------------------------------------------------


def least_gap(K: int, DX: float) -> float:
    """a_min: the smallest value of the logistic gap map while ‖W‖‖x‖ ≤ DX (E5, E6)."""
    rest = (K - 1) * math.exp(-DX * math.sqrt(K / (K - 1)))
    return 1.0 if rest > 1.0 else rest / (1.0 + rest)


def regret(problem: Problem) -> float:
    """What Theorems 1-6 add to L_T(U) at ‖U‖ = D, for the settings of `recommend`."""
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
    """The settings of Theorems 1-6 (corrected, see the errata); arguments replace them."""
    K, bandit = problem.n_classes, problem.feedback is Feedback.BANDIT
    beta = 1.0 / K if beta is None else beta
    free = False  # the second regime of the bandit logistic loss: a ball instead of forced exploration
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
            X = 1.0  # only zero examples: no step is ever taken
        eta = paper_step(problem.loss, K, beta) / (X * X)
        if bandit:
            least = least_gap(K, X * problem.need("radius")[0]) if free else gamma
            if least == 0.0:
                raise SettingError("no theorem gives a step size for bandit feedback with gamma=0: give eta=... too")
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
    """The theorem behind these settings."""
    number = 1 + int(problem.loss) + 3 * int(problem.feedback)
    regime = ""
    if problem.feedback is Feedback.BANDIT and problem.loss is Loss.LOGISTIC:
        regime = ", regime without forced exploration" if settings.gamma == 0.0 else ", regime with exploration γ"
    return f"Theorem {number} of van der Hoeven 2020{regime}"


def bound(problem: Problem, settings: Gaptron, comparator: Comparator) -> float:
    """L_T(U) + ‖U‖²/(2η) + γT(K-1)/K ≥ E[M_T]: Lemma 1 with a surrogate gap that is never positive.

    Holds for the theorem's settings, ‖x‖ ≤ X, feedback in order, data that do not depend on the draw of their own
    round, and under bandit feedback ‖U‖ ≤ D and U fixed before the draws. With full information it holds for
    every U, also one chosen in hindsight. At ‖U‖ = D and T rounds it is at most the theorem's number.
    """
    proved = recommend(problem)
    if settings != proved:
        changed = [
            f"{name}={getattr(settings, name):g} instead of {getattr(proved, name):g}"
            for name in ("eta", "gamma", "beta", "ball")
            if getattr(settings, name) != getattr(proved, name)
        ]
        raise NoBoundError(f"{theorem(problem, proved)} does not cover {', '.join(changed)}")
    if problem.feedback is Feedback.BANDIT and comparator.norm > problem.need("radius")[0] * (1 + 1e-12):
        return math.inf
    K = problem.n_classes
    return comparator.loss + comparator.norm**2 / (2 * settings.eta) + settings.gamma * comparator.rounds * (K - 1) / K


def excused(problem: Problem, notes: Matrix, hit: Flags) -> Flags:
    """The rounds in which the truncated hinge is zero for every U: y = y* and m* > β."""
    return hit & (notes[:, 0] == 0.0) if problem.loss is Loss.HINGE else np.zeros_like(hit)


# --- the algorithm ------------------------------------------------------------------------------------------


def decide(s: Gaptron, state: GaptronState, x: Row, rd: Round, work: GaptronScratch, u: float) -> int:
    """Lines 1-3."""
    scores(state.W, x, rd.z)
    scale(state.ball, rd.z)
    mask_unavailable(rd.z, rd.available)
    top = best(rd.z)
    a = gap_map(s.loss, s.beta, rd.z, work.p, top)
    rd.note[GAP] = a
    mix_uniform(rd.p, rd.available, top, max(a, s.gamma))
    return draw(rd.p, top, u)


def learn(s: Gaptron, state: GaptronState, x: Row, rd: Round, work: GaptronScratch, label: int, truth: int) -> None:
    """Line 4. Without the true label there is no update."""
    if truth == UNKNOWN:
        return
    step = s.eta * rd.feedback[0].reward / rd.p[truth] if s.bandit else s.eta
    descent(s.loss, s.beta, rd.z, work.p, truth, step, work.r)
    add_and_project(state.W, state.ball, s.ball, x, work.r, rd.z)


algorithm(Gaptron, decide, learn)
