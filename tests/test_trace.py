"""What a run leaves behind, on a trace made by hand."""

import numpy as np
import pytest

import gaptron
from gaptron.data.labels import Classes
from gaptron.learner.trace import Tally, checkpoints


def trace(codes=(0, 1, 2, 1), truth=(0, 2, 2, 0), names=("a", "b", "c")):
    n = len(codes)
    return gaptron.Trace(
        Classes(names),
        np.array(codes),
        np.array([0, 2, 2, 2][:n]),
        np.array(truth),
        np.array([0.5, 0.25, 1.0, 0.0][:n]),
        ("gap",),
        np.arange(float(n))[:, None],
        np.zeros((n, 0)),
    )


def test_sums():
    t = trace()
    assert (t.rounds, t.mistakes, t.top_mistakes) == (4, 2, 1)
    assert t.expected_mistakes == 2.25
    np.testing.assert_array_equal(t.wrong, [False, True, False, True])
    np.testing.assert_array_equal(t.labels, ["a", "b", "c", "b"])
    np.testing.assert_array_equal(t.note("gap"), [0, 1, 2, 3])
    assert repr(t) == "Trace(rounds=4, mistakes=2, expected_mistakes=2.2, top_mistakes=1)"


def test_two_traces_add_up():
    both = trace() + trace()
    assert (both.rounds, both.mistakes, both.expected_mistakes) == (8, 4, 4.5)
    with pytest.raises(gaptron.InputError, match="learners with different labels"):
        trace() + trace(names=("x", "y", "z"))


def test_the_curve_ends_with_the_sums():
    curve = trace().curve
    np.testing.assert_array_equal(curve.rounds, [1, 2, 3, 4])
    np.testing.assert_array_equal(curve.mistakes, [0, 1, 1, 2])
    np.testing.assert_allclose(curve.expected_mistakes, [0.5, 1.25, 1.25, 2.25])
    np.testing.assert_array_equal(curve.top_mistakes, [0, 0, 0, 1])


@pytest.mark.parametrize("T", [0, 1, 2, 9, 10, 11, 99, 1000, 123_457])
def test_checkpoints_rise_to_the_last_round(T):
    marks = checkpoints(T)
    if T == 0:
        assert len(marks) == 0
        return
    assert marks[-1] == T and marks[0] == 1
    assert (np.diff(marks) > 0).all()
    assert len(marks) <= 10 * np.log10(T) + 2


def test_checkpoints_are_ten_per_decade_rounded_to_the_nearest_round():
    np.testing.assert_array_equal(checkpoints(100), [1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 63, 79, 100])


def test_a_tally_counts_traces():
    tally = Tally()
    tally.add(trace()), tally.add(trace())
    assert (tally.rounds, tally.mistakes, tally.expected_mistakes, tally.top_mistakes) == (8, 4, 4.5, 2)
