"""The exponential for many numbers at once, against one computed with forty digits."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from gaptron.kernels.compile.exponential import MIN_VECTORISED, exponential, exponentials

LEAST = 5e-324


def of(values):
    z = np.array(values, dtype=float)
    p = np.full(len(z), np.nan)
    exponentials(z, 0.0, p)
    return p


def test_within_two_in_the_last_place_over_the_whole_range():
    rng = np.random.default_rng(0)
    edges = (np.arange(-1074, 1024) + 0.5) * math.log(2.0)  # where the rounding of n changes
    x = np.concatenate([rng.uniform(-745.0, 709.7, 3000), rng.uniform(-1.0, 1.0, 500), edges[::3], [0.0, -1e-17]])
    with localcontext() as context:
        context.prec = 40
        for value, found in zip(x, of(x), strict=True):
            exact = Decimal(float(value)).exp()
            assert abs(Decimal(float(found)) - exact) <= 2 * Decimal(math.ulp(float(exact))), value


def test_larger_numbers_have_no_smaller_exponential():
    rng = np.random.default_rng(1)
    edges = (np.arange(-1074, 1024) + 0.5) * math.log(2.0)
    beside = np.concatenate([edges + k * np.spacing(edges) for k in range(-20, 21)])
    x = np.sort(np.concatenate([beside, rng.uniform(-750.0, 712.0, 100_000), np.linspace(-1e-14, 1e-14, 1001)]))
    p = of(x)
    assert (p[:-1] <= p[1:]).all()


@pytest.mark.parametrize("many", [1, MIN_VECTORISED - 1, MIN_VECTORISED, 3 * MIN_VECTORISED + 1])
def test_ends(many):
    for value, expected in [(0.0, 1.0), (-0.0, 1.0), (-math.inf, 0.0), (-1e308, 0.0), (-746.0, 0.0), (-744.5, LEAST)]:
        np.testing.assert_array_equal(of([value] * many), expected)


@pytest.mark.parametrize("value", [710.0, 1e308, math.inf])
def test_too_large_is_infinite(value):
    np.testing.assert_array_equal(of([value] * MIN_VECTORISED), math.inf)


def test_what_is_no_number_stays_so():
    assert np.isnan(of([math.nan] * MIN_VECTORISED)).all()


def test_shifted_and_in_place():
    z = np.random.default_rng(2).normal(size=50)
    expected = of(z - 1.5)
    exponentials(z, 1.5, z)
    np.testing.assert_array_equal(z, expected)


def test_compiled_and_interpreted_alike_to_the_bit():
    interpreted = getattr(exponential, "py_func", exponential)
    x = np.random.default_rng(3).uniform(-760.0, 720.0, 2000)
    np.testing.assert_array_equal(
        [exponential(float(value)) for value in x], [interpreted(float(value)) for value in x]
    )
