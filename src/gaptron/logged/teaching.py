"""A learner learns from decisions that were not its own."""

from dataclasses import replace
from typing import Any

from gaptron.errors import InputError, SettingError
from gaptron.learner import Learner
from gaptron.logged.log import Log
from gaptron.streams.rows import Rows, norms
from gaptron.types import Feedback


def check_rows(learner: Learner, X: Rows) -> None:
    """Refuse rows that are too wide, too long or not of one kind with those seen, before any is played."""
    learner._check(X.shape[1], float(norms(X).max(initial=0.0)), "X")


def check_teachable(learner: Learner, log: Log) -> None:
    """Refuse a log that this learner cannot learn from, before it learns anything."""
    check_labels(learner, log)
    if learner.problem.feedback is not Feedback.BANDIT:
        raise SettingError("a log says only whether the label played was right: give the learner feedback='bandit'")
    if learner.algorithm in OWN_COIN:
        raise SettingError(f"{learner.algorithm} learns from how it drew its label, which a log of others cannot say")
    unclear = (log.reward != 0.0) & (log.reward != 1.0)
    if unclear.any():
        row = int(unclear.argmax())
        raise InputError(
            f"{log.name}: round {row + 1} has reward {log.reward[row]:g}, and learners here learn from 0 and 1 only; "
            "a learner that does not learn can be judged on any"
        )
    check_rows(learner, log.X)


def check_labels(learner: Learner, log: Log) -> None:
    """Refuse a log of other labels."""
    if not log.n_rounds:
        raise InputError(f"{log.name}: this part of the log holds no decisions")
    if learner.classes != log.classes:
        raise InputError(f"{log.name}: its labels are not the learner's: give the learner classes=log.classes")


OWN_COIN = ("newtron",)  # replaced by Learner.learn_logged, which asks the algorithm's card


def learn_logged(learner: Learner, x: Any, label: Any, probability: float, *, correct: bool) -> None:
    """A stand-in.  # replaced by Learner.learn_logged"""
    decision = learner.decide(x)
    code = learner.classes.index(label)
    decision._sheet.p[code] = probability
    learner._taught = True
    other = replace(decision, label=label, probability=probability, _code=code)
    learner._open.add(other)  # it takes the place of the one that was drawn
    learner.learn(other, correct=correct)
