"""Replicas and a leader on PostgreSQL: older models, exact propensities, every event decided once."""

import asyncio
import signal
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import numpy as np
import psycopg
import pytest

from gaptron.errors import GaptronError, SettingError
from gaptron.serve import events
from gaptron.serve.model_state import ReplayMismatchError
from gaptron.serve.replay import replay
from gaptron.serve.store import StoreUnavailableError, as_shared, open_store
from tests.serve.postgres import with_schema
from tests.serve.process import Callers, Process, make_triage, running
from tests.serve.served import Served


@pytest.fixture
def database(postgres: str) -> str:
    return with_schema(postgres, f"test_{uuid.uuid4().hex}")


@pytest.fixture
def leader(database: str) -> Iterator[Served]:
    service = Served(database, with_replicas=True)
    service.make(features=2)
    service.tick()
    yield service
    service.close()


@pytest.fixture
def replica(leader: Served) -> Iterator[Served]:
    service = Served(leader.place, replica=True)
    yield service
    service.close()


def test_a_replica_decides_with_the_model_as_it_was_published(leader: Served, replica: Served) -> None:
    first = replica.decide("e0")
    assert first.status_code == 201 and first.json()["version"] == 0 and "seq" not in first.json()
    for t in range(5):
        label = replica.decide(f"more-{t}").json()["label"]
        assert leader.send_outcome(f"more-{t}", correct=label == "chat").json()["status"] == "recorded"
    assert leader.model().version == 5
    assert replica.decide("e1").json()["version"] == 0, "it has not looked yet"
    leader.tick()
    replica.tick()
    fresh = replica.decide("e2").json()
    p = leader.model().adapter.learner.distribution(np.array([[0.3, 1.0]]))[0]
    assert fresh["version"] == 5
    assert list(fresh["distribution"].values()) == p.tolist()
    assert fresh["propensity"] == fresh["distribution"][fresh["label"]]


def test_its_decisions_get_their_numbers_and_replay_recomputes_them(leader: Served, replica: Served) -> None:
    for t in range(30):
        made = replica.decide(f"e{t}", (0.1 * (t % 7), 0.5)).json()
        leader.send_outcome(f"e{t}", correct=made["label"] == "chat")
        if t % 10 == 4:
            leader.tick()
        if t % 10 == 7:
            replica.tick()
    replica.decide("unanswered")
    leader.tick()
    store = leader.service.store
    rows = [row for row, _ in store.read()]
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1)) and len(rows) == 1 + 2 * 30 + 1
    versions = {events.decode(row).body.version for row in rows if row.kind == "decided"}
    assert len(versions) == 4, "0, and one for each time it looked"
    assert replay(store).decisions == 31
    assert leader.model().tally.decisions == 31 and leader.model().tally.outcomes == 30
    with psycopg.connect(leader.place) as connection:
        changed = "update log set body = replace(body, %s, %s) where kind = 'decided' and event_id = %s"
        one = next(row.event_id for row in rows if row.kind == "decided" and '"label":"chat"' in row.body)
        words = ('"label":"chat"', '"label":"mail"')
        assert connection.execute(changed, (*words, one)).rowcount == 1
    with pytest.raises(ReplayMismatchError, match="replaying gives"):
        replay(store)


def test_an_event_is_decided_once_whoever_is_asked(leader: Served, replica: Served) -> None:
    other = Served(leader.place, replica=True)
    first = replica.decide("e0")
    again = other.decide("e0")
    assert (first.status_code, again.status_code) == (201, 200) and first.json() == again.json()
    assert other.decide("e0", (0.9, 0.9)).json()["type"] == "/problems/event-id-reused"
    leader.tick()
    assert replica.decide("e0").json() == first.json(), "also when it has its place"
    shown = leader.call("GET", "/v1/models/triage/decisions/e0").json()
    shown.pop("at")
    assert shown == first.json()
    both = {"decisions": [{"event_id": "e1", "x": [0.1, 0.2]}, {"event_id": "e1", "x": [0.2, 0.1]}]}
    results = other.call("POST", "/v1/models/triage/decisions/batch", both).json()["decisions"]
    assert results[0]["decision"]["event_id"] == "e1" and results[1]["problem"]["type"] == "/problems/event-id-reused"
    other.close()


