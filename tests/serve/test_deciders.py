"""Deciders beside a leader, on a real PostgreSQL: stale models, exact probabilities, every event once."""

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

from gaptron.errors import SettingError
from gaptron.serve import entries
from gaptron.serve.fold import DifferenceError
from gaptron.serve.replay import replay
from gaptron.serve.store import AwayError, open_store, shared
from tests.serve.postgres import with_schema
from tests.serve.process import Callers, Process, make_triage, running
from tests.serve.served import Served


@pytest.fixture
def database(postgres: str) -> str:
    return with_schema(postgres, f"test_{uuid.uuid4().hex}")


@pytest.fixture
def leader(database: str) -> Iterator[Served]:
    service = Served(database, with_deciders=True)
    service.make(features=2)
    service.tick()
    yield service
    service.close()


@pytest.fixture
def decider(leader: Served) -> Iterator[Served]:
    service = Served(leader.place, decider=True)
    yield service
    service.close()


def test_a_decider_decides_with_the_model_as_it_was_published(leader: Served, decider: Served) -> None:
    first = decider.decide("e0")
    assert first.status_code == 201 and first.json()["version"] == 0 and "seq" not in first.json()
    for t in range(5):
        label = decider.decide(f"more-{t}").json()["label"]
        assert leader.answer(f"more-{t}", correct=label == "chat").json()["status"] == "recorded"
    assert leader.model().version == 5
    assert decider.decide("e1").json()["version"] == 0, "it has not looked yet"
    leader.tick()
    decider.tick()
    fresh = decider.decide("e2").json()
    p = leader.model().adapter.learner.distribution(np.array([[0.3, 1.0]]))[0]
    assert fresh["version"] == 5
    assert list(fresh["distribution"].values()) == p.tolist()
    assert fresh["probability"] == fresh["distribution"][fresh["label"]]


def test_its_decisions_get_their_places_and_replay_makes_them_again(leader: Served, decider: Served) -> None:
    for t in range(30):
        made = decider.decide(f"e{t}", (0.1 * (t % 7), 0.5)).json()
        leader.answer(f"e{t}", correct=made["label"] == "chat")
        if t % 10 == 4:
            leader.tick()
        if t % 10 == 7:
            decider.tick()
    decider.decide("unanswered")
    leader.tick()
    store = leader.service.store
    rows = [row for row, _ in store.read()]
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1)) and len(rows) == 1 + 2 * 30 + 1
    versions = {entries.read(row).body.version for row in rows if row.kind == "decision"}
    assert len(versions) == 4, "0, and one for each time it looked"
    assert replay(store).decisions == 31
    assert leader.model().tally.decisions == 31 and leader.model().tally.answered == 30
    with psycopg.connect(leader.place) as connection:
        changed = "update log set body = replace(body, %s, %s) where kind = 'decision' and event = %s"
        one = next(row.event for row in rows if row.kind == "decision" and '"label":"chat"' in row.body)
        words = ('"label":"chat"', '"label":"mail"')
        assert connection.execute(changed, (*words, one)).rowcount == 1
    with pytest.raises(DifferenceError, match="the fold gives"):
        replay(store)


def test_an_event_is_decided_once_whoever_is_asked(leader: Served, decider: Served) -> None:
    other = Served(leader.place, decider=True)
    first = decider.decide("e0")
    again = other.decide("e0")
    assert (first.status_code, again.status_code) == (201, 200) and first.json() == again.json()
    assert other.decide("e0", (0.9, 0.9)).json()["type"] == "/problems/other-request"
    leader.tick()
    assert decider.decide("e0").json() == first.json(), "also when it has its place"
    shown = leader.call("GET", "/v1/models/triage/decisions/e0").json()
    shown.pop("at")
    assert shown == first.json()
    both = {"decisions": [{"event_id": "e1", "x": [0.1, 0.2]}, {"event_id": "e1", "x": [0.2, 0.1]}]}
    results = other.call("POST", "/v1/models/triage/decisions/batch", both).json()["decisions"]
    assert results[0]["decision"]["event_id"] == "e1" and results[1]["problem"]["type"] == "/problems/other-request"
    other.close()


def test_who_does_what(leader: Served, decider: Served) -> None:
    refused = leader.decide("e0")
    assert refused.status_code == 421 and "deciders" in refused.json()["detail"]
    decider.decide("e0")
    assert decider.answer("e0", correct=True).status_code == 421
    for path in ("/v1/models", "/v1/models/triage/report", "/v1/models/triage/log"):
        assert decider.call("GET", path).status_code == 421
    assert decider.call("GET", "/readyz").status_code == 200
    assert "gaptron_ready 1.0" in decider.call("GET", "/metrics").text
    assert decider.call("GET", "/v1/models/triage/decisions/e0").json()["label"]
    assert decider.decide("e1", model="nobody").status_code == 404
    leader.make(name="wide")
    leader.tick()
    decider.tick()
    assert "width" in decider.decide("e1", model="wide").json()["detail"]


def test_decisions_go_on_while_nobody_leads(leader: Served, decider: Served) -> None:
    decider.decide("before")
    leader.stop()
    made = decider.decide("meanwhile")
    assert made.status_code == 201
    leader.open()
    assert leader.answer("meanwhile", correct=True).json()["status"] == "recorded"
    assert leader.answer("before", correct=False).json()["status"] == "recorded"
    assert replay(leader.service.store).decisions == 2


