"""Confidit: play the label with the highest upper confidence bound.

Crammer & Gentile, "Multiclass Classification with Bandit Feedback Using Adaptive Regularization", ICML 2011 (Machine
Learning 2013), in its practical form.
Feedback: bandit.   Cost: O(dK) to predict, O(d) to learn; with full matrices O(d²K) and O(d²).

    A_k = (1 + α)² I, w_k = 0;  for t = 1, 2, ...
      1   see x;  x ← x/‖x‖
      2   ε_k² = η x'A_k⁻¹x;  ŷ = argmax ⟨w_k, x⟩ + ε_k;  play ŷ
      3   s = 1 if ŷ was right; if wrong, s = 1 with probability (1 - α)/2, else s = -1
          reward r with 0 < r < 1: s = r + (1 - r)·(s of a wrong one)
      4   w_ŷ ← (A_ŷ + xx')⁻¹(A_ŷ w_ŷ + s x);  A_ŷ ← A_ŷ + xx'        (no other label changes)
          diagonal: only the diagonal of A_k is stored

The model: label k is right with probability (α + ⟨u_k, x⟩)/(1 + α), so that E s = ⟨u_k, x⟩. The theory widens ε with
ln t and projects each ⟨w_k, x⟩ onto [-α, 1]; the paper's experiments, and this file, do neither. A label is
played because its score ⟨w_k, x⟩ is high, or because it was rarely played on such examples; one is drawn only among
labels that tie. There is no guarantee where labels do not follow the model. Labels that are not available in a round
are left out of line 2.

Example:

    >>> from gaptron import Learner
    >>> from gaptron.streams import open_stream, prepare
    >>> stream = prepare(open_stream("digits"), unit_norm=True)
    >>> learner = Learner("confidit", classes=stream.classes, feedback="bandit", seed=0)
    >>> learner.play(stream).mistakes
    835

To cite:

    @inproceedings{crammer2011multiclass,
      title     = {Multiclass Classification with Bandit Feedback Using Adaptive Regularization},
      author    = {Crammer, Koby and Gentile, Claudio},
      booktitle = {International Conference on Machine Learning},
      year      = {2011}
    }
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.compile.jit import jit
from gaptron.kernels.linalg import FULL, MATRICES, check_matrix_size, matrix_kind, move_one, shrink, times_one
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import by_label, score_one, scores, sqnorm, zeros
from gaptron.kernels.simplex import best, draw, mask_unavailable, point_at_best
from gaptron.kernels.variance import ridge, score_variances
from gaptron.types import (
    Card,
    Comparator,
    Feedback,
    Loss,
    Matrix,
    Problem,
    Round,
    Row,
    Size,
    Vector,
    named,
)

CARD = Card(
    paper="Crammer & Gentile 2011",
    feedback=(Feedback.BANDIT,),
    losses=(Loss.HINGE,),
    time="O(dK); full matrices O(d²K)",
    memory="2dK; full matrices d²K",
    regret_full="",
    regret_bandit="none as practised; Õ(K √(dT)) against its model's best policy",
    available=True,
    rewards=True,
    words={"matrix": MATRICES},
    grid={"eta": tuple(10.0**i for i in range(-3, 5))},
)
NOTES = ()
TINY = 1e-280  # examples whose ‖x‖² is below this count as zero


class Confidit(NamedTuple):
    """The settings."""

    matrix: int  # diagonal or full
    alpha: float  # α ∈ (-1, 1]  of the model; 1: a wrong label always counts -1
    eta: float  # η ≥ 0         the width of ε: the larger, the more exploration


class ConfiditState(NamedTuple):
    """The state."""

    W: Matrix
    S: Matrix  # A⁻¹. diagonal: in the layout of W; full: K matrices d × d, below each other


def init(settings: Confidit, problem: Problem, sparse: bool) -> ConfiditState:
    """Line 0: w = 0, A = (1 + α)² I."""
    K, d = problem.n_classes, problem.n_features
    W, first = zeros(K, d, sparse), 1.0 / (1.0 + settings.alpha) ** 2
    if settings.matrix != FULL:
        return ConfiditState(W, np.full_like(W, first))
    check_matrix_size(K * d, d)
    return ConfiditState(W, np.tile(np.eye(d) * first, (K, 1)))


class ConfiditScratch(NamedTuple):
    """Work space."""

    upper: Vector  # x'A_k⁻¹x, then ⟨w_k, x⟩ + ε_k, of every label
    image: Vector  # full matrices: A_k⁻¹x
    coin: Any  # u, the random number of line 3


def scratch(settings: Confidit, problem: Problem, sparse: bool) -> ConfiditScratch:
    """One number per label, and for full matrices one per feature."""
    d = problem.n_features if settings.matrix == FULL else 0
    return ConfiditScratch(np.zeros(problem.n_classes), np.zeros(d), named(u=0.0))


def weights(state: ConfiditState, sparse: bool) -> Matrix:
    """W, K × d."""
    return by_label(state.W, sparse)


def recommend(problem: Problem, matrix: str = "diagonal", alpha: float = 1.0, eta: float = 1.0) -> Confidit:
    """Diagonal matrices, η = 1, and α = 1 as in the paper's experiments."""
    kind = matrix_kind(matrix)
    if kind == FULL:
        check_matrix_size(problem.n_classes * problem.n_features, problem.n_features)
    if not -1.0 < alpha <= 1.0:
        raise SettingError(f"alpha={alpha!r} must lie in (-1, 1]")
    if not (eta >= 0.0 and math.isfinite(eta)):
        raise SettingError(f"eta={eta!r} must be a number of at least 0")
    return Confidit(kind, float(alpha), float(eta))


