"""The tuples of a learner (settings, state, examples) as plain trees of strings, numbers and arrays, and back.

A tree may come from an attacker, and compiled code does not check where it writes. A tuple is therefore only filled in:
a new one of the right algorithm determines fields, types and shapes, no number of the tree sizes or indexes anything,
and the few numbers that compiled code uses as indices are checked by the algorithm's own `check_state`.
"""

import math
from itertools import pairwise
from typing import Any

import numpy as np

from gaptron.types import Row, SparseRow

UNCHECKED = 1 << 28  # weights that are allocated without checking that the tree holds as many
MOST = 1 << 53  # the largest count: more rounds than anybody will play, and no sum of it overflows
CLOSE = 1e-9  # settings come from formulas; another machine may round their last digits differently


def spread(value: Any) -> Any:
    """Convert named tuples and records to dicts, recursively; empty records are left out."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: spread(part) for name, part in zip(value._fields, value) if not _is_none(part)}
    if isinstance(value, np.recarray):
        return {name: value[name].item() for name in value.dtype.names}
    return value


def fill(fresh: Any, tree: Any, name: str) -> Any:
    """Copy the numbers of a tree that `spread` made into the arrays of a new tuple."""
    if isinstance(fresh, tuple) and hasattr(fresh, "_fields"):
        parts = {field: part for field, part in zip(fresh._fields, fresh) if not _is_none(part)}
        check_words(tree, parts, name)
        filled = {field: fill(part, tree[field], f"{name}.{field}") for field, part in parts.items()}
        return type(fresh)(**dict(zip(fresh._fields, fresh)) | filled)
    if isinstance(fresh, np.recarray):
        check_words(tree, fresh.dtype.names, name)
        for word in fresh.dtype.names:
            fresh[word] = _number(tree[word], fresh[word].item(), f"{name}.{word}")
        return fresh
    if type(tree) is not np.ndarray and not isinstance(tree, np.memmap):
        raise ValueError(f"{name} is a {type(tree).__name__}, not an array")
    if tree.shape != fresh.shape or tree.dtype != fresh.dtype:
        raise ValueError(f"{name} is {tree.dtype} {tree.shape}, not {fresh.dtype} {fresh.shape}")
    if tree.dtype.kind == "f" and not np.isfinite(tree).all():
        raise ValueError(f"{name} holds NaN or infinity")
    fresh[...] = tree
    return fresh


def _is_none(part: Any) -> bool:
    return isinstance(part, np.recarray) and len(part) == 0


def check_words(tree: Any, words: Any, name: str) -> None:
    """Check the keys of a dict."""
    if type(tree) is not dict or set(tree) != set(words):
        raise ValueError(f"the fields of {name} are not {', '.join(words)}")


def _number(value: Any, first: int | float, name: str) -> Any:
    """Check a number where a new state has `first`: a count, or a finite number unless it starts as another one."""
    if isinstance(first, int):
        if type(value) is not int or not (0 <= value <= MOST or value == first):  # first may be UNKNOWN
            raise ValueError(f"{name}={value!r} is not a count")
    elif type(value) is not float or not (math.isfinite(value) or value == first):
        raise ValueError(f"{name}={value!r} is not a finite number")
    return value


def same_settings(recommended: Any, tree: Any) -> Any:
    """Check that the settings of a tree are those that this version recommends for the same problem."""
    check_words(tree, recommended._fields, "settings")
    for name, wanted in zip(recommended._fields, recommended):
        value = tree[name]
        alike = type(value) is type(wanted) and (
            math.isclose(value, wanted, rel_tol=CLOSE) if isinstance(wanted, float) else value == wanted
        )
        if not alike:
            raise ValueError(f"its setting {name} is {value!r}, but this version uses {wanted!r}")
    return type(recommended)(*(tree[name] for name in recommended._fields))


def numbers(tree: Any) -> int:
    """The number of numbers in the arrays of a tree."""
    if isinstance(tree, dict):
        return sum(map(numbers, tree.values()))
    return int(np.size(tree))


def same(one: Any, other: Any) -> bool:
    """Whether two trees hold the same values."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(part, other[name]) for name, part in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(np.array_equal(one, other))


def check_size(n_classes: int, n_features: int, tree: Any) -> None:
    """Refuse a tree that claims a problem far larger than itself, before a state of that size is allocated."""
    if n_classes * n_features > max(numbers(tree), UNCHECKED):
        raise ValueError(f"{n_classes} × {n_features} weights are claimed but not present")


# --- examples of decisions ----------------------------------------------------------------------------------


def rows_of(rows: list[Row]) -> dict[str, Any]:
    """Convert rows, dense or sparse, to the three arrays of a CSR matrix. Negative zeros are stored."""
    indices = [row.indices if isinstance(row, SparseRow) else np.flatnonzero(row.view(np.int64)) for row in rows]
    values = [row.values if isinstance(row, SparseRow) else row[at] for row, at in zip(rows, indices)]
    nothing = [np.zeros(0)]
    return {
        "indptr": np.cumsum([0, *map(len, indices)], dtype=np.int64),
        "indices": np.concatenate([*nothing, *indices]).astype(np.int64),
        "values": np.concatenate([*nothing, *values]).astype(np.float64),
    }


def rows_from(tree: Any, count: int, sparse: bool, n_features: int, name: str = "pending.rows") -> list[Row]:
    """Convert the arrays of `rows_of` back to rows, dense or sparse; `name` is what errors call them."""
    check_words(tree, ("indptr", "indices", "values"), name)
    indptr, indices, values = (array_of(tree[part], name) for part in ("indptr", "indices", "values"))
    if not (indptr.dtype == indices.dtype == np.int64 and values.dtype == np.float64):
        raise ValueError(f"{name} is of the wrong types")
    if len(indptr) != count + 1 or indptr[0] != 0 or indptr[-1] != len(indices) or len(indices) != len(values):
        raise ValueError(f"{name} does not hold a row for each decision")
    if (np.diff(indptr) < 0).any() or not np.isfinite(values).all():
        raise ValueError(f"{name} is damaged")
    if len(indices) and not (indices.min() >= 0 and indices.max() < n_features):
        raise ValueError(f"{name} holds a column outside 0..{n_features - 1}")
    if not sparse:
        check_size(count, n_features, tree)
    kind = np.int32 if n_features <= np.iinfo(np.int32).max else np.int64
    rows: list[Row] = []
    for start, stop in pairwise(indptr):
        places = indices[start:stop]
        if (np.diff(places) <= 0).any():
            raise ValueError(f"{name} holds a column twice")
        if sparse:
            rows.append(SparseRow(places.astype(kind), values[start:stop].copy()))
        else:
            row = np.zeros(n_features)
            row[places] = values[start:stop]
            rows.append(row)
    return rows


def array_of(value: Any, name: str) -> Any:
    """Check a one-dimensional array."""
    if not isinstance(value, np.ndarray) or value.ndim != 1:
        raise ValueError(f"{name} is not a list of numbers")
    return value
