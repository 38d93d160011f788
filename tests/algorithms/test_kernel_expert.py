"""The kernel expert: its parts against a few lines of numpy, and what Advised Gaptron learns with it."""

import math
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

import gaptron
from gaptron.algorithms import advised
from gaptron.algorithms.advised import kernel, newton
from gaptron.kernels.prng import hashed
from gaptron.types import Feedback, Loss, Problem
from tests.algorithms.advised_player import Player
from tests.algorithms.advised_textbook import softmax
from tests.conftest import STREAMS, portrait

FEEDBACKS = ["full", "bandit"]
close = np.testing.assert_allclose


def rings(T, seed=0, d=2):
    """Is x² + y² below ½? Points near the circle are left out; no linear rule does better than the larger share."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(4 * T, d))
    radius = (X[:, :2] ** 2).sum(axis=1)
    X, radius = (part[np.abs(radius - 0.6) > 0.1] for part in (X, radius))
    return X[:T], (radius[:T] < 0.6).astype(int)


def learner(feedback="full", K=2, seed=0, **more):
    return gaptron.Learner("advised-gaptron", feedback=feedback, n_classes=K, seed=seed, kernel=True, **more)


def state_of(who):
    return who._engine.state


def problem(K, d, encoded=False):
    return Problem(K, d, Feedback.FULL, Loss.LOGISTIC, encoded=encoded)


# --- frequencies and features -----------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3, 40])
def test_a_third_of_the_frequencies_looks_at_two_columns_a_third_at_four_and_a_third_at_all(d):
    f = kernel.frequencies(d, False)
    assert f.sizes == [d] and f.shrink == [1.0]
    columns, near = f.columns.reshape(-1, 4), f.near.reshape(-1, 4)
    used = (near != 0).sum(axis=1)
    assert sorted(np.unique(used, return_counts=True)[1].tolist()) in ([43, 43], [86])
    assert set(used) == {min(d, 2), min(d, 4)} and f.far.shape == (42, d)
    assert all(len(set(row[:n])) == n for row, n in zip(columns, used))
    coefficients = np.concatenate([near[near != 0] * np.repeat(np.sqrt(used), used), (f.far * math.sqrt(d)).ravel()])
    assert abs(coefficients.mean()) < 0.3 and coefficients.std() == pytest.approx(1.5, rel=0.2)


def test_the_coefficient_of_a_column_does_not_depend_on_how_many_there_are():
    small, large = kernel.frequencies(5, False), kernel.frequencies(9, False)
    close(small.far * math.sqrt(5), large.far[:, :5] * math.sqrt(9), rtol=1e-6)
    same = (small.columns == large.columns).reshape(-1, 4).all(axis=1)
    assert 0 < same.sum() < 86  # a frequency that looks at the same columns has the same coefficients
    np.testing.assert_array_equal(small.near.reshape(-1, 4)[same], large.near.reshape(-1, 4)[same])


def test_encoded_examples_have_the_same_frequencies_however_many_columns_are_allocated():
    few, more = kernel.frequencies(64, True), kernel.frequencies(1024, True)
    assert few.sizes.tolist() == [16, 32, 64] and more.sizes.tolist() == [16, 32, 64, 128, 256, 512, 1024]
    np.testing.assert_array_equal(few.columns, more.columns[:3])
    np.testing.assert_array_equal(few.near, more.near[:3])
    np.testing.assert_array_equal(few.far, more.far[:, :64])
    for i, size in enumerate(few.sizes):
        fixed = kernel.frequencies(int(size), False)
        np.testing.assert_array_equal(few.near[i], fixed.near[0])
        assert few.columns[i].max() < size
        close(few.shrink[i] * few.far[:, :size], fixed.far, rtol=1e-6)
    rows = [kernel.row_of_frequencies(few.sizes, n) for n in (0, 1, 16, 17, 32, 33, 64, 65)]
    assert rows == [0, 0, 0, 1, 1, 2, 2, 2]
    assert kernel.frequencies(16, True).sizes.tolist() == [16]


def features(u):
    """φ of scaled ranks, by the library and by numpy."""
    work = kernel.new_scratch(problem(2, len(u)), False, True)
    f = kernel.frequencies(len(u), False)
    kernel.turn(f.columns[0], f.near[0], f.far, 1.0, u, work.angles)
    kernel.wave(work.angles, work.phi[:128], work.phi[128:])
    angles = [(f.near[0] * u[f.columns[0]]).reshape(-1, 4).sum(axis=1), f.far @ u]
    angles = np.concatenate(angles).astype(float)
    return work.phi, np.concatenate([np.cos(angles), np.sin(angles)]) / math.sqrt(128)


@pytest.mark.parametrize("d", [1, 3, 300])
def test_features_are_the_waves_of_the_ranks_and_have_length_one(d):
    rng = np.random.default_rng(d)
    for _ in range(20):
        phi, expected = features(rng.uniform(-1.8, 1.8, size=d).astype(np.float32))
        close(phi, expected, atol=2e-6)
        assert np.linalg.norm(phi.astype(float)) == pytest.approx(1.0, abs=1e-6)


def test_a_hash_is_uniform_and_its_neighbours_are_independent():
    h = np.array([[hashed(t, purpose) for purpose in (1, 2)] for t in range(4000)])
    assert 0 < h.min() and h.max() < 1
    for part in h.T:
        assert np.histogram(part, 10, (0, 1))[0].min() > 330
        assert abs(np.corrcoef(part[1:], part[:-1])[0, 1]) < 0.05
    assert abs(np.corrcoef(h.T)[0, 1]) < 0.05
    few = h[h[:, 0] < 0.05, 1]
    assert few.min() < 0.1 and few.max() > 0.9 and abs(few.mean() - 0.5) < 0.1


# --- ranks ------------------------------------------------------------------------------------------------------


def expected_rank(knots, v):
    a, b = (knots < v).sum(), (knots <= v).sum()
    if a < b:
        return (a + b) / 2
    return a - 0.5 + (v - knots[a - 1]) / (knots[a] - knots[a - 1]) if 0 < a < len(knots) else float(a)


@pytest.mark.parametrize("m", [0, 1, 2, 31, 32])
def test_a_rank_is_among_the_knots_in_use_and_ties_stand_in_the_middle(m):
    rng = np.random.default_rng(m)
    knots = np.full(32, kernel.UNUSED)
    knots[:m] = np.sort(rng.integers(-6, 6, m))
    for v in [*range(-7, 8), 0.5, 2.25, -1e300, 1e300]:
        u = kernel.scaled_rank(knots, m, float(v))
        close(u, math.sqrt(12) * ((expected_rank(knots[:m].astype(float), v) + 0.5) / (m + 1) - 0.5), atol=1e-5)
    if m == 0:
        assert kernel.scaled_rank(knots, 0, 3.0) == 0.0


def test_a_constant_column_has_rank_zero():
    knots = np.full(128, kernel.UNUSED)
    knots[:77] = 0.3
    assert kernel.scaled_rank(knots, 77, 0.3) == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("n", [32, 128])
def test_knots_stay_sorted_and_are_a_sample_of_the_past(n):
    rng = np.random.default_rng(0)
    knots, x = np.full((2, n), kernel.UNUSED), np.zeros(2)
    for t in range(6000):
        x[:] = rng.normal(), t
        kernel.add_knots(knots, x, float(t))
        m = min(t + 1, n)
        if t % 97 == 0 or t < 5:
            assert (
                (np.diff(knots) >= 0).all() and (knots[:, :m] < 1e300).all() and (knots[:, m:] == kernel.UNUSED).all()
            )
    close(np.median(knots[0]), 0.0, atol=0.6)
    assert 0.4 * 6000 < knots[1].mean() < 0.75 * 6000  # about the last 4096


def test_the_ranks_and_all_that_follows_ignore_increasing_maps_of_columns_with_ties():
    """Once every value ties with a knot; between knots ranks are interpolated."""
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 4, size=(200, 3)).astype(float), rng.integers(0, 2, 200)
    one, two = (Player("full", 2, 3, kernel=True) for _ in range(2))
    for t, (x, k) in enumerate(zip(X, y)):
        phis = []
        for who, row in ((one, x), (two, np.exp(x) - 5)):
            who.decide(row)
            phis.append(who.work.kernel.phi.copy())
            who.learn(row, 0, truth=int(k))
        if t > 30:
            np.testing.assert_array_equal(*phis)


# --- a step -----------------------------------------------------------------------------------------------------


class Tables(NamedTuple):
    """The tables of the expert, as a state has them."""

    U: np.ndarray
    V: np.ndarray
    B: np.ndarray
    R: np.ndarray
    knots: np.ndarray


def test_a_step_against_solving_with_both_precisions():
    rng, K, d = np.random.default_rng(0), 3, 5
    state = Tables(*kernel.tables(problem(K, d), False, True))
    work, steps = kernel.new_scratch(problem(K, d), False, True), newton.new_workspace(K, d, False)
    G, labels = np.ones(K), np.array([0, 2])
    U, V, A, C, sums = np.zeros((K, d)), np.zeros((K, 256)), np.eye(d) / 16, np.eye(256) / 16, np.ones(K)
    for _ in range(30):
        x, r, h, scale = rng.normal(size=d), rng.normal(size=2), rng.random(), 0.5
        phi = rng.normal(size=256)
        work.phi[:] = phi / np.linalg.norm(phi)
        phi = work.phi.astype(float)
        kernel.kernel_step(state, x, scale, G, labels, r.copy(), h, steps, work)
        gx, gphi = np.linalg.solve(A, scale * x), np.linalg.solve(C, phi)
        sums[labels] += np.abs(r)
        r = r * np.clip(np.sqrt(sums.sum() / (K * sums[labels])), 0.25, 4)
        v = scale * x @ gx + phi @ gphi
        U[labels] -= np.outer(r, gx) / (1 + h * v)
        V[labels] -= np.outer(r, gphi) / (1 + h * v)
        A, C = A + h * scale**2 * np.outer(x, x), C + h * np.outer(phi, phi)
    close(state.U, U, rtol=1e-4, atol=1e-4)
    close(state.V, V, rtol=1e-3, atol=1e-4)
    close(state.R, np.linalg.inv(C), atol=1e-4)
    np.testing.assert_array_equal(state.R, state.R.T)
    close(G, sums)


def test_an_invalid_matrix_is_reset():
    rng = np.random.default_rng(0)
    phi = rng.normal(size=256).astype(np.float32)
    phi /= np.linalg.norm(phi)
    for bad in (-1.0, math.nan, math.inf):
        R, g = kernel.tables(problem(2, 1), False, True)[3], np.zeros(256, dtype=np.float32)
        R[3, 3] = bad * 1e6
        with np.errstate(invalid="ignore", over="ignore"):
            own = kernel.precondition_features(R, phi, g)
        assert own == pytest.approx(16.0, rel=1e-5)
        np.testing.assert_array_equal(R, 16 * np.eye(256))


# --- encoded examples -------------------------------------------------------------------------------------------


def offers(T, seed=0):
    """Is an offer cheap for its weight? Prices by weight and quality, and a word that comes late."""
    rng = np.random.default_rng(seed)
    weight, quality = np.exp(rng.normal(size=T) * 0.7), rng.integers(4, size=T)
    fair = 3.0 * np.log(weight) + 0.5 * quality
    price = fair + rng.normal(size=T)
    rows = [
        {"price": float(np.exp(p)), "weight": float(w), "quality": "ABCD"[q], "shop": f"s{min(t // 40, 25)}"}
        for t, (p, w, q) in enumerate(zip(price, weight, quality))
    ]
    return rows, (price < fair).astype(int)


@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_encoded_examples_have_it_and_learn_rules_that_are_not_linear(feedback):
    rows, y = offers(3000)
    who, linear = (
        gaptron.Learner(n_classes=2, features="auto", feedback=feedback, seed=0, **given)
        for given in ({}, {"kernel": False})
    )
    for t, (row, k) in enumerate(zip(rows, y)):
        row["ring"] = float(np.cos(t)) * (0.3 if k else 1.0) * (1 if t % 2 else -1)  # near 0 or far from it
    assert who.play(rows, y).wrong[1000:].mean() < 0.75 * linear.play(rows, y).wrong[1000:].mean()
    assert "kernel" in who.advice.weights and "kernel" not in linear.advice.weights


@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_encoded_examples_at_once_are_one_by_one_though_columns_double_within_a_chunk(feedback, tmp_path):
    rows, y = offers(1100)
    whole, single = (gaptron.Learner(n_classes=2, features="auto", feedback=feedback, seed=0) for _ in range(2))
    whole.play(rows, y)
    restarts = []
    for t, row in enumerate(rows):
        if t in (30, 700):
            single.save(tmp_path / "model")
            single = gaptron.Learner.load(tmp_path / "model")
        decision = single.decide(row)
        told = {"label": int(y[t])} if feedback == "full" else {"correct": bool(decision.label == y[t])}
        had = t and state_of(single).V.any()
        single.learn(decision, **told)
        if had and not state_of(single).V.any():
            restarts.append(t)
    assert portrait(single) == portrait(whole)
    assert single.problem.n_features == 64 and state_of(single).total[0].columns > 32
    assert len(restarts) == 0 or max(restarts) > 100


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_sparse_and_wide_examples_are_as_without_it(feedback, wide):
    """To the bit: sparse matrices, and dense examples of more than 1024 columns."""
    X, y = rings(200, d=5)
    X = np.pad(X, ((0, 0), (0, 1020))) if wide else sp.csr_matrix(X)
    one, two = (gaptron.Learner(n_classes=2, feedback=feedback, seed=0, kernel=wanted) for wanted in (True, False))
    traces = [who.play(X, y) for who in (one, two)]
    assert not len(state_of(one).V)
    np.testing.assert_array_equal(*(trace.codes for trace in traces))
    np.testing.assert_array_equal(*(trace.notes for trace in traces))
    for name, part in state_of(one)._asdict().items():
        np.testing.assert_array_equal(part, getattr(state_of(two), name), err_msg=name)


# --- in the ensemble --------------------------------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_rings_are_learned_where_every_linear_rule_is_at_chance(feedback):
    X, y = rings(6000)
    who, linear = learner(feedback), gaptron.Learner(n_classes=2, feedback=feedback, seed=0, kernel=False)
    trace, other = who.play(X, y), linear.play(X, y)
    assert trace.wrong[3000:].mean() < 0.05
    assert other.wrong[3000:].mean() > 0.3
    assert who.advice.weights["kernel"] > max(v for name, v in who.advice.weights.items() if name != "kernel")
    assert who.advice.regret["newton"] < -1000 < who.advice.regret["kernel"]


def test_it_is_the_default_and_can_be_left_out():
    X, y = rings(50)
    for feedback, given, present in [
        ("full", {}, True),
        ("full", {"kernel": False}, False),
        ("bandit", {}, True),
        ("bandit", {"kernel": False}, False),
    ]:
        who = gaptron.Learner(n_classes=2, feedback=feedback, seed=0, **given)
        who.play(X, y)
        assert ("kernel" in who.advice.weights) == present
        assert (len(state_of(who).V) > 0) == present
    with pytest.raises(gaptron.errors.SettingError, match=r"kernel=1\.0 must be True or False"):
        gaptron.Learner(n_classes=2, kernel=1.0)


@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_wide_and_sparse_examples_have_no_kernel_expert(feedback):
    for d, sparse, knots in [(256, False, 128), (257, False, 32), (1024, False, 32), (1025, False, 0), (3, True, 0)]:
        state = Player(feedback, 2, d, sparse=sparse, kernel=True).state
        assert state.knots.shape == ((d, knots) if knots else (0, 128))
        assert len(state.V) == (2 if knots else 0) and len(state.R) == (256 if knots else 0)


class Textbook:
    """The expert with full information in a few lines of numpy, in double precision, with inverses by solving."""

    def __init__(self, K, d):
        self.K, self.rounds, self.knots = K, 0, np.zeros((d, 0))
        self.U, self.V, self.sums = np.zeros((K, d)), np.zeros((K, 256)), np.ones(K)
        self.A, self.C, self.f = np.eye(d) / 16, np.eye(256) / 16, kernel.frequencies(d, False)

    def scores(self, x, scale):
        m = self.knots.shape[1]
        rho = np.array([expected_rank(own, v) for own, v in zip(self.knots, x)])
        u = math.sqrt(12) * ((rho + 0.5) / (m + 1) - 0.5)
        near = (self.f.near[0] * u[self.f.columns[0]]).reshape(-1, 4).sum(axis=1)
        angles = np.concatenate([near, self.f.far @ u])
        self.x, self.phi = scale * x, np.concatenate([np.cos(angles), np.sin(angles)]) / math.sqrt(128)
        return self.U @ self.x + self.V @ self.phi

    def learn(self, x, y):
        f = softmax(self.U @ self.x + self.V @ self.phi)
        if self.rounds < 128:
            self.knots = np.sort(np.column_stack([self.knots, x]))
        elif hashed(self.rounds, kernel.SEED) < 128 / min(self.rounds + 1, 4096):
            leaving = int(128 * hashed(self.rounds, kernel.SEED + 1))
            self.knots = np.sort(np.column_stack([np.delete(self.knots, leaving, axis=1), x]))
        self.rounds += 1
        if 1 - f[y] < 0.1:
            return
        r, h = f - np.eye(self.K)[y], 2 / self.K * (1 - f[y])
        self.sums += np.abs(r)
        r = r * np.clip(np.sqrt(self.sums.sum() / (self.K * self.sums)), 0.25, 4)
        gx, gphi = np.linalg.solve(self.A, self.x), np.linalg.solve(self.C, self.phi)
        v = self.x @ gx + self.phi @ gphi
        self.U, self.V = self.U - np.outer(r, gx) / (1 + h * v), self.V - np.outer(r, gphi) / (1 + h * v)
        self.A, self.C = self.A + h * np.outer(self.x, self.x), self.C + h * np.outer(self.phi, self.phi)


def test_in_the_ensemble_it_scores_as_the_textbook():
    X, y = rings(200, d=3)
    y = y + (X[:, 2] > 0.5)  # three labels
    who, book = Player("full", 3, 3, kernel=True), Textbook(3, 3)
    for t, (x, k) in enumerate(zip(X, y)):
        label, _ = who.decide(x)
        expected = book.scores(x, who.now.scale)
        close(who.work.kernel.z, expected, rtol=2e-3, atol=2e-3, err_msg=f"round {t}")
        book.learn(x, int(k))
        who.learn(x, label, truth=int(k))
    assert book.rounds == 200 and np.abs(book.V).max() > 0.5


@pytest.mark.sample(2)
@pytest.mark.parametrize("adviser", ["none", "opposite", "right"])
@pytest.mark.parametrize("name", STREAMS)
def test_the_certificate_holds_on_every_stream(name, adviser):
    """Σ(1 - q) ≤ L_T(U) + C_T(U) for every U: the best one, and others; the caller may help or mislead."""
    s = STREAMS[name](400)
    advice = {"none": None, "right": s.y, "opposite": (s.y + 1) % s.K}[adviser]
    who = learner(K=s.K)
    trace = who.play(s.X, s.y, advice=advice)
    best = who.bound(s.X, s.y)
    assert trace.expected_mistakes <= best.value
    rng = np.random.default_rng(0)
    for size in (0.0, 0.5, 2.0, 8.0):
        U = best.U + size * rng.normal(size=best.U.shape)
        z = s.X @ U.T
        z -= z.max(axis=1, keepdims=True)
        loss = (np.log2(np.exp(z).sum(axis=1)) - z[np.arange(len(s.y)), s.y] / math.log(2)).sum()
        assert trace.expected_mistakes <= loss + who.certificate.cost(np.linalg.norm(U)) + 1e-9


@pytest.mark.slow
def test_with_a_delay_the_bandit_certificate_holds_on_average():
    """Twenty runs: mean mistakes within L_T(U) + C_T(U) of the rule that made the labels."""
    rng, T, U = np.random.default_rng(0), 300, 2.0 * np.array([[1.0, 0.0], [-1.0, 0.0]])
    X = rng.normal(size=(T, 2))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X[:, 0] < 0).astype(int)
    loss, over = np.log2(1 + np.exp(-4.0 * np.abs(X[:, 0]))).sum(), []
    for seed in range(20):
        who, waiting, mistakes = learner("bandit", seed=seed, delay=5, norm=1.0), [], 0
        for x, k in zip(X, y):
            waiting.append((who.decide(x), int(k)))
            mistakes += waiting[-1][0].label != k
            if len(waiting) > 5:
                decision, truth = waiting.pop(0)
                who.learn(decision, correct=bool(decision.label == truth))
        over.append(mistakes - loss - who.certificate.cost(np.linalg.norm(U)))
    assert np.mean(over) < 0.0


@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_the_guard_binds_with_it_too(feedback):
    """A caller that is always right, and a kernel expert turned round: at most 5 mistakes."""
    X, y = rings(600)
    who, wrong = learner(feedback, guard=5.0), 0
    for start in range(0, 600, 50):
        part = slice(start, start + 50)
        wrong += who.play(X[part], y[part], advice=y[part]).mistakes
        state_of(who).V[:] *= -1.0
    assert wrong <= 5


def test_its_memory_is_constant():
    X, y = rings(4000)
    who, sizes = learner(), []
    for part in (slice(0, 100), slice(100, 4000)):
        who.play(X[part], y[part])
        sizes.append({name: value.nbytes for name, value in state_of(who)._asdict().items()})
    assert sizes[0] == sizes[1]
    assert sum(sizes[0][name] for name in kernel.TABLES) == 4 * 256 * (2 + 256) + 8 * (2 * 2 + 16 * 16 + 2 * 128)


def test_a_hostile_kernel_expert_does_not_break_the_certificate():
    """Its weights are turned round after every 100 rounds: Σ(1 - q) ≤ L_T(U) + C_T(U) for every U all the same."""
    rng, T, w = np.random.default_rng(0), 1500, np.array([3.0, -4.0])
    X = rng.normal(size=(T, 2))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X @ w > 0).astype(int)
    who, expected = learner(norm=1.0), 0.0
    for start in range(0, T, 100):
        part = slice(start, start + 100)
        expected += who.play(X[part], y[part]).expected_mistakes
        state_of(who).U[:] *= -1.0
        state_of(who).V[:] *= -1.0
    assert who.certificate.level == 0.0
    for size in (0.0, 0.5, 1.0, 2.0, 4.0):
        margins = size * (X @ w) * np.where(y == 1, 1.0, -1.0)
        assert expected <= np.log2(1 + np.exp(-2 * margins)).sum() + who.certificate.cost(size * 5 * math.sqrt(2))
    assert expected < 0.2 * T


@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_playing_at_once_is_one_by_one_and_saved_in_the_middle(feedback, tmp_path):
    X, y = rings(300, d=5)
    whole, single = learner(feedback), learner(feedback)
    whole.play(X, y)
    for t in range(300):
        if t == 150:
            single.save(tmp_path / "model")
            single = gaptron.Learner.load(tmp_path / "model")
        before = portrait(single)
        single.scores(X[t : t + 1]), single.predict(X[:3])
        assert portrait(single) == before  # looking changes nothing, knots included
        decision = single.decide(X[t])
        told = {"label": int(y[t])} if feedback == "full" else {"correct": bool(decision.label == y[t])}
        single.learn(decision, **told)
    assert portrait(single) == portrait(whole)


@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_late_and_fractional_feedback_and_available_labels_leave_a_sound_state(feedback):
    X, y = rings(400, d=3)
    who, rng, waiting = learner(feedback, K=3), np.random.default_rng(0), []
    for t, x in enumerate(X):
        available = np.array([True, True, bool(rng.integers(2))])
        waiting.append((who.decide(x, available=available), int(y[t])))
        if len(waiting) > 20:
            decision, truth = waiting.pop(int(rng.integers(20)))
            given = {"label": truth} if feedback == "full" else {"reward": float(rng.random())}
            who.learn(decision, **given)
    state = state_of(who)
    assert all(np.isfinite(part).all() for part in (state.U, state.V, state.B, state.R, state.knots))
    assert (np.linalg.eigvalsh(state.R.astype(float)) > 0).all()


@pytest.mark.sample(1)
@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_growing_keeps_what_the_kernel_expert_knows(feedback):
    X, y = rings(600)
    who = gaptron.Learner("advised-gaptron", classes=["in", "out"], feedback=feedback, seed=0, kernel=True)
    who.play(X, np.array(["out", "in"])[y])
    old = state_of(who)
    who.grow(classes=["new", "in", "out"])
    state = state_of(who)
    np.testing.assert_array_equal(state.V[1:], old.V)
    np.testing.assert_array_equal(state.U[1:], old.U)
    np.testing.assert_array_equal(state.R, old.R)
    np.testing.assert_array_equal(state.knots, old.knots)
    assert not state.V[0].any()
    who.grow(n_features=300)
    more = state_of(who)
    assert more.knots.shape == (300, 32) and (more.knots[2:] == 0.0).all() and (np.diff(more.knots) >= 0).all()
    np.testing.assert_array_equal(more.U[:, :2], state.U)
    assert not more.V.any()
    np.testing.assert_array_equal(more.R, 16 * np.eye(256))
    weights = who.advice.weights
    who.grow(n_features=1030)
    assert len(state_of(who).V) == 0 and "kernel" not in who.advice.weights
    if feedback == "full":
        assert who.advice.weights == {name: weights[name] for name in who.advice.weights}
    who.play(np.pad(X, ((0, 0), (0, 1028)))[:50], np.array(["out", "in"])[y[:50]])
    assert np.isfinite(who.scores(np.zeros((1, 1030)))).all()


def test_forged_knots_are_refused():
    who = Player("full", 2, 2, kernel=True)
    advised.check_state(who.settings, who.problem, who.state)
    who.state.knots[1, 5] = 0.0
    with pytest.raises(ValueError, match="knots"):
        advised.check_state(who.settings, who.problem, who.state)
    who.state.knots[1, 5] = kernel.UNUSED
    for name, value in [("rounds", -1.0), ("columns", -1.0), ("columns", 3.0), ("columns", 0.5)]:
        before, who.total[name] = who.total[name], value
        with pytest.raises(ValueError, match=name):
            advised.check_state(who.settings, who.problem, who.state)
        who.total[name] = before


@pytest.mark.parametrize("kind", ["constant", "collinear", "heavy", "huge", "alternating"])
@pytest.mark.filterwarnings("ignore::gaptron.errors.OutlierWarning")
def test_hard_streams_leave_a_positive_matrix(kind):
    rng, T = np.random.default_rng(0), 4000
    X = np.ones((T, 3))
    if kind == "collinear":
        X *= rng.normal(size=(T, 1))
    if kind == "heavy":
        X = rng.standard_cauchy((T, 3)) ** 3
    if kind == "huge":
        X = 10.0 ** rng.uniform(-59, 59, size=(T, 3))
    if kind == "alternating":
        X[::2] *= -1.0
    y = rng.integers(0, 2, T)  # nothing to be learned, so that every round is learned from
    who = learner()
    with np.errstate(over="ignore"):
        trace = who.play(X, y)
    state = state_of(who)
    assert np.isfinite(trace.notes).all()
    assert all(np.isfinite(part).all() for part in (state.U, state.V, state.B, state.R, state.knots))
    np.testing.assert_array_equal(state.R, state.R.T)
    values = np.linalg.eigvalsh(state.R.astype(float))
    assert values[0] > -1e-5 and values[-1] < 16.01
