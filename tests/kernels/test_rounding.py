"""Sums whose rounding is counted, against fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest

from gaptron.kernels import ball, rounding
from gaptron.kernels.rows import by_label, row, score_one, scores
from gaptron.types import Rounding, named
from gaptron.validation import as_rows
from tests.conftest import KINDS

K, D = 3, 7


def table(sparse, dtype=np.float32):
    """Weights of every size, some so small that single precision has but a few digits of them."""
    rng = np.random.default_rng(0)
    W = (rng.normal(size=(K, D)) * 10.0 ** rng.integers(-42, 6, size=(K, D))).astype(np.float32).astype(dtype)
    return np.ascontiguousarray(W.T) if sparse else W


def a_row(kind):
    """A row of one of the kinds, and the numbers it holds."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1, D)) * 10.0 ** rng.integers(-3, 3, size=D) * (rng.random(D) > 0.3)
    rows, _ = as_rows(KINDS[kind](x))
    sparse = kind.startswith("csr")
    return row(rows, 0), np.asarray(x[0], dtype=np.float32 if kind.endswith("32") else np.float64), sparse


def lost(before, kept, r, x):
    """Σ(f² - d²)/2 and ‖f - d‖ exactly: d = before + r ⊗ x, f what was kept."""
    lean = square = Fraction(0)
    for k in range(len(r)):
        for i in range(len(x)):
            d = Fraction(float(before[k, i])) + Fraction(float(r[k])) * Fraction(float(x[i]))
            f = Fraction(float(kept[k, i]))
            lean, square = lean + (f * f - d * d) / 2, square + (f - d) ** 2
    return float(lean), math.sqrt(square)


def new():
    return named(**Rounding()._asdict())


@pytest.mark.parametrize("kind", list(KINDS))
def test_scores_of_weights_in_single_precision_are_sums_in_double(kind):
    """Two numbers of float32 have a product of 48 bits: in double it is exact."""
    rng = np.random.default_rng(2)
    sparse = kind.startswith("csr")
    rows, _ = as_rows(KINDS[kind](rng.normal(size=(1, D))))
    x, W = row(rows, 0), rng.normal(size=(K, D)).astype(np.float32)
    numbers = rows.values if sparse else rows[0]
    wanted = [float(sum(Fraction(float(w)) * Fraction(float(v)) for w, v in zip(line, numbers))) for line in W]
    table, z = np.ascontiguousarray(W.T) if sparse else W, np.zeros(K)
    scores(table, x, z)
    np.testing.assert_allclose(z, wanted, rtol=1e-13)
    np.testing.assert_allclose([score_one(table, x, k) for k in range(K)], wanted, rtol=1e-13)


@pytest.mark.parametrize("kind", list(KINDS))
def test_all_labels(kind):
    x, numbers, sparse = a_row(kind)
    r = np.array([0.7, 0.0, -1e3 / 3])
    W, sums = table(sparse), new()
    before = by_label(W.copy(), sparse)
    returned = rounding.put(W, x, r, sums, 0.25, 3.0)
    kept = by_label(W, sparse)
    np.testing.assert_array_equal(kept, (before.astype(np.float64) + np.outer(r, numbers)).astype(np.float32))
    lean, drift = lost(before, kept, r, numbers)
    assert lean != 0.0
    assert (returned, sums[0].lean, sums[0].drift) == pytest.approx((lean, 0.25 * lean, 3.0 * drift), rel=1e-6)


@pytest.mark.parametrize("kind", list(KINDS))
def test_one_label_and_one_of_several_learners(kind):
    x, numbers, sparse = a_row(kind)
    one, several = table(sparse), table(sparse)
    before = by_label(one.copy(), sparse)
    sums, other = new(), new()
    returned = rounding.put_one(one, x, 2, 1 / 3, sums, 0.25, 3.0)
    rounding.put_from(several, x, 1, np.array([0.0, 1 / 3]), other, 0.25)
    np.testing.assert_array_equal(one, several)
    lean, drift = lost(before, by_label(one, sparse), [0.0, 0.0, 1 / 3], numbers)
    assert (returned, sums[0].lean, sums[0].drift) == pytest.approx((lean, 0.25 * lean, 3.0 * drift), rel=1e-6)
    assert (other[0].lean, other[0].drift) == pytest.approx((0.25 * lean, drift), rel=1e-6)


def test_an_update_below_half_a_digit_is_lost_and_counted():
    W, sums = np.full((1, 2), 2.0**24, dtype=np.float32), new()
    rounding.put_one(W, np.array([1.0, -0.25]), 0, 1.0, sums, 1.0, 1.0)
    assert (W == 2.0**24).all()
    assert sums[0].drift == math.sqrt(1.0 + 0.25**2)
    assert sums[0].lean == (2.0 * 2.0**48 - (2.0**24 + 1) ** 2 - (2.0**24 - 0.25) ** 2) / 2


def test_in_double_nothing_is_counted():
    x, numbers, sparse = a_row("dense64")
    W, r = table(sparse, np.float64), np.array([0.7, 0.0, -1e3 / 3])
    wanted = W + np.outer(r, numbers)
    sums = new()
    assert rounding.put(W, x, r, sums, 1.0, 1.0) == sums[0].drift == 0.0
    np.testing.assert_allclose(W, wanted, rtol=1e-14)
    assert not rounding.counts(W) and rounding.counts(W.astype(np.float32))


@pytest.mark.parametrize(("scale", "updates"), [(1 / 3, ball.REFRESH - 1), (ball.SMALLEST / 3, 5)])
def test_the_scale_of_a_ball_is_taken_up_and_its_rounding_counted(scale, updates):
    """One update before `ball.moved` would do it, which counts nothing."""
    V, b, sums = np.random.default_rng(0).normal(size=(K, D)).astype(np.float32), ball.new_ball(), new()
    b[0].scale, b[0].updates = scale, updates
    before, radius = V.copy(), 1.0
    rounding.keep(V, b, radius, sums)
    np.testing.assert_array_equal(V, (scale * before.astype(np.float64)).astype(np.float32))
    exact = [(Fraction(float(f)), Fraction(float(v)) * Fraction(scale)) for f, v in zip(V.ravel(), before.ravel())]
    lean, drift = sum(f * f - d * d for f, d in exact) / 2, math.sqrt(sum((f - d) ** 2 for f, d in exact))
    assert (sums[0].lean, sums[0].drift) == pytest.approx((float(lean), drift), rel=1e-6)
    size = np.linalg.norm(V.astype(np.float64))
    assert b[0].updates == 0
    assert b[0].scale * size <= radius * (1 + 1e-15)
    assert math.sqrt(b[0].square) == pytest.approx(b[0].scale * size, rel=1e-12)


def test_a_ball_that_is_not_due_is_left_alone():
    V, b, sums = np.ones((K, D), dtype=np.float32), ball.new_ball(), new()
    b[0].scale, b[0].updates = 1 / 3, ball.REFRESH - 2
    rounding.keep(V, b, 1.0, sums)
    assert (V == 1.0).all()
    assert (b[0].scale, b[0].updates, sums[0].drift) == (1 / 3, ball.REFRESH - 2, 0.0)
