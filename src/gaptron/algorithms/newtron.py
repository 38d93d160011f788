"""Newtron: second-order bandit learning of the logistic loss, and its diagonal version PNewtron.

Hazan & Kale, "Newtron: an Efficient Bandit Algorithm for Online Multiclass Prediction", NIPS 2011, Algorithm 1;
PNewtron of its experiments.   Feedback: bandit.   Cost: O(dK) a round (PNewtron), O((dK)²) and projections (full).

    W = 0;  b = 0;  A = I/D;  for t = 1, 2, ...
      1   see x;  z_k = ⟨W_k, x⟩;  P = softmax(αz);  P̃ = (1 - γ)P + γ/K
      2   with probability γ explore: V = 0 and y' uniform;  else V = W and y' ~ P
      3   play y';  G = g ⊗ x
              right     g = (1 - P(y'))/P̃(y')·(1/K - e_y')    κ = P̃(y')
              wrong     g = P(y')/P̃(y')·(e_y' - 1/K)          κ = 1
      4   A ← A + κβ GG';  b ← b + (1 - κβ⟨G, V⟩)G
      5   W ← argmin ½⟨W, AW⟩ + ⟨b, W⟩ over ‖W‖ ≤ D

The loss is -ln P(y)/α, and the mean of G over the draw of y' is its gradient (P - e_y) ⊗ x; κ keeps the second moment
of G bounded. PNewtron keeps the diagonal of A, and for line 5 shortens -A⁻¹b to length D where it is longer, which is
the exact minimiser only inside the ball.

Labels that are not available in a round have z = -∞. They are not played, γ is spread over the other labels, and P and
g are over these, with their number for K. If only one label is available there is no update.

Example:

    >>> from gaptron import Learner
    >>> from gaptron.streams import open_stream, prepare
    >>> stream = prepare(open_stream("synsep:rounds=1000"), unit_norm=True)
    >>> learner = Learner("newtron", classes=stream.classes, feedback="bandit", radius=1.0, seed=0)
    >>> learner.play(stream).mistakes < 800  # uniform draws make 889; the count depends on how ties are rounded
    True

To cite:

    @inproceedings{hazan2011newtron,
      title     = {Newtron: an Efficient Bandit Algorithm for Online Multiclass Prediction},
      author    = {Hazan, Elad and Kale, Satyen},
      booktitle = {Advances in Neural Information Processing Systems},
      year      = {2011}
    }
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.compile.jit import jit
from gaptron.kernels.linalg import FULL, MATRICES, check_matrix_size, matrix_kind
from gaptron.kernels.newton import clear, dot, ftrl_step, project_onto_ball, update_inverse
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import add, by_label, scores, zeros
from gaptron.kernels.simplex import best, count_available, draw, mask_unavailable, softmax
from gaptron.types import (
    UNKNOWN,
    Card,
    Comparator,
    Feedback,
    Flags,
    Growth,
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
    paper="Hazan & Kale 2011, Algorithm 1",
    feedback=(Feedback.BANDIT,),
    losses=(Loss.LOGISTIC,),
    time="O(dK) diagonal, O((dK)²) full",
    memory="2dK diagonal, (dK)² full",
    regret_full="",
    regret_bandit="O(ln T) to O(T^⅔), as α grows",
    available=True,
    words={"matrix": MATRICES},
    grid={"gamma": (0.001, 0.01, 0.1), "ball": (1.0, 10.0, 100.0)},
    growth=Growth(joint="rows"),
    own_coin=True,
)
NOTES = ()

REFRESH = 100_000  # updates after which ‖W‖² is recomputed from the weights


class Newtron(NamedTuple):
    """The settings."""

    matrix: bool  # full (True): the whole matrix (Newtron); diagonal: its diagonal (PNewtron)
    alpha: float  # α > 0  factor of the scores in the softmax
    beta: float  # β > 0  factor of the curvature
    gamma: float  # γ ∈ (0, 1] exploration
    ball: float  # D > 0  radius of the ball that W is projected onto


class NewtronState(NamedTuple):
    """The state."""

    W: Matrix  # diagonal: -A⁻¹b, before the ball; full: W itself
    A: Matrix  # diagonal: A in the layout of W; full: A⁻¹
    aim: Vector  # full: -A⁻¹b, before the ball
    total: Any  # diagonal: the factor of W in the ball, ‖-A⁻¹b‖², updates since the latter was recomputed


def init(settings: Newtron, problem: Problem, sparse: bool) -> NewtronState:
    """W = 0, A = I/D."""
    K, d = problem.n_classes, problem.n_features
    W, n = zeros(K, d, sparse), K * d if settings.matrix else 0
    A = W + 1.0 / settings.ball
    if settings.matrix:
        check_matrix_size(n, n)
        A = np.eye(n) * settings.ball
    return NewtronState(W, A, np.zeros(n), named(scale=1.0, square=0.0, updates=0))


class NewtronScratch(NamedTuple):
    """Work space."""

    r: Vector  # coefficients of the update
    z: Vector  # the scores of all labels, available or not
    coin: Any  # explored: did the round explore?
    g: Vector  # full matrix: the gradient over all weights
    v: Vector  # full matrix: A⁻¹ times it
    solving: Matrix  # full matrix: vectors for the projection


def scratch(settings: Newtron, problem: Problem, sparse: bool) -> NewtronScratch:
    """Two numbers per label, and seven vectors over all weights for the full matrix."""
    K = problem.n_classes
    n = K * problem.n_features if settings.matrix else 0
    return NewtronScratch(np.zeros(K), np.zeros(K), named(explored=0), np.zeros(n), np.zeros(n), np.zeros((5, n)))


def weights(state: NewtronState, sparse: bool) -> Matrix:
    """W, K × d."""
    return np.asarray(by_label(state.W, sparse) * state.total[0].scale)


# --- theory -----------------------------------------------------------------------------------------------


def recommend(
    problem: Problem,
    matrix: str = "diagonal",
    alpha: float = 10.0,
    beta: float = 0.01,
    gamma: float = 0.01,
    ball: float | None = None,
) -> Newtron:
    """α = 10, β = 0.01, γ = 0.01 as in the paper's experiments; D is `radius`, or 1 if that is not given."""
    if ball is None:
        ball = 1.0 if problem.radius is None else problem.radius
    for name, value in (("alpha", alpha), ("beta", beta), ("ball", ball)):
        if not (value > 0.0 and math.isfinite(value)):
            raise SettingError(f"{name}={value!r} must be a positive number")
    if not 0.0 < gamma <= 1.0:
        raise SettingError(f"gamma={gamma!r} must lie in (0, 1]")
    full, n = matrix_kind(matrix) == FULL, problem.n_classes * problem.n_features
    if full:
        check_matrix_size(n, n)
    return Newtron(full, float(alpha), float(beta), float(gamma), float(ball))


