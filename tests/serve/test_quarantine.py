"""What one model's events, snapshots or numbers may do: nothing to the process, and nothing to other models."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gaptron.errors import ModelFileError
from gaptron.serve import snapshots
from gaptron.serve.adapter import Adapter
from gaptron.serve.model_state import ReplayMismatchError
from gaptron.serve.replay import Follower, load_models, replay
from gaptron.serve.store import Snapshot, open_store
from tests.serve.served import Served


@pytest.fixture
def pair(tmp_path: Path) -> Any:
    """A service on SQLite with two models, each of which has learned."""
    service = Served(str(tmp_path / "store"))
    for name in ("triage", "other"):
        service.make(name=name)
        lesson(service, name, 10)
    yield service
    service.close()


def lesson(served: Served, model: str, count: int, start: int = 0) -> None:
    for t in range(start, start + count):
        made = served.decide(f"e{t}", (0.1 * (t % 7), 0.1 * (t % 5)), model).json()
        assert served.send_outcome(f"e{t}", model, correct=made["label"] == "chat").status_code == 200


def write(served: Served, sql: str, *values: Any) -> None:
    """Change the store of a service that has stopped."""
    store: Any = open_store(served.place)
    store.acquire_lease()
    assert store._writing().execute(sql, values).rowcount > 0
    store.close()


def weights(served: Served, model: str = "triage") -> list[Any]:
    return served.model(model).adapter.learner.weights.tolist()  # type: ignore[no-any-return]


def check_only_triage_is_quarantined(served: Served, reason: str) -> None:
    """Every request for triage is refused with the reason; the list, the probes and the metrics say so."""
    assert served.failure is None
    for response in (
        served.decide("new"),
        served.send_outcome("e1", correct=True),
        served.call("GET", "/v1/models/triage"),
        served.call("GET", "/v1/models/triage/report"),
        served.call("GET", "/v1/models/triage/log"),
        served.call("PATCH", "/v1/models/triage", {"mode": "shadow"}),
    ):
        problem = response.json()
        assert (response.status_code, problem["type"]) == (503, "/problems/quarantined")
        assert reason in problem["detail"] and "'triage'" in problem["detail"]
    batch = {"decisions": [{"x": [0.3, 1.0]}]}
    assert served.call("POST", "/v1/models/triage/decisions/batch", batch).status_code == 503
    assert served.make().json()["type"] == "/problems/already-exists"
    listed = served.call("GET", "/v1/models").json()
    assert [model["name"] for model in listed["models"]] == ["other"]
    assert [model["name"] for model in listed["quarantined"]] == ["triage"]
    assert reason in listed["quarantined"][0]["reason"]
    assert served.call("GET", "/healthz").json()["quarantined"] == 1
    assert "gaptron_quarantined_models 1.0" in served.call("GET", "/metrics").text
    before = len(served.model("other").tally.recent)
    lesson(served, "other", 3, start=1000 + before)
    served.tick()
    assert served.failure is None


# --- propensities ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("propensity", [5e-324, 1e-300, 1e-9, 9.99e-7])
def test_a_played_propensity_below_the_floor_is_refused(served: Served, propensity: float) -> None:
    """1/5e-324 is infinite: one such decision made every later start fail, for all models."""
    served.make(name="shadow", mode="shadow")
    response = served.decide("e0", model="shadow", played={"label": "chat", "propensity": propensity})
    assert response.status_code == 422 and "at least 1e-06" in response.json()["detail"]
    for t in range(20):
        played = {"label": "chat", "propensity": 1e-6}
        assert served.decide(f"e{t}", model="shadow", played=played).status_code == 201
        assert served.send_outcome(f"e{t}", "shadow", correct=t % 2 == 0).status_code == 200
    served.stop()
    served.open()
    assert served.model("shadow").version == 20 and not served.service.coordinator.quarantined
    assert replay(served.service.store).snapshots == 2


@pytest.mark.parametrize("propensity", [5e-324, 1.0000000000000007])
def test_a_logged_propensity_out_of_bounds_is_not_learned_from(pair: Served, propensity: float) -> None:
    """As logs of other versions have them. It counts as unusable, also at the timeout, and is not exported."""
    pair.make(name="slow", feedback_timeout=60, on_timeout="wrong")
    pair.decide("s0", model="slow")
    pair.stop()
    write(pair, "delete from snapshots")
    for model, event in (("triage", "e3"), ("slow", "s0")):
        store = open_store(pair.place)
        body = json.loads(store.find(model, [event])[event].decision.body)
        store.close()
        text = json.dumps(body | {"propensity": propensity})
        write(pair, "update log set body = ? where kind = 'decided' and model = ? and event_id = ?", text, model, event)
    pair.options["trust_log"] = True
    pair.open()
    assert pair.model().version == 9 and pair.model().tally.unusable == 1
    pair.pass_time(61)
    assert pair.model("slow").tally.unusable == 1 and not pair.service.coordinator.quarantined
    lines = pair.call("GET", "/v1/models/triage/log").text.splitlines()
    assert len(lines) == 1 + 9 and '"e3"' not in "".join(lines)
    assert pair.call("GET", "/v1/models/triage/report").json()["counts"]["unusable"] == 1
    assert np.isfinite(weights(pair)).all() and pair.failure is None


def test_no_decision_has_a_propensity_below_the_floor(served: Served) -> None:
    """Such labels are not played, so that every decision can be learned from and evaluated."""
    served.make(name="sure", epsilon=0.0)
    adapter: Adapter = served.model("sure").adapter
    p = np.array([1.0 - 9e-7 - 2e-6, 9e-7, 2e-6])
    adapter.learner.distribution = lambda *given, **more: p[None].copy()  # type: ignore[method-assign]
    made = [served.decide(f"e{t}", model="sure").json() for t in range(5)]
    assert list(made[0]["distribution"].values()) == [p[0] + p[1], 0.0, 2e-6]
    tiny = {"label": "chat", "propensity": 1e-6}
    assert served.decide("x", model="sure", played=tiny).status_code == 422  # not in shadow mode
    refused = served.make(name="rare", epsilon=1e-6)
    assert refused.status_code == 422 and "at least 3e-06" in refused.json()["detail"]
    served.make(name="more", epsilon=3.5e-6)
    refused = served.call("PATCH", "/v1/models/more", {"add_labels": ["fax"]})
    assert refused.status_code == 422 and "at least 4e-06" in refused.json()["detail"]


def test_a_probability_never_exceeds_one(served: Served) -> None:
    """The sum of EXP4's 1,000 weights exceeds 1 by rounding, and outcomes of such decisions were refused forever."""
    settings = {"eta": 1000.0, "experts": 1000}
    served.make(name="votes", labels=["a", "b"], algorithm="exp4", features=6, settings=settings, seed=1)
    x = np.random.default_rng(0).normal(size=(8, 6)).tolist()
    for t in range(200):
        made = served.decide(f"e{t}", x[t % 8], "votes").json()
        assert made["propensity"] <= 1.0 and max(made["distribution"].values()) <= 1.0
        assert served.send_outcome(f"e{t}", "votes", correct=made["label"] == "a").status_code == 200
    assert made["propensity"] > 1.0 - 1e-12, "this is about probabilities near 1"
    assert replay(served.service.store).decisions == 200


