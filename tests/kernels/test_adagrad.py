"""AdaGrad's verbs, each against a few lines of numpy."""

import numpy as np
import pytest

from gaptron.kernels import adagrad
from gaptron.types import SparseRow

close = np.testing.assert_allclose


def rounds(sparse):
    """Weights of 3 plain labels and of 2 learners on 2 labels who share squares, and some rows, in either layout."""
    rng = np.random.default_rng(0)
    W, N = rng.normal(size=(7, 4)), rng.random((2, 4))
    for _ in range(20):
        x = rng.normal(size=4) * (rng.random(4) > 0.4)
        r = rng.normal(size=7) * (rng.random(7) > 0.2)
        at = np.flatnonzero(x)
        yield W, N, x, (SparseRow(at.astype(np.int32), x[at]) if sparse else x), r, rng.random(2)


def turned(A, sparse):
    return np.ascontiguousarray(A.T) if sparse else A.copy()


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_sweep(sparse):
    """The first labels move plainly, the others over the root of the squares they share."""
    for W, N, x, given, r, squares in rounds(sparse):
        mine, sums = turned(W, sparse), turned(N, sparse)
        adagrad.sweep(mine, sums, given, r, 3, squares, 1e-8, np.zeros(4))
        shared = N + np.outer(squares, x**2)
        wanted = W.copy()
        wanted[:3] += np.outer(r[:3], x)
        wanted[3:5] += np.outer(r[3:5], x) / np.sqrt(shared + 1e-8)
        wanted[5:] += np.outer(r[5:], x) / np.sqrt(shared + 1e-8)
        close(mine.T if sparse else mine, wanted, rtol=1e-12, atol=1e-15)
        close(sums.T if sparse else sums, shared, rtol=1e-12)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_sweep_of_one_learner_is_descend(sparse):
    for W, N, _, given, r, steps in rounds(sparse):
        one, two = turned(W[3:5], sparse), turned(W[3:5], sparse)
        first, second = turned(N, sparse), turned(N, sparse)
        adagrad.sweep(one, first, given, -steps[0] * r[:2], 0, r[:2] ** 2, 1e-6, np.zeros(4))
        adagrad.descend(two, second, given, r[:2], steps[0], 1e-6)
        close(one, two, rtol=1e-12, atol=1e-15)
        close(first, second, rtol=1e-12)
