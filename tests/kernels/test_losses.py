"""The losses against textbook numpy, their gradients against finite differences."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gaptron.kernels import losses
from gaptron.theory import comparator
from gaptron.types import Loss
from tests import plain

scores = st.integers(2, 8).flatmap(lambda K: arrays(float, K, elements=st.floats(-3, 3)))
tied = st.integers(2, 8).flatmap(lambda K: arrays(float, K, elements=st.sampled_from([-1.0, 0.0, 0.25, 1.0])))
labels = st.integers(0, 7)
some = settings(max_examples=120, deadline=None)
NAMES = {loss.word: int(loss) for loss in Loss}
close = np.testing.assert_allclose


@some
@given(scores | tied, labels)
def test_margin(z, y):
    y %= len(z)
    assert losses.margin(z, y) == z[y] - np.delete(z, y).max()


@some
@given(scores | tied, st.sampled_from([0.0, 0.25, 0.5]))
def test_confident(z, beta):
    top = int(z.argmax())
    assert losses.confident(z, top, beta) == (z[top] - np.delete(z, top).max() > beta)


@pytest.mark.parametrize("name", NAMES)
@some
@given(z=scores | tied, y=labels, beta=st.sampled_from([0.125, 0.25, 0.5]))
def test_value(name, z, y, beta):
    y %= len(z)
    close(losses.value(NAMES[name], beta, z, y), plain.loss(name, z, y, beta), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["hinge", "smooth-hinge"])
@some
@given(z=scores | tied, y=labels, beta=st.sampled_from([0.125, 0.25, 0.5]))
def test_pull(name, z, y, beta):
    y %= len(z)
    v = losses.pull(NAMES[name], beta, z, y)
    e = np.eye(len(z))
    close(v * (e[plain.rival(z, y)] - e[y]), plain.coefficients(name, z, y, beta), atol=1e-14)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", NAMES)
@some
@given(z=scores | tied, y=labels, beta=st.sampled_from([0.125, 0.25, 0.5]), step=st.sampled_from([0.1, 3.0]))
def test_descent(name, z, y, beta, step):
    y %= len(z)
    r = np.full(len(z), np.nan)
    losses.descent(NAMES[name], beta, z, plain.softmax(z), y, step, r)
    close(r, -step * plain.coefficients(name, z, y, beta), atol=1e-14)


def slopes(function, z, h=1e-6):
    return np.array([(function(z + h * e) - function(z - h * e)) / (2 * h) for e in np.eye(len(z))])


@pytest.mark.parametrize("name", NAMES)
@some
@given(z=scores, y=labels, beta=st.sampled_from([0.25, 0.5]))
def test_gradients_are_the_slopes(name, z, y, beta):
    y %= len(z)
    order = np.sort(np.delete(z, y))
    m = z[y] - order[-1]
    assume(len(order) < 2 or order[-1] - order[-2] > 1e-4)  # one rival
    assume(min(abs(m), abs(m - 1), abs(m - beta)) > 1e-4)  # no kink
    numeric = slopes(lambda v: losses.value(NAMES[name], beta, v, y), z)
    if name == "logistic":
        exact = (plain.softmax(z) - np.eye(len(z))[y]) / np.log(2)
    else:
        e = np.eye(len(z))
        exact = losses.pull(NAMES[name], beta, z, y) * (e[plain.rival(z, y)] - e[y])
    close(exact, numeric, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_is_at_least_one_on_a_mistake(name):
    rng = np.random.default_rng(0)
    for z in rng.normal(size=(300, 4)):
        for y in range(4):
            if y != z.argmax():
                assert losses.value(NAMES[name], 0.25, z, y) >= 1.0


def test_huge_scores_stay_finite():
    z = np.array([1e4, -1e4, 0.0])
    assert losses.value(NAMES["logistic"], 0.0, z, 1) == pytest.approx(2e4 / np.log(2))
    assert losses.value(NAMES["logistic"], 0.0, z, 0) == 0.0
    assert losses.value(NAMES["hinge"], 0.3, z, 1) == 20001.0
    assert losses.value(NAMES["smooth-hinge"], 0.3, z, 1) == 40001.0


@pytest.mark.parametrize("loss", list(Loss), ids=[loss.word for loss in Loss])
@some
@given(seed=st.integers(0, 10**6), K=st.integers(2, 6))
def test_the_comparators_losses_are_the_same_without_the_mask(loss, seed, K):
    rng = np.random.default_rng(seed)
    Z, y = rng.normal(size=(5, K)), rng.integers(0, K, 5)
    value, C = comparator.losses(loss, Z, y)
    for t in range(5):
        close(value[t], plain.loss(loss.word, Z[t], y[t], np.inf), atol=1e-12)
        close(C[t], plain.coefficients(loss.word, Z[t], y[t], np.inf), atol=1e-12)
