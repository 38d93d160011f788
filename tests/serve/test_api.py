"""The HTTP API: what it accepts, what it returns, and what it refuses without changing anything."""

import asyncio
import json
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import load
from gaptron.offpolicy import evaluate_learning, open_log
from gaptron.serve import snapshots
from gaptron.serve.clock import LATEST, MAX_STEP, Clock
from gaptron.serve.decisions import as_time
from gaptron.serve.model_state import Model, ReplayMismatchError
from gaptron.serve.replay import load_models, replay
from gaptron.serve.store import open_store
from tests.serve.served import START, TRIAGE, Served

TITLES = {401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 409: "Conflict", 422: "Unprocessable Content"}
ROWS = np.random.default_rng(0).normal(size=(200, 2)) / 3


def problem(response: Any, status: int, kind: str) -> str:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == status and body["type"] == f"/problems/{kind}" and body["title"] == TITLES[status]
    return str(body["detail"])


def weights(served: Served, model: str = "triage") -> str:
    return checksum(served.model(model))


def checksum(model: Model) -> str:
    """The checksum of the complete state of a model."""
    return snapshots.checksum(snapshots.pack(model))


def lesson(served: Served, rounds: int = 30, start: int = 0, **more: Any) -> list[dict[str, Any]]:
    """Decide and send outcomes; chat is correct where the first feature is positive, otherwise mail."""
    answers = []
    for t in range(start, start + rounds):
        decision = served.decide(f"e{t}", tuple(ROWS[t]), **more).json()
        truth = "chat" if ROWS[t, 0] > 0 else "mail"
        assert served.send_outcome(f"e{t}", correct=decision["label"] == truth).json()["status"] == "recorded"
        answers.append(decision)
    return answers


# --- deciding -------------------------------------------------------------------------------------------------------


def test_a_decision_says_what_it_was_drawn_from(anywhere: Served) -> None:
    response = anywhere.decide("order-7")
    assert response.status_code == 201
    body = response.json()
    assert body["event_id"] == "order-7" and body["model"] == "triage" and body["version"] == 0
    assert list(body["distribution"]) == TRIAGE["labels"]
    assert body["distribution"][body["label"]] == body["propensity"]
    assert sum(body["distribution"].values()) == pytest.approx(1.0)


def test_the_same_request_gets_the_same_decision_and_a_different_one_is_refused(anywhere: Served) -> None:
    first = anywhere.decide("order-7")
    lesson(anywhere, 5)
    again = anywhere.decide("order-7")
    assert (again.status_code, again.headers["idempotent-replay"]) == (200, "true")
    assert again.json() == first.json()
    before = weights(anywhere)
    assert "order-7" in problem(anywhere.decide("order-7", (0.3, 0.9)), 422, "event-id-reused")
    assert weights(anywhere) == before


