"""Two labels of which one is right: whether the decision was right or wrong reveals the true label."""

import numpy as np
import pytest

from gaptron import Learner
from gaptron.errors import DecisionError
from tests.conftest import portrait, random_stream

X, Y, _ = random_stream(60)
ANSWERS = [("stays", "leaves")[k % 2] for k in Y]


def make(algorithm="softmax", classes=("leaves", "stays"), **more):
    return Learner(algorithm, classes=list(classes), norm=3.0, horizon=100, seed=5, **more)


@pytest.mark.parametrize("algorithm", ["advised-gaptron", "softmax"])
def test_right_or_wrong_teaches_as_much_as_the_true_label(algorithm):
    one, other = make(algorithm), make(algorithm)
    for x, answer in zip(X, ANSWERS):
        decision, same = one.decide(x), other.decide(x)
        assert decision.label == same.label
        one.learn(decision, correct=decision.label == answer)
        other.learn(same, label=answer)
    assert portrait(one) == portrait(other)


def test_the_certificate_is_that_of_full_information():
    learner = make("advised-gaptron")
    for x, answer in zip(X, ANSWERS):
        decision = learner.decide(x)
        learner.learn(decision, correct=decision.label == answer)
    assert not learner.certificate.in_expectation


def test_late_feedback_in_any_order_is_of_the_label_that_was_played():
    one, other = make(), make()
    pairs = [(one.decide(x), other.decide(x)) for x in X[:10]]
    for at in np.random.default_rng(0).permutation(10):
        decision, same = pairs[at]
        one.learn(decision, correct=decision.label == ANSWERS[at])
        other.learn(same, label=ANSWERS[at])
    assert portrait(one) == portrait(other)


def test_a_log_of_right_and_wrong_decisions_teaches_too():
    one, other = make(), make()
    for x, answer in zip(X, ANSWERS):
        one.learn_logged(x, "stays", 0.5, correct=answer == "stays")
        other.learn_logged(x, "stays", 0.5, truth=answer)
    assert portrait(one) == portrait(other)


def test_two_available_labels_of_three_are_enough():
    one, other = make(classes=("leaves", "returns", "stays")), make(classes=("leaves", "returns", "stays"))
    for x, answer in zip(X[:20], ANSWERS):
        decision, same = (learner.decide(x, available=["leaves", "stays"]) for learner in (one, other))
        one.learn(decision, correct=decision.label == answer)
        other.learn(same, label=answer)
    assert portrait(one) == portrait(other)


@pytest.mark.parametrize("correct", [True, False])
@pytest.mark.parametrize("available", [None, ["leaves"]], ids=["three", "one"])
def test_other_numbers_of_labels_are_refused_and_change_nothing(correct, available):
    learner = make(classes=("leaves", "returns", "stays"))
    decision, before = learner.decide(X[0], available=available), None
    before = portrait(learner)
    with pytest.raises(
        DecisionError, match=rf"this round had {3 if available is None else 1}: call learn\(decision, label="
    ):
        learner.learn(decision, correct=correct)
    assert portrait(learner) == before
    learner.learn(decision, label="leaves")


def test_a_third_label_ends_it():
    learner = make()
    learner.learn(learner.decide(X[0]), correct=False)
    waiting = learner.decide(X[1])
    learner.grow(classes=["leaves", "stays", "returns"])
    with pytest.raises(DecisionError, match="labels were added after round 2"):
        learner.learn(waiting, correct=False)
    with pytest.raises(DecisionError, match="this round had 3"):
        learner.learn(learner.decide(X[2]), correct=False)


def test_under_bandit_feedback_both_labels_may_be_wrong():
    """Two banners: no click on one does not mean that the other would have been clicked."""
    learner = make("squarecb", feedback="bandit")
    for x in np.tile(X[:1], (60, 1)):
        decision = learner.decide(x)
        learner.learn(decision, correct=False)
    assert learner.distribution(X[:1])[0].min() > 0.1


@pytest.mark.parametrize("wrong", [{"reward": 0.0}, {"correct": 0.5}, {"correct": True, "label": "stays"}])
def test_other_feedback_is_still_refused(wrong):
    learner = make()
    with pytest.raises(DecisionError):
        learner.learn(learner.decide(X[0]), **wrong)
