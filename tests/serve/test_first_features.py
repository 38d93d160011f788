"""A model that was created without `features`: its first decision settles how they are given."""

import json
import uuid
from typing import Any

import pytest

import gaptron
from gaptron.offpolicy import open_log
from gaptron.serve.replay import replay
from tests.serve.postgres import with_schema
from tests.serve.served import Served
from tests.serve.test_api import problem, weights

MODEL = "/v1/models/open"
SPEC = {"name": "open", "labels": ["mail", "chat"]}
VISIT: dict[str, Any] = {"plan": "pro", "age": 31, "new": True}


def ask(served: Served, event: str, **request: Any) -> Any:
    return served.call("POST", f"{MODEL}/decisions", {"event_id": event, **request})


def settled(served: Served) -> Any:
    return served.call("GET", MODEL).json()["features"]


def learn_by_name(served: Served, rounds: int, start: int = 0) -> None:
    for t in range(start, start + rounds):
        made = ask(served, f"e{t}", features=VISIT | {"age": t}).json()
        served.send_outcome(f"e{t}", "open", correct=made["label"] == "chat")


def test_a_model_with_only_name_and_labels_takes_named_features(anywhere: Served) -> None:
    assert anywhere.call("POST", "/v1/models", SPEC).json()["features"] is None
    learn_by_name(anywhere, 10)
    assert settled(anywhere) == "auto"
    assert "named features" in problem(ask(anywhere, "other", x=[1.0, 2.0]), 422, "invalid")
    assert replay(anywhere.service.store).decisions == 10
    before = weights(anywhere, "open")
    for end in (anywhere.stop, anywhere.crash):
        end()
        anywhere.open()
        assert weights(anywhere, "open") == before and settled(anywhere) == "auto"
    assert ask(anywhere, "e0", features=VISIT | {"age": 0}).status_code == 200, "the same request"
    learn_by_name(anywhere, 5, start=10)
    assert replay(anywhere.service.store).decisions == 15


def test_it_learns_as_one_that_declared_named_features(served: Served) -> None:
    served.call("POST", "/v1/models", SPEC)
    served.call("POST", "/v1/models", {**SPEC, "name": "declared", "features": "auto"})
    for t in range(20):
        request = {"event_id": f"e{t}", "features": VISIT | {"age": t}}
        made = [served.call("POST", f"/v1/models/{name}/decisions", request).json() for name in ("open", "declared")]
        assert made[0]["distribution"] == made[1]["distribution"]
        for name in ("open", "declared"):
            served.send_outcome(f"e{t}", name, correct=made[0]["label"] == "chat")


def test_numbers_settle_their_width(served: Served) -> None:
    served.call("POST", "/v1/models", SPEC)
    problem(ask(served, "none"), 422, "invalid")
    problem(ask(served, "sparse", x={"indices": [3], "values": [1.0]}), 422, "invalid")
    assert settled(served) is None, "nothing was decided"
    assert ask(served, "e0", x=[0.3, 1.0]).status_code == 201
    assert settled(served) == 2
    assert "x has length 3" in problem(ask(served, "e1", x=[0.3, 1.0, 2.0]), 422, "invalid")
    assert "numbers as x" in problem(ask(served, "e1", features=VISIT), 422, "invalid")


def test_the_first_of_a_batch_settles_it_for_the_others(served: Served) -> None:
    served.call("POST", "/v1/models", SPEC)
    requests = [{"features": VISIT}, {"x": [1.0, 2.0]}, {"features": VISIT}]
    results = served.call("POST", f"{MODEL}/decisions/batch", {"decisions": requests}).json()["decisions"]
    assert ["decision" in one for one in results] == [True, False, True]
    assert "named features" in results[1]["problem"]["detail"]


def test_changes_before_the_first_decision_stay(served: Served) -> None:
    served.call("POST", "/v1/models", SPEC)
    served.call("PATCH", MODEL, {"add_labels": ["phone"], "epsilon": 0.3})
    made = ask(served, "first", features=VISIT).json()
    assert list(made["distribution"]) == ["mail", "chat", "phone"]
    learn_by_name(served, 10)
    assert min(ask(served, "last", features=VISIT).json()["distribution"].values()) >= 0.1 - 1e-12
    assert replay(served.service.store).decisions == 12


def test_settings_that_named_features_do_not_have_are_said_at_the_first_decision(served: Served) -> None:
    served.make(name="open")
    refused = served.call("POST", f"{MODEL}/decisions", {"features": VISIT})
    assert "norm" in problem(refused, 422, "invalid")
    assert settled(served) is None
    assert ask(served, "e0", x=[0.3, 1.0]).status_code == 201


def test_the_export_has_the_features_by_name(served: Served, tmp_path: Any) -> None:
    served.call("POST", "/v1/models", SPEC)
    learn_by_name(served, 5)
    text = served.call("GET", f"{MODEL}/log").text
    assert json.loads(text.splitlines()[1])["x"] == VISIT | {"age": 0}
    (tmp_path / "log.jsonl").write_text(text)
    assert open_log(tmp_path / "log.jsonl").n_rounds == 5
    (tmp_path / "model.gaptron").write_bytes(served.call("GET", f"{MODEL}/snapshot").content)
    assert gaptron.Learner.load(tmp_path / "model.gaptron").features is not None


def test_replicas_need_a_declaration(postgres: str) -> None:
    place = with_schema(postgres, f"test_{uuid.uuid4().hex}")
    leader = Served(place, with_replicas=True)
    leader.call("POST", "/v1/models", SPEC)
    leader.tick()
    replica = Served(place, replica=True)
    refused = replica.call("POST", f"{MODEL}/decisions", {"features": VISIT})
    assert '"auto"' in problem(refused, 422, "invalid")
    replica.close()
    leader.close()


@pytest.mark.parametrize("kind", ["features", "x"])
def test_a_standby_follows_what_was_settled(postgres: str, kind: str) -> None:
    from gaptron.serve.replay import Follower  # noqa: PLC0415
    from gaptron.serve.store import open_store  # noqa: PLC0415

    place = with_schema(postgres, f"test_{uuid.uuid4().hex}")
    leader = Served(place)
    leader.call("POST", "/v1/models", SPEC)
    store = open_store(place)
    follower = Follower(store)
    follower.catch_up()
    assert follower.models["open"].settled_spec.features is None
    ask(leader, "e0", **{kind: VISIT if kind == "features" else [1.0, 2.0]})
    follower.catch_up()
    assert follower.models["open"].settled_spec.features == ("auto" if kind == "features" else 2)
    leader.close()
    store.close()
