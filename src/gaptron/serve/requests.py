"""Reading requests."""

from functools import cache
from typing import Any, TypeVar, cast

import msgspec
from starlette.requests import Request

from gaptron.serve.problems import RefusedError, invalid
from gaptron.serve.responses import JSON
from gaptron.serve.service import Service
from gaptron.serve.wording import plain

T = TypeVar("T")


def service_of(request: Request) -> Service:
    """The service that the request was sent to."""
    service: Service = request.app.state.service
    return service


async def read_body(request: Request, type_: type[T]) -> T:
    """Decode and validate the JSON body."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise RefusedError(415, "unsupported-media-type", f"send Content-Type: {JSON}")
    try:
        body: T = _decoder(cast(Any, type_)).decode(await request.body())
        return body
    except msgspec.ValidationError as problem:
        raise invalid(plain(str(problem))) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise RefusedError(400, "invalid-json", str(problem)) from None


@cache
def _decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type_)
