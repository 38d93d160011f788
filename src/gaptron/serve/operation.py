"""The description of an HTTP operation, from which `web` builds its route and `openapi` its documentation."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from starlette.responses import Response

from gaptron.serve.problems import RefusedError
from gaptron.serve.responses import PROBLEM_JSON, problem_response
from gaptron.serve.schemas import Problem
from gaptron.serve.service import Service
from gaptron.serve.store import Key


class Dialect(NamedTuple):
    """How clients of an operation send their key and read errors."""

    error: Any = Problem  # type of the body of an error
    error_media_type: str = PROBLEM_JSON
    error_response: Callable[[RefusedError], Response] = problem_response
    security: str = "key"  # name of the security scheme in the OpenAPI document
    key_header: str | None = None  # also accepted in place of Authorization
    default_model: Callable[[Service, Key | None], str | None] | None = None  # if the path names no model


NATIVE = Dialect()


class Operation(NamedTuple):
    """One method of one path."""

    method: str
    path: str
    endpoint: Callable[[Any], Awaitable[Any]]
    role: str | None = None  # that the key needs; None: open to everybody
    body: Any = None  # type of the request body
    responses: Mapping[int, Any] = MappingProxyType({})  # status → type of the response body
    problems: tuple[int, ...] = ()
    query: tuple[tuple[str, tuple[str, ...]], ...] = ()  # name and possible values (none: any)
    media_type: str = "application/json"
    dialect: Dialect = NATIVE
    variant: str = ""  # makes the id unique if an endpoint has several paths

    @property
    def summary(self) -> str:
        """The first line of the endpoint's docstring."""
        return (inspect.getdoc(self.endpoint) or "").partition("\n")[0]
