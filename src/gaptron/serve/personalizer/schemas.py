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


class RewardRequest(Struct, gc=False):
    """The reward of an event."""

    value: float


class PersonalizerError(Struct):
    """An error."""

    code: str
    message: str


class ErrorResponse(Struct):
    """The body of every error."""

    error: PersonalizerError
