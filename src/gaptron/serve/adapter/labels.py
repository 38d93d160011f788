"""The learner of a model that chooses between fixed labels."""

from typing import Any

import numpy as np

from gaptron.data.labels import Classes
from gaptron.serve.adapter.base import Adapter, Scored, as_matrix, check_numbers
from gaptron.serve.problems import invalid
from gaptron.serve.schemas import DecisionRequest, NewModel


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
        self._check_epsilon(len(spec.labels), "labels")

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels in the order of distributions."""
        return self.learner.classes

    # --- deciding -----------------------------------------------------------------------------------------------

    def _score(self, request: DecisionRequest) -> Scored:
        some = self._limits(request)
        p = self.learner.distribution(
            self._examples(request),
            advice=self._advice(request),
            available=None if some is None else [some],  # one list for each example
        )[0]
        return Scored(self.labels, p, None)

    def check(self, request: DecisionRequest) -> None:
        """Refuse an example that could not be learned from: `decide` accepts longer ones."""
        if self.learner.problem.norm is not None or self._single:
            self.learner.check(self._examples(request))

    def width_after(self, request: DecisionRequest) -> int | None:
        """The number of features of the model after this request; the first dense example sets it."""
        if isinstance(request.x, tuple) and self.width is None:
            return len(request.x)
        return self.width

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
            if not self.named:
                raise invalid('this model takes numbers as x: create it with "features": "auto" to use named features')
            return [self._used(request.features)]
        if self.named:
            raise invalid("this model takes named features, not x")
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

    def grow(self, labels: list[str]) -> None:
        """Add labels."""
        self._check_epsilon(len(self.labels) + len(labels), "labels")
        self.learner.grow(classes=[*self.labels, *labels])
        self._classes = Classes(self.labels)

    def tally_key(self, played: str) -> int:
        """The code of a label."""
        return self._classes.code(played)

    def restore(self, tree: Any) -> None:
        """Restore a state that `tree` returned."""
        super().restore(tree)
        self._classes = Classes(self.labels)
