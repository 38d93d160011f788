"""Advice as callers give it."""

import numpy as np
import pytest

from gaptron.data.feedback import as_advice
from gaptron.data.labels import Classes


@pytest.mark.parametrize("advice", [[[1, 3], [4, 0]], [[0.1, 0.3], [1e-300, 0.0]], np.array([[1e300, 3e300], [2, 0]])])
def test_advice_is_divided_by_its_sum(advice):
    np.testing.assert_allclose(as_advice(advice, 2, Classes("ab")), [[0.25, 0.75], [1.0, 0.0]], rtol=1e-15)


def test_a_label_is_advice_without_doubt():
    np.testing.assert_array_equal(as_advice(["b", "a"], 2, Classes("ab")), [[0.0, 1.0], [1.0, 0.0]])