def passes(settings: Mapping[str, Any], size: Size) -> float:
    """The number of products in a round, with those of the full matrix if there is one."""
    matrix = (size.n_features * size.n_classes) ** 2 if settings.get("matrix") == "full" else 0
    return size.nonzeros * size.n_classes + matrix


def theorem(problem: Problem, settings: Newtron) -> str:
    """Return why there is no bound."""
    return "none: the settings of the experiments of Hazan & Kale 2011"


def bound(problem: Problem, settings: Newtron, comparator: Comparator) -> float:
    """Raise NoBoundError: the theorem has no constants, and does not cover the diagonal or these settings."""
    raise NoBoundError("the theorem of Hazan & Kale 2011 gives an order of growth, O(ln T) to O(T^⅔), and no number")


# --- the algorithm ------------------------------------------------------------------------------------------


@jit
def model(s: Newtron, z: Vector, top: int, p: Vector) -> float:
    """P = softmax(αz) into p. Returns 1 - P(top), never rounded to 0."""
    for k in range(z.shape[0]):
        p[k] = s.alpha * (z[k] - z[top])
    return softmax(p, top, p)


def decide(s: Newtron, state: NewtronState, x: Row, rd: Round, work: NewtronScratch, u: float) -> int:
    """Lines 1-2. The number u serves both draws: the round explores if u < γ, and the rest of u draws the label."""
    scores(state.W, x, rd.z)
    for k in range(rd.z.shape[0]):
        rd.z[k] *= state.total[0].scale
        work.z[k] = rd.z[k]
    n = mask_unavailable(rd.z, rd.available)
    top = best(rd.z)
    model(s, rd.z, top, rd.p)
    work.coin[0].explored = u < s.gamma
    if u < s.gamma:
        label = pick(rd.available, min(n - 1, int(n * (u / s.gamma))))
    else:
        label = draw(rd.p, top, (u - s.gamma) / (1.0 - s.gamma))
    explore_uniformly(rd.p, rd.available, n, s.gamma)
    return label


