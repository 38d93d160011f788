"""What decisions earned over time, and for each value of a feature."""

import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from gaptron.offpolicy.estimates import on_policy
from gaptron.serve import snapshots
from gaptron.serve.events import Created
from gaptron.serve.history import DAY, HOUR, History
from gaptron.serve.model_state import Model
from gaptron.serve.replay import load_models, replay
from gaptron.serve.schemas import NewModel
from gaptron.serve.segments import MAX_FEATURES, MAX_LENGTH, MAX_VALUES, Segments
from tests.serve.news import choose, likes, make_news, visits
from tests.serve.served import START, Served

DEVICES = ("phone", "laptop", "tablet")


def points_of(served: Served, model: str, step: str) -> Any:
    body = served.call("GET", f"/v1/models/{model}/history?step={step}").json()
    assert body["step"] == step
    return body["points"]


def segments_of(served: Served, model: str) -> dict[str, dict[str, Any]]:
    body = served.call("GET", f"/v1/models/{model}/segments").json()
    return {
        ("action " if one.get("of_action") else "") + one["feature"]: {value["value"]: value for value in one["values"]}
        for one in body["segments"]
    }


# --- history ----------------------------------------------------------------------------------------------------------


def test_each_hour_and_day_has_its_decisions_and_their_error_rate(anywhere: Served) -> None:
    errors: dict[int, list[float]] = defaultdict(list)
    for t in range(120):
        start = anywhere.time - anywhere.time % HOUR
        anywhere.decide(f"e{t}", (math.sin(t), 1.0))
        anywhere.send_outcome(f"e{t}", correct=t % 3 == 0)
        errors[start].append(float(t % 3 != 0))
        anywhere.pass_time(1800)
    anywhere.stop()
    anywhere.open()
    hours, days = points_of(anywhere, "triage", "hour"), points_of(anywhere, "triage", "day")
    assert [one["start"] for one in hours] == sorted(errors) and len(hours) > 50
    for one in hours:
        expected = on_policy(np.array(errors[one["start"]]), 0.95)
        assert one["decisions"] == one["outcomes"] == len(errors[one["start"]])
        assert (one["error_rate"], one["low"], one["high"]) == pytest.approx(expected[1:])
    assert [one["start"] % DAY for one in days] == [0] * len(days) and sum(one["decisions"] for one in days) == 120
    assert anywhere.call("GET", "/v1/models/triage/history").json()["step"] == "hour"
    assert anywhere.call("GET", "/v1/models/triage/history?step=week").status_code == 422
    assert anywhere.call("GET", "/v1/models/nobody/history").status_code == 404


def test_an_outcome_counts_in_the_hour_of_its_decision_whenever_it_comes(served: Served) -> None:
    served.make(name="slow", feedback_timeout=7200, on_timeout="wrong")
    for model in ("triage", "slow"):
        served.decide("a", model=model)
        served.decide("b", model=model)
    served.pass_time(3600)
    for model in ("triage", "slow"):
        served.send_outcome("a", model=model, correct=True)
    assert [one["outcomes"] for one in points_of(served, "slow", "hour")] == [0]
    assert points_of(served, "slow", "hour")[0]["error_rate"] is None
    served.pass_time(7200)
    (one,) = points_of(served, "slow", "hour")
    assert (one["start"], one["decisions"], one["outcomes"], one["error_rate"]) == (START - START % HOUR, 2, 2, 0.5)
    (one,) = points_of(served, "triage", "hour")
    assert (one["decisions"], one["outcomes"], one["error_rate"]) == (2, 1, 0.0)


def test_hours_are_kept_for_two_weeks_and_days_for_three_years() -> None:
    history = History()
    for hour in range(0, 4 * 366 * 24, 5):
        history.decided(hour * HOUR)
        history.learned(hour * HOUR, 1.0)
        history.learned((hour - 30 * 24) * HOUR, 0.0)  # only its day is there
    last = (4 * 366 * 24 - 1) // 5 * 5 * HOUR
    assert min(history.hours) > last - 14 * DAY - HOUR and len(history.hours) in (67, 68)
    assert len(history.days) == 3 * 366 and all(one.mistakes.total == one.decisions for one in history.hours.values())
    assert sum(one.mistakes.rounds for one in history.days.values()) > 1.9 * sum(
        one.decisions for one in history.days.values()
    )


# --- segments ---------------------------------------------------------------------------------------------------------


