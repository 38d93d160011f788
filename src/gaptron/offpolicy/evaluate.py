"""Evaluate a policy on decisions that another policy made and logged.

    evaluate_frozen    a learner that does not learn any more: how often would it be wrong?
    evaluate_policy    the same for your own policy, given the probabilities it would have used
    evaluate_learning  a learner that learns from every logged round: how often would it be wrong just before each?
    replay             a learner that starts from scratch and makes its own decisions: how would it have done?

The first three weight each round by the ratio of the policy's to the logger's probability of the logged label. `replay`
keeps a round with the probability that the learner would have played the logged label, thinned so that the logger's
preferences cancel. The rounds it keeps are a possible run of the learner, only shorter (Li, Chu, Langford & Wang 2011,
for a uniform log).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gaptron.errors import InputError, SettingError
from gaptron.learner import Learner
from gaptron.offpolicy import estimates
from gaptron.offpolicy.action_log import ActionLog
from gaptron.offpolicy.confidence_sequence import proven_interval
from gaptron.offpolicy.estimates import Estimate, check_level, predict_rewards, variance_over_draws
from gaptron.offpolicy.learning import check_can_learn, check_fits, logged_rounds
from gaptron.offpolicy.log import Log
from gaptron.offpolicy.result import OffPolicyEstimate
from gaptron.types import Vector

AnyLog = Log | ActionLog
Values = Any  # one number per round and label: a matrix, or of actions a vector
Progress = Callable[[int], None]
SELDOM, RARE = 10, 0.01  # unsupported: expected fewer than 10 times in the log, and less than once in 100 rounds
REPLAY = 0x4E91A7  # separates the random numbers of a replay from those of learners


def evaluate_frozen(learner: Learner, log: AnyLog, *, level: float = 0.95) -> OffPolicyEstimate:
    """Evaluate a learner as it is, without further learning. It must not have learned from this log.

    Args:
        learner: The learner to evaluate; it is not changed.
        log: Decisions with their propensities and rewards.
        level: Confidence level of the intervals.

    Returns:
        Estimates of the learner's mistakes per round.
    """
    check_level(level)
    check_fits(learner, log)
    available = log.available if isinstance(log, Log) else None
    return _weighted(log, learner.distribution(log.examples_for(learner), available=available), level)


def evaluate_uniform(log: ActionLog, *, level: float = 0.95) -> OffPolicyEstimate:
    """Evaluate the policy that plays every action of a round with the same probability.

    Args:
        log: Decisions between named actions, with their propensities and rewards.
        level: Confidence level of the intervals.

    Returns:
        Estimates of its mistakes per round.
    """
    check_level(level)
    log.check_not_empty()
    return _weighted(log, log.uniform, level)


def evaluate_policy(log: Log, *, level: float = 0.95) -> OffPolicyEstimate:
    """Evaluate your own policy, whose probabilities the log holds.

    `open_log(path, column=...)` or `Log.with_policy` adds them. They must not depend on the feedback in this log. The
    doubly robust estimate needs the probability of every label and is left out if only that of the label played is
    known.

    Args:
        log: Decisions with their propensities and rewards, and the policy's probabilities.
        level: Confidence level of the intervals.

    Returns:
        Estimates of the policy's mistakes per round.
    """
    check_level(level)
    if log.policy is None:
        raise InputError(
            f"{log.name}: the log has no policy probabilities: use open_log(path, column=...) or log.with_policy(...)"
        )
    log.check_not_empty()
    if log.policy.shape[1] > 1:
        return _weighted(log, log.policy, level)
    weights: Vector = log.policy[:, 0] / log.propensity
    mistakes = log.mistakes
    _check_overlap(log, weights)
    both = (
        estimates.inverse_propensity(weights, mistakes, level),
        estimates.self_normalised(weights, mistakes, level),
    )
    return _result(log, both, weights, None, _skewness(weights * mistakes), level)


def evaluate_learning(
    learner: Learner, log: AnyLog, *, level: float = 0.95, progress: Progress | None = None
) -> OffPolicyEstimate:
    """Evaluate a learner while it learns from the log: each round is first evaluated, then learned from.

    The learner learns with the logged propensities. The estimates are of the mean over the rounds of the mistakes it
    would have made given the log so far. The learner keeps what it learned; continue with `evaluate_frozen` on later
    rounds or on another log.

    Args:
        learner: The learner to evaluate; it learns from every round.
        log: Decisions with their propensities and rewards.
        level: Confidence level of the intervals.
        progress: Called with the number of rounds done since the last call.

    Returns:
        Estimates of the learner's mistakes per round.
    """
    check_level(level)
    check_can_learn(learner, log)
    play, rounds = log.new_values(), logged_rounds(learner, log)
    for t in range(log.n_rounds):
        play[log.place(t)] = rounds.distribution(t)
        rounds.learn(t, log.propensity[t])
        if progress is not None:
            progress(1)
    return _weighted(log, play, level)


def replay(
    learner: Learner, log: AnyLog, *, level: float = 0.95, seed: int = 0, progress: Progress | None = None
) -> OffPolicyEstimate:
    """Simulate a run of the learner with the rounds for which the log has the feedback it needs.

    A round is kept with probability q(a)·p_min/p(a) and learned from as the learner's own decision. If examples and
    feedback do not depend on time, the kept rounds are distributed as a run of the learner. About p_min·T rounds are
    kept: 1/K of a uniform log.

    Args:
        learner: The learner to evaluate; it learns from the rounds that are kept.
        log: Decisions with their propensities and rewards.
        level: Confidence level of the intervals.
        seed: Seed of the draws that select the rounds.
        progress: Called with the number of rounds done since the last call.

    Returns:
        An estimate of the mistakes per round of the run.
    """
    check_level(level)
    if seed < 0:
        raise SettingError(f"seed={seed!r} must not be negative")
    check_can_learn(learner, log)
    # Not default_rng(seed): a logger with the same seed drew its labels with those numbers.
    rng, smallest = np.random.default_rng([seed, REPLAY]), log.smallest_propensity
    play, kept, rounds = log.new_values(), [], logged_rounds(learner, log)
    for t, u in enumerate(rng.random(log.n_rounds)):
        distribution = rounds.distribution(t)
        play[log.place(t)] = distribution
        propensity = float(distribution[log.codes[t]])
        if u < propensity * smallest / log.propensity[t]:
            rounds.learn(t, propensity)
            kept.append(t)
        if progress is not None:
            progress(1)
    if not kept:
        raise InputError(
            f"{log.name}: no round could be replayed because the smallest propensity is {smallest:g}: use "
            "evaluate_learning (--method learning), which uses every round"
        )
    mistakes = log.mistakes[kept]
    return OffPolicyEstimate(
        (estimates.on_policy(mistakes, level)._replace(name="replay"),),
        proven_interval(np.ones(len(kept)), mistakes, level),
        estimates.on_policy(log.mistakes, level),
        level,
        log.n_rounds,
        len(kept),
        _weights(log, play),
        _unsupported(log, play),
        near_certain=log.near_certain,
    )


def _weighted(log: AnyLog, play: Values, level: float) -> OffPolicyEstimate:
    """All estimates of a policy that would have played label k of round t with probability play[t, k]."""
    weights = _weights(log, play)
    _check_overlap(log, weights)
    three = estimate_all(log, play, weights, 1.0 - predict_rewards(log), level)
    skewness = _skewness(weights * log.mistakes) if log.distribution is None else None
    return _result(log, three, weights, _unsupported(log, play), skewness, level)


def _result(
    log: AnyLog,
    found: tuple[Estimate, ...],
    weights: Vector,
    unsupported: float | None,
    skewness: float | None,
    level: float,
) -> OffPolicyEstimate:
    T, mistakes = log.n_rounds, log.mistakes
    proven, logged = proven_interval(weights, mistakes, level), estimates.on_policy(mistakes, level)
    return OffPolicyEstimate(found, proven, logged, level, T, T, weights, unsupported, skewness, log.near_certain)


def _check_overlap(log: AnyLog, weights: Vector) -> None:
    if not weights.any():
        raise InputError(
            f"{log.name}: the policy would have played none of the logged labels, so this log cannot evaluate it"
        )


def estimate_all(log: AnyLog, play: Values, weights: Vector, costs: Values, level: float) -> tuple[Estimate, ...]:
    """Compute the three estimates, given a prediction of every label's mistake in every round."""
    mistakes = log.mistakes
    expected = log.sums(play * costs)

    def variance(costs: Values, baseline: float | Values) -> float:
        if log.distribution is None:
            return 0.0
        return variance_over_draws(play, log.distribution, costs, baseline, log.sums)

    predicted = log.of_played(costs)
    doubly_robust = estimates.doubly_robust(weights, mistakes, predicted, expected, level, variance(costs, costs))
    # Predictions of more mistakes than this policy can make would widen the other intervals needlessly.
    costs = costs * min(1.0, doubly_robust.high / max(float(expected.mean()), 1e-300))
    ratio = float((weights * mistakes).sum() / weights.sum())
    return (
        estimates.inverse_propensity(weights, mistakes, level, variance(costs, 0.0)),
        estimates.self_normalised(weights, mistakes, level, variance(costs, ratio)),
        doubly_robust,
    )


def _skewness(terms: Vector) -> float:
    centred = terms - terms.mean()
    deviation = float(np.sqrt(np.square(centred).mean()))
    return 0.0 if deviation == 0.0 else float((centred**3).mean()) / deviation**3


def _weights(log: AnyLog, play: Values) -> Vector:
    weights: Vector = log.of_played(play) / log.propensity
    return weights


def _unsupported(log: AnyLog, play: Values) -> float | None:
    if log.distribution is None:
        return None
    limit = min(SELDOM / log.n_rounds, RARE)
    return float(play[log.distribution < limit].sum() / log.n_rounds)
