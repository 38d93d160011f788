"""Managing models: created once however often it is asked for, deleted, with labels retired and renamed for display."""

import asyncio
import json
import uuid
from typing import Any

import pytest

from gaptron.serve import events
from gaptron.serve.decisions import as_time
from gaptron.serve.replay import Follower, replay
from gaptron.serve.store import open_store
from tests.serve.news import make_news
from tests.serve.postgres import with_schema
from tests.serve.served import START, TRIAGE, Served
from tests.serve.test_api import lesson, problem, weights

DAY = 86_400.0  # seconds
SPEC = {name: value for name, value in TRIAGE.items() if name != "name"}


def put(served: Served, name: str = "orders", **more: Any) -> Any:
    return served.call("PUT", f"/v1/models/{name}", {**SPEC, **more})


# --- created once ---------------------------------------------------------------------------------------------------


def test_put_creates_a_model_once(anywhere: Served) -> None:
    first, again = put(anywhere), put(anywhere, name="orders")
    assert (first.status_code, again.status_code) == (201, 200) and first.json() == again.json()
    assert anywhere.decide("e0", model="orders").status_code == 201
    anywhere.call("PATCH", "/v1/models/orders", {"add_labels": ["fax"], "epsilon": 0.1})
    kept = put(anywhere).json()
    assert kept["labels"][-1] == "fax" and kept["epsilon"] == 0.1, "as it was changed"
    anywhere.crash()
    anywhere.open()
    assert put(anywhere).json() == kept
    assert replay(anywhere.service.store).decisions == 1
    kinds = [row.kind for row, _ in anywhere.service.store.read(model="orders")]
    assert kinds == ["created", "decided", "changed"]


def test_put_refuses_another_specification_and_says_where_it_differs(served: Served) -> None:
    put(served)
    refused = put(served, epsilon=0.3, mode="shadow")
    detail = problem(refused, 409, "already-exists")
    assert "epsilon, mode" in detail and "PATCH" in detail
    body = {**SPEC, "name": "others"}
    assert "leave out name" in problem(served.call("PUT", "/v1/models/orders", body), 422, "invalid")
    assert served.call("PUT", "/v1/models/orders", {**SPEC, "name": "orders"}).status_code == 200
    assert "model in the path" in problem(served.call("PUT", "/v1/models/Bad%20Name", SPEC), 422, "invalid")
    problem(put(served, "other", labels=["one"]), 422, "invalid")
    assert list(served.service.coordinator.models) == ["triage", "orders"]


def test_the_same_put_many_times_at_once_is_one_model(served: Served) -> None:
    async def many() -> list[Any]:
        return await asyncio.gather(*[served.client.put("/v1/models/orders", json=SPEC) for _ in range(5)])

    assert sorted(one.status_code for one in served.run(many())) == [200, 200, 200, 200, 201]
    assert [row.kind for row, _ in served.service.store.read(model="orders")] == ["created"]


def test_put_of_actions_and_of_defaults_is_idempotent_too(served: Served) -> None:
    for body in ({"actions": True}, {"labels": ["mail", "chat"], "mode": "apprentice"}):
        name = "news" if "actions" in body else "plain"
        statuses = [served.call("PUT", f"/v1/models/{name}", body).status_code for _ in range(2)]
        assert statuses == [201, 200]


# --- deleted --------------------------------------------------------------------------------------------------------


def delete(served: Served, name: str = "triage") -> None:
    assert served.call("DELETE", f"/v1/models/{name}").status_code == 204


def check_gone(served: Served, name: str = "triage") -> None:
    for method, path, body in (
        ("GET", "", None),
        ("DELETE", "", None),
        ("PATCH", "", {"mode": "shadow"}),
        ("GET", "/report", None),
        ("GET", "/log", None),
        ("POST", "/decisions", {"event_id": "new", "x": [0.3, 1.0]}),
        ("GET", "/decisions/e0", None),
        ("PUT", "/decisions/e0/outcome", {"correct": True}),
    ):
        problem(served.call(method, f"/v1/models/{name}{path}", body), 404, "not-found")
    assert name not in [one["name"] for one in served.call("GET", "/v1/models").json()["models"]]