def test_an_event_that_left_the_cache_is_found_in_the_log(anywhere: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gaptron.serve.coordinator.CACHED_DECISIONS", 1)
    first = anywhere.decide("a").json()
    for event in "bcd":
        anywhere.decide(event)
    assert len(anywhere.service.coordinator._cache) < 4
    assert anywhere.decide("a").json() == first
    problem(anywhere.decide("a", (9.0, 9.0)), 422, "event-id-reused")
    assert anywhere.send_outcome("a", correct=True).json() == {"event_id": "a", "status": "recorded"}
    for event in "bcd":
        anywhere.decide(event)
    assert anywhere.send_outcome("a", correct=True).json()["status"] == "duplicate"


def test_the_cache_keeps_what_is_not_on_disk_yet(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """However small the cache: otherwise a retry would be decided again, and the log would have the event twice."""
    monkeypatch.setattr("gaptron.serve.coordinator.CACHED_DECISIONS", 1)
    store, may_write = served.service.store, threading.Event()
    append = store.append

    def slow(*given: Any) -> None:
        may_write.wait(10)
        append(*given)

    monkeypatch.setattr(store, "append", slow)

    async def post(event: str) -> Any:
        return await served.client.post("/v1/models/triage/decisions", json={"event_id": event, "x": [0.1, 0.2]})

    async def work() -> Any:
        first = [asyncio.create_task(post(event)) for event in "abcd"]
        await asyncio.sleep(0.05)
        again = asyncio.create_task(post("a"))
        await asyncio.sleep(0.05)
        may_write.set()
        return await asyncio.wait_for(asyncio.gather(*first, again), 10)

    *first, again = served.run(work())
    assert [one.status_code for one in (*first, again)] == [201] * 4 + [200] and served.failure is None
    assert again.json() == first[0].json()


def test_two_at_once_with_one_id_are_one_decision(anywhere: Served) -> None:
    import asyncio  # noqa: PLC0415

    async def both() -> list[Any]:
        body = {"event_id": "twice", "x": [0.3, 1.0]}
        calls = [anywhere.client.post("/v1/models/triage/decisions", json=body) for _ in range(5)]
        return await asyncio.gather(*calls)

    answers = anywhere.run(both())
    assert sorted(one.status_code for one in answers) == [200, 200, 200, 200, 201]
    assert len({one.text for one in answers}) == 1


def test_an_id_is_made_where_none_is_given(served: Served) -> None:
    one, two = served.decide().json(), served.decide().json()
    assert one["event_id"] != two["event_id"]
    assert served.send_outcome(one["event_id"], correct=True).json()["status"] == "recorded"


def test_dense_and_sparse_examples_give_the_same_distribution(served: Served) -> None:
    for name in ("dense", "sparse"):
        served.make(name=name, features=4)
    sparse = {"indices": [3, 1], "values": [0.5, -1.0]}
    one = served.decide("a", [0, -1.0, 0, 0.5], model="dense").json()["distribution"]
    two = served.decide("a", sparse, model="sparse").json()["distribution"]
    assert one == pytest.approx(two)
    for name, x in (("dense", [0, -1.0, 0, 0.5]), ("sparse", sparse)):
        served.decide("b", x, model=name)
        served.send_outcome("b", model=name, correct=True)
    for name, x in (("dense", sparse), ("sparse", [0, -1.0, 0, 0.5])):
        assert served.decide("c", x, model=name).status_code == 201


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"x": [0.3]}, "x has length 1; the number of features of this model is 2"),
        ({"x": []}, "x"),
        ({}, "either x or features"),
        ({"x": [1, 2], "features": {"a": 1}}, "either x or features"),
        ({"features": {"a": 1}}, "numbers as x"),
        ({"x": [1.0, "2"]}, "x[1] must be a number"),
        ({"x": [1.0, True]}, "x[1] must be a number"),
        ({"x": [100.0, 0.0]}, "norm"),
        ({"x": [1e-200, 0.0]}, "norm"),
        ({"x": {"indices": [0], "values": [1.0, 2.0]}}, "1 indices but 2 values"),
        ({"x": {"indices": [0, 0], "values": [1.0, 2.0]}}, "twice"),
        ({"x": {"indices": [2], "values": [1.0]}}, "index 2"),
        ({"x": {"indices": [-1], "values": [1.0]}}, "0"),
        ({"x": [0.3, 1.0], "event_id": "../x"}, "event_id"),
        ({"x": [0.3, 1.0], "event_id": "a\n"}, "event_id"),
        ({"x": [0.3, 1.0], "event_id": "x" * 129}, "event_id"),
        ({"x": [0.3, 1.0], "advice": {"mail": 1.0}}, "advice"),
        ({"x": [0.3, 1.0], "played": {"label": "mail"}}, "shadow"),
        ({"x": [0.3, 1.0], "available": []}, "available"),
        ({"x": [0.3, 1.0], "available": ["mail", "fax"]}, "'fax'"),
        ({"x": [0.3, 1.0], "exclude": ["mail"]}, "exclude"),
        ({"x": [0.3, 1.0], "colour": 1}, "colour"),
    ],
)
def test_what_cannot_be_decided_is_refused_and_changes_nothing(served: Served, body: Any, words: str) -> None:
    served.decide("first")
    before, last = weights(served), served.service.coordinator._seq
    assert words in problem(served.call("POST", "/v1/models/triage/decisions", body), 422, "invalid")
    assert weights(served) == before and served.service.coordinator._seq == last


def test_labels_that_are_not_available_are_never_played(served: Served) -> None:
    served.make(name="some", algorithm="advised-gaptron", settings={}, epsilon=0.1)
    for t in range(50):
        body = served.decide(f"e{t}", tuple(ROWS[t]), model="some", available=["chat", "phone"]).json()
        assert body["label"] != "mail" and body["distribution"]["mail"] == 0.0
        assert sum(body["distribution"].values()) == pytest.approx(1.0)
        served.send_outcome(f"e{t}", model="some", correct=body["label"] == "chat")
    served.stop()
    served.open()
    assert replay(served.service.store).decisions == 50


def test_all_labels_may_be_named_even_where_the_algorithm_cannot_leave_any_out(served: Served) -> None:
    served.make(name="all", feedback="full", algorithm="perceptron", settings={})
    assert served.decide("a", model="all", available=["phone", "chat", "mail"]).status_code == 201
    assert served.send_outcome("a", model="all", label="chat").json()["status"] == "recorded"


def test_features_may_have_names(served: Served) -> None:
    spec = {"name": "named", "algorithm": "advised-gaptron", "settings": {}, "features": "auto"}
    assert served.make(**spec).status_code == 201
    url = "/v1/models/named/decisions"
    for t in range(60):
        row = {"amount": 3.5 * t, "country": ["NL", "BE"][t % 2], "member": t % 3 == 0, "gap": None}
        body = served.call("POST", url, {"event_id": f"e{t}", "features": row}).json()
        assert (
            served.send_outcome(f"e{t}", model="named", correct=(body["label"] == "chat") == (t % 2 == 0)).status_code
            == 200
        )
    problem(served.call("POST", url, {"x": [1.0]}), 422, "invalid")
    before = weights(served, "named")
    served.crash()
    served.open()
    assert weights(served, "named") == before
    assert replay(served.service.store).decisions == 60


def test_advice_gains_weight(served: Served) -> None:
    served.make(name="advised", algorithm="advised-gaptron", settings={})
    for t in range(40):
        x, right = tuple(ROWS[t]), ["mail", "chat", "phone"][t % 3]
        decision = served.decide(f"e{t}", x, model="advised", advice={right: 1.0}).json()
        served.send_outcome(f"e{t}", model="advised", correct=decision["label"] == right)
    p = served.decide("last", (0.1, 0.2), model="advised", advice={"phone": 0.9, "mail": 0.1}).json()["distribution"]
    assert max(p, key=p.get) == "phone"
    weights = served.call("GET", "/v1/models/advised/report").json()["expert_weights"]
    assert max(weights, key=weights.get) == "caller"


# --- outcomes ------------------------------------------------------------------------------------------------------


