"""The multiclass Perceptron.

Crammer & Singer, "Ultraconservative Online Algorithms for Multiclass Problems", JMLR 2003, with the bound of
Fink, Shalev-Shwartz, Singer & Ullman, "Online Multiclass Learning by Interclass Hypothesis Sharing", ICML
2006.   Feedback: full.   Cost: O(dK) to predict, O(d) to learn.

    for t = 1, 2, ...
      1   see x;  z_k = ⟨W_k, x⟩;  ŷ = argmax z                   (of equals, the lowest label)
      2   play ŷ
      3   if ŷ ≠ y:  W_y ← W_y + x,  W_r ← W_r - τ_r x  for r in E = {r ≠ y: z_r ≥ z_y},  Σ τ = 1:
              worst           τ_ŷ = 1
              uniform         τ_r = 1/|E|
              proportional    τ_r ∝ z_r - z_y                     (all equal: uniform)

Labels that are not available in a round have z = -∞. They are neither played nor in E.

Example:

    >>> from gaptron import Learner
    >>> from gaptron.streams import open_stream, prepare
    >>> stream = prepare(open_stream("digits"), unit_norm=True)
    >>> learner = Learner("perceptron", classes=stream.classes, update="uniform", seed=0)
    >>> learner.play(stream).mistakes
    320

To cite:

    @article{crammer2003ultraconservative,
      title     = {Ultraconservative Online Algorithms for Multiclass Problems},
      author    = {Crammer, Koby and Singer, Yoram},
      journal   = {Journal of Machine Learning Research},
      year      = {2003}
    }
"""

import math
from typing import NamedTuple

import numpy as np

from gaptron.errors import SettingError
from gaptron.kernels.compile.jit import jit
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import add, by_label, scores, zeros
from gaptron.kernels.simplex import best, mask_unavailable, multiply, point
from gaptron.types import (
    Card,
    Comparator,
    Feedback,
    Loss,
    Matrix,
    Problem,
    Round,
    Row,
    Vector,
)

UPDATES = ("worst", "uniform", "proportional")
CARD = Card(
    paper="Crammer & Singer 2003; Fink et al. 2006",
    feedback=(Feedback.FULL,),
    losses=(Loss.HINGE,),
    time="O(dK)",
    memory="dK",
    regret_full="O(‖U‖² + ‖U‖√L_T)",
    regret_bandit="",
    available=True,
    single=("W",),
    words={"update": UPDATES},
)
NOTES = ()
WORST, UNIFORM, PROPORTIONAL = range(len(UPDATES))


class Perceptron(NamedTuple):
    """The settings. There is no step size: the scale of the weights does not matter."""

    update: int  # τ of line 3: worst, uniform or proportional


class PerceptronState(NamedTuple):
    """The state."""

    W: Matrix


def init(settings: Perceptron, problem: Problem, sparse: bool) -> PerceptronState:
    """W = 0."""
    return PerceptronState(zeros(problem.n_classes, problem.n_features, sparse))


class PerceptronScratch(NamedTuple):
    """Work space."""

    r: Vector  # coefficients of the update, one per label


def scratch(settings: Perceptron, problem: Problem, sparse: bool) -> PerceptronScratch:
    """One number per label."""
    return PerceptronScratch(np.zeros(problem.n_classes))


def weights(state: PerceptronState, sparse: bool) -> Matrix:
    """W, K × d."""
    return by_label(state.W, sparse)


def recommend(problem: Problem, update: str = "worst") -> Perceptron:
    """By default the label played loses x, and no other."""
    if update not in UPDATES:
        raise SettingError(f"update={update!r} must be one of {', '.join(UPDATES)}")
    return Perceptron(UPDATES.index(update))


def theorem(problem: Problem, settings: Perceptron) -> str:
    """The source of the bound."""
    return "Fink et al. 2006, as corrected in erratum E12"


def bound(problem: Problem, settings: Perceptron, comparator: Comparator) -> float:
    """M_T ≤ L_T(U) + 2X²‖U‖² + X‖U‖√(2L_T(U)), on every path, for every U, L_T the hinge loss.

    Every update of the family has ⟨W, update⟩ ≤ 0, ‖update‖² ≤ 2X² and ⟨U, update⟩ ≥ 1 - ℓ(U), which is all
    the proof uses.
    """
    (X,) = problem.need("norm")
    U, loss = comparator.norm, comparator.loss
    return loss + 2 * (X * U) ** 2 + U * math.sqrt(2 * X * X * loss)


@jit
def shares(update: int, z: Vector, label: int, truth: int, tau: Vector) -> None:
    """τ of line 3: how the labels in E share the update."""
    if update == WORST:
        point(tau, label)
        return
    count, total = 0, 0.0
    for k in range(z.shape[0]):
        tau[k] = 0.0
        if k != truth and z[k] >= z[truth]:
            count += 1
            total += z[k] - z[truth]
    for k in range(z.shape[0]):
        if k != truth and z[k] >= z[truth]:
            tau[k] = (z[k] - z[truth]) / total if update == PROPORTIONAL and total > 0.0 else 1.0 / count


def decide(s: Perceptron, state: PerceptronState, x: Row, rd: Round, work: PerceptronScratch, u: float) -> int:
    """Lines 1-2."""
    scores(state.W, x, rd.z)
    mask_unavailable(rd.z, rd.available)
    top = best(rd.z)
    point(rd.p, top)
    return top


def learn(
    s: Perceptron, state: PerceptronState, x: Row, rd: Round, work: PerceptronScratch, label: int, truth: int
) -> None:
    """Line 3."""
    if label == truth:
        return
    shares(s.update, rd.z, label, truth, work.r)
    multiply(work.r, -1.0)
    work.r[truth] = 1.0
    add(state.W, x, work.r)


algorithm(Perceptron, decide, learn)