def test_a_deleted_model_is_gone_and_stays_gone(anywhere: Served) -> None:
    lesson(anywhere, 5)
    anywhere.service.coordinator.take_snapshots()
    put(anywhere)
    delete(anywhere)
    check_gone(anywhere)
    assert [row.kind for row, _ in anywhere.service.store.read(model="triage")][-1] == "deleted", "the tombstone"
    assert [name for name, _ in anywhere.service.store.snapshots()] == []
    for end in (anywhere.stop, anywhere.crash):
        end()
        anywhere.open()
        check_gone(anywhere)
    assert anywhere.decide("e0", model="orders").status_code == 201, "the other model is as it was"
    assert list(replay(anywhere.service.store).models) == ["orders"]


def test_its_name_may_be_used_again_with_a_new_history(anywhere: Served) -> None:
    lesson(anywhere, 5)
    assert anywhere.call("GET", "/v1/models/triage/report").json()["learned"] == 5
    delete(anywhere)
    assert put(anywhere, "triage", labels=["mail", "fax"]).status_code == 201
    assert anywhere.call("GET", "/v1/models/triage/report").json()["learned"] == 0
    shown = anywhere.call("GET", "/v1/models/triage").json()
    assert (shown["labels"], shown["decisions"], shown["learned"]) == (["mail", "fax"], 0, 0)
    assert anywhere.call("GET", "/v1/models/triage/decisions").json()["decisions"] == []
    detail = problem(anywhere.decide("e0"), 422, "event-id-reused")
    assert "deleted model" in detail and "another id" in detail
    problem(anywhere.call("GET", "/v1/models/triage/decisions/e0"), 404, "not-found")
    problem(anywhere.send_outcome("e0", correct=True), 404, "not-found")
    for t in range(5):
        anywhere.decide(f"new-{t}", (0.1 * t, 1.0))
        anywhere.send_outcome(f"new-{t}", correct=True)
    assert len(anywhere.call("GET", "/v1/models/triage/log").text.splitlines()) == 1 + 5, "a header, and its decisions"
    assert replay(anywhere.service.store).decisions == 5
    anywhere.crash()
    anywhere.open()
    assert anywhere.model().version == 5 and anywhere.model().adapter.labels == ("mail", "fax")


def test_a_quarantined_model_can_be_deleted(served: Served) -> None:
    served.service.coordinator._quarantine("triage", ValueError("broken"))
    assert served.decide("e0").status_code == 503
    delete(served)
    check_gone(served)
    assert served.make().status_code == 201 and served.decide("e0").status_code == 201


def test_a_request_in_progress_does_not_reach_the_next_model_of_the_name(served: Served) -> None:
    """The first decision compiles, which takes long enough to delete the model and create another one."""
    coordinator, compiled = served.service.coordinator, asyncio.Event()
    old = coordinator.model("triage")

    async def slow(*_: Any) -> None:
        await compiled.wait()

    coordinator.compile = slow  # type: ignore[method-assign]

    async def work() -> Any:
        request = served.client.post("/v1/models/triage/decisions", json={"event_id": "e0", "x": [0.3, 1.0]})
        task = asyncio.create_task(request)
        await asyncio.sleep(0.05)
        await served.client.delete("/v1/models/triage")
        await served.client.put("/v1/models/triage", json=SPEC)
        compiled.set()
        return await task

    assert "deleted" in problem(served.run(work()), 404, "not-found")
    assert coordinator.model("triage") is not old and coordinator.model("triage").tally.decisions == 0
    assert replay(served.service.store).decisions == 0


def test_features_of_a_deleted_model_are_redacted_too(place: str) -> None:
    served = Served(place, keep_days=30.0)
    served.make()
    lesson(served, 3)
    delete(served)
    served.pass_time(20 * DAY)
    served.make()
    lesson(served, 2, start=3)
    served.pass_time(11 * DAY)
    decided = [events.decode(row).body for row, _ in served.service.store.read() if row.kind == "decided"]
    assert [one.is_redacted for one in decided] == [True] * 3 + [False] * 2
    assert replay(served.service.store).decisions == 2
    served.close()


# --- labels -----------------------------------------------------------------------------------------------------------


def change(served: Served, **more: Any) -> Any:
    return served.call("PATCH", "/v1/models/triage", more)