def test_the_first_outcome_counts(anywhere: Served) -> None:
    anywhere.decide("a")
    assert anywhere.send_outcome("a", correct=True).json() == {"event_id": "a", "status": "recorded"}
    after = weights(anywhere)
    assert anywhere.send_outcome("a", correct=True).json()["status"] == "duplicate"
    refused = anywhere.send_outcome("a", correct=False)
    problem(refused, 409, "conflict")
    assert refused.json()["outcome"] == {"correct": True}
    assert weights(anywhere) == after
    shown = anywhere.call("GET", "/v1/models/triage/decisions/a").json()
    assert shown["outcome"] == {"correct": True} and shown["at"].startswith("2027-")


def test_an_outcome_without_a_decision_is_refused(served: Served) -> None:
    assert "no decision" in problem(served.send_outcome("nobody", correct=True), 404, "not-found")
    problem(served.call("GET", "/v1/models/triage/decisions/nobody"), 404, "not-found")
    problem(served.send_outcome("a", model="none", correct=True), 404, "not-found")


@pytest.mark.parametrize(
    "outcome",
    [{}, {"correct": True, "label": "mail"}, {"label": "fax"}, {"reward": 2.0}, {"void": False}, {"correct": 1}],
)
def test_an_invalid_outcome_is_refused_and_can_be_corrected(served: Served, outcome: Any) -> None:
    served.decide("a")
    problem(served.send_outcome("a", **outcome), 422, "invalid")
    assert served.send_outcome("a", correct=False).json()["status"] == "recorded"


@pytest.mark.parametrize(
    ("outcome", "count"), [({"void": True}, "void"), ({"correct": True, "played": None}, "overridden")]
)
def test_void_and_overridden_outcomes_change_no_weights(served: Served, outcome: Any, count: str) -> None:
    label = served.decide("a").json()["label"]
    if "played" in outcome:
        outcome["played"] = next(other for other in TRIAGE["labels"] if other != label)
    before = served.model().adapter.learner.weights
    assert served.send_outcome("a", **outcome).json()["status"] == "recorded"
    assert (served.model().adapter.learner.weights == before).all() and served.model().version == 0
    assert served.call("GET", "/v1/models/triage/report").json()["counts"][count] == 1


def test_the_true_label_is_an_outcome_too(served: Served) -> None:
    served.make(name="full", feedback="full", algorithm="perceptron", settings={})
    for t in range(60):
        served.decide(f"e{t}", tuple(ROWS[t]), model="full")
        served.send_outcome(f"e{t}", model="full", label="chat" if ROWS[t, 0] > 0 else "mail")
    p = served.decide("last", (0.9, 0.0), model="full").json()
    assert p["label"] == "chat"
    problem(served.send_outcome("last", model="full", correct=False), 422, "invalid")
    assert served.send_outcome("last", model="full", correct=True).json()["status"] == "recorded"


def test_a_reward_of_one_is_right_and_of_zero_wrong(served: Served) -> None:
    served.make(name="twin")
    for t in range(20):
        for name in ("triage", "twin"):
            served.service.coordinator.models["twin"].key = served.model().key  # the same draws
            label = served.decide(f"e{t}", tuple(ROWS[t]), model=name).json()["label"]
            right = label == "chat"
            served.send_outcome(
                f"e{t}", model=name, **({"correct": right} if name == "triage" else {"reward": float(right)})
            )
    one, two = (served.model(name).adapter.learner.weights for name in ("triage", "twin"))
    assert (one == two).all() and one.any()
    response = served.send_outcome(served.decide("half").json()["event_id"], reward=0.5)
    assert response.status_code == (200 if load("gaptron").CARD.rewards else 422)


# --- learning is what the library does ------------------------------------------------------------------------------


def test_weights_are_those_of_a_learner_that_learns_from_the_log(served: Served) -> None:
    decisions = lesson(served, 60)
    settings: Any = TRIAGE["settings"]
    twin = gaptron.Learner("gaptron", classes=TRIAGE["labels"], feedback="bandit", seed=0, **settings)
    for t, decision in enumerate(decisions):
        p = twin.distribution(ROWS[t][None])[0]
        assert decision["distribution"] == dict(zip(TRIAGE["labels"], p.tolist()))
        truth = "chat" if ROWS[t, 0] > 0 else "mail"
        twin.learn_logged(ROWS[t], decision["label"], decision["propensity"], correct=decision["label"] == truth)
    assert (served.model().adapter.learner.weights == twin.weights).all() and twin.weights.any()


def test_labels_that_were_not_available_are_not_learned_about(served: Served) -> None:
    """Learning uses the available labels, too."""
    served.make(name="some", algorithm="banditron", settings={"gamma": 0.3}, features=2)
    twin = gaptron.Learner("banditron", classes=TRIAGE["labels"], feedback="bandit", gamma=0.3, n_features=2)
    for t in range(30):
        left = [label for label in TRIAGE["labels"] if label != TRIAGE["labels"][t % 3]]
        made = served.decide(f"e{t}", tuple(ROWS[t]), model="some", available=left).json()
        assert made["label"] in left
        served.send_outcome(f"e{t}", model="some", correct=made["label"] == "chat")
        twin.learn_logged(ROWS[t], made["label"], made["propensity"], correct=made["label"] == "chat", available=left)
    assert (served.model("some").adapter.learner.weights == twin.weights).all() and twin.weights.any()


