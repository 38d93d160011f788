"""Classifiers become experts: their probabilities or scores as predictions in [-1, 1], one label against the rest."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import InputError
from gaptron.types import Matrix, Vector

METHODS = {"probabilities": ("predict_proba", "distribution"), "scores": ("decision_function", "scores")}
ROUNDING = 1e-3  # probabilities in float32, or printed, need not sum to 1 exactly


def experts_from(
    sources: Iterable[Any], X: Any = None, *, label: Any = None, kind: str = "probabilities", votes: bool = False
) -> Matrix:
    """What each source predicts of each row, in [-1, 1]: rounds × sources. +1 stands for `label`, -1 for the rest.

    A probability p becomes 2p - 1; a score becomes its margin over the best other label, cut off at -1 and 1.

    Args:
        sources: fitted classifiers (scikit-learn's, or `Learner`s), or arrays of what they gave: a row a round with a
            column a label, or, for two labels, the second label's column alone.
        X: the rows; needed by classifiers.
        label: the label that is +1: one of a classifier's classes, or the number of an array's column. With two labels
            the second by default.
        kind: "probabilities" (`predict_proba`, a Learner's `distribution`) or "scores" (`decision_function`, a
            Learner's `scores`).
        votes: True for ±1 alone: whether `label` is the source's first choice.
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
        raise InputError("there are no sources: give at least one classifier or array")
    if len({len(column) for column in columns}) > 1:
        raise InputError(f"the sources differ in rows: {', '.join(str(len(column)) for column in columns)}")
    return np.stack(columns, axis=1)


def _table(source: Any, number: int, X: Any, label: Any, kind: str) -> tuple[Matrix, int]:
    """What a source says, a column a label, and which column is the wanted label's."""
    name = f"source {number}"
    method = next((getattr(source, word) for word in METHODS[kind] if hasattr(source, word)), None)
    classes: list[Any] | None = None
    if method is not None:
        if X is None:
            raise InputError(f"{name} is a classifier: give the rows X it shall look at")
        predictions = method(X)
        classes = [
            k.item() if isinstance(k, np.generic) else k
            for k in getattr(source, "classes_", getattr(source, "classes", ()))
        ]
    elif isinstance(source, (np.ndarray, list, tuple)):
        predictions = source
    else:
        raise InputError(
            f"{name}, a {type(source).__name__}, gives no {kind} (it has no {' or '.join(METHODS[kind])}): "
            "try the other kind"
        )
    table = _two_columns(_numbers(predictions, name), kind)
    if kind == "probabilities":
        _check_probabilities(table, name)
    return table, _column(name, table.shape[1], classes, label)


def _numbers(predictions: Any, name: str) -> NDArray[Any]:
    try:
        table = np.asarray(predictions, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} does not give numbers") from None
    if table.ndim not in (1, 2) or table.shape[-1] == 0 or not np.isfinite(table).all():
        raise InputError(f"{name} must give finite numbers, a row a round; its shape is {table.shape}")
    return table


def _two_columns(table: NDArray[Any], kind: str) -> Matrix:
    """With two labels, one column says it all: a probability p beside 1 - p, a signed score z beside -z.

    scikit-learn's margin at z is |z|; ours is the difference of two columns, so both get half.
    """
    if table.ndim == 2 and table.shape[1] > 1:
        return table
    last: Vector = table.reshape(-1)
    return np.stack([1.0 - last, last] if kind == "probabilities" else [-last / 2, last / 2], axis=1)


def _check_probabilities(table: Matrix, name: str) -> None:
    bad = np.flatnonzero(~((table >= -ROUNDING).all(axis=1) & (np.abs(table.sum(axis=1) - 1.0) <= ROUNDING)))
    if bad.size:
        raise InputError(f"{name}, round {bad[0]}: these are no probabilities; if they are scores say kind='scores'")


def _column(name: str, width: int, classes: list[Any] | None, label: Any) -> int:
    known = list(range(width)) if classes is None or len(classes) != width else classes
    if label is None:
        if width > 2:
            raise InputError(f"{name} knows {width} labels: say which one is +1, label=...")
        return 1
    if label not in known:
        shown = ", ".join(map(repr, known[:5])) + (", ..." if width > 5 else "")
        raise InputError(f"{name} does not know label {label!r}; it knows {shown}")
    return known.index(label)
