"""The bodies of Personalizer's requests and responses.

Unlike the service's schemas they allow unknown fields, and null for what may be omitted, because clients send both.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct

from gaptron.serve.schemas import ActionId
from gaptron.types import MOST_ACTIONS

Objects = list[dict[str, Any]]
ForeignEventId = Annotated[str, Meta(max_length=256)]


class RankableAction(Struct, kw_only=True, gc=False):
    """One of the actions to rank."""

    id: ActionId
    features: Objects | None = None
    """Objects of features, which may be nested."""


class RankRequest(Struct, kw_only=True, rename="camel", gc=False):
    """A request to choose one of the actions."""

    actions: Annotated[list[RankableAction], Meta(min_length=1, max_length=MOST_ACTIONS)]
    context_features: Objects | None = None
    """Objects of features that all actions share."""
    excluded_actions: Annotated[list[ActionId], Meta(max_length=MOST_ACTIONS)] | None = None
    event_id: ForeignEventId | None = None
    """Any text. Generated if omitted."""
    defer_activation: bool | None = None
    """The action may never be shown: no reward is expected before the event is activated or rewarded."""


class ScoredAction(Struct):
    """An action and the probability with which it was chosen."""

    id: str
    probability: float


class RankResponse(Struct, kw_only=True, rename="camel"):
    """The action to show."""

    ranking: list[ScoredAction]
    """All actions by score; excluded ones are where the request had them, with probability 0."""
    event_id: str
    reward_action_id: str
    """The action to show, whose reward is expected."""


class SlotRequest(Struct, kw_only=True, rename="camel", gc=False):
    """A place that one of the actions is chosen for."""

    id: ActionId
    baseline_action: ActionId
    """The action that the application would show there; another one for each slot."""
    excluded_actions: Annotated[list[ActionId], Meta(max_length=MOST_ACTIONS)] | None = None
    features: Objects | None = None


class MultiSlotRankRequest(Struct, kw_only=True, rename="camel", gc=False):
    """A request to choose a different action for each slot."""

    actions: Annotated[list[RankableAction], Meta(min_length=1, max_length=MOST_ACTIONS)]
    slots: Annotated[list[SlotRequest], Meta(min_length=1, max_length=MOST_ACTIONS)]
    context_features: Objects | None = None
    event_id: ForeignEventId | None = None
    defer_activation: bool | None = None
    """True is refused."""


class SlotResponse(Struct, rename="camel"):
    """The action to show in a slot."""

    id: str
    reward_action_id: str


class MultiSlotRankResponse(Struct, rename="camel"):
    """The actions to show."""

    event_id: str
    slots: list[SlotResponse]


class SlotReward(Struct, rename="camel", gc=False):
    """The reward of the action in a slot."""

    slot_id: ActionId
    value: float


class MultiSlotRewardRequest(Struct, gc=False):
    """The rewards of some slots of an event."""

    reward: Annotated[list[SlotReward], Meta(min_length=1, max_length=MOST_ACTIONS)]


class RewardRequest(Struct, gc=False):
    """The reward of an event."""

    value: float


class ServiceConfiguration(Struct, kw_only=True, rename="camel"):
    """The configuration of a model.

    Only `rewardWaitTime`, `explorationPercentage` and `learningMode` can be changed.
    """

    reward_wait_time: str | None
    """How long a reward is waited for, as an ISO 8601 duration; null: without a limit."""
    default_reward: float
    """What a missing reward counts as, if the model has `on_timeout` "wrong"."""
    reward_aggregation: str = "earliest"
    exploration_percentage: float
    """The share of decisions drawn uniformly, from 0 to 1. The algorithm may explore more."""
    model_export_frequency: str = "PT1S"
    """An upper bound: every decision uses all rewards that were learned from before."""
    log_retention_days: int
    """-1: without a limit."""
    model_retrain_days: int = 0
    learning_mode: str
    """Online or Apprentice."""


class PersonalizerError(Struct):
    """An error."""

    code: str
    message: str


class ErrorResponse(Struct):
    """The body of every error."""

    error: PersonalizerError