def test_a_shorter_timeout_ends_first(served: Served) -> None:
    """Decisions are learned in the order of their due times, not in the order in which they were made."""
    served.make(name="slow", feedback_timeout=60, on_timeout="wrong")
    for t in range(6):
        served.decide(f"long-{t}", tuple(ROWS[t]), model="slow")
        served.time += 1_000_000
    served.call("PATCH", "/v1/models/slow", {"feedback_timeout": 10})
    for t in range(6, 12):
        served.decide(f"short-{t}", tuple(ROWS[t]), model="slow")
        served.time += 1_000_000
    order = [*(f"short-{t}" for t in range(6, 12)), *(f"long-{t}" for t in range(6))]
    learned: list[str] = []
    model, learn = served.model("slow"), served.model("slow")._learn
    waiting = {id(held.decision): event for event, held in model.pending.items()}
    model._learn = lambda decision, *more: (learned.append(waiting[id(decision)]), learn(decision, *more))
    served.pass_time(100)
    assert learned == order
    replay(served.service.store)


def test_the_snapshot_is_a_model_file(served: Served, tmp_path: Path) -> None:
    lesson(served, 20)
    path = tmp_path / "triage.gaptron"
    path.write_bytes(served.call("GET", "/v1/models/triage/snapshot").content)
    learner = gaptron.Learner.load(path)
    assert (learner.weights == served.model().adapter.learner.weights).all()
    assert learner.classes == tuple(TRIAGE["labels"])


# --- timeouts --------------------------------------------------------------------------------------------------------


def test_with_on_timeout_all_outcomes_are_learned_at_the_timeout_in_the_order_of_the_decisions(
    anywhere: Served,
) -> None:
    anywhere.make(name="slow", feedback_timeout=60, on_timeout="wrong")
    labels = {}
    for t in range(10):
        decision = anywhere.decide(f"e{t}", tuple(ROWS[t]), model="slow").json()
        labels[t] = decision["label"]
        assert decision["feedback_due"].startswith("2027-")
        anywhere.time += 1_000_000
    for t in (7, 2, 4):
        assert anywhere.send_outcome(f"e{t}", model="slow", correct=True).json()["status"] == "recorded"
    anywhere.tick()
    model = anywhere.model("slow")
    assert model.version == 0 and len(model.pending) == 10, "nothing is learned before"
    anywhere.pass_time(54.5)
    assert model.version == 5 and anywhere.send_outcome("e3", model="slow", correct=True).json()["status"] == "late"
    anywhere.pass_time(10)
    assert model.version == 10 and not model.pending
    twin = gaptron.Learner("gaptron", classes=TRIAGE["labels"], feedback="bandit", seed=0, **TRIAGE["settings"])
    shown = [anywhere.call("GET", f"/v1/models/slow/decisions/e{t}").json() for t in range(10)]
    for t, one in enumerate(shown):
        twin.learn_logged(ROWS[t], one["label"], one["propensity"], correct=t in (7, 2, 4))
    assert (model.adapter.learner.weights == twin.weights).all()
    assert model.tally.timed_out == 7 and model.tally.late == 1
    assert anywhere.send_outcome("e3", model="slow", correct=True).json()["status"] == "duplicate"


def test_without_on_timeout_a_late_outcome_is_recorded_and_not_learned(served: Served) -> None:
    served.make(name="quick", feedback_timeout=5)
    served.decide("a", model="quick")
    served.decide("b", model="quick")
    served.time += 5_000_000
    assert served.send_outcome("a", model="quick", correct=True).json()["status"] == "recorded"
    served.time += 1
    assert served.send_outcome("b", model="quick", correct=True).json()["status"] == "late"
    assert served.model("quick").version == 1


DAY = 86_400_000_000  # µs


@pytest.mark.parametrize("error", [-3600_000_000, DAY, 400 * DAY, 1 << 63, -(1 << 63)], ids=str)
@pytest.mark.parametrize("when", ["before the first start", "while it runs", "before another start"])
def test_a_clock_that_is_wrong_stops_no_timeout_and_corrected_neither(tmp_path: Path, error: int, when: str) -> None:
    """Set back or ahead, by a day or to the end of time; set right afterwards, while it runs and before a start."""
    served = Served(str(tmp_path / "store"))
    if when == "before the first start":
        served.stop()
        shutil.rmtree(served.place)
        served.clock_error = error
        served.open()
    served.make(name="slow", feedback_timeout=60, on_timeout="wrong")
    served.decide("a", model="slow")
    served.clock_error = error
    if when == "before another start":
        served.stop()
        served.open()
    served.decide("b", model="slow")
    assert served.call("GET", "/v1/models/slow/decisions/b").json()["feedback_due"]
    served.pass_time(30)
    served.clock_error = 0
    served.decide("c", model="slow")
    served.pass_time(31)
    assert served.model("slow").version == 2, "a and b"
    served.stop()
    served.open()
    served.decide("d", model="slow")
    served.pass_time(61)
    assert served.model("slow").version == 4 and served.failure is None
    for event in "abcd":
        assert served.call("GET", f"/v1/models/slow/decisions/{event}").json()["at"]
    assert served.call("PATCH", "/v1/models/slow", {"mode": "shadow"}).status_code == 200
    assert served.call("GET", "/v1/models/slow/report").json()["changes"]
    rows = [row for row, _ in served.service.store.read()]
    assert [row.at for row in rows] == sorted(row.at for row in rows)
    served.close()


