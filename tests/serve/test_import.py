"""Decisions of another log teach a model before its first decision."""

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from gaptron.learner import Learner
from gaptron.serve import events, snapshots
from gaptron.serve.replay import load_models, replay
from tests.serve.news import likes, make_news, visits
from tests.serve.served import SMALL, Served
from tests.serve.test_api import problem

TRIAGE = "/v1/models/triage"
LINES = [
    {"event_id": "old-1", "x": [0.3, 1.0], "label": "chat", "propensity": 0.5, "outcome": {"correct": True}},
    {"event_id": "old-2", "x": [0.3, -1.0], "label": "mail", "propensity": 0.25, "outcome": {"reward": 0.5}},
    {"event_id": "old-3", "x": [0.1, 0.2], "label": "phone", "propensity": 0.25, "outcome": {"label": "chat"}},
]


def send(served: Served, decisions: list[dict[str, Any]], model: str = "triage") -> httpx.Response:
    return served.call("POST", f"/v1/models/{model}/import", {"decisions": decisions})


def counts(served: Served, model: str = "triage") -> dict[str, Any]:
    return dict(served.call("GET", f"/v1/models/{model}/report").json()["counts"])


def test_a_log_is_imported_once_and_learned_from_as_logged(anywhere: Served) -> None:
    assert send(anywhere, LINES[:2]).json() == {"imported": 2, "known": 0}
    assert send(anywhere, LINES).json() == {"imported": 1, "known": 2}
    assert send(anywhere, LINES).json() == {"imported": 0, "known": 3}
    model = anywhere.model()
    assert (model.version, model.tally.imported, model.tally.decisions, model.tally.outcomes) == (3, 3, 0, 0)
    learner = Learner("gaptron", classes=["mail", "chat", "phone"], feedback="bandit", **SMALL["settings"])
    for line in LINES:
        outcome = line["outcome"]
        feedback = outcome if "label" not in outcome else {"correct": False}
        learner.learn_logged(np.array([line["x"]]), line["label"], line["propensity"], **feedback)
    assert (learner.weights == model.adapter.learner.weights).all()
    assert anywhere.decide("new-1").status_code == 201
    assert anywhere.send_outcome("new-1", correct=True).status_code == 200
    anywhere.crash()
    anywhere.open()
    assert send(anywhere, LINES).json() == {"imported": 0, "known": 3}
    done = replay(anywhere.service.store)
    assert (done.decisions, done.models["triage"].version) == (1, 4)
    whole = load_models(anywhere.service.store)["triage"]
    assert snapshots.checksum(snapshots.pack(whole)) == snapshots.checksum(snapshots.pack(anywhere.model()))
    assert counts(anywhere)["imported"] == 3 and counts(anywhere)["decisions"] == 1


def test_the_summary_says_how_many_decisions_were_imported(served: Served) -> None:
    def summary() -> str:
        return str(served.call("GET", "/v1/models/slow/report").json()["summary"])

    served.make(name="slow", feedback_timeout=60, on_timeout="wrong")
    send(served, LINES[:1], "slow")
    assert summary() == "No decisions yet. 1 decision of other logs was imported and learned."
    send(served, LINES, "slow")
    served.service.reports._reports.clear()  # a report is reused for a second
    assert summary() == "No decisions yet. 3 decisions of other logs were imported and learned."
    served.decide("a", model="slow")
    served.send_outcome("a", "slow", correct=True)
    served.service.reports._reports.clear()
    assert summary() == (
        "1 decision, 100 % with an outcome. 1 outcome arrived and will be learned at the end of the timeout. "
        "3 decisions of other logs were imported and learned."
    )


def test_decisions_without_a_propensity_are_refused_with_their_number(served: Served) -> None:
    without = [{name: value for name, value in line.items() if name != "propensity"} for line in LINES]
    detail = problem(send(served, [LINES[0], *without[1:]]), 422, "invalid")
    assert detail.startswith("nothing was imported: 2 of 3 have no propensity, which bandit feedback needs")
    assert "first: event 'old-2'" in detail
    assert served.model().version == 0 and served.service.store.known_events("triage", ["old-1"]) == {}
    served.make(name="full", feedback="full", algorithm="softmax", settings={"norm": 2.0})
    lines = [{"event_id": f"o{t}", "x": [0.1, 0.2], "outcome": {"label": "chat"}} for t in range(3)]
    assert send(served, lines, "full").json() == {"imported": 3, "known": 0}
    assert "label" in problem(
        send(served, [{**LINES[0], "event_id": "x", "outcome": {"reward": 0.0}}], "full"), 422, "invalid"
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"label": "fax"}, "fax"),
        ({"label": None}, "have no label that was played"),
        ({"x": [1.0, 2.0, 3.0]}, "have other features than the first"),
        ({"x": None, "features": {"a": 1}}, "have other features than the first"),
        ({"x": [1e9, 0.0]}, "norm"),
        ({"outcome": {}}, "exactly one"),
        ({"outcome": {"void": True}}, "are void"),
        ({"outcome": {"correct": True, "played": "mail"}}, "overridden"),
        ({"propensity": 1e-7}, "have a propensity below 1e-06"),
        ({"action": "chat"}, "both a label and an action"),
        ({"available": ["chat", "phone"]}, "available"),
        ({"event_id": "old-1"}, "occurs twice"),
    ],
    ids=str,
)
def test_a_wrong_decision_is_refused_and_nothing_is_imported(served: Served, change: dict[str, Any], said: str) -> None:
    wrong = {name: value for name, value in {**LINES[1], **change}.items() if value is not None}
    assert said in problem(send(served, [LINES[0], wrong, LINES[2]]), 422, "invalid")
    assert served.model().version == 0 and served.model().adapter.width is None
    assert send(served, LINES).json()["imported"] == 3


