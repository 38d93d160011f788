"""Checks of predictions, labels and costs."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import InputError
from gaptron.types import Flags, Integers, Vector


def as_predictions(predictions: Any, n_experts: int) -> NDArray[Any]:
    """Return rounds × experts, each in [-1, 1]; a numeric array is not copied."""
    X = _numbers(predictions, "predictions")
    if X.ndim != 2:
        raise InputError(f"predictions must have two dimensions (rounds × experts), not {X.ndim}")
    _check_width(X.shape[1], n_experts)
    # Minimum and maximum suffice, without a second array as large as the first; NaN fails both comparisons.
    if X.size and not (X.min() >= -1.0 and X.max() <= 1.0):
        t, i = np.argwhere(~(np.abs(X) <= 1.0))[0]
        raise InputError(f"round {t}: expert {i} predicts {X[t, i]:g}, which is not in [-1, 1]")
    return X


def as_prediction(predictions: Any, n_experts: int) -> Vector:
    """Return a copy of one round's predictions: the caller may change the array before it learns."""
    x = _numbers(predictions, "predictions")
    if x.ndim == 2 and x.shape[0] == 1:
        x = x[0]
    if x.ndim != 1:
        raise InputError(f"predictions must be those of one round, one number per expert; the shape is {x.shape}")
    _check_width(x.shape[0], n_experts)
    bad = np.flatnonzero(~(np.abs(x) <= 1.0))
    if bad.size:
        raise InputError(f"expert {bad[0]} predicts {x[bad[0]]:g}, which is not in [-1, 1]")
    return np.array(x, dtype=np.float64)


def as_labels(labels: Any) -> Integers:
    """Return labels, each -1 or +1."""
    y = np.asarray(labels)
    if y.ndim != 1:
        raise InputError(f"labels must have one dimension, not {y.ndim}")
    if y.dtype.kind not in "iuf" and y.size:
        raise InputError(f"labels must be -1 or +1, not {y.dtype}; convert them with np.where(y == positive, 1, -1)")
    bad = np.flatnonzero((y != 1) & (y != -1))
    if bad.size:
        raise InputError(f"round {bad[0]}: label {y[bad[0]]} is neither -1 nor +1")
    return y.astype(np.int64)


def as_label(label: Any) -> int:
    """Return one label, -1 or +1."""
    try:
        return int(as_labels([label])[0])
    except (InputError, ValueError, TypeError):
        raise InputError(f"label {label!r} is neither -1 nor +1") from None


def as_costs(costs: Any, rounds: int) -> Vector:
    """Return one cost per round; a single number is used for all rounds."""
    c = _numbers(costs, "costs")
    if c.ndim == 0:
        c = np.full(rounds, float(c))
    if c.shape != (rounds,):
        raise InputError(f"there are {rounds} rounds, but costs has shape {c.shape}")
    bad = np.flatnonzero(_invalid(c))
    if bad.size:
        raise InputError(f"round {bad[0]}: cost {c[bad[0]]:g} must be a finite number of at least 0")
    return c.astype(np.float64)


def as_cost(cost: Any) -> float:
    """Return one cost."""
    try:
        value = float(cost)
    except (TypeError, ValueError):
        value = math.nan
    if isinstance(cost, (bool, str)) or _invalid(np.array([value]))[0]:
        raise InputError(f"cost={cost!r} must be a finite number of at least 0")
    return value


def _invalid(costs: NDArray[Any]) -> Flags:
    valid: Flags = (costs >= 0.0) & np.isfinite(costs)
    return ~valid


def _check_width(found: int, n_experts: int) -> None:
    if found != n_experts:
        raise InputError(f"there are {found} predictions per round, but {n_experts} experts")


def _numbers(values: Any, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{name} must be a rectangular array") from None
    if array.dtype.kind not in "iuf" and array.size:
        raise InputError(f"{name} must be an array of numbers, not {array.dtype}")
    return array
