"""The service as an ASGI application: routes with their middleware, and handlers that turn errors into problems."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from gaptron.serve.middleware import SECURITY_HEADERS, Authentication, BodyLimits, RequestMetrics, SecurityHeaders
from gaptron.serve.operation import NATIVE, Dialect, Operation
from gaptron.serve.personalizer import dialect as personalizer
from gaptron.serve.problems import TITLES, RefusedError, unavailable
from gaptron.serve.responses import problem_response
from gaptron.serve.routes import OPERATIONS
from gaptron.serve.service import Service
from gaptron.serve.store import StoreUnavailableError


def application(service: Service) -> Starlette:
    """Return the ASGI application of a service. Its lifespan starts and closes the service."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        service.start()
        yield
        await service.close()

    app = Starlette(
        routes=[_Route(operation) for operation in OPERATIONS],
        middleware=[Middleware(SecurityHeaders)],
        lifespan=lifespan,
        exception_handlers={
            RefusedError: _refused,
            StoreUnavailableError: _store_unavailable,
            HTTPException: _http_error,
            Exception: _internal_error,
        },
    )
    app.state.service, app.state.operations = service, OPERATIONS
    return app


class _Route(Route):
    """The route of an operation. It matches the path as it was sent, so that an encoded slash may be in an id."""

    def __init__(self, operation: Operation) -> None:
        """Add the middleware in this order, so that the metrics include refused requests."""
        middleware = [Middleware(RequestMetrics, route=operation.path)]
        if operation.role is not None:
            middleware.append(Middleware(Authentication, operation=operation))
        if operation.body is not None:
            middleware.append(Middleware(BodyLimits))
        super().__init__(operation.path, operation.endpoint, methods=[operation.method], middleware=middleware)
        self._operation = operation

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match a request and decode the parameters in its path."""
        raw: bytes = scope.get("raw_path") or b""
        encoded = b"%" in raw
        match, child = super().matches({**scope, "path": raw.decode("latin-1")} if encoded else scope)
        if match is Match.NONE:
            return match, child
        if encoded:
            try:
                found = {name: unquote(text, errors="strict") for name, text in child["path_params"].items()}
            except UnicodeDecodeError:
                return Match.NONE, {}
            child["path_params"] = found
        return match, {**child, "dialect": self._operation.dialect}


def _error_response(request: Request, refusal: RefusedError) -> Response:
    dialect: Dialect = request.scope.get("dialect", NATIVE)
    return dialect.error_response(refusal)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return _error_response(request, error)


async def _store_unavailable(request: Request, error: Exception) -> Response:
    return _error_response(request, unavailable("the database cannot be reached"))


async def _http_error(request: Request, error: Exception) -> Response:
    """Errors of Starlette's router: 404 and 405."""
    assert isinstance(error, HTTPException)
    status = error.status_code if error.status_code in TITLES else 404
    kind, path = "method-not-allowed" if status == 405 else "not-found", request.url.path
    detail = f"{request.method} {path[:200]} is not served{personalizer.instead(path)}"
    dialect = personalizer.PERSONALIZER if personalizer.is_path(path) else NATIVE
    response = dialect.error_response(RefusedError(status, kind, detail))
    if status == 405:  # Starlette would name those of the first route with this path
        response.headers["Allow"] = ", ".join(_methods(request))
    return response


def _methods(request: Request) -> list[str]:
    """The methods of the path of a request."""
    routes = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    return sorted({method for route in routes for method in route.methods})


async def _internal_error(request: Request, error: Exception) -> Response:
    """A bug: Starlette raises it again, so that the server logs it; the caller gets no details.

    Starlette sends this response outside of all middleware, so it sets the security headers itself.
    """
    response = problem_response(RefusedError(500, "internal-error", "see the log of the service"))
    response.headers.update(SECURITY_HEADERS)
    return response
