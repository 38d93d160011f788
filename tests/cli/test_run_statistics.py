"""The counts of a run that is played in chunks."""

import numpy as np
import pytest

from gaptron.cli.run_statistics import RunStatistics, frequencies
from gaptron.data.labels import Classes
from gaptron.learner.trace import Trace

TRUTH = np.array([0, 1, 2, 0, 1, 1, 2, 1, 0, 2])
PLAYED = np.array([0, 2, 2, 1, 1, 2, 0, 0, 0, 1])


def trace(part: slice) -> Trace:
    codes, truth = PLAYED[part], TRUTH[part]
    T = len(codes)
    return Trace(Classes("abc"), codes, codes, truth, np.zeros(T), (), np.empty((T, 0)), np.empty((T, 0)))


@pytest.mark.parametrize("size", [1, 3, 4, 10])
def test_the_last_quarter_is_the_same_in_chunks(size):
    """Of ten rounds the last two, of which one is wrong, and eight rounds before them with five mistakes."""
    statistics = RunStatistics("abc", 10)
    for start in range(0, 10, size):
        statistics.add(trace(slice(start, start + size)))
    values = statistics.as_values()
    assert values["last_quarter"] == {"rounds": 2, "mistakes": 1, "change": "none"}
    assert values["majority"] == {"label": "b", "mistakes": 6}
    assert values["classes"] == [{"label": k, "rounds": n} for k, n in (("a", 3), ("b", 4), ("c", 3))]
    assert values["confused"][0] == {"truth": "b", "top": "c", "rounds": 2}
    assert len(values["confused"]) == 3


def test_a_run_of_unknown_length_has_no_last_quarter():
    statistics = RunStatistics("abc", None)
    statistics.add(trace(slice(0, 10)))
    assert statistics.as_values()["last_quarter"] is None


def test_frequencies_are_of_the_most_frequent_labels():
    classes = [{"label": k, "rounds": n} for k, n in zip("abcdefgh", (1, 5, 2, 2, 4, 3, 2, 1))]
    assert frequencies(classes, 20) == "b 25%, e 20%, f 15%, c 10%, d 10%, g 10% and 2 more"
