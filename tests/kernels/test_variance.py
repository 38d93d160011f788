"""Each operation on variances against one line of numpy, on every kind of example."""

import numpy as np
import pytest

from gaptron.kernels.compile.jit import jit
from gaptron.kernels.rows import by_label, row
from gaptron.kernels.variance import (
    add_precision,
    add_scaled_by_variance,
    add_squares,
    reduce_variance,
    ridge,
    score_variance,
    score_variances,
    scores_shared,
)
from gaptron.types import Sparse
from tests.conftest import KINDS

K, d = 3, 6


@jit
def run(kernel, W, S, A, X, t, k, g, h, r, z):
    x = row(X, t)
    if kernel == 0:
        score_variances(S, x, z)
    elif kernel == 1:
        z[0] = score_variance(S, x, k)
    elif kernel == 2:
        add_scaled_by_variance(W, S, x, k, g)
    elif kernel == 3:
        add_precision(S, x, k, h)
    elif kernel == 4:
        reduce_variance(S, x, k, h)
    elif kernel == 5:
        ridge(W, S, x, k, g, h)
    elif kernel == 6:
        scores_shared(W, A, x, r, z)
    else:
        add_squares(A, x)


@pytest.fixture(params=list(KINDS))
def case(request):
    """What a kernel leaves behind: W, S, A, z, from the same start on this kind of row."""
    rng = np.random.default_rng(4)
    X = (rng.normal(size=(3, d)) * (rng.random((3, d)) > 0.3)).astype(np.float32).astype(np.float64)
    W, S, A = rng.normal(size=(K, d)), rng.uniform(0.1, 1.0, size=(K, d)), rng.uniform(1, 2, size=(1, d))
    made = KINDS[request.param](X)
    sparse = hasattr(made, "indptr")
    rows = Sparse(made.indptr, made.indices, made.data) if sparse else made

    def play(kernel, k=1, g=0.7, h=0.4):
        w, s = (np.ascontiguousarray(M.T if sparse else M.copy()) for M in (W, S))
        a, z = A.copy(), np.zeros(K)
        run(kernel, w, s, a, rows, 2, k, g, h, np.zeros(d), z)
        return by_label(w, sparse), by_label(s, sparse), a, z

    return W, S, A, X[2], play


@pytest.mark.sample(2)
def test_spreads(case):
    _, S, _, x, play = case
    np.testing.assert_allclose(play(0)[3], S @ x**2, atol=1e-14)
    assert play(1, k=2)[3][0] == pytest.approx(S[2] @ x**2)


def test_a_step_along_the_variances(case):
    W, S, _, x, play = case
    expected = W.copy()
    expected[1] += 0.7 * S[1] * x
    np.testing.assert_allclose(play(2)[0], expected, atol=1e-14)


def test_narrowing_and_dropping(case):
    _, S, _, x, play = case
    expected = S.copy()
    expected[1] = 1 / (1 / S[1] + 0.4 * x**2)
    np.testing.assert_allclose(play(3)[1], expected, atol=1e-14)
    expected[1] = S[1] - 0.1 * (S[1] * x) ** 2
    np.testing.assert_allclose(play(4, h=0.1)[1], expected, atol=1e-14)
    assert (play(4, h=1e9)[1] >= 0).all()


def test_ridge_is_the_quotient_of_two_sums(case):
    W, S, _, x, play = case
    w, s, _, _ = play(5)
    theta, A = W / S, 1 / S
    theta[1] += 0.7 * x
    A[1] += 0.4 * x**2
    np.testing.assert_allclose(s, 1 / A, atol=1e-14)
    np.testing.assert_allclose(w, theta / A, atol=1e-13)


def test_one_diagonal_for_all_labels(case):
    W, _, A, x, play = case
    np.testing.assert_allclose(play(6)[3], W @ (x / (A[0] + x**2)), atol=1e-14)
    np.testing.assert_allclose(play(7)[2], A + x**2, atol=1e-14)
