"""Where `gaptron import` sends decisions: a running service, or a store that nothing else uses."""

import asyncio
from typing import Protocol

from gaptron.errors import SettingError
from gaptron.serve.import_batches import decisions_in
from gaptron.serve.imports import import_decisions
from gaptron.serve.management import model_info
from gaptron.serve.schemas import Imports, ModelInfo
from gaptron.serve.service import Options, Service
from gaptron.serve.store import open_store


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
        from gaptron.cli.import_service import ServiceTarget  # noqa: PLC0415

        return ServiceTarget(location, model, key)
    return StoreTarget(location, model)


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
        return self._runner.run(import_decisions(self._service.coordinator, self._name, decisions_in(body)))

    def close(self) -> None:
        """Save a snapshot and close the store."""
        self._runner.run(self._service.close())
        self._runner.close()
