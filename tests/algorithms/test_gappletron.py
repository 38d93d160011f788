"""Gappletron: what the graph shows, and what follows from it."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import gaptron
from gaptron.algorithms import gappletron as file
from gaptron.algorithms import gaptron as paper
from gaptron.algorithms.feedback import as_graph, dominating_set, label_efficient
from gaptron.data.examples import sealed_row
from gaptron.learner.seeds import generator
from gaptron.types import Comparator, Feedback, Loss, Problem, Round, new_round
from tests import plain
from tests.conftest import noisy_stream, random_stream, separable_stream
from tests.one_round import decide_once, learn_once

RING = np.roll(np.eye(4, dtype=bool), 1, axis=1) | np.eye(4, dtype=bool)  # a label shows itself and the next


def sheet(K: int) -> Round:
    return new_round(K, 1)


# --- graphs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", [RING, np.eye(4, dtype=bool), np.ones((4, 4), dtype=bool), label_efficient(4)])
def test_a_dominating_set_shows_every_label(graph):
    chosen = dominating_set(graph)
    assert graph[chosen].any(axis=0).all()
    assert len(set(chosen.tolist())) == len(chosen)


def test_dominating_sets_are_small_where_they_can_be():
    assert len(dominating_set(np.ones((5, 5), dtype=bool))) == 1
    assert len(dominating_set(np.eye(5, dtype=bool))) == 5
    assert dominating_set(label_efficient(5)).tolist() == [0]
    assert len(dominating_set(RING)) == 2


@pytest.mark.parametrize(
    "kind", [np.asarray, sp.csr_matrix, sp.csr_array, lambda g: g.astype(int), lambda g: g.tolist()]
)
def test_a_graph_may_come_in_any_shape(kind):
    assert np.array_equal(as_graph(kind(RING), 4), RING)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (np.eye(3), "4 × 4"),
        (np.full((4, 4), 0.5), "True and False"),
        (np.diag([1, 1, 1, 0]), "label 3"),
        ("apple-tasting", "two classes"),
        ("rumours", "label-efficient"),
    ],
)
def test_an_impossible_graph_is_refused_with_the_reason(graph, message):
    with pytest.raises(gaptron.SettingError, match=message):
        gaptron.Learner("gappletron", n_classes=4, feedback=graph)


def test_other_algorithms_refuse_a_graph():
    with pytest.raises(gaptron.SettingError, match="not graph"):
        gaptron.Learner("gaptron", n_classes=4, feedback=RING)


def test_feedback_must_be_what_the_graph_reveals():
    learner = gaptron.Learner("gappletron", classes=["ham", "spam"], feedback="apple-tasting", norm=2.0, seed=0)
    decisions = [learner.decide([1.0, 0.0]) for _ in range(20)]
    ham = next(d for d in decisions if d.label == "ham")
    spam = next(d for d in decisions if d.label == "spam")
    with pytest.raises(gaptron.DecisionError, match="does not reveal"):
        learner.learn(ham, label="ham")
    with pytest.raises(gaptron.DecisionError, match="graph feedback"):
        learner.learn(ham, correct=True)
    before = learner.weights
    learner.learn(ham)
    assert np.array_equal(learner.weights, before)
    learner.learn(spam, label="ham")
    assert not np.array_equal(learner.weights, before)


# --- the algorithm ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "hinge", "smooth-hinge"])
def test_seven_rounds_by_hand(loss):
    """Fixed settings on the ring, in textbook numpy."""
    stream = random_stream(T=7, d=3, K=4, seed=5)
    learner = gaptron.Learner(
        "gappletron", n_classes=4, feedback=RING, loss=loss, steps="fixed", norm=3.0, radius=1.0, horizon=50, seed=3
    )
    u = generator(3).random(7)
    trace = learner.play(stream.X, stream.y)
    eta1 = {"logistic": math.log(2) / 2, "hinge": 1 - 1 / 4, "smooth-hinge": 1 / 4}[loss] / (4 * 9)
    gamma = min(1.0, math.sqrt(2 / (2 * eta1 * 50)))
    cover = np.zeros(4)
    cover[dominating_set(RING)] = 0.5
    W = np.zeros((4, 3))
    for t, (x, y) in enumerate(zip(stream.X, stream.y, strict=True)):
        z = W @ x
        p = (1 - gamma) * plain.mixture(plain.gap_map(loss, z, 1 / 4), 0.0, z) + gamma * cover
        label = int(np.searchsorted(np.cumsum(p), u[t], side="right"))
        assert trace.codes[t] == label
        assert trace.truth_probability[t] == pytest.approx(p[y], abs=1e-12)
        if RING[label, y]:
            v = 1 / p[RING[:, y]].sum()
            W -= (eta1 * gamma / 2) * v * np.outer(plain.coefficients(loss, z, y, 1 / 4), x)
    np.testing.assert_allclose(learner.weights, W, atol=1e-12)


def test_adaptive_steps_are_projected_adagrad_by_hand():
    stream = random_stream(T=60, d=3, K=4, seed=6)
    learner = gaptron.Learner("gappletron", n_classes=4, feedback="full", loss="hinge", radius=0.7, norm=3.0, seed=0)
    learner.play(stream.X, stream.y)
    W, total = np.zeros((4, 3)), 0.0
    for x, y in zip(stream.X, stream.y, strict=True):
        g = np.outer(plain.coefficients("hinge", W @ x, y, 1 / 4), x)
        total += (g * g).sum()
        if total > 0:
            W -= 0.7 / math.sqrt(2 * total) * g
            W *= min(1.0, 0.7 / max(np.linalg.norm(W), 1e-300))
    np.testing.assert_allclose(learner.weights, W, atol=1e-10)
    assert np.linalg.norm(learner.weights) <= 0.7 * (1 + 1e-12)


@pytest.mark.parametrize(
    "graph", [RING, np.eye(4, dtype=bool), label_efficient(4)], ids=["ring", "bandit", "efficient"]
)
@pytest.mark.parametrize("loss", list(Loss))
def test_the_estimate_is_unbiased(graph, loss):
    """Σ over labels played of p'(k)·update = the full-information update."""
    problem = Problem(4, 3, Feedback.GRAPH, loss, 1.0, 1.0, 100, graph)
    settings = file.recommend(problem, steps="fixed", gamma=0.3, eta=0.1)
    rng = np.random.default_rng(2)
    x, y = sealed_row(rng.normal(size=3)), 2
    state = file.init(settings, problem, False)
    state.W[:] = rng.normal(size=(4, 3))
    before, mean = state.W.copy(), np.zeros((4, 3))
    rd, work = sheet(4), file.scratch(settings, problem, False)
    decide_once(settings, state, x, rd, work)
    for k in range(4):
        state.W[:] = before
        learn_once(settings, state, x, rd, work, k, y if graph[k, y] else -1)
        mean += rd.p[k] * (state.W - before)
    name = loss.word
    expected = -0.1 * np.outer(plain.coefficients(name, before @ x, y, 1 / 4), x)
    np.testing.assert_allclose(mean, expected, atol=1e-12)