def test_time_begins_at_the_system_clock_within_bounds_of_the_log() -> None:
    now, passed = START, 0
    clock = Clock(0, lambda: now, lambda: passed)
    assert clock.now() == START
    now, passed = START - 5 * DAY, 7
    assert clock.now() == START + 7, "the system clock is read once"
    for system, last, expected in (
        (START, START - 300 * DAY, START),  # a long stop
        (START, START - 9000 * DAY, START - 9000 * DAY + MAX_STEP),
        (START, START + DAY, START + DAY),  # was a day ahead
        (1 << 80, 0, LATEST),
        (-(1 << 80), 0, 0),
        (1 << 80, LATEST - 1, LATEST),
        (START, LATEST + 5, LATEST + 5),
    ):
        assert Clock(last, lambda at=system: at, lambda: 0).now() == expected
    assert as_time(LATEST + 900 * 366 * DAY).startswith("99"), "a process may run on for centuries"
    before = Clock(0)
    assert 0 <= before.now() <= before.now()


# --- shadow mode, labels, epsilon ------------------------------------------------------------------------------------


def test_shadow_mode_learns_from_what_the_caller_played(served: Served) -> None:
    served.make(name="copy", mode="shadow")
    problem(served.decide("a", model="copy"), 422, "invalid")
    for t in range(30):
        played = {"label": ["mail", "chat"][t % 2], "propensity": 0.5}
        decision = served.decide(f"e{t}", tuple(ROWS[t]), model="copy", played=played).json()
        assert (decision["label"], decision["propensity"]) == (played["label"], 0.5)
        assert decision["shadow_label"] in TRIAGE["labels"] and "distribution" not in decision
        served.send_outcome(f"e{t}", model="copy", correct=bool((ROWS[t, 0] > 0) == (t % 2)))
    assert served.model("copy").version == 30
    assert "Shadow mode." in served.call("GET", "/v1/models/copy/report").json()["summary"]
    served.call("PATCH", "/v1/models/copy", {"mode": "live"})
    assert served.decide("b", model="copy").status_code == 201


def test_labels_can_be_added_while_decisions_are_open(anywhere: Served) -> None:
    lesson(anywhere, 10)
    anywhere.decide("open")
    shown = anywhere.call("PATCH", "/v1/models/triage", {"add_labels": ["fax", "visit"]}).json()
    assert shown["labels"] == [*TRIAGE["labels"], "fax", "visit"]
    assert anywhere.send_outcome("open", correct=True).json()["status"] == "recorded"
    assert list(anywhere.decide("next").json()["distribution"]) == shown["labels"]
    for again in (["fax"], ["a", "a"]):
        problem(anywhere.call("PATCH", "/v1/models/triage", {"add_labels": again}), 422, "invalid")
    changes = anywhere.call("GET", "/v1/models/triage/report").json()["changes"]
    assert [change["what"] for change in changes] == ["labels added: fax, visit"]


def test_epsilon_keeps_every_label_possible(served: Served) -> None:
    served.make(name="shared", epsilon=0.3)
    for t in range(60):
        p = served.decide(f"e{t}", tuple(ROWS[t]), model="shared").json()["distribution"]
        assert min(p.values()) >= 0.1 - 1e-12
        served.send_outcome(f"e{t}", model="shared", correct=True)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"name": "Bad Name"}, "name"),
        ({"name": "../up"}, "name"),
        ({"labels": ["one"]}, "labels"),
        ({"labels": ["a", "a"]}, "twice"),
        ({"algorithm": "magic"}, "magic"),
        ({"algorithm": "newtron"}, "newtron"),
        ({"settings": {"colour": 1.0, "norm": 1.0, "radius": 1.0, "horizon": 10}}, "colour"),
        ({"settings": {"seed": 3}}, "seed"),
        ({"settings": {"radius": 1.0, "horizon": 10}}, "norm"),
        ({"feedback": "full", "on_timeout": "wrong", "feedback_timeout": 60}, "full-information"),
        ({"on_timeout": "wrong"}, "feedback_timeout"),
        ({"feedback_timeout": 1}, "feedback_timeout"),
        ({"epsilon": 1.0}, "epsilon"),
        ({"seed": -1}, "seed"),
    ],
)
def test_models_that_cannot_be_are_refused(served: Served, spec: Any, words: str) -> None:
    assert words in problem(served.make(**{"name": "new", **spec}), 422, "invalid")
    assert list(served.service.coordinator.models) == ["triage"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"name": "Big one"},
            "name must be 1 to 64 characters a-z, 0-9 and -, and begin with a letter or digit",
        ),
        ({"name": 3}, "name must be a text, not an integer"),
        ({"feedback_timeout": 1}, "feedback_timeout must be at least 5 seconds"),
        ({"feedback_timeout": 1e6}, "feedback_timeout must be at most 604,800 seconds"),
        ({"epsilon": 1.0}, "epsilon must be less than 1"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"labels": ["mail", 3]}, "labels[1] must be a text, not an integer"),
        ({"colour": 1}, "Object contains unknown field `colour`"),  # plain enough
    ],
)
def test_an_invalid_field_of_a_model_is_named_in_a_plain_sentence(
    served: Served, change: dict[str, Any], said: str
) -> None:
    assert problem(served.make(**{"name": "other", **change}), 422, "invalid") == said


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            {"features": {"topic": ["sport"]}},
            "a feature in features must be a number, a text, true, false or null, not an array",
        ),
        (
            {"actions": [{"id": "a"}, {"id": "b", "features": {"topic": {}}}]},
            "a feature in actions[1].features must be a number, a text, true, false or null, not an object",
        ),
        ({"x": [0.3, "high"]}, "x[1] must be a number, not a text"),
        (
            {"x": [0.3, 1.0], "event_id": "order 7"},
            "event_id must be 1 to 128 characters A-Z, a-z, 0-9 and . _ : -, and begin with a letter or digit",
        ),
    ],
)
def test_an_invalid_field_of_a_decision_is_named_in_a_plain_sentence(served: Served, body: Any, said: str) -> None:
    assert problem(served.call("POST", "/v1/models/triage/decisions", body), 422, "invalid") == said


