"""The features of old decisions are redacted; replay, export and late outcomes take it into account."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gaptron.offpolicy import open_log
from gaptron.serve import events
from gaptron.serve.model_state import ReplayMismatchError
from gaptron.serve.replay import load_models, replay
from tests.serve.served import Served

DAY = 86_400.0


@pytest.fixture
def redacting(place: str) -> Iterator[Served]:
    service = Served(place, keep_days=30.0)
    service.make()
    yield service
    service.close()


def lesson(served: Served, name: str, count: int, model: str = "triage") -> None:
    for t in range(count):
        label = served.decide(f"{name}-{t}", (0.1234567, 0.01 * t), model=model).json()["label"]
        served.send_outcome(f"{name}-{t}", model=model, correct=label == "chat")


def decisions(served: Served) -> dict[Any, Any]:
    rows = [row for row, _ in served.service.store.read() if row.kind == "decided"]
    return {row.event_id: events.decode(row).body for row in rows}


def test_old_features_are_removed_and_the_rest_stays(redacting: Served, tmp_path: Path) -> None:
    lesson(redacting, "old", 10)
    first = redacting.decide("old-0", (0.1234567, 0.0)).json()
    redacting.decide("unanswered")
    redacting.pass_time(29 * DAY)
    lesson(redacting, "new", 5)
    assert not any(one.is_redacted for one in decisions(redacting).values())
    redacting.pass_time(2 * DAY)
    logged = decisions(redacting)
    assert {event for event, one in logged.items() if one.is_redacted} == {f"old-{t}" for t in range(10)} | {
        "unanswered"
    }
    assert all(one.request.advice is None and one.propensity > 0 for one in logged.values() if one.is_redacted)
    assert redacting.decide("old-0", (0.1234567, 0.0)).json() == first, "the decision stands"
    assert redacting.send_outcome("unanswered", correct=True).json()["status"] == "late"
    assert redacting.send_outcome("old-3", void=True).status_code == 409
    path = tmp_path / "log.jsonl"
    path.write_bytes(redacting.call("GET", "/v1/models/triage/log").content)
    assert open_log(str(path)).n_rounds == 5


def test_a_replay_starts_where_decisions_were_redacted(redacting: Served) -> None:
    lesson(redacting, "old", 10)
    redacting.pass_time(31 * DAY)
    store = redacting.service.store
    done = replay(store)
    assert (done.events, done.decisions, done.starts) == (0, 0, {"triage": 22})
    lesson(redacting, "new", 5)
    done = replay(store)
    assert (done.events, done.decisions) == (10, 5) and done.models["triage"].version == 15
    weights = redacting.model().adapter.learner.weights
    assert (done.models["triage"].adapter.learner.weights == weights).all()
    redacting.crash()
    redacting.open()
    assert (redacting.model().adapter.learner.weights == weights).all() and redacting.model().redacted_through == 20


def test_pending_decisions_are_not_redacted(redacting: Served) -> None:
    """The retention is one day here, shorter than the timeout."""
    redacting.stop()
    redacting.options = {"keep_days": 1.0}
    redacting.open()
    redacting.make(name="slow", feedback_timeout=3 * DAY, on_timeout="wrong")
    redacting.decide("a", model="slow")
    redacting.pass_time(2 * DAY)
    assert not decisions(redacting)["a"].is_redacted
    assert redacting.send_outcome("a", model="slow", correct=True).json()["status"] == "recorded"
    redacting.pass_time(2 * DAY)
    assert redacting.model("slow").version == 1 and decisions(redacting)["a"].is_redacted
    replay(redacting.service.store)


def test_decisions_after_a_pending_one_wait_for_it(redacting: Served) -> None:
    """Redaction goes through the log in order, because the log before a snapshot is not needed any more."""
    redacting.stop()
    redacting.options = {"keep_days": 1.0}
    redacting.open()
    redacting.make(name="slow", feedback_timeout=3 * DAY, on_timeout="wrong")
    for event in ("a", "b"):
        redacting.decide(event, model="slow")
    redacting.send_outcome("b", model="slow", void=True)
    redacting.call("PATCH", "/v1/models/slow", {"feedback_timeout": DAY / 2})
    redacting.decide("c", model="slow")
    redacting.pass_time(2 * DAY)  # c timed out, a and b did not
    assert list(redacting.model("slow").pending) == ["a", "b"]
    assert not any(one.is_redacted for one in decisions(redacting).values())
    redacting.pass_time(2 * DAY)
    assert all(one.is_redacted for one in decisions(redacting).values())
    replay(redacting.service.store)


def test_many_decisions_are_redacted_in_chunks(redacting: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gaptron.serve.coordinator.MAX_REDACTED", 3)
    lesson(redacting, "old", 10)
    redacting.pass_time(31 * DAY)
    assert all(one.is_redacted for one in decisions(redacting).values())
    lesson(redacting, "new", 2)
    redacting.crash()
    redacting.open()
    assert replay(redacting.service.store).decisions == 2


def test_a_difference_after_the_start_is_noticed(redacting: Served) -> None:
    lesson(redacting, "old", 10)
    redacting.pass_time(31 * DAY)
    lesson(redacting, "new", 5)
    store: Any = redacting.service.store
    row = next(row for row, _ in store.read() if row.event_id == "new-3")
    label = events.decode(row).body.label
    changed = row.body.replace(f'"label":"{label}"', f'"label":"{"mail" if label != "mail" else "chat"}"')
    if redacting.place.startswith("postgresql"):
        with store._connect() as connection:
            connection.execute("update log set body = %s where seq = %s", (changed, row.seq))
    else:
        store._writing().execute("update log set body = ? where seq = ?", (changed, row.seq))
    with pytest.raises(ReplayMismatchError):
        replay(store)


def test_no_redacted_features_are_left_in_the_file(tmp_path: Path) -> None:
    service = Served(str(tmp_path / "store"), keep_days=30.0)
    service.make()
    lesson(service, "old", 50)
    service.stop()
    file = tmp_path / "store" / "gaptron.db"
    assert b"0.1234567" in file.read_bytes()
    service.open()
    service.pass_time(31 * DAY)
    service.tick()
    service.stop()
    assert b"0.1234567" not in file.read_bytes()
    with sqlite3.connect(file) as database:
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)
    service.open()
    assert load_models(service.service.store)["triage"].version == 50
    service.close()
