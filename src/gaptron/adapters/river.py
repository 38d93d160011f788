"""Classifier: a learner with the interface of a River classifier, for features and labels that appear over time."""

import math
import pickle
from typing import Any

import numpy as np
import scipy.special

from gaptron.adapters.construction import has_class_probabilities, make_learner, with_labels
from gaptron.algorithms import load
from gaptron.data.examples import Example, example_of
from gaptron.errors import DecisionError, InputError, SettingError
from gaptron.learner import DEFAULT, Learner
from gaptron.learner.decision import Decision
from gaptron.types import Feedback, SparseRow

try:
    from river import base
except ImportError as problem:
    raise ImportError("gaptron.river needs River: pip install '.[river]' in gaptron's source folder") from problem

FIRST_WIDTH = 16  # columns before the first doubling


class Classifier(base.Classifier):  # type: ignore[misc]
    """A River classifier for any algorithm of this library.

    Args:
        algorithm: A name from `gaptron.algorithms.NAMES`.
        classes: The labels; by default a label is added when it is first learned from.
        n_features: The maximum number of features; by default unlimited.
        feedback: "full", "bandit" or a graph, as for `Learner`. Under bandit feedback `learn_one` decides first and
            uses y only to determine whether its label was correct.
        loss: "logistic", "hinge" or "smooth-hinge", where the algorithm has a choice.
        fit_intercept: Add a constant feature of 1; encoded features by name always have one.
        features: "auto" or `Features(...)`: strings, missing values, times and numbers of any scale are encoded. By
            default features are numbers and are used unchanged.
        norm: An upper bound on the norm of x, where the algorithm needs it.
        radius: D, the norm of the rules U that bounds compare with, where the algorithm needs it.
        horizon: T, the number of rounds, where the algorithm needs it.
        settings: A dictionary of the algorithm's own settings, which replace those of the theorem.
        seed: Seed of the learner's draws.
    """

    def __init__(
        self,
        algorithm: str = DEFAULT,
        *,
        classes: list[Any] | None = None,
        n_features: int | None = None,
        feedback: Any = "full",
        loss: str | None = None,
        fit_intercept: bool = True,
        features: Any = None,
        norm: float | None = None,
        radius: float | None = None,
        horizon: int | None = None,
        settings: dict[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.classes = classes
        self.n_features = n_features
        self.feedback = feedback
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.features = features
        self.norm = norm
        self.radius = radius
        self.horizon = horizon
        self.settings = settings
        self.seed = seed
        if n_features is not None and (not isinstance(n_features, int) or n_features < 1):
            raise SettingError(f"n_features={n_features!r} must be an integer of at least 1, or None")
        self._columns: dict[Any, int] = {}
        self._labels: list[Any] = [] if classes is None else list(classes)
        learner = self._make([False, True] if classes is None else self._labels)  # refuses wrong parameters now
        self._learner = None if classes is None else learner

    @property
    def learner(self) -> Learner | None:
        """The learner; None while fewer than two labels are known. Column 0 of its weights is the intercept's."""
        return self._learner

    @property
    def names(self) -> tuple[Any, ...]:
        """The features learned from so far, in the order of their columns."""
        if self.features is not None:
            return tuple(column.name for column in (self._learner and self._learner.features) or ())
        return tuple(self._columns)

    @property
    def _raw_memory_usage(self) -> int:
        """Size of the pickled model: River's own measure would include the compiler that compiled code refers to."""
        return len(pickle.dumps(self))

    @property
    def _multiclass(self) -> bool:
        return load(self.algorithm).CARD.most_classes is None

    # --- River's methods --------------------------------------------------------------------------------------

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Play one round: decide on x, then learn from what the feedback reveals about y.

        Args:
            x: Features by name.
            y: The true label.
        """
        label = y.item() if hasattr(y, "item") else y
        features, labels = self._checked(x), self._labels
        if label not in labels:
            if self.classes is not None or label is None or label != label:
                raise InputError(f"label {label!r} is not one of the classes {labels}")
            labels = [*labels, label]
        learner = with_labels(self._learner, labels, lambda: self._make(labels))
        if learner is not None:
            decision = self._decide(learner, features)
            learner.learn(decision, **_feedback(learner, decision, label))
        self._labels, self._learner = labels, learner

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """Predict the label with the largest score.

        Args:
            x: Features by name.
            **kwargs: Ignored; River's pipelines may pass more.

        Returns:
            The label. Before any label is known it is False, as in River's binary models.
        """
        if self._learner is None:
            return self._labels[0] if self._labels else False
        return self._learner.classes[int(self._learner.scores(self._known_example(x)).argmax())]

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Predict P(y|x) with the learned logistic model. Needs logistic loss and full information.

        Args:
            x: Features by name.
            **kwargs: Ignored; River's pipelines may pass more.

        Returns:
            The probability of each label.
        """
        if not has_class_probabilities(self):
            raise NotImplementedError(
                f"{self.algorithm} with this loss and feedback has no class probabilities: use predict_one or "
                "playing_distribution_one, or logistic loss with full information"
            )
        if self._learner is None:
            return {self._labels[0]: 1.0} if self._labels else {False: 0.5, True: 0.5}
        probabilities = scipy.special.softmax(self._learner.scores(self._known_example(x))[0])
        return dict(zip(self._learner.classes, probabilities.tolist()))

    # --- as a contextual bandit -----------------------------------------------------------------------------

    def playing_distribution_one(self, x: dict[Any, Any]) -> dict[Any, float]:
        """Return the distribution from which `decide_one` would draw its label.

        Args:
            x: Features by name.

        Returns:
            The probability of each label.
        """
        learner = self._ready()
        return dict(zip(learner.classes, learner.distribution(self._known_example(x))[0].tolist()))

    def decide_one(self, x: dict[Any, Any], *, available: Any = None) -> Decision:
        """Draw a label for x. Call `learn_decision` when the feedback is known.

        Args:
            x: Features by name.
            available: The labels that may be played; by default all.

        Returns:
            The decision, with its label and propensity.
        """
        return self._decide(self._ready(), self._checked(x), available)

    def learn_decision(
        self, decision: Decision, *, label: Any = None, correct: bool | None = None, reward: float | None = None
    ) -> None:
        """Learn from the feedback to a decision, immediately or later.

        Args:
            decision: What `decide_one` returned.
            label: The true label (full information).
            correct: Whether the label played was correct (bandit feedback).
            reward: The reward of the label played, from 0 to 1 (bandit feedback).
        """
        learner = self._ready()
        if len(decision.distribution) != len(learner.classes):
            raise DecisionError(
                f"labels were added after round {decision.round}, so its decision cannot be learned from any more"
            )
        learner.learn(decision, label=label, correct=correct, reward=reward)

    def _ready(self) -> Learner:
        if self._learner is None:
            raise DecisionError("no labels are known yet: give classes=[...], the labels to choose from")
        return self._learner

    # --- features by name become columns --------------------------------------------------------------------

    def _make(self, labels: list[Any]) -> Learner:
        width = FIRST_WIDTH if self.n_features is None else self.n_features + int(self.fit_intercept)
        return make_learner(self, labels, self.seed, n_features=width)

    def _checked(self, x: dict[Any, Any]) -> dict[Any, Any]:
        """Check the features, unless the learner does that."""
        return _numbers(x) if self.features is None else x

    def _decide(self, learner: Learner, numbers: dict[Any, Any], available: Any = None) -> Decision:
        """Assign columns to new features, then draw. If the example is refused, no column is assigned."""
        if self.features is not None:
            return learner.decide(numbers, available=available)
        first = len(self._columns) + int(self.fit_intercept)
        new = {name: first + n for n, name in enumerate(name for name in numbers if name not in self._columns)}
        width, needed = learner.problem.n_features, first + len(new)
        if needed > width:
            if self.n_features is not None:
                raise InputError(
                    f"feature {[*new][width - first]!r} exceeds n_features={self.n_features}: give a larger n_features"
                )
            learner.grow(n_features=1 << (needed - 1).bit_length())
        example = self._example(learner, numbers, self._columns | new if new else self._columns)
        decision = learner.decide(example, available=available)
        self._columns.update(new)
        return decision

    def _known_example(self, x: dict[Any, Any]) -> Any:
        """Return the known features of x; a feature never learned from has no weight."""
        if self.features is not None:
            return [x]
        known = {name: number for name, number in _numbers(x).items() if name in self._columns}
        return self._example(self._ready(), known, self._columns)

    def _example(self, learner: Learner, numbers: dict[Any, float], columns: dict[Any, int]) -> Example:
        """Put the numbers, which have been checked, at their columns in ascending order."""
        entries = [(0, 1.0)] if self.fit_intercept else []
        entries += sorted((columns[name], number) for name, number in numbers.items())
        at = np.array([column for column, _ in entries], dtype=np.int32)
        values = np.array([number for _, number in entries])
        return example_of(SparseRow(at, values), learner.problem.n_features)


def _numbers(x: dict[Any, Any]) -> dict[Any, float]:
    """Return the non-zero features as floats."""
    numbers = {}
    for name, value in x.items():
        try:
            number = math.nan if isinstance(value, str) else float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            remedy = 'features="auto" accepts strings and missing values'
            raise InputError(f"feature {name!r} is {value!r}, not a number: {remedy}")
        if number != 0.0:
            numbers[name] = number
    return numbers


def _feedback(learner: Learner, decision: Decision, label: Any) -> dict[str, Any]:
    """Return what the feedback reveals about the label, as arguments of `Learner.learn`."""
    if learner.problem.feedback is Feedback.BANDIT:
        return {"correct": decision.label == label}
    graph, at = learner.problem.graph, learner.classes.index
    revealed = graph is None or graph[at(decision.label), at(label)]
    return {"label": label} if revealed else {}
