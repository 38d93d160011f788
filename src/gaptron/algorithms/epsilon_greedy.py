"""Epsilon-greedy: play the label that a regression ranks first, and with probability ε any label.

Langford & Zhang, "The Epoch-Greedy Algorithm for Contextual Multi-armed Bandits", NIPS 2007, in the online form of
Bietti, Agarwal & Langford, "A Contextual Bandit Bake-off", JMLR 2021, with linear oracles.   Feedback: bandit.
Cost: O(dK) a round.

    for t = 1, 2, ...
      1   see x;  z_k = ⟨W_k, x⟩;  f_k = the oracle's estimate of P(y = k | x);  k* = argmax z
      2   q(k) = ε/K, and 1 - ε more for k*; labels that tie for k* share it
      3   play a ~ q
      4   one step of the oracle on (x, a, b), without the weight 1/q; b is the reward of a, 1 right and 0 wrong
              squared     f = z clipped to [0, 1]     W_a ← W_a - η (f_a - b) x
              logistic    f_k = 1/(1 + exp(-z_k))     W_a ← W_a - η (f_a - b) x
              softmax     f = softmax z               W_k ← W_k - η ∂/∂z_k[-b ln f_a - (1 - b) ln(1 - f_a)] x  for all k

Labels that are not available in a round are left out of lines 1 and 2, and K is the number of the other labels.

Where rounds bring their own actions w is one row, z_k = ⟨w, φ_k⟩, and line 4 adds to w what it would add to W_k, with
φ_k for x.

This is a common baseline. Its exploration costs ε(K - 1)/K mistakes per round, in every round.

Example:

    >>> from gaptron import Learner
    >>> from gaptron.streams import open_stream, prepare
    >>> stream = prepare(open_stream("digits"), unit_norm=True)
    >>> learner = Learner("epsilon-greedy", classes=stream.classes, feedback="bandit", seed=0)
    >>> learner.play(stream).mistakes
    640

To cite:

    @article{bietti2021contextual,
      title     = {A Contextual Bandit Bake-off},
      author    = {Bietti, Alberto and Agarwal, Alekh and Langford, John},
      journal   = {Journal of Machine Learning Research},
      volume    = {22},
      year      = {2021}
    }
"""

import math
from typing import NamedTuple

import numpy as np

from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.oracles import CONSTANT, ORACLES, fit, predict, step_for
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import by_label, scores, zeros
from gaptron.kernels.simplex import add_to_best, best, draw, mask_unavailable, uniform
from gaptron.types import Card, Comparator, Feedback, Loss, Matrix, Problem, Round, Row, Vector

CARD = Card(
    paper="Langford & Zhang 2007; Bietti et al. 2021",
    feedback=(Feedback.BANDIT,),
    losses=(Loss.LOGISTIC,),
    time="O(dK)",
    memory="dK",
    regret_full="",
    regret_bandit="none; exploring alone costs ε(K - 1)/K a round",
    available=True,
    rewards=True,
    actions=True,
    single=("W",),
    words={"oracle": ORACLES},
    grid={"epsilon": (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)},
)
NOTES = ()


class EpsilonGreedy(NamedTuple):
    """The settings."""

    oracle: int  # squared, logistic (one against all) or softmax (likelihood of the feedback)
    epsilon: float  # ε ∈ (0, 1] the share of rounds with a label drawn uniformly
    step: float  # η > 0


class EpsilonGreedyState(NamedTuple):
    """The state."""

    W: Matrix


def init(settings: EpsilonGreedy, problem: Problem, sparse: bool) -> EpsilonGreedyState:
    """W = 0."""
    return EpsilonGreedyState(zeros(problem.n_classes, problem.n_features, sparse))


class EpsilonGreedyScratch(NamedTuple):
    """Work space."""

    f: Vector  # the oracle's prediction for every label
    r: Vector  # coefficients of the update
    N: Matrix  # AdaGrad's sums of squares, empty here


def scratch(settings: EpsilonGreedy, problem: Problem, sparse: bool) -> EpsilonGreedyScratch:
    """Two numbers per label."""
    K = problem.n_classes
    return EpsilonGreedyScratch(np.zeros(K), np.zeros(K), zeros(0, 0, sparse))


def weights(state: EpsilonGreedyState, sparse: bool) -> Matrix:
    """W, K × d."""
    return by_label(state.W, sparse)


# --- theory -----------------------------------------------------------------------------------------------


def recommend(
    problem: Problem, oracle: str = "logistic", epsilon: float = 0.05, step: float | None = None
) -> EpsilonGreedy:
    """ε = 0.05, and steps that do well on examples of unit norm; for norms up to X the step is divided by X²."""
    if oracle not in ORACLES:
        raise SettingError(f"oracle={oracle!r} must be one of {', '.join(ORACLES)}")
    if not 0.0 < epsilon <= 1.0:
        raise SettingError(f"epsilon={epsilon!r} must lie in (0, 1]")
    if step is None:
        (X,) = problem.need("norm")
        step = step_for(oracle, "constant", X)
    if not (step > 0.0 and math.isfinite(step)):
        raise SettingError(f"step={step!r} must be a positive number")
    return EpsilonGreedy(ORACLES.index(oracle), float(epsilon), float(step))


def theorem(problem: Problem, settings: EpsilonGreedy) -> str:
    """The source of the exploration."""
    return "Langford & Zhang 2007, for data drawn from one distribution; no bound on mistakes for other data"


def bound(problem: Problem, settings: EpsilonGreedy, comparator: Comparator) -> float:
    """Raise NoBoundError: the theorems are for data drawn from one distribution and a decreasing ε."""
    raise NoBoundError(
        "epsilon-greedy has no bound for arbitrary data: its theorem is for data drawn from one distribution"
    )


# --- the algorithm ------------------------------------------------------------------------------------------


def decide(s: EpsilonGreedy, state: EpsilonGreedyState, x: Row, rd: Round, work: EpsilonGreedyScratch, u: float) -> int:
    """Lines 1-3."""
    scores(state.W, x, rd.z)
    mask_unavailable(rd.z, rd.available)
    top = best(rd.z)
    predict(s.oracle, rd.z, top, work.f)
    uniform(rd.p, rd.available, s.epsilon)
    add_to_best(rd.p, rd.z, top, 1.0 - s.epsilon)
    return draw(rd.p, top, u)


def learn(
    s: EpsilonGreedy, state: EpsilonGreedyState, x: Row, rd: Round, work: EpsilonGreedyScratch, label: int, truth: int
) -> None:
    """Line 4."""
    fit(state.W, work.N, x, s.oracle, CONSTANT, s.step, work.f, label, rd.feedback[0].reward, work.r)


def cut(s: EpsilonGreedy, work: EpsilonGreedyScratch, n: int) -> EpsilonGreedyScratch:
    """The work space of a round with n actions."""
    return EpsilonGreedyScratch(work.f[:n], work.r[:n], work.N)


algorithm(EpsilonGreedy, decide, learn, cut=cut)
