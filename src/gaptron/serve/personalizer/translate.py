"""Translate Personalizer's bodies to those of the service, and back."""

import hashlib
import re
from typing import Any

import msgspec
from msgspec import structs

from gaptron.event_id import new_event_id
from gaptron.serve.personalizer.schemas import Objects, RankRequest, RankResponse, ScoredAction
from gaptron.serve.problems import RefusedError, invalid
from gaptron.serve.schemas import EVENT_ID_PATTERN, Decision, DecisionRequest, Outcome, RewardRange
from gaptron.streams.actions.features import flatten_objects
from gaptron.streams.json_lines import MalformedError

DOTS = ".", ".."  # clients remove these from paths, so that no reward could name the event
LONGEST_ESCAPED = 125  # with its prefix, as long as the service's ids may be


def given_or_new(foreign: str | None) -> str:
    """Return the id of an event that a request has, or a new one."""
    if foreign in DOTS:
        raise invalid(f"eventId {foreign!r} cannot be part of a path, so that no reward could name it: use another id")
    return foreign or new_event_id()


def event_id(foreign: str) -> str:
    """Return the id of an event in the service, a different one for each of Personalizer's ids.

    Letters, digits and . _ - stay; another character becomes :hh for each of its bytes. An id that would be too long
    is replaced by its hash. The prefixes contain :- which no escaped character does.
    """
    escaped = re.sub(r"[^A-Za-z0-9._-]", lambda one: "".join(f":{byte:02x}" for byte in one[0].encode()), foreign)
    if re.match(EVENT_ID_PATTERN, escaped):
        return escaped
    if len(escaped) <= LONGEST_ESCAPED:  # its first character is not a letter or a digit
        return "e:-" + escaped
    return "h:-" + hashlib.sha256(foreign.encode()).hexdigest()


def features(given: Objects | None, what: str) -> dict[str, Any]:
    """Return the features of Personalizer's objects by name, as `flatten_objects` names them."""
    try:
        return flatten_objects(given or (), what)
    except MalformedError as problem:
        raise invalid(f"{what}: {problem}") from None
    except RecursionError:
        raise invalid(f"{what} is nested too deeply") from None


def baseline(body: RankRequest) -> str:
    """The action that is played in Personalizer's apprentice mode: the first one that is not excluded."""
    excluded = body.excluded_actions or ()
    return next((one.id for one in body.actions if one.id not in excluded), body.actions[0].id)


def decision_request(body: RankRequest, id: str, baseline: str | None) -> DecisionRequest:
    """Translate a request to rank.

    Args:
        body: the request.
        id: of the event in the service.
        baseline: the action that is played in shadow mode; None in live mode.
    """
    request: dict[str, Any] = {
        "context": features(body.context_features, "contextFeatures"),
        "actions": [
            {"id": one.id, "features": features(one.features, f"features of action {one.id!r}")} for one in body.actions
        ],
        "excluded": body.excluded_actions or None,
        "deferred": bool(body.defer_activation),
    }
    if baseline is not None:
        request["played"] = {"action": baseline}
    try:
        return structs.replace(msgspec.convert(request, DecisionRequest), event_id=id)
    except (msgspec.ValidationError, OverflowError) as problem:
        raise invalid(str(problem)) from None


def rank_response(body: RankRequest, id: str, decision: Decision) -> RankResponse:
    """Translate a decision. Excluded actions stay where they are in the request, the others are sorted by score."""
    assert decision.action is not None
    excluded = set(body.excluded_actions or ())
    ids = [one.id for one in body.actions]
    if decision.ranking is None:  # shadow mode
        scored = [ScoredAction(one, float(one == decision.action)) for one in ids if one not in excluded]
    else:
        scored = [ScoredAction(one.id, one.propensity) for one in decision.ranking]
    others = iter(scored)
    ranking = [ScoredAction(one, 0.0) if one in excluded else next(others) for one in ids]
    return RankResponse(ranking=ranking, event_id=id, reward_action_id=decision.action)


def outcome(value: float, reward_range: RewardRange) -> Outcome:
    """Translate a reward to the service's range, 0 to 1."""
    reward = 0.5 * (value + 1.0) if reward_range == "-1..1" else value
    if not 0.0 <= reward <= 1.0:
        detail = f"value is {value:g}: send rewards from 0 to 1"
        if reward_range == "-1..1":
            detail = f"value is {value:g}: this model takes rewards from -1 to 1"
        elif -1.0 <= value:
            detail += ', or create the model with "reward_range": "-1..1"'
        raise invalid(detail)
    return Outcome(reward=reward)


def is_second(refusal: RefusedError) -> bool:
    """Was the outcome refused because the event has one? Personalizer ignores it (aggregation "earliest")."""
    return refusal.kind == "conflict"
