"""A share of decisions drawn uniformly: every probability counts it, and what it ends is refused."""

import numpy as np
import pytest
from scipy.stats import chisquare

import gaptron
from gaptron.errors import NoBoundError, SettingError
from tests.conftest import portrait, separable_stream

STREAM = separable_stream(400)


def make(epsilon=0.3, **more):
    return gaptron.Learner("gaptron", n_classes=3, feedback="bandit", norm=1.0, radius=5.0, horizon=400, seed=1,
                           epsilon=epsilon, **more)  # fmt: skip


def off_policy(epsilon=0.3):
    learner = make(epsilon)
    for x, y in zip(STREAM.X, STREAM.y):
        decision = learner.decide(x)
        learner.learn(decision, correct=decision.label == y)
    return learner


def test_the_probabilities_are_the_learners_own_with_the_share_mixed_in():
    own, shared = make(0.0), make(0.3)
    for x, y in zip(STREAM.X[:50], STREAM.y):
        for learner in (own, shared):
            learner.learn_logged(x, int(y), 0.5, correct=True)
    for x in STREAM.X[50:80]:
        p = own.distribution(x[None])[0]
        np.testing.assert_allclose(shared.distribution(x[None])[0], 0.7 * p + 0.1, rtol=1e-12)
        decision = shared.decide(x)
        assert decision.propensity == decision.distribution[decision.label]
        assert decision.distribution.min() >= 0.1
        own.decide(x)  # the clock of both goes on


def test_labels_are_drawn_as_often_as_they_say():
    learner = gaptron.Learner("perceptron", n_classes=3, seed=1, epsilon=0.3)
    for x, y in zip(STREAM.X, STREAM.y):
        learner.learn(learner.decide(x), label=y)
    x = STREAM.X[0]
    p = learner.distribution(x[None])[0]
    labels = [learner.decide(x).label for _ in range(3000)]
    assert chisquare(np.bincount(labels, minlength=3), 3000 * p).pvalue > 1e-4
    np.testing.assert_allclose(sorted(p), [0.1, 0.1, 0.8])


def test_the_share_is_kept_in_the_file(tmp_path):
    learner = off_policy()
    learner.save(tmp_path / "model.gaptron")
    again = gaptron.Learner.load(tmp_path / "model.gaptron")
    assert portrait(again) == portrait(learner)
    assert again.decide(STREAM.X[0]).distribution.min() >= 0.1


def test_what_the_share_ends_is_refused():
    learner = off_policy()
    with pytest.raises(NoBoundError, match=r"epsilon=0\.3"):
        learner.bound(STREAM.X, STREAM.y)
    with pytest.raises(SettingError, match=r"epsilon=0\.3"):
        learner.play(STREAM.X, STREAM.y)
    assert learner.rounds == 400


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan"), "half"])
def test_an_impossible_share_is_refused(share):
    with pytest.raises(SettingError, match="epsilon"):
        make(share)


def test_a_changed_share_counts_from_the_next_decision_on_and_is_kept_in_the_file(tmp_path):
    learner, twin = make(0.0), make(0.3)
    for x, y in zip(STREAM.X[:50], STREAM.y):
        for one in (learner, twin):
            one.learn_logged(x, int(y), 0.5, correct=True)
    learner.change_epsilon(0.3)
    assert learner.epsilon == twin.epsilon == 0.3
    assert learner.distribution(STREAM.X).tolist() == twin.distribution(STREAM.X).tolist()
    learner.save(tmp_path / "model.gaptron")
    again = gaptron.Learner.load(tmp_path / "model.gaptron")
    assert again.epsilon == 0.3 and again.distribution(STREAM.X).tolist() == twin.distribution(STREAM.X).tolist()
    with pytest.raises(SettingError, match="epsilon"):
        learner.change_epsilon(1.0)
    assert learner.epsilon == 0.3


def test_uniform_draws_of_the_past_still_end_the_certificate(tmp_path):
    learner = off_policy()
    learner.change_epsilon(0.0)
    learner.save(tmp_path / "model.gaptron")
    for one in (learner, gaptron.Learner.load(tmp_path / "model.gaptron")):
        with pytest.raises(NoBoundError, match=r"epsilon=0\.3"):
            one.bound(STREAM.X, STREAM.y)


def test_an_algorithms_own_epsilon_is_changed():
    learner = gaptron.Learner("epsilon-greedy", n_classes=3, feedback="bandit", norm=1.0, seed=0)
    assert learner.epsilon == 0.05
    learner.learn(learner.decide(STREAM.X[0]), correct=True)
    learner.change_epsilon(0.3)
    assert learner.epsilon == 0.3 and learner.distribution(STREAM.X).min() == pytest.approx(0.1)
    with pytest.raises(SettingError, match="epsilon"):
        learner.change_epsilon(0.0)
