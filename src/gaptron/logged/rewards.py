"""Guesses of what every label would have earned: one ridge regression a label, fitted on earlier rounds only.

A guess may not have seen the answer it is used beside, or the intervals would be wrong. Fitting in folds takes care
of that where rounds do not depend on each other; in a log kept by a learner the later rounds depend on the earlier
answers. So the guesses of a round come from a fit on the rounds before: one at every doubling of the log.
"""

from typing import Any

import numpy as np

from gaptron.logged.log import Log
from gaptron.streams.rows import Rows, norms
from gaptron.types import Integers, Matrix, Vector

FIRST = 64  # rounds before the first fit; till then every label is guessed to be right with chance 1/K


def guesses(log: Log) -> Matrix:
    """The reward of every label in every round, T × K, in [0, 1]."""
    guessed = np.full((log.n_rounds, log.n_classes), 1.0 / log.n_classes)
    start = FIRST
    while start < log.n_rounds:
        part = slice(start, 2 * start)
        guessed[part] = _fitted(log.X[:start], log.codes[:start], log.reward[:start], log.X[part], log.n_classes)
        start *= 2
    return guessed


def _fitted(X: Rows, codes: Integers, reward: Vector, later: Rows, K: int) -> Matrix:
    from sklearn.linear_model import Ridge  # noqa: PLC0415

    found = np.full((later.shape[0], K), reward.mean())
    penalty = float(np.square(norms(X)).mean()) or 1.0  # so that the scale of the rows does not matter
    for label in range(K):
        played = np.flatnonzero(codes == label)
        if len(played) > 1:
            model: Any = Ridge(alpha=penalty).fit(X[played], reward[played])
            found[:, label] = model.predict(later)
    return found.clip(0.0, 1.0)
