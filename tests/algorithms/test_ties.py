"""Before anything was learned, and wherever scores tie, no label is preferred by its place."""

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import NAMES, load
from gaptron.types import Feedback

# Their papers play the lowest of the best labels, and their proofs use it.
LOWEST = {
    "arow",
    "banditron",
    "laplace",
    "ons",
    "perceptron",
    "second-order-perceptron",
    "separable",
    "soba",
    "softmax",
}
SMOOTH = {"exp4"}  # its experts are drawn at random
PLAYED = [
    (name, feedback)
    for name in NAMES
    for feedback in ("full", "bandit")
    if name not in LOWEST | SMOOTH
    and Feedback[feedback.upper()] in load(name).CARD.feedback
    and load(name).CARD.most_classes is None
]
X = np.array([[1.0, 0.5, 0.25]])
KNOWN = {"norm": 2.0, "radius": 2.0, "horizon": 1000}


@pytest.mark.parametrize(("name", "feedback"), PLAYED)
def test_nothing_learned_is_drawn_uniformly(name, feedback):
    learner = gaptron.Learner(name, n_classes=4, n_features=3, feedback=feedback, seed=0, **KNOWN)
    np.testing.assert_allclose(learner.distribution(X)[0], np.full(4, 0.25), rtol=1e-12)
    if load(name).CARD.available and name != "gaptron":  # as in the paper: what is left goes to one label
        some = learner.distribution(X, available=[[1, 3]])[0]
        np.testing.assert_allclose(some, [0.0, 0.5, 0.0, 0.5], rtol=1e-12)


@pytest.mark.parametrize("name", ["advised-gaptron", "frugal-gaptron", "confidit", "epsilon-greedy"])
def test_labels_that_were_never_played_stay_equal(name):
    learner = gaptron.Learner(name, n_classes=4, n_features=3, feedback="bandit", seed=0, norm=2.0)
    decision = learner.decide(X[0])
    assert decision.propensity == pytest.approx(0.25)
    learner.learn(decision, correct=False)
    p = learner.distribution(X)[0]
    others = np.delete(p, decision.label)
    assert p[decision.label] <= others[0]
    np.testing.assert_allclose(others, others[0], rtol=1e-12)


@pytest.mark.parametrize("feedback", ["full", "bandit"])
def test_actions_that_tie_are_drawn_uniformly(feedback):
    learner = gaptron.Learner(actions=True, feedback=feedback, seed=0)
    for actions in (np.eye(3), np.ones((5, 3)), np.zeros((2, 3))):
        np.testing.assert_allclose(learner.distribution(actions), 1.0 / len(actions), rtol=1e-12)


def test_the_coin_of_confidit_does_not_depend_on_how_a_tie_was_drawn():
    """With α < 1 a wrong label counts as right with probability (1 - α)/2, whichever of the tied labels it was."""
    moved = np.zeros(2)
    for seed in range(400):
        learner = gaptron.Learner("confidit", n_classes=2, n_features=3, feedback="bandit", seed=seed, alpha=0.0)
        decision = learner.decide(X[0])
        learner.learn(decision, correct=False)
        moved[decision.label] += learner.scores(X)[0][decision.label] > 0.0
    assert (np.abs(moved / 200 - 0.5) < 0.15).all()  # four standard errors
