"""Labels that are never available might as well not be there."""

import numpy as np
import pytest

import gaptron
from tests.conftest import random_stream

RUNS = [
    ("laplace", "full", {"nu": 1.0}),
    ("laplace", "full", {"nu": 1.0, "matrix": "full"}),
    ("newtron", "bandit", {"gamma": 0.2}),
    ("newtron", "bandit", {"gamma": 0.2, "matrix": "full"}),
    ("randomized-decoding", "full", {"eta": 0.2}),
    ("randomized-decoding", "bandit", {"gamma": 0.2, "ball": 1.0}),
    ("separable", "bandit", {}),
    ("separable", "bandit", {"kernel": True, "support": 20}),
]


@pytest.mark.sample(6)
@pytest.mark.parametrize("name, feedback, settings", RUNS, ids=lambda part: str(part) if isinstance(part, str) else "")
@pytest.mark.parametrize("there", [[0, 1], [1, 3]], ids=str)
def test_two_of_four_labels_are_two_labels(name, feedback, settings, there):
    """A rule that counted all four (1/K for 1/n), or moved those that are not there, would end elsewhere."""
    X, y, _ = random_stream(120, K=2, seed=5)
    given = {"feedback": feedback, "norm": 4.0, "radius": 1.0, "horizon": 120, "seed": 3, **settings}
    two, four = gaptron.Learner(name, n_classes=2, **given), gaptron.Learner(name, n_classes=4, **given)
    available = np.zeros((120, 4), dtype=bool)
    available[:, there] = True
    small, large = two.play(X, y), four.play(X, np.array(there)[y], available=available)
    np.testing.assert_array_equal(large.codes, np.array(there)[small.codes])
    np.testing.assert_allclose(large.truth_probability, small.truth_probability, atol=1e-9)
    np.testing.assert_allclose(four.weights[there], two.weights, atol=1e-9)
    assert small.mistakes and two.weights.any() and not np.delete(four.weights, there, axis=0).any()


@pytest.mark.parametrize("play", ["top", "sample"])
def test_one_label_alone_is_played_and_teaches_aioli_nothing(play):
    X, y, _ = random_stream(40, K=2, seed=6)
    plain, some = (gaptron.Learner("aioli", n_classes=2, norm=4.0, radius=1.0, play=play, seed=3) for _ in range(2))
    alone = np.arange(80) % 2 == 0  # every other round is one in which there is nothing to choose
    rows, labels = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    available = np.ones((80, 2), dtype=bool)
    available[alone] = np.eye(2, dtype=bool)[labels[alone]]
    plain.play(X, y), some.play(rows, labels, available=available)
    np.testing.assert_array_equal(plain.weights, some.weights)
    np.testing.assert_array_equal(some.distribution(X[:1], available=[[0]]), [[1.0, 0.0]])
