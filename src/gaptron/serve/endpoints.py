"""The endpoints: each reads a request, calls the service, and returns a response.

The first line of a docstring is the summary of the operation in the OpenAPI document.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from gaptron.serve import export, openapi
from gaptron.serve.keys import KeyRing, new_key
from gaptron.serve.management import model_info
from gaptron.serve.model_state import Model
from gaptron.serve.problems import invalid, not_found, unavailable
from gaptron.serve.report import MAX_AGE
from gaptron.serve.requests import read_body, service_of
from gaptron.serve.responses import encode, json_response
from gaptron.serve.schemas import (
    CreatedKey,
    DecisionBatch,
    DecisionRequest,
    DecisionResults,
    EventId,
    EventOutcome,
    KeyInfo,
    KeyList,
    ModelChange,
    ModelList,
    NewKey,
    NewModel,
    Outcome,
    OutcomeBatch,
    OutcomeResults,
    QuarantinedModel,
)
from gaptron.serve.service import Service
from gaptron.serve.store import Key
from gaptron.version import __version__

EXPORT_CHUNK = 1 << 18  # bytes
PAGE_FILES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}  # media type by ending


# --- reading requests -----------------------------------------------------------------------------------------------


def _model_name(request: Request) -> str:
    name: str = request.path_params["model"]
    return name


def _model(request: Request) -> Model:
    return service_of(request).coordinator.model(_model_name(request))


def _event_id(request: Request) -> str:
    """The id in the path. Bodies are validated when they are decoded."""
    try:
        return msgspec.convert(request.path_params["event_id"], EventId)
    except msgspec.ValidationError as problem:
        raise invalid(f"event_id in the path: {problem}") from None


# --- decisions and outcomes -----------------------------------------------------------------------------------------


async def decide(request: Request) -> Response:
    """Decide: return the label or the action to play.

    201 for a new decision, 200 with `Idempotent-Replay: true` for one that was made before under the same id.
    """
    body, service = await read_body(request, DecisionRequest), service_of(request)
    service.check_decides()
    decision, existed = await service.decisions.decide(_model_name(request), body)
    return json_response(decision, 200, {"Idempotent-Replay": "true"}) if existed else json_response(decision, 201)


async def decide_batch(request: Request) -> Response:
    """Make many decisions in one commit."""
    body, service = await read_body(request, DecisionBatch), service_of(request)
    service.check_decides()
    return json_response(DecisionResults(await service.decisions.decide_batch(_model_name(request), body.decisions)))


async def get_decision(request: Request) -> Response:
    """Return a decision and its outcome."""
    return json_response(await service_of(request).decisions.find(_model_name(request), _event_id(request)))


async def record_outcome(request: Request) -> Response:
    """Record the outcome of a decision."""
    body, coordinator = await read_body(request, Outcome), service_of(request).coordinator
    return json_response(await coordinator.record_outcome(_model_name(request), _event_id(request), body))


async def activate(request: Request) -> Response:
    """Record that what a deferred decision chose was shown, so that a missing outcome counts."""
    await service_of(request).coordinator.activate(_model_name(request), _event_id(request))
    return Response(status_code=204)


async def record_outcomes(request: Request) -> Response:
    """Record many outcomes in one commit."""
    body, coordinator = await read_body(request, OutcomeBatch), service_of(request).coordinator
    outcomes = [(one.event_id, _without_event_id(one)) for one in body.outcomes]
    return json_response(OutcomeResults(await coordinator.record_outcomes(_model_name(request), outcomes)))


def _without_event_id(one: EventOutcome) -> Outcome:
    return Outcome(**{name: getattr(one, name) for name in Outcome.__struct_fields__})


# --- models ---------------------------------------------------------------------------------------------------------


async def create_model(request: Request) -> Response:
    """Create a model."""
    body = await read_body(request, NewModel)
    return json_response(model_info(await service_of(request).coordinator.create(body)), 201)


async def change_model(request: Request) -> Response:
    """Change the configuration of a model, or add labels."""
    body = await read_body(request, ModelChange)
    return json_response(model_info(await service_of(request).coordinator.change(_model_name(request), body)))


async def get_model(request: Request) -> Response:
    """Return a model and its configuration."""
    return json_response(model_info(_model(request)))


async def list_models(request: Request) -> Response:
    """List all models."""
    coordinator = service_of(request).coordinator
    quarantined = [QuarantinedModel(name, reason) for name, reason in coordinator.quarantined.items()]
    return json_response(ModelList([model_info(model) for model in coordinator.models.values()], quarantined))


# --- keys -----------------------------------------------------------------------------------------------------------


async def create_key(request: Request) -> Response:
    """Create a key; its secret is in this response only."""
    body, keys, coordinator = await read_body(request, NewKey), _keys(request), service_of(request).coordinator
    keys.check_first(body.roles, body.model)
    key, text = new_key(body.roles, body.model)
    await coordinator.committer.call(lambda: coordinator.store.add_key(key))
    await asyncio.to_thread(keys.reload)
    created = CreatedKey(id=key.id, roles=key.roles.split(), model=key.model, revoked=False, key=text)
    return json_response(created, 201)


async def list_keys(request: Request) -> Response:
    """List all keys, including revoked ones."""
    return json_response(KeyList([_key_info(key) for key in _keys(request).all()]))


async def revoke_key(request: Request) -> Response:
    """Revoke a key."""
    keys, coordinator = _keys(request), service_of(request).coordinator
    key = keys.check_revocable(request.path_params["key_id"])
    await coordinator.committer.call(lambda: coordinator.store.revoke_key(key.id))
    await asyncio.to_thread(keys.reload)
    return json_response(_key_info(key._replace(revoked=True)))


def _keys(request: Request) -> KeyRing:
    keys = service_of(request).keys
    assert keys is not None  # otherwise the middleware refused the request
    return keys


def _key_info(key: Key) -> KeyInfo:
    return KeyInfo(id=key.id, roles=key.roles.split(), model=key.model, revoked=key.revoked)


# --- monitoring -----------------------------------------------------------------------------------------------------


async def get_report(request: Request) -> Response:
    """Return the report of a model, which the web page shows."""
    return json_response(await _report(service_of(request), _model(request)))


async def _report(service: Service, model: Model) -> dict[str, Any]:
    made = await service.reports.get(service.coordinator, model)
    return {**made, "speed": service.metrics.speed(service.coordinator)}


async def stream_reports(request: Request) -> Response:
    """Stream the report once a second, as server-sent events."""
    service, model = service_of(request), _model(request)

    async def messages() -> AsyncIterator[bytes]:
        last = request.headers.get("last-event-id", "")
        while service.state == "ready" and service.coordinator.models.get(model.name) is model:
            made = await _report(service, model)
            if str(made["seq"]) != last:
                last = str(made["seq"])
                yield b"id: %s\nevent: report\ndata: %s\n\n" % (last.encode(), encode(made))
            else:
                yield b": no change\n\n"
            await asyncio.sleep(MAX_AGE)

    return StreamingResponse(messages(), media_type="text/event-stream")


async def export_log(request: Request) -> Response:
    """Export the decisions with their outcomes, for `gaptron evaluate`."""
    format_ = request.query_params.get("format", "jsonl")
    model, coordinator = _model(request), service_of(request).coordinator
    if format_ not in export.FORMATS:
        raise invalid(f"format must be one of {', '.join(export.FORMATS)}")
    lines = export.lines(coordinator.store, model.name, format_, coordinator.committer.committed)
    return StreamingResponse(_in_chunks(lines), media_type="application/x-ndjson")


async def _in_chunks(lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Read many lines at a time in another thread."""

    def next_chunk() -> bytes:
        chunk, size = [], 0
        for line in lines:
            chunk.append(line)
            size += len(line)
            if size > EXPORT_CHUNK:
                break
        return b"".join(chunk)

    while chunk := await asyncio.to_thread(next_chunk):
        yield chunk


