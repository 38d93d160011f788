"""Randomized decoding: explore in proportion to the uncertainty of the softmax.

Sakaue, Bao, Tsuchiya & Oki, "Online Structured Prediction with Fenchel-Young Losses and Improved Surrogate Regret for
Online Multiclass Classification with Logistic Loss", COLT 2024 (full information), and Shibukawa, Tsuchiya, Sakaue &
Yamanishi, "Bandit and Delayed Feedback in Online Structured Prediction", NeurIPS 2025 (bandit, the inverse-weighted
algorithm with uniform exploration).   Feedback: full, bandit.   Cost: O(dK) a round.

    for t = 1, 2, ...
      1   see x;  z_k = ⟨W_k, x⟩;  π = softmax z;  y* = argmax z
      2   p = (1 - a) e_y* + a π,  a = min{1, 2(1 - π_y*)}           bandit: p' = (1 - γ) p + γ/K
      3   play y' ~ p'
      4   W ← W - η g,  g = ∇(-log₂ π_y) = (π - e_y)/ln 2 ⊗ x        bandit: ĝ = g·1[y' = y]/p'(y),
          project onto ‖W‖ ≤ B if there is a ball                            η = B/√(2 Σ ‖ĝ‖²), this round's included

Line 2 makes the probability of a mistake at most ln 2 times the base-2 logistic loss. The papers scale scores by ln 2;
here they are those of the plain softmax, as in the other files.

Labels that are not available in a round have z = -∞. They are not played; π, g and the uniform distribution are over
the other labels.

Example:

    >>> from gaptron import Learner
    >>> from gaptron.streams import open_stream, prepare
    >>> stream = prepare(open_stream("digits"), unit_norm=True)
    >>> learner = Learner("randomized-decoding", classes=stream.classes, seed=0)
    >>> learner.play(stream).mistakes
    921

To cite:

    @inproceedings{sakaue2024online,
      title     = {Online Structured Prediction with Fenchel-Young Losses and Improved Surrogate Regret for Online
                   Multiclass Classification with Logistic Loss},
      author    = {Sakaue, Shinsaku and Bao, Han and Tsuchiya, Taira and Oki, Taihei},
      booktitle = {Conference on Learning Theory},
      year      = {2024}
    }

    @inproceedings{shibukawa2025bandit,
      title     = {Bandit and Delayed Feedback in Online Structured Prediction},
      author    = {Shibukawa, Yuki and Tsuchiya, Taira and Sakaue, Shinsaku and Yamanishi, Kenji},
      booktitle = {Advances in Neural Information Processing Systems},
      year      = {2025}
    }
"""

import math
from typing import Any, NamedTuple

import numpy as np

from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.ball import adaptive_step, add_and_project, new_ball, scale
from gaptron.kernels.compile.jit import jit
from gaptron.kernels.losses import LN2, LOGISTIC, descent
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import by_label, scores, sqnorm, zeros
from gaptron.kernels.simplex import best, count_available, draw, mask_unavailable, multiply, softmax
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
    named,
)

CARD = Card(
    paper="Sakaue, Bao, Tsuchiya & Oki 2024; Shibukawa, Tsuchiya, Sakaue & Yamanishi 2025",
    feedback=(Feedback.FULL, Feedback.BANDIT),
    losses=(Loss.LOGISTIC,),
    time="O(dK)",
    memory="dK",
    regret_full="O(‖U‖²)",
    regret_bandit="O(B √(KT))",
    available=True,
)
NOTES = ()

ALPHA = 1 - LN2  # 1 - p(y) ≤ (1 - α) S, S = -log₂ π_y
C = 2 / LN2  # ‖∇S‖² ≤ C X² S
SPREAD = 12.5  # κ²: steps B/√(2Σ) in a ball of radius B have regret (5/√2) B √Σ at most


class RandomizedDecoding(NamedTuple):
    """The settings."""

    eta: float  # η > 0      full information: step size
    gamma: float  # γ ∈ [0, 1] bandit: share of uniform exploration (the paper's q)
    ball: float  # B: radius of the ball that W is projected onto; inf: none
    bandit: bool


class RandomizedDecodingState(NamedTuple):
    """The state."""

    W: Matrix  # V of W = c·V
    ball: Any  # c and ‖W‖², see `kernels.ball`
    total: Any  # square: Σ ‖ĝ‖²


def init(settings: RandomizedDecoding, problem: Problem, sparse: bool) -> RandomizedDecodingState:
    """W = 0."""
    return RandomizedDecodingState(zeros(problem.n_classes, problem.n_features, sparse), new_ball(), named(square=0.0))


class RandomizedDecodingScratch(NamedTuple):
    """Work space."""

    pi: Vector  # π
    r: Vector  # coefficients of the update


def scratch(settings: RandomizedDecoding, problem: Problem, sparse: bool) -> RandomizedDecodingScratch:
    """Two numbers per label."""
    return RandomizedDecodingScratch(np.zeros(problem.n_classes), np.zeros(problem.n_classes))


def weights(state: RandomizedDecodingState, sparse: bool) -> Matrix:
    """W, K × d."""
    return np.asarray(by_label(state.W, sparse) * state.ball[0].scale)


# --- theory -----------------------------------------------------------------------------------------------


