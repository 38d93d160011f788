"""Azure Personalizer's HTTP interface: what its applications send, and what they get."""

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaptron.serve.adapter import adapter_of
from gaptron.serve.events import decode
from gaptron.serve.keys import new_key
from gaptron.serve.personalizer import slots, translate
from gaptron.serve.problems import RefusedError
from gaptron.serve.replay import replay
from gaptron.serve.schemas import EVENT_ID_PATTERN, NewModel
from gaptron.serve.store import open_store
from gaptron.streams.actions import open_actions
from tests.serve.news import choose, likes, make_news, visits
from tests.serve.postgres import with_schema
from tests.serve.served import Served

V1, V2 = "/personalizer/v1.0", "/personalizer"
VERSION = {"api-version": "2022-09-01-preview"}
ACTIONS = [
    {"id": "sport", "features": [{"topic": "sport", "age_h": 3}]},
    {"id": "news", "features": [{"topic": "news"}]},
    {"id": "garden", "features": []},
]
BODY = {"contextFeatures": [{"user": {"segment": "student"}}], "actions": ACTIONS}
WAITS = {"name": "waits", "feedback_timeout": 60, "on_timeout": "wrong"}


@pytest.fixture
def news(tmp_path: Path) -> Iterator[Served]:
    """A service on SQLite with one model with actions."""
    service = Served(str(tmp_path / "store"))
    assert make_news(service).status_code == 201
    yield service
    service.close()


def rank(served: Served, base: str = V1, **more: Any) -> httpx.Response:
    return served.call("POST", base + "/rank", {**BODY, **more})


def reward(served: Served, event: str, value: Any, base: str = V1, **more: Any) -> httpx.Response:
    return served.call("POST", f"{base}/events/{quote(event, safe='')}/reward", {"value": value}, **more)


def activate(served: Served, event: str, base: str = V1) -> httpx.Response:
    return served.call("POST", f"{base}/events/{quote(event, safe='')}/activate")


def error(response: httpx.Response, status: int, code: str) -> str:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert list(response.json()) == ["error"] and list(response.json()["error"]) == ["code", "message"]
    assert response.json()["error"]["code"] == code
    return str(response.json()["error"]["message"])


def as_personalizer(visit: dict[str, Any]) -> dict[str, Any]:
    """A visit of the small world as an application of Personalizer sends it."""
    return {
        "eventId": visit["event_id"],
        "contextFeatures": [visit["context"]],
        "actions": [{"id": one["id"], "features": [one["features"]]} for one in visit["actions"]],
    }


# --- rank, reward, activate -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [V1, V2, "/m/news" + V1, "/m/news" + V2])
def test_an_event_from_rank_to_reward(news: Served, base: str) -> None:
    made = rank(news, base, eventId="visit-1", params=VERSION)
    body = made.json()
    assert made.status_code == 201 and list(body) == ["ranking", "eventId", "rewardActionId"]
    assert body["eventId"] == "visit-1" and body["ranking"][0]["id"] == body["rewardActionId"]
    assert {one["id"] for one in body["ranking"]} == {"sport", "news", "garden"}
    assert sum(one["probability"] for one in body["ranking"]) == pytest.approx(1.0, abs=1e-12)
    assert rank(news, base, eventId="visit-1").json() == body
    assert "different request" in error(rank(news, base, eventId="visit-1", actions=ACTIONS[:2]), 409, "Conflict")
    done = reward(news, "visit-1", 0.5, base)
    assert (done.status_code, done.content) == (204, b"")
    assert reward(news, "visit-1", 1.0, base).status_code == 204, "the earliest reward counts"
    shown = news.call("GET", "/v1/models/news/decisions/visit-1").json()
    assert shown["outcome"] == {"reward": 0.5} and shown["action"] == body["rewardActionId"]
    assert news.model("news").version == 1
    assert activate(news, "visit-1", base).status_code == 204


def test_fields_may_be_absent_or_null_or_unknown(news: Served) -> None:
    least = news.call("POST", V1 + "/rank", {"actions": [{"id": "a", "features": []}, {"id": "b"}]})
    assert least.status_code == 201 and least.json()["eventId"]
    nothing = dict.fromkeys(("contextFeatures", "excludedActions", "eventId", "deferActivation"))
    body = {**nothing, "actions": [{"id": "a", "features": None}], "unknown": [1]}
    made = news.call("POST", V1 + "/rank", body).json()
    assert made["ranking"] == [{"id": "a", "probability": 1.0}] and made["eventId"] != least.json()["eventId"]
    assert reward(news, made["eventId"], 1).status_code == 204


