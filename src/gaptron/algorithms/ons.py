"""Online Newton Step on the multinomial logistic loss.

Hazan, Agarwal & Kale, "Logarithmic Regret Algorithms for Online Convex Optimization", Machine Learning 2007, Online
Newton Step, for softmax.   Feedback: full.   Cost: O(dK) a round with a diagonal matrix, O((dK)²) with the full one.

    W = 0;  A = εI;  for t = 1, 2, ...
      1   see x;  z_k = ⟨W_k, x⟩;  q = softmax z
      2   play argmax z                                       or, if asked, y' ~ q
      3   g = (q - e_y) ⊗ x;  A ← A + gg'                     diagonal: A ← A + g², entry by entry
      4   W ← W - A⁻¹g/β
          full: project onto ‖W‖ ≤ D in the norm of A         diagonal: no ball

On the ball -ln q_y is α-exp-concave with α = exp(-√2 DX)/(K - 1), because Var_q(v) ≥ q_y/(1 - q_y)·(v_y - E_q v)² and
z_k - z_y ≤ √2 DX. This is the exp(D) of the regret, which every proper learner has.

Labels that are not available in a round have z = -∞. They are not played, and q and g are over the other labels.

Example:

    >>> from gaptron import Learner
    >>> from gaptron.streams import open_stream, prepare
    >>> stream = prepare(open_stream("digits"), unit_norm=True)
    >>> learner = Learner("ons", classes=stream.classes, radius=10.0, seed=0)
    >>> learner.play(stream).mistakes
    177

To cite:

    @article{hazan2007logarithmic,
      title     = {Logarithmic Regret Algorithms for Online Convex Optimization},
      author    = {Hazan, Elad and Agarwal, Amit and Kale, Satyen},
      journal   = {Machine Learning},
      year      = {2007}
    }
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.likelihood import label_gradient
from gaptron.kernels.linalg import FULL, MATRICES, check_matrix_size, matrix_kind
from gaptron.kernels.losses import LN2
from gaptron.kernels.newton import clear, descend, project_onto_ball, update_inverse
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import add, by_label, scores, zeros
from gaptron.kernels.simplex import best, draw, mask_unavailable, point, softmax
from gaptron.types import Card, Comparator, Feedback, Growth, Loss, Matrix, Problem, Round, Row, Size, Vector

PLAYS = ("top", "sample")
CARD = Card(
    paper="Hazan, Agarwal & Kale 2007",
    feedback=(Feedback.FULL,),
    losses=(Loss.LOGISTIC,),
    time="O(dK) diagonal, O((dK)²) full",
    memory="2dK diagonal, (dK)² full",
    regret_full="O(exp(D) dK ln T) full",
    regret_bandit="",
    available=True,
    words={"matrix": MATRICES, "play": PLAYS},
    grid={"beta": (0.01, 0.03, 0.1, 0.3, 1.0)},
    growth=Growth(joint="rows"),
)
NOTES = ()


class Ons(NamedTuple):
    """The settings."""

    matrix: bool  # full (True): the whole matrix; diagonal: its diagonal
    beta: float  # β > 0 factor of the curvature; the step is A⁻¹g/β
    eps: float  # ε > 0 A before the first round is εI
    ball: float  # D with the full matrix; inf: no ball
    play: bool  # sample (True): draw the label from q; top: play the top label


class OnsState(NamedTuple):
    """The state."""

    W: Matrix
    A: Matrix  # diagonal: A in the layout of W; full: A⁻¹


def init(settings: Ons, problem: Problem, sparse: bool) -> OnsState:
    """W = 0, A = εI."""
    K, d = problem.n_classes, problem.n_features
    W, n = zeros(K, d, sparse), K * d if settings.matrix else 0
    A = W + settings.eps
    if settings.matrix:
        check_matrix_size(n, n)
        A = np.eye(n) / settings.eps
    return OnsState(W, A)


class OnsScratch(NamedTuple):
    """Work space."""

    r: Vector  # coefficients of the gradient
    squares: Vector  # their squares
    g: Vector  # full matrix: the gradient over all weights
    v: Vector  # full matrix: A⁻¹ times it
    solving: Matrix  # full matrix: vectors for the projection


def scratch(settings: Ons, problem: Problem, sparse: bool) -> OnsScratch:
    """Two numbers per label, and seven vectors over all weights for the full matrix."""
    K = problem.n_classes
    n = K * problem.n_features if settings.matrix else 0
    return OnsScratch(np.zeros(K), np.zeros(K), np.zeros(n), np.zeros(n), np.zeros((5, n)))


def weights(state: OnsState, sparse: bool) -> Matrix:
    """W, K × d."""
    return by_label(state.W, sparse)


# --- theory -----------------------------------------------------------------------------------------------


def largest_beta(K: int, XD: float) -> float:
    """½ min{1/(4·√2X·2D), α}: the largest β for which the loss lies above its parabola everywhere on the ball."""
    return 0.5 * min(1 / (8 * math.sqrt(2) * XD), math.exp(-math.sqrt(2) * XD) / (K - 1))


def recommend(
    problem: Problem,
    matrix: str = "diagonal",
    beta: float | None = None,
    eps: float | None = None,
    ball: float | None = None,
    play: str = "top",
) -> Ons:
    """Diagonal: β = ½ and ε = X², practical values. Full: the theorem's β on the ball of radius D and ε = 1/(2βD)²."""
    if play not in PLAYS:
        raise SettingError(f"play={play!r} must be one of {', '.join(PLAYS)}")
    full, K = matrix_kind(matrix) == FULL, problem.n_classes
    if full:
        check_matrix_size(K * problem.n_features, K * problem.n_features)
        ball = problem.need("radius")[0] if ball is None else ball
        if beta is None:
            (X,) = problem.need("norm")
            beta = largest_beta(K, (X or 1.0) * ball) if ball < math.inf else 0.0
            if beta == 0.0:
                raise SettingError(f"ball={ball:g} is too large for the theorem's beta: give beta=... and eps=... too")
        eps = 1 / (2 * beta * ball) ** 2 if eps is None and beta > 0.0 and ball > 0.0 else eps
    elif ball is not None:
        raise SettingError("ball is for matrix='full': leave it out with the diagonal matrix")
    beta = 0.5 if beta is None else beta
    if eps is None:
        eps = (problem.need("norm")[0] or 1.0) ** 2
    ball = math.inf if ball is None else ball
    for name, value in (("beta", beta), ("eps", eps)):
        if not (value > 0.0 and math.isfinite(value)):
            raise SettingError(f"{name}={value!r} must be a positive number")
    if not ball > 0.0:
        raise SettingError(f"ball={ball!r} must be positive")
    return Ons(full, float(beta), float(eps), float(ball), play == "sample")


