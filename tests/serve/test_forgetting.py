"""Features of old decisions are forgotten; what is left is honest about it."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gaptron.logged import open_log
from gaptron.serve import entries
from gaptron.serve.fold import DifferenceError
from gaptron.serve.replay import folded, replay
from tests.serve.served import Served

DAY = 86_400.0


@pytest.fixture
def forgetful(place: str) -> Iterator[Served]:
    service = Served(place, keep_days=30.0)
    service.make()
    yield service
    service.close()


def lesson(served: Served, name: str, count: int, model: str = "triage") -> None:
    for t in range(count):
        label = served.decide(f"{name}-{t}", (0.1234567, 0.01 * t), model=model).json()["label"]
        served.answer(f"{name}-{t}", model=model, correct=label == "chat")


def decisions(served: Served) -> dict[Any, Any]:
    rows = [row for row, _ in served.service.store.read() if row.kind == "decision"]
    return {row.event: entries.read(row).body for row in rows}


def test_features_older_than_said_are_gone_and_the_rest_stays(forgetful: Served, tmp_path: Path) -> None:
    lesson(forgetful, "old", 10)
    first = forgetful.decide("old-0", (0.1234567, 0.0)).json()
    forgetful.decide("unanswered")
    forgetful.pass_time(29 * DAY)
    lesson(forgetful, "new", 5)
    assert not any(one.is_forgotten for one in decisions(forgetful).values())
    forgetful.pass_time(2 * DAY)
    logged = decisions(forgetful)
    assert {event for event, one in logged.items() if one.is_forgotten} == {f"old-{t}" for t in range(10)} | {
        "unanswered"
    }
    assert all(one.request.advice is None and one.probability > 0 for one in logged.values() if one.is_forgotten)
    assert forgetful.decide("old-0", (0.1234567, 0.0)).json() == first, "the decision stands"
    assert forgetful.answer("unanswered", correct=True).json()["status"] == "late"
    assert forgetful.answer("old-3", void=True).status_code == 409
    path = tmp_path / "log.jsonl"
    path.write_bytes(forgetful.call("GET", "/v1/models/triage/log").content)
    assert open_log(str(path)).n_rounds == 5


def test_a_replay_begins_where_something_was_forgotten(forgetful: Served) -> None:
    lesson(forgetful, "old", 10)
    forgetful.pass_time(31 * DAY)
    store = forgetful.service.store
    done = replay(store)
    assert (done.entries, done.decisions, done.starts) == (0, 0, {"triage": 22})
    lesson(forgetful, "new", 5)
    done = replay(store)
    assert (done.entries, done.decisions) == (10, 5) and done.models["triage"].version == 15
    weights = forgetful.model().adapter.learner.weights
    assert (done.models["triage"].adapter.learner.weights == weights).all()
    forgetful.crash()
    forgetful.open()
    assert (forgetful.model().adapter.learner.weights == weights).all() and forgetful.model().forgotten == 20


def test_what_is_still_waited_for_is_not_forgotten(forgetful: Served) -> None:
    """A wait is at most seven days; here the rule is a day."""
    forgetful.stop()
    forgetful.options = {"keep_days": 1.0}
    forgetful.open()
    forgetful.make(name="slow", wait=3 * DAY, default="wrong")
    forgetful.decide("a", model="slow")
    forgetful.pass_time(2 * DAY)
    assert not decisions(forgetful)["a"].is_forgotten
    assert forgetful.answer("a", model="slow", correct=True).json()["status"] == "recorded"
    forgetful.pass_time(2 * DAY)
    assert forgetful.model("slow").version == 1 and decisions(forgetful)["a"].is_forgotten
    replay(forgetful.service.store)


def test_many_are_forgotten_a_part_at_a_time(forgetful: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gaptron.serve.desk.MOST_FORGOTTEN", 3)
    lesson(forgetful, "old", 10)
    forgetful.pass_time(31 * DAY)
    assert all(one.is_forgotten for one in decisions(forgetful).values())
    lesson(forgetful, "new", 2)
    forgetful.crash()
    forgetful.open()
    assert replay(forgetful.service.store).decisions == 2


def test_a_difference_behind_the_start_is_noticed(forgetful: Served) -> None:
    lesson(forgetful, "old", 10)
    forgetful.pass_time(31 * DAY)
    lesson(forgetful, "new", 5)
    store: Any = forgetful.service.store
    row = next(row for row, _ in store.read() if row.event == "new-3")
    label = entries.read(row).body.label
    changed = row.body.replace(f'"label":"{label}"', f'"label":"{"mail" if label != "mail" else "chat"}"')
    if forgetful.place.startswith("postgresql"):
        with store._connect() as connection:
            connection.execute("update log set body = %s where seq = %s", (changed, row.seq))
    else:
        store._writing().execute("update log set body = ? where seq = ?", (changed, row.seq))
    with pytest.raises(DifferenceError):
        replay(store)


def test_nothing_is_left_lying_in_the_file(tmp_path: Path) -> None:
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
    assert folded(service.service.store)["triage"].version == 50
    service.close()