def test_excluded_actions_keep_their_place_in_the_ranking(news: Served) -> None:
    for t in range(10):
        made = rank(news, eventId=f"e{t}", excludedActions=["sport"]).json()
        assert made["ranking"][0] == {"id": "sport", "probability": 0.0}
        assert made["ranking"][1]["id"] == made["rewardActionId"] != "sport"
        assert made["ranking"][1]["probability"] + made["ranking"][2]["probability"] == pytest.approx(1.0, abs=1e-12)


def test_equal_events_get_equal_decisions_from_both_interfaces(news: Served, tmp_path: Path) -> None:
    make_news(news, name="native")
    for visit in visits(60):
        ours, theirs = choose(news, visit, "native").json(), rank(news, "/m/news" + V1, **as_personalizer(visit)).json()
        assert theirs["ranking"] == [{"id": one["id"], "probability": one["propensity"]} for one in ours["ranking"]]
        value = 0.5 * likes(visit, ours["action"])
        assert news.send_outcome(visit["event_id"], "native", reward=value).status_code == 200
        assert reward(news, visit["event_id"], value, "/m/news" + V1).status_code == 204
    learners = [news.model(name).adapter.learner for name in ("news", "native")]
    assert np.array_equal(learners[0].weights, learners[1].weights) and news.model("news").version == 60
    assert replay(news.service.store).decisions == 120


ODD = ["q/ 1", "100%", "a?b#c", "ä/ö", "..a", "-", "_x", "x:y", "a\nb", "e:-1", "%2F", "日" * 80, "z" * 256, "z" * 255]


@pytest.mark.parametrize("base", [V1, "/m/news" + V2])
def test_event_ids_are_any_text(news: Served, base: str) -> None:
    for event in ODD:
        made = rank(news, base, eventId=event)
        assert made.status_code == 201 and made.json()["eventId"] == event
    for n, event in enumerate(ODD):
        assert reward(news, event, n / 100, base).status_code == 204, event
    rewards = [decode(row).body.outcome.reward for row, _ in news.service.store.read() if row.kind == "outcome"]
    assert rewards == [n / 100 for n in range(len(ODD))], "each event has its reward"
    assert news.call("GET", "/v1/models/news/decisions/q:2f:201").json()["outcome"] == {"reward": 0.0}
    assert "256" in error(rank(news, base, eventId="z" * 257), 400, "BadRequest")
    assert news.call("POST", base + "/events/%ff/reward", {"value": 1}).status_code == 404


@pytest.mark.parametrize("event", [".", ".."])
def test_an_event_id_that_clients_remove_from_paths_is_refused(news: Served, event: str) -> None:
    assert "another id" in error(rank(news, eventId=event), 400, "BadRequest")
    page = news.call("POST", V2 + "/multislot/rank", {**BODY, "slots": SLOTS, "eventId": event})
    assert "another id" in error(page, 400, "BadRequest")
    assert news.service.coordinator._seq == 1


@given(st.text(max_size=256), st.text(max_size=256))
def test_every_event_id_has_its_own_id_in_the_service(one: str, other: str) -> None:
    for id in (one, other):
        found = translate.event_id(id)
        assert re.match(EVENT_ID_PATTERN, found)
        assert translate.event_id(found) != found or found == id, "an id of the service is not the image of another"
    assert (translate.event_id(one) == translate.event_id(other)) == (one == other)


# --- rewards ----------------------------------------------------------------------------------------------------------


def test_a_reward_out_of_range_is_refused_with_the_option(news: Served) -> None:
    rank(news, eventId="e")
    assert '"reward_range": "-1..1"' in error(reward(news, "e", -0.5), 400, "BadRequest")
    assert "from 0 to 1" in error(reward(news, "e", 1.5), 400, "BadRequest")
    assert "value must be a number" in error(reward(news, "e", "high"), 400, "BadRequest")
    assert news.model("news").version == 0
    made = make_news(news, name="signed", reward_range="-1..1").json()
    assert made["reward_range"] == "-1..1"
    for event, value in (("e1", -1), ("e2", 0), ("e3", 0.5), ("e4", 1)):
        rank(news, "/m/signed" + V1, eventId=event)
        assert reward(news, event, value, "/m/signed" + V1).status_code == 204
        shown = news.call("GET", f"/v1/models/signed/decisions/{event}").json()
        assert shown["outcome"] == {"reward": (value + 1) / 2}
    assert "from -1 to 1" in error(reward(news, "e4", -1.5, "/m/signed" + V1), 400, "BadRequest")


