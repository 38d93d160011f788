"""The service as its callers see it: what it takes, what it answers, and what it refuses with nothing changed."""

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gaptron
from gaptron.logged import open_log, teach
from gaptron.serve import adapter, snapshots
from gaptron.serve.fold import DifferenceError, Model
from gaptron.serve.replay import folded, replay
from gaptron.serve.store import open_store
from tests.serve.served import START, TRIAGE, Served

ROWS = np.random.default_rng(0).normal(size=(200, 2)) / 3


def problem(response: Any, status: int, kind: str) -> str:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == status and body["type"] == f"/problems/{kind}" and body["title"]
    return str(body["detail"])


def weights(served: Served, model: str = "triage") -> str:
    return checksum(served.model(model))


def checksum(model: Model) -> str:
    """Of all that a model is."""
    return snapshots.checksum(snapshots.packed(model))


def lesson(served: Served, rounds: int = 30, start: int = 0, **more: Any) -> list[dict[str, Any]]:
    """Decide and answer; chat is right where the first number is positive, else mail."""
    answers = []
    for t in range(start, start + rounds):
        decision = served.decide(f"e{t}", tuple(ROWS[t]), **more).json()
        truth = "chat" if ROWS[t, 0] > 0 else "mail"
        assert served.answer(f"e{t}", correct=decision["label"] == truth).json()["status"] == "recorded"
        answers.append(decision)
    return answers


# --- deciding -------------------------------------------------------------------------------------------------------


def test_a_decision_says_what_it_was_drawn_from(anywhere: Served) -> None:
    response = anywhere.decide("order-7")
    assert response.status_code == 201
    body = response.json()
    assert body["event_id"] == "order-7" and body["model"] == "triage" and body["version"] == 0
    assert list(body["distribution"]) == TRIAGE["labels"]
    assert body["distribution"][body["label"]] == body["probability"]
    assert sum(body["distribution"].values()) == pytest.approx(1.0)


def test_the_same_request_gets_the_same_answer_and_another_is_refused(anywhere: Served) -> None:
    first = anywhere.decide("order-7")
    lesson(anywhere, 5)
    again = anywhere.decide("order-7")
    assert (again.status_code, again.headers["idempotent-replay"]) == (200, "true")
    assert again.json() == first.json()
    before = weights(anywhere)
    assert "order-7" in problem(anywhere.decide("order-7", (0.3, 0.9)), 422, "other-request")
    assert weights(anywhere) == before


