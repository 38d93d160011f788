"""A log of a simulation: play rows whose labels are known, and keep what a log would have kept."""

from typing import Any

import numpy as np

from gaptron.errors import InputError, SettingError
from gaptron.learner import Learner
from gaptron.logged.log import Log, one_row, tidied
from gaptron.types import Feedback
from gaptron.validation import Classes, Labels, as_among


def record(learner: Learner, X: Any, y: Labels, *, among: Any = None, name: str = "recorded") -> Log:
    """Decide and learn round by round, and log every decision. `among` as `Learner.play` takes it.

    The log knows of y only whether each label played was right. With full information the learner itself learns
    the right label. As always when deciding one by one, algorithms with a step size need `norm=`.
    """
    if learner.problem.feedback is Feedback.GRAPH:
        raise SettingError(
            "a log says only whether the label played was right: record a learner with full or bandit feedback"
        )
    full = learner.problem.feedback is Feedback.FULL
    rows, truths = tidied(X, name), Classes(learner.classes).codes(y)
    if len(truths) != rows.shape[0]:
        raise InputError(f"X has {rows.shape[0]} rows but y has {len(truths)} labels")
    learner.check(rows)
    allowed = None if among is None else as_among(among, len(truths), Classes(learner.classes))
    codes, distribution = np.empty(len(truths), dtype=np.int64), np.empty((len(truths), len(learner.classes)))
    for t, truth in enumerate(truths):
        decision = learner.decide(one_row(rows, t), among=None if allowed is None else allowed[t])
        codes[t], distribution[t] = decision._code, decision.distribution
        if full:
            learner.learn(decision, label=learner.classes[truth])
        else:
            learner.learn(decision, correct=bool(codes[t] == truth))
    labels = [learner.classes[code] for code in codes]
    chances = distribution[np.arange(len(codes)), codes]
    return Log.from_arrays(
        rows,
        labels,
        codes == truths,
        chances,
        classes=learner.classes,
        distribution=distribution,
        among=allowed,
        name=name,
    )
