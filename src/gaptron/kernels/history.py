"""Rows kept for later, as many as there is room for; the oldest make way.

A history is four arrays of an algorithm's own state (any tuple with these fields will do):

    values    one long strip of numbers, the kept rows' entries one row after the other
    indices   beside it, for sparse rows, whose features they are
    place     per kept row, from where to where it lies on the strip
    span      which row is the oldest, how many there are, where the strip is free again

Both the strip and the table of places are rings. `crowded` says that the next row fits only if the oldest is forgotten
first: the caller forgets it, with whatever else it knows of it, and then keeps the new one.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import SettingError
from gaptron.kernels.jit import by_rows, jit
from gaptron.types import Integers, SparseRow, Vector

LARGEST = 1 << 28  # numbers: 2 GiB


class History(NamedTuple):
    """The four arrays."""

    values: Vector
    indices: NDArray[np.int32]
    place: Integers
    span: Integers


def new_history(rows: int, n_features: int, sparse: bool, nonzeros: int) -> History:
    """Room for `rows` rows; for sparse ones if they have `nonzeros` entries on average, and always for one."""
    strip = rows * n_features
    if sparse:
        strip = min(strip, max(n_features, rows * nonzeros))
    refuse_beyond(strip, f"a history of {rows} rows", "a smaller memory=...")
    indices = np.zeros(strip if sparse else 0, dtype=np.int32)
    return History(np.zeros(strip), indices, np.zeros((rows, 2), dtype=np.int64), np.zeros(3, dtype=np.int64))


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
    first, count, end = h.span[0], h.span[1], h.span[2]
    if count == 0:
        return 0
    if count == h.place.shape[0]:
        return -1
    head = h.place[first, 0]
    if end > head:
        if end + size <= h.values.shape[0]:
            return int(end)
        return 0 if size <= head else -1
    return int(end) if end + size <= head else -1


@jit
def crowded(h: Any, x: Any) -> bool:
    """Must the oldest row go before this one can be kept?"""
    return free(h, entries(x)) < 0


@jit
def slot(h: Any, i: int) -> int:
    """The line of the i-th oldest row in `place`, and in whatever tables the algorithm keeps beside it."""
    return int((h.span[0] + i) % h.place.shape[0])


@jit
def forget(h: Any) -> None:
    """Drop the oldest row."""
    h.span[0] = (h.span[0] + 1) % h.place.shape[0]
    h.span[1] -= 1


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
    """Copy the row; returns its line in `place`. There must be room. O(nnz)."""
    a, i = free(h, entries(x)), slot(h, h.span[1])
    h.place[i, 0], h.place[i, 1] = a, copy(h, x, a)
    h.span[1] += 1
    h.span[2] = a + entries(x)
    return i


def _recall_dense(h: Any, x: Any, i: int) -> Any:
    return h.values[h.place[i, 0] : h.place[i, 1]]


def _recall_sparse(h: Any, x: Any, i: int) -> Any:
    a, b = h.place[i, 0], h.place[i, 1]
    return SparseRow(h.indices[a:b], h.values[a:b])


recall = by_rows(_recall_dense, _recall_sparse)
recall.__doc__ = "The row on line i of `place`; x, any row, only says of which kind."
