"""Checked examples."""

import numpy as np
import pytest

from gaptron.data.examples import FAR, FEW, checked


@pytest.mark.parametrize(
    ("before", "size", "found"),
    [(FEW, 1.01 * FAR, FEW), (FEW - 1, 1.01 * FAR, None), (FEW, 0.99 * FAR, None), (300, 1.01 * FAR, 300)],
)
def test_an_outlier_is_far_longer_than_at_least_twenty_examples_before_it(before, size, found):
    X = np.ones((before + 5, 1))
    X[before] = size
    assert checked(X).outlier == found
