"""The types of every HTTP request and response body, with their limits.

msgspec validates requests against these types while it decodes them, and `openapi` generates its document from them, so
the documentation cannot differ from what is accepted.
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from gaptron.data.values import MIN_PROPENSITY
from gaptron.types import MOST_ACTIONS

MIN_LABELS, MAX_LABELS, MAX_FEATURES, MAX_BATCH = 2, 1000, 10_000, 1000
MAX_BODY_BYTES = 1 << 20
DEFAULT_EPSILON = 0.02  # with bandit feedback; without uniform draws, the log cannot evaluate another policy
MIN_TIMEOUT, MAX_TIMEOUT = 5.0, 7 * 86_400.0  # seconds

NAME_PATTERN = r"^[a-z0-9][a-z0-9-]{0,63}(?!\n)$"  # in Python, $ alone also matches before a final newline
EVENT_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}(?!\n)$"
Name = Annotated[str, Meta(pattern=NAME_PATTERN, description="Lowercase letters, digits and -, at most 64 characters.")]
EventId = Annotated[
    str, Meta(pattern=EVENT_ID_PATTERN, description="Your id of the event: letters, digits and . _ : -, at most 128.")
]
Label = Annotated[str, Meta(min_length=1, max_length=128)]
DisplayName = Annotated[str, Meta(min_length=1, max_length=128)]
ActionId = Annotated[str, Meta(min_length=1, max_length=256)]
Labels = Annotated[list[Label], Meta(max_length=MAX_LABELS, extra_json_schema={"uniqueItems": True})]
Probability = Annotated[float, Meta(gt=0.0, le=1.0, extra_json_schema={"minimum": MIN_PROPENSITY})]
Share = Annotated[float, Meta(ge=0.0, lt=1.0)]
Seconds = Annotated[float, Meta(ge=MIN_TIMEOUT, le=MAX_TIMEOUT)]
Role = Literal["decide", "feedback", "read", "admin"]
Mode = Literal["live", "shadow", "apprentice"]
OnTimeout = Literal["ignore", "wrong"]
RewardRange = Literal["0..1", "-1..1"]
Settings = dict[str, float | int | str | bool]
Seed = Annotated[int, Meta(ge=0, le=1 << 62)]
FeatureNames = Annotated[tuple[str, ...], Meta(min_length=1, max_length=MAX_FEATURES)]


class Schema(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A JSON object without unknown fields.

    The garbage collector does not track instances: they form trees, and examples are tuples of numbers. The service
    caches tens of thousands of requests; traversing them paused it for 200 ms every few seconds.
    """


# --- models ---------------------------------------------------------------------------------------------------


class ModelSpec(Schema, kw_only=True):
    """A model's specification: it chooses between fixed labels, or among the actions that each request brings."""

    name: Name | None = None
    """The path names the model; if given, it must be the same."""
    labels: Annotated[Labels, Meta(min_length=MIN_LABELS)] | None = None
    """Required unless `actions` is true."""
    actions: bool = False
    """Every decision brings its own actions, each with its own features."""
    feedback: Literal["bandit", "full"] = "bandit"
    """bandit: an outcome says whether what was played was correct, or its reward; full: it names what was right."""
    algorithm: str | None = None
    """The library's default if omitted."""
    features: Annotated[int, Meta(ge=1, le=10_000_000)] | Literal["auto"] | None = None
    """The number of features in `x`, or "auto" for named `features`. If omitted, the first decision settles it;
    with `actions`, they are named."""
    use_features: FeatureNames | None = None
    """With named features: the names of those that the model uses; all if omitted."""
    settings: Settings = {}
    """Settings of the learner: loss, norm, radius, horizon, and those of the algorithm."""
    seed: Seed = 0
    epsilon: Share | None = None
    """The share of decisions drawn uniformly, so that other policies can be evaluated on the log. If omitted, 0.02 with
    bandit feedback, and 0 with full information."""
    feedback_timeout: Seconds | None = None
    """Seconds after a decision during which its outcome is learned from; no limit if omitted."""
    on_timeout: OnTimeout = "ignore"
    """What a missing outcome means after the timeout. With "wrong", all outcomes are learned when the timeout ends."""
    reward_range: RewardRange = "0..1"
    """What clients of Personalizer send as the value of a reward. It is mapped to 0..1."""
    mode: Mode = "live"
    """shadow: the caller plays its own choice, and the model learns from it. "apprentice" is an alias of shadow."""

    def __post_init__(self) -> None:
        if self.mode == "apprentice":
            self.mode = "shadow"
        if self.epsilon is None:  # the log has the number, so that the default may change
            self.epsilon = DEFAULT_EPSILON if self.feedback == "bandit" else 0.0
        if self.actions and self.features is None:
            self.features = "auto"


