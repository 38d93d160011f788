"""SquareCB: play each label in inverse proportion to its gap to the best one, and learn an online regression.

Foster & Rakhlin, "Beyond UCB: Optimal and Efficient Contextual Bandits with Regression Oracles", ICML 2020,
Algorithm 1, with γ_t = c·t^e and linear oracles.   Feedback: bandit.   Cost: O(dK) a round.

    for t = 1, 2, ...
      1   see x;  z_k = ⟨W_k, x⟩;  f_k = the oracle's estimate of P(y = k | x);  k* = argmax z
      2   q(k) = 1/(K + γ_t (f_k* - f_k)) for k ≠ k*, the rest to k*           γ_t = c·t^e
          first-order: γ_t/(1 - f_k*) in place of γ_t, so that there is little exploration where f_k* is near 1
      3   play a ~ q
      4   one step of the oracle on (x, a, b), without the weight 1/q; b is the reward of a, 1 right and 0 wrong
              squared     f = z clipped to [0, 1]     W_a ← W_a - η (f_a - b) x
              logistic    f_k = 1/(1 + exp(-z_k))     W_a ← W_a - η (f_a - b) x
              softmax     f = softmax z               W_k ← W_k - η ∂/∂z_k[-b ln f_a - (1 - b) ln(1 - f_a)] x  for all k

Labels that are not available in a round are left out of lines 1 and 2, and K is the number of the other labels.

Where rounds bring their own actions w is one row, z_k = ⟨w, φ_k⟩, and line 4 adds to w what it would add to W_k, with
φ_k for x.

Under realisability, P(y = k | x) = f_k(x) for some weights, the regret is of order √(KT·Reg), Reg the regret of the
oracle. On other data there is no bound on mistakes: an oracle that is confident and wrong hardly explores.

The first-order weighting is after FastCB (Foster & Krishnamurthy, "Efficient First-Order Contextual Bandits", NeurIPS
2021), which combines it with the logistic oracle. It was written from memory of that paper, without a guarantee.

Example:

    >>> from gaptron import Learner
    >>> from gaptron.streams import open_stream, prepare
    >>> stream = prepare(open_stream("digits"), unit_norm=True)
    >>> learner = Learner("squarecb", classes=stream.classes, feedback="bandit", oracle="softmax", seed=0)
    >>> learner.play(stream).mistakes
    963

To cite:

    @inproceedings{foster2020beyond,
      title     = {Beyond UCB: Optimal and Efficient Contextual Bandits with Regression Oracles},
      author    = {Foster, Dylan J. and Rakhlin, Alexander},
      booktitle = {International Conference on Machine Learning},
      year      = {2020}
    }
"""

import math
from typing import Any, NamedTuple

import numpy as np

from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.oracles import ADAGRAD, ORACLES, STEPS, fit, predict, step_for
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import by_label, scores, zeros
from gaptron.kernels.simplex import best, draw, inverse_gap, mask_unavailable
from gaptron.types import Card, Comparator, Feedback, Loss, Matrix, Problem, Round, Row, Vector, named

WEIGHTINGS = ("gap", "first-order")
CARD = Card(
    paper="Foster & Rakhlin 2020, Algorithm 1",
    feedback=(Feedback.BANDIT,),
    losses=(Loss.LOGISTIC,),
    time="O(dK)",
    memory="dK",
    regret_full="",
    regret_bandit="O(√(KT·Reg)) if realisable",
    available=True,
    rewards=True,
    actions=True,
    single=("W", "N"),
    words={"oracle": ORACLES, "steps": STEPS, "weighting": WEIGHTINGS},
    grid={"c": tuple(4.0**i for i in range(7))},
)
NOTES = ()
FIRST_ORDER = WEIGHTINGS.index("first-order")


class SquareCB(NamedTuple):
    """The settings."""

    oracle: int  # squared, logistic (one against all) or softmax (likelihood of the feedback)
    steps: int  # constant or adagrad
    c: float  # γ_t = c·t^e: the larger, the less exploration
    exponent: float  # e
    step: float  # η > 0
    weighting: int  # gap (SquareCB) or first-order (FastCB)


class SquareCBState(NamedTuple):
    """The state."""

    W: Matrix
    N: Matrix  # AdaGrad's sums of squares, or empty
    clock: Any  # decisions: their number so far


