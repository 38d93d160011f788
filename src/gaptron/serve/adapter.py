"""The learner as the service uses it: decide and learn. Only this module uses the library's learner.

Deciding changes nothing. Learning takes a decision from the log: the example is scored with the current weights, only
the label and its propensity are those of the draw. Nothing of the learner is stored for a pending decision.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from gaptron.algorithms import load
from gaptron.data.labels import Classes
from gaptron.data.values import MIN_PROPENSITY
from gaptron.errors import GaptronError, NoBoundError
from gaptron.kernels.simplex import draw
from gaptron.learner import DEFAULT, Learner, model_file
from gaptron.serve.problems import invalid
from gaptron.serve.schemas import MAX_FEATURES, DecisionRequest, NewModel, Outcome, SparseX
from gaptron.types import Vector

RESERVED = ("classes", "n_classes", "n_features", "feedback", "seed", "epsilon", "features", "self", "algorithm")


class NotFiniteError(GaptronError):
    """The learner's numbers overflowed: its settings do not fit its examples."""


class Adapter:
    """A learner built from a model's specification."""

    def __init__(self, spec: NewModel) -> None:
        for name in spec.settings:
            if name in RESERVED:
                raise invalid(f"settings: {name!r} is not a setting; use the field of the request that sets it")
        algorithm = spec.algorithm or DEFAULT
        if load(algorithm).CARD.own_coin:
            raise invalid(f"{algorithm} cannot learn from a log, only from its own draws: use another algorithm")
        self.feedback = spec.feedback
        self.named = spec.features == "auto"
        self.width = spec.features if isinstance(spec.features, int) else None
        features: dict[str, Any] = {"features": "auto"} if self.named else {"n_features": self.width}
        settings: dict[str, Any] = {**spec.settings, **features}
        self.learner = Learner(
            algorithm,
            classes=list(spec.labels),
            feedback=spec.feedback,
            seed=spec.seed,
            epsilon=spec.epsilon,
            **settings,
        )
        self._classes = Classes(spec.labels)
        self._single = spec.settings.get("precision") == "single"
        self._epsilon = spec.epsilon
        self._check_epsilon(len(spec.labels))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels in the order of distributions."""
        return self.learner.classes

    def code(self, label: str) -> int:
        """The position of a label; InputError if it is unknown."""
        return self._classes.code(label)

    # --- deciding -----------------------------------------------------------------------------------------------

    def decide(self, request: DecisionRequest, u: float) -> tuple[int, Vector]:
        """Return the code of the label that u draws, and the distribution. Changes nothing.

        Labels with a propensity below `MIN_PROPENSITY` are not played, so that every decision can be learned from and
        evaluated; the label of the largest probability gets theirs.

        Raises:
            NotFiniteError: the learner has no distribution.
        """
        available = self._available(request)
        p = self.learner.distribution(
            self._examples(request),
            advice=self._advice(request),
            available=None if available is None else [available],  # one list for each example
        )[0]
        if not np.isfinite(p).all():
            raise NotFiniteError("its state is not finite: create a new model with other settings or smaller features")
        top, rare = int(p.argmax()), p < MIN_PROPENSITY
        if p[rare].any():
            p[top] = min(p[top] + p[rare].sum(), 1.0)
            p[rare] = 0.0
        return int(draw(p, top, u)), p

    def check(self, request: DecisionRequest) -> None:
        """Refuse an example that could not be learned from: `decide` accepts longer ones."""
        if self.learner.problem.norm is not None or self._single:
            self.learner.check(self._examples(request))

    def width_after(self, request: DecisionRequest) -> int | None:
        """The number of features of the model after this request; the first dense example sets it."""
        if isinstance(request.x, tuple) and self.width is None:
            return len(request.x)
        return self.width

    def _available(self, request: DecisionRequest) -> tuple[str, ...] | None:
        """None if all labels are available: not every algorithm can leave labels out."""
        if request.available is None or set(request.available) == set(self.labels):
            return None
        return request.available

    def _examples(self, request: DecisionRequest) -> Any:
        """The example as a table of one row, as the learner takes it."""
        x = request.x
        if (x is None) == (request.features is None):
            raise invalid("give either x or features")
        if request.features is not None:
            if not self.named:
                raise invalid('this model takes numbers as x: create it with "features": "auto" to use named features')
            return [request.features]
        if self.named:
            raise invalid("this model takes named features, not x")
        if isinstance(x, SparseX):
            if self.width is None:
                raise invalid('a sparse x needs the number of features: create the model with "features": number')
            return _sparse(x, self.width)
        assert x is not None
        if self.width is not None and len(x) != self.width:
            raise invalid(f"x has {len(x)} numbers; the model has {self.width} features")
        return np.array([x])

    def _advice(self, request: DecisionRequest) -> Any:
        if request.advice is None:
            return None
        probabilities = np.zeros(len(self.labels))
        for label, probability in request.advice.items():
            probabilities[self.code(label)] = probability
        return probabilities[None]

    # --- learning -----------------------------------------------------------------------------------------------

    def check_outcome(self, outcome: Outcome, request: DecisionRequest, label: str) -> None:
        """Refuse an outcome that this model cannot learn from."""
        given = [name for name in ("correct", "reward", "label", "void") if getattr(outcome, name) is not None]
        if len(given) != 1:
            raise invalid("give exactly one of correct, reward, label or void")
        if outcome.played is not None:
            self.code(outcome.played)
        if outcome.void:
            return
        if self.feedback == "full" and not (outcome.correct or outcome.label is not None):
            raise invalid("with full-information feedback an outcome must name the true label: give label")
        if outcome.label is not None:
            self.code(outcome.label)  # with bandit feedback, only whether it equals ours is learned from
        self.learner.check_feedback(label, available=self._available(request), **self._feedback(outcome, label))

    def learn(self, request: DecisionRequest, label: str, propensity: float, outcome: Outcome) -> None:
        """Learn from a decision and its outcome; both have been checked."""
        examples = self._examples(request)
        self.learner.learn_logged(
            examples[0] if self.named else examples,
            label,
            propensity,
            advice=self._advice(request),
            available=self._available(request),
            **self._feedback(outcome, label),
        )

    def _feedback(self, outcome: Outcome, label: str) -> dict[str, Any]:
        """The outcome as arguments of `Learner.learn_logged`."""
        if self.feedback == "full":
            return {"truth": label if outcome.correct else outcome.label}
        if outcome.reward is not None and outcome.reward not in (0.0, 1.0):
            return {"reward": outcome.reward}
        return {"correct": is_correct(outcome, label)}

    def grow(self, labels: list[str]) -> None:
        """Add labels."""
        self._check_epsilon(len(self.labels) + len(labels))
        self.learner.grow(classes=[*self.labels, *labels])
        self._classes = Classes(self.labels)

    def _check_epsilon(self, n_labels: int) -> None:
        """Refuse an epsilon whose uniform draws would be too rare to be played."""
        least = n_labels * MIN_PROPENSITY
        if 0.0 < self._epsilon < least:
            raise invalid(f"epsilon={self._epsilon:g} is too small for {n_labels} labels: use at least {least:g}, or 0")

    # --- report -------------------------------------------------------------------------------------------------

    def certificate(self) -> str:
        """Describe the learner's certificate, or why it has none."""
        try:
            certificate = self.learner.certificate
        except NoBoundError as reason:
            return f"No certificate: {reason}."
        if certificate is None:
            return "No certificate: the algorithm has none, or nothing has been learned yet."
        return f"Certificate: {certificate}"

    def expert_weights(self) -> dict[str, float]:
        """The weight of each expert; empty if the algorithm has no experts."""
        advice = self.learner.advice
        return {} if advice is None else {name: float(weight) for name, weight in advice.weights.items()}

    # --- saving -------------------------------------------------------------------------------------------------

    def tree(self) -> Any:
        """The complete state of the learner as plain values."""
        return self.learner.__getstate__()

    def restore(self, tree: Any) -> None:
        """Restore a state that `tree` returned."""
        self.learner.__setstate__(tree)
        self._classes = Classes(self.labels)

    def file(self) -> bytes:
        """The learner as a model file, for `Learner.load`."""
        return model_file.packed(self.tree(), "snapshot")


def is_correct(outcome: Outcome, label: str) -> bool:
    """Was the label that was played correct?"""
    if outcome.correct is not None:
        return outcome.correct
    if outcome.reward is not None:
        return outcome.reward == 1.0
    return outcome.label == label


def _sparse(x: SparseX, width: int) -> Any:
    if len(x.indices) != len(x.values):
        raise invalid(f"x has {len(x.indices)} indices but {len(x.values)} values")
    if len(set(x.indices)) != len(x.indices):
        raise invalid("x contains an index twice")
    if any(index >= width for index in x.indices):
        raise invalid(f"x contains index {max(x.indices)}; the model has {width} features, starting at 0")
    return csr_array((np.array(x.values), np.array(x.indices, dtype=np.int32), [0, len(x.indices)]), shape=(1, width))


def try_out(spec: NewModel, *, sparse: bool = False) -> None:
    """Compile what a learner of this kind needs to decide and learn, and refuse what cannot work."""
    adapter = Adapter(spec)
    adapter.learner.warm_up(sparse=sparse or (adapter.width or 0) > MAX_FEATURES, play=False)
