"""What both adapters need: a learner made from an estimator's parameters, that gets to know labels as they come."""

import copy
import math
from collections.abc import Callable
from typing import Any, Protocol

from gaptron.algorithms import load
from gaptron.errors import SettingError
from gaptron.learner import Learner
from gaptron.types import Feedback, Loss


class Parameters(Protocol):
    """What an estimator's constructor was given."""

    algorithm: str
    feedback: Any
    loss: str | None
    fit_intercept: bool
    norm: float | None
    radius: float | None
    horizon: int | None
    settings: dict[str, Any] | None
    features: Any


def make(given: Parameters, classes: list[Any], seed: int | None, **more: Any) -> Learner:
    """A learner before its first round; `more` replaces parameters that were not given."""
    settings = {} if given.settings is None else given.settings
    if not isinstance(settings, dict):
        raise SettingError(f"settings={settings!r} must be a dictionary of the algorithm's own settings, or None")
    norm = given.norm
    if norm is not None and given.fit_intercept and given.features is None:
        norm = math.hypot(norm, 1.0) if isinstance(norm, (int, float)) and norm > 0 else norm  # else Learner refuses it
    common = {"feedback": given.feedback, "loss": given.loss, "norm": norm, "radius": given.radius}
    common |= {"horizon": given.horizon} if given.horizon is not None else {}
    if given.features is not None:
        more = {name: value for name, value in more.items() if name != "n_features"} | {"features": given.features}
    named = more | common
    for name in settings:
        if name in named or name in ("algorithm", "classes", "n_classes", "n_features", "features", "horizon", "seed"):
            raise SettingError(f"{name!r} is a parameter of its own, not one of the algorithm's settings")
    return Learner(given.algorithm, classes=classes, seed=seed, **named, **settings)


def knowing(learner: Learner | None, labels: list[Any], begin: Callable[[], Learner]) -> Learner | None:
    """A learner that knows these labels: the same, a grown copy, or a new one.

    None while there are not two labels: nothing is to be chosen, and so nothing learned.
    """
    if learner is None:
        return begin() if len(labels) > 1 else None
    if len(labels) > len(learner.classes):
        learner = copy.deepcopy(learner)  # should the round be refused, nothing has grown
        learner.grow(classes=labels)
    return learner


def tells_probabilities(given: Parameters) -> bool:
    """Are the scores logits of a model of P(y|x)?

    They are where the log loss of softmax(z) is what is learned from, and the true labels are told: logistic loss, full
    information. Hinge scores are margins, and answers of yes or no give gradients that are right only on average.
    """
    try:
        losses = load(given.algorithm).CARD.losses
    except SettingError:
        return False
    full = isinstance(given.feedback, str) and given.feedback == Feedback.FULL.word
    return full and (given.loss or losses[0].word) == Loss.LOGISTIC.word