def recommend(
    problem: Problem, eta: float | None = None, gamma: float | None = None, ball: float | None = None
) -> RandomizedDecoding:
    """Full: η = 2α/(C X²), α = 1 - ln 2, C = 2/ln 2. Bandit: B = the radius, γ = B√(K/T), adaptive steps."""
    bandit = problem.feedback is Feedback.BANDIT
    if bandit:
        if eta is not None:
            raise SettingError("under bandit feedback the steps are adaptive: leave eta out (ball=... is B)")
        eta = 0.0
        ball = problem.need("radius")[0] if ball is None else ball
        if gamma is None:
            (T,) = problem.need("horizon")
            gamma = min(1.0, ball * math.sqrt(problem.n_classes / T))
    else:
        if gamma is not None:
            raise SettingError(
                "gamma is for bandit feedback: with full information there is no exploration, leave it out"
            )
        gamma = 0.0
        ball = math.inf if ball is None else ball
        eta = published_eta(problem) if eta is None else eta
        if not (eta > 0.0 and math.isfinite(eta)):
            raise SettingError(f"eta={eta!r} must be a positive number")
    if not 0.0 <= gamma <= 1.0 or (bandit and gamma == 0.0):
        raise SettingError(f"gamma={gamma!r} must lie in (0, 1]")
    if not ball > 0.0 or (bandit and not math.isfinite(ball)):
        raise SettingError(f"ball={ball!r} must be a positive number")
    return RandomizedDecoding(float(eta), float(gamma), float(ball), bandit)


def published_eta(problem: Problem) -> float:
    """2α/(C X²) = ln 2 (1 - ln 2)/X²."""
    (X,) = problem.need("norm")
    return 2 * ALPHA / C / (X * X if X > 0.0 else 1.0)


def theorem(problem: Problem, settings: RandomizedDecoding) -> str:
    """The source of the bound."""
    if settings.bandit:
        return "Shibukawa et al. 2025, inverse-weighted bandit algorithm, with W in a ball of radius B"
    return "Sakaue et al. 2024, randomized decoding with the base-2 logistic loss"


def bound(problem: Problem, settings: RandomizedDecoding, comparator: Comparator) -> float:
    """Full information: on every path, for every U (in the ball, if there is one), with μ = η C X²/2 < 1,

        Σ (1 - p(y)) ≤ (1 - α)/(1 - μ)·(L_T(U) + ‖U‖²/(2η)),

    which at the published η (μ = α) is L_T(U) + X²‖U‖²/(2 ln 2 (1 - ln 2)). Bandit feedback: in expectation, for U with
    ‖U‖ ≤ B fixed before the draws, and data that do not depend on the draw of their own round,

        E[M_T] ≤ L_T(U) + κ² C K X² B²/(4αγ) + γ T (K-1)/K,   κ² = 12.5.

    The paper's B is the diameter of the set of W, and then κ² = 2. Here B is the ball's radius, its diameter 2B.
    """
    if comparator.norm > settings.ball * (1 + 1e-12):
        return math.inf
    (X,) = problem.need("norm")
    if settings.bandit:
        K, B, g = problem.n_classes, settings.ball, settings.gamma
        explored = g * comparator.rounds * (K - 1) / K
        return comparator.loss + SPREAD * C * K * (X * B) ** 2 / (4 * ALPHA * g) + explored
    mu = settings.eta * C * X * X / 2
    if mu >= 1.0:
        raise NoBoundError(f"the theorem needs eta below {2 / (C * X * X):g}, and eta={settings.eta:g}")
    return (1 - ALPHA) / (1 - mu) * (comparator.loss + comparator.norm**2 / (2 * settings.eta))


# --- the algorithm ------------------------------------------------------------------------------------------


@jit
def decode(pi: Vector, available: Flags, top: int, rest: float, gamma: float, p: Vector) -> None:
    """Line 2 over the available labels; rest = 1 - π_top."""
    a, n = min(1.0, 2.0 * rest), count_available(available)
    for k in range(p.shape[0]):
        p[k] = (1.0 - gamma) * a * pi[k] + gamma / n if available[k] else 0.0
    p[top] += (1.0 - gamma) * (1.0 - a)


def decide(
    s: RandomizedDecoding, state: RandomizedDecodingState, x: Row, rd: Round, work: RandomizedDecodingScratch, u: float
) -> int:
    """Lines 1-3."""
    scores(state.W, x, rd.z)
    scale(state.ball, rd.z)
    mask_unavailable(rd.z, rd.available)
    top = best(rd.z)
    rest = softmax(rd.z, top, work.pi)
    decode(work.pi, rd.available, top, rest, s.gamma, rd.p)
    return draw(rd.p, top, u)


def learn(
    s: RandomizedDecoding,
    state: RandomizedDecodingState,
    x: Row,
    rd: Round,
    work: RandomizedDecodingScratch,
    label: int,
    truth: int,
) -> None:
    """Line 4. Without the true label there is no update."""
    if truth == UNKNOWN:
        return
    descent(LOGISTIC, 0.0, rd.z, work.pi, truth, 1.0 / rd.p[truth] if s.bandit else 1.0, work.r)
    eta = adaptive_step(s.ball, state.total, sqnorm(work.r) * sqnorm(x)) if s.bandit else s.eta
    multiply(work.r, eta)
    add_and_project(state.W, state.ball, s.ball, x, work.r, rd.z)


algorithm(RandomizedDecoding, decide, learn)
