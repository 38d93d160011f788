"""The tuples of a learner (settings, state, sheets) as plain trees of words, numbers and arrays, and back.

Whoever wrote a tree may have meant harm, and compiled code does not look where it writes. So a tuple is only ever
filled in: a fresh one of the right algorithm says which fields, types and shapes there are, and numbers that serve as
places in memory are checked one by one.
"""

from typing import Any

import numpy as np

from gaptron.types import SparseRow

ROOM = 1 << 28  # weights that are made without asking whether the tree holds as many


def spread(value: Any) -> Any:
    """A tuple with named fields as a dict, and so on inside."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: spread(part) for name, part in zip(value._fields, value)}
    return value


def fill(fresh: Any, tree: Any, name: str) -> Any:
    """What `spread` made of a tuple like the fresh one, in the fresh one's own arrays."""
    if isinstance(fresh, tuple) and hasattr(fresh, "_fields"):
        if type(tree) is not dict or set(tree) != set(fresh._fields):
            raise ValueError(f"the fields of {name} are not {', '.join(fresh._fields)}")
        return type(fresh)(*(fill(part, tree[field], f"{name}.{field}") for field, part in zip(fresh._fields, fresh)))
    if type(tree) is not type(fresh) and not (isinstance(fresh, np.ndarray) and isinstance(tree, np.memmap)):
        raise ValueError(f"{name} is a {type(tree).__name__}, not a {type(fresh).__name__}")
    if isinstance(fresh, np.ndarray):
        if tree.shape != fresh.shape or tree.dtype != fresh.dtype:
            raise ValueError(f"{name} is {tree.dtype} {tree.shape}, not {fresh.dtype} {fresh.shape}")
        fresh[...] = tree
        return fresh
    return tree


def numbers(tree: Any) -> int:
    """How many numbers the arrays of a tree hold."""
    if isinstance(tree, dict):
        return sum(map(numbers, tree.values()))
    return int(np.size(tree))


def check_room(n_classes: int, n_features: int, tree: Any) -> None:
    """Refuse a tree that claims a problem far larger than itself, before a state of that size is made."""
    if n_classes * n_features > max(numbers(tree), ROOM):
        raise ValueError(f"{n_classes} × {n_features} weights are claimed and not there")


def check_places(state: Any, n_classes: int, n_features: int) -> None:
    """Refuse a state that would send compiled code outside its arrays."""

    def between(what: Any, low: int, high: int, name: str) -> None:
        if np.size(what) and not (np.min(what) >= low and np.max(what) <= high):
            raise ValueError(f"{name} points outside its array")

    if hasattr(state, "span"):  # a history of rows
        strip, lines, (first, count, free) = len(state.values), len(state.place), state.span.tolist()
        between(first, 0, max(0, lines - 1), "span")
        between(count, 0, lines, "span")
        between(free, 0, strip, "span")
        between(state.place, 0, strip, "place")
        kept = state.place[(first + np.arange(count)) % max(1, lines)]
        least = 0 if len(state.indices) else n_features  # dense rows are all as wide
        between(kept[:, 1] - kept[:, 0], least, n_features, "place")
        between(state.indices, 0, n_features - 1, "indices")
        between(state.y, 0, n_classes - 1, "y")
    if hasattr(state, "S") and hasattr(state, "size"):  # a kernel's support
        between(state.size[0], 0, len(state.A), "size")


def row_of(tree: Any, sparse: bool, n_features: int, name: str) -> Any:
    """A decision's row."""
    if not sparse:
        return fill(np.empty(n_features), tree, name)
    length = np.size(tree["values"])
    kind = np.int32 if n_features <= np.iinfo(np.int32).max else np.int64
    row = fill(SparseRow(np.empty(length, dtype=kind), np.empty(length)), tree, name)
    if length and not (row.indices[0] >= 0 and row.indices[-1] < n_features and (np.diff(row.indices) > 0).all()):
        raise ValueError(f"{name} holds a column outside 0..{n_features - 1}, or one twice")
    return row