def test_an_event_that_memory_forgot_is_found_in_the_log(anywhere: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gaptron.serve.desk.REMEMBERED", 1)
    first = anywhere.decide("a").json()
    for event in "bcd":
        anywhere.decide(event)
    assert len(anywhere.service.desk._recent) < 4
    assert anywhere.decide("a").json() == first
    problem(anywhere.decide("a", (9.0, 9.0)), 422, "other-request")
    assert anywhere.answer("a", correct=True).json() == {"event_id": "a", "status": "recorded"}
    for event in "bcd":
        anywhere.decide(event)
    assert anywhere.answer("a", correct=True).json()["status"] == "duplicate"


def test_memory_keeps_what_is_not_on_disk_yet(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """However little it may remember: a retry would be decided anew, and the log would have the event twice."""
    monkeypatch.setattr("gaptron.serve.desk.REMEMBERED", 1)
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
    assert served.answer(one["event_id"], correct=True).json()["status"] == "recorded"


def test_dense_and_sparse_rows_are_the_same_row(served: Served) -> None:
    for name in ("dense", "sparse"):
        served.make(name=name, features=4)
    sparse = {"indices": [3, 1], "values": [0.5, -1.0]}
    one = served.decide("a", [0, -1.0, 0, 0.5], model="dense").json()["distribution"]
    two = served.decide("a", sparse, model="sparse").json()["distribution"]
    assert one == pytest.approx(two)
    for name, x in (("dense", [0, -1.0, 0, 0.5]), ("sparse", sparse)):
        served.decide("b", x, model=name)
        served.answer("b", model=name, correct=True)
    for name, x in (("dense", sparse), ("sparse", [0, -1.0, 0, 0.5])):
        assert served.decide("c", x, model=name).status_code == 201


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"x": [0.3]}, "1 numbers; the model has 2"),
        ({"x": []}, "x"),
        ({}, "either x or features"),
        ({"x": [1, 2], "features": {"a": 1}}, "either x or features"),
        ({"features": {"a": 1}}, "rows as x"),
        ({"x": [1.0, "2"]}, "float"),
        ({"x": [1.0, True]}, "float"),
        ({"x": [100.0, 0.0]}, "norm"),
        ({"x": [1e-200, 0.0]}, "norm"),
        ({"x": {"indices": [0], "values": [1.0, 2.0]}}, "1 indices but 2 values"),
        ({"x": {"indices": [0, 0], "values": [1.0, 2.0]}}, "twice"),
        ({"x": {"indices": [2], "values": [1.0]}}, "column 2"),
        ({"x": {"indices": [-1], "values": [1.0]}}, "0"),
        ({"x": [0.3, 1.0], "event_id": "../x"}, "event_id"),
        ({"x": [0.3, 1.0], "event_id": "a\n"}, "event_id"),
        ({"x": [0.3, 1.0], "event_id": "x" * 129}, "event_id"),
        ({"x": [0.3, 1.0], "advice": {"mail": 1.0}}, "advice"),
        ({"x": [0.3, 1.0], "played": {"label": "mail"}}, "apprentice"),
        ({"x": [0.3, 1.0], "exclude": ["mail", "chat", "phone"]}, "no label is left"),
        ({"x": [0.3, 1.0], "exclude": ["fax"]}, "'fax'"),
        ({"x": [0.3, 1.0], "colour": 1}, "colour"),
    ],
)
def test_what_cannot_be_decided_is_refused_and_changes_nothing(served: Served, body: Any, words: str) -> None:
    served.decide("first")
    before, last = weights(served), served.service.desk._seq
    assert words in problem(served.call("POST", "/v1/models/triage/decisions", body), 422, "invalid")
    assert weights(served) == before and served.service.desk._seq == last


@pytest.mark.parametrize("among", [{"exclude": ["mail"]}, {"among": ["chat", "phone"]}])
def test_labels_that_are_not_available_are_never_played(served: Served, among: Any) -> None:
    served.make(name="some", algorithm="advised-gaptron", settings={}, control=0.1)
    response = served.decide("a", model="some", **among)
    if not adapter.CAN_EXCLUDE:
        assert "not known to this version" in problem(response, 422, "invalid")
        return
    for t in range(50):
        body = served.decide(f"e{t}", tuple(ROWS[t]), model="some", **among).json()
        assert body["label"] != "mail" and body["distribution"]["mail"] == 0.0
        assert sum(body["distribution"].values()) == pytest.approx(1.0)
        served.answer(f"e{t}", model="some", correct=body["label"] == "chat")
    served.stop()
    served.open()
    assert replay(served.service.store).decisions == 51


def test_features_may_have_names(served: Served) -> None:
    spec = {"name": "named", "algorithm": "advised-gaptron", "settings": {}, "features": "auto"}
    if not adapter.CAN_NAME:
        assert "not known to this version" in problem(served.make(**spec), 422, "invalid")
        return
    assert served.make(**spec).status_code == 201
    url = "/v1/models/named/decisions"
    for t in range(60):
        row = {"amount": 3.5 * t, "country": ["NL", "BE"][t % 2], "member": t % 3 == 0, "gap": None}
        body = served.call("POST", url, {"event_id": f"e{t}", "features": row}).json()
        assert (
            served.answer(f"e{t}", model="named", correct=(body["label"] == "chat") == (t % 2 == 0)).status_code == 200
        )
    problem(served.call("POST", url, {"x": [1.0]}), 422, "invalid")
    before = weights(served, "named")
    served.crash()
    served.open()
    assert weights(served, "named") == before
    assert replay(served.service.store).decisions == 60