def test_a_change_of_nothing_is_refused(served: Served) -> None:
    assert "the change is empty" in problem(served.call("PATCH", "/v1/models/triage", {}), 422, "invalid")
    problem(served.call("PATCH", "/v1/models/triage", {"on_timeout": "wrong"}), 422, "invalid")
    assert (
        served.call("PATCH", "/v1/models/triage", {"feedback_timeout": 60, "on_timeout": "wrong"}).json()[
            "feedback_timeout"
        ]
        == 60
    )
    problem(served.call("PATCH", "/v1/models/triage", {"feedback_timeout": None}), 422, "invalid")
    shown = served.call("PATCH", "/v1/models/triage", {"feedback_timeout": None, "on_timeout": "ignore"}).json()
    assert (shown.get("feedback_timeout"), shown["on_timeout"]) == (None, "ignore")


def test_sparse_examples_may_have_many_features(served: Served) -> None:
    assert served.make(name="wide", features=1_000_000).status_code == 201
    assert served.decide("a", {"indices": [999_999], "values": [1.0]}, model="wide").status_code == 201
    assert served.send_outcome("a", model="wide", correct=True).json()["status"] == "recorded"


def test_a_model_is_made_once(served: Served) -> None:
    problem(served.make(), 409, "already-exists")
    assert [model["name"] for model in served.call("GET", "/v1/models").json()["models"]] == ["triage"]
    assert served.call("GET", "/v1/models/triage").json()["labels"] == TRIAGE["labels"]


# --- many at once ---------------------------------------------------------------------------------------------------


def test_a_batch_is_as_if_one_by_one_and_written_at_once(anywhere: Served) -> None:
    anywhere.make(name="twin")
    anywhere.service.coordinator.models["twin"].key = anywhere.model().key
    rows = [{"event_id": f"e{t}", "x": list(ROWS[t])} for t in range(20)]
    rows[5] = {"event_id": "bad", "x": [1.0]}
    commits = anywhere.service.coordinator.committer.commits
    results = anywhere.call("POST", "/v1/models/twin/decisions/batch", {"decisions": rows}).json()["decisions"]
    assert anywhere.service.coordinator.committer.commits - commits == 1
    assert results[5]["problem"]["status"] == 422 and results[5]["problem"]["event_id"] == "bad"
    for t in (*range(5), *range(6, 20)):
        one = anywhere.decide(f"e{t}", tuple(ROWS[t])).json()
        assert {**results[t]["decision"], "model": "", "seq": 0} == {**one, "model": "", "seq": 0}
    outcomes = [{"event_id": f"e{t}", "correct": True} for t in (3, 3, 99, 4)]
    results = anywhere.call("POST", "/v1/models/twin/outcomes", {"outcomes": outcomes}).json()["outcomes"]
    assert [one.get("outcome", {}).get("status") for one in results] == ["recorded", "duplicate", None, "recorded"]
    assert results[2]["problem"]["status"] == 404


# --- restarts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["stop", "crash"])
def test_a_restart_changes_nothing(anywhere: Served, way: str) -> None:
    anywhere.make(name="slow", feedback_timeout=60, on_timeout="wrong")
    lesson(anywhere, 20)
    anywhere.call("PATCH", "/v1/models/triage", {"add_labels": ["fax"]})
    lesson(anywhere, 10, start=20)
    for t in range(5):
        anywhere.decide(f"s{t}", model="slow")
    anywhere.send_outcome("s1", model="slow", correct=True)
    anywhere.decide("open")
    before = {name: weights(anywhere, name) for name in ("triage", "slow")}
    getattr(anywhere, way)()
    anywhere.open()
    assert {name: weights(anywhere, name) for name in before} == before
    assert anywhere.decide("open").headers["idempotent-replay"] == "true"
    assert anywhere.send_outcome("open", correct=True).json()["status"] == "recorded"
    anywhere.pass_time(61)
    assert anywhere.model("slow").version == 5
    done = replay(anywhere.service.store)
    assert {name: checksum(model) for name, model in done.models.items()} == {
        name: weights(anywhere, name) for name in before
    }
    assert done.snapshots == (2 if way == "stop" else 0)


@pytest.mark.parametrize("way", ["stop", "crash"])
def test_a_restart_keeps_the_configuration(anywhere: Served, way: str) -> None:
    anywhere.call("PATCH", "/v1/models/triage", {"feedback_timeout": 60, "on_timeout": "wrong", "add_labels": ["fax"]})
    anywhere.call("PATCH", "/v1/models/triage", {"mode": "shadow"})
    lesson_at = {"played": {"label": "fax", "propensity": 0.5}}
    anywhere.decide("a", **lesson_at)
    before = anywhere.call("GET", "/v1/models/triage").json()
    getattr(anywhere, way)()
    anywhere.open()
    assert anywhere.call("GET", "/v1/models/triage").json() == before
    assert (before["mode"], before["feedback_timeout"], before["on_timeout"], before["features"]) == (
        "shadow",
        60,
        "wrong",
        2,
    )
    assert anywhere.decide("b").status_code == 422, "the played label is missing"


