"""Single words and numbers from a caller or a file, checked; errors name the argument."""

import math
from typing import Any

import numpy as np

from gaptron.errors import SettingError
from gaptron.types import Feedback, Loss

MIN_PROPENSITY = 1e-6
"""The smallest propensity of a logged decision. It is learned from with the weight 1/propensity: beyond a million, one
decision would outweigh all others, and 1/5e-324 is infinite."""

CLOSE = 1e-4
"""The tolerated error of a sum of logged probabilities, and of a propensity: some loggers write float32."""

ROUNDED = 1e-6
"""A logged probability may exceed 1 by this much and counts as 1."""


def choice(name: str, word: str | None, allowed: tuple[Any, ...], algorithm: str) -> Any:
    """Find an allowed member by its word; the first if no word is given."""
    if word is None:
        return allowed[0]
    kind: type[Loss] | type[Feedback] = type(allowed[0])
    words = {member.word: member for member in kind}
    if word not in words:
        raise SettingError(f"unknown {name} {word!r}; available: {', '.join(words)}")
    if words[word] not in allowed:
        raise SettingError(f"{algorithm} takes {name} {' or '.join(a.word for a in allowed)}, not {word}")
    return words[word]


def whole(name: str, given: Any) -> int:
    """Check a whole number of at least 1."""
    return whole_at_least(name, given, 1)


def whole_at_least(name: str, given: Any, least: int) -> int:
    """Check a whole number."""
    value = number(name, given)
    if value < least or not value.is_integer():
        raise SettingError(f"{name}={given!r} must be a whole number of at least {least}")
    return int(given)


def count(name: str, given: Any) -> int:
    """Check a whole number of at least 0 from a file."""
    if type(given) is not int or given < 0:
        raise ValueError(f"{name}={given!r} is not a count")
    return given


def positive(name: str, given: Any) -> float | None:
    """Check a positive finite number, or None."""
    if given is None:
        return None
    value = number(name, given)
    if not (value > 0.0 and math.isfinite(value)):
        raise SettingError(f"{name}={given!r} must be a positive number")
    return value


def number(name: str, given: Any) -> float:
    """Check a number: text and booleans are none."""
    try:
        if isinstance(given, str | bytes | bool | np.bool_):
            raise TypeError
        return float(given)
    except (TypeError, ValueError, OverflowError):
        raise SettingError(f"{name}={given!r} must be a number") from None


def flag(name: str, given: Any) -> bool:
    """Check a boolean."""
    if not isinstance(given, bool):
        raise SettingError(f"{name}={given!r} must be True or False")
    return given


def plain_dict(name: str, given: Any) -> dict[str, Any]:
    """Check a dict of strings, numbers, booleans and None from a file."""
    if type(given) is not dict or not all(isinstance(value, str | int | float | None) for value in given.values()):
        raise ValueError(f"{name} is not a dict of plain values")
    return given
