"""Convert probabilities or scores of classifiers to predictions of experts in [-1, 1], one label against the rest."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import InputError
from gaptron.types import Matrix, Vector

METHODS = {"probabilities": ("predict_proba", "distribution"), "scores": ("decision_function", "scores")}
ROUNDING = 1e-3  # tolerance for probabilities in float32, or printed with few digits


def experts_from(
    sources: Iterable[Any], X: Any = None, *, label: Any = None, kind: str = "probabilities", votes: bool = False
) -> Matrix:
    """Convert the outputs of classifiers to predictions for an `Abstainer`: +1 means `label`, -1 any other label.

    A probability p becomes 2p - 1. A score becomes its margin over the best other label, clipped to [-1, 1].

    Args:
        sources: fitted classifiers (scikit-learn's, or `Learner`s), or arrays of their outputs: rounds × labels, or,
            for two labels, the second column only.
        X: the examples; needed for classifiers.
        label: the label that becomes +1: one of a classifier's classes, or the column of an array. With two labels the
            default is the second.
        kind: "probabilities" (`predict_proba`, a Learner's `distribution`) or "scores" (`decision_function`, a
            Learner's `scores`).
        votes: if true, predictions are only +1 or -1: whether `label` is the source's first choice.

    Returns:
        Predictions in [-1, 1], rounds × sources.

    Raises:
        InputError: if a source has no such outputs, or they are not numbers of the same length.
    """
    if kind not in METHODS:
        raise InputError(f"kind={kind!r} must be one of {', '.join(METHODS)}")
    columns = []
    for number, source in enumerate(sources):
        table, at = _table(source, number, X, label, kind)
        rest = np.delete(table, at, axis=1).max(axis=1)
        if votes:
            columns.append(np.where(table[:, at] > rest, 1.0, -1.0))
        elif kind == "scores":
            columns.append(np.clip(table[:, at] - rest, -1.0, 1.0))
        else:
            columns.append(np.clip(2.0 * table[:, at] - 1.0, -1.0, 1.0))
    if not columns:
        raise InputError("sources is empty: give at least one classifier or array")
    if len({len(column) for column in columns}) > 1:
        raise InputError(f"the sources have different lengths: {', '.join(str(len(column)) for column in columns)}")
    return np.stack(columns, axis=1)


def _table(source: Any, number: int, X: Any, label: Any, kind: str) -> tuple[Matrix, int]:
    """Return a source's outputs, rounds × labels, and the column of the wanted label."""
    name = f"source {number}"
    method = next((getattr(source, method) for method in METHODS[kind] if hasattr(source, method)), None)
    classes: list[Any] | None = None
    if method is not None:
        if X is None:
            raise InputError(f"{name} is a classifier: give the examples X that it should predict")
        predictions = method(X)
        classes = [
            k.item() if isinstance(k, np.generic) else k
            for k in getattr(source, "classes_", getattr(source, "classes", ()))
        ]
    elif isinstance(source, (np.ndarray, list, tuple)):
        predictions = source
    else:
        raise InputError(
            f"{name}, a {type(source).__name__}, has no {' or '.join(METHODS[kind])}, so it gives no {kind}: "
            "use the other kind"
        )
    table = _two_columns(_numbers(predictions, name), kind)
    if kind == "probabilities":
        _check_probabilities(table, name)
    return table, _column(name, table.shape[1], classes, label)


def _numbers(predictions: Any, name: str) -> NDArray[Any]:
    try:
        table = np.asarray(predictions, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"the outputs of {name} are not numbers") from None
    if table.ndim not in (1, 2) or table.shape[-1] == 0 or not np.isfinite(table).all():
        raise InputError(f"the outputs of {name} must be finite numbers, rounds × labels; their shape is {table.shape}")
    return table


def _two_columns(table: NDArray[Any], kind: str) -> Matrix:
    """Expand the single column of two labels: p becomes (1 - p, p), and a signed score z becomes (-z/2, z/2).

    The margin of scikit-learn's score z is |z|; here it is the difference of the two columns.
    """
    if table.ndim == 2 and table.shape[1] > 1:
        return table
    last: Vector = table.reshape(-1)
    return np.stack([1.0 - last, last] if kind == "probabilities" else [-last / 2, last / 2], axis=1)


def _check_probabilities(table: Matrix, name: str) -> None:
    bad = np.flatnonzero(~((table >= -ROUNDING).all(axis=1) & (np.abs(table.sum(axis=1) - 1.0) <= ROUNDING)))
    if bad.size:
        raise InputError(f"{name}, round {bad[0]}: the numbers are not probabilities; for scores use kind='scores'")


def _column(name: str, width: int, classes: list[Any] | None, label: Any) -> int:
    known = list(range(width)) if classes is None or len(classes) != width else classes
    if label is None:
        if width > 2:
            raise InputError(f"{name} has {width} labels: give the one that becomes +1 as label=...")
        return 1
    if label not in known:
        shown = ", ".join(map(repr, known[:5])) + (", ..." if width > 5 else "")
        raise InputError(f"{name} has no label {label!r}; its labels are {shown}")
    return known.index(label)
