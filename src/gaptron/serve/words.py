"""What callers say and are told: the types of every request and answer, and their limits.

`openapi` makes its document of the same types.
"""

import re
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

MOST_LABELS, MOST_FEATURES, MOST_IN_BATCH = 1000, 10_000, 1000
LARGEST_BODY = 1 << 20
SHORTEST_WAIT, LONGEST_WAIT = 5.0, 7 * 86_400.0  # seconds

_NAME, _EVENT = r"^[a-z0-9][a-z0-9-]{0,63}$", r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"
Name = Annotated[str, Meta(pattern=_NAME, description="Small letters, digits and -, at most 64.")]
Event = Annotated[str, Meta(pattern=_EVENT, description="Your id of the event: letters, digits and . _ : -")]
Label = Annotated[str, Meta(min_length=1, max_length=128)]
Probability = Annotated[float, Meta(gt=0.0, le=1.0)]
Share = Annotated[float, Meta(ge=0.0, lt=1.0)]
Seconds = Annotated[float, Meta(ge=SHORTEST_WAIT, le=LONGEST_WAIT)]
Role = Literal["decide", "answer", "read", "admin"]
Mode = Literal["live", "apprentice"]
Default = Literal["nothing", "wrong"]


def is_name(text: str) -> bool:
    """May a model be called this?"""
    return _matches(_NAME, text)


def is_event(text: str) -> bool:
    """May an event be called this?"""
    return _matches(_EVENT, text)


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text) is not None and not text.endswith("\n")  # $ would let a line's end pass