def test_advice_is_heard(served: Served) -> None:
    served.make(name="advised", algorithm="advised-gaptron", settings={})
    for t in range(40):
        x, right = tuple(ROWS[t]), ["mail", "chat", "phone"][t % 3]
        decision = served.decide(f"e{t}", x, model="advised", advice={right: 1.0}).json()
        served.answer(f"e{t}", model="advised", correct=decision["label"] == right)
    p = served.decide("last", (0.1, 0.2), model="advised", advice={"phone": 0.9, "mail": 0.1}).json()["distribution"]
    assert max(p, key=p.get) == "phone"
    heard = served.call("GET", "/v1/models/advised/report").json()["heard"]
    assert max(heard, key=heard.get) == "caller"


# --- answering ------------------------------------------------------------------------------------------------------


def test_the_first_answer_stands(anywhere: Served) -> None:
    anywhere.decide("a")
    assert anywhere.answer("a", correct=True).json() == {"event_id": "a", "status": "recorded"}
    after = weights(anywhere)
    assert anywhere.answer("a", correct=True).json()["status"] == "duplicate"
    refused = anywhere.answer("a", correct=False)
    problem(refused, 409, "conflict")
    assert refused.json()["outcome"] == {"correct": True}
    assert weights(anywhere) == after
    shown = anywhere.call("GET", "/v1/models/triage/decisions/a").json()
    assert shown["outcome"] == {"correct": True} and shown["at"].startswith("2027-")


def test_an_answer_to_nothing_is_refused(served: Served) -> None:
    assert "no decision" in problem(served.answer("nobody", correct=True), 404, "unknown")
    problem(served.call("GET", "/v1/models/triage/decisions/nobody"), 404, "unknown")
    problem(served.answer("a", model="none", correct=True), 404, "unknown")


@pytest.mark.parametrize(
    "outcome",
    [{}, {"correct": True, "label": "mail"}, {"label": "fax"}, {"reward": 2.0}, {"void": False}, {"correct": 1}],
)
def test_an_answer_in_other_words_is_refused_and_can_be_mended(served: Served, outcome: Any) -> None:
    served.decide("a")
    problem(served.answer("a", **outcome), 422, "invalid")
    assert served.answer("a", correct=False).json()["status"] == "recorded"


@pytest.mark.parametrize(
    ("outcome", "count"), [({"void": True}, "void"), ({"correct": True, "played": None}, "overridden")]
)
def test_what_came_to_nothing_teaches_nothing(served: Served, outcome: Any, count: str) -> None:
    label = served.decide("a").json()["label"]
    if "played" in outcome:
        outcome["played"] = next(other for other in TRIAGE["labels"] if other != label)
    before = served.model().adapter.learner.weights
    assert served.answer("a", **outcome).json()["status"] == "recorded"
    assert (served.model().adapter.learner.weights == before).all() and served.model().version == 0
    assert served.call("GET", "/v1/models/triage/report").json()["counts"][count] == 1


def test_the_right_label_is_an_answer_too(served: Served) -> None:
    served.make(name="full", feedback="full", algorithm="perceptron", settings={})
    for t in range(60):
        served.decide(f"e{t}", tuple(ROWS[t]), model="full")
        served.answer(f"e{t}", model="full", label="chat" if ROWS[t, 0] > 0 else "mail")
    p = served.decide("last", (0.9, 0.0), model="full").json()
    assert p["label"] == "chat"
    problem(served.answer("last", model="full", correct=False), 422, "invalid")
    assert served.answer("last", model="full", correct=True).json()["status"] == "recorded"


def test_a_reward_of_one_is_right_and_of_zero_wrong(served: Served) -> None:
    served.make(name="twin")
    for t in range(20):
        for name in ("triage", "twin"):
            served.service.desk.models["twin"].key = served.model().key  # the same draws
            label = served.decide(f"e{t}", tuple(ROWS[t]), model=name).json()["label"]
            right = label == "chat"
            served.answer(f"e{t}", model=name, **({"correct": right} if name == "triage" else {"reward": float(right)}))
    one, two = (served.model(name).adapter.learner.weights for name in ("triage", "twin"))
    assert (one == two).all() and one.any()
    response = served.answer(served.decide("half").json()["event_id"], reward=0.5)
    assert response.status_code == (200 if served.model().adapter.takes_fractions else 422)