# --- events and numbers -----------------------------------------------------------------------------------------------


def test_an_event_that_cannot_be_applied_quarantines_its_model_only(
    pair: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.decide("late")
    learn = Adapter.learn

    def fail(self: Adapter, *given: Any) -> None:
        if self is pair.model("other").adapter:
            return learn(self, *given)
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(Adapter, "learn", fail)
    assert pair.send_outcome("late", correct=True).json()["type"] == "/problems/quarantined"
    check_only_triage_is_quarantined(pair, "ZeroDivisionError: division by zero")
    monkeypatch.undo()
    pair.crash()
    pair.open()
    assert pair.model().version == 10, "the log has nothing of the event"
    assert pair.send_outcome("late", correct=True).json()["status"] == "recorded"
    assert replay(pair.service.store).decisions > 20


def test_a_timeout_that_cannot_be_applied_does_not_end_the_process(
    pair: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.call("PATCH", "/v1/models/triage", {"feedback_timeout": 60, "on_timeout": "wrong"})
    pair.decide("silent")

    def fail(self: Adapter, *given: Any) -> None:
        raise OverflowError("too large")

    with monkeypatch.context() as patched:
        patched.setattr(Adapter, "learn", fail)
        pair.pass_time(61)
    for _ in range(2):
        check_only_triage_is_quarantined(pair, "OverflowError: too large")
        with monkeypatch.context() as patched:  # at every start, again
            pair.crash()
            patched.setattr(Adapter, "learn", lambda self, *given: None)
            monkeypatch.setattr(Follower, "check_version", lambda self: None)
            pair.options["trust_log"] = True
            pair.open()
            patched.setattr(Adapter, "learn", fail)
            pair.tick()
    pair.crash()
    pair.options["trust_log"] = False
    pair.open()
    pair.tick()
    assert pair.model().tally.timed_out == 1


def test_requests_in_progress_do_not_use_a_quarantined_model(pair: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of requests that wait together, those after the one that fails find the model in quarantine."""
    for t in range(3):
        pair.decide(f"late-{t}")
    calls = []

    def fail(self: Adapter, *given: Any) -> None:
        calls.append(given)
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(Adapter, "learn", fail)
    outcomes = [{"event_id": f"late-{t}", "correct": True} for t in range(3)]
    results = pair.call("POST", "/v1/models/triage/outcomes", {"outcomes": outcomes}).json()["outcomes"]
    assert [result["problem"]["type"] for result in results] == ["/problems/quarantined"] * 3
    assert len(calls) == 1


def test_a_state_that_is_not_finite_is_never_saved_nor_decided_with(pair: Served) -> None:
    saved = pair.service.store.snapshots()
    pair.model().adapter.learner._engine.state.W[:] = np.nan
    pair.service.coordinator.take_snapshot(pair.model())
    check_only_triage_is_quarantined(pair, "NaN or infinity")
    assert pair.service.store.snapshots() == saved
    pair.crash()
    pair.open()
    assert pair.model().version == 10 and np.isfinite(weights(pair)).all(), "the log is not affected"


def test_a_distribution_that_is_not_finite_is_not_drawn_from(pair: Served) -> None:
    learner = pair.model().adapter.learner
    learner.distribution = lambda *given, **more: np.full((1, 3), np.nan)
    assert pair.decide("nan").json()["type"] == "/problems/quarantined"
    check_only_triage_is_quarantined(pair, "its state is not finite")
    pair.run(pair.service.coordinator.committer.wait_for(pair.service.coordinator._seq))
    assert pair.service.store.find("triage", ["nan"]) == {}


# --- snapshots --------------------------------------------------------------------------------------------------------


def test_a_damaged_snapshot_is_skipped(pair: Served, capfd: pytest.CaptureFixture[str]) -> None:
    """First the newest of two, then both: the older one and then the whole log are replayed."""
    expected = weights(pair)
    pair.stop()
    pair.open()
    pair.decide("one-more")
    pair.stop()
    store = open_store(pair.place)
    found = [seq for name, seq in store.snapshots() if name == "triage"]
    store.close()
    assert len(found) == 2
    for seq in reversed(found):
        write(pair, "update snapshots set body = substr(body, 1, 900) where model = 'triage' and seq = ?", seq)
        pair.open()
        assert weights(pair) == expected and not pair.service.coordinator.quarantined
        assert f"the snapshot of triage at event {seq} is skipped" in capfd.readouterr().err
        pair.crash()
    pair.open()
    pair.service.coordinator.take_snapshots()


def test_a_snapshot_that_is_not_finite_is_skipped(pair: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such snapshots were written: they have a valid checksum."""
    expected, model = weights(pair), pair.model()
    kept = model.adapter.learner._engine.state.W.copy()
    model.adapter.learner._engine.state.W[:] = np.inf
    with monkeypatch.context() as patched:
        patched.setattr(snapshots, "unpack", lambda data: None)
        body = snapshots.pack(model)
    model.adapter.learner._engine.state.W[:] = kept
    pair.crash()
    with pytest.raises(ModelFileError, match="infinity"):
        snapshots.unpack(body)
    store = open_store(pair.place)
    store.acquire_lease()
    store.append([], [Snapshot("triage", model.seq, body)])
    store.close()
    pair.open()
    assert weights(pair) == expected and not pair.service.coordinator.quarantined


def test_a_model_that_cannot_be_restored_is_quarantined_and_the_others_serve(pair: Served) -> None:
    pair.stop()
    write(pair, "delete from snapshots")
    write(pair, "update log set body = '{' where model = 'triage' and event_id = 'e3' and kind = 'decided'")
    for _ in range(2):
        pair.open()
        check_only_triage_is_quarantined(pair, "DecodeError")
        pair.stop()
    pair.open()


def test_a_model_that_replays_differently_is_quarantined_unless_all_do(pair: Served) -> None:
    """If all differ, this version computes other numbers, as after an upgrade: then the start is refused."""
    pair.stop()
    write(pair, "delete from snapshots")
    changed = (
        "update log set body = replace(body, '\"version\":0', '\"version\":7') where model = ? and event_id = 'e0'"
    )
    write(pair, changed, "triage")
    pair.open()
    check_only_triage_is_quarantined(pair, "differ in version")
    assert "0.1" not in pair.service.coordinator.quarantined["triage"], "features do not belong into a message"
    pair.stop()
    write(pair, "delete from snapshots")
    write(pair, changed, "other")
    with pytest.raises(ReplayMismatchError, match="start once with --trust-log"):
        pair.open()
    pair.service.store.close()
    pair.options["trust_log"] = True
    pair.open()
    assert pair.model().version == 10


def test_a_model_is_not_saved_by_closing_while_it_is_quarantined(pair: Served) -> None:
    pair.model().adapter.learner._engine.state.W[:] = np.nan
    pair.stop()
    pair.open()
    assert load_models(pair.service.store)["triage"].version == 10