class NewModel(ModelSpec, kw_only=True):
    """A model to create."""

    name: Name


class ModelChange(Schema, kw_only=True):
    """Changes to a model; omitted fields keep their values."""

    add_labels: Annotated[Labels, Meta(min_length=1)] | UnsetType = UNSET
    feedback_timeout: Seconds | UnsetType | None = UNSET
    on_timeout: OnTimeout | UnsetType = UNSET
    mode: Mode | UnsetType = UNSET
    epsilon: Share | UnsetType = UNSET
    """The share of decisions drawn uniformly."""
    retire_labels: Annotated[Labels, Meta(min_length=1)] | UnsetType = UNSET
    """Labels that are never played again. Their history stays."""
    display_names: dict[Label, DisplayName | None] | UnsetType = UNSET
    """How to show these labels to people; null: as they are. Requests, responses and the log use the labels."""

    def __post_init__(self) -> None:
        if self.mode == "apprentice":
            self.mode = "shadow"


class ModelInfo(Schema, kw_only=True):
    """A model and its current configuration."""

    name: Name
    labels: list[Label] = []
    """Omitted if every decision brings its own actions."""
    actions: bool = False
    feedback: str
    algorithm: str
    features: int | str | None
    """null until the first decision settles it."""
    use_features: FeatureNames | None = None
    settings: Settings
    seed: int
    epsilon: float
    feedback_timeout: float | None
    on_timeout: str
    reward_range: str = "0..1"
    mode: str
    decisions: int
    learned: int
    """The number of outcomes learned from."""
    notes: list[str] = []
    """What to know about this configuration."""
    retired: list[str] = []
    """Labels that are not played any more."""
    display_names: dict[str, str] = {}
    """How to show labels to people, where it differs from the label."""
    state: Literal["live", "shadow"]
    created_at: str
    last_decision_at: str | None = None


class QuarantinedModel(Schema, omit_defaults=False):
    """A model that could not be restored from the log, or failed: requests for it are refused with 503."""

    name: Name
    reason: str
    state: Literal["quarantined"] = "quarantined"


class ModelList(Schema):
    """All models."""

    models: list[ModelInfo]
    quarantined: list[QuarantinedModel] = []


# --- decisions --------------------------------------------------------------------------------------------------


class SparseX(Schema):
    """The nonzero features and their column indices, starting at 0."""

    indices: Annotated[tuple[Annotated[int, Meta(ge=0, lt=1 << 31)], ...], Meta(max_length=MAX_FEATURES)]
    values: Annotated[tuple[float, ...], Meta(max_length=MAX_FEATURES)]


Cells = Annotated[dict[str, float | str | bool | None], Meta(max_length=MAX_FEATURES)]
Numbers = Annotated[tuple[float, ...], Meta(min_length=1, max_length=MAX_FEATURES)]


class Action(Schema, kw_only=True):
    """One of the actions of a decision."""

    id: ActionId
    features: Cells | None = None
    """The features by name; none if omitted."""
    x: Numbers | SparseX | None = None
    """The features as numbers, for a model created with a number of features."""


class Played(Schema):
    """What the caller played in shadow mode, a label or an action, and its probability under the caller's policy."""

    label: Label | None = None
    propensity: Probability = 1.0
    """At least 1e-6."""
    action: ActionId | None = None


class DecisionRequest(Schema, kw_only=True):
    """A request for a decision: with `x` or `features` for a label, with `actions` for one of these actions."""

    event_id: EventId | None = None
    """Repeating a request with the same id returns the same decision. Generated if omitted."""
    x: Numbers | SparseX | None = None
    """The features as numbers."""
    features: Cells | None = None
    """The features by name."""
    available: Annotated[tuple[Label, ...], Meta(min_length=1, max_length=MAX_LABELS)] | None = None
    """The labels that may be played; all labels if omitted."""
    context: Cells | None = None
    """For a model with actions: the features that all actions of this decision share."""
    actions: Annotated[tuple[Action, ...], Meta(min_length=1, max_length=MOST_ACTIONS)] | None = None
    """The actions of this decision, in your order."""
    excluded: Annotated[tuple[ActionId, ...], Meta(max_length=MOST_ACTIONS)] | None = None
    """The ids of actions that may not be played."""
    advice: Annotated[dict[str, Annotated[float, Meta(ge=0.0)]], Meta(max_length=MAX_LABELS)] | None = None
    """The prediction of your own model: label to probability."""
    played: Played | None = None
    """Required in shadow mode: the label or the action you played."""
    deferred: bool = False
    """What is decided may never be shown: a missing outcome counts as nothing until the decision is activated."""


class RankedAction(Schema):
    """An action, and the probability with which it was drawn as the one to play."""

    id: str
    propensity: float


