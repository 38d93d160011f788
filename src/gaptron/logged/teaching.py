"""A learner learns from decisions that were not its own."""

from gaptron.algorithms import able, load
from gaptron.errors import InputError, SettingError
from gaptron.learner import Learner
from gaptron.logged.log import Log
from gaptron.types import Feedback, Vector


def check_teachable(learner: Learner, log: Log) -> None:
    """Refuse a log that this learner cannot learn from, before it learns anything."""
    check_labels(learner, log)
    if learner.problem.feedback is not Feedback.BANDIT:
        raise SettingError("a log says only whether the label played was right: give the learner feedback='bandit'")
    if load(learner.algorithm).CARD.own_coin:
        raise SettingError(f"{learner.algorithm} learns from how it drew its label, which a log of others cannot say")
    unclear = (log.reward != 0.0) & (log.reward != 1.0)
    if unclear.any() and not load(learner.algorithm).CARD.rewards:
        row = int(unclear.argmax())
        raise InputError(
            f"{log.name}: round {row + 1} has reward {log.reward[row]:g}, and {learner.algorithm} learns from 0 and 1 "
            f"only; algorithms that learn from any: {able('rewards')}; and a learner that does not learn can be judged "
            "on any"
        )
    learner.check(log.rows_for(learner))


def learn_round(learner: Learner, log: Log, t: int, probability: float) -> None:
    """Learn from one logged round, whose label counts as drawn with this probability."""
    answer = {"reward": log.reward[t]} if load(learner.algorithm).CARD.rewards else {"correct": bool(log.reward[t])}
    label, among = log.classes[log.codes[t]], log.available(t)
    learner.learn_logged(log.row_for(learner, t), label, probability, among=among, **answer)


def would_play(learner: Learner, log: Log, t: int) -> Vector:
    """What the learner would draw a round's label from, as it is now."""
    among = None if log.among is None else log.among[t : t + 1]
    row = log.row_for(learner, t)
    rows = [row] if learner.features is not None else row.reshape(1, -1)
    chances: Vector = learner.distribution(rows, among=among)[0]
    return chances


def check_labels(learner: Learner, log: Log) -> None:
    """Refuse a log of other labels, or one whose labels were not all available where the learner plays all."""
    if not log.n_rounds:
        raise InputError(f"{log.name}: this part of the log holds no decisions")
    if learner.classes != log.classes:
        raise InputError(f"{log.name}: its labels are not the learner's: give the learner classes=log.classes")
    if log.among is not None and not load(learner.algorithm).CARD.among:
        raise InputError(
            f"{log.name}: not all labels were available in all rounds, and {learner.algorithm} cannot leave any out; "
            f"algorithms that can: {able('among')}"
        )
