"""Challengers: learners beside the live one, compared with it by the logged propensities, and promoted."""

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from gaptron.learner import Learner
from gaptron.offpolicy import ActionLog, evaluate_learning, open_log
from gaptron.serve import snapshots
from gaptron.serve.adapter import Adapter
from gaptron.serve.replay import load_models, replay
from gaptron.streams.actions import open_actions
from tests.serve.news import choose, likes, make_news, visits
from tests.serve.postgres import with_schema
from tests.serve.served import SMALL, Served
from tests.serve.served import TRIAGE as TRIAGE_SPEC
from tests.serve.test_api import problem

TRIAGE = "/v1/models/triage"
COLOURS = {"name": "colours", "labels": ["left", "right"], "algorithm": "frugal-gaptron", "features": "auto"}


def challenge(served: Served, name: str, model: str = "triage", **spec: Any) -> httpx.Response:
    return served.call("PUT", f"/v1/models/{model}/challengers/{name}", spec)


def challengers(served: Served, model: str = "triage") -> dict[str, Any]:
    listed = served.call("GET", f"/v1/models/{model}/challengers").json()["challengers"]
    return {one["name"]: one for one in listed}


def lesson(served: Served, count: int, start: int = 0, **outcome: Any) -> None:
    """The second feature says whether chat or phone is right."""
    for t in range(start, start + count):
        x = (0.3, 1.0 if t % 3 else -1.0)
        made = served.decide(f"e{t}", x).json()
        right = made["label"] == ("chat" if x[1] > 0 else "phone")
        sent = served.send_outcome(f"e{t}", **(outcome or {"correct": right}))
        assert sent.status_code == 200, sent.text


def colours(served: Served, count: int, start: int = 0) -> None:
    """The colour says whether left or right is right; the noise says nothing."""
    rng = np.random.default_rng(start)
    for t in range(start, start + count):
        colour, noise = rng.choice(["red", "blue"]), str(rng.integers(3))
        request = {"event_id": f"e{t}", "features": {"colour": colour, "noise": noise}}
        made = served.call("POST", "/v1/models/colours/decisions", request).json()
        right = made["label"] == {"red": "left", "blue": "right"}[colour]
        assert served.send_outcome(f"e{t}", "colours", correct=right).status_code == 200


def weights(model: Any) -> Any:
    return model.adapter.learner.weights.tolist()


@pytest.fixture
def blind(served: Served) -> Iterator[Served]:
    """A model that does not use the feature that matters, with a challenger that does."""
    made = served.call("POST", "/v1/models", {**COLOURS, "epsilon": 0.2, "use_features": ["noise"]})
    assert made.json()["use_features"] == ["noise"]
    assert challenge(served, "all-features", "colours", algorithm="frugal-gaptron").status_code == 201
    colours(served, 300)
    yield served


# --- what users see -------------------------------------------------------------------------------------------------


def test_a_challenger_is_added_listed_and_removed(anywhere: Served) -> None:
    added = challenge(anywhere, "second", algorithm="banditron", settings={"gamma": 0.1})
    assert added.status_code == 201 and added.json()["decisions"] == 0 and added.json()["error_rate"] is None
    assert challenge(anywhere, "second", algorithm="banditron", settings={"gamma": 0.1}).status_code == 200
    assert problem(challenge(anywhere, "second", algorithm="banditron"), 409, "already-exists")
    lesson(anywhere, 30)
    shown = challengers(anywhere)["second"]
    assert (shown["algorithm"], shown["settings"], shown["seed"]) == ("banditron", {"gamma": 0.1}, 0)
    assert anywhere.call("GET", TRIAGE + "/report").json()["challengers"] == [shown]
    assert shown["decisions"] == 30 and shown["comparison"] == "unknown" and shown["stopped"] is None
    for one in (shown, shown["live"], shown["difference"]):
        assert -1.0 <= one["low"] <= one["error_rate"] <= one["high"] <= 1.0
    assert replay(anywhere.service.store).decisions == 30
    assert anywhere.call("DELETE", TRIAGE + "/challengers/second").status_code == 204
    assert challengers(anywhere) == {}
    assert problem(anywhere.call("DELETE", TRIAGE + "/challengers/second"), 404, "not-found")
    lesson(anywhere, 5, 30)
    replay(anywhere.service.store)


