"""The service as an ASGI application: routes with their middleware, and handlers that turn errors into problems."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from gaptron.serve.middleware import SECURITY_HEADERS, Authentication, BodyLimits, RequestMetrics, SecurityHeaders
from gaptron.serve.operation import Operation
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
        routes=[_route(operation) for operation in OPERATIONS],
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


def _route(operation: Operation) -> Route:
    """Build a route. Its middleware runs in this order, so that the metrics include refused requests."""
    middleware = [Middleware(RequestMetrics, route=operation.path)]
    if operation.role is not None:
        middleware.append(Middleware(Authentication, role=operation.role))
    if operation.body is not None:
        middleware.append(Middleware(BodyLimits))
    return Route(operation.path, operation.endpoint, methods=[operation.method], middleware=middleware)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return problem_response(error)


async def _store_unavailable(request: Request, error: Exception) -> Response:
    return problem_response(unavailable("the database cannot be reached"))


async def _http_error(request: Request, error: Exception) -> Response:
    """Errors of Starlette's router: 404 and 405."""
    assert isinstance(error, HTTPException)
    status = error.status_code if error.status_code in TITLES else 404
    kind = "method-not-allowed" if status == 405 else "not-found"
    response = problem_response(RefusedError(status, kind, f"{request.method} {request.url.path[:200]} is not served"))
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