class Words(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A JSON object of which every name is known.

    A tree, of which the garbage collector need not know; rows are tuples, of which it need not either. The service
    keeps tens of thousands in memory, and walking through them stopped it for 200 ms every few seconds.
    """


# --- models ---------------------------------------------------------------------------------------------------


class NewModel(Words, kw_only=True):
    """A model to be made."""

    name: Name
    labels: Annotated[list[Label], Meta(min_length=2, max_length=MOST_LABELS)]
    feedback: Literal["bandit", "full"] = "bandit"
    algorithm: str | None = None
    """By default the library's."""
    features: Annotated[int, Meta(ge=1, le=10_000_000)] | Literal["auto"] | None = None
    """The width of rows `x` (by default that of the first), or "auto" for named features."""
    settings: dict[str, float | int | str | bool] = {}
    """The learner's: loss, norm, radius, horizon, and those of the algorithm."""
    seed: Annotated[int, Meta(ge=0, le=1 << 62)] = 0
    control: Share = 0.0
    """A share of decisions drawn uniformly, so that other learners can be judged by the log."""
    wait: Seconds | None = None
    """Seconds after which no answer is learned from."""
    default: Default = "nothing"
    """What an answer that did not come in time says; "wrong": and then all are learned when the wait is over."""
    mode: Mode = "live"
    """apprentice: the caller's own label is played and learned from."""


class ChangedModel(Words, kw_only=True):
    """What shall be different from now on."""

    add_labels: Annotated[list[Label], Meta(min_length=1, max_length=MOST_LABELS)] | UnsetType = UNSET
    wait: Seconds | UnsetType | None = UNSET
    default: Default | UnsetType = UNSET
    mode: Mode | UnsetType = UNSET


class ModelShown(Words, kw_only=True):
    """A model as it stands."""

    name: Name
    labels: list[Label]
    feedback: str
    algorithm: str
    features: int | str | None
    settings: dict[str, float | int | str | bool]
    seed: int
    control: float
    wait: float | None
    default: str
    mode: str
    decisions: int
    learned: int


class ModelsShown(Words):
    """All models."""

    models: list[ModelShown]


# --- decisions --------------------------------------------------------------------------------------------------


class SparseX(Words):
    """The entries of a row that are not zero, and their columns, from 0."""

    indices: Annotated[tuple[Annotated[int, Meta(ge=0, lt=1 << 31)], ...], Meta(max_length=MOST_FEATURES)]
    values: Annotated[tuple[float, ...], Meta(max_length=MOST_FEATURES)]


class Played(Words):
    """What the caller played in apprentice mode, and the chance it had."""

    label: Label
    probability: Probability = 1.0


class DecisionRequest(Words, kw_only=True):
    """Which label? Give `x` or `features`."""

    event_id: Event | None = None
    """Your id of the event; the same request again gets the same answer. Made for you if left out."""
    x: Annotated[tuple[float, ...], Meta(min_length=1, max_length=MOST_FEATURES)] | SparseX | None = None
    features: Annotated[dict[str, float | str | bool | None], Meta(max_length=MOST_FEATURES)] | None = None
    among: Annotated[tuple[Label, ...], Meta(min_length=1, max_length=MOST_LABELS)] | None = None
    """The labels that are available; all if left out."""
    exclude: Annotated[tuple[Label, ...], Meta(max_length=MOST_LABELS)] | None = None
    """Labels that are not available."""
    advice: Annotated[dict[str, Annotated[float, Meta(ge=0.0)]], Meta(max_length=MOST_LABELS)] | None = None
    """What your own model says: label to probability."""
    played: Played | None = None
    """In apprentice mode: what you played."""


class DecisionAnswer(Words, kw_only=True):
    """The label, and what it was drawn from."""

    event_id: str
    label: str
    probability: float
    model: str
    seq: int | None = None
    """The entry's number in the log; left out by a decider, which answers before it has one."""
    version: int
    """How many answers the model had learned from."""
    distribution: dict[str, float] | None = None
    would: str | None = None
    """In apprentice mode: the label that would have been drawn."""
    answer_by: str | None = None
    """After this time an answer is late."""


class DecisionShown(DecisionAnswer, kw_only=True):
    """A decision and its answer, if there is one."""

    at: str
    outcome: "Outcome | None" = None


class DecisionBatch(Words):
    """Many decisions, made in this order and written at once."""

    decisions: Annotated[list[DecisionRequest], Meta(min_length=1, max_length=MOST_IN_BATCH)]


class DecisionResult(Words):
    """A decision, or why there is none."""

    decision: DecisionAnswer | None = None
    problem: "Problem | None" = None


class DecisionResults(Words):
    """One for each."""

    decisions: list[DecisionResult]


# --- outcomes -----------------------------------------------------------------------------------------------------


class Outcome(Words, kw_only=True):
    """How a decision turned out: exactly one of correct, reward, label or void."""

    correct: bool | None = None
    reward: Annotated[float, Meta(ge=0.0, le=1.0)] | None = None
    label: Label | None = None
    """The right label."""
    void: Literal[True] | None = None
    """It came to nothing: do not learn from it."""
    played: Label | None = None
    """What was really played, if somebody chose otherwise; then the decision is void."""


class EventOutcome(Outcome, kw_only=True):
    """The outcome of one event."""

    event_id: Event


class OutcomeBatch(Words):
    """Many outcomes, taken in this order and written at once."""

    outcomes: Annotated[list[EventOutcome], Meta(min_length=1, max_length=MOST_IN_BATCH)]


class OutcomeAnswer(Words, kw_only=True, omit_defaults=False):
    """recorded; duplicate: it was there already; late: kept, not learned from."""

    event_id: str
    status: Literal["recorded", "duplicate", "late"]


class OutcomeResult(Words):
    """What became of an outcome, or why it was refused."""

    outcome: OutcomeAnswer | None = None
    problem: "Problem | None" = None


class OutcomeResults(Words):
    """One for each."""

    outcomes: list[OutcomeResult]


# --- keys ---------------------------------------------------------------------------------------------------------


class NewKey(Words, kw_only=True):
    """A key to be made."""

    roles: Annotated[list[Role], Meta(min_length=1, max_length=4)]
    model: Name | None = None
    """The one model it is for; all if left out."""


class KeyShown(Words, kw_only=True, omit_defaults=False):
    """A key, without its secret."""

    id: str
    roles: list[str]
    model: str | None
    revoked: bool


class KeyMade(KeyShown, kw_only=True):
    """A new key."""

    key: str
    """What its user says: Authorization: Bearer ... It is shown once."""


class KeysShown(Words):
    """All keys, revoked ones too."""

    keys: list[KeyShown]


# --- the rest -----------------------------------------------------------------------------------------------------


class Problem(Words, kw_only=True):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    event_id: str | None = None
    outcome: Outcome | None = None
    """Of a conflict: the answer that stands."""


Report = dict[str, Any]
