"""AdaGrad's verbs, each against a few lines of numpy."""

import numpy as np
import pytest

from gaptron.kernels import adagrad
from gaptron.types import SparseRow

close = np.testing.assert_allclose


def rounds(sparse):
    """Weights of 3 plain labels and 2 with sums of squares, some rows, in either layout."""
    rng = np.random.default_rng(0)
    W, N = rng.normal(size=(5, 4)), rng.random((2, 4))
    for _ in range(20):
        x = rng.normal(size=4) * (rng.random(4) > 0.4)
        r = rng.normal(size=5) * (rng.random(5) > 0.2)
        at = np.flatnonzero(x)
        yield W, N, x, (SparseRow(at.astype(np.int32), x[at]) if sparse else x), r, rng.random(2)


def turned(A, sparse):
    return np.ascontiguousarray(A.T) if sparse else A.copy()


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_sweep(sparse):
    """The first labels move plainly, the last by AdaGrad; entries with no gradient stay where they are."""
    for W, N, x, given, r, steps in rounds(sparse):
        mine, sums = turned(W, sparse), turned(N, sparse)
        adagrad.sweep(mine, sums, given, r, steps, 1e-8)
        G = np.outer(r[3:], x)
        wanted = W.copy()
        wanted[:3] += np.outer(r[:3], x)
        wanted[3:] -= steps[:, None] * G / np.sqrt(N + G**2 + 1e-8)
        close(mine.T if sparse else mine, wanted, rtol=1e-12, atol=1e-15)
        close(sums.T if sparse else sums, N + G**2, rtol=1e-12)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_sweep_of_one_learner_is_descend(sparse):
    for W, N, _, given, r, steps in rounds(sparse):
        one, two = (turned(np.vstack([W[3:], W[3:]])[:2], sparse) for _ in range(2))
        first, second = turned(N, sparse), turned(N, sparse)
        adagrad.sweep(one, first, given, r[3:], np.full(2, steps[0]), 1e-6)
        adagrad.descend(two, second, given, r[3:], steps[0], 1e-6)
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(first, second)
