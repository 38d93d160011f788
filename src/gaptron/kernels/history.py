"""A buffer of stored examples: when it is full, the oldest are dropped.

A history consists of five arrays in the algorithm's state (any tuple with these fields will do):

    values    the entries of the stored examples, one after the other
    indices   for sparse examples, the feature of each entry
    begin     per example, the position of its first entry
    end       per example, the position after its last entry
    span      first: which example is the oldest, count: how many there are, free: the next free position in `values`

Both `values` and the table of positions are ring buffers. While `is_full`, the caller drops the oldest example, with
whatever else it stores for it; then it appends the new one.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import SettingError
from gaptron.kernels.compile.jit import by_rows, jit
from gaptron.types import Integers, SparseRow, Vector, named

LARGEST = 1 << 28  # numbers of 8 bytes: 2 GiB


class History(NamedTuple):
    """The five arrays."""

    values: Vector
    indices: NDArray[np.int32]
    begin: Integers
    end: Integers
    span: Any


def new_history(rows: int, n_features: int, sparse: bool, nonzeros: int) -> History:
    """Allocate a buffer for `rows` examples; sparse ones may have `nonzeros` entries on average. One always fits."""
    size = rows * n_features
    if sparse:
        size = min(size, max(n_features, rows * nonzeros))
    check_array_size(size, f"a history of {rows} examples", "a smaller memory=...")
    indices = np.zeros(size if sparse else 0, dtype=np.int32)
    begin, end = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    return History(np.zeros(size), indices, begin, end, named(first=0, count=0, free=0))


def check_array_size(numbers: int, what: str, remedy: str) -> None:
    """Refuse an array of more than 2 GiB."""
    if numbers > LARGEST:
        raise SettingError(f"{what} would take {numbers} numbers, {numbers * 8 / 1e9:.1f} GB: give {remedy}")


def _entries_dense(x: Any) -> int:
    return int(x.shape[0])


def _entries_sparse(x: Any) -> int:
    return max(1, int(x.indices.shape[0]))  # at least 1, so that a full ring differs from an empty one


entries = by_rows(_entries_dense, _entries_sparse)
entries.__doc__ = "Return how many positions an example takes in `values`."


@jit
def free(h: Any, size: int) -> int:
    """Return a position in `values` with `size` free numbers, or -1."""
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
def is_full(h: Any, x: Any) -> bool:
    """Return whether the oldest example must be dropped before x fits."""
    return free(h, entries(x)) < 0


@jit
def slot(h: Any, i: int) -> int:
    """Return the index of the i-th oldest example in `begin`, `end` and the algorithm's own tables."""
    return int((h.span[0].first + i) % h.begin.shape[0])


@jit
def drop_oldest(h: Any) -> None:
    """Drop the oldest example."""
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
copy.__doc__ = "Copy an example to `values` from position a on; return the position after it."


@jit
def append(h: Any, x: Any) -> int:
    """Copy x into the buffer, which must not be full, and return its index in `begin` and `end`. O(nnz)."""
    span = h.span[0]
    a, i = free(h, entries(x)), slot(h, span.count)
    h.begin[i], h.end[i] = a, copy(h, x, a)
    span.count += 1
    span.free = a + entries(x)
    return i


def _stored_row_dense(h: Any, x: Any, i: int) -> Any:
    return h.values[h.begin[i] : h.end[i]]


def _stored_row_sparse(h: Any, x: Any, i: int) -> Any:
    a, b = h.begin[i], h.end[i]
    return SparseRow(h.indices[a:b], h.values[a:b])


stored_row = by_rows(_stored_row_dense, _stored_row_sparse, view=True)
stored_row.__doc__ = "Return the example with index i; x, any example, only tells whether it is dense or sparse."


def check_history(h: Any, n_features: int) -> None:
    """Refuse a history, read from a file, that would send compiled code outside its arrays."""
    size, slots, span = len(h.values), len(h.begin), h.span[0]
    if not (0 <= span.first < max(1, slots) and 0 <= span.count <= slots and 0 <= span.free <= size):
        raise ValueError("the history's span points outside its arrays")
    if len(h.indices) and not (h.indices.min() >= 0 and h.indices.max() < n_features):
        raise ValueError(f"the history has a feature outside 0..{n_features - 1}")
    stored = (int(span.first) + np.arange(int(span.count))) % max(1, slots)
    begin, end = h.begin[stored], h.end[stored]
    least = 0 if len(h.indices) else n_features  # a dense example stores every feature
    if not ((begin >= 0).all() and (end <= size).all() and (end - begin >= least).all()):
        raise ValueError("the history has an example outside its buffer")
    if (end - begin > n_features).any():
        raise ValueError(f"the history has an example of more than {n_features} entries")
