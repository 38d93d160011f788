"""Features of contexts and actions by name, from nested JSON and from the tokens of Vowpal Wabbit's text.

Nested names are joined by a point: {"user": {"age": 31}} is the feature user.age. Vowpal Wabbit writes a word as part
of a name, user=student; it is read as the word student of the feature user.
"""

import math
from collections.abc import Iterable
from typing import Any

from gaptron.streams.json_lines import MalformedError, short

JOIN = "."
EQUALS = "="


def flatten(given: Any, what: str, *, vw: bool = False) -> dict[str, Any]:
    """Return the features of a JSON object.

    Args:
        given: the object.
        what: its name in errors.
        vw: follow Vowpal Wabbit: skip names that begin with _, and read words in names, as in user=student.

    Returns:
        Name → number, text, boolean or None. Numbers in an array are numbered (scores.0, scores.1), its texts are words
        that are there or not (genres.comedy), and its objects are taken as one.
    """
    if not isinstance(given, dict):
        raise MalformedError(f"{what} is {short(given)}, not an object of features by name")
    found: dict[str, Any] = {}
    _fill(found, given, "", vw)
    return found


def flatten_objects(given: Iterable[Any], what: str) -> dict[str, Any]:
    """Return the features of several objects as one, as Azure Personalizer has them.

    Args:
        given: the objects.
        what: their name in errors.

    Returns:
        Name → value as in `flatten`, with `vw`. A name that is in several objects is taken as an array of its values,
        an empty text as a missing value.
    """
    found: dict[str, list[Any]] = {}
    for at, one in enumerate(given):
        for name, value in flatten(one, f"{what}[{at}]", vw=True).items():
            found.setdefault(name, []).append(None if value == "" else value)
    features: dict[str, Any] = {}
    for name, values in found.items():
        features |= {name: values[0]} if len(values) == 1 else flatten({name: values}, what)
    return features


def _fill(found: dict[str, Any], given: dict[str, Any], prefix: str, vw: bool) -> None:
    for key, value in given.items():
        if vw and key.startswith("_"):
            continue
        name = prefix + key
        if isinstance(value, dict):
            _fill(found, value, name + JOIN, vw)
        elif isinstance(value, list):
            _fill_from_array(found, value, name, vw)
        elif vw and value == 1 and EQUALS in key:
            put_token(found, name, None)
        else:
            _put(found, name, value)


def _fill_from_array(found: dict[str, Any], values: list[Any], name: str, vw: bool) -> None:
    for at, value in enumerate(values):
        if isinstance(value, dict):
            _fill(found, value, name + JOIN, vw)
        elif isinstance(value, list):
            raise MalformedError(f"feature {short(name)} is an array of arrays: give its parts names")
        elif isinstance(value, str):
            found[f"{name}{JOIN}{value}"] = True
        else:
            _put(found, f"{name}{JOIN}{at}", value)


def _put(found: dict[str, Any], name: str, value: Any) -> None:
    if name in found:
        raise MalformedError(f"feature {short(name)} appears twice")
    found[name] = finite(value)


def put_token(found: dict[str, Any], name: str, value: float | None) -> None:
    """Add a feature as Vowpal Wabbit writes it, name or name:value; None: it has no value.

    The words of a feature that has several in one line (genre=comedy genre=drama) are there or not, after the first.
    """
    column, equals, word = name.partition(EQUALS)
    if equals and column and word and value in (None, 1.0):
        if found.setdefault(column, word) != word:
            found[name] = True
        return
    before = found.get(name)
    if isinstance(before, str):  # a word of a feature with this name came first
        found[f"{name}{EQUALS}{before}"], before = True, None
    found[name] = True if value is None else finite(float(before or 0.0) + value)


def finite(value: Any) -> Any:
    """NaN and infinity are missing values, for which JSON has null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