def test_a_reward_after_the_wait_time_is_taken_and_not_learned(news: Served) -> None:
    make_news(news, **WAITS)
    base = "/m/waits" + V1
    for event in ("in-time", "late"):
        rank(news, base, eventId=event)
    assert reward(news, "in-time", 1, base).status_code == 204
    news.pass_time(61)
    assert news.model("waits").version == 2, "the missing reward counts as 0"
    assert reward(news, "late", 1, base).status_code == 204
    assert (news.model("waits").version, news.model("waits").tally.late) == (2, 1)


def test_a_deferred_event_is_not_learned_before_it_is_activated_or_rewarded(news: Served, tmp_path: Path) -> None:
    make_news(news, **WAITS)
    base = "/m/waits" + V1
    for event in ("shown", "rewarded", "never", "shown-and-rewarded"):
        assert rank(news, base, eventId=event, deferActivation=True).status_code == 201
    assert rank(news, base, eventId="plain").status_code == 201
    for _ in range(2):
        assert activate(news, "shown", base).status_code == 204
        assert activate(news, "shown-and-rewarded", base).status_code == 204
        assert activate(news, "plain", base).status_code == 204
    kinds = [row.kind for row, _ in news.service.store.read()]
    assert kinds.count("activated") == 2, "activating again, or what was not deferred, changes nothing"
    reward(news, "rewarded", 1, base)
    reward(news, "shown-and-rewarded", 0.25, base)
    news.crash()
    news.open()
    news.pass_time(61)
    model = news.model("waits")
    assert (model.version, model.tally.timed_out, model.tally.void, model.pending) == (4, 2, 1, {})
    assert activate(news, "never", base).status_code == 204 and reward(news, "never", 1, base).status_code == 204
    assert news.model("waits").version == 4, "both came too late"
    path = tmp_path / "log.jsonl"
    path.write_bytes(news.call("GET", "/v1/models/waits/log").content)
    assert sorted(open_actions(path).reward.tolist()) == [0.0, 0.0, 0.25, 1.0]
    news.stop()
    news.open()
    assert replay(news.service.store).decisions == 5
    assert news.model("waits").version == 4


def test_a_snapshot_keeps_what_was_activated(news: Served) -> None:
    make_news(news, **WAITS)
    for event in ("shown", "never"):
        rank(news, "/m/waits" + V1, eventId=event, deferActivation=True)
    activate(news, "shown", "/m/waits" + V1)
    news.stop()
    news.open()
    news.pass_time(61)
    assert (news.model("waits").version, news.model("waits").tally.void) == (1, 1)


def test_replicas_rank_and_the_leader_takes_rewards_and_activations(postgres: str) -> None:
    leader = Served(with_schema(postgres, f"test_{uuid.uuid4().hex}"), with_replicas=True)
    make_news(leader, **WAITS)
    leader.tick()
    replica = Served(leader.place, replica=True)
    for event in ("shown / 1", "never", "rewarded"):
        assert rank(replica, eventId=event, deferActivation=True).json()["eventId"] == event
    assert rank(leader, eventId="other").status_code == 421
    assert reward(replica, "rewarded", 1).status_code == activate(replica, "never").status_code == 421
    assert activate(leader, "shown / 1").status_code == reward(leader, "rewarded", 1).status_code == 204
    leader.pass_time(61)
    assert (leader.model("waits").version, leader.model("waits").tally.void) == (2, 1)
    assert replay(leader.service.store).decisions == 3
    replica.close()
    leader.close()


def test_the_native_interface_defers_too(news: Served) -> None:
    make_news(news, **WAITS)
    path = "/v1/models/waits/decisions"
    for event in ("shown", "never"):
        body = {"event_id": event, "actions": [{"id": "a"}, {"id": "b"}], "deferred": True}
        assert news.call("POST", path, body).status_code == 201
    assert news.call("POST", path + "/shown/activate").status_code == 204
    assert news.call("POST", path + "/nobody/activate").status_code == 404
    news.pass_time(61)
    assert news.model("waits").version == 1