def test_a_challenger_that_uses_the_right_feature_is_better_and_is_promoted(blind: Served) -> None:
    shown = challengers(blind, "colours")["all-features"]
    assert shown["comparison"] == "better" and shown["decisions_needed"] is None
    assert shown["difference"]["high"] < 0.0
    assert shown["high"] > shown["live"]["low"], "the two intervals alone do not prove it"
    learner = blind.model("colours").challengers["all-features"].adapter
    promoted = blind.call("POST", "/v1/models/colours/promote", {"challenger": "all-features"})
    assert promoted.status_code == 200
    assert "use_features" not in promoted.json() and promoted.json()["learned"] == 300
    assert blind.model("colours").adapter is learner
    former = challengers(blind, "colours")
    assert list(former) == ["former"] and former["former"]["use_features"] == ["noise"]
    assert former["former"]["decisions"] == 0, "another policy is live now"
    colours(blind, 300, 300)
    assert challengers(blind, "colours")["former"]["comparison"] == "worse"
    assert blind.call("GET", "/v1/models/colours/report").json()["changes"][-1]["what"] == (
        "promoted: all-features (frugal-gaptron)"
    )
    assert replay(blind.service.store).decisions == 600


def test_the_report_says_about_how_many_more_outcomes_are_needed(blind: Served) -> None:
    challenge(blind, "third", "colours", algorithm="frugal-gaptron")
    colours(blind, 30, 300)
    shown = challengers(blind, "colours")["third"]
    assert shown["comparison"] == "unknown"
    needed = shown["decisions_needed"]
    assert needed > 0
    colours(blind, 2 * needed, 330)
    assert challengers(blind, "colours")["third"]["comparison"] == "better"


# --- the estimates --------------------------------------------------------------------------------------------------


def test_the_estimate_is_that_of_an_evaluation_of_the_exported_log(served: Served, tmp_path: Path) -> None:
    spec = {"algorithm": "gaptron", "settings": {"norm": 2.0, "radius": 2.0, "horizon": 500}, "seed": 3}
    challenge(served, "second", **spec)
    lesson(served, 80)
    shown = challengers(served)["second"]
    path = tmp_path / "log.jsonl"
    path.write_bytes(served.call("GET", TRIAGE + "/log").content)
    log = open_log(str(path))
    learner = Learner(
        "gaptron", classes=log.classes, feedback="bandit", seed=3, n_features=2, norm=2.0, radius=2.0, horizon=500
    )
    expected = evaluate_learning(learner, log)
    assert shown["low"] == pytest.approx(expected.proven.low, abs=1e-12)
    assert shown["high"] == pytest.approx(expected.proven.high, abs=1e-12)
    estimate = min(max(expected.estimates[0].mistakes, shown["low"]), shown["high"])
    assert shown["error_rate"] == pytest.approx(estimate, abs=1e-12)
    assert shown["live"]["error_rate"] == pytest.approx(log.mistakes.mean(), abs=1e-12)
    assert (learner.weights == served.model().challengers["second"].adapter.learner.weights).all()


def test_the_estimate_of_actions_is_that_of_an_evaluation_of_the_exported_log(served: Served, tmp_path: Path) -> None:
    make_news(served, epsilon=0.0)
    challenge(served, "second", "news", algorithm="squarecb", seed=1)
    for visit in visits(60):
        made = choose(served, visit).json()
        served.send_outcome(made["event_id"], "news", correct=likes(visit, made["action"]))
    path = tmp_path / "log.jsonl"
    path.write_bytes(served.call("GET", "/v1/models/news/log").content)
    learner = Learner("squarecb", actions=True, features="auto", feedback="bandit", seed=1)
    expected = evaluate_learning(learner, ActionLog(open_actions(str(path))))
    shown = challengers(served, "news")["second"]
    assert shown["low"] == pytest.approx(expected.proven.low, abs=1e-12)
    assert shown["high"] == pytest.approx(expected.proven.high, abs=1e-12)
    replay(served.service.store)


