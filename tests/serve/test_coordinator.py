"""The coordinator between a decision and its commit."""

import asyncio
import threading
from typing import Any

import pytest

from gaptron.serve.schemas import DecisionRequest, Outcome
from tests.serve.served import Served


def test_decisions_that_are_not_on_disk_stay_in_the_cache(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache holds two decisions. Of five, an outcome of the first arrives while the disk is still busy."""
    monkeypatch.setattr("gaptron.serve.coordinator.CACHED_DECISIONS", 2)
    served.decide("before")
    coordinator, disk, append = served.service.coordinator, threading.Event(), served.service.store.append

    def append_later(*arguments: Any) -> None:
        disk.wait(60.0)
        append(*arguments)

    monkeypatch.setattr(served.service.store, "append", append_later)

    async def scenario() -> str:
        requests = [DecisionRequest(x=[0.3, 1.0], event_id=f"e{t}") for t in range(5)]
        decisions = [asyncio.create_task(coordinator.decide("triage", request)) for request in requests]
        while ("triage", "e4") not in coordinator._cache:
            await asyncio.sleep(0.001)
        outcome = asyncio.create_task(coordinator.record_outcome("triage", "e0", Outcome(correct=True)))
        await asyncio.wait([outcome], timeout=0.05)
        disk.set()
        await asyncio.gather(*decisions)
        return (await outcome).status

    assert served.run(scenario()) == "recorded"
    assert len(coordinator._cache) <= 6
    served.decide("after")
    assert len(coordinator._cache) == 2