def test_the_body_is_validated(served: Served) -> None:
    assert problem(send(served, []), 422, "invalid")
    assert problem(send(served, [{**LINES[0], "propensity": 1.5}]), 422, "invalid")
    assert problem(send(served, [{**LINES[0], "event_id": "no spaces"}]), 422, "invalid")
    assert problem(send(served, LINES, "nothing"), 404, "not-found")


def test_an_event_that_the_service_decided_is_not_imported(served: Served) -> None:
    served.decide("old-2")
    assert send(served, LINES).json() == {"imported": 2, "known": 1}
    assert served.call("GET", TRIAGE + "/decisions/old-1").status_code == 404
    assert served.decide("old-1").status_code == 201, "an imported event may still be decided"
    assert served.send_outcome("old-1", correct=True).status_code == 200
    replay(served.service.store)


def test_challengers_learn_from_what_is_imported_and_are_not_compared_on_it(served: Served) -> None:
    served.call("PUT", TRIAGE + "/challengers/second", SMALL)
    send(served, LINES)
    second = served.model().challengers["second"]
    assert second.evidence.better.rounds == 0
    assert (second.adapter.learner.weights == served.model().adapter.learner.weights).all()


def test_ids_of_a_deleted_model_are_refused_and_not_taken_for_known(served: Served) -> None:
    send(served, LINES)
    served.call("DELETE", TRIAGE)
    served.make()
    assert "used: use other ids" in problem(send(served, LINES), 422, "invalid")
    assert send(served, [line | {"event_id": f"again-{t}"} for t, line in enumerate(LINES)]).json()["imported"] == 3
    replay(served.service.store)


def test_the_first_import_settles_how_features_are_given(served: Served) -> None:
    served.make(name="open", algorithm="frugal-gaptron", settings={})
    served.call("PUT", "/v1/models/open/challengers/second", {"algorithm": "frugal-gaptron"})
    lines = [{**line, "x": None, "features": {"colour": "red"}} for line in LINES]
    lines = [{name: value for name, value in line.items() if value is not None} for line in lines]
    assert send(served, lines, "open").json()["imported"] == 3
    assert served.call("GET", "/v1/models/open").json()["features"] == "auto"
    assert served.model("open").challengers["second"].stopped is None
    served.stop()
    served.open()
    replay(served.service.store)


@pytest.fixture
def news_anywhere(place: str) -> Iterator[Served]:
    service = Served(place)
    make_news(service)
    yield service
    service.close()


def test_decisions_among_actions_are_imported(news_anywhere: Served) -> None:
    lines = []
    for visit in visits(30):
        action = visit["actions"][1]["id"]
        lines.append(visit | {"action": action, "propensity": 0.2, "outcome": {"correct": likes(visit, action)}})
    assert send(news_anywhere, lines, "news").json() == {"imported": 30, "known": 0}
    assert "not one of the available actions" in problem(
        send(news_anywhere, [lines[0] | {"event_id": "x", "action": "none"}], "news"), 422, "invalid"
    )
    assert news_anywhere.model("news").version == 30
    news_anywhere.stop()
    news_anywhere.open()
    replay(news_anywhere.service.store)


def test_the_features_of_imported_decisions_are_removed_like_those_of_others(place: str) -> None:
    served = Served(place, keep_days=30.0)
    try:
        served.make()
        send(served, LINES)
        served.decide("new")
        served.pass_time(31 * 86_400.0)
        rows = [row for row, _ in served.service.store.read() if row.kind == "imported"]
        bodies = [events.decode(row).body for row in rows]
        assert len(bodies) == 3 and all(one.redacted and one.request.x is None for one in bodies)
        version = served.model().version
        served.crash()
        served.open()
        assert served.model().version == version == 3
        replay(served.service.store)
    finally:
        served.close()


def test_the_export_has_only_decisions_of_the_model(served: Served) -> None:
    send(served, LINES)
    served.decide("new")
    served.send_outcome("new", correct=True)
    lines = served.call("GET", TRIAGE + "/log").text.splitlines()
    assert len(lines) == 2 and '"event_id":"new"' in lines[1]
