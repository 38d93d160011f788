"""Simulate a log: play examples whose labels are known, and record what a log would contain."""

from typing import Any

import numpy as np

from gaptron.data.feedback import as_available
from gaptron.data.labels import Classes, Labels
from gaptron.errors import InputError, SettingError
from gaptron.learner import Learner
from gaptron.offpolicy.log import Log
from gaptron.types import Feedback


def record(learner: Learner, X: Any, y: Labels, *, available: Any = None, name: str = "recorded") -> Log:
    """Decide and learn round by round, and log every decision.

    The log contains of y only whether each label played was correct. With full information the learner itself learns
    the true label. Algorithms with a step size need `norm=`, as always when deciding one example at a time.

    Args:
        learner: The learner that decides, with full or bandit feedback.
        X: Examples, one per round.
        y: Their true labels.
        available: The labels that may be played in each round, as in `Learner.play`.
        name: Name of the log, for messages.

    Returns:
        The log.
    """
    if learner.problem.feedback is Feedback.GRAPH:
        raise SettingError(
            "a log contains only whether the label played was correct: record a learner with full or bandit feedback"
        )
    full = learner.problem.feedback is Feedback.FULL
    truths, examples = Classes(learner.classes).codes(y), learner.check(X)
    if len(truths) != len(examples):
        raise InputError(f"X has {len(examples)} rows but y has {len(truths)} labels")
    allowed = None if available is None else as_available(available, len(truths), Classes(learner.classes))
    codes, distribution = np.empty(len(truths), dtype=np.int64), np.empty((len(truths), len(learner.classes)))
    for t, truth in enumerate(truths):
        decision = learner.decide(examples[t], available=None if allowed is None else allowed[t])
        codes[t], distribution[t] = decision._code, decision.distribution
        if full:
            learner.learn(decision, label=learner.classes[truth])
        else:
            learner.learn(decision, correct=bool(codes[t] == truth))
    return Log.from_arrays(
        X,
        [learner.classes[code] for code in codes],
        codes == truths,
        distribution[np.arange(len(codes)), codes],
        classes=learner.classes,
        distribution=distribution,
        available=allowed,
        name=name,
    )
