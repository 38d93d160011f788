"""Shared by both adapters: making a learner from an estimator's parameters, and adding labels to it."""

import copy
import math
from collections.abc import Callable
from typing import Any, Protocol

from gaptron.algorithms import load
from gaptron.errors import SettingError
from gaptron.learner import Learner
from gaptron.types import Feedback, Loss


class Parameters(Protocol):
    """The constructor parameters that both estimators have."""

    algorithm: str
    feedback: Any
    loss: str | None
    fit_intercept: bool
    norm: float | None
    radius: float | None
    horizon: int | None
    settings: dict[str, Any] | None
    features: Any


def make_learner(parameters: Parameters, classes: list[Any], seed: int | None, **defaults: Any) -> Learner:
    """Make a learner before its first round; `defaults` are used for parameters that were not given."""
    settings = {} if parameters.settings is None else parameters.settings
    if not isinstance(settings, dict):
        raise SettingError(f"settings={settings!r} must be a dictionary of the algorithm's own settings, or None")
    norm = parameters.norm
    if norm is not None and parameters.fit_intercept and parameters.features is None:
        # An invalid norm is passed on, and Learner refuses it.
        norm = math.hypot(norm, 1.0) if isinstance(norm, (int, float)) and norm > 0 else norm
    common = {"feedback": parameters.feedback, "loss": parameters.loss, "norm": norm, "radius": parameters.radius}
    common |= {"horizon": parameters.horizon} if parameters.horizon is not None else {}
    if parameters.features is not None:
        defaults = {name: value for name, value in defaults.items() if name != "n_features"}
        defaults["features"] = parameters.features
    arguments = defaults | common
    for name in settings:
        if name in arguments or name in (
            "algorithm",
            "classes",
            "n_classes",
            "n_features",
            "features",
            "horizon",
            "seed",
        ):
            raise SettingError(f"{name!r} is a parameter of the estimator: do not give it in settings")
    return Learner(parameters.algorithm, classes=classes, seed=seed, **arguments, **settings)


def with_labels(learner: Learner | None, labels: list[Any], make: Callable[[], Learner]) -> Learner | None:
    """Return a learner that has these labels: the same one, a grown copy, or a new one.

    The result is None while there are fewer than two labels, because there is nothing to choose or to learn.
    """
    if learner is None:
        return make() if len(labels) > 1 else None
    if len(labels) > len(learner.classes):
        learner = copy.deepcopy(learner)  # if the round is refused, the original has not grown
        learner.grow(classes=labels)
    return learner


def has_class_probabilities(parameters: Parameters) -> bool:
    """Whether the scores are logits of a model of P(y|x).

    They are if the learner minimises the log loss of softmax(z) and the true labels are revealed: logistic loss, full
    information. Hinge scores are margins, and under bandit feedback gradients are correct only on average.
    """
    try:
        losses = load(parameters.algorithm).CARD.losses
    except SettingError:
        return False
    full = isinstance(parameters.feedback, str) and parameters.feedback == Feedback.FULL.word
    return full and (parameters.loss or losses[0].word) == Loss.LOGISTIC.word
