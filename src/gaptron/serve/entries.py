"""The entries of the log: what each kind says, and its text.

The text is JSON, in which msgspec writes every float64 so that it comes back to the bit.
"""

from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, structs

from gaptron.serve.words import ChangedModel, DecisionRequest, NewModel, Outcome


class Row(NamedTuple):
    """One line of the log. `seq` is the order of everything."""

    seq: int
    model: str
    kind: str
    event: str | None
    at: int  # µs since 1970, never less than the row before
    body: str
    draft: int = 0  # below 0: a decider wrote it under this number, and now it gets its place


class Created(Struct, omit_defaults=True, gc=False):
    """A model."""

    spec: NewModel
    key: str  # of the draws; nobody outside may know it, or ids could be chosen by their draw


class Changed(Struct, omit_defaults=True, gc=False):
    """What is different from now on."""

    change: ChangedModel


class Made(Struct, array_like=True, gc=False):
    """How a decider made a decision: with the model as it was after entry `seq`, at a time by its own clock."""

    seq: int
    at: int  # µs since 1970


class Decided(Struct, omit_defaults=True, gc=False):
    """A label drawn."""

    request: DecisionRequest
    version: int  # answers learned from before
    label: str
    probability: float
    distribution: tuple[float, ...] | None = None  # in the order of the labels; None: not ours, but the caller's
    would: str | None = None
    due: int | None = None  # µs; an answer after this is late
    waits: bool = False  # it is learned from when it is due, as wrong if there is no answer
    made: Made | None = None  # None: with the model as it was just before this entry

    @property
    def is_forgotten(self) -> bool:
        """Is it not known any more what it was made for?"""
        return self.request.x is None and self.request.features is None

    def is_over(self, at: int) -> bool:
        """Is an answer at this time late? Of those that are learned from when they are due, once they were."""
        return self.waits or (self.due is not None and at > self.due)


class Answered(Struct, omit_defaults=True, gc=False):
    """What was said of a decision."""

    outcome: Outcome


class Ticked(Struct, omit_defaults=True, gc=False):
    """Learn from all that were due until then, in the order (due, seq)."""

    upto: int  # µs


class Forgot(Struct, omit_defaults=True, gc=False):
    """Decisions up to there have lost what they were made for, and no answer to them is learned from."""

    upto: int  # seq


Body = Created | Changed | Decided | Answered | Ticked | Forgot
KINDS: dict[str, type[Struct]] = {
    "model": Created,
    "change": Changed,
    "decision": Decided,
    "outcome": Answered,
    "tick": Ticked,
    "forget": Forgot,
}
_WORDS = {kind: word for word, kind in KINDS.items()}
_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {word: msgspec.json.Decoder(kind) for word, kind in KINDS.items()}
_ENCODER = msgspec.json.Encoder()


class Entry(Struct, frozen=True, gc=False):
    """A row whose text was read."""

    seq: int
    model: str
    event: str | None
    at: int
    body: Any

    def row(self) -> Row:
        """As the store keeps it."""
        body = self.body
        text = _ENCODER.encode(body).decode()
        return Row(self.seq, self.model, _WORDS[type(body)], self.event, self.at, text)


def forgetting(row: Row) -> tuple[int, str]:
    """The number of a decision's row, and its body without what it was made for."""
    body: Decided = read(row).body
    request = structs.replace(body.request, x=None, features=None, advice=None)
    return row.seq, _ENCODER.encode(structs.replace(body, request=request)).decode()


def read(row: Row) -> Entry:
    """The entry in a row."""
    return Entry(row.seq, row.model, row.event, row.at, _DECODERS[row.kind].decode(row.body))