def passes(settings: Mapping[str, Any], size: Size) -> float:
    """The number of products in a round, with those of the full matrix if there is one."""
    matrix = size.n_classes * size.n_features**2 if settings.get("matrix") == "full" else 0
    return size.nonzeros * size.n_classes + matrix


def theorem(problem: Problem, settings: Confidit) -> str:
    """Return why there is no bound."""
    return "none: a practical form of Crammer & Gentile 2011, whose theorem assumes its model and a wider ε"


def bound(problem: Problem, settings: Confidit, comparator: Comparator) -> float:
    """Raise NoBoundError: the theorem compares with the best policy of a model, not with a rule U on any stream."""
    raise NoBoundError(
        "Confidit does not randomize, so no bound holds on every stream; its theorem assumes a model of the labels"
    )


# --- the algorithm ------------------------------------------------------------------------------------------


@jit
def shortening(square: float) -> float:
    """1/‖x‖; 0 for an example of zeros."""
    return 1.0 / math.sqrt(square) if square > TINY else 0.0


@jit
def upper_bounds(s: Confidit, S: Matrix, x: Row, z: Vector, image: Vector, upper: Vector) -> None:
    """⟨w_k, x⟩ + ε_k of every label into upper."""
    if s.matrix == FULL:
        for k in range(z.shape[0]):
            upper[k] = times_one(S, x, k, image)
    else:
        score_variances(S, x, upper)
    for k in range(z.shape[0]):
        upper[k] = z[k] + math.sqrt(s.eta * upper[k])


def decide(s: Confidit, state: ConfiditState, x: Row, rd: Round, work: ConfiditScratch, u: float) -> int:
    """Lines 1-2. ⟨w_k, x⟩ + ε_k is proportional to ‖x‖ for all labels, so that ŷ needs no division by it."""
    scores(state.W, x, rd.z)
    mask_unavailable(rd.z, rd.available)
    upper_bounds(s, state.S, x, rd.z, work.image, work.upper)
    top = best(work.upper)
    point_at_best(rd.p, work.upper, top)
    label = draw(rd.p, top, u)
    work.coin[0].u = u / rd.p[label] % 1.0  # independent of how a tie was drawn
    return label


def learn(s: Confidit, state: ConfiditState, x: Row, rd: Round, work: ConfiditScratch, label: int, truth: int) -> None:
    """Lines 3-4, with the current w and A of the label."""
    unit = shortening(sqnorm(x))
    if unit == 0.0:
        return
    reward = rd.feedback[0].reward
    sign = reward + (1.0 - reward) * (-1.0 if work.coin[0].u >= (1.0 - s.alpha) / 2.0 else 1.0)
    if s.matrix == FULL:
        d = work.image.shape[0]
        r = times_one(state.S, x, label, work.image) * unit * unit
        step = sign - unit * score_one(state.W, x, label)
        move_one(state.W, x, label, work.image, unit * step / (1.0 + r))
        shrink(state.S[label * d : (label + 1) * d], work.image, unit * unit / (1.0 + r))
    else:
        ridge(state.W, state.S, x, label, sign * unit, unit * unit)


algorithm(Confidit, decide, learn)