# --- learning is what the library does ------------------------------------------------------------------------------


def test_weights_are_those_of_a_learner_taught_the_log(served: Served) -> None:
    decisions = lesson(served, 60)
    settings: Any = TRIAGE["settings"]
    twin = gaptron.Learner("gaptron", classes=TRIAGE["labels"], feedback="bandit", seed=0, **settings)
    for t, decision in enumerate(decisions):
        p = twin.distribution(ROWS[t][None])[0]
        assert decision["distribution"] == dict(zip(TRIAGE["labels"], p.tolist()))
        truth = "chat" if ROWS[t, 0] > 0 else "mail"
        twin.learn_logged(ROWS[t], decision["label"], decision["probability"], correct=decision["label"] == truth)
    assert (served.model().adapter.learner.weights == twin.weights).all() and twin.weights.any()


def test_labels_that_were_not_available_are_not_learned_about(served: Served) -> None:
    """The learner is told what could be played when it learns, too."""
    served.make(name="some", algorithm="banditron", settings={"gamma": 0.3}, features=2)
    twin = gaptron.Learner("banditron", classes=TRIAGE["labels"], feedback="bandit", gamma=0.3, n_features=2)
    for t in range(30):
        left = [label for label in TRIAGE["labels"] if label != TRIAGE["labels"][t % 3]]
        made = served.decide(f"e{t}", tuple(ROWS[t]), model="some", exclude=[TRIAGE["labels"][t % 3]]).json()
        assert made["label"] in left
        served.answer(f"e{t}", model="some", correct=made["label"] == "chat")
        twin.learn_logged(ROWS[t], made["label"], made["probability"], correct=made["label"] == "chat", among=left)
    assert (served.model("some").adapter.learner.weights == twin.weights).all() and twin.weights.any()


def test_a_shorter_wait_is_over_first(served: Served) -> None:
    """What is due is learned in the order of when it was due, not of when it was asked."""
    served.make(name="slow", wait=60, default="wrong")
    for t in range(6):
        served.decide(f"long-{t}", tuple(ROWS[t]), model="slow")
        served.time += 1_000_000
    served.call("PATCH", "/v1/models/slow", {"wait": 10})
    for t in range(6, 12):
        served.decide(f"short-{t}", tuple(ROWS[t]), model="slow")
        served.time += 1_000_000
    order = [*(f"short-{t}" for t in range(6, 12)), *(f"long-{t}" for t in range(6))]
    learned: list[str] = []
    model, learn = served.model("slow"), served.model("slow")._learn
    waiting = {id(held.decision): event for event, held in model.waiting.items()}
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


# --- waiting --------------------------------------------------------------------------------------------------------


def test_with_a_default_all_is_learned_when_the_wait_is_over_in_the_order_of_the_decisions(anywhere: Served) -> None:
    anywhere.make(name="slow", wait=60, default="wrong")
    labels = {}
    for t in range(10):
        decision = anywhere.decide(f"e{t}", tuple(ROWS[t]), model="slow").json()
        labels[t] = decision["label"]
        assert decision["answer_by"].startswith("2027-")
        anywhere.time += 1_000_000
    for t in (7, 2, 4):
        assert anywhere.answer(f"e{t}", model="slow", correct=True).json()["status"] == "recorded"
    anywhere.tick()
    model = anywhere.model("slow")
    assert model.version == 0 and len(model.waiting) == 10, "nothing is learned before"
    anywhere.pass_time(54.5)
    assert model.version == 5 and anywhere.answer("e3", model="slow", correct=True).json()["status"] == "late"
    anywhere.pass_time(10)
    assert model.version == 10 and not model.waiting
    twin = gaptron.Learner("gaptron", classes=TRIAGE["labels"], feedback="bandit", seed=0, **TRIAGE["settings"])
    shown = [anywhere.call("GET", f"/v1/models/slow/decisions/e{t}").json() for t in range(10)]
    for t, one in enumerate(shown):
        twin.learn_logged(ROWS[t], one["label"], one["probability"], correct=t in (7, 2, 4))
    assert (model.adapter.learner.weights == twin.weights).all()
    assert model.tally.defaulted == 7 and model.tally.late == 1
    assert anywhere.answer("e3", model="slow", correct=True).json()["status"] == "duplicate"


