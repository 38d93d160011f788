"""SOBA: second-order banditron.

Beygelzimer, Orabona & Zhang, "Efficient Online Bandit Multiclass Learning with Õ(√T) Regret", ICML 2017, Algorithm 1.
Feedback: bandit.   Cost: O(dK) to predict, O(d) to learn; with the full matrix O((dK)²) to learn.

    A = aI, θ = 0, sum = 0;  for t = 1, 2, ...
      1   see x;  z_k = ⟨W_k, x⟩;  ŷ = argmax z                          W = A⁻¹θ
      2   p = (1 - γ) e_ŷ + γ/K;  play y' ~ p
      3   if y' was right, y = y':  ȳ = best label other than y;  g = (e_ȳ - e_y) ⊗ x / p(y);  h = √p(y) g
              m = (⟨h, W⟩² + 2⟨g, W⟩)/(1 + h'A⁻¹h)
      4       if sum + m ≥ 0:  sum ← sum + m;  A ← A + hh';  θ ← θ - g
          diagonal: only the diagonal of A is stored

If ŷ was wrong, m ≥ 0 and line 4 always updates. If ŷ = y' was right, it is an update on the margin, allowed as long as
the sum does not fall below zero.

Labels that are not available in a round are neither ŷ nor ȳ, and γ is spread over the other labels. If only one label
is available there is no update. A reward s with 0 < s < 1 replaces 1/p(y) by s/p(y) in g and in hh'.

Example:

    >>> from gaptron import Learner
    >>> from gaptron.streams import open_stream, prepare
    >>> stream = prepare(open_stream("digits"), unit_norm=True)
    >>> learner = Learner("soba", classes=stream.classes, feedback="bandit", gamma=0.1, seed=0)
    >>> learner.play(stream).mistakes
    1474

To cite:

    @inproceedings{beygelzimer2017efficient,
      title     = {Efficient Online Bandit Multiclass Learning with Õ(√T) Regret},
      author    = {Beygelzimer, Alina and Orabona, Francesco and Zhang, Chicheng},
      booktitle = {International Conference on Machine Learning},
      year      = {2017}
    }
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.linalg import FULL, MATRICES, check_matrix_size, matrix_kind, move, shrink, times_pair
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import by_label, score_one, scores, zeros
from gaptron.kernels.simplex import best, count_available, draw, mask_unavailable, mix_uniform, rival
from gaptron.kernels.variance import ridge, score_variance
from gaptron.types import (
    UNKNOWN,
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
    paper="Beygelzimer, Orabona & Zhang 2017, Algorithm 1",
    feedback=(Feedback.BANDIT,),
    losses=(Loss.HINGE,),
    time="O(dK); full matrix O((dK)²)",
    memory="2dK; full matrix (dK)²",
    regret_full="",
    regret_bandit="full matrix: O(‖U‖² + (K/κ) √(dT ln T)), all L_κ",
    available=True,
    rewards=True,
    words={"matrix": MATRICES},
    grid={"gamma": tuple(2.0**-i for i in (6, 5, 4, 3, 2)), "a": (0.1, 1.0, 10.0)},
)
NOTES = ()


class Soba(NamedTuple):
    """The settings."""

    matrix: int  # diagonal or full
    gamma: float  # γ ∈ (0, 1]  exploration
    a: float  # a > 0       A before the first round is aI


class SobaState(NamedTuple):
    """The state."""

    W: Matrix
    S: Matrix  # A⁻¹. diagonal: in the layout of W; full: dK × dK
    total: Any  # m: the sum of line 4; never negative


def init(settings: Soba, problem: Problem, sparse: bool) -> SobaState:
    """Line 0: θ = 0, A = aI."""
    K, d = problem.n_classes, problem.n_features
    W, n = zeros(K, d, sparse), K * d
    if settings.matrix != FULL:
        return SobaState(W, np.full_like(W, 1.0 / settings.a), named(m=0.0))
    check_matrix_size(n, n)
    return SobaState(W, np.eye(n) / settings.a, named(m=0.0))


class SobaScratch(NamedTuple):
    """Work space."""

    r: Vector  # full matrix: A⁻¹(e_ȳ - e_y) ⊗ x


def scratch(settings: Soba, problem: Problem, sparse: bool) -> SobaScratch:
    """One vector over all weights for the full matrix."""
    return SobaScratch(np.zeros(problem.n_classes * problem.n_features if settings.matrix == FULL else 0))


def weights(state: SobaState, sparse: bool) -> Matrix:
    """W, K × d."""
    return by_label(state.W, sparse)


# --- theory -----------------------------------------------------------------------------------------------


def recommend(problem: Problem, matrix: str = "diagonal", gamma: float | None = None, a: float = 1.0) -> Soba:
    """γ = (K/T)^⅓, at most ½, and a = 1, as in practice.

    The theorem holds for every γ. It is smallest near γ = √(dK² ln T/T) with a = X², which is too much exploration for
    most T.
    """
    kind, n = matrix_kind(matrix), problem.n_classes * problem.n_features
    if kind == FULL:
        check_matrix_size(n, n)
    if gamma is None:
        (T,) = problem.need("horizon")
        gamma = min(0.5, (problem.n_classes / T) ** (1 / 3))
    if not 0.0 < gamma <= 1.0:
        raise SettingError(f"gamma={gamma!r} must lie in (0, 1]")
    if not (a > 0.0 and math.isfinite(a)):
        raise SettingError(f"a={a!r} must be a positive number")
    return Soba(kind, float(gamma), float(a))


def passes(settings: Mapping[str, Any], size: Size) -> float:
    """The number of products in a round, with those of the full matrix if there is one."""
    matrix = (size.n_features * size.n_classes) ** 2 if settings.get("matrix") == "full" else 0
    return size.nonzeros * size.n_classes + matrix


def theorem(problem: Problem, settings: Soba) -> str:
    """The source of the bound."""
    if settings.matrix != FULL:
        return "none: SOBA with a diagonal matrix is a practical version"
    return "Beygelzimer et al. 2017, all losses L_κ at once, in terms of the hinge"


def bound(problem: Problem, settings: Soba, comparator: Comparator) -> float:
    """E[M_T] ≤ min over c of (1 + cB) L_T(U) + a c ‖U‖² + (K/γ) S (1 + c)²/(4c) + γT; full matrix only.

    B = √2 X‖U‖ is the largest margin U can have, 0 < c ≤ min{1, 1/B}, and S = dK ln(1 + 2X²T/(a dK)) ≥ E ln det(A_T/a).
    Holds for every γ ∈ (0, 1], a > 0, T, and U fixed before the draws, with feedback in order.

    It is the theorem with c = κ/(2 - κ), whose loss at margin m, (1 - m)(1 - cm) where that is positive, is at most
    1 + cB times the hinge as long as no margin exceeds 1/c.
    """
    if settings.matrix != FULL:
        raise NoBoundError("no bound is known for SOBA with a diagonal matrix; matrix='full' has one")
    (X,) = problem.need("norm")
    K, a, gamma, T = problem.n_classes, settings.a, settings.gamma, comparator.rounds
    L, U, n = comparator.loss, comparator.norm, problem.n_classes * problem.n_features
    B, S = math.sqrt(2) * X * U, K / gamma * n * math.log1p(2 * X * X * T / (a * n))
    if S == 0.0:
        return L + gamma * T
    c = math.sqrt(S / (4 * (B * L + a * U * U) + S))  # the minimum of c·(BL + a‖U‖² + S/4) + S/(4c)
    c = min(c, 1 / B) if B > 0.0 else c
    return (1 + c * B) * L + a * c * U * U + S * (1 + c) ** 2 / (4 * c) + gamma * T


# --- the algorithm ------------------------------------------------------------------------------------------


def decide(s: Soba, state: SobaState, x: Row, rd: Round, work: SobaScratch, u: float) -> int:
    """Lines 1-2."""
    scores(state.W, x, rd.z)
    mask_unavailable(rd.z, rd.available)
    top = best(rd.z)
    mix_uniform(rd.p, rd.available, top, s.gamma)
    return draw(rd.p, top, u)


def learn(s: Soba, state: SobaState, x: Row, rd: Round, work: SobaScratch, label: int, truth: int) -> None:
    """Lines 3-4. ȳ and p are those of the decision; m is for the current W and A."""
    if truth == UNKNOWN or count_available(rd.available) == 1:
        return
    W, S, other = state.W, state.S, rival(rd.z, truth)
    weight = rd.feedback[0].reward / rd.p[truth]
    lead = score_one(W, x, other) - score_one(W, x, truth)
    if s.matrix == FULL:
        r = times_pair(S, x, S.shape[0] // rd.z.shape[0], other, truth, work.r) * weight
    else:
        r = (score_variance(S, x, other) + score_variance(S, x, truth)) * weight
    m = weight * (lead * lead + 2.0 * lead) / (1.0 + r)
    if state.total[0].m + m < 0.0:
        return
    state.total[0].m += m
    if s.matrix == FULL:
        move(W, x, work.r, -weight * (lead + 1.0) / (1.0 + r))
        shrink(S, work.r, weight / (1.0 + r))
    else:
        ridge(W, S, x, other, -weight, weight)
        ridge(W, S, x, truth, weight, weight)


algorithm(Soba, decide, learn)
