"""Verbs on scores and distributions, each against one line of numpy."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp as scipy_logsumexp
from scipy.special import softmax as scipy_softmax

from gaptron.kernels import simplex
from gaptron.kernels.play import reveal
from gaptron.types import UNKNOWN, Feedback

scores = st.integers(2, 12).flatmap(lambda K: arrays(float, K, elements=st.floats(-50, 50)))
tied = st.integers(2, 12).flatmap(lambda K: arrays(float, K, elements=st.sampled_from([-1.0, 0.0, 2.0])))
some = settings(max_examples=100, deadline=None)
close = np.testing.assert_allclose


@some
@given(scores | tied)
def test_best(z):
    assert simplex.best(z) == z.argmax()


@some
@given(scores | tied, st.integers(0, 11))
def test_rival(z, y):
    y %= len(z)
    others = z.copy()
    others[y] = -np.inf
    assert simplex.rival(z, y) == others.argmax()


@some
@given(scores | tied)
@example(np.array([1e4, -1e4]))
@example(np.array([1e300, -1e300, 0.0]))
def test_softmax(z):
    p = np.full_like(z, np.nan)
    rest = simplex.softmax(z, int(z.argmax()), p)
    close(p, scipy_softmax(z), rtol=1e-13, atol=1e-300)
    close(rest, np.delete(scipy_softmax(z), z.argmax()).sum(), rtol=1e-12, atol=1e-300)


@some
@given(scores | tied)
@example(np.array([1e4, -1e4]))
def test_logsumexp(z):
    close(simplex.logsumexp(z), scipy_logsumexp(z), rtol=1e-13, atol=1e-13)


@some
@given(scores | tied, st.integers(0, 2**12 - 1))
def test_labels_that_are_not_available_are_left_out(z, bits):
    available = np.array([bits >> k & 1 == 1 for k in range(len(z))])
    available[bits % len(z)] = True
    left, p = z[available], np.full_like(z, np.nan)
    assert simplex.mask_unavailable(z, available) == simplex.count_available(available) == len(left)
    np.testing.assert_array_equal(z, np.where(available, z, -np.inf))
    top = simplex.best(z)
    assert available[top] and z[top] == left.max()
    simplex.softmax(z, top, p)
    assert (p[~available] == 0.0).all()
    close(p[available], scipy_softmax(left), rtol=1e-13, atol=1e-300)
    close(simplex.logsumexp(z), scipy_logsumexp(left), rtol=1e-13, atol=1e-13)
    for u in (0.0, 0.3, 1 - 2**-53):
        assert available[simplex.draw(p, top, u)]
    if len(left) > 1:
        assert available[simplex.rival(z, top)]


@some
@given(st.integers(2, 12), st.integers(0, 11), st.floats(0, 1), st.integers(0, 2**12 - 1))
def test_mix_uniform(K, top, a, bits):
    p, available = np.full(K, np.nan), np.array([bits >> k & 1 == 1 for k in range(K)])
    available[top % K] = True
    simplex.mix_uniform(p, available, top % K, a)
    close(p, (1 - a) * np.eye(K)[top % K] + available * a / available.sum(), rtol=1e-15, atol=1e-16)
    assert (p[available] >= a / K).all() and (p[~available] == 0.0).all()


def test_point():
    p = np.full(4, np.nan)
    simplex.point(p, 2)
    np.testing.assert_array_equal(p, [0, 0, 1, 0])


@some
@given(
    st.integers(2, 12).flatmap(lambda K: arrays(float, K, elements=st.floats(0, 1))), st.floats(0, 1, exclude_max=True)
)
def test_draw_inverts_the_distribution_function(p, u):
    if p.sum() == 0:
        p[0] = 1.0
    p = p / p.sum()
    label = simplex.draw(p, int(p.argmax()), u)
    c = np.concatenate([[0.0], np.cumsum(p)])
    if u < c[-1] - 1e-12:  # past the sum of p, by rounding, it is the top
        assert c[label] <= u + 1e-12 and (u < c[label + 1] + 1e-12)
    else:
        assert label == p.argmax() or u < c[label + 1] + 1e-12
    assert p[label] > 0.0


@some
@given(st.lists(st.integers(-2, 2), min_size=1, max_size=12), st.floats(0, 1))
def test_labels_that_tie_get_equal_parts(values, share):
    z, p = np.array(values, dtype=float), np.linspace(0.0, 0.1, len(values))
    before, top, tied = p.copy(), simplex.best(z), z == z.max()
    simplex.add_to_best(p, z, top, share)
    close(p, before + share * tied / tied.sum(), rtol=1e-15, atol=1e-16)
    simplex.point_at_best(p, z, top)
    np.testing.assert_array_equal(p, tied / tied.sum())


def test_draw_never_plays_a_label_of_probability_zero():
    assert simplex.draw(np.array([0.0, 1.0, 0.0]), 1, 0.0) == 1
    assert simplex.draw(np.array([0.0, 0.0, 1.0]), 2, 1 - 2**-53) == 2


def test_draw_at_zero_does_not_pick_a_label_of_next_to_no_probability():
    assert simplex.draw(np.array([1e-300, 1.0]), 1, 0.0) == 1
    assert simplex.draw(np.array([1e-15, 1.0]), 1, 0.0) == 0  # a step of u or more is not an accident


def test_what_rounding_leaves_goes_to_the_top():
    p = np.full(10, 0.1)  # ten tenths taken one by one leave more than nothing of the largest u
    assert simplex.draw(p, 4, np.nextafter(1.0, 0.0)) in (4, 9)
    assert simplex.draw(np.array([0.4, 0.4]), 1, 0.9) == 1
    assert simplex.draw(np.array([0.4, 0.4]), 0, 0.9) == 0


def test_draws_have_the_frequencies_of_p():
    p = np.array([0.1, 0.0, 0.65, 0.25])
    u = np.random.default_rng(0).random(40_000)
    counts = np.bincount([simplex.draw(p, 2, v) for v in u], minlength=4) / 40_000
    close(counts, p, atol=0.01)
    assert counts[1] == 0


@pytest.mark.parametrize("label, truth", [(0, 0), (0, 1), (2, 1)])
def test_reveal(label, truth):
    assert reveal(int(Feedback.FULL), label, truth) == truth
    assert reveal(int(Feedback.BANDIT), label, truth) == (truth if label == truth else UNKNOWN)


@some
@given(arrays(float, st.integers(1, 12), elements=st.floats(0, 1)).filter(lambda p: p.sum() > 0))
@example(np.array([1.0000000000000007, 0.0]))
@example(np.array([1e-300, 1.0 + 2.0**-52, 1e-17]))
def test_normalise_changes_only_what_exceeds_one(p):
    q = p / p.max() * (1.0 + 2.0**-52) if p.sum() > 1.0 else p.copy()
    before = q.copy()
    simplex.normalise(q)
    assert (q <= 1.0).all()
    if before.max() <= 1.0:
        np.testing.assert_array_equal(q, before)
    else:
        close(q, before / before.sum(), rtol=1e-15)
