"""Epsilon-greedy: play the label that a regression likes best, and now and then any.

Langford & Zhang, "The Epoch-Greedy Algorithm for Contextual Multi-armed Bandits", NIPS 2007, in the online form of
Bietti, Agarwal & Langford, "A Contextual Bandit Bake-off", JMLR 2021, with linear oracles.   Feedback: bandit.
Cost: O(dK) a round.

    for t = 1, 2, ...
      1   see x;  z_k = ⟨W_k, x⟩;  f_k = the oracle's guess of P(y = k | x);  k* = argmax z
      2   q(k) = ε/K, and 1 - ε more for k*
      3   play a ~ q
      4   one step of the oracle on (x, a, b), not weighted by 1/q, b what a was worth: 1 right, 0 wrong, or in between
              squared     f = z clipped to [0, 1]     W_a ← W_a - η (f_a - b) x
              logistic    f_k = 1/(1 + exp(-z_k))     W_a ← W_a - η (f_a - b) x
              softmax     f = softmax z               W_k ← W_k - η ∂/∂z_k[-b ln f_a - (1 - b) ln(1 - f_a)] x  for all k

Labels that are not available in a round are left out of lines 1 and 2, where K then counts the others.

It is what most people try first, and here to be compared with: exploring costs it ε(K - 1)/K of all rounds for good.

Example:

    >>> from gaptron import Learner
    >>> from gaptron.streams import open_stream, prepare
    >>> stream = prepare(open_stream("digits"), unit_norm=True)
    >>> learner = Learner("epsilon-greedy", classes=stream.classes, feedback="bandit", seed=0)
    >>> learner.play(stream).mistakes
    709

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
from gaptron.kernels.simplex import best, draw, exclude, mix_uniform
from gaptron.types import Card, Comparator, Feedback, Loss, Matrix, Problem, Round, Row, Variant, Vector

CARD = Card(
    paper="Langford & Zhang 2007; Bietti et al. 2021",
    feedback=(Feedback.BANDIT,),
    losses=(Loss.LOGISTIC,),
    time="O(dK)",
    memory="dK",
    regret_full="",
    regret_bandit="none; exploring alone costs ε(K - 1)/K a round",
    among=True,
    rewards=True,
    single=("W",),
    words={"oracle": ORACLES},
    grid={"epsilon": (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)},
    variants={"softmax": Variant({"oracle": "softmax"})},
)
NOTES = ()


class EpsilonGreedy(NamedTuple):
    """The settings."""

    oracle: int  # squared, logistic (one against all) or softmax (likelihood of the feedback)
    epsilon: float  # ε: the share of rounds in which any label is played
    step: float  # η > 0


class EpsilonGreedyState(NamedTuple):
    """What is learned."""

    W: Matrix


def init(settings: EpsilonGreedy, problem: Problem, sparse: bool) -> EpsilonGreedyState:
    """W = 0."""
    return EpsilonGreedyState(zeros(problem.n_classes, problem.n_features, sparse))


class EpsilonGreedyScratch(NamedTuple):
    """Work space."""

    f: Vector  # what the oracle predicts of every label
    r: Vector  # coefficients of the update
    N: Matrix  # AdaGrad's sums of squares: none


def scratch(settings: EpsilonGreedy, problem: Problem, sparse: bool) -> EpsilonGreedyScratch:
    """Two numbers a label."""
    K = problem.n_classes
    return EpsilonGreedyScratch(np.zeros(K), np.zeros(K), zeros(0, 0, sparse))


def weights(state: EpsilonGreedyState, sparse: bool) -> Matrix:
    """W, K × d."""
    return by_label(state.W, sparse)


# --- theory -----------------------------------------------------------------------------------------------


def recommend(
    problem: Problem, oracle: str = "logistic", epsilon: float = 0.05, step: float | None = None
) -> EpsilonGreedy:
    """ε = 0.05, and steps that do well on rows of unit norm; for rows up to X the step is divided by X²."""
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
    """Where the exploration comes from."""
    return "Langford & Zhang 2007, for data that are drawn; no bound on mistakes for other data"


def bound(problem: Problem, settings: EpsilonGreedy, comparator: Comparator) -> float:
    """None: the theorems speak of data drawn from one distribution, and of ε that falls."""
    raise NoBoundError(
        "epsilon-greedy has no bound on mistakes for arbitrary data: its theorem is for data drawn alike"
    )


# --- the algorithm ------------------------------------------------------------------------------------------


def decide(s: EpsilonGreedy, state: EpsilonGreedyState, x: Row, rd: Round, work: EpsilonGreedyScratch, u: float) -> int:
    """Lines 1-3."""
    scores(state.W, x, rd.z)
    exclude(rd.z, rd.among)
    top = best(rd.z)
    predict(s.oracle, rd.z, top, work.f)
    mix_uniform(rd.p, rd.among, top, s.epsilon)
    return draw(rd.p, top, u)


def learn(
    s: EpsilonGreedy, state: EpsilonGreedyState, x: Row, rd: Round, work: EpsilonGreedyScratch, label: int, truth: int
) -> None:
    """Line 4. Right or wrong, every answer teaches."""
    fit(state.W, work.N, x, s.oracle, CONSTANT, s.step, work.f, label, rd.answer[0].reward, work.r)


algorithm(EpsilonGreedy, decide, learn)
