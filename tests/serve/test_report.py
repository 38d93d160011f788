"""The numbers of a model's report."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gaptron.offpolicy import open_log
from gaptron.offpolicy.confidence_sequence import proven_interval
from gaptron.serve.events import Created
from gaptron.serve.metrics import Metrics
from gaptron.serve.model_state import Model
from gaptron.serve.replay import replay
from gaptron.serve.report import MAX_WIDTH, MIN_PLAYED, _warnings
from gaptron.serve.schemas import DecisionRequest, NewModel, Played
from gaptron.serve.tally import WINDOW, LabelCounts
from tests.serve.news import choose, likes, make_news, visits
from tests.serve.served import SMALL, TRIAGE, Served

LABELS = TRIAGE["labels"]
RULES = {"mail": 0.2, "chat": 0.5, "phone": 0.9}  # error rate of each label


def play(served: Served, model: str, count: int, *, start: int = 0, **more: Any) -> list[Any]:
    """Make decisions in batches; returns them."""
    made: list[Any] = []
    for first in range(start, start + count, 1000):
        last = min(first + 1000, start + count)
        rows = [{"event_id": f"e{t}", "x": [math.sin(t), 1.0], **more} for t in range(first, last)]
        made += served.call("POST", f"/v1/models/{model}/decisions/batch", {"decisions": rows}).json()["decisions"]
    return [one["decision"] for one in made]


def send_outcomes(served: Served, model: str, outcomes: list[dict[str, Any]]) -> None:
    for first in range(0, len(outcomes), 1000):
        body = {"outcomes": outcomes[first : first + 1000]}
        done = served.call("POST", f"/v1/models/{model}/outcomes", body).json()["outcomes"]
        assert all("outcome" in one for one in done)


def send_outcomes_by_rules(served: Served, model: str, decisions: list[Any], seed: int = 0) -> None:
    draws = np.random.default_rng(seed).random(len(decisions))
    send_outcomes(
        served,
        model,
        [
            {"event_id": one["event_id"], "correct": bool(u >= RULES[one["label"]])}
            for one, u in zip(decisions, draws.tolist())
        ],
    )


def report_of(served: Served, model: str) -> Any:
    return served.call("GET", f"/v1/models/{model}/report").json()


@pytest.fixture
def slow(served: Served) -> Served:
    """With a model for which silence means wrong."""
    served.make(name="slow", feedback_timeout=60, on_timeout="wrong", epsilon=0.5)
    return served


# --- outcomes that come late or never ---------------------------------------------------------------------------------


def test_decisions_that_time_out_as_wrong_count_as_wrong_for_their_label(slow: Served) -> None:
    decisions = play(slow, "slow", 600)
    right = [one["event_id"] for one in decisions if one["label"] == "mail"]
    send_outcomes(slow, "slow", [{"event_id": event, "correct": True} for event in right])
    slow.pass_time(61)
    report = report_of(slow, "slow")
    labels = {one["label"]: one for one in report["labels"]}
    assert [labels[label]["error_rate"] for label in LABELS] == [0.0, 1.0, 1.0]
    assert labels["mail"]["timed_out"] == 0 and labels["chat"]["timed_out"] == labels["chat"]["played"] > MIN_PLAYED
    wrong = 1.0 - len(right) / 600
    assert report["recent"]["error_rate"] == report["total"]["error_rate"] == pytest.approx(wrong)
    assert report["warnings"] == [], "silence was declared to mean wrong: nothing is missing"
    share = f"{100 * wrong:.0f} %"
    assert report["summary"] == (
        f"Learning. 600 decisions, {100 * (1 - wrong):.0f} % with an outcome, {share} timed out and counted as wrong; "
        f"error rate {share} in the last 600 outcomes and timeouts."
    )


def test_outcomes_that_wait_for_their_timeout_are_counted(slow: Served) -> None:
    decisions = play(slow, "slow", 10)
    send_outcomes(slow, "slow", [{"event_id": one["event_id"], "correct": True} for one in decisions[:8]])
    report = report_of(slow, "slow")
    assert report["counts"]["waiting"] == 8 and report["counts"]["outcomes"] == 0
    assert report["summary"] == (
        "Nothing learned yet. 10 decisions, 80 % with an outcome. "
        "8 outcomes arrived and will be learned at the end of the timeout."
    )
    assert sum(one["outcome_rate"] * one["played"] for one in report["labels"] if one["played"]) == 8
    slow.stop()
    slow.open()
    assert slow.model("slow").tally.waiting == 8
    slow.pass_time(61)
    report = report_of(slow, "slow")
    assert (report["counts"]["waiting"], report["counts"]["outcomes"], report["counts"]["timed_out"]) == (0, 8, 2)
    assert all(one.pending == one.waiting == 0 for one in slow.model("slow").tally.labels)
    assert replay(slow.service.store).decisions == 10


@pytest.mark.parametrize(
    ("counts", "warns"),
    [
        ([LabelCounts(100, 90), LabelCounts(100, 70)], True),
        ([LabelCounts(100, 90), LabelCounts(100, 85)], False),
        ([LabelCounts(100, 90), LabelCounts(MIN_PLAYED - 1, 1)], False),
        ([LabelCounts(0, 0), LabelCounts(1000, 700)], False),
        ([LabelCounts(100, 90), LabelCounts(100, 70, timed_out=20)], False),
        ([LabelCounts(100, 90), LabelCounts(130, 90, pending=30)], False),
        ([LabelCounts(100, 90), LabelCounts(130, 90, void=30)], False),
        ([LabelCounts(100, 90), LabelCounts(120, 70, pending=20)], True),
    ],
)
def test_a_label_with_fewer_outcomes_leads_to_a_warning_once_it_was_played_often(
    counts: list[LabelCounts], warns: bool
) -> None:
    facts: Any = SimpleNamespace(labels=("mail", "chat"), label_counts=counts)
    said = _warnings(facts)
    assert bool(said) == warns
    assert not said or said[0].startswith(
        "90 % of the decisions for mail have an outcome, but only 70 % of those for chat"
    )


# --- the whole log ----------------------------------------------------------------------------------------------------


def test_single_labels_and_uniform_play_are_estimated_from_the_whole_log(served: Served, tmp_path: Any) -> None:
    """The export of the log has the same rounds, from which `gaptron.offpolicy` computes the same intervals."""
    served.make(name="long", epsilon=0.6, **SMALL)
    send_outcomes_by_rules(served, "long", play(served, "long", 3 * WINDOW))
    served.stop()
    served.open()
    report = report_of(served, "long")
    (tmp_path / "log.jsonl").write_bytes(served.call("GET", "/v1/models/long/log").content)
    log = open_log(str(tmp_path / "log.jsonl"))
    assert log.n_rounds == 3 * WINDOW
    for one in report["single_label"]:
        code = LABELS.index(one["label"])
        expected = proven_interval((log.codes == code) / log.propensity, log.mistakes, 0.95)
        assert (one["low"], one["high"]) == pytest.approx(expected[2:], rel=1e-9)
        assert one["low"] <= RULES[one["label"]] <= one["high"] and abs(one["error_rate"] - RULES[one["label"]]) < 0.1
    assert {one["label"] for one in report["single_label"]} == set(LABELS)
    expected = proven_interval(1.0 / (3.0 * log.propensity), log.mistakes, 0.95)
    assert (report["uniform"]["low"], report["uniform"]["high"]) == pytest.approx(expected[2:], rel=1e-9)
    assert abs(report["uniform"]["error_rate"] - sum(RULES.values()) / 3) < 0.05
    assert report["total"]["outcomes"] == report["total"]["decisions"] == 3 * WINDOW
    assert report["total"]["error_rate"] == pytest.approx(log.mistakes.mean())
    assert report["total"]["mean_reward"] == 1.0 - report["total"]["error_rate"]


def test_an_estimate_that_says_nothing_is_hidden_with_the_reason(served: Served) -> None:
    """Without random draws, the log has next to nothing about the other labels."""
    served.make(name="sure", labels=LABELS, algorithm="perceptron", feedback="full", settings={})
    decisions = play(served, "sure", 300)
    send_outcomes(served, "sure", [{"event_id": one["event_id"], "label": "mail"} for one in decisions])
    estimates = {one["label"]: one for one in report_of(served, "sure")["single_label"]}
    assert estimates["mail"]["error_rate"] < 0.1 and "hidden" not in estimates["mail"]
    for label in ("chat", "phone"):
        assert estimates[label]["error_rate"] is None and estimates[label]["high"] - estimates[label]["low"] > 0.5
        assert estimates[label]["hidden"] == (
            f"the interval is {100 * estimates[label]['low']:.0f} % to {100 * estimates[label]['high']:.0f} %: too few "
            "decisions say something about it yet; more of them do if more are drawn at random (epsilon)"
        )


def test_where_every_decision_was_drawn_uniformly_an_estimate_needs_only_more_of_them(served: Served) -> None:
    decisions = play(served, "triage", 50)
    assert {one["propensity"] for one in decisions} == {1 / 3}
    send_outcomes(
        served, "triage", [{"event_id": one["event_id"], "correct": t % 3 == 0} for t, one in enumerate(decisions)]
    )
    report = report_of(served, "triage")
    hidden = [one for one in (report["uniform"], *report["single_label"]) if "hidden" in one]
    assert report["uniform"] in hidden
    for one in hidden:
        assert one["error_rate"] is None and one["high"] - one["low"] > MAX_WIDTH
        between = f"{100 * one['low']:.0f} % to {100 * one['high']:.0f} %"
        assert one["hidden"] == f"the interval is {between}: too few decisions for an estimate yet"


def test_a_label_that_was_added_is_estimated_since_then(served: Served) -> None:
    served.make(name="grows", epsilon=0.6, labels=LABELS[:2], **SMALL)
    send_outcomes_by_rules(served, "grows", play(served, "grows", 500))
    served.call("PATCH", "/v1/models/grows", {"add_labels": ["phone"]})
    send_outcomes_by_rules(served, "grows", play(served, "grows", 1500, start=500))
    model = served.model("grows")
    assert [model.tally.always(one).mistakes.rounds for one in model.tally.labels] == [2000, 2000, 1500]
    found = {one["label"]: one for one in report_of(served, "grows")["single_label"]}["phone"]
    assert found["low"] < RULES["phone"] < found["high"] and abs(found["error_rate"] - RULES["phone"]) < 0.1


def test_uniform_play_leaves_retired_labels_out(served: Served, tmp_path: Any) -> None:
    served.make(name="fewer", epsilon=0.6, labels=LABELS, algorithm="frugal-gaptron", settings={})
    send_outcomes_by_rules(served, "fewer", play(served, "fewer", 300))
    assert served.call("PATCH", "/v1/models/fewer", {"retire_labels": ["phone"]}).status_code == 200
    send_outcomes_by_rules(served, "fewer", play(served, "fewer", 700, start=300))
    (tmp_path / "log.jsonl").write_bytes(served.call("GET", "/v1/models/fewer/log").content)
    log = open_log(str(tmp_path / "log.jsonl"))
    weights = 1.0 / (np.repeat([3.0, 2.0], [300, 700]) * log.propensity)
    uniform, expected = report_of(served, "fewer")["uniform"], proven_interval(weights, log.mistakes, 0.95)
    assert (uniform["low"], uniform["high"]) == pytest.approx(expected[2:], rel=1e-9)


# --- shadow mode ------------------------------------------------------------------------------------------------------


def test_in_shadow_mode_the_model_knows_the_probability_of_what_the_caller_played() -> None:
    model = Model(Created(NewModel(name="m", labels=LABELS, mode="shadow", epsilon=0.3), "0f" * 32))
    made = [
        model.decide(DecisionRequest(x=(0.5, 1.0), played=Played(label=label, propensity=0.25)), "e", 0)
        for label in LABELS
    ]
    assert sum(one.shadow_propensity or 0.0 for one in made) == pytest.approx(1.0)
    assert min(one.shadow_propensity or 0.0 for one in made) >= 0.1 - 1e-12


def test_shadow_mode_shows_what_the_model_would_earn_and_one_patch_makes_it_live(served: Served) -> None:
    """The caller plays one of two labels at random; which one is right shows in x."""
    served.make(name="shadow", labels=["a", "b"], mode="shadow", algorithm="frugal-gaptron", settings={})
    drawn = np.random.default_rng(3).integers(0, 2, 1500)
    rows = [
        {"event_id": f"e{t}", "x": [math.sin(t), 1.0], "played": {"label": "ab"[one], "propensity": 0.5}}
        for t, one in enumerate(drawn.tolist())
    ]
    for first in range(0, 1500, 50):
        body = {"decisions": rows[first : first + 50]}
        made = served.call("POST", "/v1/models/shadow/decisions/batch", body).json()["decisions"]
        decided = [(one["decision"], row["x"][0] > 0) for one, row in zip(made, body["decisions"])]
        send_outcomes(
            served,
            "shadow",
            [{"event_id": one["event_id"], "correct": (one["label"] == "a") == up} for one, up in decided],
        )
    report = report_of(served, "shadow")
    shadow = report["shadow"]
    assert shadow["decisions"] == shadow["outcomes"] == 1500
    assert shadow["agreement"] == report["counts"]["agreed"] / 1500
    assert shadow["low"] <= shadow["error_rate"] <= shadow["high"] < 0.3 < shadow["played"]["low"]
    assert f"its error rate would be {100 * shadow['error_rate']:.0f} %" in report["summary"]
    assert replay(served.service.store).decisions == 1500
    assert served.call("PATCH", "/v1/models/shadow", {"mode": "live"}).json()["mode"] == "live"
    decision = served.decide("next", (1.0, 1.0), model="shadow").json()
    assert decision["label"] == "a" and sum(decision["distribution"].values()) == pytest.approx(1.0)
    served.service.reports._reports.clear()  # a report is reused for a second
    assert report_of(served, "shadow")["shadow"] is None


def test_a_live_model_that_goes_into_shadow_mode_says_nothing_about_it_at_first(served: Served) -> None:
    served.decide("a")
    served.call("PATCH", "/v1/models/triage", {"mode": "shadow"})
    report = report_of(served, "triage")
    assert report["summary"] == "Shadow mode. 1 decision, 0 % with an outcome; none in this mode yet."
    assert report["shadow"]["agreement"] is report["shadow"]["error_rate"] is None and report["uniform"] is None


def test_shadow_mode_of_a_model_with_actions_speaks_of_rewards(served: Served) -> None:
    make_news(served, mode="shadow")
    for visit in visits(60):
        played = {"action": visit["actions"][0]["id"]}
        choose(served, {**visit, "played": played})
        served.send_outcome(visit["event_id"], "news", correct=likes(visit, played["action"]))
    report = report_of(served, "news")
    assert report["shadow"]["low"] <= report["shadow"]["high"]
    assert report["total"]["mean_reward"] == pytest.approx(1.0 - report["shadow"]["played"]["error_rate"])
    if report["shadow"]["error_rate"] is None:  # the caller drew nothing at random
        assert report["shadow"]["hidden"].endswith("if more are drawn at random by the caller")


# --- speed ------------------------------------------------------------------------------------------------------------


def test_the_seconds_are_those_since_the_start_of_the_service(served: Served) -> None:
    assert report_of(served, "triage")["speed"]["seconds"] == 0.0
    served.pass_time(20)
    assert report_of(served, "triage")["speed"]["seconds"] == 20.0
    served.stop()
    served.open()
    assert report_of(served, "triage")["speed"]["seconds"] == 0.0


def test_quantiles_are_of_decisions_and_outcomes_alone() -> None:
    metrics = Metrics(lambda: None, lambda: True)
    decisions = metrics.requests.labels("/v1/models/{model}/decisions", "200")
    outcomes = metrics.requests.labels("/v1/models/{model}/decisions/{event_id}/outcome", "200")
    assert metrics._quantile_ms(0.5) is None
    for seconds in (0.0005, 0.0015, 0.04):
        decisions.observe(seconds)
    outcomes.observe(0.009)
    for _ in range(100):
        metrics.requests.labels("/v1/models/{model}/log", "200").observe(4.0)
    assert [metrics._quantile_ms(share) for share in (0.25, 0.5, 0.75, 1.0)] == [1.0, 2.0, 10.0, 50.0]
    decisions.observe(60.0)
    assert metrics._quantile_ms(1.0) is None  # beyond the last bucket
