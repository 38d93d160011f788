"""Estimates of a policy's mistakes from importance weights and logged mistakes.

In a round the logger played label a, drawn with propensity p(a), and the mistake was m = 1 - reward. The evaluated
policy would have played a with probability q(a); w = q(a)/p(a). With f a prediction of every label's mistake, made
without this round:

    inverse propensity   mean of w·m                        Horvitz & Thompson 1952
    self-normalised      Σ w·m / Σ w                        Hájek 1971; Swaminathan & Joachims 2015
    doubly robust        mean of Σ_k q(k) f_k + w·(m - f_a)   Dudík, Langford & Li 2011

Given the past, each term of the first and third has the expected mistake of playing q as its mean, so that the errors
are sums of martingale differences. The normal intervals rest on this; it also holds when the logger was learning.

A normal interval needs the standard deviation of the terms. The sample deviation is too small when much of it comes
from labels that the logger drew too rarely to be in the sample: estimate and deviation are then too small together.
Where the log has the probability of every label, the deviation can also be computed over everything the logger could
have drawn, with f for the mistakes; the larger of the two is used. benchmarks/interval_coverage.py measures it: with a
learning logger, intervals without this correction contained the true value in 79 to 92 of 100 logs instead of 95, and
lay below it otherwise.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from gaptron.data.examples import Table, csr, norms
from gaptron.errors import SettingError
from gaptron.features import ActionEncoder, Features
from gaptron.offpolicy.action_log import ActionLog
from gaptron.offpolicy.log import Log
from gaptron.offpolicy.sums import MistakeSums, mistake_sums
from gaptron.theory.intervals import wilson
from gaptron.types import Integers, Matrix, Vector

FIRST_FIT = 64  # rounds before the first fit; until then the predicted reward of every label is 1/K


class Estimate(NamedTuple):
    """Estimated mistakes per round, with a confidence interval."""

    name: str
    mistakes: float
    low: float
    high: float


def on_policy(mistakes: Vector, level: float) -> Estimate:
    """Mean of the logged mistakes. Where every round is correct or wrong the interval is Wilson's (1927).

    A normal interval has no width where no round is wrong, although 0 of 10 says little.
    """
    return on_policy_of_sums(mistake_sums(mistakes), level)


def on_policy_of_sums(sums: MistakeSums, level: float) -> Estimate:
    """Compute `on_policy` from the sums of the rounds."""
    name, T, value = "logged policy", sums.rounds, sums.total / sums.rounds
    if T < 2 or sums.squares < sums.total:  # some m² < m: not every round is correct or wrong
        variance = (sums.squares - sums.total * value) / max(1, T - 1)
        return _interval(name, T, value, math.sqrt(max(0.0, variance)), level)
    return Estimate(name, value, *wilson(value, T, level))


def inverse_propensity(weights: Vector, mistakes: Vector, level: float, variance: float = 0.0) -> Estimate:
    """Inverse propensity estimate: unbiased if the propensities are right and every label had positive propensity.

    `variance` is a known lower limit for the variance of a term; see `variance_over_draws`.
    """
    terms = weights * mistakes
    return _normal("inverse propensity", terms, float(terms.mean()), level, variance)


def self_normalised(weights: Vector, mistakes: Vector, level: float, variance: float = 0.0) -> Estimate:
    """Self-normalised estimate: lower variance, with a bias that vanishes with the rounds; linearised interval."""
    mean = float(weights.mean())
    value = float((weights * mistakes).mean()) / mean
    return _normal("self-normalised", weights * (mistakes - value) / mean, value, level, variance)


def doubly_robust(
    weights: Vector, mistakes: Vector, predicted: Vector, expected: Vector, level: float, variance: float = 0.0
) -> Estimate:
    """Doubly robust estimate: consistent if either the propensities or the predictions are right.

    `predicted` is f_a of the label played, `expected` is Σ q(k) f_k.
    """
    terms = expected + weights * (mistakes - predicted)
    return _normal("doubly robust", terms, float(terms.mean()), level, variance)


def variance_over_draws(
    play: Matrix, distribution: Matrix, costs: Matrix, baseline: Any, sums: Callable[[Matrix], Vector]
) -> float:
    """Mean over the rounds of the variance of w·(m - baseline), over everything the logger could have drawn.

    The label is k with probability p(k), and m then has mean `costs`; m² ≤ m because mistakes lie in [0, 1].
    `sums` adds the numbers of the labels of each round.
    """
    squares: Matrix = np.divide(play * play, distribution, out=np.zeros_like(play), where=distribution > 0.0)
    second = sums(squares * (costs * (1.0 - 2.0 * baseline) + baseline * baseline))
    first = sums(np.where(distribution > 0.0, play * (costs - baseline), 0.0))
    return max(0.0, float((second - first * first).mean()))


def check_level(level: float) -> None:
    """Refuse a confidence level outside (0, 1)."""
    if not 0.0 < level < 1.0:
        raise SettingError(f"level={level!r} must lie in (0, 1), for example 0.95")


def _normal(name: str, terms: Vector, value: float, level: float, variance: float) -> Estimate:
    deviation = float(terms.std(ddof=1)) if len(terms) > 1 else 0.0
    return _interval(name, len(terms), value, max(deviation, math.sqrt(variance)), level)


def _interval(name: str, T: int, value: float, deviation: float, level: float) -> Estimate:
    """The normal interval of the mean of T terms."""
    if T < 2:
        return Estimate(name, value, 0.0, 1.0)
    half = float(ndtri(0.5 + level / 2.0)) * deviation / math.sqrt(T)
    return Estimate(name, value, min(max(value - half, 0.0), 1.0), min(max(value + half, 0.0), 1.0))


# --- the reward model ---------------------------------------------------------------------------------------


def predict_rewards(log: Log | ActionLog) -> Matrix | Vector:
    """Predict the reward of every label in every round, T × K, in [0, 1], by one ridge regression per label.

    Of actions, whose number differs from round to round, one number each, by one regression on context and features.

    A prediction must not depend on the feedback of its own round, or the intervals would be invalid. Cross-fitting
    ensures that where rounds are independent, but in the log of a learner later rounds depend on earlier feedback. The
    predictions for a round therefore come from a fit on earlier rounds only, refitted whenever the log has doubled.
    """
    if isinstance(log, ActionLog):
        return _predicted_of_actions(log)
    predicted = np.full((log.n_rounds, log.n_classes), 1.0 / log.n_classes)
    for start, part in _fits(log.n_rounds):
        predicted[part] = _fitted(log.X[:start], log.codes[:start], log.reward[:start], log.X[part], log.n_classes)
    return predicted


def _fits(n_rounds: int) -> Iterator[tuple[int, slice]]:
    """After how many rounds to fit, and the rounds that the fit is for."""
    start = FIRST_FIT
    while start < n_rounds:
        yield start, slice(start, min(2 * start, n_rounds))
        start *= 2


def _fitted(X: Table, codes: Integers, reward: Vector, later: Table, K: int) -> Matrix:
    rewards = np.full((later.shape[0], K), reward.mean())
    penalty = _penalty(X)
    for label in range(K):
        played = np.flatnonzero(codes == label)
        if len(played) > 1:
            rewards[:, label] = _ridge(X[played], reward[played], later, penalty)
    return rewards.clip(0.0, 1.0)


def _predicted_of_actions(log: ActionLog) -> Vector:
    rounds = ActionEncoder(Features(ids=None if log.stream.named else False)).encode_rounds(log.records, learn=True)
    counts, first = rounds.counts, log.first
    contexts = csr(rounds.contexts.values, rounds.contexts.indices, rounds.contexts.indptr, rounds.width)
    X = (rounds.as_matrix() + contexts[np.repeat(np.arange(len(rounds)), counts)]).tocsr()
    played, predicted = first[:-1] + log.stream.codes, log.uniform
    for start, part in _fits(log.n_rounds):
        past, rows = X[played[:start]], slice(first[part.start], first[part.stop])
        predicted[rows] = _ridge(past, log.reward[:start], X[rows], _penalty(past)).clip(0.0, 1.0)
    return predicted


def _penalty(X: Table) -> float:
    """Make a fit independent of the scale of X."""
    return float(np.square(norms(X)).mean()) or 1.0


def _ridge(X: Table, reward: Vector, later: Table, penalty: float) -> Vector:
    from sklearn.linear_model import Ridge  # noqa: PLC0415

    model: Any = Ridge(alpha=penalty).fit(X, reward)
    predicted: Vector = model.predict(later)
    return predicted
