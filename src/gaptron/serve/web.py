"""HTTP: bytes become words, words go to the desk, and what comes back becomes bytes. Only this file names Starlette."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from gaptron.serve import export, openapi
from gaptron.serve.desk import Desk
from gaptron.serve.fold import Model
from gaptron.serve.keys import LOCAL, Gate, new_key
from gaptron.serve.problems import TITLES, RefusedError, invalid, not_now
from gaptron.serve.report import Facts, report
from gaptron.serve.routes import PATHS, Path
from gaptron.serve.service import Service
from gaptron.serve.store import AwayError, Key
from gaptron.serve.words import (
    LARGEST_BODY,
    ChangedModel,
    DecisionBatch,
    DecisionRequest,
    DecisionResults,
    KeyMade,
    KeyShown,
    KeysShown,
    ModelShown,
    ModelsShown,
    NewKey,
    NewModel,
    Outcome,
    OutcomeBatch,
    OutcomeResults,
)
from gaptron.version import __version__

SLOWEST_BODY = 20.0  # seconds a body may take to arrive
FRESH = 1.0  # seconds for which a report is not made again
JSON, PROBLEM = "application/json", "application/problem+json"
SAFE = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

_SAFE_RAW = [(name.lower().encode(), value.encode()) for name, value in SAFE.items()]
_encode = msgspec.json.Encoder().encode
_DECODERS = {path.takes: msgspec.json.Decoder(path.takes) for path in PATHS if path.takes is not None}


def application(service: Service) -> Starlette:
    """The service as an ASGI application."""
    handlers = Handlers(service)

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        service.start()
        yield
        await service.close()

    routes = [Route(path.path, _endpoint(service, handlers, path), methods=[path.method]) for path in PATHS]
    return Starlette(routes=routes, lifespan=life, exception_handlers={HTTPException: _http_problem, Exception: _fault})


def _endpoint(service: Service, handlers: "Handlers", path: Path) -> Callable[[Request], Awaitable[Response]]:
    handle: Callable[[Request, Any], Awaitable[Response]] = getattr(handlers, path.handler)
    requests = service.metrics.requests

    async def endpoint(request: Request) -> Response:
        started = time.perf_counter()
        try:
            _let_in(service, request, path)
            given = await _body(request, path.takes) if path.takes is not None else None
            response = await handle(request, given)
        except RefusedError as refusal:
            response = refused(refusal)
        except AwayError:
            response = refused(not_now("the database cannot be reached"))
        response.raw_headers.extend(_SAFE_RAW)
        requests.labels(path.path, response.status_code).observe(time.perf_counter() - started)
        return response

    return endpoint


def _let_in(service: Service, request: Request, path: Path) -> None:
    """Refuse who may not do this. Without keys only this machine may, and not through a stranger's page."""
    if path.role is None:
        return
    gate = service.gate
    if gate is None:
        raise not_now(f"the service is not ready: {service.state}")
    gate.check(request.headers.get("authorization"), path.role, request.path_params.get("model"))
    if gate.open:
        host = request.headers.get("host", "")
        if host.rsplit(":", 1)[0] not in LOCAL and host not in LOCAL:
            raise RefusedError(403, "host", f"without keys only localhost is served, not {host[:100]!r}")


