"""Endpoints that show a model at work: its latest decisions, and what it would decide. They change nothing."""

import asyncio
from typing import Any

from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response

from gaptron.errors import InputError, SettingError
from gaptron.serve import events
from gaptron.serve.adapter import NotFiniteError
from gaptron.serve.decisions import Known, as_time
from gaptron.serve.events import Decided
from gaptron.serve.model_state import Model
from gaptron.serve.problems import invalid, unavailable
from gaptron.serve.requests import read_body, service_of
from gaptron.serve.responses import json_response
from gaptron.serve.schemas import (
    DecisionRequest,
    DecisionStatus,
    LatestDecisions,
    LoggedDecision,
    Preview,
    RankedAction,
)
from gaptron.serve.store import Store

MAX_LIMIT, DEFAULT_LIMIT = 1000, 100  # decisions in one response
CHUNK, MAX_SEARCHED = 500, 20_000  # decisions read at a time, and at most for one response


# --- the latest decisions -------------------------------------------------------------------------------------------


async def list_decisions(request: Request) -> Response:
    """List the latest decisions with their features and outcomes, newest first."""
    service = service_of(request)
    coordinator, now = service.coordinator, service.options.now()
    model, query = coordinator.model(request.path_params["model"]), request.query_params
    limit = min(_number(query.get("limit"), "limit", DEFAULT_LIMIT), MAX_LIMIT)
    after = max(_number(query.get("after"), "after", 0), model.first_seq)
    label, has_outcome = query.get("label"), _flag(query.get("has_outcome"), "has_outcome")

    def wanted(known: Known) -> bool:
        is_asked_for = label in (None, known.decided.body.label) and has_outcome in (None, known.outcome is not None)
        return is_asked_for and model.owns(known.decided)

    def search(store: Store, last: int) -> tuple[list[Known], bool]:
        found: list[Known] = []
        for _ in range(0, MAX_SEARCHED, CHUNK):
            rows = store.latest(model.name, after, last, CHUNK if label or has_outcome is not None else limit)
            for one in rows:
                known = Known(events.decode(one.decision), None if one.outcome is None else events.decode(one.outcome))
                if wanted(known):
                    found.append(known)
                if len(found) == limit:
                    return found, True
            if not rows:
                return found, True
            last = rows[-1].decision.seq - 1
        return found, False

    found, complete = await asyncio.to_thread(search, coordinator.store, coordinator.committer.committed)
    return json_response(LatestDecisions([_logged(model, known, now) for known in found], complete))


def _number(text: str | None, name: str, default: int) -> int:
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise invalid(f"{name} must be a whole number, not {text[:100]!r}")
    return int(text)


def _flag(text: str | None, name: str) -> bool | None:
    if text not in (None, "true", "false"):
        raise invalid(f"{name} must be true or false, not {text[:100]!r}")
    return None if text is None else text == "true"


def _logged(model: Model, known: Known, now: int) -> LoggedDecision:
    request = known.decided.body.request
    return LoggedDecision(
        **structs.asdict(known.record(model.adapter.labels)) | {"seq": known.decided.seq},
        status=_status(model, known, now),
        outcome_at=None if known.outcome is None else as_time(known.outcome.at),
        redacted=known.decided.body.is_redacted,
        x=request.x,
        features=request.features,
        available=request.available,
        context=request.context,
        actions=request.actions,
        excluded=request.excluded,
    )


def _status(model: Model, known: Known, now: int) -> DecisionStatus:
    """What became of a decision."""
    decided: Decided = known.decided.body
    pending, outcome = model.pending.get(known.decided.event_id or ""), known.outcome
    if outcome is None:
        if decided.learn_when_due:
            return "timed-out" if pending is None else "open"
        return "expired" if decided.is_expired(now) else "open"
    if pending is not None:
        return "waiting"
    if decided.due is not None and outcome.at > decided.due:
        return "late"
    if outcome.body.outcome.void:
        return "void"
    if outcome.body.outcome.played not in (None, decided.label):
        return "overridden"
    return "learned"


# --- what would be decided ------------------------------------------------------------------------------------------


async def preview(request: Request) -> Response:
    """Return the distribution for a request without deciding: nothing changes and nothing is logged."""
    body, coordinator = await read_body(request, DecisionRequest), service_of(request).coordinator
    model = coordinator.model(request.path_params["model"])
    await coordinator.compile(model, body)
    return json_response(_preview(model, body))


def _preview(model: Model, request: DecisionRequest) -> Preview:
    try:
        limited = model.limited(request)
        model.adapter.check(limited)
        scored = model.adapter.score(limited)
    except (InputError, SettingError) as problem:
        raise invalid(str(problem)) from None
    except NotFiniteError as problem:
        raise unavailable(f"model {model.name!r}: {problem}") from None
    distribution: dict[str, Any] = dict(zip(scored.names, scored.distribution.tolist()))
    order = scored.order
    if order is None:
        order = sorted(range(len(scored.names)), key=lambda place: -scored.distribution[place])
    names = scored.names
    return Preview(distribution, [RankedAction(names[place], distribution[names[place]]) for place in order])