def test_without_a_default_a_late_answer_is_kept_and_not_learned(served: Served) -> None:
    served.make(name="quick", wait=5)
    served.decide("a", model="quick")
    served.decide("b", model="quick")
    served.time += 5_000_000
    assert served.answer("a", model="quick", correct=True).json()["status"] == "recorded"
    served.time += 1
    assert served.answer("b", model="quick", correct=True).json()["status"] == "late"
    assert served.model("quick").version == 1


def test_a_clock_that_goes_back_or_stands_still_harms_nothing(served: Served) -> None:
    served.make(name="slow", wait=60, default="wrong")
    served.decide("a", model="slow")
    served.time -= 3600 * 1_000_000
    served.decide("b", model="slow")
    served.tick()
    assert served.model("slow").version == 0
    rows = [row for row, _ in served.service.store.read()]
    assert [row.at for row in rows] == sorted(row.at for row in rows)
    served.time = START
    served.pass_time(61)
    assert served.model("slow").version == 2


# --- apprentice, labels, control ------------------------------------------------------------------------------------


def test_an_apprentice_learns_from_what_the_caller_played(served: Served) -> None:
    served.make(name="pupil", mode="apprentice")
    problem(served.decide("a", model="pupil"), 422, "invalid")
    for t in range(30):
        played = {"label": ["mail", "chat"][t % 2], "probability": 0.5}
        decision = served.decide(f"e{t}", tuple(ROWS[t]), model="pupil", played=played).json()
        assert (decision["label"], decision["probability"]) == (played["label"], 0.5)
        assert decision["would"] in TRIAGE["labels"] and "distribution" not in decision
        served.answer(f"e{t}", model="pupil", correct=bool((ROWS[t, 0] > 0) == (t % 2)))
    assert served.model("pupil").version == 30
    assert "Apprentice." in served.call("GET", "/v1/models/pupil/report").json()["sentence"]
    served.call("PATCH", "/v1/models/pupil", {"mode": "live"})
    assert served.decide("b", model="pupil").status_code == 201


def test_labels_can_be_added_while_decisions_are_open(anywhere: Served) -> None:
    lesson(anywhere, 10)
    anywhere.decide("open")
    shown = anywhere.call("PATCH", "/v1/models/triage", {"add_labels": ["fax", "visit"]}).json()
    assert shown["labels"] == [*TRIAGE["labels"], "fax", "visit"]
    assert anywhere.answer("open", correct=True).json()["status"] == "recorded"
    assert list(anywhere.decide("next").json()["distribution"]) == shown["labels"]
    for again in (["fax"], ["a", "a"]):
        problem(anywhere.call("PATCH", "/v1/models/triage", {"add_labels": again}), 422, "invalid")
    changes = anywhere.call("GET", "/v1/models/triage/report").json()["changes"]
    assert [change["what"] for change in changes] == ["labels added: fax, visit"]


def test_a_control_share_keeps_every_label_possible(served: Served) -> None:
    served.make(name="shared", control=0.3)
    for t in range(60):
        p = served.decide(f"e{t}", tuple(ROWS[t]), model="shared").json()["distribution"]
        assert min(p.values()) >= 0.1 - 1e-12
        served.answer(f"e{t}", model="shared", correct=True)


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
        ({"feedback": "full", "default": "wrong", "wait": 60}, "full information"),
        ({"default": "wrong"}, "wait"),
        ({"wait": 1}, "wait"),
        ({"control": 1.0}, "control"),
        ({"seed": -1}, "seed"),
    ],
)
def test_models_that_cannot_be_are_refused(served: Served, spec: Any, words: str) -> None:
    assert words in problem(served.make(**{"name": "new", **spec}), 422, "invalid")
    assert list(served.service.desk.models) == ["triage"]


