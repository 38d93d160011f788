"""Facts of Beygelzimer et al. 2019 alone."""

import math

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import separable as file
from gaptron.errors import NoBoundError, SettingError
from gaptron.learner.seeds import generator
from gaptron.types import Comparator, Feedback, Loss, Problem
from tests.algorithms.laws import LAWS, Case
from tests.conftest import INTERPRETED, KINDS, random_stream


def problem(K=3, d=2, X=1.0):
    return Problem(K, d, Feedback.BANDIT, Loss.HINGE, X, None, None)


def learner(K=3, seed=0, **more):
    return gaptron.Learner("separable", n_classes=K, feedback="bandit", seed=seed, **more)


def textbook(X, y, K, u, kernel=None):
    """The paper's lines on lists of rows and signs, with any kernel; nothing is forgotten."""
    kernel = kernel or (lambda a, b: float(a @ b))
    kept = [[] for _ in range(K)]
    labels, kinds = [], set()
    for x, truth, propensity in zip(X, y, u):
        z = [sum(sign * kernel(row, x) for sign, row in kept[k]) for k in range(K)]
        S = [k for k in range(K) if z[k] >= 0]
        label = max(S, key=lambda k: (z[k], -k)) if S else int(propensity * K)
        labels.append(label)
        kinds.add((bool(S), label == truth))
        if label == truth:
            if z[label] < 0:
                kept[label].append((1.0, x))
            for k in S:
                if k != label:
                    kept[k].append((-1.0, x))
        elif z[label] >= 0:
            kept[label].append((-1.0, x))
    return labels, kept, kinds


