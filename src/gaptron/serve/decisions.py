"""The HTTP representation of a decision in the log. It depends on the log only, so every retry returns the same."""

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, structs

from gaptron.serve.events import Decided, Event
from gaptron.serve.problems import RefusedError
from gaptron.serve.schemas import Decision, DecisionRecord, DecisionRequest, RankedAction


class Known(Struct, frozen=True, gc=False):
    """The events about one decision."""

    decided: Event
    outcome: Event | None = None

    @property
    def size(self) -> int:
        """How many examples' features it holds."""
        return len(self.decided.body.request.actions or (None,))

    @property
    def seq(self) -> int:
        """The number of the last event."""
        return self.decided.seq if self.outcome is None else self.outcome.seq

    def check_same(self, request: DecisionRequest, first_seq: int) -> None:
        """Refuse a different request with the event's id. Redacted decisions cannot be compared; they match any.

        Args:
            request: the request.
            first_seq: the event that created the model.
        """
        if not self.decided.is_since(first_seq):
            detail = f"event {self.decided.event_id!r} has a decision of a deleted model with this name: use another id"
            raise RefusedError(422, "event-id-reused", detail)
        if not self.decided.body.is_redacted and self.decided.body.request != request:
            detail = f"event {self.decided.event_id!r} has a decision for a different request"
            raise RefusedError(422, "event-id-reused", detail)

    def decision(self, labels: tuple[str, ...]) -> Decision:
        """The decision as its caller gets it."""
        return Decision(**self._fields(labels))

    def record(self, labels: tuple[str, ...]) -> DecisionRecord:
        """The decision with its time and outcome."""
        stamp = self.decided.body.replica
        at = self.decided.at if stamp is None else stamp.at
        outcome = None if self.outcome is None else self.outcome.body.outcome
        return DecisionRecord(**self._fields(labels), at=as_time(at), outcome=outcome)

    def _fields(self, labels: tuple[str, ...]) -> dict[str, Any]:
        decided: Decided = self.decided.body
        fields = {
            "event_id": self.decided.event_id,
            "propensity": decided.propensity,
            "model": self.decided.model,
            "seq": self.decided.seq if decided.replica is None else None,  # a replica responds before it is assigned
            "version": decided.version,
            "feedback_due": None if decided.due is None else as_time(decided.due),
        }
        p, ranking = decided.distribution, decided.ranking
        if decided.request.actions is None:
            distribution = None if p is None else dict(zip(labels, p))
            return fields | {
                "label": decided.label,
                "distribution": distribution,
                "shadow_label": decided.shadow_label,
            }
        ids = available_ids(decided.request)
        ranked = None if p is None or ranking is None else [RankedAction(ids[k], p[k]) for k in ranking]
        return fields | {"action": decided.label, "ranking": ranked, "shadow_action": decided.shadow_label}


def available_ids(request: DecisionRequest) -> list[str]:
    """The ids of the actions that may be played, in the order of the distribution."""
    excluded = set(request.excluded or ())
    return [action.id for action in request.actions or () if action.id not in excluded]


def without_event_id(request: DecisionRequest) -> DecisionRequest:
    """The request without its id, as the log stores and compares it."""
    return structs.replace(request, event_id=None)


def as_time(at: int) -> str:
    """Format µs since 1970 as ISO 8601."""
    return datetime.fromtimestamp(at / 1e6, UTC).isoformat().replace("+00:00", "Z")
