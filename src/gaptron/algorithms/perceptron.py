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

Labels that are not available in a round have z = -∞: they are neither played nor in E.

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
from typing import Any, NamedTuple

from gaptron.errors import SettingError
from gaptron.kernels.play import algorithm
from gaptron.kernels.rounding import put_one
from gaptron.kernels.rows import by_label, scores, zeros
from gaptron.kernels.simplex import best, exclude, point
from gaptron.types import (
    UNCOUNTED,
    Card,
    Comparator,
    Feedback,
    Loss,
    Matrix,
    Nothing,
    Problem,
    Round,
    Rounding,
    Row,
    Variant,
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
    among=True,
    single=("W",),
    words={"update": UPDATES},
    variants={"uniform": Variant({"update": "uniform"}), "proportional": Variant({"update": "proportional"})},
)
NOTES = ()


class Perceptron(NamedTuple):
    """The settings. There is no step size: the scale of the weights does not matter."""

    update: int  # who pays for a mistake: worst, uniform or proportional


class PerceptronState(NamedTuple):
    """What is learned."""

    W: Matrix
    rounding: Any = UNCOUNTED  # what single precision has cost


def init(settings: Perceptron, problem: Problem, sparse: bool) -> PerceptronState:
    """W = 0."""
    return PerceptronState(zeros(problem.n_classes, problem.n_features, sparse))


def scratch(settings: Perceptron, problem: Problem, sparse: bool) -> Nothing:
    """Scores and distribution are all."""
    return Nothing()


def weights(state: PerceptronState, sparse: bool) -> Matrix:
    """W, K × d."""
    return by_label(state.W, sparse)


def recommend(problem: Problem, update: str = "worst") -> Perceptron:
    """The worst offender pays, unless you say otherwise."""
    if update not in UPDATES:
        raise SettingError(f"update={update!r} must be one of {', '.join(UPDATES)}")
    return Perceptron(UPDATES.index(update))


def theorem(problem: Problem, settings: Perceptron) -> str:
    """Where the bound comes from."""
    return "Fink et al. 2006, as corrected in erratum E12"


def bound(problem: Problem, settings: Perceptron, comparator: Comparator) -> float:
    """M_T ≤ L_T(U) + 2X²‖U‖² + X‖U‖√(2L_T(U)), on every path, for every U, L_T the hinge loss.

    Every update of the family has ⟨W, update⟩ ≤ 0, ‖update‖² ≤ 2X² and ⟨U, update⟩ ≥ 1 - ℓ(U), which is all
    the proof uses.
    """
    return rounded_bound(problem, settings, comparator, Rounding())


def rounded_bound(problem: Problem, settings: Perceptron, comparator: Comparator, rounding: Rounding) -> float:
    """L + 2X²‖U‖² + ‖U‖√(2X²L + 2A), L = L_T(U) + B‖U‖: with the rounding A, B of weights in single precision.

    Rounding takes at most B‖U‖ from ⟨U, W⟩ ≥ M - L_T(U) and adds 2A to ‖W‖² ≤ 2X²M.
    """
    (X,) = problem.need("norm")
    U = comparator.norm
    loss = comparator.loss + rounding.drift * U
    return loss + 2 * (X * U) ** 2 + U * math.sqrt(2 * X * X * loss + 2 * max(rounding.lean, 0.0))


def decide(s: Perceptron, state: PerceptronState, x: Row, rd: Round, work: Nothing, u: float) -> int:
    """Lines 1-2."""
    scores(state.W, x, rd.z)
    exclude(rd.z, rd.among)
    top = best(rd.z)
    point(rd.p, top)
    return top


def learn(s: Perceptron, state: PerceptronState, x: Row, rd: Round, work: Nothing, label: int, truth: int) -> None:
    """Line 3."""
    if label == truth:
        return
    W, rounding = state.W, state.rounding
    put_one(W, x, truth, 1.0, rounding, 1.0, 1.0)
    if s.update == 0:
        put_one(W, x, label, -1.0, rounding, 1.0, 1.0)
        return
    z, count, total = rd.z, 0, 0.0
    for k in range(z.shape[0]):
        if k != truth and z[k] >= z[truth]:
            count += 1
            total += z[k] - z[truth]
    for k in range(z.shape[0]):
        if k != truth and z[k] >= z[truth]:
            share = (z[k] - z[truth]) / total if s.update == 2 and total > 0.0 else 1.0 / count
            put_one(W, x, k, -share, rounding, 1.0, 1.0)


algorithm(Perceptron, decide, learn)
