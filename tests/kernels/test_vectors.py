"""Vector instructions against plain sums, and nothing beside them touched."""

from typing import Any

import numpy as np
import pytest

from gaptron.kernels.compile.jit import jit
from gaptron.kernels.compile.vectors import BLOCK, add_scaled, lower, multiply

GUARD = 3  # numbers before and after, which must stay


@jit
def run_add(w: Any, r: Any, v: float) -> None:
    add_scaled(w, r, v)


@jit
def run_part(W: Any, i: int, first: int, r: Any, v: float) -> None:
    add_scaled(W[i, first : first + r.shape[0]], r, v)


@jit
def run_multiply(P: Any, x: Any, g: Any) -> float:
    return multiply(P, x, g)


@jit
def run_lower(P: Any, g: Any, c: float) -> None:
    lower(P, g, c)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 15, 16, 17, 31, 100])
def test_a_vector_is_added_to_the_last_bit_and_nothing_beside_it(size, kind):
    rng = np.random.default_rng(size)
    buffer = rng.normal(size=size + 2 * GUARD).astype(kind)
    r, v = rng.normal(size=size), 0.3
    expected = buffer.copy()
    middle = slice(GUARD, GUARD + size)
    expected[middle] = (buffer[middle].astype(np.float64) + r * v).astype(kind)
    run_add(buffer[middle], r, v)
    np.testing.assert_array_equal(buffer, expected)


def test_it_is_added_to_a_part_of_a_row():
    W = np.zeros((3, 12))
    run_part(W, 1, 4, np.arange(1.0, 6.0), 2.0)
    expected = np.zeros((3, 12))
    expected[1, 4:9] = [2.0, 4.0, 6.0, 8.0, 10.0]
    np.testing.assert_array_equal(W, expected)


def block(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(BLOCK, BLOCK))
    return half @ half.T + np.eye(BLOCK), rng.normal(size=BLOCK)


def test_a_block_times_a_row():
    P, x = block(0)
    assert (P == P.T).all()
    g = np.full(BLOCK, np.nan)
    own = run_multiply(P, x, g)
    np.testing.assert_allclose(g, P @ x, rtol=1e-13, atol=1e-13)
    assert own == pytest.approx(x @ P @ x, rel=1e-13)


def test_a_block_is_lowered_and_stays_symmetric():
    P, g = block(1)
    Q = P.copy()
    for _ in range(100):
        run_lower(Q, g, 1e-3)
    np.testing.assert_allclose(Q, P - 0.1 * np.outer(g, g), rtol=0, atol=1e-12)
    assert (Q == Q.T).all()


@pytest.mark.skipif(not hasattr(run_add, "py_func"), reason="interpreted, nothing is compiled")
def test_numbers_that_do_not_lie_side_by_side_are_refused():
    with pytest.raises(TypeError, match="not contiguous"):
        run_add(np.zeros((5, 2))[:, 0], np.zeros(5), 1.0)
