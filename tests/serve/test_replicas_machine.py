"""Decisions by two replicas, outcomes, publications, restarts and times without a leader, in any order.

The expected responses are computed from the requests alone: a reference learner learns from the outcomes in order, and
copies of it represent the published models.
"""

import copy
import uuid
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import gaptron
from gaptron.kernels.simplex import draw
from gaptron.serve import draws
from gaptron.serve.replay import replay
from tests.serve.postgres import with_schema
from tests.serve.served import SMALL, Served

WHICH = st.integers(0, 99)  # of the decisions there are
REPLICA = st.sampled_from([0, 1])
ROWS = st.lists(st.sampled_from([-1.0, -0.25, 0.0, 0.5, 1.0]), min_size=3, max_size=3)
OUTCOMES = st.sampled_from([{"correct": True}, {"correct": False}, {"label": "b"}, {"void": True}])
WAIT = 60.0


class Published:
    """A model as replicas use it."""

    def __init__(self, learner: gaptron.Learner, version: int, labels: list[str], mode: str) -> None:
        self.learner, self.version, self.labels, self.mode = copy.deepcopy(learner), version, labels, mode


class Replicas(RuleBasedStateMachine):
    """A leader that may stop and start, and two replicas."""

    def __init__(self, database: str) -> None:
        super().__init__()
        self.place = with_schema(database, f"test_{uuid.uuid4().hex}")

    @initialize(waits=st.booleans())
    def begin(self, waits: bool) -> None:
        self.leader, self.leads, self.waits = Served(self.place, with_replicas=True), True, waits
        self.labels, self.mode = ["a", "b", "c"], "live"
        spec = {"name": "m", "labels": self.labels, "features": 3, **SMALL}
        assert (
            self.leader.make(**spec, **({"feedback_timeout": WAIT, "on_timeout": "wrong"} if waits else {})).status_code
            == 201
        )
        self.key = self.leader.model("m").key
        self.twin = gaptron.Learner(
            "gaptron", classes=self.labels, n_features=3, feedback="bandit", seed=0, **SMALL["settings"]
        )
        self.decided: dict[str, dict[str, Any]] = {}
        self.answered: dict[str, dict[str, Any]] = {}
        self.open: list[str] = []  # those that wait, in the order they were decided
        self.learned = 0
        self.leader.tick()
        self.published = self._as_it_is()
        self.replicas = [Served(self.place, replica=True) for _ in range(2)]
        self.using = [self.published, self.published]

    def _as_it_is(self) -> Published:
        return Published(self.twin, self.learned, self.labels, self.mode)

    def _event(self, which: int) -> str:
        return list(self.decided)[which % len(self.decided)]

    # --- replicas ---------------------------------------------------------------------------------------------------

    @rule(who=REPLICA, x=ROWS, played=st.sampled_from(["a", "b"]))
    def decide(self, who: int, x: list[float], played: str) -> None:
        event, model = f"event-{len(self.decided)}", self.using[who]
        more = {"played": {"label": played, "propensity": 0.25}} if model.mode == "shadow" else {}
        response = self.replicas[who].decide(event, x, model="m", **more)
        assert response.status_code == 201, response.text
        answer = response.json()
        p = model.learner.distribution(np.array([x]))[0]
        label = model.labels[int(draw(p, int(p.argmax()), draws.number(self.key, event)))]
        if more:
            assert (answer["label"], answer["propensity"], answer["shadow_label"]) == (played, 0.25, label)
        else:
            assert (answer["label"], answer["propensity"]) == (label, p[model.labels.index(label)])
            assert answer["distribution"] == dict(zip(model.labels, p.tolist()))
        assert answer["version"] == model.version and "seq" not in answer
        due = self.replicas[who].time + round(1e6 * WAIT)
        self.decided[event] = {"request": {"x": x, **more}, "answer": answer, "due": due}
        if self.waits:
            self.open.append(event)

    @precondition(lambda self: self.decided)
    @rule(who=REPLICA, which=WHICH, x=st.none() | ROWS)
    def ask_again(self, who: int, which: int, x: list[float] | None) -> None:
        event = self._event(which)
        known = self.decided[event]
        request = known["request"] | ({} if x is None else {"x": x})
        response = self.replicas[who].decide(event, model="m", **request)
        if request == known["request"]:
            assert response.status_code == 200 and response.json() == known["answer"]
        else:
            assert response.status_code == 422 and response.json()["type"] == "/problems/event-id-reused"

    @rule(who=REPLICA)
    def look(self, who: int) -> None:
        self.replicas[who].tick()
        self.using[who] = self.published

    @rule(who=REPLICA)
    def restart_a_replica(self, who: int) -> None:
        self.replicas[who].stop()
        self.replicas[who].open()
        self.using[who] = self.published

    # --- the leader -------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.leads and self.decided)
    @rule(which=WHICH, outcome=OUTCOMES)
    def answer(self, which: int, outcome: dict[str, Any]) -> None:
        event = self._event(which)
        response = self.leader.send_outcome(event, model="m", **outcome)
        if event not in self.answered:
            self.answered[event] = outcome
            late = self.waits and event not in self.open
            assert response.json() == {"event_id": event, "status": "late" if late else "recorded"}
            if not self.waits:
                self._learn(event)
        elif self.answered[event] == outcome:
            assert response.json()["status"] == "duplicate"
        else:
            assert response.status_code == 409 and response.json()["outcome"] == self.answered[event]

    def _learn(self, event: str) -> None:
        decision, outcome = self.decided[event], self.answered.get(event, {"correct": False})
        if "void" in outcome:
            return
        label, propensity = decision["answer"]["label"], decision["answer"]["propensity"]
        right = outcome["correct"] if "correct" in outcome else outcome["label"] == label
        self.twin.learn_logged(decision["request"]["x"], label, propensity, correct=right)
        self.learned += 1

    @precondition(lambda self: self.leads)
    @rule(seconds=st.sampled_from([0.0, 1.0, 30.0, 61.0]))
    def tick(self, seconds: float) -> None:
        """Advance the clocks of the leader and the replicas."""
        self.leader.pass_time(seconds)
        for one in self.replicas:
            one.time = self.leader.time
        due = [event for event in self.open if self.decided[event]["due"] <= self.leader.time]
        for event in sorted(due, key=lambda event: self.decided[event]["due"]):
            self.open.remove(event)
            self._learn(event)
        self.published = self._as_it_is()

    @precondition(lambda self: self.leads)
    @rule(way=st.sampled_from(["stop", "crash"]))
    def the_leader_goes(self, way: str) -> None:
        getattr(self.leader, way)()
        self.leads = False

    @precondition(lambda self: not self.leads)
    @rule()
    def a_leader_comes(self) -> None:
        self.leader.open()
        self.leads = True

    @precondition(lambda self: self.leads and len(self.labels) < 5)
    @rule()
    def add_label(self) -> None:
        self.labels = [*self.labels, "de"[len(self.labels) - 3]]
        changed = self.leader.call("PATCH", "/v1/models/m", {"add_labels": self.labels[-1:]})
        assert changed.json()["labels"] == self.labels
        self.twin.grow(classes=self.labels)

    @precondition(lambda self: self.leads)
    @rule()
    def change_mode(self) -> None:
        self.mode = "shadow" if self.mode == "live" else "live"
        assert self.leader.call("PATCH", "/v1/models/m", {"mode": self.mode}).json()["mode"] == self.mode

    # --- what always holds ------------------------------------------------------------------------------------------

    @invariant()
    def every_weight_is_equal(self) -> None:
        if self.leads:
            model = self.leader.model("m")
            assert model.version == self.learned
            assert np.array_equal(model.adapter.learner.weights, self.twin.weights) or not self.learned

    def teardown(self) -> None:
        if not hasattr(self, "replicas"):
            return
        try:
            if not self.leads:
                self.a_leader_comes()
            self._compare_all()
        finally:
            for service in (*self.replicas, self.leader):
                service.close()

    def _compare_all(self) -> None:
        self.leader.tick()
        for event, decision in self.decided.items():
            for who in (self.leader, self.replicas[0]):
                shown = who.call("GET", f"/v1/models/m/decisions/{event}").json()
                assert shown.pop("outcome", None) == self.answered.get(event)
                shown.pop("at")
                assert shown == decision["answer"]
        store = self.leader.service.store
        rows = [row for row, _ in store.read()]
        assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
        assert [row.event_id for row in rows if row.kind == "decided"] == list(self.decided)
        assert replay(store).decisions == len(self.decided)


@pytest.mark.parametrize("examples", [6, pytest.param(60, marks=pytest.mark.slow)])
def test_replicas_in_any_order(postgres: str, examples: int) -> None:
    run_state_machine_as_test(
        lambda: Replicas(postgres), settings=settings(max_examples=examples, stateful_step_count=30, deadline=None)
    )
