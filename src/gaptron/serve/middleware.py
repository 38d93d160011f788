"""ASGI middleware: security headers for every response; metrics, authentication and limits for each route.

They are plain ASGI classes, because Starlette's BaseHTTPMiddleware would run every request in an additional task.
Middleware of a route runs after routing, so it can read `scope["path_params"]`. A refusal is sent as a response and not
raised, so that the metrics, which are the outermost, count it.
"""

import asyncio
import time
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gaptron.serve.keys import LOCAL_HOSTS
from gaptron.serve.operation import Operation
from gaptron.serve.problems import RefusedError, unavailable
from gaptron.serve.schemas import MAX_BODY_BYTES
from gaptron.serve.service import Service

BODY_TIMEOUT = 20.0  # seconds until a body must have arrived
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]


class SecurityHeaders:
    """Adds headers that make browsers treat the response safely."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"].extend(_RAW_HEADERS)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class RequestMetrics:
    """Measures the time until the response starts. Streams may take much longer to end."""

    def __init__(self, app: ASGIApp, route: str) -> None:
        self._app, self._route = app, route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        started = time.perf_counter()
        requests = _service(scope).metrics.requests

        async def send_and_observe(message: Message) -> None:
            if message["type"] == "http.response.start":
                requests.labels(self._route, message["status"]).observe(time.perf_counter() - started)
            await send(message)

        await self._app(scope, receive, send_and_observe)


class Authentication:
    """Refuses requests whose key does not have the role of the route, and keys that make too many requests.

    Without keys, only requests to localhost are allowed. The Host header is checked too, because a foreign
    web page can point its own host name at this machine (DNS rebinding).
    """

    def __init__(self, app: ASGIApp, operation: Operation) -> None:
        assert operation.role is not None
        self._app, self._role, self._dialect = app, operation.role, operation.dialect

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        try:
            self._check(_service(scope), Headers(scope=scope), scope["path_params"])
        except RefusedError as refusal:
            await self._dialect.error_response(refusal)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check(self, service: Service, headers: Headers, path: dict[str, Any]) -> None:
        keys, authorization = service.keys, headers.get("authorization")
        if keys is None:
            raise unavailable(f"the service is not ready: {service.state}")
        header = self._dialect.key_header
        if header is not None and header in headers:
            authorization = f"Bearer {headers[header]}"
        if self._dialect.default_model is not None and "model" not in path:
            path["model"] = self._dialect.default_model(service, keys.find(authorization))
        key = keys.check(authorization, self._role, path.get("model"))
        if key is not None:
            keys.check_rate(key)
            return
        host = headers.get("host", "")
        if host.rsplit(":", 1)[0] not in LOCAL_HOSTS and host not in LOCAL_HOSTS:
            detail = f"without keys only localhost is served, not {host[:100]!r}"
            raise RefusedError(403, "forbidden-host", detail)


class BodyLimits:
    """Refuses bodies that are too large or arrive too slowly. The endpoint gets the error when it reads the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        deadline, size, complete = asyncio.get_running_loop().time() + BODY_TIMEOUT, 0, False

        async def limited_receive() -> Message:
            nonlocal size, complete
            if complete:
                return await receive()  # waits for the client to disconnect, which has no limit
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise RefusedError(408, "timeout", f"the body did not arrive within {BODY_TIMEOUT:g} s") from None
            size += len(message.get("body", b""))
            if size > MAX_BODY_BYTES:
                raise RefusedError(413, "too-large", f"a body may have at most {MAX_BODY_BYTES} bytes")
            complete = not message.get("more_body", False)
            return message

        await self._app(scope, limited_receive, send)


def _service(scope: Scope) -> Service:
    service: Service = scope["app"].state.service
    return service
