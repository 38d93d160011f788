"""Inverses that grow by one row, against numpy's own."""

import numpy as np
import pytest

from gaptron.errors import SettingError
from gaptron.kernels.compile.jit import jit
from gaptron.kernels.linalg import (
    check_matrix_size,
    discard_rounding,
    matrix_kind,
    move,
    move_one,
    shrink,
    times_one,
    times_pair,
)
from gaptron.kernels.rows import by_label, row, zeros
from gaptron.types import Sparse
from tests.conftest import INTERPRETED, KINDS

K, d = 3, 5


@jit
def run_pair(P, X, t, d, a, b, v, W, c):
    x = row(X, t)
    r = times_pair(P, x, d, a, b, v)
    move(W, x, v, c)
    return r


@jit
def run_one(P, X, t, k, v, W, c):
    x = row(X, t)
    r = times_one(P, x, k, v)
    move_one(W, x, k, v, c)
    return r


def rows_of(kind, X):
    made = KINDS[kind](X)
    return Sparse(made.indptr, made.indices, made.data) if hasattr(made, "indptr") else made


def symmetric(n, seed):
    B = np.random.default_rng(seed).normal(size=(n, n))
    return B @ B.T


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", KINDS)
def test_products_and_moves_on_every_kind_of_row(kind):
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(4, d)) * (rng.random((4, d)) > 0.3)).astype(np.float32).astype(np.float64)
    rows, sparse = rows_of(kind, X), "csr" in kind
    P, blocks = symmetric(K * d, 2), np.vstack([symmetric(d, k) for k in range(K)])
    e = np.eye(K)
    for t in range(4):
        W, v = zeros(K, d, sparse), np.empty(K * d)
        z = np.outer(e[2] - e[0], X[t]).ravel()
        r = run_pair(P, rows, t, d, 2, 0, v, W, -0.5)
        np.testing.assert_allclose(v, P @ z, atol=1e-12)
        assert r == pytest.approx(z @ P @ z, abs=1e-12)
        np.testing.assert_allclose(by_label(W, sparse), -0.5 * (P @ z).reshape(K, d), atol=1e-12)
        W, v = zeros(K, d, sparse), np.empty(d)
        r = run_one(blocks, rows, t, 1, v, W, 2.0)
        P1 = blocks[d : 2 * d]
        np.testing.assert_allclose(v, P1 @ X[t], atol=1e-12)
        assert r == pytest.approx(X[t] @ P1 @ X[t], abs=1e-12)
        np.testing.assert_allclose(by_label(W, sparse), np.outer(e[1], 2.0 * (P1 @ X[t])), atol=1e-12)


def test_a_square_is_never_negative():
    P = -np.eye(2 * d)  # what rounding could leave, exaggerated
    X = np.ones((1, d))
    assert run_pair(P, X, 0, d, 0, 1, np.empty(2 * d), np.zeros((2, d)), 1.0) == 0.0
    assert run_one(P[:d, :d].copy(), X, 0, 0, np.empty(d), np.zeros((1, d)), 1.0) == 0.0


@pytest.mark.parametrize(("cosine", "kept"), [(1.0, True), (2e-8, True), (0.5e-8, False), (0.0, False), (-1e-3, False)])
def test_a_product_below_its_rounding_error_is_replaced_by_zero(cosine, kept):
    """z has length 5 and v length 13; the smallest cosine that is more than rounding is 1e-8."""
    v = np.array([12.0, 5.0])
    r = 5.0 * 13.0 * cosine
    assert discard_rounding(25.0, v, r) == (r if kept else 0.0)
    np.testing.assert_array_equal(v, [12.0, 5.0] if kept else [0.0, 0.0])


def test_shrinking_stays_symmetric_to_the_last_bit_and_equals_the_inverse():
    n, rounds = 12, 300 if INTERPRETED else 10_000
    rng = np.random.default_rng(0)
    A, P = np.eye(n), np.eye(n)
    for _ in range(rounds):
        z = rng.normal(size=n)
        A += np.outer(z, z)
        v = P @ z
        shrink(P, v, 1.0 / (1.0 + z @ v))
    np.testing.assert_array_equal(P, P.T)
    np.testing.assert_allclose(P @ A, np.eye(n), atol=1e-8)


def test_a_matrix_that_does_not_fit_is_refused_with_its_size():
    check_matrix_size(16_384, 16_384)  # 2 GiB
    with pytest.raises(SettingError, match=r"20000 × 20000 numbers, 3\.2 GB.*matrix='diagonal'"):
        check_matrix_size(20_000, 20_000)
    with pytest.raises(SettingError, match=r"1000000 × 1000000 numbers, 8\.0 TB"):
        check_matrix_size(10**6, 10**6)


def test_kinds_of_matrices():
    assert [matrix_kind("diagonal"), matrix_kind("full")] == [0, 1]
    with pytest.raises(SettingError, match="diagonal, full"):
        matrix_kind("banded")