def test_apprentice_mode_plays_the_first_action_and_learns_from_its_reward(news: Served) -> None:
    news.call("PATCH", "/v1/models/news", {"mode": "apprentice"})
    made = rank(news, eventId="e1").json()
    assert made["rewardActionId"] == "sport"
    assert made["ranking"] == [{"id": one, "probability": float(one == "sport")} for one in ("sport", "news", "garden")]
    made = rank(news, eventId="e2", excludedActions=["sport"]).json()
    assert made["rewardActionId"] == "news"
    assert [one["probability"] for one in made["ranking"]] == [0.0, 1.0, 0.0]
    reward(news, "e2", 1)
    assert news.model("news").version == 1
    assert news.call("GET", "/v1/models/news/decisions/e2").json()["shadow_action"] in ("news", "garden")


def test_the_configuration_can_be_read_and_partly_changed(news: Served) -> None:
    make_news(news, **WAITS)
    path = "/m/waits" + V2 + "/configurations/service"
    shown = news.call("GET", path).json()
    assert shown == {
        "rewardWaitTime": "PT60S", "defaultReward": 0.0, "rewardAggregation": "earliest", "explorationPercentage": 0.02,
        "modelExportFrequency": "PT1S", "logRetentionDays": -1, "modelRetrainDays": 0, "learningMode": "Online",
    }  # fmt: skip
    last = news.service.coordinator._seq
    assert (
        news.call("PUT", path, shown | {"rewardWaitTime": "PT1M", "isAutoOptimizationEnabled": False}).json() == shown
    )
    assert news.service.coordinator._seq == last, "nothing differs"
    wanted = shown | {"rewardWaitTime": "P1DT2H0.5S", "learningMode": "Apprentice", "explorationPercentage": 0.2}
    changed = news.call("PUT", path, wanted)
    assert (changed.status_code, changed.json()) == (200, wanted | {"rewardWaitTime": "PT93600.5S"})
    info = news.call("GET", "/v1/models/waits").json()
    assert (info["feedback_timeout"], info["mode"], info["epsilon"]) == (93600.5, "shadow", 0.2)
    for more, words in (
        ({"defaultReward": 0.5}, "defaultReward"),
        ({"rewardAggregation": "sum"}, "rewardAggregation"),
        ({"explorationPercentage": 20}, "explorationPercentage"),
        ({"explorationPercentage": False}, "explorationPercentage"),
        ({"isAutoOptimizationEnabled": True}, "isAutoOptimizationEnabled"),
        ({"learningMode": "LoggingOnly"}, "learningMode"),
        ({"rewardWaitTime": "PT1S"}, "PT5S"),
        ({"rewardWaitTime": "P8D"}, "P7D"),
        ({"rewardWaitTime": 600}, "PT5S"),
        ({"rewardWaitTime": None}, "PT5S"),
    ):
        assert words in error(news.call("PUT", path, changed.json() | more), 400, "BadRequest")
    assert "object" in error(news.call("PUT", path, []), 400, "BadRequest")
    path = "/m/news" + V1 + "/configurations/service"
    unlimited = news.call("GET", path).json()
    assert unlimited["rewardWaitTime"] is None
    assert news.call("PUT", path, unlimited).json() == unlimited


# --- multi-slot -------------------------------------------------------------------------------------------------------

SLOTS = [
    {"id": "top", "baselineAction": "sport", "features": [{"size": "large"}]},
    {"id": "side bar", "baselineAction": "news", "excludedActions": ["sport"]},
]


