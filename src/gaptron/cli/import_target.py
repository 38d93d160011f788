"""Where `gaptron import` sends decisions: a running service, or a store that nothing else uses."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import httpx
import msgspec

from gaptron.client.errors import ServiceError
from gaptron.client.messages import body_of, url_part
from gaptron.errors import SettingError
from gaptron.serve.imports import import_decisions
from gaptron.serve.management import model_info
from gaptron.serve.schemas import MAX_BATCH, MAX_BODY_BYTES, Import, Imports, ModelInfo
from gaptron.serve.service import Options, Service
from gaptron.serve.store import open_store

TIMEOUT = 60.0  # seconds; a batch is learned from before the response


class Target(Protocol):
    """A model that decisions are imported into."""

    def info(self) -> ModelInfo:
        """Describe the model."""
        ...

    def send(self, body: bytes) -> Imports:
        """Import a batch: the JSON text of an `Import`."""
        ...

    def close(self) -> None:
        """Close the connection or the store."""
        ...


def open_target(location: str, model: str, key: str | None) -> Target:
    """Open the address of a running service, or a store."""
    if location.startswith(("http://", "https://")):
        return ServiceTarget(location, model, key)
    return StoreTarget(location, model)


class ServiceTarget:
    """A running service.

    Args:
        url: its address.
        model: the name of the model.
        key: a key with the role admin; None if the service has no keys.
    """

    def __init__(self, url: str, model: str, key: str | None) -> None:
        headers = {"Content-Type": "application/json"} | ({} if key is None else {"Authorization": f"Bearer {key}"})
        self._client = httpx.Client(base_url=url, headers=headers, timeout=TIMEOUT)
        self._path = f"/v1/models/{url_part(model)}"

    def info(self) -> ModelInfo:
        """Describe the model."""
        known = set(ModelInfo.__struct_fields__)
        body = self._request("GET", self._path)
        return msgspec.convert({name: value for name, value in body.items() if name in known}, ModelInfo)

    def send(self, body: bytes) -> Imports:
        """Import a batch: the JSON text of an `Import`."""
        return msgspec.convert(self._request("POST", self._path + "/import", body), Imports)

    def _request(self, method: str, path: str, content: bytes | None = None) -> dict[str, Any]:
        try:
            return body_of(self._client.request(method, path, content=content))
        except httpx.HTTPError as problem:
            raise ServiceError(f"the service cannot be reached: {problem}") from None

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


class StoreTarget:
    """A store that no service uses.

    Args:
        location: a folder, or postgresql://...
        model: the name of the model.
    """

    def __init__(self, location: str, model: str) -> None:
        store = open_store(location)
        try:
            store.lifetimes()  # refuses a location without a store
            if not store.acquire_lease():
                raise SettingError("another process is using this store")
        except SettingError as problem:
            store.close()
            if "another process" in str(problem):
                raise SettingError(f"{problem}: give the address of the service in its place, http://...") from None
            raise
        self._name = model
        self._service = Service(store, Options())
        self._runner = asyncio.Runner()
        self._runner.run(self._service.open())

    def info(self) -> ModelInfo:
        """Describe the model."""
        return model_info(self._service.coordinator.model(self._name))

    def send(self, body: bytes) -> Imports:
        """Import a batch: the JSON text of an `Import`."""
        decisions = msgspec.json.decode(body, type=Import).decisions
        return self._runner.run(import_decisions(self._service.coordinator, self._name, decisions))

    def close(self) -> None:
        """Save a snapshot and close the store."""
        self._runner.run(self._service.close())
        self._runner.close()


def batches(decisions: Iterable[dict[str, Any]], prefix: str) -> Iterator[bytes]:
    """Yield the bodies of requests that import all decisions, whose ids are the prefix and their number."""
    lines: list[bytes] = []
    size = 0
    for number, decision in enumerate(decisions, 1):
        line = msgspec.json.encode({"event_id": f"{prefix}-{number}"} | decision)
        if lines and (len(lines) == MAX_BATCH or size + len(line) > MAX_BODY_BYTES // 2):
            yield _body(lines)
            lines, size = [], 0
        lines.append(line)
        size += len(line) + 1
    if lines:
        yield _body(lines)


def _body(lines: list[bytes]) -> bytes:
    return b'{"decisions":[%s]}' % b",".join(lines)
