"""Classifiers, learners and arrays as experts."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB

from gaptron import Abstainer, Learner, experts_from
from gaptron.errors import InputError

RNG = np.random.default_rng(0)
WORDS = np.array(["cat", "dog", "owl"])
Y = RNG.integers(0, 3, 150)
X = np.eye(3)[Y] + 0.4 * RNG.standard_normal((150, 3))
BAYES = GaussianNB().fit(X, WORDS[Y])
RIDGE = RidgeClassifier().fit(X, WORDS[Y])


def test_a_probability_becomes_a_prediction():
    P = BAYES.predict_proba(X)
    got = experts_from([BAYES], X, label="dog")
    np.testing.assert_allclose(got[:, 0], 2 * P[:, 1] - 1)
    np.testing.assert_allclose(experts_from([P, P], label=1), np.repeat(got, 2, axis=1))


def test_a_score_becomes_a_margin_clipped():
    Z = RIDGE.decision_function(X)
    got = experts_from([RIDGE], X, label="owl", kind="scores")[:, 0]
    np.testing.assert_allclose(got, np.clip(Z[:, 2] - Z[:, :2].max(axis=1), -1, 1))
    assert got.min() == -1.0


def test_two_labels_need_no_name_and_one_column():
    yes = Y == 1
    model = LogisticRegression().fit(X, yes)
    p, z = model.predict_proba(X), model.decision_function(X)
    got = experts_from([model], X)
    np.testing.assert_allclose(got[:, 0], 2 * p[:, 1] - 1)
    np.testing.assert_allclose(experts_from([p[:, 1], p[:, 1:]]), np.repeat(got, 2, axis=1))
    np.testing.assert_allclose(experts_from([model], X, kind="scores")[:, 0], np.clip(z, -1, 1))
    np.testing.assert_allclose(experts_from([z], kind="scores", label=0)[:, 0], np.clip(-z, -1, 1))


def test_votes_are_the_first_choice():
    votes = experts_from([BAYES], X, label="cat", votes=True)[:, 0]
    np.testing.assert_array_equal(votes, np.where(BAYES.predict(X) == "cat", 1.0, -1.0))
    votes = experts_from([RIDGE], X, label="cat", kind="scores", votes=True)[:, 0]
    np.testing.assert_array_equal(votes, np.where(RIDGE.predict(X) == "cat", 1.0, -1.0))


@pytest.mark.parametrize("kind", ["probabilities", "scores"])
def test_learners_are_experts(kind):
    learners = [Learner("gaptron", classes=list(WORDS), loss=loss, norm=9.0, seed=0) for loss in ("hinge", "logistic")]
    for learner in learners:
        learner.play(X[:100], WORDS[Y[:100]])
    got = experts_from(learners, X[100:], label="owl", kind=kind)
    assert got.shape == (50, 2) and np.abs(got).max() <= 1.0
    outputs = learners[1].distribution(X[100:]) if kind == "probabilities" else learners[1].scores(X[100:])
    by_hand = 2 * outputs[:, 2] - 1 if kind == "probabilities" else outputs[:, 2] - outputs[:, :2].max(axis=1)
    np.testing.assert_allclose(got[:, 1], np.clip(by_hand, -1, 1))
    Abstainer(2, cost=0.2, seed=0).play(got, np.where(Y[100:] == 2, 1, -1))


@pytest.mark.parametrize(
    ("sources", "given", "message"),
    [
        ([], {}, "sources is empty"),
        ([BAYES], {"label": "cat"}, "give the examples X"),
        ([BAYES], {"X": X}, "has 3 labels: give the one"),
        ([BAYES], {"X": X, "label": "cow"}, "has no label 'cow'; its labels are 'cat', 'dog', 'owl'"),
        ([RIDGE], {"X": X, "label": "cat"}, "RidgeClassifier, .* gives no probabilities"),
        ([X], {"label": 0}, "not probabilities; for scores"),
        ([np.full((3, 2), np.nan)], {}, "finite"),
        ([np.zeros((2, 2, 2))], {}, "rounds × labels"),
        ([["a", "b"]], {}, "are not numbers"),
        ([np.full(3, 0.5), np.full(4, 0.5)], {}, "different lengths: 3, 4"),
        ([np.full(3, 0.5)], {"kind": "guesses"}, "probabilities, scores"),
        ([3], {}, "a int, .* gives no probabilities"),
    ],
)
def test_a_bad_source_is_named(sources, given, message):
    with pytest.raises(InputError, match=message):
        experts_from(sources, **given)
