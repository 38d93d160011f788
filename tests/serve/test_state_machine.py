"""Requests, refusals, timeouts and restarts in any order, compared with a reference of dicts and a learner."""

import shutil
import tempfile
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import gaptron
from gaptron.kernels.simplex import draw
from gaptron.serve import draws
from gaptron.serve.replay import replay
from tests.serve.served import SMALL, Served

WHICH = st.integers(0, 99)  # of the decisions there are
ROWS = st.lists(st.sampled_from([-1.0, -0.25, 0.0, 0.5, 1.0]), min_size=3, max_size=3)
NAMES = ["a", "b", "c"]
OUTCOMES = st.sampled_from([{"correct": True}, {"correct": False}, {"right": "b"}, {"void": True}])
WAIT = 60.0


class Requests(RuleBasedStateMachine):
    """The expected responses are computed from the requests alone."""

    @initialize(waits=st.booleans(), epsilon=st.sampled_from([0.0, 0.2]))
    def begin(self, waits: bool, epsilon: float) -> None:
        self.folder = tempfile.mkdtemp(prefix="gaptron-machine-")
        self.served = Served(self.folder)
        self.waits = waits
        self.ahead = 0  # µs by which the time of the log differs from the time that passes
        self.created = 0  # models with this name
        self._begin(epsilon)

    def _begin(self, epsilon: float) -> None:
        """Create the model, with nothing decided."""
        self.labels = NAMES
        self._create(epsilon=epsilon, **({"feedback_timeout": WAIT, "on_timeout": "wrong"} if self.waits else {}))
        self.created += 1
        self.key = self.served.model("m").key
        self.twin = self._new_twin(epsilon)
        self.mode = "live"
        self.decided: dict[str, dict[str, Any]] = {}
        self.answered: dict[str, dict[str, Any]] = {}
        self.open: list[str] = []  # in the order they are due
        self.learned = 0

    @property
    def latest(self) -> int:
        return self.served.time + self.ahead

    # --- what a model with actions does differently -----------------------------------------------------------------

    choice = "label"
    can_grow = True

    def _create(self, **more: Any) -> None:
        self.served.make(name="m", labels=self.labels, **SMALL, **more)

    def _new_twin(self, epsilon: float) -> gaptron.Learner:
        more: dict[str, Any] = SMALL["settings"]
        return gaptron.Learner("gaptron", classes=self.labels, feedback="bandit", epsilon=epsilon, seed=0, **more)

    def _body(self, x: list[float]) -> dict[str, Any]:
        """The features of a request."""
        return {"x": x}

    def _distribution(self, body: dict[str, Any]) -> Any:
        return self.twin.distribution(np.array([body["x"]]))[0]

    def _check_distribution(self, answer: dict[str, Any], p: Any, code: int) -> None:
        assert list(answer["distribution"].values()) == p.tolist()

    def _learn_logged(self, body: dict[str, Any], played: str, propensity: float, correct: bool) -> None:
        self.twin.learn_logged(body["x"], played, propensity, correct=correct)

    def _decide(self, event: str | None, request: dict[str, Any]) -> Any:
        return self.served.call(
            "POST", "/v1/models/m/decisions", request | ({} if event is None else {"event_id": event})
        )

    # --- deciding ---------------------------------------------------------------------------------------------------

    def _request(self, x: list[float], played: str, propensity: float) -> dict[str, Any]:
        more = {"played": {self.choice: played, "propensity": propensity}} if self.mode == "shadow" else {}
        return {**self._body(x), **more}

    def _event(self, which: int) -> str:
        return list(self.decided)[which % len(self.decided)]

    @rule(x=ROWS, played=st.sampled_from(["a", "b"]), propensity=st.sampled_from([0.25, 1.0]))
    def decide(self, x: list[float], played: str, propensity: float) -> None:
        event, request = f"event-{self.created}-{len(self.decided)}", self._request(x, played, propensity)
        response = self._decide(event, request)
        assert response.status_code == 201, response.text
        answer = response.json()
        p = self._distribution(request)
        code = int(draw(p, int(p.argmax()), draws.number(self.key, event)))
        if self.mode == "shadow":
            shown = answer[self.choice], answer["propensity"], answer[f"shadow_{self.choice}"]
            assert shown == (played, propensity, self.labels[code])
        else:
            assert answer[self.choice] == self.labels[code] and answer["propensity"] == p[code]
            self._check_distribution(answer, p, code)
        assert answer["version"] == self.learned
        self.decided[event] = {"request": request, "answer": answer, "due": self.latest + round(1e6 * WAIT)}
        if self.waits:
            self.open.append(event)

    @precondition(lambda self: self.decided)
    @rule(which=WHICH, x=st.none() | ROWS)
    def ask_again(self, which: int, x: list[float] | None) -> None:
        event = self._event(which)
        known = self.decided[event]
        request = known["request"] | ({} if x is None else self._body(x))
        response = self._decide(event, request)
        if request == known["request"]:
            assert response.status_code == 200 and response.json() == known["answer"]
        else:
            assert response.status_code == 422 and response.json()["type"] == "/problems/event-id-reused"

    @rule(available=st.sampled_from([[], ["nobody"]]))
    def refuse_available(self, available: list[str]) -> None:
        response = self._decide(None, self._body([0.5, 0.5, 0.5]) | {"available": available})
        assert response.status_code == 422

    # --- outcomes --------------------------------------------------------------------------------------------------

    def _outcome(self, outcome: dict[str, Any]) -> dict[str, Any]:
        return {self.choice if name == "right" else name: value for name, value in outcome.items()}

    @rule(outcome=OUTCOMES)
    def answer_nobody(self, outcome: dict[str, Any]) -> None:
        outcome = self._outcome(outcome)
        assert self.served.send_outcome("nobody", model="m", **outcome).status_code == 404

    @precondition(lambda self: self.decided)
    @rule(which=WHICH, outcome=OUTCOMES)
    def answer(self, which: int, outcome: dict[str, Any]) -> None:
        event, outcome = self._event(which), self._outcome(outcome)
        response = self.served.send_outcome(event, model="m", **outcome)
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
        played, propensity = decision["answer"][self.choice], decision["answer"]["propensity"]
        right = outcome["correct"] if "correct" in outcome else outcome[self.choice] == played
        self._learn_logged(decision["request"], played, propensity, right)
        self.learned += 1

    # --- as time goes by, and restarts ------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([-100.0, 0.0, 30.0]))
    def set_the_clock(self, seconds: float) -> None:
        """It matters at the next start only."""
        self.served.clock_error = round(1e6 * seconds)

    @rule(seconds=st.sampled_from([0.0, 1.0, 30.0, 61.0]))
    def pass_time(self, seconds: float) -> None:
        self.served.pass_time(seconds)
        due = [event for event in self.open if self.decided[event]["due"] <= self.latest]
        for event in sorted(due, key=lambda event: (self.decided[event]["due"], self.decided[event]["answer"]["seq"])):
            self.open.remove(event)
            self._learn(event)

    @rule(way=st.sampled_from(["stop", "crash"]))
    def restart(self, way: str) -> None:
        last = self.served.service.store.last()[1]
        getattr(self.served, way)()
        self.served.open()
        self.ahead = max(last - self.served.time, self.served.clock_error)

    @precondition(lambda self: self.can_grow and len(self.labels) < 5)
    @rule()
    def add_label(self) -> None:
        new = "de"[len(self.labels) - 3]
        self.labels = [*self.labels, new]
        assert self.served.call("PATCH", "/v1/models/m", {"add_labels": [new]}).json()["labels"] == self.labels
        self.twin.grow(classes=self.labels)

    @rule()
    def change_mode(self) -> None:
        self.mode = "shadow" if self.mode == "live" else "live"
        assert self.served.call("PATCH", "/v1/models/m", {"mode": self.mode}).json()["mode"] == self.mode

    @rule(epsilon=st.sampled_from([0.0, 0.2, 0.5]))
    def change_epsilon(self, epsilon: float) -> None:
        assert self.served.call("PATCH", "/v1/models/m", {"epsilon": epsilon}).json()["epsilon"] == epsilon
        self.twin.change_epsilon(epsilon)

    @precondition(lambda self: self.decided and self.created < 3)
    @rule(epsilon=st.sampled_from([0.0, 0.2]))
    def delete_and_create_again(self, epsilon: float) -> None:
        """Another model gets the name. The event ids of the deleted one are refused."""
        assert self.served.call("DELETE", "/v1/models/m").status_code == 204
        event, before = next(iter(self.decided.items()))
        self._begin(epsilon)
        again = self._decide(event, before["request"])
        assert again.status_code == 422 and again.json()["type"] == "/problems/event-id-reused"
        assert self.served.send_outcome(event, model="m", correct=True).status_code == 404

    # --- what always holds ------------------------------------------------------------------------------------------

    @invariant()
    def every_weight_is_equal(self) -> None:
        model = self.served.model("m")
        assert np.array_equal(model.adapter.learner.weights, self.twin.weights) or not self.learned
        assert model.version == self.learned
        assert set(model.pending) == set(self.open)

    @invariant()
    def every_decision_is_shown_as_it_was_made(self) -> None:
        for event, decision in self.decided.items():
            shown = self.served.call("GET", f"/v1/models/m/decisions/{event}").json()
            assert shown.pop("outcome", None) == self.answered.get(event)
            shown.pop("at")
            assert shown == decision["answer"]

    def teardown(self) -> None:
        if not hasattr(self, "served"):
            return
        replay(self.served.service.store)
        self.served.close()
        shutil.rmtree(self.folder)


