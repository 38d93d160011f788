"""A run whose answers come late, before one goes live: what would it cost?"""

import math
from heapq import heappop, heappush
from typing import Any

import numpy as np

from gaptron.decision import Decision
from gaptron.errors import InputError
from gaptron.learner import Learner
from gaptron.types import Feedback, Flags
from gaptron.validation import Classes, Labels, as_table


def play_late(learner: Learner, X: Any, y: Labels, wait: Any) -> Flags:
    """Decide on every row of X, and learn each answer when it comes. Returns which labels played were wrong.

    `wait` says how many further decisions are made before a decision is answered, one number for all or one for each:
    0 is at once, and an infinite number is never. Answers that would come after the last row are not learned.
    As always when deciding one by one, algorithms with a step size need `norm=`.
    """
    rows, truth = as_table(X), Classes(learner.classes).codes(y)
    T = len(truth)
    if rows.shape[0] != T:
        raise InputError(f"X has {rows.shape[0]} rows but y has {T} labels")
    learner.check(rows)
    waits = np.broadcast_to(np.asarray(wait, dtype=np.float64), T) if np.ndim(wait) == 0 else np.asarray(wait, float)
    if waits.shape != (T,) or not (waits >= 0.0).all():
        raise InputError(f"wait must be a number of at least 0, or {T} of them, one for each row")
    if learner.problem.feedback is Feedback.GRAPH:
        raise InputError("give the learner full or bandit feedback: a graph's answers are not simulated here")
    full = learner.problem.feedback is Feedback.FULL
    wrong = np.zeros(T, dtype=np.bool_)
    due: list[tuple[float, int, Decision]] = []
    for t in range(T):
        decision = learner.decide(rows[[t]])
        wrong[t] = decision._code != truth[t]
        if not math.isinf(waits[t]):
            heappush(due, (t + waits[t], t, decision))
        while due and due[0][0] <= t:
            _, at, answered = heappop(due)
            if full:
                learner.learn(answered, label=learner.classes[truth[at]])
            else:
                learner.learn(answered, correct=not wrong[at])
    return wrong
