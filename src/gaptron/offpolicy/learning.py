"""Learning from logged decisions, which the learner did not make itself."""

from typing import Any

from gaptron.algorithms import able, load
from gaptron.errors import InputError, SettingError
from gaptron.learner import Learner
from gaptron.offpolicy.action_log import ActionLog
from gaptron.offpolicy.log import Log
from gaptron.types import Feedback, Vector


class LoggedRounds:
    """The rounds of a log, checked once for a learner that scores and learns from them by index."""

    def __init__(self, learner: Learner, log: Log) -> None:
        self._learner, self._log = learner, log
        self._examples = learner.check(log.examples_for(learner))
        self._learns_rewards = load(learner.algorithm).CARD.rewards

    def distribution(self, t: int) -> Vector:
        """Return the distribution from which the learner, as it is now, would draw the label of round t."""
        available = None if self._log.available is None else self._log.available[t : t + 1]
        distribution: Vector = self._learner.distribution(self._examples[t], available=available)[0]
        return distribution

    def learn(self, t: int, propensity: float) -> None:
        """Learn from round t, whose label counts as drawn with this propensity."""
        log, reward = self._log, self._log.reward[t]
        feedback: dict[str, Any] = {"reward": reward} if self._learns_rewards else {"correct": bool(reward)}
        label, available = log.classes[log.codes[t]], log.available_at(t)
        self._learner.learn_logged(self._examples[t], label, propensity, available=available, **feedback)


class LoggedActions:
    """`LoggedRounds`, of a log of named actions."""

    def __init__(self, learner: Learner, log: ActionLog) -> None:
        self._learner, self._log = learner, log
        self._rounds = log.examples_for(learner)
        self._learns_rewards = load(learner.algorithm).CARD.rewards

    def distribution(self, t: int) -> Vector:
        """Return the distribution from which the learner, as it is now, would draw the action of round t."""
        distribution: Vector = self._learner.distribution(self._rounds[t : t + 1])
        return distribution

    def learn(self, t: int, propensity: float) -> None:
        """Learn from round t, whose action counts as drawn with this propensity."""
        reward = self._log.reward.item(t)
        feedback: dict[str, Any] = {"reward": reward} if self._learns_rewards else {"correct": bool(reward)}
        given, action = self._rounds[t], self._log.stream.action(t)
        self._learner.learn_logged(actions=given, action=action, propensity=propensity, **feedback)


def logged_rounds(learner: Learner, log: Log | ActionLog) -> LoggedRounds | LoggedActions:
    """Return the rounds of a log for a learner."""
    return LoggedActions(learner, log) if isinstance(log, ActionLog) else LoggedRounds(learner, log)


def check_can_learn(learner: Learner, log: Log | ActionLog) -> None:
    """Refuse a log that this learner cannot learn from, before it learns anything."""
    check_fits(learner, log)
    if learner.problem.feedback is not Feedback.BANDIT:
        raise SettingError("a log reveals only the reward of the label played: give the learner feedback='bandit'")
    card = load(learner.algorithm).CARD
    if card.own_coin:
        raise SettingError(
            f"{learner.algorithm} learns from how it drew its own label, which the log of another policy does not say"
        )
    between = (log.reward != 0.0) & (log.reward != 1.0)
    if between.any() and not card.rewards:
        row = int(between.argmax())
        raise InputError(
            f"{log.name}: round {row + 1} has reward {log.reward[row]:g}, but {learner.algorithm} learns only from "
            f"rewards of 0 and 1; algorithms that learn from any reward: {able('rewards')}; evaluate_frozen accepts "
            "any reward"
        )


def check_fits(learner: Learner, log: Log | ActionLog) -> None:
    """Refuse an empty log, a log with other labels, and restricted labels if the algorithm cannot restrict them."""
    log.check_not_empty()
    if isinstance(log, ActionLog):
        log.examples_for(learner)
        return
    if learner.problem.actions:
        raise InputError(f"{log.name}: this is a log of labels, but the learner chooses between actions")
    if learner.classes != log.classes:
        raise InputError(f"{log.name}: its labels differ from the learner's: give the learner classes=log.classes")
    if log.available is not None and not load(learner.algorithm).CARD.available:
        raise InputError(
            f"{log.name}: some labels were not available in some rounds, and {learner.algorithm} cannot restrict its "
            f"labels; algorithms that can: {able('available')}"
        )