async def download_snapshot(request: Request) -> Response:
    """Download the learner as a model file, for `Learner.load`."""
    model = _model(request)
    headers = {"Content-Disposition": f'attachment; filename="{model.name}.gaptron"'}
    return Response(model.adapter.file(), 200, headers, "application/octet-stream")


async def metrics(request: Request) -> Response:
    """Return the metrics for Prometheus."""
    return Response(service_of(request).metrics.text(), media_type="text/plain; version=0.0.4")


async def health(request: Request) -> Response:
    """Check that the process is running. `quarantined` is the number of models that cannot be used."""
    return json_response({"status": "alive", "version": __version__, "quarantined": service_of(request).quarantined})


async def ready(request: Request) -> Response:
    """Check that requests are served."""
    state = service_of(request).state
    if state != "ready":
        raise unavailable(state)
    durable = "every response is sent after its event is on disk"
    return json_response({"status": "ready", "durable": durable, "quarantined": service_of(request).quarantined})


# --- documentation and the web page -----------------------------------------------------------------------------------


async def openapi_document(request: Request) -> Response:
    """Return this document."""
    return json_response(openapi.document(request.app.state.operations))


async def api_page(request: Request) -> Response:
    """Show this document as a web page."""
    return Response(openapi.page(request.app.state.operations), media_type="text/html")


async def index_page(request: Request) -> Response:
    """Show the web page."""
    return Response(_file("page.html"), media_type="text/html")


async def page_file(request: Request) -> Response:
    """Return a script, a style sheet or the icon of the web page."""
    name = request.path_params["file"]
    if name not in _page_files():  # a name is compared and never used as a path
        raise not_found(f"the web page has no file {name[:100]!r}")
    return Response(_file(name), media_type=PAGE_FILES[name.rpartition(".")[2]])


@cache
def _page_files() -> frozenset[str]:
    found = (file.name for file in (files("gaptron.serve") / "page").iterdir())
    return frozenset(name for name in found if name.rpartition(".")[2] in PAGE_FILES)


@cache
def _file(name: str) -> bytes:
    return (files("gaptron.serve") / "page" / name).read_bytes()
