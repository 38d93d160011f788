"""Stores and services for the tests of the service."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serve.postgres import postgres, with_schema
from tests.serve.served import Served

__all__ = ["postgres"]


@pytest.fixture(autouse=True)
def deterministic(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same draws in every run, and no snapshots that depend on how long a test takes."""
    monkeypatch.setattr("gaptron.serve.coordinator.new_draw_key", lambda: "0f" * 32)
    monkeypatch.setattr("gaptron.serve.coordinator.SNAPSHOT_SECONDS", 1e9)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The location for a new store of each kind. PostgreSQL: a separate schema, so that tests can run in parallel."""
    if request.param == "sqlite":
        return str(tmp_path / "store")
    return with_schema(request.getfixturevalue("postgres"), f"test_{uuid.uuid4().hex}")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A service on SQLite with one model."""
    service = Served(str(tmp_path / "store"))
    service.make()
    yield service
    service.close()


@pytest.fixture
def anywhere(place: str) -> Iterator[Any]:
    """A service on each kind of store, with one model."""
    service = Served(place)
    service.make()
    yield service
    service.close()
