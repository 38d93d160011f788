"""Many draws from one u."""

import numpy as np
from scipy.stats import kstest

from gaptron.kernels.compile.jit import jit
from gaptron.kernels.prng import new_prng, next_bits, normal, seed_prng, uniform


@jit
def many(prng, count, out, kind):
    for i in range(count):
        out[i] = uniform(prng) if kind == 0 else normal(prng)


def test_uniform_and_normal_have_their_laws():
    for kind, law in ((0, "uniform"), (1, "norm")):
        for u in (0.0, 0.123, 0.999):
            prng, out = new_prng(), np.empty(20_000)
            seed_prng(prng, u, 0)
            many(prng, len(out), out, kind)
            assert kstest(out, law).pvalue > 1e-3


def test_neighbouring_u_and_other_purposes_give_unrelated_draws():
    starts = [(0.5, 0), (0.5 + 2.0**-53, 0), (0.5, 1), (0.0, 0)]
    runs = np.empty((len(starts), 5_000))
    for row, (u, purpose) in zip(runs, starts, strict=True):
        prng = new_prng()
        seed_prng(prng, u, purpose)
        many(prng, len(row), row, 0)
    assert np.abs(np.corrcoef(runs) - np.eye(len(starts))).max() < 0.06


def test_first_draws_over_many_u_are_uniform():
    prng, first = new_prng(), []
    for u in np.random.default_rng(0).random(5_000):
        seed_prng(prng, u, 0)
        first.append(uniform(prng))
    assert kstest(first, "uniform").pvalue > 1e-3


def test_interpreted_equals_compiled():
    prng, plain = new_prng(), new_prng()
    seed_prng(prng, 0.3, 2)
    plain[:] = prng
    assert [next_bits(prng) for _ in range(5)] == [getattr(next_bits, "py_func", next_bits)(plain) for _ in range(5)]