def test_each_slot_is_a_decision_without_the_actions_chosen_before(news: Served) -> None:
    for t in range(20):
        made = news.call("POST", V2 + "/multislot/rank", {**BODY, "slots": SLOTS, "eventId": f"page {t}"})
        body = made.json()
        assert made.status_code == 201 and list(body) == ["eventId", "slots"] and body["eventId"] == f"page {t}"
        top, side = body["slots"]
        assert (top["id"], side["id"]) == ("top", "side bar")
        assert side["rewardActionId"] not in ("sport", top["rewardActionId"])
        again = news.call("POST", V2 + "/multislot/rank", {**BODY, "slots": SLOTS, "eventId": f"page {t}"})
        assert again.json() == body
    path = V2 + "/multislot/events/page%200/reward"
    rewards = {"reward": [{"slotId": "side bar", "value": 0.5}, {"slotId": "top", "value": 1}]}
    for _ in range(2):
        assert news.call("POST", path, rewards).status_code == 204
    assert news.call("POST", path, {"reward": [{"slotId": "top", "value": 0}]}).status_code == 204, "the first counts"
    found = [decode(row) for row, _ in news.service.store.read()]
    rows = [row for row in found if (row.event_id or "").startswith("page:200:.")]
    top, side = "page:200:.top", "page:200:.side:20bar"
    assert [row.event_id for row in rows] == [top, side, side, top]
    contexts = [row.body.request.context for row in rows[:2]]
    assert contexts[0]["slot.size"] == "large" and contexts[1]["slot.name"] == "side bar"
    assert [row.body.outcome.reward for row in rows[2:]] == [0.5, 1.0]
    assert "other" in error(
        news.call("POST", path, {"reward": [{"slotId": "other", "value": 1}]}), 404, "ResourceNotFound"
    )
    assert replay(news.service.store).decisions == 40


def test_rewards_of_slots_are_refused_together(news: Served) -> None:
    assert news.call("POST", V2 + "/multislot/rank", {**BODY, "slots": SLOTS, "eventId": "page"}).status_code == 201
    path, good = V2 + "/multislot/events/page/reward", {"slotId": "top", "value": 1}
    for bad, status, code in (("other", 404, "ResourceNotFound"), ("side bar", 400, "BadRequest")):
        error(
            news.call("POST", path, {"reward": [good, {"slotId": bad, "value": 7 if status == 400 else 1}]}),
            status,
            code,
        )
    assert news.model("news").version == 0
    assert news.call("POST", path, {"reward": [good]}).status_code == 204
    assert news.model("news").version == 1


def test_multi_slot_in_apprentice_mode_plays_the_baselines(news: Served) -> None:
    news.call("PATCH", "/v1/models/news", {"mode": "apprentice"})
    made = news.call("POST", V2 + "/multislot/rank", {**BODY, "slots": SLOTS}).json()
    assert [one["rewardActionId"] for one in made["slots"]] == ["sport", "news"]


@pytest.mark.parametrize(
    ("slots", "more", "words"),
    [
        ([], {}, "slots"),
        (SLOTS, {"deferActivation": True}, "deferActivation"),
        ([SLOTS[0], {**SLOTS[1], "id": "top"}], {}, "two slots have the id 'top'"),
        ([SLOTS[0], {**SLOTS[1], "baselineAction": "sport"}], {}, "baselineAction"),
        ([{**SLOTS[0], "baselineAction": "other"}], {}, "baselineAction"),
        ([{**SLOTS[0], "excludedActions": ["other"]}], {}, "'other'"),
        ([SLOTS[0], {**SLOTS[1], "excludedActions": ["sport", "garden"]}], {}, "no action left"),
        ([SLOTS[0], {**SLOTS[1], "features": [{"x": [[1]]}]}], {}, "array of arrays"),
    ],
)
def test_multi_slot_requests_are_refused_before_the_first_decision(
    news: Served, slots: Any, more: Any, words: str
) -> None:
    response = news.call("POST", V2 + "/multislot/rank", {**BODY, "slots": slots, **more})
    assert words in error(response, 400, "BadRequest")
    assert news.service.coordinator._seq == 1


