"""AROW: adaptive regularisation of weights, for several classes.

Crammer, Kulesza & Dredze, "Adaptive Regularization of Weight Vectors", NIPS 2009, Figure 1, extended to K labels: the
true label against the best wrong one, each with its own Gaussian N(W_k, Σ_k).
Feedback: full.   Cost: O(dK) to predict, O(d) to learn; with full matrices O(d²) to learn.

    W = 0, Σ_k = I;  for t = 1, 2, ...
      1   see x;  z_k = ⟨W_k, x⟩;  play ŷ = argmax z
      2   r = best label other than y;  m = z_y - z_r
      3   if m < 1:  v = x'Σ_y x + x'Σ_r x;  β = 1/(v + r₀);  α = (1 - m)β
              W_y ← W_y + α Σ_y x,  W_r ← W_r - α Σ_r x
      4       for k in {y, r}:
              precision   Σ_k⁻¹ ← Σ_k⁻¹ + xx'/r₀
              drop        Σ_k ← Σ_k - β Σ_k xx' Σ_k
          diagonal: only the diagonal of Σ_k is stored

A right prediction with a small margin leads to an update too. With one Gaussian the two updates of line 4 are the same;
with two they differ, and both are in use.

Labels that are not available in a round have z = -∞. They are not played, and none of them is r. If only one label is
available there is no update.

Example:

    >>> from gaptron import Learner
    >>> from gaptron.streams import open_stream, prepare
    >>> stream = prepare(open_stream("digits"), unit_norm=True)
    >>> learner = Learner("arow", classes=stream.classes, seed=0)
    >>> learner.play(stream).mistakes
    172

To cite:

    @inproceedings{crammer2009adaptive,
      title     = {Adaptive Regularization of Weight Vectors},
      author    = {Crammer, Koby and Kulesza, Alex and Dredze, Mark},
      booktitle = {Advances in Neural Information Processing Systems},
      year      = {2009}
    }
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.compile.jit import jit
from gaptron.kernels.linalg import FULL, MATRICES, check_matrix_size, matrix_kind, move_one, shrink, times_one
from gaptron.kernels.losses import margin
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import by_label, scores, zeros
from gaptron.kernels.simplex import best, mask_unavailable, point, rival
from gaptron.kernels.variance import add_precision, add_scaled_by_variance, reduce_variance, score_variance
from gaptron.types import Card, Comparator, Feedback, Loss, Matrix, Problem, Round, Row, Size, Vector

UPDATES = ("precision", "drop")
CARD = Card(
    paper="Crammer, Kulesza & Dredze 2009, Figure 1",
    feedback=(Feedback.FULL,),
    losses=(Loss.HINGE,),
    time="O(dK); full matrices O(dK + d²)",
    memory="2dK; full matrices d²K",
    regret_full="none given here",
    regret_bandit="",
    available=True,
    words={"matrix": MATRICES, "update": UPDATES},
    grid={"r0": tuple(2.0**i for i in (-5, -3, -1, 1, 3, 5))},  # Crammer et al. tune r as well
)
NOTES = ()
DROP = UPDATES.index("drop")


class Arow(NamedTuple):
    """The settings."""

    matrix: int  # diagonal or full
    r0: float  # r₀ > 0  the larger, the more slowly Σ shrinks
    update: int  # line 4: precision or drop


class ArowState(NamedTuple):
    """The state."""

    W: Matrix
    S: Matrix  # diagonal: in the layout of W; full: the K matrices Σ_k, d × d, below each other


def init(settings: Arow, problem: Problem, sparse: bool) -> ArowState:
    """Line 0: W = 0, Σ = I."""
    K, d = problem.n_classes, problem.n_features
    W = zeros(K, d, sparse)
    if settings.matrix != FULL:
        return ArowState(W, np.ones_like(W))
    check_matrix_size(K * d, d)
    return ArowState(W, np.tile(np.eye(d), (K, 1)))


class ArowScratch(NamedTuple):
    """Work space for the full matrices."""

    own: Vector  # Σ_y x
    its: Vector  # Σ_r x


def scratch(settings: Arow, problem: Problem, sparse: bool) -> ArowScratch:
    """Two vectors over the features, for full matrices."""
    d = problem.n_features if settings.matrix == FULL else 0
    return ArowScratch(np.zeros(d), np.zeros(d))


def weights(state: ArowState, sparse: bool) -> Matrix:
    """W, K × d."""
    return by_label(state.W, sparse)


def recommend(problem: Problem, matrix: str = "diagonal", r0: float = 1.0, update: str = "precision") -> Arow:
    """Diagonal, r₀ = 1."""
    kind = matrix_kind(matrix)
    if kind == FULL:
        check_matrix_size(problem.n_classes * problem.n_features, problem.n_features)
    if not (r0 > 0.0 and math.isfinite(r0)):
        raise SettingError(f"r0={r0!r} must be a positive number")
    if update not in UPDATES:
        raise SettingError(f"update={update!r} must be one of {', '.join(UPDATES)}")
    return Arow(kind, float(r0), UPDATES.index(update))


def passes(settings: Mapping[str, Any], size: Size) -> float:
    """The number of products in a round, with those of the full matrix if there is one."""
    matrix = size.n_features**2 if settings.get("matrix") == "full" else 0
    return size.nonzeros * size.n_classes + matrix


def theorem(problem: Problem, settings: Arow) -> str:
    """Return why there is no bound."""
    return "none: the bound of Crammer et al. 2009 is for two labels and one full matrix"


def bound(problem: Problem, settings: Arow, comparator: Comparator) -> float:
    """Raise NoBoundError: the paper's bound is for two labels and one full matrix."""
    raise NoBoundError("AROW's bound is for two labels and one full matrix, and needs the examples with an update")


# --- the algorithm ------------------------------------------------------------------------------------------


def decide(s: Arow, state: ArowState, x: Row, rd: Round, work: ArowScratch, u: float) -> int:
    """Line 1."""
    scores(state.W, x, rd.z)
    mask_unavailable(rd.z, rd.available)
    top = best(rd.z)
    point(rd.p, top)
    return top


@jit
def share(s: Arow, beta: float, own: float) -> float:
    """The factor of Σxx'Σ that line 4 subtracts from a Σ with x'Σx = own."""
    return beta if s.update == DROP else 1.0 / (s.r0 + own)


def learn(s: Arow, state: ArowState, x: Row, rd: Round, work: ArowScratch, label: int, truth: int) -> None:
    """Lines 2-4."""
    m = margin(rd.z, truth)
    if m >= 1.0:
        return
    W, S, other = state.W, state.S, rival(rd.z, truth)
    if s.matrix == FULL:
        d = work.own.shape[0]
        own, its = times_one(S, x, truth, work.own), times_one(S, x, other, work.its)
        beta = 1.0 / (own + its + s.r0)
        move_one(W, x, truth, work.own, (1.0 - m) * beta)
        move_one(W, x, other, work.its, (m - 1.0) * beta)
        shrink(S[truth * d : (truth + 1) * d], work.own, share(s, beta, own))
        shrink(S[other * d : (other + 1) * d], work.its, share(s, beta, its))
        return
    beta = 1.0 / (score_variance(S, x, truth) + score_variance(S, x, other) + s.r0)
    add_scaled_by_variance(W, S, x, truth, (1.0 - m) * beta)
    add_scaled_by_variance(W, S, x, other, (m - 1.0) * beta)
    for k in (truth, other):
        if s.update == DROP:
            reduce_variance(S, x, k, beta)
        else:
            add_precision(S, x, k, 1.0 / s.r0)


algorithm(Arow, decide, learn)
