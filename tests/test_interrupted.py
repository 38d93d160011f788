"""Ctrl-C at any moment: what was learned is counted, and going on is as if nothing had happened."""

import signal

import numpy as np
import pytest

from gaptron import Abstainer, Learner
from tests.conftest import noisy_stream, portrait

STREAM = noisy_stream(2_000, d=6, K=3)
X, Y = np.tile(STREAM.X, (60, 1)), np.tile(STREAM.y, 60)


def interrupted(call, after):
    """Run it with a Ctrl-C `after` so many seconds. Did it come in time?"""
    armed = [True]

    def ring(*_):
        if armed[0]:
            raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, after)  # inside: a short timer may end before the next line
        call()
        armed[0] = False
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    return False


def make(algorithm="frugal-gaptron", feedback="bandit"):
    learner = Learner(algorithm, n_classes=3, feedback=feedback, seed=0)
    learner.play(STREAM.X[:100], STREAM.y[:100])  # compiled, and not at its first round
    return learner


@pytest.mark.sample(1)
@pytest.mark.parametrize("algorithm", ["frugal-gaptron", "advised-gaptron"])
def test_playing_on_after_ctrl_c_is_playing_through(algorithm):
    whole = make(algorithm)
    through = whole.play(X, Y)
    hits = 0
    for i in range(12):
        learner = make(algorithm)
        start = learner.rounds
        hits += interrupted(lambda learner=learner: learner.play(X, Y), 0.001 + 0.004 * i)
        done = learner.rounds - start
        assert learner.decided == learner.rounds
        if learner.interrupted is not None:
            assert learner.interrupted.rounds == done
            np.testing.assert_array_equal(learner.interrupted.codes, through.codes[:done])
        learner.play(X[done:], Y[done:])
        assert learner.interrupted is None
        assert portrait(learner) == portrait(whole)
    assert hits >= 3


def test_an_interrupted_run_keeps_its_bound():
    learner = make(feedback="full")

    def stop(rounds):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learner.play(X, Y, progress=stop)
    played = learner.rounds
    rows, labels = np.vstack([STREAM.X[:100], X])[:played], np.concatenate([STREAM.y[:100], Y])[:played]
    other = make(feedback="full")
    other.play(X[: played - 100], Y[: played - 100])
    assert learner.interrupted.rounds == played - 100
    assert learner.bound(rows, labels).value == other.bound(rows, labels).value
    assert learner._conditions.longest >= np.linalg.norm(rows, axis=1).max()


def test_ctrl_c_between_updates_loses_and_doubles_none():
    hits = 0
    for i in range(20):
        learner = make()
        waiting = [learner.decide(x) for x in STREAM.X[:300]]
        answered = []

        def answer(learner=learner, waiting=waiting, answered=answered):
            for decision in waiting:
                learner.learn(decision, correct=True)
                answered.append(decision)

        hits += interrupted(answer, 0.0002 + 0.0002 * i)
        assert learner.rounds + len(learner.pending) == 100 + 300
        for decision in learner.pending.values():
            learner.learn(decision, correct=True)
        assert learner.rounds == learner.decided == 400
    assert hits >= 3


def test_an_abstainer_too():
    rng = np.random.default_rng(0)
    votes, labels = rng.choice([-1.0, 1.0], (300_000, 4)), rng.choice([-1, 1], 300_000)
    whole = Abstainer(4, cost=0.2, seed=0)
    whole.play(votes[:10], labels[:10])
    through = whole.play(votes, labels)
    hits = 0
    for i in range(12):
        abstainer = Abstainer(4, cost=0.2, seed=0)
        abstainer.play(votes[:10], labels[:10])
        hits += interrupted(lambda a=abstainer: a.play(votes, labels), 0.0005 + 0.002 * i)
        done = abstainer.rounds - 10
        assert abstainer.decided == abstainer.rounds
        if abstainer.interrupted is not None:
            np.testing.assert_array_equal(abstainer.interrupted.predictions, through.predictions[:done])
        abstainer.play(votes[done:], labels[done:])
        assert abstainer.expected_loss == whole.expected_loss
        np.testing.assert_array_equal(abstainer.weights, whole.weights)
    assert hits >= 3
