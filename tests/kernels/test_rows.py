"""Each operation on examples against one line of numpy; dense and sparse agree, compiled and not."""

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gaptron.kernels import rows
from gaptron.types import Sparse, SparseRow

compiled = {
    name: numba.njit(function)
    for name, function in {
        "row": lambda X, t: rows.row(X, t),
        "scores": lambda W, x, z: rows.scores(W, x, z),
        "score_one": lambda W, x, k: rows.score_one(W, x, k),
        "add": lambda W, x, r: rows.add(W, x, r),
        "add_one": lambda W, x, k, v: rows.add_one(W, x, k, v),
        "sqnorm": lambda x: rows.sqnorm(x),
    }.items()
}
plain = {name: getattr(rows, name) for name in compiled}


@pytest.fixture(scope="module", params=["compiled", "interpreted"])
def kernels(request: Any) -> Any:
    return compiled if request.param == "compiled" else plain


@st.composite
def problems(draw: Any) -> Any:
    seed, K, d = draw(st.integers(0, 10**6)), draw(st.integers(2, 9)), draw(st.integers(1, 12))
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=d) * (rng.random(d) < draw(st.sampled_from([0.0, 0.4, 1.0])))).astype(np.float32)
    x = x.astype(draw(st.sampled_from([np.float64, np.float32])))
    return rng.normal(size=(K, d)), x, rng.normal(size=K) * (rng.random(K) < 0.7), int(rng.integers(K))


def both(W: np.ndarray, x: np.ndarray) -> list[tuple[np.ndarray, Any, bool]]:
    """The same weights and row, dense and sparse: weights in their layout, the row, is it sparse."""
    at = np.flatnonzero(x).astype(np.int32)
    return [(W.copy(), x, False), (W.T.copy(order="C"), SparseRow(at, x[at]), True)]


close = np.testing.assert_allclose
few = settings(max_examples=60, deadline=None)


def test_zeros_have_the_layout_of_their_rows() -> None:
    assert rows.zeros(3, 5, False).shape == (3, 5)
    assert rows.zeros(3, 5, True).shape == (5, 3)
    for sparse in (False, True):
        assert rows.by_label(rows.zeros(3, 5, sparse), sparse).shape == (3, 5)
        assert not rows.zeros(3, 5, sparse).any()


@few
@given(problems())
def test_scores(kernels: Any, problem: Any) -> None:
    W, x, _, _ = problem
    for V, row, _ in both(W, x):
        z = np.full(len(W), np.nan)
        kernels["scores"](V, row, z)
        close(z, W @ x.astype(np.float64), rtol=1e-12, atol=1e-12)


@few
@given(problems())
def test_score_one(kernels: Any, problem: Any) -> None:
    W, x, _, k = problem
    for V, row, _ in both(W, x):
        close(kernels["score_one"](V, row, k), W[k] @ x.astype(np.float64), rtol=1e-12, atol=1e-12)


@few
@given(problems())
def test_add(kernels: Any, problem: Any) -> None:
    W, x, r, _ = problem
    for V, row, sparse in both(W, x):
        kernels["add"](V, row, r)
        close(rows.by_label(V, sparse), W + np.outer(r, x.astype(np.float64)), rtol=1e-12, atol=1e-12)


@few
@given(problems(), st.floats(-5, 5))
def test_add_one(kernels: Any, problem: Any, v: float) -> None:
    W, x, _, k = problem
    for V, row, sparse in both(W, x):
        kernels["add_one"](V, row, k, v)
        expected = W.copy()
        expected[k] += v * x.astype(np.float64)
        close(rows.by_label(V, sparse), expected, rtol=1e-12, atol=1e-12)


@few
@given(problems())
def test_sqnorm(kernels: Any, problem: Any) -> None:
    W, x, _, _ = problem
    for _, row, _ in both(W, x):
        close(kernels["sqnorm"](row), np.sum(x.astype(np.float64) ** 2), rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_sqnorm_of_large_float32_numbers_does_not_overflow(kernels: Any, sparse: bool) -> None:
    x = np.array([3e30, 4e30], dtype=np.float32)
    row = SparseRow(np.array([0, 1], np.int32), x) if sparse else x
    close(kernels["sqnorm"](row), 25e60, rtol=1e-6)


def test_rows_of_a_block(kernels: Any) -> None:
    dense = np.arange(12.0).reshape(3, 4)
    X = Sparse(np.array([0, 2, 2, 3], np.int32), np.array([1, 3, 0], np.int32), np.array([5.0, 6.0, 7.0]))
    np.testing.assert_array_equal(kernels["row"](dense, 1), [4, 5, 6, 7])
    for t, (at, values) in enumerate([([1, 3], [5, 6]), ([], []), ([0], [7])]):
        row = kernels["row"](X, t)
        np.testing.assert_array_equal(row.indices, at)
        np.testing.assert_array_equal(row.values, values)
