"""The second-order Perceptron for several classes.

Cesa-Bianchi, Conconi & Gentile, "A Second-Order Perceptron Algorithm", SIAM J. Comput. 2005, extended to K labels as
in Orabona, Cesa-Bianchi & Gentile, "Beyond Logarithmic Bounds in Online Learning", AISTATS 2012.
Feedback: full.   Cost: O(dK) to predict, O(d) to learn; with the full matrix O((dK)²) at each mistake.

    A = aI;  for t = 1, 2, ...
      1   see x;  z_k = ⟨W_k, x⟩;  ŷ = argmax z                     W = A⁻¹θ
      2   play ŷ
      3   if ŷ ≠ y:  g = (e_ŷ - e_y) ⊗ x;  A ← A + gg';  θ ← θ - g
              full        A has dK × dK numbers, kept as its inverse
              diagonal    A has d numbers, shared by all labels, A ← A + x², and line 1 already counts the current
                          example: z_k = Σ θ_k x/(A + x²)

After a right label there is no update. The diagonal version is that of the LIBOL and SOL libraries and has no known
bound.

Labels that are not available in a round have z = -∞ and are not played.

Example:

    >>> from gaptron import Learner
    >>> from gaptron.streams import open_stream, prepare
    >>> stream = prepare(open_stream("digits"), unit_norm=True)
    >>> learner = Learner("second-order-perceptron", classes=stream.classes, a=0.1, seed=0)
    >>> learner.play(stream).mistakes
    313

To cite:

    @article{cesabianchi2005second,
      title     = {A Second-Order Perceptron Algorithm},
      author    = {Cesa-Bianchi, Nicolò and Conconi, Alex and Gentile, Claudio},
      journal   = {SIAM Journal on Computing},
      year      = {2005}
    }
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.linalg import FULL, MATRICES, check_matrix_size, matrix_kind, move, shrink, times_pair
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import add_one, by_label, score_one, scores, zeros
from gaptron.kernels.simplex import best, mask_unavailable, point
from gaptron.kernels.variance import add_squares, scores_shared
from gaptron.types import Card, Comparator, Feedback, Loss, Matrix, Problem, Round, Row, Size, Vector

CARD = Card(
    paper="Cesa-Bianchi, Conconi & Gentile 2005; Orabona et al. 2012",
    feedback=(Feedback.FULL,),
    losses=(Loss.HINGE,),
    time="O(dK); full matrix O((dK)²)",
    memory="dK; full matrix (dK)²",
    regret_full="full matrix: O(‖U‖ √(dK L_T ln T) + dK ln T)",
    regret_bandit="",
    available=True,
    words={"matrix": MATRICES},
    grid={"a": (0.01, 0.1, 1.0, 10.0, 100.0)},
)
NOTES = ()


class SecondOrderPerceptron(NamedTuple):
    """The settings."""

    matrix: int  # diagonal or full
    a: float  # a > 0  A before the first round is aI; the larger, the more like the Perceptron


class SecondOrderPerceptronState(NamedTuple):
    """The state."""

    W: Matrix  # full: the weights; diagonal: θ
    A: Matrix  # full: A⁻¹, dK × dK; diagonal: A, 1 × d


def init(settings: SecondOrderPerceptron, problem: Problem, sparse: bool) -> SecondOrderPerceptronState:
    """Line 0: θ = 0, A = aI."""
    K, d = problem.n_classes, problem.n_features
    n = K * d
    if settings.matrix == FULL:
        check_matrix_size(n, n)
        return SecondOrderPerceptronState(zeros(K, d, sparse), np.eye(n) / settings.a)
    return SecondOrderPerceptronState(zeros(K, d, sparse), np.full((1, d), settings.a))


class SecondOrderPerceptronScratch(NamedTuple):
    """Work space."""

    r: Vector  # A⁻¹g, or x/(A + x²)


def scratch(settings: SecondOrderPerceptron, problem: Problem, sparse: bool) -> SecondOrderPerceptronScratch:
    """One vector over the weights, or over the features."""
    d = problem.n_features
    return SecondOrderPerceptronScratch(np.zeros(problem.n_classes * d if settings.matrix == FULL else d))


def weights(state: SecondOrderPerceptronState, sparse: bool) -> Matrix:
    """W, K × d. Diagonal: without the current example."""
    W = by_label(state.W, sparse)
    return W / state.A if state.A.shape[0] == 1 else W  # a full matrix has at least K ≥ 2 rows


# --- theory -----------------------------------------------------------------------------------------------


def recommend(problem: Problem, matrix: str = "diagonal", a: float = 1.0) -> SecondOrderPerceptron:
    """The diagonal matrix, a = 1."""
    kind = matrix_kind(matrix)
    if kind == FULL:
        check_matrix_size(problem.n_classes * problem.n_features, problem.n_classes * problem.n_features)
    if not (a > 0.0 and math.isfinite(a)):
        raise SettingError(f"a={a!r} must be a positive number")
    return SecondOrderPerceptron(kind, float(a))


def passes(settings: Mapping[str, Any], size: Size) -> float:
    """The number of products in a round, with those of the full matrix if there is one."""
    matrix = (size.n_features * size.n_classes) ** 2 if settings.get("matrix") == "full" else 0
    return size.nonzeros * size.n_classes + matrix


def theorem(problem: Problem, settings: SecondOrderPerceptron) -> str:
    """The source of the bound."""
    if settings.matrix != FULL:
        return "none: the diagonal second-order Perceptron is a practical version"
    return "second-order Perceptron, all losses L_κ at once (Orabona et al. 2012), in terms of the hinge"


def bound(problem: Problem, settings: SecondOrderPerceptron, comparator: Comparator) -> float:
    """M_T ≤ min over c of (1 + cB) L_T(U) + a c ‖U‖² + S (1 + c)²/(4c), on every path, for every U; full matrix only.

    B = √2 X‖U‖ is the largest margin U can have, 0 < c ≤ min{1, 1/B}, and S = dK ln(1 + 2X²M_T/(a dK)) ≥ ln det(A_T/a).
    M_T is on both sides: the bound is iterated from M_T = T until it converges.

    It is the theorem with c = κ/(2 - κ), whose loss at margin m, (1 - m)(1 - cm) where that is positive, is at most
    1 + cB times the hinge as long as no margin exceeds 1/c. `bound_kappa` is the theorem itself.
    """
    _only_full(settings)
    (X,) = problem.need("norm")
    L, U, n = comparator.loss, comparator.norm, problem.n_classes * problem.n_features
    B, most = math.sqrt(2) * X * U, float(comparator.rounds)
    for _ in range(100):
        S = n * math.log1p(2 * X * X * most / (settings.a * n))
        rest = B * L + settings.a * U * U
        c = math.sqrt(S / (4 * rest + S)) if S > 0.0 else 0.0  # the minimum of c·(rest + S/4) + S/(4c)
        c = min(c, 1 / B) if B > 0.0 else c
        value = (1 + c * B) * L + settings.a * c * U * U + (S * (1 + c) ** 2 / (4 * c) if c > 0.0 else 0.0)
        if value >= most * (1 - 1e-12):
            break
        most = value
    return value


def bound_kappa(
    problem: Problem, settings: SecondOrderPerceptron, margins: Vector, norm: float, kappa: float, mistakes: float
) -> float:
    """M_T ≤ L_κ(U) + aκ/(2 - κ) ‖U‖² + dK ln(1 + 2X²M_T/(a dK)) / (κ(2 - κ)), for all κ ∈ (0, 1] at once.

    L_κ(U) = Σ max{1 - 2m/(2 - κ) + κm²/(2 - κ), 0} over the margins m of U; `norm` is ‖U‖ and `mistakes` an upper
    bound on M_T. κ = 1 is the squared hinge; as κ falls to 0, L_κ becomes the hinge and the last term grows.
    """
    _only_full(settings)
    if not 0.0 < kappa <= 1.0:
        raise SettingError(f"kappa={kappa!r} must lie in (0, 1]")
    (X,) = problem.need("norm")
    n = problem.n_classes * problem.n_features
    c = kappa / (2 - kappa)
    loss = float(np.maximum((1 - margins) * (1 - c * margins), 0.0).sum())
    S = n * math.log1p(2 * X * X * mistakes / (settings.a * n))
    return loss + settings.a * c * norm * norm + S / (kappa * (2 - kappa))


def _only_full(settings: SecondOrderPerceptron) -> None:
    if settings.matrix != FULL:
        raise NoBoundError("no bound is known for the diagonal matrix; matrix='full' has one")


# --- the algorithm ------------------------------------------------------------------------------------------


def decide(
    s: SecondOrderPerceptron,
    state: SecondOrderPerceptronState,
    x: Row,
    rd: Round,
    work: SecondOrderPerceptronScratch,
    u: float,
) -> int:
    """Lines 1-2."""
    if s.matrix == FULL:
        scores(state.W, x, rd.z)
    else:
        scores_shared(state.W, state.A, x, work.r, rd.z)
    mask_unavailable(rd.z, rd.available)
    top = best(rd.z)
    point(rd.p, top)
    return top


def learn(
    s: SecondOrderPerceptron,
    state: SecondOrderPerceptronState,
    x: Row,
    rd: Round,
    work: SecondOrderPerceptronScratch,
    label: int,
    truth: int,
) -> None:
    """Line 3. With the full matrix W = A⁻¹θ changes by -A⁻¹g (1 + ⟨g, W⟩)/(1 + g'A⁻¹g), for the current W."""
    if label == truth:
        return
    if s.matrix == FULL:
        d = state.A.shape[0] // rd.z.shape[0]
        r = times_pair(state.A, x, d, label, truth, work.r)
        lead = score_one(state.W, x, label) - score_one(state.W, x, truth)
        move(state.W, x, work.r, -(1.0 + lead) / (1.0 + r))
        shrink(state.A, work.r, 1.0 / (1.0 + r))
        return
    add_one(state.W, x, truth, 1.0)
    add_one(state.W, x, label, -1.0)
    add_squares(state.A, x)


algorithm(SecondOrderPerceptron, decide, learn)