def test_a_change_of_nothing_is_refused(served: Served) -> None:
    assert "what shall change" in problem(served.call("PATCH", "/v1/models/triage", {}), 422, "invalid")
    problem(served.call("PATCH", "/v1/models/triage", {"default": "wrong"}), 422, "invalid")
    assert served.call("PATCH", "/v1/models/triage", {"wait": 60, "default": "wrong"}).json()["wait"] == 60
    problem(served.call("PATCH", "/v1/models/triage", {"wait": None}), 422, "invalid")
    shown = served.call("PATCH", "/v1/models/triage", {"wait": None, "default": "nothing"}).json()
    assert (shown.get("wait"), shown["default"]) == (None, "nothing")


def test_rows_may_be_wide_if_they_are_sparse(served: Served) -> None:
    assert served.make(name="wide", features=1_000_000).status_code == 201
    assert served.decide("a", {"indices": [999_999], "values": [1.0]}, model="wide").status_code == 201
    assert served.answer("a", model="wide", correct=True).json()["status"] == "recorded"


def test_a_model_is_made_once(served: Served) -> None:
    problem(served.make(), 409, "exists")
    assert [model["name"] for model in served.call("GET", "/v1/models").json()["models"]] == ["triage"]
    assert served.call("GET", "/v1/models/triage").json()["labels"] == TRIAGE["labels"]


# --- many at once ---------------------------------------------------------------------------------------------------


def test_a_batch_is_as_if_one_by_one_and_written_at_once(anywhere: Served) -> None:
    anywhere.make(name="twin")
    anywhere.service.desk.models["twin"].key = anywhere.model().key
    rows = [{"event_id": f"e{t}", "x": list(ROWS[t])} for t in range(20)]
    rows[5] = {"event_id": "bad", "x": [1.0]}
    commits = anywhere.service.desk.committer.commits
    results = anywhere.call("POST", "/v1/models/twin/decisions/batch", {"decisions": rows}).json()["decisions"]
    assert anywhere.service.desk.committer.commits - commits == 1
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
    anywhere.make(name="slow", wait=60, default="wrong")
    lesson(anywhere, 20)
    anywhere.call("PATCH", "/v1/models/triage", {"add_labels": ["fax"]})
    lesson(anywhere, 10, start=20)
    for t in range(5):
        anywhere.decide(f"s{t}", model="slow")
    anywhere.answer("s1", model="slow", correct=True)
    anywhere.decide("open")
    before = {name: weights(anywhere, name) for name in ("triage", "slow")}
    getattr(anywhere, way)()
    anywhere.open()
    assert {name: weights(anywhere, name) for name in before} == before
    assert anywhere.decide("open").headers["idempotent-replay"] == "true"
    assert anywhere.answer("open", correct=True).json()["status"] == "recorded"
    anywhere.pass_time(61)
    assert anywhere.model("slow").version == 5
    done = replay(anywhere.service.store)
    assert {name: checksum(model) for name, model in done.models.items()} == {
        name: weights(anywhere, name) for name in before
    }
    assert done.snapshots == (2 if way == "stop" else 0)


@pytest.mark.parametrize("way", ["stop", "crash"])
def test_a_restart_keeps_the_rules(anywhere: Served, way: str) -> None:
    anywhere.call("PATCH", "/v1/models/triage", {"wait": 60, "default": "wrong", "add_labels": ["fax"]})
    anywhere.call("PATCH", "/v1/models/triage", {"mode": "apprentice"})
    lesson_at = {"played": {"label": "fax", "probability": 0.5}}
    anywhere.decide("a", **lesson_at)
    before = anywhere.call("GET", "/v1/models/triage").json()
    getattr(anywhere, way)()
    anywhere.open()
    assert anywhere.call("GET", "/v1/models/triage").json() == before
    assert (before["mode"], before["wait"], before["default"], before["features"]) == ("apprentice", 60, "wrong", 2)
    assert anywhere.decide("b").status_code == 422, "it must be told what was played"


