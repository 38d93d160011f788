"""A learner meets decisions that were not its own."""

from dataclasses import replace
from typing import Any

from gaptron.errors import InputError, SettingError
from gaptron.learner import Decision, Learner
from gaptron.logged.log import Log
from gaptron.streams.rows import Rows, norms
from gaptron.types import Feedback, Vector

OWN_COIN = ("newtron",)  # what they learn depends on a coin of their own draw, and a log has none of it


def fits(learner: Learner, X: Rows) -> None:
    """Refuse rows that are too wide, too long or not of one kind with those seen, before any is played."""
    learner._check(X.shape[1], float(norms(X).max(initial=0.0)), "X")


def welcome(learner: Learner, log: Log) -> None:
    """Refuse a log that this learner cannot learn from, before it learns anything."""
    same_labels(learner, log)
    if learner.problem.feedback is not Feedback.BANDIT:
        raise SettingError("a log holds rights and wrongs: give the learner feedback='bandit'")
    if learner.algorithm in OWN_COIN:
        raise SettingError(f"{learner.algorithm} learns from how it drew its label, which a log of others cannot say")
    unclear = (log.reward != 0.0) & (log.reward != 1.0)
    if unclear.any():
        row = int(unclear.argmax())
        raise InputError(
            f"{log.name}: round {row + 1} has reward {log.reward[row]:g}, and learners here learn from 0 and 1 only; "
            "a learner that does not learn can be judged on any"
        )
    fits(learner, log.X)


def same_labels(learner: Learner, log: Log) -> None:
    """Refuse a log of other labels."""
    if not log.n_rounds:
        raise InputError(f"{log.name}: this part of the log holds no decisions")
    if learner.classes != log.classes:
        raise InputError(f"{log.name}: its labels are not the learner's: give the learner classes=log.classes")


def as_if(decision: Decision, log: Log, t: int, drawn_from: Vector | None = None) -> Decision:
    """The decision, had the label logged in round t been its own; drawn, if it is said, from another distribution."""
    code = int(log.codes[t])
    if drawn_from is not None:
        decision._sheet.p[:] = drawn_from
        decision._owner._taught = True
    chance = float(decision._sheet.p[code])
    other = replace(decision, label=log.classes[code], probability=chance, _code=code)
    decision._owner._open.add(other)  # it takes the place of the one that was drawn
    return other


def logged_chances(log: Log, t: int, otherwise: Vector) -> Any:
    """What the label of round t was drawn from, as far as the log knows it."""
    if log.distribution is not None:
        return log.distribution[t]
    chances = otherwise.copy()  # read by no learner but at the label played
    chances[log.codes[t]] = log.probability[t]
    return chances