class Decision(Schema, kw_only=True):
    """The label or the action to play, and the distribution it was drawn from."""

    event_id: str
    label: str | None = None
    action: str | None = None
    """The id of the action to play, if the request brought actions."""
    propensity: float
    """The probability with which the label or the action was drawn."""
    ranking: list[RankedAction] | None = None
    """The actions that could be played: the one to play, then the others by score."""
    model: str
    seq: int | None = None
    """The number of the event in the log. Omitted by a replica, which responds before the number is assigned."""
    version: int
    """The number of outcomes the model had learned from."""
    distribution: dict[str, float] | None = None
    shadow_label: str | None = None
    """In shadow mode: the label that the model would have played."""
    shadow_action: str | None = None
    """In shadow mode: the action that the model would have played."""
    feedback_due: str | None = None
    """An outcome that arrives later is not learned from."""


class DecisionRecord(Decision, kw_only=True):
    """A decision and its outcome, if there is one."""

    at: str
    outcome: "Outcome | None" = None


DecisionStatus = Literal["open", "waiting", "learned", "void", "overridden", "late", "expired", "timed-out"]


class LoggedDecision(DecisionRecord, kw_only=True):
    """A decision as the log has it: with its features, its outcome, and what became of it."""

    status: DecisionStatus
    """open: an outcome can still be learned from; waiting: it arrived, and is learned at the timeout; learned; void and
    overridden: nothing was learned; late: it arrived after the timeout; expired: there was none; timed-out: there was
    none, and it was learned as wrong."""
    outcome_at: str | None = None
    redacted: bool = False
    """The features were removed."""
    x: Numbers | SparseX | None = None
    features: Cells | None = None
    available: tuple[Label, ...] | None = None
    context: Cells | None = None
    actions: tuple[Action, ...] | None = None
    excluded: tuple[ActionId, ...] | None = None


class LatestDecisions(Schema, omit_defaults=False):
    """The latest decisions, newest first."""

    decisions: list[LoggedDecision]
    complete: bool
    """False if older decisions may match too: only the latest 20,000 are searched."""


class Preview(Schema):
    """What a decision would be drawn from. Nothing was decided or logged."""

    distribution: dict[str, float]
    """Label, or id of an action, to probability."""
    ranking: list[RankedAction]
    """The actions by score; the labels by probability."""


class DecisionBatch(Schema):
    """Up to 1,000 decisions, made in this order and committed together."""

    decisions: Annotated[list[DecisionRequest], Meta(min_length=1, max_length=MAX_BATCH)]


class DecisionResult(Schema):
    """A decision, or the reason why the request was refused."""

    decision: Decision | None = None
    problem: "Problem | None" = None


class DecisionResults(Schema):
    """One result for each request of the batch."""

    decisions: list[DecisionResult]


# --- outcomes -----------------------------------------------------------------------------------------------------


class Outcome(Schema, kw_only=True):
    """The outcome of a decision: exactly one of correct, reward, label, action or void."""

    correct: bool | None = None
    reward: Annotated[float, Meta(ge=0.0, le=1.0)] | None = None
    label: Label | None = None
    """The true label."""
    action: ActionId | None = None
    """The right action."""
    void: Literal[True] | None = None
    """The event had no outcome; nothing is learned from it."""
    played: ActionId | None = None
    """What was played. If it differs from the decision, the decision is void and counts as overridden."""


class EventOutcome(Outcome, kw_only=True):
    """The outcome of one event."""

    event_id: EventId


class OutcomeBatch(Schema):
    """Up to 1,000 outcomes, recorded in this order and committed together."""

    outcomes: Annotated[list[EventOutcome], Meta(min_length=1, max_length=MAX_BATCH)]


class OutcomeStatus(Schema, kw_only=True, omit_defaults=False):
    """recorded; duplicate: the same outcome was recorded before; late: recorded, but not learned from."""

    event_id: str
    status: Literal["recorded", "duplicate", "late"]


class OutcomeResult(Schema):
    """The status of an outcome, or the reason why it was refused."""

    outcome: OutcomeStatus | None = None
    problem: "Problem | None" = None


class OutcomeResults(Schema):
    """One result for each outcome of the batch."""

    outcomes: list[OutcomeResult]


# --- challengers ------------------------------------------------------------------------------------------------


class NewChallenger(Schema, kw_only=True):
    """A learner that learns from the same outcomes as the model and never decides: how it differs from the model."""

    algorithm: str | None = None
    """The library's default if omitted."""
    settings: Settings = {}
    """Settings of the learner; those of the model do not apply."""
    seed: Seed = 0
    use_features: FeatureNames | None = None
    """With named features: the names of those that the challenger uses; all if omitted."""


class EstimatedError(Schema, omit_defaults=False):
    """An estimated error rate, 1 minus the mean reward, with its proven 95 % interval; null without outcomes."""

    error_rate: float | None
    low: float | None
    high: float | None