def passes(settings: Mapping[str, Any], size: Size) -> float:
    """The number of products in a round, with those of the full matrix if there is one."""
    matrix = (size.n_features * size.n_classes) ** 2 if settings.get("matrix") == "full" else 0
    return size.nonzeros * size.n_classes + matrix


def theorem(problem: Problem, settings: Ons) -> str:
    """The source of the bound."""
    if not settings.matrix:
        return "none: there is no theorem for the diagonal matrix"
    return "the theorem of Hazan, Agarwal & Kale 2007, with the constants of its proof"


def bound(problem: Problem, settings: Ons, comparator: Comparator) -> float:
    """Σ S(W_t) ≤ L + n/(2β)·ln(1 + 2X²T/(nε)) + βε‖U‖²/2, S = -ln q_y, L = ln 2·L_T(U), n = dK, on every path.

    Holds with the full matrix for ‖U‖ ≤ D, ‖x‖ ≤ X, feedback in order, any ε and β ≤ ½ min{1/(8√2 DX), α}. The top
    label is wrong at most Σ S/ln 2 times, a drawn one in expectation Σ S times.
    """
    if not settings.matrix:
        raise NoBoundError("the theorem of Online Newton Step is for the full matrix: use matrix='full'")
    (X,) = problem.need("norm")
    K, n, beta = problem.n_classes, problem.n_classes * problem.n_features, settings.beta
    if X > 0.0 and beta > largest_beta(K, X * settings.ball) * (1 + 1e-12):
        raise NoBoundError(f"beta={beta:g} is above the curvature of the loss on the ball of radius D")
    if comparator.norm > settings.ball * (1 + 1e-12):
        return math.inf
    regret = n / (2 * beta) * math.log1p(2 * X * X * comparator.rounds / (n * settings.eps))
    total = LN2 * comparator.loss + regret + beta * settings.eps * comparator.norm**2 / 2
    return total if settings.play else total / LN2


# --- the algorithm ------------------------------------------------------------------------------------------


def decide(s: Ons, state: OnsState, x: Row, rd: Round, work: OnsScratch, u: float) -> int:
    """Lines 1-2."""
    scores(state.W, x, rd.z)
    mask_unavailable(rd.z, rd.available)
    top = best(rd.z)
    if s.play:
        softmax(rd.z, top, rd.p)
        return draw(rd.p, top, u)
    point(rd.p, top)
    return top


def learn(s: Ons, state: OnsState, x: Row, rd: Round, work: OnsScratch, label: int, truth: int) -> None:
    """Lines 3-4."""
    r = work.r
    softmax(rd.z, best(rd.z), r)
    label_gradient(r, truth, r)
    if not s.matrix:
        for k in range(r.shape[0]):
            work.squares[k] = r[k] * r[k]
        descend(state.W, state.A, x, r, work.squares, 1.0 / s.beta)
        return
    g, v, w = work.g, work.v, state.W.reshape(-1)
    clear(g)
    add(g.reshape(state.W.shape), x, r)
    update_inverse(state.A, g, 1.0, v)
    aim = g
    for i in range(aim.shape[0]):
        aim[i] = w[i] - v[i] / s.beta
    project_onto_ball(state.A, aim, s.ball, w, work.solving)


algorithm(Ons, decide, learn)
