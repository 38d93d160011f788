"""The event log: one type for each kind of event, and its JSON text.

msgspec writes every float64 so that decoding it returns the same bits.
"""

from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, structs

from gaptron.data.values import MIN_PROPENSITY
from gaptron.serve.schemas import Action, DecisionRequest, ModelChange, NewChallenger, NewModel, Outcome


class Row(NamedTuple):
    """One row of the log as the store holds it. `seq` defines the order of all events."""

    seq: int
    model: str
    kind: str
    event_id: str | None
    at: int  # µs since 1970, never less than in the row before
    body: str
    draft: int = 0  # if negative: the temporary number under which a replica wrote this row, replaced by `seq`


class Created(Struct, omit_defaults=True, gc=False):
    """A model was created."""

    spec: NewModel
    key: str  # of the draws; it stays secret, otherwise callers could choose ids by their draw


class Changed(Struct, omit_defaults=True, gc=False):
    """The configuration of a model changed."""

    change: ModelChange


class ReplicaStamp(Struct, array_like=True, gc=False):
    """The state a replica decided with: the model after event `seq`, at a time of the replica's own clock."""

    seq: int
    at: int  # µs since 1970


class Decided(Struct, omit_defaults=True, gc=False):
    """A label was drawn, or one of the actions of the request."""

    request: DecisionRequest
    version: int  # number of outcomes learned from before
    label: str  # or the id of the action
    propensity: float
    distribution: tuple[float, ...] | None = None  # of the labels, or the available actions; None in shadow mode
    shadow_label: str | None = None  # or the id of an action
    shadow_propensity: float | None = None  # in shadow mode: the model's probability of `label`
    due: int | None = None  # µs; an outcome that arrives later is late
    learn_when_due: bool = False  # learn at the timeout, as wrong if there is no outcome by then
    replica: ReplicaStamp | None = None  # None: decided with the model as it was just before this event
    ranking: tuple[int, ...] | None = None  # places of the available actions: the one played, then the others by score
    redacted: bool = False  # later: the features were removed
    offered: tuple[str, ...] | None = None  # the labels that could be played, if some of the model are retired

    @property
    def request_as_offered(self) -> DecisionRequest:
        """The request, limited to the labels that could be played."""
        return self.request if self.offered is None else structs.replace(self.request, available=self.offered)

    @property
    def is_redacted(self) -> bool:
        """Were the features removed from the log?"""
        request = self.request  # earlier versions only removed them
        return self.redacted or (request.x is None and request.features is None and request.actions is None)

    @property
    def is_in_bounds(self) -> bool:
        """Can it be learned from? Requests are checked; logs of other versions may have other propensities."""
        return MIN_PROPENSITY <= self.propensity <= 1.0

    def is_expired(self, at: int) -> bool:
        """Is an outcome at this time late? If the decision is learned when due: it has left the pending ones."""
        return self.learn_when_due or (self.due is not None and at > self.due)


class OutcomeRecorded(Struct, omit_defaults=True, gc=False):
    """The outcome of a decision arrived."""

    outcome: Outcome


class Activated(Struct, omit_defaults=True, gc=False):
    """What a deferred decision chose was shown: a missing outcome counts as for other decisions."""


class TimedOut(Struct, omit_defaults=True, gc=False):
    """Learn from all pending decisions due by this time, in the order (due, seq)."""

    until: int  # µs


class Redacted(Struct, omit_defaults=True, gc=False):
    """The features of old decisions were removed; outcomes of these decisions are no longer learned from."""

    through: int  # seq of the last of them


class ChallengerAdded(Struct, omit_defaults=True, gc=False):
    """A learner learns from the same outcomes as the model from now on."""

    name: str
    spec: NewChallenger


class ChallengerRemoved(Struct, omit_defaults=True, gc=False):
    """A challenger was removed."""

    name: str


class ChallengerStopped(Struct, omit_defaults=True, gc=False):
    """The state of a challenger cannot be saved, so that it learns no more."""

    name: str
    reason: str


class Promoted(Struct, omit_defaults=True, gc=False):
    """A challenger became live, and the live policy became a challenger."""

    challenger: str
    former: str  # its name as a challenger


class Imported(Struct, omit_defaults=True, gc=False):
    """A decision of another log, with its outcome, was learned from."""

    request: DecisionRequest
    label: str  # or the id of the action
    propensity: float
    outcome: Outcome
    redacted: bool = False  # later: the features were removed

    @property
    def is_redacted(self) -> bool:
        """Were the features removed from the log?"""
        return self.redacted


class Deleted(Struct, omit_defaults=True, gc=False):
    """The model was deleted. Another model may get its name; these events are not part of it."""


Body = (
    Created
    | Changed
    | Decided
    | OutcomeRecorded
    | Activated
    | TimedOut
    | Redacted
    | ChallengerAdded
    | ChallengerRemoved
    | ChallengerStopped
    | Promoted
    | Imported
    | Deleted
)
KINDS: dict[str, type[Struct]] = {
    "created": Created,
    "changed": Changed,
    "decided": Decided,
    "outcome": OutcomeRecorded,
    "activated": Activated,
    "timed-out": TimedOut,
    "redacted": Redacted,
    "challenger-added": ChallengerAdded,
    "challenger-removed": ChallengerRemoved,
    "challenger-stopped": ChallengerStopped,
    "promoted": Promoted,
    "imported": Imported,
    "deleted": Deleted,
}
_KIND_OF = {type_: kind for kind, type_ in KINDS.items()}
_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {kind: msgspec.json.Decoder(type_) for kind, type_ in KINDS.items()}
_ENCODER = msgspec.json.Encoder()


class Event(Struct, frozen=True, gc=False):
    """A decoded row."""

    seq: int
    model: str
    event_id: str | None
    at: int
    body: Any

    def is_since(self, seq: int) -> bool:
        """Was this decided with the model that event `seq` created, or a later state of it?

        A replica may decide with a deleted model when another one has its name already.
        """
        stamp: ReplicaStamp | None = self.body.replica
        return (self.seq if stamp is None else stamp.seq) >= seq

    def row(self) -> Row:
        """Encode the event for the store."""
        text = _ENCODER.encode(self.body).decode()
        return Row(self.seq, self.model, _KIND_OF[type(self.body)], self.event_id, self.at, text)


def decode(row: Row) -> Event:
    """Decode a row of the log."""
    return Event(row.seq, row.model, row.event_id, row.at, _DECODERS[row.kind].decode(row.body))


def redacted(row: Row) -> tuple[int, str]:
    """Return the number of a decision's row, and its body without the features and the advice.

    The ids of actions stay: they are the decision.
    """
    body: Decided | Imported = decode(row).body
    actions = body.request.actions
    without = None if actions is None else tuple([Action(id=action.id) for action in actions])
    request = structs.replace(body.request, x=None, features=None, context=None, actions=without, advice=None)
    return row.seq, _ENCODER.encode(structs.replace(body, request=request, redacted=True)).decode()
