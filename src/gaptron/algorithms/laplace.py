"""Online Laplace approximation: a Gaussian filter over softmax weights.

After the mixture of Foster, Kale, Luo, Mohri & Sridharan, "Logistic Regression: The Importance of Being Improper",
COLT 2018, whose posterior it replaces by a Gaussian that takes one Newton step per round, as in Spiegelhalter &
Lauritzen 1990. This is a heuristic without a theorem: nothing bounds the distance of the Gaussian from the posterior.
Feedback: full.   Cost: O(dK) a round with a diagonal matrix, O(K(dK)²) with the full one.

    W ~ N(μ, A⁻¹);  μ = 0;  A = I/ν²;  for t = 1, 2, ...
      1   see x;  z_k = ⟨μ_k, x⟩;  play argmax z
          or, if asked, y' ~ q̄ = the mean of softmax(z + noise), noise ~ N(0, V), V = (I ⊗ x)' A⁻¹ (I ⊗ x)
      2   q = softmax z;  H = diag(q) - qq'
      3   A ← A + H ⊗ xx'                                     diagonal: A_k ← A_k + q_k(1 - q_k) x²
      4   μ ← μ - A⁻¹ ((q - e_y) ⊗ x)

The mean is over a fixed set of Gaussian points, so that q̄ is a function of x and the state alone.

Labels that are not available in a round have z = -∞. They are not played, and q, H and the mean are over the other
labels.

Example:

    >>> from gaptron import Learner
    >>> from gaptron.streams import open_stream, prepare
    >>> stream = prepare(open_stream("digits"), unit_norm=True)
    >>> learner = Learner("laplace", classes=stream.classes, nu=1.0, seed=0)
    >>> learner.play(stream).mistakes
    226

To cite:

    @inproceedings{foster2018logistic,
      title     = {Logistic Regression: The Importance of Being Improper},
      author    = {Foster, Dylan J. and Kale, Satyen and Luo, Haipeng and Mohri, Mehryar and Sridharan, Karthik},
      booktitle = {Conference on Learning Theory},
      year      = {2018}
    }
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.compile.jit import jit
from gaptron.kernels.likelihood import label_gradient
from gaptron.kernels.linalg import FULL, MATRICES, check_matrix_size, matrix_kind
from gaptron.kernels.newton import clear, descend, dot, score_variances, times, update_inverse
from gaptron.kernels.play import algorithm
from gaptron.kernels.prng import PrngState, new_prng, normal, seed_prng
from gaptron.kernels.rows import add, add_one, by_label, score_one, scores, zeros
from gaptron.kernels.simplex import best, draw, mask_unavailable, point, softmax
from gaptron.types import Card, Comparator, Feedback, Growth, Loss, Matrix, Problem, Round, Row, Size, Vector

PLAYS = ("top", "sample")
CARD = Card(
    paper="after Foster et al. 2018; Spiegelhalter & Lauritzen 1990",
    feedback=(Feedback.FULL,),
    losses=(Loss.LOGISTIC,),
    time="O(dK) diagonal, O(K(dK)²) full",
    memory="2dK diagonal, (dK)² full",
    regret_full="unknown",
    regret_bandit="",
    available=True,
    words={"matrix": MATRICES, "play": PLAYS},
    grid={"nu": (0.3, 1.0, 3.0, 10.0)},
    growth=Growth(joint="rows"),
)
NOTES = ()


class Laplace(NamedTuple):
    """The settings."""

    matrix: bool  # full (True): the whole precision matrix; diagonal: its diagonal
    nu: float  # ν > 0 standard deviation of each weight before the first round
    samples: int  # the number of Gaussian points that q̄ is the mean over
    play: bool  # sample (True): draw the label from q̄; top: play the top label


class LaplaceState(NamedTuple):
    """The state."""

    W: Matrix  # μ
    A: Matrix  # diagonal: A in the layout of W; full: A⁻¹


def init(settings: Laplace, problem: Problem, sparse: bool) -> LaplaceState:
    """μ = 0, A = I/ν²."""
    K, d = problem.n_classes, problem.n_features
    W, n = zeros(K, d, sparse), K * d if settings.matrix else 0
    A = W + 1.0 / settings.nu**2
    if settings.matrix:
        check_matrix_size(n, n)
        A = np.eye(n) * settings.nu**2
    return LaplaceState(W, A)


@jit
def draw_points(points: Matrix, prng: PrngState) -> None:
    """Fill with standard normal numbers, each row followed by its negative so that their mean is 0."""
    seed_prng(prng, 0.5, 0)
    for i in range(0, points.shape[0], 2):
        for k in range(points.shape[1]):
            points[i, k] = normal(prng)
            if i + 1 < points.shape[0]:
                points[i + 1, k] = -points[i, k]


class LaplaceScratch(NamedTuple):
    """Work space, and the points of the samples."""

    points: Matrix  # standard normal numbers, one row per sample
    r: Vector  # coefficients
    q: Vector  # the softmax
    noisy: Vector  # the scores of one sample
    root: Matrix  # V, then its Cholesky root
    g: Vector  # full matrix: a vector over all weights
    image: Vector  # full matrix: A⁻¹ times it


def scratch(settings: Laplace, problem: Problem, sparse: bool) -> LaplaceScratch:
    """The samples' points, K² numbers, and two vectors over all weights for the full matrix."""
    K = problem.n_classes
    n = K * problem.n_features if settings.matrix else 0
    points = np.zeros((settings.samples if settings.play else 0, K))
    draw_points(points, new_prng())
    return LaplaceScratch(points, np.zeros(K), np.zeros(K), np.zeros(K), np.zeros((K, K)), np.zeros(n), np.zeros(n))


