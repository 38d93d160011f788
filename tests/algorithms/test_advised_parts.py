"""The parts of Advised Gaptron's ensemble of experts, each against a few lines of numpy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gaptron.algorithms.advised import bandit, experts, newton
from gaptron.types import SparseRow, named
from tests.algorithms.advised_textbook import Newton

some = settings(max_examples=60, deadline=None, derandomize=True)
close = np.testing.assert_allclose


@st.composite
def sets(draw):
    """Labels available, and a generator."""
    K = draw(st.integers(2, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    available = rng.random(K) < draw(st.sampled_from([0.3, 0.8, 1.0]))
    available[rng.integers(K)] = True
    return available, rng


# --- experts --------------------------------------------------------------------------------------------------


@some
@given(sets(), st.sampled_from([0.0, 1e-300, 1.0, 1e300]))
def test_the_callers_experts_are_over_the_available_labels(case, size):
    available, rng = case
    K, A = len(available), np.flatnonzero(available)
    labels = np.zeros(K, dtype=np.int64)
    n = experts.list_available(available, labels)
    np.testing.assert_array_equal(labels[:n], A)
    for k in range(K):
        place = experts.position_of(k, labels[:n])
        assert place == (int(np.flatnonzero(A == k)[0]) if available[k] else -1)
    said = rng.dirichlet(np.full(K, 0.3))
    room = np.full((6, n), np.nan)
    n_experts = experts.add_caller_experts(said * size, labels[:n], room, 2)
    assert np.isnan(room[:2]).all()
    if not (said * size)[A].sum() > 0:  # all its weight is on labels that are not available
        assert n_experts == 2 and np.isnan(room).all()
        return
    assert n_experts == 6
    f = said[A] / said[A].sum()
    close(room[2:], [(1 - m) * f + m / n for m in (0, 0.2, 0.5, 0.8)], rtol=1e-7, atol=1e-12)
    assert experts.add_caller_experts(np.zeros(0), labels[:n], room, 2) == 2  # an algorithm without a buffer for advice


@some
@given(st.integers(0, 2**32 - 1), st.sampled_from([5.0, 10.0]))
def test_centre(seed, reach):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=7) * 10.0 ** rng.uniform(-3, 5)
    wanted = np.maximum(a, a.max() - reach)
    experts.clip_and_centre(a, reach, 0.5)
    close(a, 0.5 * (wanted - wanted.mean()), atol=1e-9)


@some
@given(st.integers(0, 2**32 - 1))
def test_the_ensemble_is_nearly_as_good_as_the_best_expert(seed):
    """-Σ ln Σ ω_j φ_j ≤ min_j -Σ ln φ_j + ln n + 0.0101 a round: Bayes with a share; absent experts keep theirs."""
    rng = np.random.default_rng(seed)
    n, K, T = 5, 4, 60
    omega, mixed, each = np.full(8, 1 / n), 0.0, np.zeros(n)
    best_one = rng.integers(n)
    for _ in range(T):
        F = rng.dirichlet(np.full(K, 0.4), size=n)
        truth, label = rng.choice(K, p=F[best_one]), int(rng.integers(K))
        phi = np.clip(F[:, label], 1e-3, 1 - 1e-3)
        seen = phi if label == truth else 1 - phi
        mixed -= math.log(omega[:n] @ seen / omega[:n].sum())
        each -= np.log(seen)
        bandit.update_weights(omega, F, n, label, float(label == truth))
    assert mixed <= each.min() + math.log(n) + 0.0101 * T
    assert omega[:n].sum() == pytest.approx(1.0) and (omega[n:] == 1 / n).all()


def test_a_guard_forces_where_one_more_disagreement_could_break_it():
    t, now = named(caller_regret=3.0, caller_pending=2.0, caller_mistakes=10.0)[0], named(caller=0)[0]
    assert not experts.guard_binds(5.0, t, now) and experts.guard_binds(4.9, t, now)
    assert not experts.guard_binds(math.inf, t, now)
    assert not experts.guard_binds(0.0, t, named(caller=-1)[0])  # without advice there is nobody to follow


def test_a_number_may_not_be_named_like_a_method_of_its_record():
    """Compiled code would read the number, interpreted code the method."""
    with pytest.raises(ValueError, match="sum"):
        named(square=0.0, sum=0.0)


# --- newton ---------------------------------------------------------------------------------------------------


def rows_of(x):
    here = np.flatnonzero(x)
    return SparseRow(here.astype(np.int32), x[here])


@pytest.mark.sample(2)
@pytest.mark.parametrize("d, most", [(5, math.inf), (40, math.inf), (1030, 0.5)])
def test_a_newton_step_against_solving_with_the_precision(d, most):
    """Rows with blocks of zeros; dense and sparse alike; blocks that a row does not touch stay to the bit.

    In some rounds the variance was measured before, which changes nothing.
    """
    rng = np.random.default_rng(d)
    K, first, T = 3, 3, 40
    labels = np.array([0, 2])
    blocks = d <= 1024
    book = Newton(K, d, blocks, most)
    dense, sparse = np.zeros((2 * K, d)), np.zeros((d, 2 * K))
    state = {
        s: (newton.new_blocks(d), newton.new_diagonal(d), np.ones(K), newton.new_workspace(K, d, s)) for s in (0, 1)
    }
    for t in range(T):
        x = rng.normal(size=d) * (rng.random(d) < 0.5)
        x[16:32] *= t % 3 == 0
        r, h, scale, power = rng.normal(size=2), rng.random(), 2.0, (0.5, 0.8, 1.0)[t % 3]
        before = state[0][0].copy()
        for s, W, row in ((0, dense, x), (1, sparse, rows_of(x))):
            P, A, G, workspace = state[s]
            v = newton.NOT_MEASURED
            if t % 2:
                P_before, A_before = P.copy(), A.copy()
                v = newton.measure_variance(P, A, row, scale, workspace)
                close(v, scale * x @ book.preconditioned(scale * x), rtol=1e-9)
                np.testing.assert_array_equal(P, P_before)
                np.testing.assert_array_equal(A, A_before)
            newton.newton_step(W, first, row, scale, P, A, most, G, labels, r.copy(), power, h, v, workspace)
        book.step(scale * x, labels, r, h, power)
        for q in range(len(before)):
            if not x[16 * q : 16 * q + 16].any():
                np.testing.assert_array_equal(state[0][0][q], before[q])
    close(dense[first:], book.W, rtol=1e-7, atol=1e-9)
    close(sparse.T[first:], book.W, rtol=1e-7, atol=1e-9)
    assert not dense[:first].any() and not sparse[:, :first].any()
    for s in (0, 1):
        P, A, G, _ = state[s]
        close(G, book.G, rtol=1e-12)
        if blocks:
            assert len(P) == math.ceil(d / 16)
            for i, mine, theirs in zip(book.parts, P, book.precision):
                close(mine[: len(i), : len(i)] @ theirs, np.eye(len(i)), atol=1e-7)
                np.testing.assert_array_equal(mine, mine.T)
                np.testing.assert_array_equal(mine[len(i) :, len(i) :], 16 * np.eye(16 - len(i)))  # padding
        else:
            close(A, book.precision[0], rtol=1e-9)
            assert A.max() == most


@pytest.mark.parametrize("measured", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_an_invalid_block_is_reset(sparse, measured):
    """Rounding may leave a block that is not positive, or not a number. The step resets it, a measurement does not."""
    rng = np.random.default_rng(0)
    for spoiled in (-np.eye(16), np.full((16, 16), math.nan), np.full((16, 16), math.inf)):
        P, workspace = newton.new_blocks(20), newton.new_workspace(3, 20, sparse)
        P[0], keeps = spoiled, P[1].copy()
        table, x = np.zeros((20, 3) if sparse else (3, 20)), rng.normal(size=20)
        x[5], x[16:] = 0.0, 0.0
        row, r = rows_of(x) if sparse else x, np.array([1.0, -1.0, 0.0])
        state, v = (P, np.zeros(0), math.inf, np.ones(3)), newton.NOT_MEASURED
        with np.errstate(invalid="ignore"):
            if measured:
                v = newton.measure_variance(P, np.zeros(0), row, 1.0, workspace)
                assert v == pytest.approx(16 * (x @ x), rel=1e-14)
                np.testing.assert_array_equal(P[0], spoiled)
            newton.newton_step(table, 0, row, 1.0, *state, np.arange(3), r, 0.5, 0.5, v, workspace)
        W = table.T if sparse else table
        v = 16 * (x @ x)
        close(P[0], 16 * np.eye(16) - 0.5 * 256 * np.outer(x[:16], x[:16]) / (1 + 0.5 * v), rtol=1e-12, atol=1e-12)
        close(W[0] + W[1], 0.0, atol=1e-12)
        close(W[1], math.sqrt(5 / 6) * 16 * x / (1 + 0.5 * v), rtol=1e-12)  # G = 2, 2, 1
        np.testing.assert_array_equal(P[1], keeps)


def test_a_block_is_reset_in_all_its_entries():
    P = np.arange(256.0).reshape(16, 16)
    newton.reset_block(P)
    np.testing.assert_array_equal(P, 16 * np.eye(16))


@pytest.mark.parametrize("sparse", [False, True])
def test_the_product_with_a_block_that_is_reset_is_that_with_the_new_one(sparse):
    """The sparse example has entries in some columns only: the product is zero in the others."""
    x = np.zeros(20)
    x[[1, 4, 17]] = [2.0, -1.0, 0.5]
    P, workspace = newton.new_blocks(20), newton.new_workspace(3, 20, sparse)
    P[0] = -1.0 - np.eye(16)
    v = newton.precondition(P, rows_of(x) if sparse else x, 3.0, workspace)
    assert v == pytest.approx(16 * 9 * (x @ x))
    np.testing.assert_array_equal(workspace.g[:20], 16 * 3.0 * x)
    np.testing.assert_array_equal(P[0], -1.0 - np.eye(16))
    newton.update_precision(P, workspace, 0.0)
    np.testing.assert_array_equal(P[0], 16 * np.eye(16))


@pytest.mark.parametrize("power", [0.5, 0.75, 1.0])
def test_a_label_that_was_met_often_takes_smaller_steps(power):
    """r_k times (ΣG/(K·G_k))^power, between ¼ and 4."""
    workspace, G = newton.new_workspace(3, 1, False), np.array([1.0, 100.0, 1e6])
    W, P, r = np.zeros((3, 1)), newton.new_blocks(1), np.ones(3)
    rest = np.arange(3), r, power, 0.0, newton.NOT_MEASURED, workspace
    newton.newton_step(W, 0, np.ones(1), 1.0, P, np.zeros(0), math.inf, G, *rest)
    close(G, [2.0, 101.0, 1e6 + 1])
    last = max(((1e6 + 104) / (3 * (1e6 + 1))) ** power, 0.25)
    close(W[:, 0], -16 * np.array([4.0, 4.0, last]), rtol=1e-12)


# --- late feedback --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("i", range(3))
def test_the_moment_of_late_feedback_is_that_of_a_hit_or_of_a_miss(i):
    """The gradient in v is μ - a_i after a hit and μ after a miss. Here the hit is larger for the last label only."""
    p, a = np.array([0.5, 0.3, 0.2]), np.array([3.0, 3.0, -1.0])
    mu = 2.2
    hit, miss = np.sum((p - np.eye(3)[i]) ** 2), np.sum(p**2) - 1 / 3
    for kappa, kappa_v in ((1.0, 0.0), (0.0, 1.0), (0.25, 0.125)):
        late = named(kappa=kappa, kappa_v=kappa_v)[0]
        expected = kappa * max(hit, miss) + kappa_v * max((mu - a[i]) ** 2, mu**2)
        assert bandit.late_moment(late, p, a, i, 3) == pytest.approx(expected)