def test_a_challenger_like_the_model_has_no_difference(served: Served) -> None:
    """The variance of what both have in common cancels."""
    served.make(name="twin", feedback="full", algorithm="softmax", settings={"norm": 2.0})
    challenge(served, "same", "twin", algorithm="softmax", settings={"norm": 2.0})
    for t in range(60):
        served.decide(f"e{t}", (0.3, float(t % 2)), "twin")
        served.send_outcome(f"e{t}", "twin", label="chat" if t % 2 else "mail")
    same = challengers(served, "twin")["same"]
    assert same["decisions"] == 60 and same["comparison"] == "unknown"
    assert same["low"] < same["error_rate"] < same["high"]
    bandit = served.model().spec
    challenge(served, "same", algorithm=bandit.algorithm, settings=bandit.settings)
    lesson(served, 60)
    shown = challengers(served)["same"]
    assert shown["error_rate"] == pytest.approx(shown["live"]["error_rate"]) and shown["decisions_needed"] is None
    evidence = served.model().challengers["same"].evidence
    assert evidence.better.total == pytest.approx(60.0) and evidence.worse.total == pytest.approx(60.0)


def test_in_shadow_mode_it_is_compared_with_what_the_caller_played(served: Served) -> None:
    served.make(name="shade", mode="shadow")
    challenge(served, "second", "shade", **SMALL)
    for t in range(40):
        played = {"label": ["mail", "chat"][t % 2], "propensity": 0.5}
        served.decide(f"e{t}", (0.3, 1.0), "shade", played=played)
        served.send_outcome(f"e{t}", "shade", correct=played["label"] == "chat")
    shown = challengers(served, "shade")["second"]
    assert shown["live"]["error_rate"] == pytest.approx(0.5) and shown["decisions"] == 40
    replay(served.service.store)


# --- the live model is not affected ---------------------------------------------------------------------------------


def test_the_live_model_is_the_same_with_and_without_challengers(served: Served) -> None:
    served.make(name="alone")
    challenge(served, "second", algorithm="banditron", settings={"gamma": 0.2})
    challenge(served, "third", algorithm="confidit", settings={"alpha": 0.5})
    for t in range(40):
        made = [served.decide(f"e{t}", (0.3, float(t % 2)), model).json() for model in ("triage", "alone")]
        assert made[0]["distribution"] == made[1]["distribution"]
        for model in ("triage", "alone"):
            served.send_outcome(f"e{t}", model, correct=made[0]["label"] == "chat")
    assert weights(served.model()) == weights(served.model("alone"))


def test_a_challenger_that_cannot_learn_from_an_outcome_is_stopped_with_its_reason(served: Served) -> None:
    served.make(name="long", algorithm="frugal-gaptron", settings={})
    challenge(served, "second", "long", **SMALL)
    for t, size in enumerate((0.5, 0.5, 5.0, 0.5)):
        served.decide(f"e{t}", (size, 0.0), "long")
        assert served.send_outcome(f"e{t}", "long", reward=0.5).status_code == 200
    shown = challengers(served, "long")["second"]
    assert shown["decisions"] == 2 and "norm" in shown["stopped"]
    assert served.model("long").version == 4
    assert problem(served.call("POST", "/v1/models/long/promote", {"challenger": "second"}), 422, "invalid")
    before = shown
    served.stop()
    served.open()
    assert challengers(served, "long")["second"] == before
    replay(served.service.store)


