"""Models whose every decision brings its own actions: the HTTP interface, the log, and what is refused."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gaptron
from gaptron.offpolicy import ActionLog, evaluate_learning
from gaptron.serve import events, snapshots
from gaptron.serve.adapter.actions import MAX_CROSSES
from gaptron.serve.events import Decided
from gaptron.serve.replay import replay
from gaptron.serve.schemas import DecisionRequest
from gaptron.serve.tally import MAX_ACTIONS, Tally
from gaptron.streams.actions import open_actions
from tests.serve.news import Twin, choose, likes, make_news, visits
from tests.serve.postgres import with_schema
from tests.serve.served import Served
from tests.serve.test_api import problem

ARTICLES = [
    {"id": "article-7", "features": {"topic": "sport", "age_h": 3}},
    {"id": "article-9", "features": {"topic": "news"}},
    {"id": "article-2"},
]
VISIT = {"event_id": "visit-1", "context": {"user": "student"}, "actions": ARTICLES, "excluded": ["article-2"]}
DECISION = "/v1/models/news/decisions/"


@pytest.fixture
def news(tmp_path: Path) -> Iterator[Served]:
    """A service on SQLite with one model with actions."""
    service = Served(str(tmp_path / "store"))
    assert make_news(service).status_code == 201
    yield service
    service.close()


@pytest.fixture
def news_anywhere(place: str) -> Iterator[Served]:
    """A service on each kind of store with one model with actions."""
    service = Served(place)
    assert make_news(service).status_code == 201
    yield service
    service.close()


def play(served: Served, count: int, **more: Any) -> None:
    for visit in visits(count, **more):
        made = choose(served, visit).json()
        assert served.send_outcome(made["event_id"], "news", correct=likes(visit, made["action"])).status_code == 200


# --- what users see -------------------------------------------------------------------------------------------------


def test_a_decision_among_actions_from_request_to_outcome(news: Served) -> None:
    made = choose(news, VISIT)
    body = made.json()
    assert made.status_code == 201
    assert list(body) == ["event_id", "action", "propensity", "ranking", "model", "seq", "version"]
    assert (body["event_id"], body["model"], body["seq"], body["version"]) == ("visit-1", "news", 2, 0)
    assert body["ranking"][0] == {"id": body["action"], "propensity": body["propensity"]}
    assert {one["id"] for one in body["ranking"]} == {"article-7", "article-9"}, "without what is excluded"
    assert sum(one["propensity"] for one in body["ranking"]) == pytest.approx(1.0, abs=1e-12)
    again = choose(news, VISIT)
    assert (again.status_code, again.headers["idempotent-replay"], again.json()) == (200, "true", body)
    other = {**VISIT, "actions": ARTICLES[:2], "excluded": None}
    assert problem(choose(news, other), 422, "event-id-reused")
    assert news.send_outcome("visit-1", "news", reward=0.7).json()["status"] == "recorded"
    assert news.send_outcome("visit-1", "news", reward=0.7).json()["status"] == "duplicate"
    assert problem(news.send_outcome("visit-1", "news", reward=0.6), 409, "conflict")
    shown = news.call("GET", DECISION + "visit-1").json()
    assert shown.pop("at") and shown.pop("outcome") == {"reward": 0.7} and shown == body
    without_id = choose(news, {"actions": ARTICLES}).json()
    assert len(without_id["ranking"]) == 3 and without_id["event_id"]


def test_a_model_with_actions_explores_unless_the_caller_says_otherwise(news: Served) -> None:
    body = news.call("GET", "/v1/models/news").json()
    assert (body["actions"], body["features"], body["epsilon"]) == (True, "auto", 0.02) and "labels" not in body
    assert "2 % of the decisions are drawn uniformly" in body["notes"][0] and "evaluate" in body["notes"][0]
    made = make_news(news, name="greedy", epsilon=0.0).json()
    assert made["epsilon"] == 0.0 and "notes" not in made
    for visit in visits(30):
        assert min(one["propensity"] for one in choose(news, visit).json()["ranking"]) >= 0.02 / 5
    default = news.call("POST", "/v1/models", {"name": "default", "actions": True}).json()
    assert default["algorithm"] == gaptron.Learner(actions=True).algorithm


def test_batches_take_actions_and_refuse_one_by_one(news: Served) -> None:
    wrong = {"event_id": "visit-x", "actions": ARTICLES, "excluded": ["article-8"]}
    path = "/v1/models/news/decisions/batch"
    results = news.call("POST", path, {"decisions": [VISIT, wrong, VISIT]}).json()["decisions"]
    assert results[0] == results[2] and results[0]["decision"]["event_id"] == "visit-1"
    assert "article-8" in results[1]["problem"]["detail"]
    body = {"outcomes": [{"event_id": "visit-1", "reward": 1.0}, {"event_id": "visit-1", "action": "article-7"}]}
    first, second = news.call("POST", "/v1/models/news/outcomes", body).json()["outcomes"]
    assert first["outcome"]["status"] == "recorded" and second["problem"]["status"] == 409


def test_the_report_shows_rewards_and_the_most_played_actions(news: Served) -> None:
    play(news, 40)
    report = news.call("GET", "/v1/models/news/report").json()
    mean = report["mean_reward"]
    assert report["has_actions"] and report["labels"] == report["single_label"] == []
    assert 0.0 < mean["low"] < mean["mean"] < mean["high"] < 1.0
    assert f"mean reward {mean['mean']:.2f} ({mean['low']:.2f} to {mean['high']:.2f})" in report["summary"]
    played = [one["played"] for one in report["actions"]]
    assert played == sorted(played, reverse=True) and len(played) <= 20
    assert 0.0 < report["exploration"] < 1.0
    metrics = news.call("GET", "/metrics").text
    assert f'gaptron_recent_mean_reward{{model="news"}} {mean["mean"]}' in metrics
    assert 'gaptron_played_total{model="news"' not in metrics, "every action would be a time series"


def test_only_some_actions_are_counted() -> None:
    tally, decision = Tally(), Decided(DecisionRequest(), 0, "often", 0.5)
    for _ in range(3):
        tally.decided("often", decision, 0)
    for n in range(MAX_ACTIONS):
        tally.decided(f"once-{n}", decision, 0)
    assert len(tally.actions) == MAX_ACTIONS // 2 + 1 and tally.actions["often"].played == 3
    tally.learned("often", decision, 0, 0.25, delay=3, n_available=2)
    assert tally.actions["often"].errors == 0.25 and tally.recent[-1].code == -1


def test_the_openapi_document_describes_actions(news: Served) -> None:
    schemas = news.call("GET", "/openapi.json").json()["components"]["schemas"]
    actions = schemas["DecisionRequest"]["properties"]["actions"]
    assert actions["anyOf"][0]["maxItems"] == 200 or actions["anyOf"][1]["maxItems"] == 200
    assert set(schemas["Action"]["properties"]) == {"id", "features", "x"}
    assert set(schemas["RankedAction"]["properties"]) == {"id", "propensity"}


# --- what is learned ------------------------------------------------------------------------------------------------


def test_the_service_decides_and_learns_as_the_learner_does(news_anywhere: Served) -> None:
    """Equal decisions for equal events: late and missing outcomes, rewards, exclusions, a crash and a restart."""
    served, twin, waiting = news_anywhere, Twin(news_anywhere), []
    for t, visit in enumerate(visits(90)):
        if t % 4 == 1:
            visit["excluded"] = [visit["actions"][t % 3]["id"]]
        if t % 10 == 7:
            visit["actions"] = visit["actions"][: 1 + t % 3]
            visit.pop("excluded", None)
        made = choose(served, visit).json()
        assert made["ranking"] == twin.decide(visit)
        waiting.append((visit, made["ranking"][0]))
        if t % 3 == 2:  # two late outcomes, and one that never comes
            for visit, first in (waiting[1], waiting[0]):
                value = float(likes(visit, first["id"]))
                outcome = {"reward": 0.5 * value} if t % 2 else {"correct": bool(value)}
                assert served.send_outcome(visit["event_id"], "news", **outcome).json()["status"] == "recorded"
                twin.learn(visit, first, **outcome)
            waiting.clear()
        if t == 40:
            served.crash()
            served.open()
        if t == 70:
            served.stop()
            served.open()
    assert np.array_equal(served.model("news").adapter.learner.weights, twin.learner.weights)
    assert served.model("news").version == 60
    assert replay(served.service.store).decisions == 90
    downloaded = served.call("GET", "/v1/models/news/snapshot").content
    assert len(downloaded) > 1000


def test_full_information_learns_from_the_right_action(news: Served) -> None:
    make_news(news, name="right", feedback="full")
    twin = Twin(news, "right", feedback="full", epsilon=0.0)
    for t, visit in enumerate(visits(40, offered=3)):
        made = choose(news, visit, "right").json()
        assert made["ranking"] == twin.decide(visit)
        right = next((one["id"] for one in visit["actions"] if likes(visit, one["id"])), visit["actions"][0]["id"])
        outcome = {"correct": True} if t % 2 and made["action"] == right else {"action": right}
        assert news.send_outcome(made["event_id"], "right", **outcome).json()["status"] == "recorded"
        twin.learn(visit, made["ranking"][0], truth=right)
    assert np.array_equal(news.model("right").adapter.learner.weights, twin.learner.weights)
    choose(news, {**VISIT, "event_id": "other"}, "right")
    for outcome, words in [
        ({"correct": False}, "name the right action"),
        ({"reward": 1.0}, "name the right action"),
        ({"action": "article-2"}, "'article-2'"),  # excluded
        ({"action": "article-8"}, "'article-8'"),
        ({"label": "article-7"}, "give action"),
    ]:
        assert words in problem(news.send_outcome("other", "right", **outcome), 422, "invalid")
    assert news.model("right").version == 40


def test_full_information_learns_from_what_the_caller_played_with_any_propensity(news: Served) -> None:
    spec = {"name": "right", "feedback": "full", "algorithm": "advised-gaptron", "mode": "shadow"}
    assert make_news(news, **spec).status_code == 201
    for visit in visits(3):
        action = visit["actions"][0]["id"]
        made = choose(news, {**visit, "played": {"action": action, "propensity": 0.25}}, "right")
        assert made.status_code == 201, made.text
        assert news.send_outcome(visit["event_id"], "right", action=action).status_code == 200
    assert news.model("right").version == 3
    assert news.call("GET", "/v1/models/right/report").json()["learned"] == 3


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("algorithm", "feedback"), [("softmax", "full"), ("squarecb", "bandit")])
def test_a_model_whose_algorithm_needs_the_norm_is_refused_without_it(
    news: Served, algorithm: str, feedback: str, sparse: bool
) -> None:
    spec = {"name": "rows", "algorithm": algorithm, "feedback": feedback, "features": 20_000 if sparse else 3}
    assert "norm=" in problem(make_news(news, **spec), 422, "invalid")
    assert make_news(news, **spec, settings={"norm": 2.0}).status_code == 201


@pytest.mark.parametrize("sparse", [False, True])
def test_actions_may_be_rows_of_numbers(news: Served, sparse: bool) -> None:
    make_news(news, name="rows", features=4, epsilon=0.1)
    twin = gaptron.Learner("frugal-gaptron", actions=True, n_features=4, feedback="bandit", epsilon=0.1, seed=0)
    rng = np.random.default_rng(0)
    for t in range(30):
        rows = rng.normal(size=(3 + t % 3, 4)).round(2)
        actions: list[Any] = [{"id": f"a{k}", "x": row.tolist()} for k, row in enumerate(rows)]
        if sparse:
            actions = [
                {"id": one["id"], "x": {"indices": [3, 0, 1, 2], "values": [one["x"][j] for j in (3, 0, 1, 2)]}}
                for one in actions
            ]
        excluded = ["a1"] if t % 5 == 3 else []
        made = choose(news, {"event_id": f"e{t}", "actions": actions, "excluded": excluded}, "rows").json()
        available = [k for k in range(len(rows)) if f"a{k}" not in excluded]
        p = twin.distribution(rows, available=available)
        if not sparse:
            assert {one["id"]: one["propensity"] for one in made["ranking"]} == {f"a{k}": p[k] for k in available}
        row = int(made["action"][1:])
        correct = bool(rows[row, 0] > 0.0)
        news.send_outcome(f"e{t}", "rows", correct=correct)
        given = {"actions": rows, "action": row, "available": available}
        twin.learn_logged(propensity=made["propensity"], correct=correct, **given)
    assert np.allclose(news.model("rows").adapter.learner.weights, twin.weights, atol=1e-9)
    assert news.model("rows").adapter.learner.weights.any()
    news.stop()
    news.open()
    assert replay(news.service.store).decisions == 30


def test_timeouts_are_rewards_of_zero(news: Served) -> None:
    make_news(news, name="clicks", feedback_timeout=60, on_timeout="wrong")
    twin, requests = Twin(news, "clicks"), list(visits(12))
    firsts = [choose(news, visit, "clicks").json()["ranking"][0] for visit in requests]
    for t in range(0, 12, 3):
        news.send_outcome(f"visit-{t}", "clicks", reward=1.0)
    assert news.model("clicks").version == 0 and news.model("clicks").pending_size == 12 * 5
    news.stop()
    news.open()
    assert news.model("clicks").pending_size == 12 * 5
    news.pass_time(61)
    for t, (visit, first) in enumerate(zip(requests, firsts)):
        twin.learn(visit, first, correct=t % 3 == 0)
    assert np.array_equal(news.model("clicks").adapter.learner.weights, twin.learner.weights)
    assert news.model("clicks").pending_size == 0 and news.model("clicks").tally.timed_out == 8
    assert news.send_outcome("visit-1", "clicks", reward=1.0).json()["status"] == "late"
    assert replay(news.service.store).decisions == 12


def test_void_and_overridden_decisions_are_not_learned_from(news: Served) -> None:
    first, second = (choose(news, {**VISIT, "event_id": event}).json() for event in ("one", "two"))
    other = next(one["id"] for one in second["ranking"] if one["id"] != second["action"])
    news.send_outcome("one", "news", void=True)
    assert news.send_outcome("two", "news", reward=1.0, played=other).json()["status"] == "recorded"
    tally = news.model("news").tally
    assert (tally.void, tally.overridden, news.model("news").version) == (1, 1, 0) and first


def test_shadow_mode_learns_from_the_callers_action(news: Served) -> None:
    news.call("PATCH", "/v1/models/news", {"mode": "shadow"})
    twin, agreed = Twin(news), 0
    for visit in visits(30):
        played = {"action": visit["actions"][0]["id"], "propensity": 0.5}
        made = choose(news, {**visit, "played": played}).json()
        assert (made["action"], made["propensity"]) == (played["action"], 0.5) and "ranking" not in made
        assert made["shadow_action"] == twin.decide(visit)[0]["id"]
        agreed += made["shadow_action"] == made["action"]
        correct = likes(visit, made["action"])
        news.send_outcome(visit["event_id"], "news", correct=correct)
        twin.learn(visit, {"id": made["action"], "propensity": 0.5}, correct=correct)
    assert np.array_equal(news.model("news").adapter.learner.weights, twin.learner.weights)
    assert "agrees with the played action" in news.call("GET", "/v1/models/news/report").json()["summary"]
    assert news.model("news").tally.agreed == agreed
    for played, words in [
        (None, 'give "played", the action'),
        ({"label": "article-7"}, 'give "played", the action'),
        ({"label": "article-7", "action": "article-7"}, 'give "played", the action'),
        ({"action": "article-2"}, "not one of the available actions"),
        ({"action": "article-7", "propensity": 1e-9}, "at least 1e-06"),
    ]:
        assert words in problem(choose(news, {**VISIT, "event_id": "other", "played": played}), 422, "invalid")
    assert replay(news.service.store).decisions == 30


@pytest.mark.slow
def test_a_thousand_decisions_earn_more_and_more(news: Served) -> None:
    possible, earned = [], []
    for visit in visits(1000, seed=3):
        made = choose(news, visit).json()
        reward = likes(visit, made["action"])
        news.send_outcome(made["event_id"], "news", reward=float(reward))
        possible.append(any(likes(visit, one["id"]) for one in visit["actions"]))
        earned.append(reward)
    shares = [sum(earned[a:b]) / sum(possible[a:b]) for a, b in ((0, 200), (200, 600), (600, 1000))]
    print(f"share of the best: {shares}")
    assert shares[0] < shares[2] and shares[2] > 0.6


# --- what is refused ------------------------------------------------------------------------------------------------


def state(served: Served) -> str:
    return snapshots.checksum(snapshots.pack(served.model("news")))


def numbered(count: int) -> list[dict[str, Any]]:
    return [{"id": f"a{k}", "features": {"n": k}} for k in range(count)]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"actions": numbered(201)}, "200"),
        ({"actions": []}, "actions"),
        ({"actions": [*ARTICLES, {"id": "article-9"}]}, "two actions have the id 'article-9'"),
        ({"actions": ARTICLES, "excluded": ["article-8"]}, "excluded contains 'article-8'"),
        ({"actions": ARTICLES, "excluded": ["article-7", "article-9", "article-2"]}, "at least one must be left"),
        ({"actions": [{"id": ""}]}, "actions[0].id"),
        ({"actions": [{"id": 7}]}, "actions[0].id"),
        ({"actions": [{"features": {"a": 1}}]}, "id"),
        ({"actions": [{"id": "a", "x": [1.0]}]}, "this model takes named features"),
        ({"actions": [{"id": "a", "colour": 1}]}, "colour"),
        ({"actions": [{"id": "a", "features": {"tags": ["x"]}}]}, "actions[0].features"),
        ({"actions": {"a": {}}}, "actions"),
        ({"actions": ARTICLES, "context": ["student"]}, "context"),
        ({"actions": ARTICLES, "available": ["article-7"]}, "available is for models with labels"),
        ({"actions": ARTICLES, "x": [1.0]}, "x is for models with labels"),
        ({"actions": ARTICLES, "features": {"a": 1}}, "features is for models with labels"),
        ({"actions": ARTICLES, "played": {"action": "article-7"}}, "shadow"),
        ({"actions": ARTICLES, "advice": {"article-7": 1.0}}, "advice"),
        ({"x": [0.3, 1.0]}, "x is for models with labels"),
        ({}, "give actions"),
        (
            {
                "context": {f"c{k}": 1 for k in range(1001)},
                "actions": [{"id": "a", "features": {f"f{k}": 1 for k in range(1000)}}],
            },
            f"{MAX_CROSSES:,}",
        ),
    ],
)
def test_what_cannot_be_decided_is_refused_and_changes_nothing(news: Served, body: Any, words: str) -> None:
    choose(news, VISIT)
    before, last = state(news), news.service.coordinator._seq
    assert words in problem(choose(news, body), 422, "invalid")
    assert state(news) == before
    assert news.service.coordinator._seq == last


def test_numbers_that_are_not_finite_are_no_json(news: Served) -> None:
    for text in ("NaN", "1e400", "Infinity"):
        body = b'{"actions":[{"id":"a","features":{"n":' + text.encode() + b"}}]}"
        headers = {"Content-Type": "application/json"}
        response = news.call("POST", "/v1/models/news/decisions", content=body, headers=headers)
        assert response.status_code in (400, 422)
    assert news.service.coordinator._seq == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([{"id": "a", "x": [1.0, 2.0, 3.0]}], "action 'a': x has length 3"),
        ([{"id": "a", "x": {"indices": [4], "values": [1.0]}}], "action 'a': x contains index 4"),
        ([{"id": "a", "x": [1.0, 2.0, 3.0, 4.0]}, {"id": "b", "x": {"indices": [0], "values": [1.0]}}], "one form"),
        ([{"id": "a", "features": {"n": 1}}], "this model takes numbers"),
        ([{"id": "a"}], "this model takes numbers"),
        ([{"id": "a", "x": [1e300, 0.0, 0.0, 0.0]}], "norm"),
    ],
)
def test_rows_of_numbers_that_do_not_fit_are_refused(news: Served, body: Any, words: str) -> None:
    make_news(news, name="rows", features=4)
    assert words in problem(choose(news, {"actions": body}, "rows"), 422, "invalid")
    context = {"context": {"user": "x"}, "actions": [{"id": "a", "x": [1.0, 0.0, 0.0, 0.0]}]}
    assert "named features" in problem(choose(news, context, "rows"), 422, "invalid")


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ({"label": "article-7"}, "give action, not label"),
        ({"action": "article-8"}, "'article-8' is not the id"),
        ({"reward": 1.0, "action": "article-7"}, "exactly one of correct, reward, action or void"),
        ({}, "exactly one of correct, reward, action or void"),
        ({"reward": 1.5}, "reward"),
        ({"correct": True, "played": "article-8"}, "'article-8' is not the id"),
    ],
)
def test_an_outcome_that_does_not_fit_is_refused(news: Served, outcome: Any, words: str) -> None:
    choose(news, VISIT)
    assert words in problem(news.send_outcome("visit-1", "news", **outcome), 422, "invalid")
    assert news.service.coordinator._seq == 2 and news.model("news").version == 0


def test_labels_and_actions_are_not_mixed(served: Served) -> None:
    for body in ({"actions": ARTICLES}, {"x": [0.3, 1.0], "context": {"a": 1}}, {"x": [0.3, 1.0], "excluded": ["a"]}):
        words = problem(served.call("POST", "/v1/models/triage/decisions", body), 422, "invalid")
        assert "this one chooses between labels" in words
    served.decide("e0")
    assert "give label, not action" in problem(served.send_outcome("e0", action="mail"), 422, "invalid")
    for spec, words in [
        ({"actions": True, "labels": ["a", "b"]}, "leave out labels"),
        ({"actions": False}, "give labels"),
        ({"actions": True, "algorithm": "perceptron"}, "actions"),
        ({"actions": True, "epsilon": 1e-4}, "at least 0.0002"),
        ({"actions": True, "settings": {"actions": True}}, "'actions' is not a setting"),
    ]:
        assert words in problem(served.call("POST", "/v1/models", {"name": "news", **spec}), 422, "invalid")
    make_news(served)
    assert "add_labels" in problem(served.call("PATCH", "/v1/models/news", {"add_labels": ["a"]}), 422, "invalid")


# --- the log --------------------------------------------------------------------------------------------------------


def test_redaction_removes_features_and_keeps_the_decision(place: str) -> None:
    served = Served(place, keep_days=1)
    make_news(served)
    requests = list(visits(20))
    made = [choose(served, visit).json() for visit in requests]
    for visit, one in zip(requests[:10], made):
        served.send_outcome(one["event_id"], "news", correct=likes(visit, one["action"]))
    learned = served.model("news").adapter.learner.weights
    served.pass_time(2 * 86_400)
    text = "".join(row.body for row, _ in served.service.store.read())
    assert "sport" not in text and "visitor" not in text and requests[0]["actions"][0]["id"] in text
    for visit, one in zip(requests, made):
        again = choose(served, visit)
        assert (again.status_code, again.json()) == (200, one)
    assert served.send_outcome("visit-15", "news", reward=1.0).json()["status"] == "late"
    assert served.call("GET", "/v1/models/news/log").text == ""
    assert replay(served.service.store).starts["news"] > 0
    served.stop()
    served.open()
    assert np.array_equal(served.model("news").adapter.learner.weights, learned)
    assert choose(served, requests[3]).json() == made[3]
    served.close()


@pytest.mark.parametrize("form", ["jsonl", "dsjson"])
def test_the_export_is_the_log_of_the_decisions(news: Served, tmp_path: Path, form: str) -> None:
    requests = list(visits(40))
    requests[5]["excluded"] = [requests[5]["actions"][0]["id"]]
    made = []
    for t, visit in enumerate(requests):
        made.append(choose(news, visit).json())
        if t % 4:
            news.send_outcome(visit["event_id"], "news", reward=0.5 * float(likes(visit, made[-1]["action"])))
    path = tmp_path / f"news.{form}"
    path.write_bytes(news.call("GET", f"/v1/models/news/log?format={form}").content)
    stream = open_actions(path)
    assert stream.n_rounds == 30 and stream.kind == "played"
    for t, (visit, one) in enumerate([both for t, both in enumerate(zip(requests, made)) if t % 4]):
        kept = [action for action in visit["actions"] if action["id"] not in visit.get("excluded", ())]
        assert stream.contexts[t] == visit["context"]
        assert stream.actions[t] == {action["id"]: action["features"] for action in kept}
        assert (stream.action(t), stream.propensity[t]) == (one["action"], one["propensity"])
        assert stream.reward[t] == 0.5 * float(likes(visit, one["action"]))
        p = {each["id"]: each["propensity"] for each in one["ranking"]}
        assert stream.distribution_at(t).tolist() == [p[action["id"]] for action in kept]  # type: ignore[union-attr]
    log = ActionLog(stream)
    result = evaluate_learning(gaptron.Learner("frugal-gaptron", actions=True, features="auto", feedback="bandit"), log)
    assert result


def test_vowpal_wabbit_reads_the_export(news: Served, tmp_path: Path) -> None:
    vw = pytest.importorskip("vowpalwabbit", reason="needs Vowpal Wabbit: pip install vowpalwabbit")
    play(news, 40)
    path = tmp_path / "news.dsjson"
    path.write_bytes(news.call("GET", "/v1/models/news/log?format=dsjson").content)
    files = f"-d {path} -p {tmp_path}/distributions --extra_metrics {tmp_path}/metrics.json"
    vw.Workspace(f"--dsjson --cb_explore_adf --epsilon 0.2 -q CA {files}", quiet=True).finish()
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    found = metrics["cb_explore_adf_greedy"]
    assert metrics["line_parse_error"] == metrics["number_skipped_events"] == 0 and found["cbea_labeled_ex"] == 40
    made = [news.call("GET", DECISION + visit["event_id"]).json()["action"] for visit in visits(40)]
    assert found["cbea_sum_cost"] == -sum(likes(visit, action) for visit, action in zip(visits(40), made))
    blocks = (tmp_path / "distributions").read_text().split("\n\n")
    assert [len(text.split(",")) for text in blocks if text.strip()] == [5] * 40


def test_an_export_in_shadow_mode_has_no_distributions(news: Served, tmp_path: Path) -> None:
    news.call("PATCH", "/v1/models/news", {"mode": "shadow"})
    choose(news, {**VISIT, "played": {"action": "article-9", "propensity": 0.25}})
    news.send_outcome("visit-1", "news", reward=1.0)
    path = tmp_path / "shadow.jsonl"
    path.write_bytes(news.call("GET", "/v1/models/news/log").content)
    stream = open_actions(path)
    assert stream.distribution is None and (stream.action(0), stream.propensity[0]) == ("article-9", 0.25)


def test_a_changed_propensity_or_ranking_is_found_by_replay(news: Served) -> None:
    choose(news, VISIT)
    row = next(row for row, _ in news.service.store.read() if row.kind == "decided")
    decided = events.decode(row)
    model = news.model("news")
    assert model.decide(decided.body.request, "visit-1", decided.at) == decided.body
    assert decided.body.ranking is not None and sorted(decided.body.ranking) == [0, 1]
    assert len(decided.body.distribution) == 2


def test_the_cache_counts_actions(news: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gaptron.serve.coordinator.CACHED_DECISIONS", 25)
    requests = list(visits(12))
    made = [choose(news, visit).json() for visit in requests]
    coordinator = news.service.coordinator
    assert len(coordinator._cache) <= 6 and coordinator._cache_size == 5 * len(coordinator._cache)
    for visit, one in zip(requests, made):
        assert choose(news, visit).json() == one
        assert news.send_outcome(one["event_id"], "news", reward=1.0).json()["status"] == "recorded"
    assert coordinator._cache_size == 5 * len(coordinator._cache)


def test_as_many_decisions_may_wait_as_their_actions_fit(news: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gaptron.serve.coordinator.MAX_PENDING", 12)
    make_news(news, name="clicks", feedback_timeout=60, on_timeout="wrong")
    statuses = [choose(news, visit, "clicks").status_code for visit in visits(4)]
    assert statuses == [201, 201, 201, 503]
    news.pass_time(61)
    assert choose(news, {**VISIT, "event_id": "other"}, "clicks").status_code == 201


def test_a_learner_without_a_distribution_is_quarantined(news: Served) -> None:
    make_news(news, name="other")
    learner = news.model("news").adapter.learner
    preview = learner.preview(VISIT["context"], [(one["id"], one.get("features", {})) for one in ARTICLES])
    learner.preview = lambda **given: preview._replace(distribution=np.full(3, np.nan))  # type: ignore[method-assign]
    assert choose(news, VISIT).json()["type"] == "/problems/quarantined"
    assert choose(news, VISIT, "other").status_code == 201
    news.crash()
    news.open()
    assert choose(news, VISIT).status_code == 201, "a restart restores it from the log"


# --- replicas -------------------------------------------------------------------------------------------------------


def test_replicas_decide_among_actions(postgres: str) -> None:
    leader = Served(with_schema(postgres, f"test_{uuid.uuid4().hex}"), with_replicas=True)
    make_news(leader)
    leader.tick()
    replica = Served(leader.place, replica=True)
    untrained = Twin(leader)
    for t, visit in enumerate(visits(30)):
        response = choose(replica, visit)
        made = response.json()
        assert response.status_code == 201 and "seq" not in made
        assert made["version"] == (0 if t < 10 else 10 if t < 21 else 21)
        if t < 10:
            assert made["ranking"] == untrained.decide(visit), "nothing was published since"
        correct = likes(visit, made["action"])
        assert leader.send_outcome(visit["event_id"], "news", correct=correct).json()["status"] == "recorded"
        if t in (9, 20):
            leader.tick()
            replica.tick()
        assert choose(replica, visit).json() == made
    assert leader.model("news").version == 30 and replica.decide("e", model="news").status_code == 422
    leader.tick()
    assert replay(leader.service.store).decisions == 30
    replica.close()
    leader.close()
