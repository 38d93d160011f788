"""Banditron: the Perceptron's update, estimated from bandit feedback.

Kakade, Shalev-Shwartz & Tewari, "Efficient Bandit Algorithms for Online Multiclass Prediction", ICML 2008,
Algorithm 1.   Feedback: bandit.   Cost: O(dK) to predict, O(d) to learn.

    for t = 1, 2, ...
      1   see x;  z_k = ⟨W_k, x⟩;  ŷ = argmax z
      2   p = (1 - γ) e_ŷ + γ/K
      3   play y' ~ p
      4   W_ŷ ← W_ŷ - x                             (every round)
          if y' was right:  W_y' ← W_y' + x/p(y')      (reward s: + s·x/p(y'))

Labels that are not available in a round have z = -∞, and γ is spread over the other labels.

Example:

    >>> from gaptron import Learner
    >>> from gaptron.streams import open_stream, prepare
    >>> stream = prepare(open_stream("digits"), unit_norm=True)
    >>> learner = Learner("banditron", classes=stream.classes, feedback="bandit", gamma=0.1, seed=0)
    >>> learner.play(stream).mistakes
    1331

To cite:

    @inproceedings{kakade2008efficient,
      title     = {Efficient Bandit Algorithms for Online Multiclass Prediction},
      author    = {Kakade, Sham M. and Shalev-Shwartz, Shai and Tewari, Ambuj},
      booktitle = {International Conference on Machine Learning},
      year      = {2008}
    }
"""

import math
from typing import NamedTuple

from gaptron.errors import SettingError
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import add_one, by_label, scores, zeros
from gaptron.kernels.simplex import best, draw, mask_unavailable, mix_uniform
from gaptron.types import UNKNOWN, Card, Comparator, Feedback, Loss, Matrix, Nothing, Problem, Round, Row

CARD = Card(
    paper="Kakade, Shalev-Shwartz & Tewari 2008, Algorithm 1",
    feedback=(Feedback.BANDIT,),
    losses=(Loss.HINGE,),
    time="O(dK)",
    memory="dK",
    regret_full="",
    regret_bandit="O((D²K)^⅓ T^⅔)",
    available=True,
    rewards=True,
    single=("W",),
    grid={"gamma": tuple(2.0**-i for i in (10, 8, 6, 5, 4, 3, 2, 1))},  # Kakade et al., Figure 2
)
NOTES = ()


class Banditron(NamedTuple):
    """The settings."""

    gamma: float  # γ ∈ (0, ½] exploration


class BanditronState(NamedTuple):
    """The state."""

    W: Matrix


def init(settings: Banditron, problem: Problem, sparse: bool) -> BanditronState:
    """W = 0."""
    return BanditronState(zeros(problem.n_classes, problem.n_features, sparse))


def scratch(settings: Banditron, problem: Problem, sparse: bool) -> Nothing:
    """No work space besides scores and distribution."""
    return Nothing()


def weights(state: BanditronState, sparse: bool) -> Matrix:
    """W, K × d."""
    return by_label(state.W, sparse)


def recommend(problem: Problem, gamma: float | None = None) -> Banditron:
    """γ = (K/T)^⅓, at most ½ (Bubeck & Cesa-Bianchi 2012, Theorem 4.7)."""
    if gamma is None:
        (T,) = problem.need("horizon")
        gamma = min(0.5, (problem.n_classes / T) ** (1 / 3))
    if not 0.0 < gamma <= 0.5:
        raise SettingError(f"gamma={gamma!r} must lie in (0, 0.5]")
    return Banditron(float(gamma))


def theorem(problem: Problem, settings: Banditron) -> str:
    """The source of the bound."""
    return "the theorem of Kakade et al. 2008"


def bound(problem: Problem, settings: Banditron, comparator: Comparator) -> float:
    """E[M_T] ≤ L + γT + 3 max{KD'/γ, √(D'γT)} + √(KD'L/γ), D' = 2X²‖U‖², L the hinge loss of a fixed U.

    Holds for every γ ∈ (0, ½], every T and every U fixed before the draws.
    """
    (X,) = problem.need("norm")
    K, g, T = problem.n_classes, settings.gamma, comparator.rounds
    D = 2 * (X * comparator.norm) ** 2
    return comparator.loss + g * T + 3 * max(K * D / g, math.sqrt(D * g * T)) + math.sqrt(K * D * comparator.loss / g)


def decide(s: Banditron, state: BanditronState, x: Row, rd: Round, work: Nothing, u: float) -> int:
    """Lines 1-3."""
    scores(state.W, x, rd.z)
    mask_unavailable(rd.z, rd.available)
    top = best(rd.z)
    mix_uniform(rd.p, rd.available, top, s.gamma)
    return draw(rd.p, top, u)


def learn(s: Banditron, state: BanditronState, x: Row, rd: Round, work: Nothing, label: int, truth: int) -> None:
    """Line 4. A wrong label leads to an update too: ŷ loses x."""
    add_one(state.W, x, best(rd.z), -1.0)
    if truth != UNKNOWN:
        add_one(state.W, x, truth, rd.feedback[0].reward / rd.p[truth])


algorithm(Banditron, decide, learn)
