"""The share of decisions drawn uniformly: by default, changed later, and in replay and replicas."""

import uuid

import pytest

from gaptron.serve.replay import replay
from tests.serve.news import choose, make_news, visits
from tests.serve.postgres import with_schema
from tests.serve.served import SMALL, Served
from tests.serve.test_api import lesson, problem, weights

PLAIN = {"name": "plain", "labels": ["mail", "chat"], **SMALL}


def test_a_new_bandit_model_draws_two_percent_uniformly_and_says_why(served: Served) -> None:
    made = served.call("POST", "/v1/models", PLAIN).json()
    assert made["epsilon"] == 0.02
    (note,) = made["notes"]
    assert "2 %" in note and "cannot evaluate another policy" in note and "PATCH" in note
    assert min(served.decide("e0", model="plain").json()["distribution"].values()) >= 0.01 - 1e-12
    chosen = served.call("POST", "/v1/models", {**PLAIN, "name": "greedy", "epsilon": 0.0}).json()
    assert chosen["epsilon"] == 0.0 and "notes" not in chosen
    full = served.call("POST", "/v1/models", {**PLAIN, "name": "full", "feedback": "full"}).json()
    assert full["epsilon"] == 0.0 and "notes" not in full
    own = served.make(name="own", algorithm="epsilon-greedy", settings={"norm": 2.0}, epsilon=None).json()
    assert own["epsilon"] == 0.02


def test_epsilon_is_changed_and_replay_reproduces_it(anywhere: Served) -> None:
    lesson(anywhere, 10)
    shown = anywhere.call("PATCH", "/v1/models/triage", {"epsilon": 0.3})
    assert (shown.status_code, shown.json()["epsilon"]) == (200, 0.3)
    assert "30 %" in shown.json()["notes"][0]
    lesson(anywhere, 10, start=10)
    made = anywhere.decide("later").json()
    assert min(made["distribution"].values()) >= 0.1 - 1e-12
    assert replay(anywhere.service.store).decisions == 21
    before = weights(anywhere)
    anywhere.stop()
    anywhere.open()
    assert weights(anywhere) == before, "the snapshot has it"
    assert anywhere.call("GET", "/v1/models/triage").json()["epsilon"] == 0.3
    assert anywhere.call("PATCH", "/v1/models/triage", {"epsilon": 0}).json()["epsilon"] == 0.0
    anywhere.crash()
    anywhere.open()
    assert anywhere.call("GET", "/v1/models/triage").json()["epsilon"] == 0.0
    assert anywhere.decide("later").json() == made
    changes = anywhere.call("GET", "/v1/models/triage/report").json()["changes"]
    assert [change["what"] for change in changes] == ["epsilon: 0.3", "epsilon: 0"]


def test_of_actions_and_of_an_algorithms_own_setting_it_is_changed_too(served: Served) -> None:
    make_news(served)
    served.make(name="own", algorithm="epsilon-greedy", settings={"norm": 2.0}, epsilon=0.1)
    for t, visit in enumerate(visits(10)):
        share = 0.0 if t < 5 else 0.5
        if t in (0, 5):
            served.call("PATCH", "/v1/models/news", {"epsilon": share})
        if t == 5:
            served.call("PATCH", "/v1/models/own", {"epsilon": 0.3})
        ranking = choose(served, visit).json()["ranking"]
        assert min(one["propensity"] for one in ranking) >= share / 5 - 1e-12
        served.send_outcome(visit["event_id"], "news", correct=t % 2 == 0)
        served.decide(f"e{t}", model="own")
        served.send_outcome(f"e{t}", "own", correct=True)
    assert min(served.decide("e10", model="own").json()["distribution"].values()) == pytest.approx(0.1)
    assert replay(served.service.store).decisions == 21
    served.stop()
    served.open()
    assert served.call("GET", "/v1/models/news").json()["epsilon"] == 0.5
    assert served.call("GET", "/v1/models/own").json()["epsilon"] == 0.3


@pytest.mark.parametrize("epsilon", [1.0, -0.1, 1e-7, "half"])
def test_an_impossible_epsilon_changes_nothing(served: Served, epsilon: object) -> None:
    before = weights(served)
    refused = served.call("PATCH", "/v1/models/triage", {"epsilon": epsilon, "mode": "shadow"})
    assert "epsilon" in problem(refused, 422, "invalid")
    assert weights(served) == before and served.call("GET", "/v1/models/triage").json()["mode"] == "live"


def test_a_replica_draws_with_the_new_epsilon(postgres: str) -> None:
    place = with_schema(postgres, f"test_{uuid.uuid4().hex}")
    leader = Served(place, with_replicas=True)
    leader.make(features=2)
    leader.tick()
    replica = Served(place, replica=True)
    leader.call("PATCH", "/v1/models/triage", {"epsilon": 0.3})
    leader.tick()
    replica.tick()
    for t in range(5):
        label = replica.decide(f"e{t}").json()["label"]
        leader.send_outcome(f"e{t}", correct=label == "chat")
        leader.tick()
        replica.tick()
    assert min(replica.decide("later").json()["distribution"].values()) >= 0.1 - 1e-12
    leader.tick()
    assert replay(leader.service.store).decisions == 6
    replica.close()
    leader.close()
