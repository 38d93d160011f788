"""Facts of epsilon-greedy alone. Its oracles are those of SquareCB and tested there."""

import math

import numpy as np
import pytest

import gaptron
from gaptron.errors import NoBoundError, SettingError
from gaptron.learner.seeds import generator
from tests.conftest import random_stream


def learner(K=3, seed=0, **more):
    return gaptron.Learner("epsilon-greedy", n_classes=K, feedback="bandit", seed=seed, **{"norm": 4.0, **more})


@pytest.mark.parametrize("oracle", ["squared", "logistic", "softmax"])
def test_a_whole_run_equals_the_textbook(oracle):
    X, y, K = random_stream(250, K=4, seed=8)
    trace = (run := learner(K, seed=5, oracle=oracle, epsilon=0.3, step=0.2)).play(X, y)
    W, kinds = np.zeros((K, X.shape[1])), set()
    for t, (x, u) in enumerate(zip(X, generator(5).random(250))):
        z = W @ x
        top = int(z.argmax())
        f = {"squared": np.clip(z, 0, 1), "logistic": 1 / (1 + np.exp(-z)), "softmax": np.exp(z) / np.exp(z).sum()}[
            oracle
        ]
        tied = z == z.max()  # all of them at first
        q = np.full(K, 0.3 / K) + 0.7 * tied / tied.sum()
        label = min(int(np.searchsorted(np.cumsum(q), u, side="right")), K - 1)
        assert trace.codes[t] == label and trace.top[t] == top
        assert trace.truth_probability[t] == pytest.approx(q[y[t]], abs=1e-12)
        right, e = bool(label == y[t]), np.eye(K)[label]
        if oracle == "softmax":
            r = f - e if right else f[label] / max(1 - f[label], 1e-3) * (e - f)
        else:
            r = e * (f[label] - right)
        W -= 0.2 * np.outer(r, x)
        kinds.add((right, label == top))
    np.testing.assert_allclose(run.weights, W, atol=1e-9)
    assert len(kinds) == 4


def test_every_available_label_keeps_its_share_however_confident_it_is():
    run = learner(epsilon=0.06)
    for _ in range(50):
        decision = run.decide([1.0, 0.0])
        run.learn(decision, correct=decision.label == 2)
    np.testing.assert_allclose(run.decide([1.0, 0.0]).distribution, [0.02, 0.02, 0.96], atol=1e-12)
    np.testing.assert_allclose(run.decide([1.0, 0.0], available=[0, 2]).distribution, [0.03, 0.0, 0.97], atol=1e-12)


def test_the_step_is_for_the_longest_row():
    assert learner(norm=4.0).settings.step == 1 / 16
    assert learner(norm=4.0, oracle="squared").settings.step == 1 / 32


@pytest.mark.parametrize(
    "given", [{"epsilon": 0.0}, {"epsilon": 1.5}, {"oracle": "cubic"}, {"step": 0.0}, {"step": math.inf}], ids=str
)
def test_settings_that_make_no_sense_are_refused_by_name(given):
    with pytest.raises(SettingError, match=next(iter(given))):
        learner(**given)


def test_there_is_no_bound():
    X, y, K = random_stream(30)
    run = learner(K)
    run.play(X, y)
    with pytest.raises(NoBoundError, match="no bound"):
        run.bound(X, y)