def test_a_challenger_whose_numbers_overflow_is_stopped_by_an_event(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    challenge(served, "second", algorithm="banditron", settings={"gamma": 0.2})
    learn, learned = Adapter.learn, []

    def overflow(self: Adapter, *arguments: Any) -> None:
        learn(self, *arguments)
        if self.learner.algorithm == "banditron":
            learned.append(True)
        if self.learner.algorithm == "banditron" and len(learned) == 5:
            for array in self.learner._engine.state:
                array.fill(np.nan)

    monkeypatch.setattr(Adapter, "learn", overflow)
    lesson(served, 5)
    assert challengers(served)["second"]["stopped"] is None
    assert served.service.coordinator.take_snapshot(served.model())
    assert challengers(served)["second"]["stopped"]
    lesson(served, 5, 5)
    state = challengers(served)
    learned.clear()
    replay(served.service.store)
    learned.clear()
    served.crash()
    served.open()
    assert challengers(served) == state


# --- restart and replay ---------------------------------------------------------------------------------------------


def test_challengers_are_restored_from_a_snapshot_and_from_the_log(anywhere: Served) -> None:
    challenge(anywhere, "second", algorithm="banditron", settings={"gamma": 0.2})
    lesson(anywhere, 10)
    challenge(anywhere, "third", algorithm="frugal-gaptron", seed=7)
    lesson(anywhere, 10, 10)
    anywhere.crash()  # no snapshot
    anywhere.open()
    after_log = snapshots.checksum(snapshots.pack(anywhere.model()))
    lesson(anywhere, 10, 20)
    before = challengers(anywhere)
    anywhere.stop()  # a snapshot
    anywhere.open()
    assert challengers(anywhere) == before
    assert snapshots.checksum(snapshots.pack(anywhere.model())) != after_log
    lesson(anywhere, 10, 30)
    assert anywhere.call("POST", TRIAGE + "/promote", {"challenger": "third"}).json()["algorithm"] == "frugal-gaptron"
    lesson(anywhere, 10, 40)
    anywhere.crash()
    anywhere.open()
    lesson(anywhere, 10, 50)
    assert anywhere.service.coordinator.take_snapshot(anywhere.model())
    lesson(anywhere, 1, 60)
    done = replay(anywhere.service.store)
    assert (done.decisions, done.snapshots) == (61, 2)
    whole = load_models(anywhere.service.store)["triage"]
    assert snapshots.checksum(snapshots.pack(whole)) == snapshots.checksum(snapshots.pack(anywhere.model()))


def test_labels_that_are_added_are_added_to_challengers(served: Served) -> None:
    challenge(served, "second", algorithm="banditron", settings={"gamma": 0.2})
    lesson(served, 5)
    served.call("PATCH", TRIAGE, {"add_labels": ["fax"]})
    challenge(served, "third", algorithm="banditron", settings={"gamma": 0.2})
    lesson(served, 5, 5)
    assert [one.adapter.labels[-1] for one in served.model().challengers.values()] == ["fax", "fax"]
    served.call("POST", TRIAGE + "/promote", {"challenger": "third"})
    assert "fax" in served.decide("one-more").json()["distribution"]
    served.stop()
    served.open()
    assert challengers(served)["second"]["decisions"] == 0
    replay(served.service.store)


def test_changes_of_the_model_apply_to_challengers(served: Served) -> None:
    served.make(name="wide", labels=["mail", "chat", "phone", "fax"], features=2)
    challenge(served, "second", "wide", algorithm="banditron", settings={"gamma": 0.2})
    served.call("PATCH", "/v1/models/wide", {"epsilon": 0.3, "retire_labels": ["fax"]})
    challenge(served, "third", "wide", algorithm="banditron", settings={"gamma": 0.2})
    for t in range(5):
        label = served.decide(f"e{t}", model="wide").json()["label"]
        served.send_outcome(f"e{t}", "wide", correct=label == "chat")
    model = served.model("wide")
    assert [one.adapter.epsilon for one in model.challengers.values()] == [0.3, 0.3]
    second, third = (one.adapter.learner.weights for one in model.challengers.values())
    assert (second == third).all() and [one["decisions"] for one in challengers(served, "wide").values()] == [5, 5]
    served.call("POST", "/v1/models/wide/promote", {"challenger": "second"})
    assert served.call("GET", "/v1/models/wide").json()["epsilon"] == 0.3
    assert served.decide("next", model="wide").json()["distribution"]["fax"] == 0.0
    served.stop()
    served.open()
    assert served.model("wide").adapter.epsilon == 0.3
    replay(served.service.store)


def test_a_model_is_created_idempotently_after_a_promotion(served: Served) -> None:
    spec = {name: value for name, value in TRIAGE_SPEC.items() if name != "name"}
    challenge(served, "second", algorithm="banditron", settings={"gamma": 0.2})
    assert served.call("POST", TRIAGE + "/promote", {"challenger": "second"}).json()["algorithm"] == "banditron"
    assert served.call("PUT", TRIAGE, spec).json()["algorithm"] == "banditron"
    served.stop()
    served.open()
    assert served.call("PUT", TRIAGE, spec).status_code == 200


def test_a_challenger_that_cannot_use_what_the_first_decision_has_is_stopped(served: Served) -> None:
    served.make(name="open", algorithm="frugal-gaptron", settings={})
    assert challenge(served, "second", "open", **SMALL).status_code == 201  # its norm is for numbers
    request = {"event_id": "e0", "features": {"colour": "red"}}
    assert served.call("POST", "/v1/models/open/decisions", request).status_code == 201
    before = challengers(served, "open")["second"]
    assert "norm" in before["stopped"]
    served.stop()
    served.open()
    assert challengers(served, "open")["second"] == before
    replay(served.service.store)


def test_a_challenger_added_before_the_first_decision_gets_the_number_of_features(served: Served) -> None:
    challenge(served, "second", **SMALL)
    served.stop()
    served.open()
    lesson(served, 3)
    assert served.model().challengers["second"].adapter.width == 2 and challengers(served)["second"]["decisions"] == 3
    replay(served.service.store)


def test_replicas_decide_with_what_was_promoted(postgres_pair: tuple[Served, Served]) -> None:
    leader, replica = postgres_pair
    challenge(leader, "second", algorithm="banditron", settings={"gamma": 0.5})
    for t in range(10):
        made = replica.decide(f"e{t}").json()
        leader.send_outcome(f"e{t}", correct=made["label"] == "chat")
    leader.call("POST", TRIAGE + "/promote", {"challenger": "second"})
    leader.tick()
    replica.tick()
    assert replica.service.decisions.models["triage"].adapter.learner.algorithm == "banditron"
    p = leader.model().adapter.learner.distribution(np.array([[0.3, 1.0]]))[0]
    assert list(replica.decide("new").json()["distribution"].values()) == p.tolist()
    assert replica.call("POST", TRIAGE + "/promote", {"challenger": "former"}).status_code == 421
    leader.tick()
    assert replay(leader.service.store).decisions == 11


@pytest.fixture
def postgres_pair(postgres: str) -> Iterator[tuple[Served, Served]]:
    """A leader and a replica."""
    place = with_schema(postgres, f"test_{uuid.uuid4().hex}")
    leader = Served(place, with_replicas=True)
    leader.make(features=2)
    leader.tick()
    replica = Served(place, replica=True)
    yield leader, replica
    replica.close()
    leader.close()


# --- what is refused ------------------------------------------------------------------------------------------------


def test_five_challengers_are_the_most(served: Served) -> None:
    for number in range(5):
        assert challenge(served, f"c{number}", **SMALL, seed=number).status_code == 201
    assert problem(challenge(served, "c5", **SMALL), 409, "too-many-challengers")
    assert challenge(served, "c4", **SMALL, seed=4).status_code == 200
    lesson(served, 3)
    served.call("POST", TRIAGE + "/promote", {"challenger": "c3"})
    served.call("POST", TRIAGE + "/promote", {"challenger": "former"})
    assert list(challengers(served)) == ["c0", "c1", "c2", "c4", "former"]
    replay(served.service.store)


@pytest.mark.parametrize(
    "spec",
    [
        {"algorithm": "no-such"},
        {"algorithm": "gaptron", "settings": {"no-such": 1}},
        {"algorithm": "gaptron", "settings": {"epsilon": 0.5}},
        {"algorithm": "newtron", "seed": -1},
        {"algorithm": "frugal-gaptron", "use_features": ["colour"]},  # this model takes numbers
        {"algorithm": "frugal-gaptron", "use_features": []},
        {"mode": "shadow"},
    ],
    ids=str,
)
def test_an_impossible_challenger_is_refused(served: Served, spec: dict[str, Any]) -> None:
    assert problem(challenge(served, "second", **spec), 422, "invalid")
    assert challengers(served) == {}


def test_names_are_checked(served: Served) -> None:
    assert problem(challenge(served, "Second!", **SMALL), 422, "invalid")
    assert problem(challenge(served, "second", "nothing", **SMALL), 404, "not-found")
    assert problem(served.call("POST", TRIAGE + "/promote", {"challenger": "second"}), 404, "not-found")


def test_the_page_shows_what_the_service_responds(blind: Served) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "challengers.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```json\n(.*?)^```", page, re.M | re.S)
    model, challenger, promotion, imported = (json.loads(body) for body in re.findall(r"-d '(.*?)'", page))
    assert model == COLOURS | {"epsilon": 0.2, "use_features": ["noise"]}
    assert challenger == {"algorithm": "frugal-gaptron"}
    found = challengers(blind, "colours")["all-features"]

    def rounded(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: rounded(one) for name, one in value.items()}
        return round(value, 3) if isinstance(value, float) else value

    assert {name: rounded(found[name]) for name in json.loads(shown)} == json.loads(shown)
    assert blind.call("POST", "/v1/models/colours/promote", promotion).status_code == 200
    assert blind.call("POST", TRIAGE + "/import", imported).json() == {"imported": 1, "known": 0}