class ChallengerInfo(Schema, kw_only=True, omit_defaults=False):
    """A challenger and its comparison with what was played."""

    name: Name
    algorithm: str
    settings: Settings
    seed: int
    use_features: FeatureNames | None
    since: str
    """When its evidence began: when it was created, or at the last promotion."""
    decisions: int
    """The number of decisions with an outcome on which it was evaluated."""
    error_rate: float | None
    low: float | None
    high: float | None
    live: EstimatedError
    """What was played in the same decisions."""
    difference: EstimatedError
    """Its error rate minus that of what was played; the interval is narrower than those of the two suggest."""
    comparison: Literal["better", "worse", "unknown"]
    """better or worse only if the interval of the difference proves it."""
    decisions_needed: int | None
    """While it is unknown: about how many more outcomes would prove the difference; null if nothing suggests one."""
    stopped: str | None
    """Why it no longer learns; null while it does."""


class ChallengerList(Schema):
    """The challengers of a model, at most 5."""

    challengers: list[ChallengerInfo]


class Promotion(Schema):
    """The challenger to make live."""

    challenger: Name


# --- importing --------------------------------------------------------------------------------------------------


class ImportedDecision(Schema, kw_only=True):
    """A decision from another log, with its outcome."""

    event_id: EventId
    """A decision with the id of an event that the model knows is not imported again."""
    x: Numbers | SparseX | None = None
    features: Cells | None = None
    context: Cells | None = None
    actions: Annotated[tuple[Action, ...], Meta(min_length=1, max_length=MOST_ACTIONS)] | None = None
    available: Annotated[tuple[Label, ...], Meta(min_length=1, max_length=MAX_LABELS)] | None = None
    excluded: Annotated[tuple[ActionId, ...], Meta(max_length=MOST_ACTIONS)] | None = None
    label: Label | None = None
    """The label that was played; with full-information feedback it may be omitted."""
    action: ActionId | None = None
    """The id of the action that was played."""
    propensity: Probability | None = None
    """The probability with which it was drawn; required with bandit feedback."""
    outcome: "Outcome"


class Import(Schema):
    """Up to 1,000 decisions to learn from, in this order. If one cannot be imported, none is."""

    decisions: Annotated[list[ImportedDecision], Meta(min_length=1, max_length=MAX_BATCH)]


class Imports(Schema, omit_defaults=False):
    """How many decisions were imported, and how many were known by their event ids."""

    imported: int
    known: int


# --- keys ---------------------------------------------------------------------------------------------------------


class NewKey(Schema, kw_only=True):
    """A key to create."""

    roles: Annotated[list[Role], Meta(min_length=1, max_length=4)]
    model: Name | None = None
    """The only model the key is valid for; all models if omitted."""


class KeyInfo(Schema, kw_only=True, omit_defaults=False):
    """A key without its secret."""

    id: str
    roles: list[str]
    model: str | None
    revoked: bool


class CreatedKey(KeyInfo, kw_only=True):
    """A new key with its secret."""

    key: str
    """Send it as `Authorization: Bearer <key>`. It is shown only once."""


class KeyList(Schema):
    """All keys, including revoked ones."""

    keys: list[KeyInfo]


# --- other --------------------------------------------------------------------------------------------------------


class Problem(Schema, kw_only=True):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    event_id: str | None = None
    outcome: Outcome | None = None
    """In a conflict: the outcome that was recorded first."""


Report = dict[str, Any]


# --- history and segments -----------------------------------------------------------------------------------------


class Rates(Schema, kw_only=True):
    """How well some decisions did. Of a model with actions, the mean reward is 1 - error_rate."""

    decisions: int
    outcomes: int
    """The number learned from, including timeouts that count as wrong."""
    error_rate: float | None
    """null: none was learned from."""
    low: float | None
    """The ends of the 95 % interval of the error rate."""
    high: float | None


class HistoryPoint(Rates, kw_only=True):
    """The decisions made in one hour or on one day."""

    start: int
    """When it begins, in µs since 1970 (UTC)."""


class ModelHistory(Schema, kw_only=True):
    """The hours of the last 14 days, or the days of the last three years, that had a decision."""

    step: Literal["hour", "day"]
    points: list[HistoryPoint]


class SegmentValue(Rates, kw_only=True):
    """The decisions whose feature had this value."""

    value: str
    """A word, or true or false."""


class Segment(Schema, kw_only=True):
    """A feature with at most 20 values, the most frequent ones first."""

    feature: str
    of_action: bool = False
    """A feature of the action that was played, not of the context."""
    values: list[SegmentValue]


class ModelSegments(Schema, kw_only=True):
    """The features with few values. Only named features are followed, and the first 100 of them."""

    segments: list[Segment]