def init(settings: SquareCB, problem: Problem, sparse: bool) -> SquareCBState:
    """W = 0."""
    K, d = problem.n_classes, problem.n_features
    N = zeros(K, d, sparse) if settings.steps == ADAGRAD else zeros(0, 0, sparse)
    return SquareCBState(zeros(K, d, sparse), N, named(decisions=0))


class SquareCBScratch(NamedTuple):
    """Work space."""

    f: Vector  # the oracle's prediction for every label
    r: Vector  # coefficients of the update


def scratch(settings: SquareCB, problem: Problem, sparse: bool) -> SquareCBScratch:
    """Two numbers per label."""
    return SquareCBScratch(np.zeros(problem.n_classes), np.zeros(problem.n_classes))


def weights(state: SquareCBState, sparse: bool) -> Matrix:
    """W, K × d."""
    return by_label(state.W, sparse)


# --- theory -----------------------------------------------------------------------------------------------


def recommend(
    problem: Problem,
    oracle: str = "squared",
    steps: str = "constant",
    c: float = 10.0,
    exponent: float = 0.5,
    step: float | None = None,
    weighting: str = "gap",
) -> SquareCB:
    """Settings that do well on examples of unit norm; for norms up to X the step is divided by X² (AdaGrad: by X)."""
    if oracle not in ORACLES:
        raise SettingError(f"oracle={oracle!r} must be one of {', '.join(ORACLES)}")
    if steps not in STEPS:
        raise SettingError(f"steps={steps!r} must be one of {', '.join(STEPS)}")
    if problem.actions and steps != "constant":
        raise SettingError(f"steps={steps!r} is for labels: squarecb with actions=True has constant steps")
    if weighting not in WEIGHTINGS:
        raise SettingError(f"weighting={weighting!r} must be one of {', '.join(WEIGHTINGS)}")
    if step is None:
        (X,) = problem.need("norm")
        step = step_for(oracle, steps, X)
    if not (step > 0.0 and math.isfinite(step)):
        raise SettingError(f"step={step!r} must be a positive number")
    if not (c > 0.0 and math.isfinite(c)):
        raise SettingError(f"c={c!r} must be a positive number")
    if not 0.0 <= exponent <= 1.0:
        raise SettingError(f"exponent={exponent!r} must lie in [0, 1]")
    kind = WEIGHTINGS.index(weighting)
    return SquareCB(ORACLES.index(oracle), STEPS.index(steps), float(c), float(exponent), float(step), kind)


def theorem(problem: Problem, settings: SquareCB) -> str:
    """The source of the exploration."""
    return "Foster & Rakhlin 2020, under realisability; no bound on mistakes for other data"


def bound(problem: Problem, settings: SquareCB, comparator: Comparator) -> float:
    """Raise NoBoundError: the theorem assumes that the true P(y | x) is one of the oracle's functions."""
    raise NoBoundError(
        "inverse-gap weighting has no bound on mistakes for arbitrary data: its theorem assumes that P(y = k | x) is "
        "one of the oracle's functions, and compares with the mistakes of that function"
    )


# --- the algorithm ------------------------------------------------------------------------------------------


def decide(s: SquareCB, state: SquareCBState, x: Row, rd: Round, work: SquareCBScratch, u: float) -> int:
    """Lines 1-3."""
    scores(state.W, x, rd.z)
    K = mask_unavailable(rd.z, rd.available)
    top = best(rd.z)
    predict(s.oracle, rd.z, top, work.f)
    gamma = s.c * (state.clock[0].decisions + 1.0) ** s.exponent
    if s.weighting == FIRST_ORDER:
        gamma /= max(1.0 - work.f[top], 1e-12)
    inverse_gap(work.f, rd.z, K, top, gamma, rd.p)
    return draw(rd.p, top, u)


def commit(s: SquareCB, state: SquareCBState, rd: Round, work: SquareCBScratch) -> None:
    """t of γ_t counts decisions, with or without feedback."""
    state.clock[0].decisions += 1


def learn(s: SquareCB, state: SquareCBState, x: Row, rd: Round, work: SquareCBScratch, label: int, truth: int) -> None:
    """Line 4."""
    fit(state.W, state.N, x, s.oracle, s.steps, s.step, work.f, label, rd.feedback[0].reward, work.r)


def cut(s: SquareCB, work: SquareCBScratch, n: int) -> SquareCBScratch:
    """The work space of a round with n actions."""
    return SquareCBScratch(work.f[:n], work.r[:n])


algorithm(SquareCB, decide, learn, commit, cut)
