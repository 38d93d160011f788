"""Rows kept for later, as many as there is room for; the oldest make way.

A history is five arrays of an algorithm's own state (any tuple with these fields will do):

    values    one long strip of numbers, the kept rows' entries one row after the other
    indices   beside it, for sparse rows, whose features they are
    begin     per kept row, where it begins on the strip
    end       and where it ends
    span      first: which row is the oldest, count: how many there are, free: where the strip is free again

Both the strip and the table of places are rings. `crowded` says that the next row fits only if the oldest is forgotten
first: the caller forgets it, with whatever else it knows of it, and then keeps the new one.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import SettingError
from gaptron.kernels.jit import by_rows, jit
from gaptron.types import Integers, SparseRow, Vector, named

LARGEST = 1 << 28  # numbers: 2 GiB


class History(NamedTuple):
    """The five arrays."""

    values: Vector
    indices: NDArray[np.int32]
    begin: Integers
    end: Integers
    span: Any


def new_history(rows: int, n_features: int, sparse: bool, nonzeros: int) -> History:
    """Room for `rows` rows; for sparse ones if they have `nonzeros` entries on average, and always for one."""
    strip = rows * n_features
    if sparse:
        strip = min(strip, max(n_features, rows * nonzeros))
    refuse_beyond(strip, f"a history of {rows} rows", "a smaller memory=...")
    indices = np.zeros(strip if sparse else 0, dtype=np.int32)
    begin, end = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    return History(np.zeros(strip), indices, begin, end, named(first=0, count=0, free=0))


def refuse_beyond(numbers: int, what: str, way_out: str) -> None:
    """No array of more than 2 GiB is made."""
    if numbers > LARGEST:
        raise SettingError(f"{what} would take {numbers} numbers, {numbers * 8 / 1e9:.1f} GB: give {way_out}")


def _entries_dense(x: Any) -> int:
    return int(x.shape[0])


def _entries_sparse(x: Any) -> int:
    return max(1, int(x.indices.shape[0]))  # an empty row takes a place too, or the ring could not tell full from empty


entries = by_rows(_entries_dense, _entries_sparse)
entries.__doc__ = "How much of the strip a row takes."


@jit
def free(h: Any, size: int) -> int:
    """Where on the strip `size` numbers fit beside all that is kept; -1: nowhere."""
    span = h.span[0]
    if span.count == 0:
        return 0
    if span.count == h.begin.shape[0]:
        return -1
    head = h.begin[span.first]
    if span.free > head:
        if span.free + size <= h.values.shape[0]:
            return int(span.free)
        return 0 if size <= head else -1
    return int(span.free) if span.free + size <= head else -1


@jit
def crowded(h: Any, x: Any) -> bool:
    """Must the oldest row go before this one can be kept?"""
    return free(h, entries(x)) < 0


@jit
def slot(h: Any, i: int) -> int:
    """The line of the i-th oldest row in `begin` and `end`, and in whatever tables the algorithm keeps beside them."""
    return int((h.span[0].first + i) % h.begin.shape[0])


@jit
def forget(h: Any) -> None:
    """Drop the oldest row."""
    span = h.span[0]
    span.first = (span.first + 1) % h.begin.shape[0]
    span.count -= 1


def _copy_dense(h: Any, x: Any, a: int) -> int:
    for j in range(x.shape[0]):
        h.values[a + j] = x[j]
    return int(a + x.shape[0])


def _copy_sparse(h: Any, x: Any, a: int) -> int:
    for j in range(x.indices.shape[0]):
        h.values[a + j] = x.values[j]
        h.indices[a + j] = x.indices[j]
    return int(a + x.indices.shape[0])


copy = by_rows(_copy_dense, _copy_sparse)
copy.__doc__ = "Write a row on the strip from a on; returns where it ends."


@jit
def keep(h: Any, x: Any) -> int:
    """Copy the row; returns its line in `begin` and `end`. There must be room. O(nnz)."""
    span = h.span[0]
    a, i = free(h, entries(x)), slot(h, span.count)
    h.begin[i], h.end[i] = a, copy(h, x, a)
    span.count += 1
    span.free = a + entries(x)
    return i


def _recall_dense(h: Any, x: Any, i: int) -> Any:
    return h.values[h.begin[i] : h.end[i]]


def _recall_sparse(h: Any, x: Any, i: int) -> Any:
    a, b = h.begin[i], h.end[i]
    return SparseRow(h.indices[a:b], h.values[a:b])


recall = by_rows(_recall_dense, _recall_sparse, view=True)
recall.__doc__ = "The row on line i; x, any row, only says of which kind."


def check_history(h: Any, n_features: int) -> None:
    """Refuse a history, read from a file, that would send compiled code outside its arrays."""
    strip, lines, span = len(h.values), len(h.begin), h.span[0]
    if not (0 <= span.first < max(1, lines) and 0 <= span.count <= lines and 0 <= span.free <= strip):
        raise ValueError("the history's span points outside its arrays")
    if len(h.indices) and not (h.indices.min() >= 0 and h.indices.max() < n_features):
        raise ValueError(f"the history holds a column outside 0..{n_features - 1}")
    kept = (int(span.first) + np.arange(int(span.count))) % max(1, lines)
    begin, end = h.begin[kept], h.end[kept]
    least = 0 if len(h.indices) else n_features  # dense rows are all as wide
    if not ((begin >= 0).all() and (end <= strip).all() and (end - begin >= least).all()):
        raise ValueError("the history holds a row outside its strip")
    if (end - begin > n_features).any():
        raise ValueError(f"the history holds a row of more than {n_features} numbers")
