"""Two servers on one database: one leads however long replaying and compiling take, the other is ready to."""

import asyncio
import time
import uuid
from typing import Any

import pytest

from gaptron.serve import adapter, snapshots
from gaptron.serve.model_state import Model
from gaptron.serve.replay import Follower
from gaptron.serve.service import Options, Service
from gaptron.serve.store import open_store
from tests.serve.postgres import with_schema
from tests.serve.served import Served

LEASE = 2.0  # seconds


@pytest.fixture
def database(postgres: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("gaptron.serve.store.postgres.LEASE", LEASE)
    return with_schema(postgres, f"test_{uuid.uuid4().hex}")


def lesson(served: Served, model: str = "triage", count: int = 10, start: int = 0) -> None:
    for t in range(start, start + count):
        made = served.decide(f"e{t}", (0.1 * (t % 7), 0.1 * (t % 5)), model).json()
        served.send_outcome(f"e{t}", model, correct=made["label"] == "chat")


def slow(function: Any, seconds: float) -> Any:
    def called(*given: Any, **more: Any) -> Any:
        time.sleep(seconds)
        return function(*given, **more)

    return called


@pytest.mark.sample(1)
@pytest.mark.parametrize("what", ["replaying", "compiling"])
def test_two_servers_that_start_together_do_not_take_the_lease_from_each_other(
    database: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each needs three leases to become ready: a log without a snapshot, or an upgrade without a compile cache."""
    before = Served(database)
    before.make()
    lesson(before)
    before.crash()
    before.loop.close()
    if what == "replaying":
        monkeypatch.setattr(Model, "apply", slow(Model.apply, 3.0 * LEASE / 20))
    else:
        monkeypatch.setattr(adapter, "try_out", slow(adapter.try_out, 3.0 * LEASE))
    failures: list[BaseException] = []

    async def both() -> None:
        services = [Service(open_store(database), Options(on_failure=failures.append)) for _ in range(2)]
        for service in services:
            service.start()
        async with asyncio.timeout(120):
            while not failures and not any(service.state == "ready" for service in services):
                await asyncio.sleep(0.05)
        await asyncio.sleep(1.5 * LEASE)
        assert not failures
        assert sorted(service.state for service in services) == ["ready", "standby: another process is the leader"]
        for service in services:
            await service.close()

    asyncio.run(both())


@pytest.mark.slow
def test_a_leader_that_is_busy_keeps_the_lease(database: str) -> None:
    """Nothing runs in its event loop for longer than the lease."""
    leader, other = Served(database), open_store(database)
    end = time.monotonic() + 2.0 * LEASE
    while time.monotonic() < end:
        assert not other.acquire_lease()
        time.sleep(LEASE / 10)
    leader.make()
    assert leader.decide("a").status_code == 201 and leader.failure is None
    leader.crash()
    leader.loop.close()
    end = time.monotonic() + 2.0 * LEASE
    while not other.acquire_lease():  # until PostgreSQL has noticed that the connection is closed
        assert time.monotonic() < end
        time.sleep(0.05)
    other.close()


def check_equal(follower: Follower, served: Served) -> None:
    served.run(served.service.coordinator.committer.wait_for(served.service.coordinator._seq))
    follower.catch_up()
    assert follower.seq == served.service.coordinator._seq and not follower.quarantined
    models = served.service.coordinator.models
    assert follower.models.keys() == models.keys()
    for name, model in models.items():
        one, other = snapshots.pack(follower.models[name]), snapshots.pack(model)
        assert snapshots.checksum(one) == snapshots.checksum(other), name


def test_what_follows_the_log_has_the_models_of_the_leader(place: str) -> None:
    served = Served(place, keep_days=30.0)
    follower = Follower(open_store(place))
    check_equal(follower, served)
    served.make()
    lesson(served)
    check_equal(follower, served)
    served.make(name="slow", feedback_timeout=60, on_timeout="wrong")
    lesson(served, "slow", 5)
    lesson(served, count=10, start=10)
    check_equal(follower, served)
    served.pass_time(61)
    served.call("PATCH", "/v1/models/triage", {"add_labels": ["fax"]})
    check_equal(follower, served)
    served.decide("open")
    check_equal(follower, served)
    reads, kind = [], type(follower._store)
    rows, kind.read = kind.read, lambda *given, **more: reads.append(more) or rows(*given, **more)  # type: ignore
    follower.catch_up()
    assert not reads, "nothing is new"
    kind.read = rows  # type: ignore[method-assign]
    follower._store.close()
    served.close()


def test_what_follows_the_log_may_be_behind_a_redaction(place: str) -> None:
    """The features that it had not read yet are gone: it goes on with the state that was saved with the redaction."""
    served = Served(place, keep_days=30.0)
    served.make()
    lesson(served)
    follower = Follower(open_store(place))
    check_equal(follower, served)
    lesson(served, count=10, start=10)
    served.pass_time(31 * 86_400)
    served.tick()
    lesson(served, count=5, start=20)
    assert served.model().redacted_through > 21
    check_equal(follower, served)
    follower._store.close()
    served.close()
