"""What the service draws and learns, by statistics: played as often as it says, and not spoiled by late answers."""

from collections import Counter, deque
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from gaptron.serve.entries import Answered, Created, Decided, Entry
from gaptron.serve.fold import Model
from gaptron.serve.words import DecisionRequest, NewModel, Outcome

KEY = "0f" * 32


class Folded:
    """A model without a store."""

    def __init__(self, spec: NewModel) -> None:
        self.model, self.seq = Model(Created(spec, KEY)), 0

    def enter(self, event: str, body: Any, decided: Entry | None = None) -> Entry:
        self.seq += 1
        entry = Entry(self.seq, self.model.name, event, self.seq, body)
        self.model.apply(entry, decided, check=False)
        return entry

    def decide(self, event: str, x: Any) -> Entry:
        return self.enter(event, self.model.look(DecisionRequest(x=x), event, self.seq))


@pytest.mark.parametrize("control", [0.0, 0.3])
def test_labels_are_played_as_often_as_their_probabilities_say(control: float) -> None:
    settings: Any = {"gamma": 0.4}
    folded = Folded(
        NewModel(name="m", labels=["a", "b", "c", "d"], algorithm="banditron", settings=settings, control=control)
    )
    for t in range(200):
        entry = folded.decide(f"lesson-{t}", [0.5, 0.5])
        folded.enter(f"lesson-{t}", Answered(Outcome(correct=entry.body.label == "b")), entry)
    request = DecisionRequest(x=[0.5, 0.5])
    looks: list[Decided] = [folded.model.look(request, f"event-{t}", 0) for t in range(4000)]
    p = looks[0].distribution
    assert p is not None and max(p) > 0.3
    assert all(one.distribution == p and one.probability == p["abcd".index(one.label)] for one in looks)
    counts = Counter(one.label for one in looks)
    assert chisquare([counts[label] for label in "abcd"], [4000 * chance for chance in p]).pvalue > 1e-3


def test_another_key_draws_other_labels() -> None:
    spec: Any = NewModel(name="m", labels=["a", "b"], algorithm="perceptron", feedback="full", control=0.9)
    one, two = Model(Created(spec, KEY)), Model(Created(spec, "f0" * 32))
    request = DecisionRequest(x=[1.0, 0.0])
    draws = [[model.look(request, f"e{t}", 0).label for t in range(200)] for model in (one, two)]
    assert 40 < sum(a != b for a, b in zip(*draws)) < 160


@pytest.mark.slow
def test_answers_that_come_late_cost_at_most_two_points() -> None:
    """scikit-learn's digits, 10,000 rounds of bandit feedback, the default learner; mistakes of the last half."""
    from sklearn.datasets import load_digits  # noqa: PLC0415

    X, y = load_digits(return_X_y=True)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    order = np.random.default_rng(0).integers(0, len(X), 10_000)
    spec = NewModel(name="digits", labels=[str(k) for k in range(10)], features=64)
    errors = {}
    for late in (0, 10, 1000):
        folded, open_, wrong = Folded(spec), deque[tuple[Entry, bool]](), []
        for t, row in enumerate(order):
            entry = folded.decide(f"e{t}", X[row].tolist())
            open_.append((entry, entry.body.label == str(y[row])))
            wrong.append(not open_[-1][1])
            if len(open_) > late:
                first, right = open_.popleft()
                folded.enter(first.event or "", Answered(Outcome(correct=right)), first)
        errors[late] = 100.0 * float(np.mean(wrong[5000:]))
    print(f"errors in % by answers missing: {errors}")
    assert errors[10] <= errors[0] + 2.0 and errors[1000] <= errors[0] + 2.0
    assert errors[0] < 10.0
