"""Frozen mistakes per algorithm, loss and feedback; the papers' ones also by textbook numpy."""

import json

import numpy as np
import pytest

from gaptron.learner.seeds import generator
from tests import plain
from tests.golden.record import FILE, PROMISES, SEED, D, K, T, record, stream

GOLDEN = json.loads(FILE.read_text())


def test_nothing_moved():
    """If this fails and you meant it: run scripts/golden and read the diff."""
    found = record()
    assert found.keys() == GOLDEN.keys()
    for name, sums in found.items():
        for what, number in sums.items():
            assert number == pytest.approx(GOLDEN[name][what], abs=1e-5), (name, what)


@pytest.mark.parametrize("feedback", ["full", "bandit"])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "smooth-hinge"])
def test_gaptrons_numbers_by_textbook(loss, feedback):
    X, y = stream()
    rows = plain.table(K, PROMISES["norm"], PROMISES["radius"], T)
    regimes = [
        (value[2], regime, value) for (name, fb, regime), value in rows.items() if (name, fb) == (loss, feedback)
    ]
    _, regime, (eta, gamma, _) = min(regimes)
    assert regime != "free"
    u = generator(SEED).random(T)
    labels, tops, propensities, _ = plain.gaptron(loss, X, y, K, eta, gamma, 1 / K, feedback == "bandit", u)
    frozen = GOLDEN[f"gaptron {loss} {feedback}"]
    assert (labels != y).sum() == frozen["mistakes"]
    assert (tops != y).sum() == frozen["top_mistakes"]
    assert (1 - propensities).sum() == pytest.approx(frozen["expected_mistakes"], abs=1e-5)


def test_the_perceptrons_numbers_by_textbook():
    X, y = stream()
    tops, _ = plain.perceptron(X, y, K)
    assert (tops != y).sum() == GOLDEN["perceptron hinge full"]["mistakes"]


def test_banditrons_numbers_by_textbook():
    X, y = stream()
    labels, _ = plain.banditron(X, y, K, min(0.5, (K / T) ** (1 / 3)), generator(SEED).random(T))
    assert (labels != y).sum() == GOLDEN["banditron hinge bandit"]["mistakes"]


def test_the_stream_is_the_one_the_numbers_are_of():
    X, y = stream()
    assert X.shape == (T, D) and y.shape == (T,) and np.linalg.norm(X, axis=1).max() <= 1
    assert len(GOLDEN) == len(record())
    assert all(sums["mistakes"] < T * (1 - 1 / K) for name, sums in GOLDEN.items() if "perceptron" in name)
