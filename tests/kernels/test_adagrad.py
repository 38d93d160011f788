"""The kernels of AdaGrad, each against a few lines of numpy."""

import numpy as np
import pytest

from gaptron.kernels import adagrad
from gaptron.types import SparseRow

close = np.testing.assert_allclose


def turned(A, sparse):
    return np.ascontiguousarray(A.T) if sparse else A.copy()


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_descend(sparse):
    """Every weight moves by its derivative over the root of its own squares."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        W, N, r = rng.normal(size=(5, 4)), rng.random((5, 4)), rng.normal(size=5) * (rng.random(5) > 0.2)
        x = rng.normal(size=4) * (rng.random(4) > 0.4)
        at = np.flatnonzero(x)
        mine, sums = turned(W, sparse), turned(N, sparse)
        adagrad.descend(mine, sums, SparseRow(at.astype(np.int32), x[at]) if sparse else x, r, 0.3, 1e-8)
        squares = N + np.outer(r, x) ** 2
        close(mine.T if sparse else mine, W - 0.3 * np.outer(r, x) / np.sqrt(squares + 1e-8), rtol=1e-12, atol=1e-15)
        close(sums.T if sparse else sums, squares, rtol=1e-12)