async def _body(request: Request, kind: Any) -> Any:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise RefusedError(415, "media-type", f"say Content-Type: {JSON}")
    try:
        async with asyncio.timeout(SLOWEST_BODY):
            data = await _bytes(request)
    except TimeoutError:
        raise RefusedError(408, "slow", f"the body did not arrive in {SLOWEST_BODY:g} s") from None
    try:
        return _DECODERS[kind].decode(data)
    except msgspec.ValidationError as problem:
        raise invalid(str(problem)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise RefusedError(400, "json", str(problem)) from None


async def _bytes(request: Request) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST_BODY:
            raise RefusedError(413, "body", f"a body may have {LARGEST_BODY} bytes")
        parts.append(part)
    return b"".join(parts)


def refused(refusal: RefusedError) -> Response:
    """A problem in the words of RFC 9457."""
    headers = {"Retry-After": "1"} if refusal.status in (429, 503) else {}
    if refusal.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(_encode(refusal.problem()), refusal.status, headers, PROBLEM)


async def _http_problem(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    kind = "unknown" if problem.status_code == 404 else "method"
    detail = f"{request.method} {request.url.path[:200]} is not served"
    refusal = RefusedError(problem.status_code if problem.status_code in TITLES else 404, kind, detail)
    response = refused(refusal)
    response.headers.update({**(problem.headers or {}), **SAFE})
    return response


async def _fault(request: Request, problem: Exception) -> Response:
    """Our own mistake: the log of the process says which, the caller only that it was not theirs."""
    body = {"type": "about:blank", "title": "A fault of the service", "status": 500, "detail": "see its messages"}
    return Response(_encode(body), 500, SAFE, PROBLEM)


def answer(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """JSON."""
    return Response(_encode(content), status, headers, JSON)


class Handlers:
    """One method a path; what it is given was read and is of its type."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._reports: dict[str, tuple[float, int, dict[str, Any]]] = {}

    @property
    def _desk(self) -> Desk:
        return self._service.desk

    # --- decisions and outcomes -------------------------------------------------------------------------------------

    async def decide(self, request: Request, given: DecisionRequest) -> Response:
        """One decision."""
        self._service.check_decides()
        decision, again = await self._service.decisions.decide(request.path_params["model"], given)
        return answer(decision, 200, {"Idempotent-Replay": "true"}) if again else answer(decision, 201)

    async def decide_many(self, request: Request, given: DecisionBatch) -> Response:
        """Many decisions."""
        self._service.check_decides()
        model = request.path_params["model"]
        return answer(DecisionResults(await self._service.decisions.decide_many(model, given.decisions)))

    async def show_decision(self, request: Request, _: None) -> Response:
        """A decision and its outcome."""
        where = request.path_params
        return answer(await self._service.decisions.show(where["model"], where["event"]))

    async def answer(self, request: Request, given: Outcome) -> Response:
        """One outcome."""
        where = request.path_params
        return answer(await self._desk.answer(where["model"], where["event"], given))

    async def answer_many(self, request: Request, given: OutcomeBatch) -> Response:
        """Many outcomes."""
        outcomes = [
            (
                one.event_id,
                Outcome(correct=one.correct, reward=one.reward, label=one.label, void=one.void, played=one.played),
            )
            for one in given.outcomes
        ]
        return answer(OutcomeResults(await self._desk.answer_many(request.path_params["model"], outcomes)))

    # --- models -----------------------------------------------------------------------------------------------------

    async def create(self, request: Request, given: NewModel) -> Response:
        """A new model."""
        return answer(_shown(await self._desk.create(given)), 201)

    async def change(self, request: Request, given: ChangedModel) -> Response:
        """A changed model."""
        return answer(_shown(await self._desk.change(request.path_params["model"], given)))

    async def show_model(self, request: Request, _: None) -> Response:
        """One model."""
        return answer(_shown(self._desk.model(request.path_params["model"])))

    async def show_models(self, request: Request, _: None) -> Response:
        """All models."""
        return answer(ModelsShown([_shown(model) for model in self._desk.models.values()]))

    # --- keys -------------------------------------------------------------------------------------------------------

    async def add_key(self, request: Request, given: NewKey) -> Response:
        """A new key, shown this once."""
        gate = self._gate()
        gate.check_first(given.roles, given.model)
        key, text = new_key(given.roles, given.model)
        await self._desk.committer.call(lambda: self._desk.store.add_key(key))
        await asyncio.to_thread(gate.reload)
        return answer(KeyMade(id=key.id, roles=key.roles.split(), model=key.model, revoked=False, key=text), 201)

    async def show_keys(self, request: Request, _: None) -> Response:
        """All keys."""
        return answer(KeysShown([_key_shown(key) for key in self._gate().shown()]))

    async def revoke_key(self, request: Request, _: None) -> Response:
        """A key that is valid no more."""
        gate, store = self._gate(), self._desk.store
        key = gate.check_revocable(request.path_params["key"])
        await self._desk.committer.call(lambda: store.revoke_key(key.id))
        await asyncio.to_thread(gate.reload)
        return answer(_key_shown(key._replace(revoked=True)))

    def _gate(self) -> Gate:
        gate = self._service.gate
        assert gate is not None  # or the request was refused
        return gate

    # --- what they do -----------------------------------------------------------------------------------------------

    async def report(self, request: Request, _: None) -> Response:
        """The numbers of the page."""
        return answer(await self._report(request.path_params["model"]))

    async def _report(self, name: str) -> dict[str, Any]:
        model = self._desk.model(name)
        when, seq, made = self._reports.get(name, (0.0, -1, {}))
        if time.monotonic() - when > FRESH and seq != model.seq:
            facts = Facts(self._desk, model)
            made = await asyncio.to_thread(report, facts)
            self._reports[name] = time.monotonic(), facts.seq, made
        return {**made, "speed": self._service.metrics.speed(self._desk)}

    async def events(self, request: Request, _: None) -> Response:
        """The report, again and again."""
        name = request.path_params["model"]
        self._desk.model(name)

        async def lines() -> AsyncIterator[bytes]:
            last = request.headers.get("last-event-id", "")
            while self._service.state == "ready":
                made = await self._report(name)
                if str(made["seq"]) != last:
                    last = str(made["seq"])
                    yield b"id: %s\nevent: report\ndata: %s\n\n" % (last.encode(), _encode(made))
                else:
                    yield b": still here\n\n"
                await asyncio.sleep(FRESH)

        return StreamingResponse(lines(), media_type="text/event-stream")

    async def log(self, request: Request, _: None) -> Response:
        """The answered decisions, a line each."""
        form, model = request.query_params.get("format", "jsonl"), self._desk.model(request.path_params["model"])
        if form not in export.FORMS:
            raise invalid(f"format must be one of {', '.join(export.FORMS)}")
        lines = export.lines(self._desk.store, model.name, form, self._desk.committer.committed)
        return StreamingResponse(_in_pieces(lines), media_type="application/x-ndjson")

    async def snapshot(self, request: Request, _: None) -> Response:
        """The learner as a file."""
        model = self._desk.model(request.path_params["model"])
        name = {"Content-Disposition": f'attachment; filename="{model.name}.gaptron"'}
        return Response(model.adapter.file(), 200, name, "application/octet-stream")

    async def metrics(self, request: Request, _: None) -> Response:
        """For Prometheus."""
        return Response(self._service.metrics.text(), media_type="text/plain; version=0.0.4")

    async def health(self, request: Request, _: None) -> Response:
        """The process lives."""
        return answer({"status": "alive", "version": __version__})

    async def ready(self, request: Request, _: None) -> Response:
        """Requests are answered."""
        if self._service.state != "ready":
            raise not_now(self._service.state)
        return answer({"status": "ready", "durable": "every answer is on disk before it goes out"})

    # --- pages ------------------------------------------------------------------------------------------------------

    async def openapi(self, request: Request, _: None) -> Response:
        """The document."""
        return answer(openapi.document())

    async def api(self, request: Request, _: None) -> Response:
        """The document for people."""
        return Response(openapi.page(), media_type="text/html")

    async def page(self, request: Request, _: None) -> Response:
        """The page."""
        return Response(_file("page.html"), media_type="text/html")

    async def script(self, request: Request, _: None) -> Response:
        """Its script."""
        return Response(_file("page.js"), media_type="text/javascript")

    async def icon(self, request: Request, _: None) -> Response:
        """Its icon."""
        return Response(_file("favicon.svg"), media_type="image/svg+xml")

    async def style(self, request: Request, _: None) -> Response:
        """Its style."""
        return Response(_file("page.css"), media_type="text/css")


@cache
def _file(name: str) -> bytes:
    return (files("gaptron.serve") / "page" / name).read_bytes()


async def _in_pieces(lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Lines read in another thread, many at a time."""

    def piece() -> bytes:
        parts, size = [], 0
        for line in lines:
            parts.append(line)
            size += len(line)
            if size > 1 << 18:
                break
        return b"".join(parts)

    while part := await asyncio.to_thread(piece):
        yield part


def _key_shown(key: Key) -> KeyShown:
    return KeyShown(id=key.id, roles=key.roles.split(), model=key.model, revoked=key.revoked)


def _shown(model: Model) -> ModelShown:
    spec = model.spec
    return ModelShown(
        name=spec.name,
        labels=list(model.adapter.labels),
        feedback=spec.feedback,
        algorithm=model.adapter.learner.algorithm,
        features="auto" if model.adapter.named else model.adapter.width,
        settings=spec.settings,
        seed=spec.seed,
        control=spec.control,
        wait=model.wait,
        default=model.default,
        mode=model.mode,
        decisions=model.tally.decisions,
        learned=model.version,
    )
