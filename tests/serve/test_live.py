"""The latest decisions, and what a model would decide."""

from typing import Any

import pytest

from gaptron.serve import live
from tests.serve.news import choose, make_news, visits
from tests.serve.served import Served
from tests.serve.test_api import checksum, problem

PATH = "/v1/models/triage/decisions"


def latest(served: Served, query: str = "", model: str = "triage") -> list[dict[str, Any]]:
    response = served.call("GET", f"/v1/models/{model}/decisions{query}")
    assert response.status_code == 200, response.text
    decisions: list[dict[str, Any]] = response.json()["decisions"]
    return decisions


# --- the latest decisions -------------------------------------------------------------------------------------------


def test_the_latest_decisions_come_newest_first_with_features_and_outcomes(anywhere: Served) -> None:
    made = [anywhere.decide(f"order-{t}", (0.1 * t, 1.0)).json() for t in range(3)]
    anywhere.send_outcome("order-1", correct=True)
    found = latest(anywhere)
    assert [one["event_id"] for one in found] == ["order-2", "order-1", "order-0"]
    for one, decision in zip(found, made[::-1]):
        assert {name: one[name] for name in decision} == decision
    assert found[1]["x"] == [0.1, 1.0] and found[1]["outcome"] == {"correct": True}
    assert [one["status"] for one in found] == ["open", "learned", "open"]
    assert found[1]["outcome_at"] >= found[1]["at"]
    assert [one["event_id"] for one in latest(anywhere, f"?after={made[0]['seq']}")] == ["order-2", "order-1"]
    assert [one["event_id"] for one in latest(anywhere, "?limit=1")] == ["order-2"]
    assert [one["event_id"] for one in latest(anywhere, "?has_outcome=true")] == ["order-1"]
    assert [one["event_id"] for one in latest(anywhere, "?has_outcome=false")] == ["order-2", "order-0"]
    label = made[0]["label"]
    assert [one["label"] for one in latest(anywhere, f"?label={label}")] == [
        one["label"] for one in made if one["label"] == label
    ]
    assert latest(anywhere, "?label=nothing") == []


def test_each_way_an_outcome_can_go_has_a_status(served: Served) -> None:
    served.make(name="waits", feedback_timeout=60.0, on_timeout="wrong")
    served.make(name="forgets", feedback_timeout=60.0)
    for model in ("waits", "forgets"):
        for event in ("none", "right", "void", "other", "late"):
            served.decide(event, model=model)
        served.send_outcome("right", model, correct=True)
        served.send_outcome("void", model, void=True)
        other = next(one["label"] for one in latest(served, model=model) if one["event_id"] == "other")
        served.send_outcome("other", model, correct=False, played="mail" if other != "mail" else "chat")
        before = {one["event_id"]: one["status"] for one in latest(served, model=model)}
        if model == "waits":
            assert before == dict.fromkeys(("right", "void", "other"), "waiting") | {"none": "open", "late": "open"}
        else:
            assert before["none"] == before["late"] == "open" and before["right"] == "learned"
    served.pass_time(61.0)
    for model, missing in (("waits", "timed-out"), ("forgets", "expired")):
        served.send_outcome("late", model, correct=True)
        assert {one["event_id"]: one["status"] for one in latest(served, model=model)} == {
            "none": missing,
            "right": "learned",
            "void": "void",
            "other": "overridden",
            "late": "late",
        }


def test_a_search_reads_the_latest_decisions_only_and_says_so(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "CHUNK", 2)
    monkeypatch.setattr(live, "MAX_SEARCHED", 4)
    for t in range(6):
        served.decide(f"e{t}")
    served.send_outcome("e0", correct=True)
    served.send_outcome("e3", correct=True)
    body = served.call("GET", f"{PATH}?has_outcome=true").json()
    assert [one["event_id"] for one in body["decisions"]] == ["e3"] and body["complete"] is False
    assert served.call("GET", PATH).json()["complete"] is True


