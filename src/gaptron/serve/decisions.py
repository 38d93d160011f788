"""A decision of the log in the words of an answer: the same whenever, and by whomever, it is asked for."""

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from gaptron.serve.entries import Decided, Entry
from gaptron.serve.problems import RefusedError, invalid
from gaptron.serve.words import DecisionAnswer, DecisionRequest, DecisionShown, is_event


class Known(Struct, frozen=True, gc=False):
    """A decision of the log and its answer if there is one."""

    decided: Entry
    answered: Entry | None = None

    @property
    def seq(self) -> int:
        """The last entry about it."""
        return self.decided.seq if self.answered is None else self.answered.seq


def answer(known: Known, labels: tuple[str, ...]) -> DecisionAnswer:
    """What its caller is told."""
    return DecisionAnswer(**_fields(known.decided, labels))


def shown(known: Known, labels: tuple[str, ...]) -> DecisionShown:
    """With its outcome."""
    entry, outcome = known.decided, None if known.answered is None else known.answered.body.outcome
    made = entry.body.made
    return DecisionShown(**_fields(entry, labels), at=as_time(entry.at if made is None else made.at), outcome=outcome)


def _fields(entry: Entry, labels: tuple[str, ...]) -> dict[str, Any]:
    decided: Decided = entry.body
    return {
        "event_id": entry.event,
        "label": decided.label,
        "probability": decided.probability,
        "model": entry.model,
        "seq": entry.seq if decided.made is None else None,  # a decider answers before the entry has its place
        "version": decided.version,
        "distribution": None if decided.distribution is None else dict(zip(labels, decided.distribution)),
        "would": decided.would,
        "answer_by": None if decided.due is None else as_time(decided.due),
    }


def check_event(event: str) -> None:
    """Refuse what cannot be an event's id."""
    if not is_event(event):
        raise invalid("an event_id is 1 to 128 letters, digits and . _ : - and begins with a letter or digit")


def check_same(known: Known, request: DecisionRequest) -> None:
    """Refuse another request under the id of one that was decided."""
    if known.decided.body.is_forgotten:
        return  # nobody can say; the event has its decision
    if known.decided.body.request != request:
        raise RefusedError(422, "other-request", f"event {known.decided.event!r} was decided for another request")


def without_event(request: DecisionRequest) -> DecisionRequest:
    """What is asked, without the id it is asked under."""
    return DecisionRequest(
        x=request.x,
        features=request.features,
        among=request.among,
        exclude=request.exclude,
        advice=request.advice,
        played=request.played,
    )


def as_time(at: int) -> str:
    """In the words of ISO 8601."""
    return datetime.fromtimestamp(at / 1e6, UTC).isoformat().replace("+00:00", "Z")
