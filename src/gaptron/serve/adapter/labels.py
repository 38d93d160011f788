"""The learner of a model that chooses between fixed labels."""

from typing import Any, Literal

import numpy as np

from gaptron.algorithms import load
from gaptron.data.labels import Classes
from gaptron.learner import Learner
from gaptron.serve.adapter.base import Adapter, Scored, as_matrix, check_numbers
from gaptron.serve.problems import invalid
from gaptron.serve.schemas import DecisionRequest, NewModel

SETTLED = "as it was created or as its first decision had them"


class LabelAdapter(Adapter):
    """A learner that chooses between fixed labels."""

    choice, right = "label", "the true label"

    def __init__(self, spec: NewModel) -> None:
        if spec.labels is None:
            raise invalid("give labels, or actions: true if every decision brings its own actions")
        if len(set(spec.labels)) != len(spec.labels):
            raise invalid("labels contains a label twice")
        self.named = spec.features == "auto"
        super().__init__(spec, classes=list(spec.labels))
        self._classes = Classes(spec.labels)
        self._single = spec.settings.get("precision") == "single"
        self._check_epsilon(self._most)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels in the order of distributions."""
        return self.learner.classes

    # --- deciding -----------------------------------------------------------------------------------------------

    def _score(self, request: DecisionRequest) -> Scored:
        some = self._limits(request)
        p = self._learner_for(request).distribution(
            self._examples(request),
            advice=self._advice(request),
            available=None if some is None else [some],  # one list for each example
        )[0]
        return Scored(self.labels, p, None)

    def check(self, request: DecisionRequest) -> None:
        """Refuse an example that could not be learned from: `decide` accepts longer ones."""
        learner = self._learner_for(request)
        if learner.problem.norm is not None or self._single:
            learner.check(self._examples(request))

    def features_after(self, request: DecisionRequest) -> int | Literal["auto"] | None:
        """How features are given after this request; the first named or dense example settles it."""
        if self.is_settled:
            return self.features
        if request.features is not None:
            return "auto"
        return len(request.x) if isinstance(request.x, tuple) else None

    def settle(self, request: DecisionRequest) -> None:
        """Take from the first decision how features are given."""
        features = self.features_after(request)
        self.learner = self._learner_for(request)
        self.named, self.width = features == "auto", features if isinstance(features, int) else None

    def _learner_for(self, request: DecisionRequest) -> Learner:
        """The learner; for a first decision by name, the one that the model will have."""
        if self.named or self.features_after(request) != "auto":
            return self.learner
        return self._new_learner("auto", epsilon=self.epsilon, classes=list(self.labels))

    def _available(self, request: DecisionRequest) -> tuple[str, ...]:
        return request.available or self.labels

    def _limits(self, request: DecisionRequest) -> tuple[str, ...] | None:
        """None if all labels are available: not every algorithm can leave labels out."""
        if request.available is None or set(request.available) == set(self.labels):
            return None
        return request.available

    def _examples(self, request: DecisionRequest) -> Any:
        """The example as a table of one row, as the learner takes it."""
        for name in ("actions", "context", "excluded"):
            if getattr(request, name) is not None:
                raise invalid(f'{name} is for models created with "actions": true; this one chooses between labels')
        x = request.x
        if (x is None) == (request.features is None):
            raise invalid("give either x or features")
        if request.features is not None:
            if self.features_after(request) != "auto":
                raise invalid(f'this model takes numbers as x, {SETTLED}: use another one with "features": "auto"')
            return [self._used(request.features)]
        if self.named:
            raise invalid(f"this model takes named features, {SETTLED}, not x")
        assert x is not None
        check_numbers(x, self.width)
        return as_matrix([x], self.width)

    def _advice(self, request: DecisionRequest) -> Any:
        if request.advice is None:
            return None
        probabilities = np.zeros(len(self.labels))
        for label, probability in request.advice.items():
            probabilities[self._classes.code(label)] = probability
        return probabilities[None]

    # --- learning -----------------------------------------------------------------------------------------------

    def _check_known(self, name: str, request: DecisionRequest) -> None:
        self._classes.code(name)

    def _check_feedback(self, request: DecisionRequest, played: str, feedback: dict[str, Any]) -> None:
        self.learner.check_feedback(played, available=self._limits(request), **feedback)

    def _learn(self, request: DecisionRequest, played: str, propensity: float, feedback: dict[str, Any]) -> None:
        examples = self._examples(request)
        self.learner.learn_logged(
            examples[0] if self.named else examples,
            played,
            propensity,
            advice=self._advice(request),
            available=self._limits(request),
            **feedback,
        )

    def check_can_limit(self) -> None:
        """Refuse if the algorithm cannot leave labels out."""
        name = self.learner.algorithm
        if not load(name).CARD.available:
            raise invalid(f"{name} cannot leave labels out: create a model with another algorithm to retire labels")

    def grow(self, labels: list[str]) -> None:
        """Add labels."""
        self._check_epsilon(self._most + len(labels))
        self.learner.grow(classes=[*self.labels, *labels])
        self._classes = Classes(self.labels)

    def tally_key(self, played: str) -> int:
        """The code of a label."""
        return self._classes.code(played)

    def restore(self, tree: Any) -> None:
        """Restore a state that `tree` returned."""
        super().restore(tree)
        self._classes = Classes(self.labels)
