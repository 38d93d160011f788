"""The picture of a run of Advised Gaptron."""

import numpy as np

from gaptron.report.advice import WINDOW, smooth


def test_smoothing_is_the_mean_of_the_last_hundred_rounds():
    values = np.random.default_rng(0).random(350)
    expected = [values[max(0, end - WINDOW) : end].mean() for end in range(1, 351)]
    np.testing.assert_allclose(smooth(values), expected, rtol=1e-12)