class ActionRequests(Requests):
    """The same of a model with actions: one word and one number each, and a context."""

    choice = "action"
    can_grow = False

    def _create(self, **more: Any) -> None:
        spec = {"name": "m", "actions": True, "algorithm": "frugal-gaptron", **more}
        assert self.served.call("POST", "/v1/models", spec).status_code == 201

    def _new_twin(self, epsilon: float) -> gaptron.Learner:
        more: dict[str, Any] = {"actions": True, "features": "auto"}
        return gaptron.Learner("frugal-gaptron", feedback="bandit", epsilon=epsilon, seed=0, **more)

    def _body(self, x: list[float]) -> dict[str, Any]:
        features = ({"size": value, "sign": "minus" if value < 0.0 else "plus"} for value in x)
        actions = [{"id": name, "features": each} for name, each in zip([*NAMES, "out"], [*features, {}])]
        return {"context": {"first": x[0]}, "actions": actions, "excluded": ["out"]}

    def _given(self, body: dict[str, Any]) -> dict[str, Any]:
        actions = [(one["id"], one["features"]) for one in body["actions"]]
        return {"x": body["context"], "actions": actions, "excluded": body["excluded"]}

    def _distribution(self, body: dict[str, Any]) -> Any:
        return self.twin.preview(**self._given(body)).distribution

    def _check_distribution(self, answer: dict[str, Any], p: Any, code: int) -> None:
        assert answer["ranking"][0]["id"] == NAMES[code]
        assert {one["id"]: one["propensity"] for one in answer["ranking"]} == dict(zip(NAMES, p.tolist()))

    def _learn_logged(self, body: dict[str, Any], played: str, propensity: float, correct: bool) -> None:
        self.twin.learn_logged(**self._given(body), action=played, propensity=propensity, correct=correct)


TestRequests = pytest.mark.slow(Requests.TestCase)
TestRequests.settings = settings(max_examples=30, stateful_step_count=50, deadline=None)
TestActionRequests = pytest.mark.slow(ActionRequests.TestCase)
TestActionRequests.settings = settings(max_examples=20, stateful_step_count=50, deadline=None)