def test_a_retired_label_is_never_played_again_and_its_history_stays(anywhere: Served) -> None:
    lesson(anywhere, 20)
    anywhere.decide("open")
    shown = change(anywhere, retire_labels=["mail"]).json()
    assert shown["retired"] == ["mail"] and shown["labels"] == TRIAGE["labels"]
    assert anywhere.send_outcome("open", correct=True).json()["status"] == "recorded"
    for t in range(20, 60):
        made = anywhere.decide(f"e{t}", (0.02 * (t - 40), 1.0)).json()
        assert made["distribution"]["mail"] == 0.0 and made["label"] != "mail"
        anywhere.send_outcome(f"e{t}", correct=made["label"] == "chat")
    assert anywhere.model().version == 61
    played = {one["label"]: one["played"] for one in anywhere.call("GET", "/v1/models/triage/report").json()["labels"]}
    assert played["mail"] > 0, "what it did before"
    assert replay(anywhere.service.store).decisions == 61
    for end in (anywhere.stop, anywhere.crash):
        end()
        anywhere.open()
        assert anywhere.call("GET", "/v1/models/triage").json()["retired"] == ["mail"]
    lines = [json.loads(line) for line in anywhere.call("GET", "/v1/models/triage/log").text.splitlines()[1:]]
    assert lines[-1]["available"] == ["chat", "phone"] and "available" not in lines[0]


def test_requests_that_name_a_retired_label_get_one_of_the_others(served: Served) -> None:
    change(served, retire_labels=["mail"])
    shown = served.call("POST", "/v1/models/triage/preview", {"x": [0.3, 1.0]}).json()["distribution"]
    assert shown["mail"] == 0.0
    assert served.decide("a", available=["mail", "phone"]).json()["label"] == "phone"
    assert "retired" in problem(served.decide("b", available=["mail"]), 422, "invalid")
    assert served.decide("a", available=["mail", "phone"]).status_code == 200, "a retry of the same request"
    change(served, mode="shadow")
    assert "available" in problem(served.decide("c", played={"label": "mail"}), 422, "invalid")
    assert replay(served.service.store).decisions == 1


def test_a_retired_label_may_still_be_the_true_one(served: Served) -> None:
    served.make(name="full", feedback="full")
    served.call("PATCH", "/v1/models/full", {"retire_labels": ["mail"]})
    served.decide("a", model="full")
    served.decide("b", model="full")
    assert served.send_outcome("a", model="full", label="mail").json()["status"] == "recorded"
    assert served.send_outcome("b", model="full", label="chat").json()["status"] == "recorded"
    assert replay(served.service.store).decisions == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"retire_labels": ["fax"]}, "'fax', which is not a label"),
        ({"retire_labels": ["mail", "chat"]}, "at least 2 must stay"),
        ({"retire_labels": []}, "retire_labels"),
        ({"display_names": {"fax": "Fax"}}, "'fax', which is not a label"),
        ({"display_names": {"mail": ""}}, "display_names"),
    ],
)
def test_labels_that_cannot_be_retired_or_renamed_change_nothing(served: Served, given: Any, words: str) -> None:
    before = weights(served)
    assert words in problem(change(served, **given), 422, "invalid")
    assert weights(served) == before


def test_labels_are_retired_only_where_the_algorithm_can_leave_them_out(served: Served) -> None:
    make_news(served)
    served.make(name="full", algorithm="aggregating", feedback="full", settings={"norm": 2.0, "radius": 1.0})
    for name, given, words in (
        ("news", {"retire_labels": ["a"]}, "for models with labels"),
        ("news", {"display_names": {"a": "A"}}, "for models with labels"),
        ("full", {"retire_labels": ["mail"]}, "aggregating cannot leave labels out"),
    ):
        assert words in problem(served.call("PATCH", f"/v1/models/{name}", given), 422, "invalid")


def test_one_change_may_replace_a_label(served: Served) -> None:
    shown = change(served, add_labels=["post"], retire_labels=["mail", "chat"], display_names={"post": "Letter"}).json()
    assert (shown["labels"][-1], shown["retired"]) == ("post", ["mail", "chat"])
    assert change(served, retire_labels=["mail"]).json()["retired"] == ["mail", "chat"], "again"
    assert served.decide("a").json()["label"] in ("phone", "post")