def weights(state: LaplaceState, sparse: bool) -> Matrix:
    """μ, K × d."""
    return by_label(state.W, sparse)


# --- theory -----------------------------------------------------------------------------------------------


def recommend(
    problem: Problem, matrix: str = "diagonal", nu: float | None = None, samples: int = 64, play: str = "top"
) -> Laplace:
    """ν = 2/X, and 64 points for q̄."""
    if play not in PLAYS:
        raise SettingError(f"play={play!r} must be one of {', '.join(PLAYS)}")
    if nu is None:
        nu = 2.0 / (problem.need("norm")[0] or 1.0)
    if not (nu > 0.0 and math.isfinite(nu)):
        raise SettingError(f"nu={nu!r} must be a positive number")
    if samples != int(samples) or samples < 1:
        raise SettingError(f"samples={samples!r} must be a whole number of at least 1")
    full, n = matrix_kind(matrix) == FULL, problem.n_classes * problem.n_features
    if full:
        check_matrix_size(n, n)
    return Laplace(full, float(nu), int(samples), play == "sample")


def passes(settings: Mapping[str, Any], size: Size) -> float:
    """The number of products in a round, with those of the full matrix if there is one."""
    matrix = size.n_classes * (size.n_features * size.n_classes) ** 2 if settings.get("matrix") == "full" else 0
    return size.nonzeros * size.n_classes + matrix


def theorem(problem: Problem, settings: Laplace) -> str:
    """Return why there is no bound."""
    return "none: a heuristic"


def bound(problem: Problem, settings: Laplace, comparator: Comparator) -> float:
    """Raise NoBoundError: the theorem is about the exact mixture."""
    raise NoBoundError("the theorem of Foster et al. 2018 is for the exact posterior, and this one is approximate")


# --- the algorithm ------------------------------------------------------------------------------------------


@jit
def take_root(V: Matrix, least: float) -> None:
    """V = LL', L lower triangular, written over the lower half of V; pivots below `least` count as 0."""
    for k in range(V.shape[1]):
        for j in range(k + 1):
            s = V[k, j]
            for i in range(j):
                s -= V[k, i] * V[j, i]
            if j < k:
                V[k, j] = s / V[j, j] if V[j, j] > 0.0 else 0.0
            else:
                V[k, k] = math.sqrt(s) if s > least else 0.0


