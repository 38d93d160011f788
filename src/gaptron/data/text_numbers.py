"""Numbers in text, by one rule for every reader and on every machine: ASCII digits, a point, an exponent.

Python's own `float` and `int` also read "1_0" as 10, and the digits of other scripts. NaN and infinity are read here so
that the reader can name the row that they are in.
"""

import re
from collections.abc import Iterable

# Possessive (*+, ++), so that a long text that is not a number is not tried in every way.
_PLAIN = r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:e[+-]?[0-9]++)?"
_NOT_FINITE = r"[+-]?(?:nan|infinity|inf)"
_NUMBER = re.compile(rf"\s*+(?:{_PLAIN}|{_NOT_FINITE})\s*+", re.ASCII | re.IGNORECASE)
_NUMBERS = re.compile(rf"(?:(?:{_PLAIN}|{_NOT_FINITE})\n)*+", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*)")
_WHOLE_AS_FLOAT = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]+)?")
_EXACT = 2.0**53  # past this, floats skip whole numbers
_LONGEST = 400  # digits of a whole number: Python takes quadratic time to read one, and refuses one of 4300

LONGEST_SHOWN = 40  # characters of a text that an error quotes


def as_number(text: str) -> float | None:
    """The number in a text; None if it is not a number."""
    return float(text) if _NUMBER.fullmatch(text) else None


def are_numbers(texts: Iterable[str]) -> bool:
    """Are all texts, without spaces around them, numbers? Faster than `as_number` of each."""
    return _NUMBERS.fullmatch("\n".join([*texts, ""])) is not None


def as_whole(text: str) -> int | None:
    """The whole number in a text, also as 3.0 or 3e2; None if it is not one. "03" is a name, not a number."""
    if len(text) > _LONGEST:
        return None
    if _WHOLE.fullmatch(text):
        return int(text)
    if _WHOLE_AS_FLOAT.fullmatch(text) and abs(float(text)) < _EXACT and float(text).is_integer():
        return int(float(text))
    return None


def shown(text: str | bytes) -> str:
    """A text as errors quote it, cut to `LONGEST_SHOWN` characters."""
    words = text.decode(errors="replace") if isinstance(text, bytes) else text
    return repr(words if len(words) <= LONGEST_SHOWN else words[: LONGEST_SHOWN - 3] + "...")