@jit
def explore_uniformly(p: Vector, available: Flags, n: int, gamma: float) -> None:
    """p ← (1 - γ) p + γ/n over the n available labels."""
    for k in range(p.shape[0]):
        p[k] = (1.0 - gamma) * p[k] + gamma / n if available[k] else 0.0


@jit
def pick(available: Flags, number: int) -> int:
    """The available label with this number, counted from 0."""
    for k in range(available.shape[0]):
        if available[k]:
            if number == 0:
                return k
            number -= 1
    return 0


@jit
def estimate(s: Newtron, rd: Round, label: int, right: bool, r: Vector) -> float:
    """Line 3: g into r. Returns κ."""
    K, top = r.shape[0], best(rd.z)
    rest = model(s, rd.z, top, r)
    propensity = float(rd.p[label])
    if right:
        size, kappa = -(rest if label == top else 1.0 - r[label]) / propensity, propensity
    else:
        size, kappa = r[label] / propensity, 1.0
    n = count_available(rd.available)
    for k in range(K):
        r[k] = -size / n if rd.available[k] else 0.0
    r[label] += size
    return kappa


@jit
def diagonal_update(state: NewtronState, x: Row, r: Vector, weight: float, pull: float, ball: float) -> None:
    """Lines 4-5 for the diagonal matrix."""
    total = state.total[0]
    total.square = max(total.square + ftrl_step(state.W, state.A, x, r, weight, pull), 0.0)
    total.updates += 1
    if total.updates >= REFRESH:
        total.square, total.updates = dot(state.W.reshape(-1), state.W.reshape(-1)), 0
    total.scale = ball / math.sqrt(total.square) if total.square > ball * ball else 1.0


@jit
def full_update(state: NewtronState, x: Row, work: NewtronScratch, weight: float, pull: float) -> None:
    """Line 4 for the full matrix: A⁻¹, and the minimiser -A⁻¹b before the ball."""
    clear(work.g)
    add(work.g.reshape(state.W.shape), x, work.r)
    raw = dot(work.g, state.aim)
    update_inverse(state.A, work.g, weight, work.v)
    for i in range(work.g.shape[0]):
        state.aim[i] -= work.v[i] * (weight * raw + pull)


def learn(s: Newtron, state: NewtronState, x: Row, rd: Round, work: NewtronScratch, label: int, truth: int) -> None:
    """Lines 3-5. A wrong label leads to an update too."""
    if count_available(rd.available) == 1:
        return
    weight = s.beta * estimate(s, rd, label, truth != UNKNOWN, work.r)
    inner = 0.0 if work.coin[0].explored == 1 else dot(work.r, work.z)  # ⟨G, V⟩ when the label was played
    if s.matrix:
        full_update(state, x, work, weight, 1.0 - weight * inner)
        project_onto_ball(state.A, state.aim, s.ball, state.W.reshape(-1), work.solving)
    else:
        diagonal_update(state, x, work.r, weight, 1.0 - weight * inner, s.ball)


algorithm(Newtron, decide, learn)