def test_features_with_few_values_show_where_the_model_errs(served: Served) -> None:
    served.make(name="named", features="auto", algorithm="frugal-gaptron", settings={})
    rng, wrong, seen = np.random.default_rng(1), Counter[Any](), Counter[Any]()
    for t in range(90):
        device, new = DEVICES[t % 3], bool(rng.random() < 0.5)
        features = {"device": device, "new": new, "user": f"user-{t}", "age": t, "gap": None}
        served.decide(f"e{t}", None, model="named", features=features)
        correct = device != "tablet"
        if t % 2:
            served.send_outcome(f"e{t}", model="named", correct=correct)
            wrong[device] += not correct
            seen[device] += 1
        seen["true" if new else "false", "all"] += 1
    served.stop()
    served.open()
    found = segments_of(served, "named")
    assert list(found) == ["device", "new"], "not the user, who has too many values, nor numbers or gaps"
    for device in DEVICES:
        one = found["device"][device]
        expected = on_policy(np.repeat([1.0, 0.0], [wrong[device], seen[device] - wrong[device]]), 0.95)
        assert (one["decisions"], one["outcomes"]) == (30, seen[device])
        assert (one["error_rate"], one["low"], one["high"]) == pytest.approx(expected[1:])
    assert {value: one["decisions"] for value, one in found["new"].items()} == {
        value: seen[value, "all"] for value in ("true", "false")
    }
    assert replay(served.service.store).decisions == 90
    assert served.call("GET", "/v1/models/triage/segments").json() == {"segments": []}, "x has no names"


def test_segments_of_a_model_with_actions_are_those_of_the_context_and_the_action_played(served: Served) -> None:
    make_news(served)
    rewards: dict[str, dict[str, list[bool]]] = {"visitor": defaultdict(list), "action topic": defaultdict(list)}
    for visit in visits(40):
        action = choose(served, visit).json()["action"]
        served.send_outcome(visit["event_id"], "news", correct=likes(visit, action))
        topic = next(one["features"]["topic"] for one in visit["actions"] if one["id"] == action)
        for feature, value in (("visitor", visit["context"]["visitor"]), ("action topic", topic)):
            rewards[feature][value].append(likes(visit, action))
    found = segments_of(served, "news")
    assert list(found) == list(rewards)
    for feature, expected in rewards.items():
        assert {value: 1.0 - one["error_rate"] for value, one in found[feature].items()} == pytest.approx(
            {value: np.mean(one) for value, one in expected.items()}
        )
    assert sum(one["decisions"] for one in points_of(served, "news", "day")) == 40


def test_memory_is_limited_whatever_features_are_sent() -> None:
    segments = Segments()
    for t in range(300):
        cells: dict[str, Any] = {f"name-{t}-{i}": "word" for i in range(10)}
        cells |= {"\u0000</script>": "a\u2028", "x" * (MAX_LENGTH + 1): "a", "": "", "free": "text " * 20, "id": f"{t}"}
        cells |= {"full": f"{t % MAX_VALUES}"}
        segments.decided(cells)
        segments.learned(cells, 1.0)
    assert len(segments.features) == MAX_FEATURES
    assert segments.features["id"] is segments.features["free"] is None
    found = dict(segments.rates())
    assert "id" not in found and "free" not in found and len(found["full"]) == MAX_VALUES
    assert found["\u0000</script>"][0]["decisions"] == found[""][0]["outcomes"] == 300
    assert "x" * (MAX_LENGTH + 1) not in found


def test_counts_of_segments_survive_the_redaction_of_features(served: Served) -> None:
    served.options["keep_days"] = 1
    served.stop()
    served.open()
    served.make(name="named", features="auto", algorithm="frugal-gaptron", settings={})
    for t in range(6):
        served.decide(f"e{t}", None, model="named", features={"device": DEVICES[t % 3]})
        served.send_outcome(f"e{t}", model="named", correct=True)
    served.pass_time(3 * 86_400)
    assert all('"device"' not in row.body for row, _ in served.service.store.read(0, "named") if row.kind == "decided")
    assert segments_of(served, "named")["device"]["phone"]["outcomes"] == 2
    served.stop()
    served.open()
    assert segments_of(served, "named")["device"]["phone"]["outcomes"] == 2


# --- the state of a model ---------------------------------------------------------------------------------------------


def test_counts_are_part_of_the_replayed_state(served: Served) -> None:
    for t in range(40):
        served.decide(f"e{t}", (math.sin(t), 1.0))
        served.send_outcome(f"e{t}", reward=0.1 * (t % 10))
        served.pass_time(600)
    replayed = load_models(served.service.store)["triage"]
    assert replayed.tally == served.model().tally
    assert snapshots.unpack(snapshots.pack(replayed)).tally == served.model().tally


def test_a_replica_gets_no_counts() -> None:
    model = Model(Created(NewModel(name="m", labels=["a", "b"]), "0f" * 32))
    model.tally.history.decided(0)
    assert not snapshots.unpack(snapshots.pack(model, for_replica=True)).tally.history.days
