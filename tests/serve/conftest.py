"""Stores and services for the tests of this room."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serve.postgres import postgres, with_schema
from tests.serve.served import Served

__all__ = ["postgres"]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store may be made; once of each kind."""
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
    """A service on each store, with one model."""
    service = Served(place)
    service.make()
    yield service
    service.close()
