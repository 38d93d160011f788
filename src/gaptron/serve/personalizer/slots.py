"""Multi-slot requests: one decision for each slot in order, without the actions that were chosen before."""

import hashlib

from msgspec import structs

from gaptron.serve.personalizer import translate
from gaptron.serve.personalizer.schemas import MultiSlotRankRequest, RankRequest, SlotRequest
from gaptron.serve.problems import invalid
from gaptron.serve.schemas import DecisionRequest

LONGEST_PART = 62  # of the id of an event or a slot: both and :. between them are as long as the service's ids may be


def event_id(event: str, slot: str) -> str:
    """Return the id of the decision for a slot, a different one for each event and slot.

    The separator :. is in no other id.
    """
    return f"{_part(event)}:.{_part(slot)}"


def _part(foreign: str) -> str:
    escaped = translate.event_id(foreign)
    return escaped if len(escaped) <= LONGEST_PART else "l:-" + hashlib.sha256(foreign.encode()).hexdigest()[:56]


def decision_requests(body: MultiSlotRankRequest, event: str, *, in_shadow: bool) -> list[DecisionRequest]:
    """Translate a request, with the id and the features of each slot as features slot.* of the context.

    Everything is checked before the first decision, so that none is made for a request that is refused later.
    """
    if body.defer_activation:
        raise invalid("deferActivation is not supported for multi-slot requests: send one rank for each slot")
    _check(body)
    requests = []
    for slot in body.slots:
        context = [*(body.context_features or ()), {"slot": [{"name": slot.id}, *(slot.features or ())]}]
        single = RankRequest(
            actions=body.actions, context_features=context, excluded_actions=slot.excluded_actions or None
        )
        played = slot.baseline_action if in_shadow else None
        requests.append(translate.decision_request(single, event_id(event, slot.id), played))
    return requests


def _check(body: MultiSlotRankRequest) -> None:
    ids = [one.id for one in body.actions]
    for what, names in (("action", ids), ("slot", [one.id for one in body.slots])):
        if len(set(names)) < len(names):
            raise invalid(f"two {what}s have the id {next(one for one in names if names.count(one) > 1)!r}")
    baselines = [slot.baseline_action for slot in body.slots]
    for at, slot in enumerate(body.slots):
        _check_slot(slot, at, set(ids), baselines)


def _check_slot(slot: SlotRequest, at: int, ids: set[str], baselines: list[str]) -> None:
    excluded = set(slot.excluded_actions or ())
    if not excluded <= ids:
        raise invalid(f"slot {slot.id!r} excludes {min(excluded - ids)!r}, which is not the id of an action")
    if slot.baseline_action not in ids - excluded or baselines.count(slot.baseline_action) > 1:
        raise invalid(
            f"slot {slot.id!r}: baselineAction {slot.baseline_action!r} must be an action that the slot does not "
            "exclude, and another one for each slot"
        )
    if len(ids - excluded) <= at:
        raise invalid(f"slot {slot.id!r} may have no action left: send more actions or exclude fewer")


def without(request: DecisionRequest, taken: list[str]) -> DecisionRequest:
    """Exclude the actions that were chosen for the slots before."""
    return structs.replace(request, excluded=tuple(dict.fromkeys([*(request.excluded or ()), *taken])) or None)
