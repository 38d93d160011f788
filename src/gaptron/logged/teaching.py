"""A learner learns from decisions that were not its own."""

from gaptron.algorithms import load
from gaptron.errors import InputError, SettingError
from gaptron.learner import Learner
from gaptron.logged.log import Log
from gaptron.types import Feedback


def check_teachable(learner: Learner, log: Log) -> None:
    """Refuse a log that this learner cannot learn from, before it learns anything."""
    check_labels(learner, log)
    if learner.problem.feedback is not Feedback.BANDIT:
        raise SettingError("a log says only whether the label played was right: give the learner feedback='bandit'")
    if load(learner.algorithm).CARD.own_coin:
        raise SettingError(f"{learner.algorithm} learns from how it drew its label, which a log of others cannot say")
    unclear = (log.reward != 0.0) & (log.reward != 1.0)
    if unclear.any():
        row = int(unclear.argmax())
        raise InputError(
            f"{log.name}: round {row + 1} has reward {log.reward[row]:g}, and learners here learn from 0 and 1 only; "
            "a learner that does not learn can be judged on any"
        )
    learner.check(log.X)


def check_labels(learner: Learner, log: Log) -> None:
    """Refuse a log of other labels."""
    if not log.n_rounds:
        raise InputError(f"{log.name}: this part of the log holds no decisions")
    if learner.classes != log.classes:
        raise InputError(f"{log.name}: its labels are not the learner's: give the learner classes=log.classes")
