"""What decisions earned for each value of a feature that has few values, such as a device or a country.

Named features count if their values are words, true or false. Memory is limited: the first `MAX_FEATURES` features are
followed, and one with more than `MAX_VALUES` values, or with a long one, is dropped for good.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

from gaptron.serve.events import Decided
from gaptron.serve.performance import Performance
from gaptron.serve.schemas import Cells

MAX_FEATURES, MAX_VALUES, MAX_LENGTH = 100, 20, 64  # length: of the name of a feature, or of a value, in characters


class Segments(Struct):
    """The performance for each value of each feature."""

    features: dict[str, dict[str, Performance] | None] = field(default_factory=dict)  # None: has too many values

    def decided(self, features: Cells) -> None:
        """Count a decision."""
        for name, text in _texts(features):
            values = self.features.get(name)
            if values is None:
                if name in self.features or len(self.features) == MAX_FEATURES or len(name) > MAX_LENGTH:
                    continue
                values = self.features[name] = {}
            point = values.get(text)
            if point is None:
                if len(values) == MAX_VALUES or len(text) > MAX_LENGTH:
                    self.features[name] = None
                    continue
                point = values[text] = Performance()
            point.decisions += 1

    def learned(self, features: Cells, error: float) -> None:
        """Count a decision as learned from."""
        for name, text in _texts(features):
            values = self.features.get(name)
            point = None if values is None else values.get(text)
            if point is not None:
                point.learned(error)

    def rates(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Each feature that is followed, and the error rate for each of its values, the most frequent values first."""
        return [
            (name, [{"value": text, **point.rates()} for text, point in sorted(values.items(), key=_by_frequency)])
            for name, values in sorted(self.features.items())
            if values is not None
        ]


def _by_frequency(one: tuple[str, Performance]) -> tuple[int, str]:
    return -one[1].decisions, one[0]


def features_of(decision: Decided) -> Cells:
    """The named features of the example, or of the context."""
    return decision.request.features or decision.request.context or {}


def features_of_action(decision: Decided) -> Cells:
    """The named features of the action that was played; none if it was a label."""
    played = (action for action in decision.request.actions or () if action.id == decision.label)
    return next((action.features or {} for action in played), {})


def _texts(features: Cells) -> Iterator[tuple[str, str]]:
    """The features that have words as values, or true and false."""
    for name, value in features.items():
        if isinstance(value, str):
            yield name, value
        elif isinstance(value, bool):
            yield name, "true" if value else "false"