def test_a_start_reads_only_what_is_behind_the_snapshots(anywhere: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a model that has been idle while another one grew."""
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
    assert [row.event for row, _ in read] == ["one-more"]


def test_a_log_that_was_changed_is_noticed(served: Served) -> None:
    lesson(served, 10)
    served.stop()
    store = open_store(served.place)
    store.lead()
    writer: Any = store._writing()  # type: ignore[attr-defined]
    body = json.loads(writer.execute("select body from log where seq = 4").fetchone()[0])
    body["probability"] = np.nextafter(body["probability"], 1.0)
    writer.execute("update log set body = ? where seq = 4", (json.dumps(body),))
    with pytest.raises(DifferenceError, match="entry 4 of triage"):
        replay(store)
    writer.execute("delete from snapshots")
    with pytest.raises(DifferenceError, match="entry 4"):
        folded(store)
    assert folded(store, check=False)["triage"].version == 10
    store.close()


# --- the log for others ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["jsonl", "dsjson"])
def test_the_log_is_read_by_gaptron_evaluate(anywhere: Served, form: str, tmp_path: Path) -> None:
    decisions = lesson(anywhere, 20)
    anywhere.decide("open")
    anywhere.decide("void")
    anywhere.answer("void", void=True)
    anywhere.call("PATCH", "/v1/models/triage", {"add_labels": ["fax"]})
    decisions += lesson(anywhere, 5, start=20)
    path = tmp_path / f"triage.{form}"
    path.write_bytes(anywhere.call("GET", f"/v1/models/triage/log?format={form}").content)
    log = open_log(str(path))
    assert log.classes == (*TRIAGE["labels"], "fax") and log.n_rounds == 25
    assert [log.classes[code] for code in log.codes] == [one["label"] for one in decisions]
    assert log.probability.tolist() == [one["probability"] for one in decisions]
    problem(anywhere.call("GET", "/v1/models/triage/log?format=csv"), 422, "invalid")


def test_the_log_of_a_default_counts_what_was_not_answered(served: Served, tmp_path: Path) -> None:
    served.make(name="slow", wait=60, default="wrong")
    for t in range(6):
        served.decide(f"e{t}", model="slow")
    served.answer("e2", model="slow", correct=True)
    served.pass_time(61)
    path = tmp_path / "slow.jsonl"
    path.write_bytes(served.call("GET", "/v1/models/slow/log").content)
    assert open_log(str(path)).reward.tolist() == [0, 0, 1, 0, 0, 0]


def test_the_log_of_named_features_teaches_what_the_service_learned(anywhere: Served, tmp_path: Path) -> None:
    """Read from the lines alone, the rows are those of the service's own encoder, to the bit."""
    anywhere.make(name="named", features="auto", algorithm="squarecb", settings={"horizon": 40})
    for t in range(40):
        given: dict[str, Any] = {"age": 20.0 + t % 9, "town": ["Bonn", "Köln", "_"][t % 3], "new": t % 2 == 0}
        if t % 5 == 0:
            given |= {"rare": f"word-{t}", "gap": None}
        body = {"event_id": f"e{t}", "features": given}
        label = anywhere.call("POST", "/v1/models/named/decisions", body).json()["label"]
        anywhere.answer(f"e{t}", model="named", correct=label == "chat")
    path = tmp_path / "named.jsonl"
    path.write_bytes(anywhere.call("GET", "/v1/models/named/log").content)
    log = open_log(str(path))
    ours = anywhere.model("named").adapter.learner
    assert log.n_rounds == 40 and log.n_features == ours.problem.n_features
    twin = gaptron.Learner("squarecb", classes=log.classes, feedback="bandit", horizon=40, norm=1.0)
    teach(twin, log)
    assert (twin.weights == ours.weights).all() and ours.weights.any()
    dsjson = tmp_path / "named.dsjson"
    dsjson.write_bytes(anywhere.call("GET", "/v1/models/named/log?format=dsjson").content)
    other = open_log(str(dsjson))
    assert (other.codes == log.codes).all() and (other.reward == log.reward).all()
    assert np.diff(other.X.indptr).tolist() == [2 + (t % 2 == 0) + (t % 5 == 0) for t in range(40)]


def test_the_log_of_a_former_apprentice_can_be_read(served: Served, tmp_path: Path) -> None:
    lesson(served, 4)
    served.call("PATCH", "/v1/models/triage", {"mode": "apprentice"})
    served.decide("by-hand", played={"label": "phone", "probability": 0.5})
    served.answer("by-hand", correct=True)
    path = tmp_path / "log.jsonl"
    path.write_bytes(served.call("GET", "/v1/models/triage/log").content)
    log = open_log(str(path))
    assert log.n_rounds == 5 and log.distribution is None and log.probability[-1] == 0.5


# --- numbers --------------------------------------------------------------------------------------------------------


def test_the_report_adds_up(served: Served) -> None:
    lesson(served, 120)
    served.decide("open")
    made = served.call("GET", "/v1/models/triage/report").json()
    assert made["sentence"].startswith("Learning. 121 decisions, 99 % answered, ")
    assert made["counts"]["decisions"] == 121 and made["counts"]["answered"] == 120
    assert sum(one["played"] for one in made["labels"]) == 121
    for part in (made["recent"], *made["recent"]["curve"]):
        assert part["low"] <= part["wrong"] <= part["high"] and part["high"] - part["low"] > 0.05
    assert {one["label"] for one in made["always"]} == set(TRIAGE["labels"])
    for one in made["always"]:
        assert 0.0 <= one["low"] <= one["high"] <= 1.0
    assert made["speed"]["waiting"] == 0 and 1 <= made["speed"]["batch"] and made["speed"]["p50_ms"] > 0
    assert "No certificate" in made["certificate"] and sum(one["answers"] for one in made["delays"]) == 120


def test_a_label_that_is_seldom_answered_is_warned_of(served: Served) -> None:
    for t in range(400):
        label = served.decide(f"e{t}").json()["label"]
        if label != "mail" or t % 3 == 0:
            served.answer(f"e{t}", correct=False)
    (warning,) = served.call("GET", "/v1/models/triage/report").json()["warnings"]
    assert "mail in " in warning and "biased" in warning


def test_prometheus_gets_its_numbers(served: Served) -> None:
    lesson(served, 5)
    text = served.call("GET", "/metrics").text
    assert 'gaptron_events_total{model="triage",what="decisions"} 5.0' in text
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
        await asyncio.sleep(0.2)
        served.service.state = "closing"
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
    problem(anywhere.call("GET", "/v1/keys"), 401, "key")
    small = ask("POST", "/v1/keys", admin, {"roles": ["decide"], "model": "triage"}).json()
    problem(ask("POST", "/v1/keys", small["key"], {"roles": ["admin"]}), 403, "role")
    problem(ask("GET", "/v1/keys", small["key"]), 403, "role")
    path = "/v1/models/triage/decisions"
    assert ask("POST", path, small["key"], {"x": [0.1, 0.2]}).status_code == 201
    shown = ask("GET", "/v1/keys", admin).json()["keys"]
    assert {one["id"]: one["revoked"] for one in shown} == {id: False, small["id"]: False}
    assert all(set(one) == {"id", "roles", "model", "revoked"} for one in shown), "no secret, no hash"
    assert ask("DELETE", f"/v1/keys/{small['id']}", admin).json()["revoked"] is True
    problem(ask("POST", path, small["key"], {"x": [0.1, 0.2]}), 401, "key")
    problem(ask("DELETE", f"/v1/keys/{id}", admin), 409, "last-key")
    problem(ask("DELETE", "/v1/keys/nobody", admin), 404, "unknown")
    second = ask("POST", "/v1/keys", admin, {"roles": ["admin"]}).json()
    assert ask("DELETE", f"/v1/keys/{id}", second["key"]).status_code == 200
    problem(ask("GET", "/v1/keys", admin), 401, "key")
    anywhere.stop()
    anywhere.open()
    assert len(ask("GET", "/v1/keys", second["key"]).json()["keys"]) == 3