def test_full_information_at_fixed_steps_is_gaptron():
    stream = noisy_stream(T=200)
    options = {"n_classes": stream.K, "loss": "smooth-hinge", "norm": 3.0, "seed": 1}
    ours = gaptron.Learner("gappletron", steps="fixed", **options)
    theirs = gaptron.Learner("gaptron", **options)
    assert np.array_equal(ours.play(stream.X, stream.y).codes, theirs.play(stream.X, stream.y).codes)
    np.testing.assert_allclose(ours.weights, theirs.weights, atol=1e-12)
    problem = ours.problem
    comparator = Comparator(10.0, 2.0, 200)
    assert file.bound(problem, ours.settings, comparator) == paper.bound(problem, theirs.settings, comparator)


def test_a_top_label_that_shows_all_is_played_without_exploring():
    learner = gaptron.Learner(
        "gappletron", n_classes=3, feedback="label-efficient", loss="hinge", norm=1.0, n_features=1, seed=0
    )
    for _ in range(200):
        decision = learner.decide([1.0])
        if decision.label == 0:
            learner.learn(decision, label=0)
        else:
            learner.learn(decision)
    assert learner.distribution(np.ones((1, 1)))[0].tolist() == [1.0, 0.0, 0.0]


@pytest.mark.sample(2)
@pytest.mark.parametrize("feedback", ["bandit", "label-efficient"])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "smooth-hinge"])
def test_mean_mistakes_stay_below_the_bound(feedback, loss):
    stream = separable_stream(T=400, K=3, seed=2)
    bounds, mistakes = [], []
    for seed in range(10):
        learner = gaptron.Learner(
            "gappletron", n_classes=3, feedback=feedback, loss=loss, steps="fixed", radius=3.0, horizon=400, seed=seed
        )
        mistakes.append(learner.play(stream.X, stream.y).mistakes)
        bounds.append(learner.bound(stream.X, stream.y).value)
    assert np.mean(mistakes) <= np.mean(bounds)
    assert min(mistakes) < 400 * 2 / 3 or feedback == "bandit"  # it does learn


def test_bounds_are_refused_where_nothing_is_proved():
    stream = random_stream(T=30)
    for settings in ({}, {"steps": "fixed", "gamma": 0.2}):
        learner = gaptron.Learner("gappletron", n_classes=4, feedback=RING, radius=1.0, horizon=30, seed=0, **settings)
        learner.play(stream.X, stream.y)
        with pytest.raises(gaptron.NoBoundError):
            learner.bound(stream.X, stream.y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": "slow"}, "adaptive"),
        ({"beta": 1.0}, "beta"),
        ({"steps": "fixed", "gamma": 0.0}, "gamma"),
        ({"steps": "fixed", "eta": -1.0}, "eta"),
        ({"steps": "fixed", "radius": None}, "radius"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    given = {"norm": 1.0, "radius": 1.0, "horizon": 50, **settings}
    with pytest.raises(gaptron.SettingError, match=message):
        gaptron.Learner("gappletron", n_classes=4, feedback=RING, **given)