def test_apprentice_is_an_alias_of_shadow(served: Served) -> None:
    assert served.make(name="copy", mode="apprentice").json()["mode"] == "shadow"
    assert served.call("PATCH", "/v1/models/triage", {"mode": "apprentice"}).json()["mode"] == "shadow"
    served.crash()
    served.open()
    assert {name: served.model(name).mode for name in ("copy", "triage")} == {"copy": "shadow", "triage": "shadow"}


def test_a_start_reads_only_the_events_after_the_snapshots(anywhere: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a model that was idle while another one was used."""
    anywhere.make(name="idle")
    lesson(anywhere, 20)
    anywhere.stop()
    read, kind = [], type(anywhere.service.store)
    rows = kind.read
    monkeypatch.setattr(kind, "read", lambda *given: (read.append(one) or one for one in rows(*given)))
    anywhere.open()
    assert read == [] and anywhere.model().version == 20
    anywhere.decide("one-more")
    anywhere.crash()
    anywhere.open()
    assert [row.event_id for row, _ in read] == ["one-more"]


def test_a_log_that_was_changed_is_noticed(served: Served) -> None:
    lesson(served, 10)
    served.stop()
    store = open_store(served.place)
    store.acquire_lease()
    writer: Any = store._writing()  # type: ignore[attr-defined]
    body = json.loads(writer.execute("select body from log where seq = 4").fetchone()[0])
    body["propensity"] = np.nextafter(body["propensity"], 1.0)
    writer.execute("update log set body = ? where seq = 4", (json.dumps(body),))
    with pytest.raises(ReplayMismatchError, match="event 4 of triage"):
        replay(store)
    writer.execute("delete from snapshots")
    with pytest.raises(ReplayMismatchError, match="event 4"):
        load_models(store)
    assert load_models(store, check=False)["triage"].version == 10
    store.close()


# --- the log for others ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["jsonl", "dsjson"])
def test_the_log_is_read_by_gaptron_evaluate(anywhere: Served, form: str, tmp_path: Path) -> None:
    decisions = lesson(anywhere, 20)
    anywhere.decide("open")
    anywhere.decide("void")
    anywhere.send_outcome("void", void=True)
    anywhere.call("PATCH", "/v1/models/triage", {"add_labels": ["fax"]})
    decisions += lesson(anywhere, 5, start=20)
    path = tmp_path / f"triage.{form}"
    path.write_bytes(anywhere.call("GET", f"/v1/models/triage/log?format={form}").content)
    log = open_log(str(path))
    assert log.classes == (*TRIAGE["labels"], "fax") and log.n_rounds == 25
    assert [log.classes[code] for code in log.codes] == [one["label"] for one in decisions]
    assert log.propensity.tolist() == [one["propensity"] for one in decisions]
    problem(anywhere.call("GET", "/v1/models/triage/log?format=csv"), 422, "invalid")


def test_the_export_contains_decisions_that_timed_out(served: Served, tmp_path: Path) -> None:
    served.make(name="slow", feedback_timeout=60, on_timeout="wrong")
    for t in range(6):
        served.decide(f"e{t}", model="slow")
    served.send_outcome("e2", model="slow", correct=True)
    served.pass_time(61)
    path = tmp_path / "slow.jsonl"
    path.write_bytes(served.call("GET", "/v1/models/slow/log").content)
    assert open_log(str(path)).reward.tolist() == [0, 0, 1, 0, 0, 0]


def test_learning_from_the_export_of_named_features_gives_the_weights_of_the_service(
    anywhere: Served, tmp_path: Path
) -> None:
    """Reading the export encodes the features as the service did, to the bit."""
    anywhere.make(name="named", features="auto", algorithm="squarecb", settings={"horizon": 40})
    for t in range(40):
        given: dict[str, Any] = {"age": 20.0 + t % 9, "town": ["Bonn", "Köln", "_"][t % 3], "new": t % 2 == 0}
        if t % 5 == 0:
            given |= {"rare": f"word-{t}", "gap": None}
        body = {"event_id": f"e{t}", "features": given}
        label = anywhere.call("POST", "/v1/models/named/decisions", body).json()["label"]
        anywhere.send_outcome(f"e{t}", model="named", correct=label == "chat")
    path = tmp_path / "named.jsonl"
    path.write_bytes(anywhere.call("GET", "/v1/models/named/log").content)
    log = open_log(str(path))
    ours = anywhere.model("named").adapter.learner
    assert log.n_rounds == 40 and log.n_features == ours.problem.n_features
    twin = gaptron.Learner("squarecb", classes=log.classes, feedback="bandit", horizon=40, norm=1.0)
    evaluate_learning(twin, log)
    assert (twin.weights == ours.weights).all() and ours.weights.any()
    dsjson = tmp_path / "named.dsjson"
    dsjson.write_bytes(anywhere.call("GET", "/v1/models/named/log?format=dsjson").content)
    other = open_log(str(dsjson))
    assert (other.codes == log.codes).all() and (other.reward == log.reward).all()
    assert np.diff(other.X.indptr).tolist() == [2 + (t % 2 == 0) + (t % 5 == 0) for t in range(40)]


def test_the_log_of_a_model_that_was_in_shadow_mode_can_be_read(served: Served, tmp_path: Path) -> None:
    lesson(served, 4)
    served.call("PATCH", "/v1/models/triage", {"mode": "shadow"})
    served.decide("by-hand", played={"label": "phone", "propensity": 0.5})
    served.send_outcome("by-hand", correct=True)
    path = tmp_path / "log.jsonl"
    path.write_bytes(served.call("GET", "/v1/models/triage/log").content)
    log = open_log(str(path))
    assert log.n_rounds == 5 and log.distribution is None and log.propensity[-1] == 0.5


# --- numbers --------------------------------------------------------------------------------------------------------


def test_the_report_adds_up(served: Served) -> None:
    lesson(served, 120)
    served.decide("open")
    made = served.call("GET", "/v1/models/triage/report").json()
    assert made["summary"].startswith("Learning. 121 decisions, 99 % with an outcome; ")
    assert made["counts"]["decisions"] == 121 and made["counts"]["outcomes"] == 120
    assert sum(one["played"] for one in made["labels"]) == 121
    for part in (made["recent"], *made["recent"]["curve"]):
        assert part["low"] <= part["error_rate"] <= part["high"] and part["high"] - part["low"] > 0.05
    assert {one["label"] for one in made["single_label"]} == set(TRIAGE["labels"])
    for one in made["single_label"]:
        assert 0.0 <= one["low"] <= one["high"] <= 1.0
    assert made["speed"]["uncommitted"] == 0 and 1 <= made["speed"]["events_per_commit"] and made["speed"]["p50_ms"] > 0
    assert "No certificate" in made["certificate"] and sum(one["outcomes"] for one in made["delays"]) == 120


def test_a_label_with_few_outcomes_causes_a_warning(served: Served) -> None:
    for t in range(400):
        label = served.decide(f"e{t}").json()["label"]
        if label != "mail" or t % 3 == 0:
            served.send_outcome(f"e{t}", correct=False)
    (warning,) = served.call("GET", "/v1/models/triage/report").json()["warnings"]
    assert "for mail" in warning and "biased" in warning


def test_prometheus_gets_its_numbers(served: Served) -> None:
    lesson(served, 5)
    text = served.call("GET", "/metrics").text
    assert 'gaptron_events_total{kind="decisions",model="triage"} 5.0' in text
    assert 'gaptron_learned_total{model="triage"} 5.0' in text
    assert "gaptron_ready 1.0" in text and "gaptron_request_seconds_bucket" in text


def test_the_report_comes_as_events(served: Served) -> None:
    lesson(served, 3)

    async def first() -> bytes:
        async with served.client.stream("GET", "/v1/models/triage/events") as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            return await response.aread()

    async def ended() -> bytes:
        import asyncio  # noqa: PLC0415

        task = asyncio.create_task(first())
        while not served.service.reports._reports:  # until the first report is made
            await asyncio.sleep(0.01)
        served.service.state = "stopping"
        text = await task
        served.service.state = "ready"
        return text

    text = served.run(ended()).decode()
    assert text.startswith("id: 7\nevent: report\ndata: {") and json.loads(text.split("data: ")[1])["learned"] == 3


# --- keys over HTTP -------------------------------------------------------------------------------------------------


def test_an_admin_makes_lists_and_revokes_keys(anywhere: Served) -> None:
    def ask(method: str, path: str, key: str, body: Any = None) -> Any:
        return anywhere.call(method, path, body, headers={"Authorization": f"Bearer {key}"})

    problem(anywhere.call("POST", "/v1/keys", {"roles": ["read"]}), 422, "invalid")
    problem(anywhere.call("POST", "/v1/keys", {"roles": ["admin"], "model": "triage"}), 422, "invalid")
    problem(anywhere.call("POST", "/v1/keys", {"roles": ["king"]}), 422, "invalid")
    made = anywhere.call("POST", "/v1/keys", {"roles": ["admin", "read"]})
    assert made.status_code == 201 and made.json()["roles"] == ["admin", "read"]
    admin, id = made.json()["key"], made.json()["id"]
    problem(anywhere.call("GET", "/v1/keys"), 401, "unauthorized")
    small = ask("POST", "/v1/keys", admin, {"roles": ["decide"], "model": "triage"}).json()
    problem(ask("POST", "/v1/keys", small["key"], {"roles": ["admin"]}), 403, "forbidden")
    problem(ask("GET", "/v1/keys", small["key"]), 403, "forbidden")
    path = "/v1/models/triage/decisions"
    assert ask("POST", path, small["key"], {"x": [0.1, 0.2]}).status_code == 201
    shown = ask("GET", "/v1/keys", admin).json()["keys"]
    assert {one["id"]: one["revoked"] for one in shown} == {id: False, small["id"]: False}
    assert all(set(one) == {"id", "roles", "model", "revoked"} for one in shown), "no secret, no hash"
    assert ask("DELETE", f"/v1/keys/{small['id']}", admin).json()["revoked"] is True
    problem(ask("POST", path, small["key"], {"x": [0.1, 0.2]}), 401, "unauthorized")
    problem(ask("DELETE", f"/v1/keys/{id}", admin), 409, "last-key")
    problem(ask("DELETE", "/v1/keys/nobody", admin), 404, "not-found")
    second = ask("POST", "/v1/keys", admin, {"roles": ["admin"]}).json()
    assert ask("DELETE", f"/v1/keys/{id}", second["key"]).status_code == 200
    problem(ask("GET", "/v1/keys", admin), 401, "unauthorized")
    anywhere.stop()
    anywhere.open()
    assert len(ask("GET", "/v1/keys", second["key"]).json()["keys"]) == 3
