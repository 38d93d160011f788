"""JSON and problem responses."""

from typing import Any

import msgspec
from starlette.responses import Response

from gaptron.serve.problems import RefusedError

JSON, PROBLEM_JSON = "application/json", "application/problem+json"
encode = msgspec.json.Encoder().encode


def json_response(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A response with a JSON body."""
    return Response(encode(content), status, headers, JSON)


def retry_headers(refusal: RefusedError) -> dict[str, str]:
    """When the same request may succeed."""
    return {"Retry-After": "1"} if refusal.status in (429, 503) else {}


def problem_response(refusal: RefusedError) -> Response:
    """A refusal as `application/problem+json` (RFC 9457)."""
    headers = retry_headers(refusal)
    if refusal.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(encode(refusal.problem()), refusal.status, headers, PROBLEM_JSON)