def strongly(T, g, K=3, d=4, seed=0):
    """‖U‖ = 1, own coordinates: ⟨U_y, x⟩ ≥ g/2 and ⟨U_k, x⟩ ≤ -g/2, ‖x‖ ≤ 1."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, T)
    side = np.where(np.arange(K) == y[:, None], 1.0, -1.0) * (g / 2) * math.sqrt(K) * (1 + rng.random((T, K)) / 4)
    rest = rng.normal(size=(T, d))
    room = np.sqrt(1 - (side**2).sum(axis=1, keepdims=True))
    rest *= room * rng.random((T, 1)) / np.linalg.norm(rest, axis=1, keepdims=True)
    U = np.hstack([np.eye(K), np.zeros((K, d))]) / math.sqrt(K)
    return np.hstack([side, rest]), y, U


def test_six_rounds_by_hand():
    """Rows on a line, K = 2. What is drawn when both say no is read from the decision."""
    run = learner(2)
    W = [0.0, 0.0]
    steps = [
        # row, truth, label played, W after it
        (1.0, 1, 0, [-1.0, 0.0]),  # all zero: label 0, wrong
        (1.0, 1, 1, [-1.0, 0.0]),  # 1 at 0 counts as yes: right, nothing to mend
        (-2.0, 1, 0, [1.0, 0.0]),  # 0 says 2: wrong, minus (-2)
        (1.0, 0, 0, [1.0, -1.0]),  # right; 1 said yes too and pays
        (-1.0, 0, 1, [1.0, 0.0]),  # 1 says 1: wrong
        (-3.0, 1, 1, [1.0, 0.0]),  # 0 says -3, 1 says 0
        (-1.0, 0, 1, [1.0, 1.0]),  # 1 says 0: wrong
    ]
    for x, truth, label, after in steps:
        decision = run.decide([x])
        assert decision.label == label and decision.propensity == 1.0
        run.learn(decision, correct=label == truth)
        W = after
        np.testing.assert_array_equal(run.weights[:, 0], W)
    decision = run.decide([-1.0])  # both say no
    np.testing.assert_array_equal(decision.distribution, [0.5, 0.5])
    run.learn(decision, correct=False)
    np.testing.assert_array_equal(run.weights[:, 0], [1.0, 1.0])  # a wrong label with no positive score changes nothing
    decision = run.decide([-1.0])
    run.learn(decision, correct=True)
    W[decision.label] -= 1.0
    np.testing.assert_array_equal(run.weights[:, 0], W)


def test_a_whole_run_equals_the_textbook():
    X, y, K = random_stream(300, K=4, seed=8)
    run = learner(K, seed=5)
    trace = run.play(X, y)
    labels, kept, kinds = textbook(X, y, K, generator(5).random(300))
    np.testing.assert_array_equal(trace.codes, labels)
    W = [sum((sign * row for sign, row in rows), np.zeros(X.shape[1])) for rows in kept]
    np.testing.assert_allclose(run.weights, W, atol=1e-10)
    assert len(kinds) == 4


def test_the_kernel_run_equals_the_textbook_and_the_support_is_what_it_learned_from():
    X, y, K = random_stream(200, K=3, seed=2)
    X = X / np.linalg.norm(X, axis=1).max()
    run = learner(K, seed=6, kernel=True, norm=1.0)
    trace = run.play(X, y)
    labels, kept, kinds = textbook(X, y, K, generator(6).random(200), lambda a, b: 1 / (1 - a @ b / 2))
    np.testing.assert_array_equal(trace.codes, labels)
    assert len(kinds) == 4
    different = {row.tobytes() for rows in kept for _, row in rows}
    assert run._engine.state.size[0].rows == len(different)
    linear = [sum((sign * row / 2 for sign, row in rows), np.zeros(X.shape[1])) for rows in kept]
    np.testing.assert_allclose(run.weights, linear, atol=1e-10)
    scores = [[sum(s / (1 - row @ x / 2) for s, row in rows) for rows in kept] for x in X[:20]]
    np.testing.assert_allclose(run.scores(X[:20]), scores, atol=1e-9)


def test_rows_longer_than_one_are_divided_by_the_norm():
    X, y, K = random_stream(150, K=3, seed=4)
    longest = np.linalg.norm(X, axis=1).max()
    X *= 4 / longest
    one, two = learner(K, kernel=True, norm=4.0), learner(K, kernel=True, norm=1.0)
    np.testing.assert_array_equal(one.play(X, y).codes, two.play(X / 4, y).codes)
    np.testing.assert_allclose(one.scores(X), two.scores(X / 4), atol=1e-9)
    assert np.isfinite(one.scores(100 * X)).all()  # looking at a row longer than promised


def test_memory_is_bounded_by_the_support_and_a_full_buffer_replaces_at_random():
    X, y, K = random_stream(400, K=3, seed=3)
    X = X / np.linalg.norm(X, axis=1).max()
    run, other = learner(K, kernel=True, norm=1.0, support=20), learner(K, kernel=True, norm=1.0, support=20)
    first = run.play(X, y)
    np.testing.assert_array_equal(first.codes, other.play(X, y).codes)
    state = run._engine.state
    assert state.size[0].rows == 20 and state.S.shape == (20, X.shape[1]) and state.A.shape == (20, K)
    at = [int(np.flatnonzero((X == row).all(axis=1))[0]) for row in state.S]  # every row kept is one that was seen
    assert len(set(at)) == 20
    # The probability of being kept falls by 1/20 with each newer example: neither the first nor the last 20 are kept.
    assert min(at) < 370 and max(at) > 300 and np.std(at) > 10
    assert (np.abs(state.A).sum(axis=1) > 0).all() and set(np.unique(state.A)) <= {-1.0, 0.0, 1.0}


def test_every_slot_is_replaced_sooner_or_later():
    X, y, K = random_stream(600, K=3, seed=9)
    X = X / np.linalg.norm(X, axis=1).max()
    run = learner(K, kernel=True, norm=1.0, support=8)
    run.play(X[:100], y[:100])
    before = run._engine.state.S.copy()
    run.play(X[100:], y[100:])
    assert (run._engine.state.S != before).any(axis=1).all()


@pytest.mark.parametrize("g", [0.3, 0.5])
def test_strongly_separable_rows_cost_no_more_than_the_margin_bound(g):
    K, runs = 3, 20
    X, y, U = strongly(1500, g, K)
    Z = X @ U.T
    own = np.arange(len(y)), y
    assert np.linalg.norm(U) == pytest.approx(1.0)
    assert (Z[own] >= g / 2 - 1e-12).all() and ((Z <= -g / 2 + 1e-12).sum(axis=1) == K - 1).all()
    X1 = np.linalg.norm(X, axis=1).max()
    mistakes = [learner(K, seed=seed).play(X, y).mistakes for seed in range(runs)]
    assert 0 < np.mean(mistakes) <= file.margin_bound(K, X1, g)


def test_updates_on_every_path_are_no_more_than_the_perceptrons_bound():
    K, g = 4, 0.3
    X, y, _ = strongly(1200, g, K, seed=1)
    for seed in range(5):
        u = generator(seed).random(len(y))
        labels, kept, _ = textbook(X, y, K, u)
        np.testing.assert_array_equal(learner(K, seed=seed).play(X, y).codes, labels)
        assert 0 < sum(map(len, kept)) <= 4 * (np.linalg.norm(X, axis=1).max() / g) ** 2


def test_margin_bound_is_the_papers_number():
    assert file.margin_bound(3, 1.0, 0.5) == 2 * 16
    assert file.margin_bound(10, 2.0, 0.3) == 9 * math.floor(16 / 0.09)


def fan(T, seed):
    """In the plane, the middle label a cone between two others; rows of many lengths. A constant joins."""
    rng = np.random.default_rng(seed)
    rows, labels = [], []
    rules = np.array([[math.cos(a), math.sin(a)] for a in np.deg2rad([0.0, 60.0, -60.0])])
    while len(rows) < T:
        angle = math.radians(rng.uniform(-30, 30) if rng.random() < 0.7 else rng.uniform(-180, 180))
        x = np.array([math.cos(angle), math.sin(angle)])
        z = rules @ x
        if np.diff(np.sort(z))[-1] > 0.3:
            rows.append([*(x * rng.uniform(0.4, 1)), 1.0])
            labels.append(int(z.argmax()))
    return np.array(rows) / math.sqrt(2), np.array(labels)


@pytest.mark.skipif(INTERPRETED, reason="thousands of rounds")
def test_the_kernel_learns_a_cone_that_one_hyperplane_cannot_cut_out():
    X, y = fan(12_000, 0)
    assert np.bincount(y).min() > 1500
    bent, straight = learner(3, kernel=True, norm=1.0), learner(3)
    bent.play(X[:10_000], y[:10_000]), straight.play(X[:10_000], y[:10_000])
    late = [run.play(X[10_000:], y[10_000:]).mistakes / 2000 for run in (bent, straight)]
    assert late[0] < 0.015 and late[1] > 0.03
    assert bent._engine.state.size[0].rows < 1000  # there was a place for every row


def test_there_is_no_bound_from_a_comparator_and_the_reason_is_said():
    with pytest.raises(NoBoundError, match="margin_bound"):
        file.bound(problem(), file.recommend(problem()), Comparator(0.0, 3.0, 100))
    kernel = file.recommend(problem(), kernel=True)
    with pytest.raises(NoBoundError, match="exponential"):
        file.bound(problem(), kernel, Comparator(0.0, 3.0, 100))
    assert "weakly" in file.theorem(problem(), kernel)
    assert "strongly" in file.theorem(problem(), file.recommend(problem()))


@pytest.mark.parametrize("support", [0, -3, 1.5])
def test_impossible_supports_are_refused(support):
    with pytest.raises(SettingError, match="support"):
        learner(kernel=True, support=support)


def test_a_support_that_would_not_fit_is_refused_with_its_size():
    with pytest.raises(SettingError, match=r"1000 × 1000000 numbers, 8000 MB.*support="):
        file.recommend(problem(d=10**6), kernel=True)
    with pytest.raises(SettingError, match="smaller support"):
        file.init(file.recommend(problem(d=0), kernel=True), problem(d=10**6), True)
    assert file.recommend(problem(d=10**6)).kernel is False


def test_the_kernel_asks_for_the_norm():
    with pytest.raises(SettingError, match="norm"):
        file.recommend(problem(X=None), kernel=True)
    assert not file.recommend(problem(X=None)).kernel


# The laws see linear rules; of a kernel's rule `weights` is only the linear term.
NOT_FOR_KERNELS = {"looking_changes_nothing", "recommend_gives_settings_that_init_accepts"}


@pytest.mark.sample(16)
@pytest.mark.parametrize("rows", [KINDS["dense64"], KINDS["csr"]], ids=["dense64", "csr"])
@pytest.mark.parametrize("law", [law for name, law in LAWS.items() if name not in NOT_FOR_KERNELS])
def test_the_kernel_version_keeps_the_laws(law, rows):
    law(Case("separable", "hinge", "bandit", "", {"kernel": True, "support": 120}), rows)


def test_looking_changes_nothing_in_the_kernel_version_either():
    X, y, K = random_stream(120)
    quiet, looked = learner(K, kernel=True, norm=4.0, support=10), learner(K, kernel=True, norm=4.0, support=10)
    quiet.play(X[:80], y[:80]), looked.play(X[:80], y[:80])
    looked.predict(X), looked.distribution(X)
    np.testing.assert_array_equal(quiet.play(X[80:], y[80:]).codes, looked.play(X[80:], y[80:]).codes)
    for mine, theirs in zip(quiet._engine.state[:5], looked._engine.state[:5]):
        np.testing.assert_array_equal(mine, theirs)