@jit
def variance_root(s: Laplace, state: LaplaceState, x: Row, work: LaplaceScratch) -> None:
    """The Cholesky root of V, the variance of the scores, into work.root."""
    V, K = work.root, work.r.shape[0]
    if not s.matrix:
        score_variances(state.A, x, work.r)
        for k in range(K):
            for j in range(k):
                V[k, j] = 0.0
            V[k, k] = math.sqrt(work.r[k])
        return
    columns, image = work.g.reshape(state.W.shape), work.image.reshape(state.W.shape)
    widest = 0.0
    for j in range(K):
        clear(work.g)
        add_one(columns, x, j, 1.0)
        times(state.A, work.g, work.image)
        for k in range(j, K):
            V[k, j] = score_one(image, x, k)
        widest = max(widest, V[j, j])
    take_root(V, 1e-14 * widest)


def decide(s: Laplace, state: LaplaceState, x: Row, rd: Round, work: LaplaceScratch, u: float) -> int:
    """Line 1."""
    scores(state.W, x, rd.z)
    mask_unavailable(rd.z, rd.available)
    top = best(rd.z)
    if not s.play:
        point(rd.p, top)
        return top
    variance_root(s, state, x, work)
    mean(work.points, work.root, rd.z, work.noisy, work.r, rd.p)
    return draw(rd.p, top, u)


@jit
def mean(points: Matrix, L: Matrix, z: Vector, noisy: Vector, q: Vector, p: Vector) -> None:
    """p = the mean of softmax(z + Lξ) over the points ξ. noisy and q are work space."""
    K, S = z.shape[0], points.shape[0]
    for k in range(K):
        p[k] = 0.0
    for i in range(S):
        for k in range(K):
            noisy[k] = z[k]
            for j in range(k + 1):
                noisy[k] += L[k, j] * points[i, j]
        softmax(noisy, best(noisy), q)
        for k in range(K):
            p[k] += q[k] / S


@jit
def add_curvature(state: LaplaceState, x: Row, work: LaplaceScratch) -> None:
    """Line 3 for the full matrix, one update of A⁻¹ for each of the K - 1 terms of

    H = Σ_k q_k T_{k+1}/T_k ll',   l = e_k - Σ_{j > k} q_j/T_{k+1} e_j,   T_k = Σ_{j ≥ k} q_j.
    """
    G, r, q = work.g.reshape(state.W.shape), work.r, work.q
    K, tail = r.shape[0], 1.0
    for k in range(K - 1):
        left = 0.0
        for j in range(k + 1, K):
            left += q[j]
        if left == 0.0:
            break
        size = q[k] * left / tail
        tail = left
        if size <= 0.0:
            continue
        for j in range(K):
            r[j] = -q[j] / left if j > k else 0.0
        r[k] = 1.0
        clear(work.g)
        add(G, x, r)
        update_inverse(state.A, work.g, size, work.image)


@jit
def newton_step(W: Matrix, P: Matrix, x: Row, r: Vector, g: Vector) -> None:
    """Line 4 for the full matrix: W ← W - P(r ⊗ x). g is work space."""
    clear(g)
    add(g.reshape(W.shape), x, r)
    w = W.reshape(-1)
    for i in range(g.shape[0]):
        w[i] -= dot(P[i], g)


def learn(s: Laplace, state: LaplaceState, x: Row, rd: Round, work: LaplaceScratch, label: int, truth: int) -> None:
    """Lines 2-4."""
    r, q = work.r, work.q
    softmax(rd.z, best(rd.z), q)
    if s.matrix:
        add_curvature(state, x, work)
        label_gradient(q, truth, r)
        newton_step(state.W, state.A, x, r, work.g)
    else:
        label_gradient(q, truth, r)
        for k in range(q.shape[0]):
            q[k] *= 1.0 - q[k]
        descend(state.W, state.A, x, r, q, 1.0)


algorithm(Laplace, decide, learn)
