"""Personalizer's endpoints. The first line of a docstring is the summary in the OpenAPI document."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from gaptron.serve.coordinator import Coordinator
from gaptron.serve.personalizer import configuration, slots, translate
from gaptron.serve.personalizer.schemas import (
    MultiSlotRankRequest,
    MultiSlotRankResponse,
    MultiSlotRewardRequest,
    RankRequest,
    RewardRequest,
    ServiceConfiguration,
    SlotResponse,
)
from gaptron.serve.problems import RefusedError, not_found
from gaptron.serve.requests import read_body, service_of
from gaptron.serve.responses import json_response
from gaptron.serve.schemas import Outcome


def _model_name(request: Request) -> str:
    name: str | None = request.path_params["model"]
    if name is None:
        raise not_found(
            "the path names no model, and there is not exactly one model with actions: create one, use a key made for "
            "one model, or set the endpoint of the client to http://HOST/m/MODEL"
        )
    return name


def _event_id(request: Request) -> str:
    return translate.event_id(request.path_params["eventId"])


async def rank(request: Request) -> Response:
    """Choose one of the actions and rank the others, as Personalizer's Rank."""
    body, service, name = await read_body(request, RankRequest), service_of(request), _model_name(request)
    service.check_decides()
    in_shadow = service.decisions.model(name).mode == "shadow"
    id = translate.given_or_new(body.event_id)
    played = translate.baseline(body) if in_shadow else None
    decision, _ = await service.decisions.decide(name, translate.decision_request(body, translate.event_id(id), played))
    return json_response(translate.rank_response(body, id, decision), 201)


async def reward(request: Request) -> Response:
    """Report the reward of an event. Only the first reward counts."""
    body, coordinator, name = (
        await read_body(request, RewardRequest),
        service_of(request).coordinator,
        _model_name(request),
    )
    outcome = translate.outcome(body.value, coordinator.model(name).spec.reward_range)
    await _record(coordinator, name, _event_id(request), outcome)
    return Response(status_code=204)


async def _record(coordinator: Coordinator, name: str, event_id: str, outcome: Outcome) -> None:
    try:
        await coordinator.record_outcome(name, event_id, outcome)
    except RefusedError as refusal:
        if not translate.is_second(refusal):
            raise


async def activate_event(request: Request) -> Response:
    """Report that the action of a deferred event was shown."""
    await service_of(request).coordinator.activate(_model_name(request), _event_id(request))
    return Response(status_code=204)


async def rank_slots(request: Request) -> Response:
    """Choose a different action for each slot, with one decision for each."""
    body, service, name = await read_body(request, MultiSlotRankRequest), service_of(request), _model_name(request)
    service.check_decides()
    in_shadow = service.decisions.model(name).mode == "shadow"
    id = translate.given_or_new(body.event_id)
    taken: list[str] = []
    for one in slots.decision_requests(body, id, in_shadow=in_shadow):
        decision, _ = await service.decisions.decide(name, slots.without(one, taken))
        assert decision.action is not None
        taken.append(decision.action)
    found = [SlotResponse(slot.id, action) for slot, action in zip(body.slots, taken)]
    return json_response(MultiSlotRankResponse(id, found), 201)


async def reward_slots(request: Request) -> Response:
    """Report the rewards of slots of an event. Only the first reward of each slot counts."""
    body, coordinator = await read_body(request, MultiSlotRewardRequest), service_of(request).coordinator
    name, event = _model_name(request), request.path_params["eventId"]
    scale = coordinator.model(name).spec.reward_range
    outcomes = [(slots.event_id(event, one.slot_id), translate.outcome(one.value, scale)) for one in body.reward]
    for id, _ in outcomes:
        await coordinator.find(name, id)  # otherwise some would be recorded before an unknown slot is refused
    for id, outcome in outcomes:
        await _record(coordinator, name, id, outcome)
    return Response(status_code=204)


async def get_configuration(request: Request) -> Response:
    """Return the configuration of the model."""
    return json_response(_configuration(request))


async def change_configuration(request: Request) -> Response:
    """Change the reward wait time, the exploration or the learning mode."""
    body = await read_body(request, dict[str, Any])
    change = configuration.change(body, _configuration(request))
    if change is not None:
        await service_of(request).coordinator.change(_model_name(request), change)
    return json_response(_configuration(request))


def _configuration(request: Request) -> ServiceConfiguration:
    service = service_of(request)
    return configuration.of_model(service.coordinator.model(_model_name(request)), service.options.keep_days)
