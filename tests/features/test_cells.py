"""Single values: numbers, words and times."""

import datetime
import math

import pytest

from gaptron.features.cells import LARGEST, cell, number, time_of, whole


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T02:00:00+02:00", 0),
        ("1969-12-31T19:00:00-05:00", 0),
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01", 1),
        ("2026-01-31T23:15:00+05:30", datetime.datetime(2026, 1, 31, 17, 45, tzinfo=datetime.UTC).timestamp()),
    ],
)
def test_the_stamp_of_a_time_with_an_offset_is_in_utc(text, seconds):
    time = time_of(text)
    assert time is not None and time.stamp == seconds
    assert time.hour == -1.0 or int(time.hour) == int(text[11:13])  # the hour is local


@pytest.mark.parametrize(
    ("given", "found"),
    [(1e100, 1e100), (1e101, LARGEST), (-1e101, -LARGEST), (-1e100, -1e100), (math.inf, None), (-math.inf, None)],
)
def test_numbers_are_clipped_on_their_own_side(given, found):
    assert number(given) == found


@pytest.mark.parametrize("given", [2**62 - 1, 2**62, 10**100, 10**101, 10**4000])
def test_whole_numbers_of_any_size_are_clipped_on_their_own_side(given):
    expected = float(min(given, 10**100))
    assert (whole(given), whole(-given)) == (expected, -expected)
    assert cell("x", True) == "true" and cell("x", given) == expected