@given(st.tuples(st.text(max_size=80), st.text(max_size=80)), st.tuples(st.text(max_size=80), st.text(max_size=80)))
def test_every_slot_of_every_event_has_its_own_id(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert re.match(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\Z", slots.event_id(*one))
    assert (slots.event_id(*one) == slots.event_id(*other)) == (one == other)
    assert slots.event_id(*one) != translate.event_id("".join(other))


# --- features ---------------------------------------------------------------------------------------------------------


def test_nested_features_become_names() -> None:
    given = [
        {"user": {"age": 31, "device": {"os": "ios", "new": True}, "nothing": None, "": {}}},
        {"hour": 14, "scores": [0.5, 2], "genres": ["comedy", "drama"], "text": "", "_ignored": 1, "list": []},
        {"plan=free": 1},
    ]
    assert translate.features(given, "contextFeatures") == {
        "user.age": 31, "user.device.os": "ios", "user.device.new": True, "user.nothing": None,
        "hour": 14, "scores.0": 0.5, "scores.1": 2, "genres.comedy": True, "genres.drama": True, "text": None,
        "plan": "free",
    }  # fmt: skip
    assert translate.features([{"tag": "a"}, {"tag": "b"}, {"n": 1}, {"n": 2}], "x") == {
        "tag.a": True, "tag.b": True, "n.0": 1, "n.1": 2,
    }  # fmt: skip
    assert translate.features(None, "x") == translate.features([], "x") == {}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"actions": []}, "actions"),
        ({"actions": None}, "actions"),
        ({"actions": [{"id": f"a{k}"} for k in range(201)]}, "200"),
        ({"actions": [{"id": "a"}, {"id": "a"}]}, "two actions have the id 'a'"),
        ({"actions": [{"id": "a" * 257}]}, "256"),
        ({"actions": [{"id": "a", "features": {"x": 1}}]}, "features"),
        ({"actions": [{"id": "a", "features": [{"x": [[1]]}]}]}, "array of arrays"),
        ({"contextFeatures": ["x"]}, "contextFeatures"),
        ({"excludedActions": ["other"]}, "'other'"),
        ({"excludedActions": ["sport", "news", "garden"]}, "every action is excluded"),
        ({"contextFeatures": [{"n": 10**400}]}, ""),
    ],
)
def test_what_cannot_be_ranked_is_refused_in_their_form(news: Served, more: Any, words: str) -> None:
    assert words in error(rank(news, **more), 400, "BadRequest")
    assert news.service.coordinator._seq == 1


def test_deeply_nested_features_are_refused(news: Served) -> None:
    for depth in (300, 5000, 100_000):
        text = '{"actions":[{"id":"a"}],"contextFeatures":[' + '{"a":' * depth + "1" + "}" * depth + "]}"
        response = news.call("POST", V1 + "/rank", content=text, headers={"Content-Type": "application/json"})
        assert response.status_code in (201, 400), response.text


def test_bad_bodies_are_refused_in_their_form(news: Served) -> None:
    for text, kind, status in (
        ("{", "application/json", 400),
        ("", "application/json", 400),
        ("{}", "text/plain", 415),
        (" " * (1 << 21), "application/json", 413),
    ):
        response = news.call("POST", V1 + "/rank", content=text, headers={"Content-Type": kind})
        assert response.status_code == status and response.json()["error"]["message"]


# --- models and keys --------------------------------------------------------------------------------------------------


def test_an_unknown_event_or_model_is_not_found(news: Served) -> None:
    assert "nobody" in error(reward(news, "nobody", 1), 404, "ResourceNotFound")
    assert "nobody" in error(activate(news, "nobody"), 404, "ResourceNotFound")
    assert "other" in error(rank(news, "/m/other" + V1), 404, "ResourceNotFound")


@pytest.mark.parametrize("base", [V1, V2, "/m/news" + V1, "/m/news" + V2])
def test_what_is_not_served_names_what_to_use_here(news: Served, base: str) -> None:
    for method, path, words in (
        ("POST", "/multislot/events/e/activate", "never deferred"),
        ("GET", "/configurations/policy", "PATCH"),
        ("GET", "/model/properties", "snapshot"),
        ("GET", "/logs/properties", "format=dsjson"),
        ("PUT", "/evaluations/e1", "gaptron evaluate"),
        ("GET", "/featureImportances", "gaptron evaluate"),
        ("POST", "/other", "/other is not served"),
    ):
        assert words in error(news.call(method, base + path), 404, "ResourceNotFound"), path
    assert error(news.call("GET", base + "/rank"), 405, "MethodNotAllowed")


def test_without_a_model_in_the_path_the_only_one_with_actions_is_used(news: Served) -> None:
    news.make()
    assert rank(news).status_code == 201
    assert "label" in error(rank(news, "/m/triage" + V1), 400, "BadRequest")
    make_news(news, name="other")
    assert "http://HOST/m/MODEL" in error(rank(news), 404, "ResourceNotFound")
    assert rank(news, "/m/other" + V1).status_code == 201


