"""One row far longer than all before it: the user is warned, because the steps of many algorithms will fit it alone."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import gaptron
from gaptron.data.examples import LARGEST_NORM, SMALLEST_NORM
from tests.conftest import noisy_stream

X, Y, K = noisy_stream(300)


def play(rows, algorithm="frugal-gaptron", **given):
    learner = gaptron.Learner(algorithm, n_classes=K, seed=0, **given)
    return learner, learner.play(rows, Y)


def test_a_row_a_thousand_times_as_long_is_named():
    rows = X.copy()
    rows[200] *= 1000
    with pytest.warns(gaptron.OutlierWarning, match="row 200 of X is more than 100 times as long"):
        play(rows)


@pytest.mark.parametrize("rows", [X, X * 10.0 ** np.linspace(0, 5, 300)[:, None], np.vstack([X[:1] * 1e-3, X[1:]])])
def test_rows_that_grow_slowly_or_a_short_first_row_are_nobodys_fault(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        play(rows)


def test_an_outlier_is_recognised_from_the_examples_of_earlier_calls():
    learner, _ = play(X)
    far = X.copy()
    far[0] *= 1000  # the first of its call, and still far longer than all before it
    with pytest.warns(gaptron.OutlierWarning, match="X holds a row of norm .* as long as every row played before"):
        learner.play(far, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small = X * 1e-3
        small[200] *= 1000  # long in its own call, and as long as many before it
        learner.play(small, Y)


def test_on_the_command_line(tmp_path):
    rows = X.copy()
    rows[200] *= 1000
    np.savez(tmp_path / "outlier.npz", X=rows, y=Y)
    command = [sys.executable, "-m", "gaptron", "play", "outlier.npz", "-a", "frugal-gaptron", "--no-bound"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "gaptron: warning: row 200 of X is more than 100 times" in done.stderr


# --- the range in which everything is right ------------------------------------------------------------------


@pytest.mark.parametrize("feedback", ["full", "bandit"])
@pytest.mark.parametrize("scale", [SMALLEST_NORM * 2, LARGEST_NORM / 2])
@pytest.mark.parametrize("algorithm", ["advised-gaptron", "frugal-gaptron", "randomized-decoding"])
def test_at_the_edges_of_the_range_learners_stay_finite_and_bounds_hold(algorithm, scale, feedback):
    """Rows of norm about 1 times the scale: nearly the same run as without it, and the bound is not smaller."""
    given = {"radius": 1.0 / scale, "horizon": len(Y)} if algorithm == "randomized-decoding" else {}
    learner, trace = play(X * scale, algorithm, feedback=feedback, **given)
    given = {name: value * scale if name == "radius" else value for name, value in given.items()}
    _, plain = play(X, algorithm, feedback=feedback, **given)
    assert np.isfinite(learner.weights).all() and np.isfinite(trace.truth_probability).all()
    assert abs(trace.expected_mistakes - plain.expected_mistakes) < 0.1 * len(Y)
    assert learner.bound(X * scale, Y).value >= trace.expected_mistakes or feedback == "bandit"


@pytest.mark.parametrize("norm", [9e-61, 1e-100, 1e-145, 1.1e60, 1e154, 1e200, 1e308])
def test_outside_it_rows_are_refused_and_nothing_has_changed(norm):
    learner, _ = play(X)
    before = learner.weights
    row = X[:1] / np.linalg.norm(X[0]) * norm
    for call in (
        lambda: learner.play(row, Y[:1]),
        lambda: learner.predict(row),
        lambda: learner.decide(row[0]),
        lambda: gaptron.Learner(n_classes=K).play(row, Y[:1]),
    ):
        with pytest.raises(gaptron.InputError, match="a row must be zero or have a norm between"):
            call()
    np.testing.assert_array_equal(learner.weights, before)
    assert learner.rounds == 300
