"""Numbers in text."""

import pytest

from gaptron.data.text_numbers import as_whole


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("3", 3),
        ("-3.0", -3),
        ("+3e2", 300),
        ("9007199254740993", 2**53 + 1),  # digits alone are exact
        ("9007199254740991.0", 2**53 - 1),
        ("9007199254740992.0", None),  # a float, which may stand for its neighbours too
        ("1e16", None),
        ("1e400", None),
        ("2.5", None),
        ("03", None),
        ("9" * 400, 10**400 - 1),
        ("9" * 401, None),
    ],
)
def test_a_whole_number_is_read_exactly_or_not_at_all(text, number):
    assert as_whole(text) == number