def test_keys_and_their_models(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    store.acquire_lease()
    texts = {}
    for name, roles, model in [
        ("admin", ["admin"], None),
        ("both", ["decide", "feedback"], None),
        ("rank", ["decide"], None),
        ("other", ["decide", "feedback"], "other"),
    ]:
        key, texts[name] = new_key(roles, model)
        store.add_key(key)
    store.close()
    served = Served(str(tmp_path / "store"))
    for name in ("news", "other"):
        headers = {"Authorization": "Bearer " + texts["admin"]}
        assert served.call("POST", "/v1/models", {"name": name, "actions": True}, headers=headers).status_code == 201

    def ask(base: str, headers: dict[str, str], event: str) -> httpx.Response:
        return served.call("POST", base + "/rank", {**BODY, "eventId": event}, headers=headers)

    header = "Ocp-Apim-Subscription-Key"
    both, bound = {header: texts["both"]}, {header: texts["other"]}
    assert ask("/m/news" + V1, both, "e1").status_code == 201
    assert ask(V1, bound, "e2").status_code == 201, "the model of the key"
    assert (served.model("news").tally.decisions, served.model("other").tally.decisions) == (1, 1)
    assert ask("/m/news" + V2, {"Authorization": "Bearer " + texts["both"]}, "e3").status_code == 201
    assert "exactly one" in error(ask(V1, both, "e4"), 404, "ResourceNotFound")
    assert "other" in error(ask("/m/news" + V1, bound, "e5"), 403, "Forbidden")
    for headers in ({}, {header: "wrong"}, {header: ""}):
        assert header in error(ask("/m/news" + V1, headers, "e6"), 401, "Unauthorized")
        assert header in error(ask(V1, headers, "e6"), 401, "Unauthorized")
    for text, status in ((texts["rank"], 403), (texts["both"], 204)):
        path = "/m/news" + V1 + "/events/e1/reward"
        assert served.call("POST", path, {"value": 1}, headers={header: text}).status_code == status
    served.close()


def test_without_keys_any_key_is_accepted_from_this_machine_only(news: Served) -> None:
    path, header = V1 + "/rank", {"Ocp-Apim-Subscription-Key": "0123456789abcdef"}
    assert news.call("POST", path, BODY, headers=header).status_code == 201
    assert "localhost" in error(
        news.call("POST", path, BODY, headers={**header, "Host": "evil.example"}), 403, "Forbidden"
    )


def test_the_openapi_document_has_the_interface(news: Served) -> None:
    document = news.call("GET", "/openapi.json").json()
    for base in (V1, V2, "/m/{model}" + V1, "/m/{model}" + V2):
        operation = document["paths"][base + "/rank"]["post"]
        assert operation["security"] == [{"subscription_key": []}, {}]
        content = operation["responses"]["400"]["content"]
        assert content["application/json"]["schema"]["$ref"].endswith("/ErrorResponse")
        assert set(document["paths"][base + "/events/{eventId}/reward"]["post"]["responses"]) >= {"204", "404"}
    ids = [one["operationId"] for methods in document["paths"].values() for one in methods.values()]
    assert len(set(ids)) == len(ids)
    properties = document["components"]["schemas"]["RankRequest"]["properties"]
    assert set(properties) == {"actions", "contextFeatures", "excludedActions", "eventId", "deferActivation"}
    assert json.dumps(document)


def test_a_reward_that_is_not_a_number_says_so() -> None:
    with pytest.raises(RefusedError, match="0 to 1"):
        translate.outcome(float("nan"), "0..1")


def test_the_model_of_the_documentation_can_be_created() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "coming-from-personalizer.md").read_text(encoding="utf-8")
    body, for_replay = re.findall(r"-d '(\{.*?\})'", page)
    assert msgspec.json.decode(for_replay, type=NewModel).on_timeout == "ignore"
    spec = msgspec.json.decode(body, type=NewModel)
    assert (spec.actions, spec.feedback_timeout, spec.on_timeout) == (True, 600.0, "wrong")
    assert adapter_of(spec).learner.algorithm == "advised-gaptron"
    assert set(re.findall(r"\(([\w-]+\.md)\)", page)) == {
        "production.md",
        "actions.md",
        "challengers.md",
        "offpolicy.md",
    }
