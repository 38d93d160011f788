"""Classifier: a Learner that keeps River's contract, for features and labels that come as they come."""

import math
import pickle
from typing import Any

import numpy as np
import scipy.special

from gaptron.adapters.making import knowing, make, tells_probabilities
from gaptron.algorithms import load
from gaptron.decision import Decision
from gaptron.errors import DecisionError, InputError, SettingError
from gaptron.learner import DEFAULT, Learner
from gaptron.types import Feedback, SparseRow
from gaptron.validation import CheckedRow, as_rows_of_one, within_range_row

try:
    from river import base
except ImportError as problem:
    raise ImportError("gaptron.river needs River: pip install 'gaptron[river]'") from problem

FIRST_ROOM = 16  # columns before the first doubling


class Classifier(base.Classifier):  # type: ignore[misc]
    """A River classifier over any algorithm of this library.

    Args:
        algorithm: a name from `gaptron.algorithms.NAMES`.
        classes: the labels; left out, a label is added when it is first learned from.
        n_features: the most features there will be; left out, there is always room for more.
        feedback: "full", "bandit" or a graph, as for `Learner`. Under bandit feedback `learn_one` decides first and
            then is told by y only whether that was right.
        loss: "logistic", "hinge" or "smooth-hinge", where the algorithm has a choice.
        fit_intercept: add a constant feature of 1; rows by name have one anyway.
        features: "auto" or `Features(...)`: words, gaps, times and numbers of any scale are encoded as they come. Left
            out, features are numbers, and stay as they are.
        norm: a promise that no x is longer, where the algorithm needs it.
        radius: D, the norm of the rules U we compare with, where the algorithm needs it.
        horizon: T, the number of rounds, where the algorithm needs it.
        settings: a dictionary of the algorithm's own settings, in place of the theorem's.
        seed: for the learner's draws.
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
            raise SettingError(f"n_features={n_features!r} must be a whole number of at least 1, or None")
        self._columns: dict[Any, int] = {}
        self._labels: list[Any] = [] if classes is None else list(classes)
        learner = self._make([False, True] if classes is None else self._labels)  # whatever is wrong is said now
        self._learner = None if classes is None else learner

    @property
    def learner(self) -> Learner | None:
        """The learner inside; None while fewer than two labels are known. Column 0 of its weights is the constant's."""
        return self._learner

    @property
    def names(self) -> tuple[Any, ...]:
        """The features met so far, in the order of their columns."""
        if self.features is not None:
            return tuple(column.name for column in (self._learner and self._learner.features) or ())
        return tuple(self._columns)

    @property
    def _raw_memory_usage(self) -> int:
        """What the model takes, as its file would: River's own count follows compiled code into the compiler."""
        return len(pickle.dumps(self))

    @property
    def _multiclass(self) -> bool:
        return load(self.algorithm).CARD.most_classes is None

    # --- River's verbs --------------------------------------------------------------------------------------

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Play one round: decide on x, then learn what the feedback shows of y."""
        label = y.item() if hasattr(y, "item") else y
        given, labels = self._given(x), self._labels
        if label not in labels:
            if self.classes is not None or label is None or label != label:
                raise InputError(f"label {label!r} is not one of the classes {labels}")
            labels = [*labels, label]
        learner = knowing(self._learner, labels, lambda: self._make(labels))
        if learner is not None:
            decision = self._decide(learner, given)
            learner.learn(decision, **_answer(learner, decision, label))
        self._labels, self._learner = labels, learner

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """The label of the largest score. Before any label is known: False, as River's binary models say."""
        if self._learner is None:
            return self._labels[0] if self._labels else False
        return self._learner.classes[int(self._learner.scores(self._look(x)).argmax())]

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """P(y|x) by the logistic model that is learned. Logistic loss, full information only."""
        if not tells_probabilities(self):
            raise NotImplementedError(
                f"{self.algorithm} with this loss and feedback has no class probabilities: use predict_one, "
                "playing_distribution_one, or the logistic loss with full information"
            )
        if self._learner is None:
            return {self._labels[0]: 1.0} if self._labels else {False: 0.5, True: 0.5}
        chances = scipy.special.softmax(self._learner.scores(self._look(x))[0])
        return dict(zip(self._learner.classes, chances.tolist()))

    # --- as a contextual bandit -----------------------------------------------------------------------------

    def playing_distribution_one(self, x: dict[Any, Any]) -> dict[Any, float]:
        """What `decide_one` would draw its label from."""
        learner = self._ready()
        return dict(zip(learner.classes, learner.distribution(self._look(x))[0].tolist()))

    def decide_one(self, x: dict[Any, Any], *, among: Any = None) -> Decision:
        """Draw a label for x, one of `among` if given; answer with `learn_decision` when the outcome is known."""
        return self._decide(self._ready(), self._given(x), among)

    def learn_decision(
        self, decision: Decision, *, label: Any = None, correct: bool | None = None, reward: float | None = None
    ) -> None:
        """Answer a decision, now or later: with the right `label`, whether it was `correct`, or with a `reward`."""
        learner = self._ready()
        if len(decision.distribution) != len(learner.classes):
            raise DecisionError(f"labels were added after round {decision.round}: its decision can teach no more")
        learner.learn(decision, label=label, correct=correct, reward=reward)

    def _ready(self) -> Learner:
        if self._learner is None:
            raise DecisionError("there is nothing to decide yet: give classes=[...], the labels to choose from")
        return self._learner

    # --- names become columns -------------------------------------------------------------------------------

    def _make(self, labels: list[Any]) -> Learner:
        width = FIRST_ROOM if self.n_features is None else self.n_features + int(self.fit_intercept)
        return make(self, labels, self.seed, n_features=width)

    def _given(self, x: dict[Any, Any]) -> dict[Any, Any]:
        """The features, checked unless the learner does that."""
        return _numbers(x) if self.features is None else x

    def _decide(self, learner: Learner, numbers: dict[Any, Any], among: Any = None) -> Decision:
        """Give new names their columns, then draw. What is refused has no name yet."""
        if self.features is not None:
            return learner.decide(numbers, among=among)
        first = len(self._columns) + int(self.fit_intercept)
        new = {name: first + n for n, name in enumerate(name for name in numbers if name not in self._columns)}
        width, needed = learner.problem.n_features, first + len(new)
        if needed > width:
            if self.n_features is not None:
                raise InputError(f"x brings feature {[*new][width - first]!r}, beyond the n_features={self.n_features}")
            learner.grow(n_features=1 << (needed - 1).bit_length())
        row = self._row(learner, numbers, self._columns | new if new else self._columns)
        decision = learner.decide(row, among=among)
        self._columns.update(new)
        return decision

    def _look(self, x: dict[Any, Any]) -> Any:
        """The row of what is known of x: a name never learned from has no weight."""
        if self.features is not None:
            return [x]
        known = {name: number for name, number in _numbers(x).items() if name in self._columns}
        return as_rows_of_one(self._row(self._ready(), known, self._columns))

    def _row(self, learner: Learner, numbers: dict[Any, float], columns: dict[Any, int]) -> CheckedRow:
        """The numbers at their columns. They were checked one by one, and their order is made here."""
        entries = [(0, 1.0)] if self.fit_intercept else []
        entries += sorted((columns[name], number) for name, number in numbers.items())
        at = np.array([column for column, _ in entries], dtype=np.int32)
        values = np.array([number for _, number in entries])
        return within_range_row(SparseRow(at, values), learner.problem.n_features)


def _numbers(x: dict[Any, Any]) -> dict[Any, float]:
    """The features that are not zero."""
    numbers = {}
    for name, value in x.items():
        try:
            number = math.nan if isinstance(value, str) else float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            way_out = 'features="auto" takes words and gaps as they are'
            raise InputError(f"feature {name!r} holds {value!r}, not a number: {way_out}")
        if number != 0.0:
            numbers[name] = number
    return numbers


def _answer(learner: Learner, decision: Decision, label: Any) -> dict[str, Any]:
    """What the feedback shows of the label, in the words of `Learner.learn`."""
    if learner.problem.feedback is Feedback.BANDIT:
        return {"correct": decision.label == label}
    graph, at = learner.problem.graph, learner.classes.index
    shown = graph is None or graph[at(decision.label), at(label)]
    return {"label": label} if shown else {}