def test_who_does_what(leader: Served, replica: Served) -> None:
    refused = leader.decide("e0")
    assert refused.status_code == 421 and "replicas" in refused.json()["detail"]
    assert refused.json()["title"] == "Misdirected Request"
    replica.decide("e0")
    assert replica.send_outcome("e0", correct=True).status_code == 421
    for path in ("/v1/models", "/v1/models/triage/report", "/v1/models/triage/log"):
        assert replica.call("GET", path).status_code == 421
    assert replica.call("GET", "/readyz").status_code == 200
    assert "gaptron_ready 1.0" in replica.call("GET", "/metrics").text
    assert replica.call("GET", "/v1/models/triage/decisions/e0").json()["label"]
    assert replica.decide("e1", model="nobody").status_code == 404
    leader.make(name="wide")
    leader.tick()
    replica.tick()
    assert 'with "features"' in replica.decide("e1", model="wide").json()["detail"]


def test_concurrent_outcomes_sequence_each_decision_once(leader: Served, replica: Served) -> None:
    for t in range(10):
        replica.decide(f"e{t}")

    async def answer(t: int) -> int:
        path = f"/v1/models/triage/decisions/e{t}/outcome"
        return (await leader.client.put(path, json={"correct": t % 2 == 0})).status_code

    async def all_at_once() -> list[int]:
        return await asyncio.gather(*map(answer, range(10)))

    assert leader.run(all_at_once()) == [200] * 10 and leader.failure is None
    assert leader.model().tally.decisions == 10
    assert replay(leader.service.store).decisions == 10


