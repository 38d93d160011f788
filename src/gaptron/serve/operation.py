"""The description of an HTTP operation, from which `web` builds its route and `openapi` its documentation."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class Operation(NamedTuple):
    """One method of one path."""

    method: str
    path: str
    endpoint: Callable[[Any], Awaitable[Any]]
    role: str | None = None  # that the key needs; None: open to everybody
    body: Any = None  # type of the request body
    responses: Mapping[int, Any] = MappingProxyType({})  # status → type of the response body
    problems: tuple[int, ...] = ()
    query: tuple[tuple[str, tuple[str, ...]], ...] = ()  # name and possible values of each query parameter
    media_type: str = "application/json"

    @property
    def summary(self) -> str:
        """The first line of the endpoint's docstring."""
        return (inspect.getdoc(self.endpoint) or "").partition("\n")[0]
