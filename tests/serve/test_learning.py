"""Statistics of draws and learning: labels are played with their propensities, and late outcomes cost little."""

from collections import Counter, deque
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from gaptron.serve.events import Created, Decided, Event, OutcomeRecorded, TimedOut
from gaptron.serve.model_state import Model
from gaptron.serve.schemas import DecisionRequest, NewModel, Outcome

KEY = "0f" * 32


class Replayed:
    """A model without a store."""

    def __init__(self, spec: NewModel) -> None:
        self.model, self.seq = Model(Created(spec, KEY)), 0

    def append(self, event_id: str, body: Any, decided: Event | None = None) -> Event:
        self.seq += 1
        event = Event(self.seq, self.model.name, event_id, self.seq, body)
        self.model.apply(event, decided, check=False)
        return event

    def decide(self, event_id: str, x: Any) -> Event:
        return self.append(event_id, self.model.decide(DecisionRequest(x=x), event_id, self.seq))


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_labels_are_played_as_often_as_their_probabilities_say(epsilon: float) -> None:
    settings: Any = {"gamma": 0.4}
    replayed = Replayed(
        NewModel(name="m", labels=["a", "b", "c", "d"], algorithm="banditron", settings=settings, epsilon=epsilon)
    )
    for t in range(200):
        decided = replayed.decide(f"lesson-{t}", [0.5, 0.5])
        replayed.append(f"lesson-{t}", OutcomeRecorded(Outcome(correct=decided.body.label == "b")), decided)
    request = DecisionRequest(x=[0.5, 0.5])
    decisions: list[Decided] = [replayed.model.decide(request, f"event-{t}", 0) for t in range(4000)]
    p = decisions[0].distribution
    assert p is not None and max(p) > 0.3
    assert all(one.distribution == p and one.propensity == p["abcd".index(one.label)] for one in decisions)
    counts = Counter(one.label for one in decisions)
    assert chisquare([counts[label] for label in "abcd"], [4000 * propensity for propensity in p]).pvalue > 1e-3


def test_another_key_draws_other_labels() -> None:
    spec: Any = NewModel(name="m", labels=["a", "b"], algorithm="perceptron", feedback="full", epsilon=0.9)
    one, two = Model(Created(spec, KEY)), Model(Created(spec, "f0" * 32))
    request = DecisionRequest(x=[1.0, 0.0])
    draws = [[model.decide(request, f"e{t}", 0).label for t in range(200)] for model in (one, two)]
    assert 40 < sum(a != b for a, b in zip(*draws)) < 160


def test_the_delay_of_an_outcome_ends_when_it_arrives_and_not_when_it_is_learned_from() -> None:
    spec: Any = NewModel(
        name="m",
        labels=["a", "b"],
        algorithm="banditron",
        settings={"gamma": 0.4},
        feedback_timeout=60,
        on_timeout="wrong",
    )
    model, at = Model(Created(spec, KEY)), 1_000_000
    request = DecisionRequest(x=[1.0, 0.0])
    decided = Event(1, "m", "e", at, model.decide(request, "e", at))
    silent = Event(2, "m", "f", at, model.decide(request, "f", at))
    for event in (decided, silent):
        model.apply(event, check=False)
    model.apply(Event(3, "m", "e", at + 5_000_000, OutcomeRecorded(Outcome(correct=True))), decided)
    assert model.version == 0 and list(model.pending) == ["e", "f"]
    model.apply(Event(4, "m", None, at + 90_000_000, TimedOut(at + 60_000_000)))
    assert model.version == 2 and not model.pending
    assert model.tally.delays == [0, 1, 0, 0, 0, 0, 0] and model.tally.timed_out == 1


@pytest.mark.slow
def test_late_outcomes_cost_at_most_two_points() -> None:
    """scikit-learn's digits, 10,000 rounds of bandit feedback, the default learner; error rate of the last half."""
    from sklearn.datasets import load_digits  # noqa: PLC0415

    X, y = load_digits(return_X_y=True)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    order = np.random.default_rng(0).integers(0, len(X), 10_000)
    spec = NewModel(name="digits", labels=[str(k) for k in range(10)], features=64)
    errors = {}
    for late in (0, 10, 1000):
        replayed, open_, wrong = Replayed(spec), deque[tuple[Event, bool]](), []
        for t, row in enumerate(order):
            decided = replayed.decide(f"e{t}", X[row].tolist())
            open_.append((decided, decided.body.label == str(y[row])))
            wrong.append(not open_[-1][1])
            if len(open_) > late:
                first, right = open_.popleft()
                replayed.append(first.event_id or "", OutcomeRecorded(Outcome(correct=right)), first)
        errors[late] = 100.0 * float(np.mean(wrong[5000:]))
    print(f"error rates in % by missing outcomes: {errors}")
    assert errors[10] <= errors[0] + 2.0 and errors[1000] <= errors[0] + 2.0
    assert errors[0] < 10.0