def test_a_leader_that_decides_itself_lets_no_decider_write(leader: Served, decider: Served) -> None:
    made = decider.decide("before").json()
    leader.stop()
    alone = Served(leader.place)
    assert alone.decide("before").json() == made, "what was written is taken in first"
    refused = decider.decide("late")
    assert refused.status_code == 503
    assert alone.decide("late").status_code == 201
    replay(alone.service.store)
    alone.close()
    leader.open()


def test_a_new_leader_waits_for_decisions_under_way(leader: Served) -> None:
    """Or it would decide an event that a decider is just about to commit."""
    lead, decide = shared(leader.service.store), shared(open_store(leader.place))
    row = entries.Row(0, "triage", "decision", "slow", 1, "{}")
    with ThreadPoolExecutor(2) as pool, psycopg.connect(leader.place) as other:
        other.execute("lock table log in exclusive mode")  # so that the decider's commit takes a while
        drafting = pool.submit(decide.draft, [row])
        time.sleep(0.3)
        admitting = pool.submit(lead.admit, False)
        time.sleep(0.3)
        assert not drafting.done() and not admitting.done()
        other.commit()
        assert drafting.result(10) == {("triage", "slow")}
        admitting.result(10)
    assert [one.event for one in lead.drafts(10)] == ["slow"]
    with pytest.raises(AwayError):
        decide.draft([row._replace(event="late")])
    decide.close()
    with psycopg.connect(leader.place) as other:
        other.execute("delete from log where event = 'slow'")  # it was no real decision


def test_a_wait_that_is_over_is_learned_from(leader: Served, decider: Served) -> None:
    leader.make(name="slow", wait=60.0, default="wrong", features=2)
    leader.tick()
    decider.tick()
    for event in ("a", "b"):
        assert decider.decide(event, model="slow").json()["answer_by"]
    leader.answer("a", model="slow", correct=True)
    leader.pass_time(61.0)
    assert leader.model("slow").version == 2 and leader.model("slow").tally.defaulted == 1
    assert leader.answer("b", model="slow", correct=True).json()["status"] == "late"
    assert replay(leader.service.store).decisions == 2


def test_the_rules_of_the_time_stand(leader: Served, decider: Served) -> None:
    """A retry gets its answer although the rules are others now."""
    made = decider.decide("e0").json()
    leader.call("PATCH", "/v1/models/triage", {"mode": "apprentice"})
    leader.tick()
    decider.tick()
    assert decider.decide("e1").status_code == 422
    assert decider.decide("e0").json() == made
    played = {"label": "phone", "probability": 0.5}
    assert decider.decide("e1", played=played).json()["label"] == "phone"
    leader.tick()
    replay(leader.service.store)


def test_named_features(leader: Served, decider: Served) -> None:
    leader.make(name="named", features="auto", algorithm="squarecb", settings={})
    leader.tick()
    decider.tick()
    for t in range(12):
        given = {"age": float(t), "town": "ab"[t % 2]}
        body = {"event_id": f"e{t}", "features": given}
        label = decider.call("POST", "/v1/models/named/decisions", body).json()["label"]
        leader.answer(f"e{t}", model="named", correct=label == "chat")
        leader.tick()
        decider.tick()
    assert replay(leader.service.store).decisions == 12


def test_a_store_that_is_not_shared_has_no_deciders(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    with pytest.raises(SettingError, match="postgresql://"):
        shared(store)
    store.close()


@pytest.mark.slow
def test_processes_that_are_killed_lose_nothing(database: str, tmp_path: Path) -> None:
    """A leader, a standby and two deciders under load; a decider is killed, then the leader."""
    callers = DecidedElsewhere()
    with ExitStack() as stack:
        first = stack.enter_context(running(database, tmp_path, "--with-deciders"))
        first.wait_ready()
        make_triage(first.url, features=2)
        second = stack.enter_context(running(database, tmp_path, "--with-deciders"))
        deciders = [stack.enter_context(running(database, tmp_path, "--decider")) for _ in range(2)]
        for one in deciders:
            one.wait_ready()
        callers.at(deciders[0], first)
        callers.work(deciders[0].url, 2.0)
        deciders[0].signal(signal.SIGKILL)
        callers.at(deciders[1], first)
        callers.work(deciders[1].url, 2.0)
        before = len(callers.answered)
        assert before > 20
        first.signal(signal.SIGKILL)
        callers.work(deciders[1].url, 1.0)  # decided, not answered
        assert len(callers.decided) > len(callers.answered)
        second.wait_ready()
        callers.at(deciders[1], second)
        callers.work(deciders[1].url, 2.0)
        assert len(callers.answered) > before
        time.sleep(2.5)  # the leader takes in what was not answered
        second.stop()
    callers.check(database)


class DecidedElsewhere(Callers):
    """Asks a decider, answers the leader."""

    def at(self, decider: Process, leader: Process) -> None:
        self.answers_to = leader.url
        end = time.monotonic() + 60
        while httpx.post(f"{decider.url}/v1/models/triage/decisions", json={"x": [0.0, 0.0]}).status_code != 201:
            assert time.monotonic() < end
            time.sleep(0.1)