def test_display_names_are_for_people_only(anywhere: Served) -> None:
    shown = change(anywhere, display_names={"mail": "E-Mail", "chat": "Chat now"}).json()
    assert shown["display_names"] == {"mail": "E-Mail", "chat": "Chat now"}
    assert change(anywhere, display_names={"mail": "Post", "chat": None}).json()["display_names"] == {"mail": "Post"}
    assert list(anywhere.decide("a").json()["distribution"]) == TRIAGE["labels"]
    assert replay(anywhere.service.store).decisions == 1
    for end in (anywhere.stop, anywhere.crash):
        end()
        anywhere.open()
        assert anywhere.call("GET", "/v1/models/triage").json()["display_names"] == {"mail": "Post"}


# --- the list -------------------------------------------------------------------------------------------------------


def test_the_list_says_in_which_state_every_model_is(anywhere: Served) -> None:
    (shown,) = anywhere.call("GET", "/v1/models").json()["models"]
    assert shown["state"] == "live" and shown["created_at"] == as_time(START) and "last_decision_at" not in shown
    put(anywhere, mode="shadow")
    anywhere.pass_time(60)
    anywhere.decide("a")
    anywhere.pass_time(60)
    anywhere.stop()
    anywhere.open()
    anywhere.service.coordinator._quarantine("orders", ValueError("broken"))
    listed = anywhere.call("GET", "/v1/models").json()
    assert [(one["name"], one["state"]) for one in listed["models"]] == [("triage", "live")]
    assert listed["models"][0]["last_decision_at"] == as_time(START + 60_000_000)
    (broken,) = listed["quarantined"]
    assert (broken["name"], broken["state"]) == ("orders", "quarantined") and "broken" in broken["reason"]
    anywhere.crash()
    anywhere.open()
    states = {one["name"]: one["state"] for one in anywhere.call("GET", "/v1/models").json()["models"]}
    assert states == {"triage": "live", "orders": "shadow"}


# --- replicas and a standby -----------------------------------------------------------------------------------------


def test_replicas_and_a_deleted_model(postgres: str) -> None:
    place = with_schema(postgres, f"test_{uuid.uuid4().hex}")
    leader = Served(place, with_replicas=True)
    leader.make(features=2)
    leader.tick()
    replica = Served(place, replica=True)
    standby_store = open_store(place)
    standby = Follower(standby_store)
    standby.catch_up()
    assert replica.decide("e0").status_code == 201
    delete(leader)
    assert leader.make(features=2, labels=["mail", "fax"]).status_code == 201
    assert replica.decide("e1").json()["distribution"].keys() == {"mail", "chat", "phone"}, "it does not know yet"
    leader.tick()
    assert leader.model().tally.decisions == 0, "these decisions are of the deleted model"
    for event in ("e0", "e1"):
        problem(leader.send_outcome(event, correct=True), 404, "not-found")
    replica.tick()
    problem(replica.decide("e1"), 422, "event-id-reused")
    problem(replica.call("GET", "/v1/models/triage/decisions/e1"), 404, "not-found")
    assert replica.decide("e2").json()["distribution"].keys() == {"mail", "fax"}
    leader.send_outcome("e2", correct=True)
    leader.tick()
    assert leader.model().version == 1 and replay(leader.service.store).decisions == 1
    standby.catch_up()
    assert standby.models["triage"].version == 1 and standby.models["triage"].adapter.labels == ("mail", "fax")
    delete(leader)
    leader.tick()
    replica.tick()
    problem(replica.decide("e3"), 404, "not-found")
    standby.catch_up()
    assert standby.models == {}
    replica.close()
    leader.close()
    standby_store.close()


def test_a_replica_does_not_play_a_retired_label(postgres: str) -> None:
    place = with_schema(postgres, f"test_{uuid.uuid4().hex}")
    leader = Served(place, with_replicas=True)
    leader.make(features=2)
    leader.tick()
    replica = Served(place, replica=True)
    assert replica.decide("e0").json()["distribution"]["mail"] > 0.0
    change(leader, retire_labels=["mail"])
    leader.tick()
    replica.tick()
    for t in range(1, 6):
        made = replica.decide(f"e{t}", (0.1 * t, 1.0)).json()
        assert made["distribution"]["mail"] == 0.0
        leader.send_outcome(f"e{t}", correct=made["label"] == "chat")
    leader.tick()
    assert replay(leader.service.store).decisions == 6
    replica.close()
    leader.close()