def test_an_outcome_among_more_drafts_than_the_cache_holds_is_learned_from(
    leader: Served, replica: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decision leaves the cache while it gets its number; with its old, negative number it counted as redacted."""
    monkeypatch.setattr("gaptron.serve.coordinator.CACHED_DECISIONS", 5)
    for t in range(20):
        replica.decide(f"e{t}")
    for t in (0, 19):
        assert leader.send_outcome(f"e{t}", correct=True).json()["status"] == "recorded"
    both = {"outcomes": [{"event_id": f"e{t}", "correct": False} for t in (1, 2, 18)]}
    results = leader.call("POST", "/v1/models/triage/outcomes", both).json()["outcomes"]
    assert [one["outcome"]["status"] for one in results] == ["recorded"] * 3
    assert leader.model().version == 5 and leader.model().tally.late == 0
    assert replay(leader.service.store).decisions == 20


def test_decisions_of_replicas_for_a_quarantined_model_are_kept(leader: Served, replica: Served) -> None:
    leader.model().adapter.learner._engine.begin(2, False, None)
    leader.model().adapter.learner._engine.state.W[:] = np.nan
    leader.service.coordinator.take_snapshot(leader.model())
    assert replica.decide("meanwhile").status_code == 201, "it has an older model"
    leader.tick()
    assert leader.failure is None and leader.service.store.last()[0] == 2, "it has its number"
    assert leader.send_outcome("meanwhile", correct=True).json()["type"] == "/problems/quarantined"
    leader.crash()
    leader.open()
    assert leader.send_outcome("meanwhile", correct=True).json()["status"] == "recorded"


def test_decisions_go_on_without_a_leader(leader: Served, replica: Served) -> None:
    replica.decide("before")
    leader.stop()
    made = replica.decide("meanwhile")
    assert made.status_code == 201
    leader.open()
    assert leader.send_outcome("meanwhile", correct=True).json()["status"] == "recorded"
    assert leader.send_outcome("before", correct=False).json()["status"] == "recorded"
    assert replay(leader.service.store).decisions == 2


def test_a_leader_that_decides_itself_lets_no_replica_write(leader: Served, replica: Served) -> None:
    made = replica.decide("before").json()
    leader.stop()
    alone = Served(leader.place)
    assert alone.decide("before").json() == made, "what was written is taken in first"
    refused = replica.decide("late")
    assert refused.status_code == 503
    assert alone.decide("late").status_code == 201
    replay(alone.service.store)
    alone.close()
    leader.open()


def test_a_new_leader_waits_for_decisions_in_progress(leader: Served) -> None:
    """Otherwise it could decide an event that a replica is about to commit."""
    lead, decide = as_shared(leader.service.store), as_shared(open_store(leader.place))
    row = events.Row(0, "triage", "decided", "slow", 1, "{}")
    with ThreadPoolExecutor(2) as pool, psycopg.connect(leader.place) as other:
        other.execute("lock table log in exclusive mode")  # so that the replica's commit takes a while
        drafting = pool.submit(decide.write_drafts, [row])
        waiting = "select count(*) from pg_locks where not granted and relation = 'log'::regclass"
        while other.execute(waiting).fetchone() == (0,):  # until it waits for the table
            time.sleep(0.01)
        allowing = pool.submit(lead.allow_replicas, False)
        time.sleep(0.3)
        assert not drafting.done() and not allowing.done()
        other.commit()
        assert drafting.result(10) == {("triage", "slow")}
        allowing.result(10)
    assert [one.event_id for one in lead.drafts(10)] == ["slow"]
    with pytest.raises(StoreUnavailableError):
        decide.write_drafts([row._replace(event_id="late")])
    decide.close()
    with psycopg.connect(leader.place) as other:
        other.execute("delete from log where event_id = 'slow'")  # it was no real decision


def test_a_leader_whose_epoch_is_over_writes_nothing(leader: Served) -> None:
    """Even if its session is open and it does not know that it lost the lease."""
    with psycopg.connect(leader.place) as other:
        other.execute("update lease set epoch = epoch + 1")
    store = as_shared(leader.service.store)
    row = events.Row(99, "triage", "decided", "late", 1, "{}")
    for write in (
        lambda: store.append([row]),
        lambda: store.publish([]),
        lambda: store.allow_replicas(True),
        store.heartbeat,
    ):
        with pytest.raises(GaptronError, match="another process holds the lease"):
            write()
    assert store.find("triage", ["late"]) == {}
    with psycopg.connect(leader.place) as other:
        other.execute("update lease set epoch = epoch - 1")


def test_a_timeout_is_learned_from(leader: Served, replica: Served) -> None:
    leader.make(name="slow", feedback_timeout=60.0, on_timeout="wrong", features=2)
    leader.tick()
    replica.tick()
    for event in ("a", "b"):
        assert replica.decide(event, model="slow").json()["feedback_due"]
    leader.send_outcome("a", model="slow", correct=True)
    leader.pass_time(61.0)
    assert leader.model("slow").version == 2 and leader.model("slow").tally.timed_out == 1
    assert leader.send_outcome("b", model="slow", correct=True).json()["status"] == "late"
    assert replay(leader.service.store).decisions == 2


def test_a_retry_ignores_later_changes_of_the_configuration(leader: Served, replica: Served) -> None:
    """A retry gets the decision that was made under the earlier configuration."""
    made = replica.decide("e0").json()
    leader.call("PATCH", "/v1/models/triage", {"mode": "shadow"})
    leader.tick()
    replica.tick()
    assert replica.decide("e1").status_code == 422
    assert replica.decide("e0").json() == made
    played = {"label": "phone", "propensity": 0.5}
    assert replica.decide("e1", played=played).json()["label"] == "phone"
    leader.tick()
    replay(leader.service.store)


def test_named_features(leader: Served, replica: Served) -> None:
    leader.make(name="named", features="auto", algorithm="squarecb", settings={})
    leader.tick()
    replica.tick()
    for t in range(12):
        given = {"age": float(t), "town": "ab"[t % 2]}
        body = {"event_id": f"e{t}", "features": given}
        label = replica.call("POST", "/v1/models/named/decisions", body).json()["label"]
        leader.send_outcome(f"e{t}", model="named", correct=label == "chat")
        leader.tick()
        replica.tick()
    assert replay(leader.service.store).decisions == 12


def test_a_store_that_is_not_shared_has_no_replicas(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    with pytest.raises(SettingError, match="postgresql://"):
        as_shared(store)
    store.close()


@pytest.mark.slow
def test_processes_that_are_killed_lose_nothing(database: str, tmp_path: Path) -> None:
    """A leader, a standby and two replicas under load; a replica is killed, then the leader."""
    callers = ReplicaCallers()
    with ExitStack() as stack:
        first = stack.enter_context(running(database, tmp_path, "--with-replicas"))
        first.wait_ready()
        make_triage(first.url, features=2)
        second = stack.enter_context(running(database, tmp_path, "--with-replicas"))
        replicas = [stack.enter_context(running(database, tmp_path, "--replica")) for _ in range(2)]
        for one in replicas:
            one.wait_ready()
        callers.at(replicas[0], first)
        callers.work(replicas[0].url, 2.0)
        replicas[0].signal(signal.SIGKILL)
        callers.at(replicas[1], first)
        callers.work(replicas[1].url, 2.0)
        before = len(callers.answered)
        assert before > 20
        first.signal(signal.SIGKILL)
        callers.work(replicas[1].url, 1.0)  # decisions without outcomes
        assert len(callers.decided) > len(callers.answered)
        second.wait_ready()
        callers.at(replicas[1], second)
        callers.work(replicas[1].url, 2.0)
        assert len(callers.answered) > before
        time.sleep(2.5)  # the leader takes in decisions without outcomes
        second.stop()
    callers.check(database)


class ReplicaCallers(Callers):
    """Sends decisions to a replica, and outcomes to the leader."""

    def at(self, replica: Process, leader: Process) -> None:
        self.outcomes_to = leader.url
        end = time.monotonic() + 60
        while httpx.post(f"{replica.url}/v1/models/triage/decisions", json={"x": [0.0, 0.0]}).status_code != 201:
            assert time.monotonic() < end
            time.sleep(0.1)
