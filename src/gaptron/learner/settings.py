"""The numbers that a caller gives a learner, and the settings that an algorithm recommends for them."""

import inspect
import math
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from gaptron.algorithms.protocol import Algorithm
from gaptron.data.examples import LARGEST_NORM, SMALLEST_NORM
from gaptron.data.values import flag, number, whole_at_least
from gaptron.errors import SettingError
from gaptron.types import Problem

LARGEST_COUNT = 1 << 53  # horizons and other whole numbers; float64 holds every one up to it
MOST_FEATURES = (1 << 31) - 1  # a sparse example's indices are int32
SMALLEST_SETTING, LARGEST_SETTING = 1e-100, 1e100


def check_ranges(problem: Problem) -> Problem:
    """Refuse a norm, radius, horizon or number of features with which an algorithm's formulas would overflow.

    Args:
        problem: the problem.

    Returns:
        The problem.

    Raises:
        SettingError: a number is out of range; the message names it.
    """
    for name, value in (("norm", problem.norm), ("radius", problem.radius)):
        if value is not None and not SMALLEST_NORM <= value <= LARGEST_NORM:
            raise SettingError(
                f"{name}={value!r} must lie between {SMALLEST_NORM:g} and {LARGEST_NORM:g}: scale the examples"
            )
    if problem.horizon is not None and problem.horizon > LARGEST_COUNT:
        raise SettingError(f"horizon={problem.horizon!r} must be at most 2**53, about {LARGEST_COUNT:.0e}")
    if problem.n_features > MOST_FEATURES:
        raise SettingError(f"n_features={problem.n_features!r} must be at most {MOST_FEATURES}: hash the features")
    return problem


def checked_settings(name: str, algorithm: Algorithm[Any, Any, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Check the settings that a caller gives by the types in the signature of `recommend`; NumPy scalars are converted.

    Args:
        name: the name of the algorithm.
        algorithm: its module.
        settings: the settings by name.

    Returns:
        The settings as Python's numbers, booleans and text.

    Raises:
        SettingError: a setting is unknown, of another type, NaN or out of range.
    """
    known = dict(list(inspect.signature(algorithm.recommend).parameters.items())[1:])
    for word in settings:
        if word not in known:
            raise SettingError(f"{name} has no setting {word!r}; it has: {', '.join(known) or 'none'}")
    return {word: _checked(word, value, known[word].annotation) for word, value in settings.items()}


def _checked(name: str, value: Any, annotation: Any) -> Any:
    kinds = get_args(annotation) or (annotation,)
    if value is None and type(None) in kinds:
        return None
    if str in kinds:
        if not isinstance(value, str):
            raise SettingError(f"{name}={value!r} must be text")
        return value
    if bool in kinds:
        return flag(name, bool(value) if isinstance(value, np.bool_) else value)
    if int in kinds:
        count = whole_at_least(name, value, 0)
        if count > LARGEST_COUNT:
            raise SettingError(f"{name}={value!r} must be at most 2**53")
        return count
    size = number(name, value)
    in_range = SMALLEST_SETTING <= abs(size) <= LARGEST_SETTING  # NaN is not
    if not (in_range or size in (0.0, math.inf, -math.inf)):
        raise SettingError(f"{name}={value!r} must be 0 or of a size from {SMALLEST_SETTING:g} to {LARGEST_SETTING:g}")
    return size


def has_own_epsilon(algorithm: Algorithm[Any, Any, Any]) -> bool:
    """Is epsilon a setting of the algorithm itself?"""
    return "epsilon" in inspect.signature(algorithm.recommend).parameters


def checked_epsilon(name: str, algorithm: Algorithm[Any, Any, Any], epsilon: Any) -> float:
    """Check a share of decisions drawn uniformly, with which an algorithm's own distribution is mixed.

    Args:
        name: the name of the algorithm.
        algorithm: its module.
        epsilon: the share that the caller gives.

    Returns:
        The share.

    Raises:
        SettingError: the share is impossible, or the algorithm does not support it.
    """
    share = number("epsilon", epsilon)
    if not 0.0 <= share < 1.0:
        raise SettingError(f"epsilon={epsilon!r} must be at least 0 and below 1, such as 0.02")
    if share and algorithm.CARD.own_coin:
        raise SettingError(f"{name} learns from how it drew its label, and does not support epsilon={epsilon!r}")
    return share


def recommended(algorithm: Algorithm[Any, Any, Any], problem: Problem, overrides: Mapping[str, Any]) -> Any:
    """The settings that an algorithm recommends for a problem, with those that the caller gave.

    Args:
        algorithm: the module.
        problem: the problem.
        overrides: the settings that the caller gave, checked.

    Returns:
        The algorithm's settings.

    Raises:
        SettingError: a number is missing or impossible, or the numbers together overflow.
    """
    check_ranges(problem)
    try:
        return algorithm.recommend(problem, **overrides)
    except ArithmeticError:  # each number is in range, but not together
        given = {name: getattr(problem, name) for name in ("norm", "radius", "horizon")} | dict(overrides)
        shown = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
        raise SettingError(f"these settings overflow: {shown}; scale the examples, or leave settings out") from None
