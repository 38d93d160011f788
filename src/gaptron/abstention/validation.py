"""Predictions, labels and costs are checked here, or one clear error says what is wrong."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import InputError
from gaptron.types import Flags, Integers, Vector


def as_predictions(predictions: Any, n_experts: int) -> NDArray[Any]:
    """Rounds × experts, each in [-1, 1]; copied only if not yet numbers in rows."""
    X = _numbers(predictions, "predictions")
    if X.ndim != 2:
        raise InputError(f"predictions must have two dimensions (rounds × experts); it has {X.ndim}")
    _check_width(X.shape[1], n_experts)
    # Two numbers tell whether all is well, without a second array as large as the first; NaN spoils both.
    if X.size and not (X.min() >= -1.0 and X.max() <= 1.0):
        t, i = np.argwhere(~(np.abs(X) <= 1.0))[0]
        raise InputError(f"round {t}: expert {i} predicts {X[t, i]:g}, which is not in [-1, 1]")
    return X


def as_prediction(predictions: Any, n_experts: int) -> Vector:
    """One round's predictions, a copy: a decision may outlive the caller's array."""
    x = _numbers(predictions, "predictions")
    if x.ndim == 2 and x.shape[0] == 1:
        x = x[0]
    if x.ndim != 1:
        raise InputError(f"predictions must be one round's, a number an expert; its shape is {x.shape}")
    _check_width(x.shape[0], n_experts)
    bad = np.flatnonzero(~(np.abs(x) <= 1.0))
    if bad.size:
        raise InputError(f"expert {bad[0]} predicts {x[bad[0]]:g}, which is not in [-1, 1]")
    return np.array(x, dtype=np.float64)


def as_labels(labels: Any) -> Integers:
    """-1 and +1."""
    y = np.asarray(labels)
    if y.ndim != 1:
        raise InputError(f"labels must have one dimension; it has {y.ndim}")
    if y.dtype.kind not in "iuf" and y.size:
        raise InputError(f"labels must be -1 or +1, not {y.dtype}: np.where(y == wanted, 1, -1) makes them")
    bad = np.flatnonzero((y != 1) & (y != -1))
    if bad.size:
        raise InputError(f"round {bad[0]}: label {y[bad[0]]} is neither -1 nor +1")
    return y.astype(np.int64)


def as_label(label: Any) -> int:
    """-1 or +1."""
    try:
        return int(as_labels([label])[0])
    except (InputError, ValueError, TypeError):
        raise InputError(f"label {label!r} is neither -1 nor +1") from None


def as_costs(costs: Any, rounds: int) -> Vector:
    """A cost a round; one number stands for all rounds."""
    c = _numbers(costs, "costs")
    if c.ndim == 0:
        c = np.full(rounds, float(c))
    if c.shape != (rounds,):
        raise InputError(f"there are {rounds} rounds, but costs has shape {c.shape}")
    bad = np.flatnonzero(_impossible(c))
    if bad.size:
        raise InputError(f"round {bad[0]}: cost {c[bad[0]]:g} is not a number of at least 0")
    return c.astype(np.float64)


def as_cost(cost: Any) -> float:
    """One cost."""
    try:
        value = float(cost)
    except (TypeError, ValueError):
        value = math.nan
    if isinstance(cost, (bool, str)) or _impossible(np.array([value]))[0]:
        raise InputError(f"cost={cost!r} is not a number of at least 0")
    return value


def _impossible(costs: NDArray[Any]) -> Flags:
    possible: Flags = (costs >= 0.0) & np.isfinite(costs)
    return ~possible


def _check_width(found: int, n_experts: int) -> None:
    if found != n_experts:
        raise InputError(f"{found} predictions a round where there are {n_experts} experts")


def _numbers(values: Any, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{name} is not a rectangular array") from None
    if array.dtype.kind not in "iuf" and array.size:
        raise InputError(f"{name} must be numbers in an array, not {array.dtype}")
    return array
