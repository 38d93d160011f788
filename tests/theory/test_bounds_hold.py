"""The bounds, on streams they must hold on; and the comparator that makes them."""

import json
import math
import sys

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import gaptron as file
from gaptron.algorithms import load
from gaptron.theory import bounds
from gaptron.theory import comparator as compare
from gaptron.types import Comparator, Feedback, Loss, Problem
from tests.conftest import STREAMS, noisy_stream, random_stream, separable_stream, shared_data

LOSSES = [loss.word for loss in Loss]


def adversarial_run(learner, T=300, d=5, seed=0):
    """Each round: the adversary reads the learner's distribution and names its least likely label."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y, trace = np.zeros(T, dtype=int), None
    for t in range(T):
        y[t] = learner.distribution(X[t : t + 1])[0].argmin()
        now = learner.play(X[t : t + 1], y[t : t + 1])
        trace = now if trace is None else trace + now
    return X, y, trace


@pytest.mark.sample(10)
@pytest.mark.parametrize("masked", [False, True], ids=["plain", "with-trace"])
@pytest.mark.parametrize("stream", ["random", "separable", "noisy"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("algorithm", ["gaptron", "frugal-gaptron"])
def test_full_information(algorithm, loss, stream, masked):
    X, y, K = STREAMS[stream](800)
    learner = gaptron.Learner(algorithm, loss=loss, n_classes=K, seed=0)
    trace = learner.play(X, y)
    bound = learner.bound(X, y, trace if masked else None)
    assert trace.expected_mistakes <= bound.value + 1e-9
    assert bound.value == pytest.approx(bound.comparator.loss + bound.regret)
    assert np.linalg.norm(bound.U) == pytest.approx(bound.comparator.norm)


@pytest.mark.sample(4)
@pytest.mark.parametrize("masked", [False, True], ids=["plain", "with-trace"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("algorithm", ["gaptron", "frugal-gaptron"])
def test_full_information_against_an_adversary(algorithm, loss, masked):
    learner = gaptron.Learner(algorithm, loss=loss, n_classes=3, norm=1.0, seed=0)
    X, y, trace = adversarial_run(learner)
    assert trace.expected_mistakes >= 300 * 2 / 3 - 1e-9  # it is a real adversary
    assert trace.expected_mistakes <= learner.bound(X, y, trace if masked else None).value + 1e-9


@pytest.mark.parametrize("loss", LOSSES)
def test_full_information_for_any_rule_not_just_the_best(loss):
    X, y, K = noisy_stream(600)
    learner = gaptron.Learner("gaptron", loss=loss, n_classes=K, norm=1.0, seed=0)
    trace = learner.play(X, y)
    rng = np.random.default_rng(0)
    for size in (0.0, 0.5, 3.0, 10.0):
        for _ in range(10):
            U = rng.normal(size=(K, X.shape[1]))
            U *= size / np.linalg.norm(U)
            value, _ = compare.losses(Loss[loss.upper().replace("-", "_")], X @ U.T, y)
            here = Comparator(float(value.sum()), size, len(y))
            assert trace.expected_mistakes <= file.bound(learner.problem, learner.settings, here)


def test_the_mask_only_helps():
    X, y, K = separable_stream(1500)
    learner = gaptron.Learner("gaptron", loss="hinge", n_classes=K, seed=0)
    trace = learner.play(X, y)
    assert learner.bound(X, y, trace).value < learner.bound(X, y).value


def test_under_bandit_feedback_the_mask_may_not_help():
    """U must be fixed before the draws, and the mask is made of them."""
    X, y, K = separable_stream(1500)
    learner = gaptron.Learner(
        "gaptron", loss="hinge", feedback="bandit", n_classes=K, radius=2.0, horizon=1500, gamma=None, seed=0
    )
    trace = learner.play(X, y)
    assert learner.bound(X, y, trace).value == learner.bound(X, y).value


@pytest.mark.parametrize("update", ["worst", "uniform", "proportional"])
@pytest.mark.parametrize("stream", ["random", "separable", "noisy"])
def test_perceptron_on_every_path(stream, update):
    X, y, K = STREAMS[stream](1000)
    learner = gaptron.Learner("perceptron", n_classes=K, update=update)
    trace = learner.play(X, y)
    assert trace.mistakes <= learner.bound(X, y).value


@pytest.mark.parametrize("update", ["worst", "uniform", "proportional"])
def test_perceptron_against_an_adversary(update):
    learner = gaptron.Learner("perceptron", n_classes=3, norm=1.0, update=update)
    X, y, trace = adversarial_run(learner)
    assert trace.mistakes == 300
    assert trace.mistakes <= learner.bound(X, y).value


def mean_of_seeds(make, X, y, seeds=12):
    runs = [make(seed).play(X, y) for seed in range(seeds)]
    return float(np.mean([run.mistakes for run in runs])), float(np.mean([run.expected_mistakes for run in runs]))


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["separable", "noisy"])
@pytest.mark.parametrize("loss", LOSSES)
def test_gaptron_bandit_in_the_mean(loss, stream):
    T = 20_000
    X, y, K = STREAMS[stream](2000)
    X, y = np.tile(X, (10, 1)), np.tile(y, 10)

    def make(seed, D=8.0):
        return gaptron.Learner(
            "gaptron", loss=loss, feedback="bandit", n_classes=K, norm=1.0, radius=D, horizon=T, seed=seed
        )

    played, expected = mean_of_seeds(make, X, y)
    learner = make(0)
    learner.play(X, y)
    bound = learner.bound(X, y)
    assert bound.comparator.norm <= 8.0 * (1 + 1e-9)
    assert bound.value < T  # it says something
    assert played <= bound.value and expected <= bound.value


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["separable", "noisy"])
def test_gaptron_bandit_without_forced_exploration_in_the_mean(stream):
    X, y, K = STREAMS[stream](3000)

    def make(seed):
        return gaptron.Learner(
            "gaptron", loss="logistic", feedback="bandit", n_classes=K, norm=1.0, radius=0.3, horizon=3000, seed=seed
        )

    assert make(0).settings.gamma == 0.0
    played, expected = mean_of_seeds(make, X, y)
    learner = make(0)
    learner.play(X, y)
    assert max(played, expected) <= learner.bound(X, y).value


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["separable", "noisy"])
def test_banditron_in_the_mean(stream):
    X, y, K = STREAMS[stream](4000, seed=1)

    def make(seed):
        return gaptron.Learner("banditron", feedback="bandit", n_classes=K, norm=1.0, horizon=4000, seed=seed)

    played, _ = mean_of_seeds(make, X, y)
    learner = make(0)
    learner.play(X, y)
    assert played <= learner.bound(X, y).value


@pytest.mark.slow
def test_a_real_stream():
    folder = shared_data()
    sys.path.insert(0, str(folder))
    try:
        from load import load  # noqa: PLC0415
    finally:
        sys.path.remove(str(folder))
    assert "digits" in json.loads((folder / "META.json").read_text())
    X, y, _ = load("digits", shuffle=0)
    X = np.asarray(X, dtype=np.float64)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    for loss in LOSSES:
        learner = gaptron.Learner("gaptron", loss=loss, n_classes=10, seed=0)
        trace = learner.play(X, y)
        bound = learner.bound(X, y, trace)
        assert trace.expected_mistakes <= bound.value


# --- the comparator -----------------------------------------------------------------------------------------


def objective(loss, X, y, U, c):
    return float(compare.losses(loss, X @ U.T, y)[0].sum() + c * np.sum(U * U))


@pytest.mark.parametrize("loss", [Loss.LOGISTIC, Loss.SMOOTH_HINGE], ids=lambda loss: loss.word)
@pytest.mark.parametrize("stream", ["random", "separable", "noisy"])
def test_the_smooth_solutions_beat_their_neighbours(stream, loss):
    X, y, K = STREAMS[stream](200)
    c = 2.0
    best = compare.best(X, y, K, loss, lambda u: u.loss + c * u.norm**2)
    assert best.bound == pytest.approx(objective(loss, X, y, best.U, c))
    rng = np.random.default_rng(0)
    for size in (0.1, 0.3, 1.0, 3.0):
        for _ in range(50):
            step = rng.normal(size=best.U.shape)
            step *= size / np.linalg.norm(step)
            assert objective(loss, X, y, best.U + step, c) >= best.bound * (1 - 1e-4)


@pytest.mark.sample(3)
@pytest.mark.parametrize("stream", ["random", "separable", "noisy"])
@pytest.mark.parametrize("K", [2, 3, 5])
def test_the_hinge_solution_is_within_a_percent_of_a_long_descent(K, stream):
    X, y, K = STREAMS[stream](120, K=K, seed=4)
    c = 1.5
    ours = compare.best(X, y, K, Loss.HINGE, lambda u: u.loss + c * u.norm**2)
    U, mean = np.zeros((K, X.shape[1])), np.zeros((K, X.shape[1]))
    for t in range(1, 6001):
        _, C = compare.losses(Loss.HINGE, X @ U.T, y)
        U = U - (C.T @ X + 2 * c * U) / (c * (t + 10))
        mean += 2 / (t + 1) * (U - mean)
    assert ours.bound <= objective(Loss.HINGE, X, y, mean, c) * 1.01


def test_a_class_that_never_occurs_costs_the_hinge_little():
    """K = 4 with two labels unseen: the solver may not leave their rows at 0 if that is expensive."""
    X, y, _ = separable_stream(150, K=2, seed=2, margin=0.3)
    c, K = 0.5, 4
    ours = compare.best(X, y, K, Loss.HINGE, lambda u: u.loss + c * u.norm**2)
    U, mean = np.zeros((K, X.shape[1])), np.zeros((K, X.shape[1]))
    for t in range(1, 6001):
        _, C = compare.losses(Loss.HINGE, X @ U.T, y)
        U = U - (C.T @ X + 2 * c * U) / (c * (t + 10))
        mean += 2 / (t + 1) * (U - mean)
    assert ours.bound <= objective(Loss.HINGE, X, y, mean, c) * 1.01


@pytest.mark.sample(3)
@pytest.mark.parametrize("radius", [0.01, 0.5, 2.0])
@pytest.mark.parametrize("loss", list(Loss), ids=lambda loss: loss.word)
def test_the_radius_is_respected(loss, radius):
    X, y, K = separable_stream(200)

    def bound(u):
        return u.loss + 0.1 * u.norm**2 if u.norm <= radius * (1 + 1e-9) else math.inf

    best = compare.best(X, y, K, loss, bound, radius=radius)
    free = compare.best(X, y, K, loss, lambda u: u.loss + 0.1 * u.norm**2)
    assert np.linalg.norm(best.U) <= radius * (1 + 1e-9)
    assert free.comparator.norm > radius
    assert free.bound <= best.bound < 200 * max(1.0, math.log2(K))  # U = 0 costs that much
    assert best.comparator.norm > 0.7 * radius  # and the radius is used


def test_a_theorem_for_every_rule_is_evaluated_beyond_the_radius():
    """The Perceptron's holds for all U; Gaptron's under bandit feedback for those in the ball."""
    X, y, K = separable_stream(200)
    found = {}
    for algorithm, feedback in (("perceptron", Feedback.FULL), ("gaptron", Feedback.BANDIT)):
        for radius in (0.5, 1e9):
            problem = Problem(K, X.shape[1], feedback, Loss.HINGE, 1.0, radius, 200)
            settings = load(algorithm).recommend(problem)
            found[algorithm, radius] = bounds.tightest(load(algorithm), problem, settings, None, X, y, None)
    assert found["perceptron", 0.5].value == found["perceptron", 1e9].value
    assert found["perceptron", 0.5].comparator.norm > 0.5
    assert 0.0 < found["gaptron", 0.5].comparator.norm <= 0.5


BOUNDS = {
    "linear": lambda u: u.loss + 3 * u.norm**2,
    "root": lambda u: u.loss + 2 * u.norm**2 + u.norm * math.sqrt(2 * u.loss),
    "dear": lambda u: u.loss + 1e6 * u.norm**2,
    "cheap": lambda u: u.loss + 1e-6 * u.norm**2,
    "walled": lambda u: u.loss + u.norm**2 if u.norm <= 0.5 else math.inf,
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("shape", BOUNDS)
@pytest.mark.parametrize("loss", list(Loss), ids=lambda loss: loss.word)
def test_never_worse_than_no_rule_at_all(loss, shape):
    X, y, K = random_stream(150)
    best = compare.best(X, y, K, loss, BOUNDS[shape], radius=0.5 if shape == "walled" else math.inf)
    nothing = compare.losses(loss, np.zeros((150, K)), y)[0].sum()
    assert best.bound <= BOUNDS[shape](Comparator(float(nothing), 0.0, 150)) + 1e-9
    assert best.bound == pytest.approx(BOUNDS[shape](best.comparator))


def test_the_price_of_the_perceptrons_bound_is_found():
    """f = L + 2‖U‖² + ‖U‖√(2L) has no single price; scanning prices by hand must not do much better."""
    X, y, K = noisy_stream(300, seed=3)
    best = compare.best(X, y, K, Loss.HINGE, BOUNDS["root"])
    task = compare._Task(X, y, K, Loss.HINGE, 300)
    scan = min(task.evaluate(task.solve(c), BOUNDS["root"]).bound for c in np.geomspace(0.1, 100, 40))
    assert best.bound <= scan * 1.01


def test_excused_rounds_cost_nothing():
    X, y, K = random_stream(100)
    none = compare.best(X, y, K, Loss.HINGE, BOUNDS["linear"], excused=np.ones(100, dtype=bool))
    assert none.bound == pytest.approx(0.0, abs=1e-9) and none.comparator.rounds == 100
    some = compare.best(X, y, K, Loss.HINGE, BOUNDS["linear"], excused=np.arange(100) < 50)
    assert some.bound < compare.best(X, y, K, Loss.HINGE, BOUNDS["linear"]).bound


def test_one_label_only():
    X, _, K = random_stream(50)
    for loss in Loss:
        assert math.isfinite(compare.best(X, np.ones(50, dtype=int), K, loss, BOUNDS["linear"]).bound)


def test_nothing_to_compare_with():
    with pytest.raises(gaptron.InputError, match="no rounds"):
        compare.best(np.zeros((0, 3)), np.zeros(0, dtype=int), 3, Loss.HINGE, BOUNDS["linear"])