def test_decisions_among_actions_come_with_their_ranking(served: Served) -> None:
    make_news(served)
    visit = next(visits(1))
    decision = choose(served, visit).json()
    (one,) = latest(served, model="news")
    assert (one["action"], one["ranking"]) == (decision["action"], decision["ranking"])
    assert one["context"] == visit["context"] and one["actions"] == visit["actions"]


def test_redacted_decisions_have_no_features(tmp_path: Any) -> None:
    served = Served(str(tmp_path / "store"), keep_days=1.0)
    served.make()
    served.decide("old")
    served.pass_time(2 * 86_400.0)
    (one,) = latest(served)
    assert one["redacted"] is True and "x" not in one
    served.close()


@pytest.mark.parametrize(
    "query", ["limit=-1", "limit=many", "after=1.5", "has_outcome=perhaps", "after=9999999999999999999", "limit=²"]
)
def test_a_query_that_means_nothing_is_refused(served: Served, query: str) -> None:
    assert query.partition("=")[0] in problem(served.call("GET", f"{PATH}?{query}"), 422, "invalid")


# --- what would be decided ------------------------------------------------------------------------------------------


def test_a_preview_is_what_the_next_decision_is_drawn_from_and_changes_nothing(served: Served) -> None:
    for t in range(20):
        decision = served.decide(f"e{t}", (0.01 * t, 0.5)).json()
        served.send_outcome(f"e{t}", correct=decision["label"] == "chat")
    before, seq = checksum(served.model()), served.model().seq
    found = served.call("POST", "/v1/models/triage/preview", {"x": [0.3, 1.0]}).json()
    assert checksum(served.model()) == before and served.model().seq == seq
    assert found["distribution"] == served.decide("next").json()["distribution"]
    assert [one["propensity"] for one in found["ranking"]] == sorted(found["distribution"].values(), reverse=True)


def test_a_preview_of_actions_ranks_them(served: Served) -> None:
    make_news(served)
    visit = next(visits(1))
    found = served.call("POST", "/v1/models/news/preview", visit).json()
    assert {one["id"]: one["propensity"] for one in found["ranking"]} == found["distribution"]
    decision = choose(served, visit).json()
    assert {one["id"]: one["propensity"] for one in decision["ranking"]} == found["distribution"]


def test_a_preview_in_shadow_mode_needs_no_choice_of_the_caller(served: Served) -> None:
    served.make(name="watch", mode="shadow")
    found = served.call("POST", "/v1/models/watch/preview", {"x": [0.3, 1.0]}).json()
    assert sum(found["distribution"].values()) == pytest.approx(1.0)


def test_a_preview_is_refused_as_a_decision_would_be(served: Served) -> None:
    served.decide("first")
    short = served.call("POST", "/v1/models/triage/preview", {"x": [1.0]})
    assert "features of this model is 2" in problem(short, 422, "invalid")
    assert "nobody" in problem(served.call("POST", "/v1/models/nobody/preview", {"x": [1.0]}), 404, "not-found")


def test_both_need_the_role_read(served: Served) -> None:
    admin = served.call("POST", "/v1/keys", {"roles": ["admin"]}).json()["key"]
    headers = {"Authorization": f"Bearer {admin}"}
    decides = served.call("POST", "/v1/keys", {"roles": ["decide"]}, headers=headers).json()["key"]
    reads = served.call("POST", "/v1/keys", {"roles": ["read"]}, headers=headers).json()["key"]
    for key, status in ((decides, 403), (reads, 200)):
        headers = {"Authorization": f"Bearer {key}"}
        assert served.call("GET", PATH, headers=headers).status_code == status
        body = {"x": [0.3, 1.0]}
        assert served.call("POST", "/v1/models/triage/preview", body, headers=headers).status_code == status


def test_a_preview_before_the_first_decision_takes_features_of_either_kind_and_settles_nothing(served: Served) -> None:
    served.call("POST", "/v1/models", {"name": "new", "labels": ["a", "b"]})
    for body in ({"features": {"age": 31}}, {"x": [1.0, 2.0]}):
        found = served.call("POST", "/v1/models/new/preview", body).json()
        assert found["distribution"] == {"a": 0.5, "b": 0.5}
    assert served.call("GET", "/v1/models/new").json()["features"] is None
