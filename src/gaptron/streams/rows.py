"""Rows in memory, dense or sparse: made tidy without ever writing into what was given."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gaptron.types import Vector

CSR: TypeAlias = "sparse.csr_array[Any, tuple[int, int]]"
Rows: TypeAlias = "NDArray[Any] | sparse.csr_array[Any, tuple[int, int]]"


def csr(values: Any, indices: Any, ends: Any, width: int) -> CSR:
    """Rows from their parts, the indices in 32 bits where they fit."""
    narrow = np.int32 if max(width, len(values)) < 2**31 else np.int64
    parts = (values, np.asarray(indices, dtype=narrow), np.asarray(ends, dtype=narrow))
    return sparse.csr_array(parts, shape=(len(ends) - 1, width))


def tidy_rows(X: Any) -> Rows:
    """C-contiguous floats, or a canonical CSR array of float64. Shares memory with X where it can.

    Small integers and float32 become float32, which holds them exactly; everything else float64.
    """
    return _tidy_sparse(X) if sparse.issparse(X) else _tidy_dense(np.asarray(X))


def _numbers(kind: np.dtype[Any]) -> bool:
    if kind.kind not in "biufO":
        raise TypeError(f"it holds {kind}")
    return kind.kind != "O"


def _tidy_dense(X: NDArray[Any]) -> NDArray[Any]:
    small = _numbers(X.dtype) and np.result_type(X.dtype, np.float32) == np.float32
    return np.ascontiguousarray(X, dtype=np.float32 if small else np.float64)


def _tidy_sparse(X: Any) -> CSR:
    _numbers(X.dtype)
    parts = X.tocsr()
    rows = csr(np.asarray(parts.data, dtype=np.float64), parts.indices, parts.indptr, X.shape[1])
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def row_of(X: CSR, position: int) -> int:
    """The row that holds the stored value number `position`."""
    return int(np.searchsorted(X.indptr, position, side="right")) - 1


def first_not_finite(X: Rows) -> int | None:
    """The first row with NaN or ±∞, None if there is none."""
    values = X.data if sparse.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(values)):  # NaN and ∞ survive a sum, and a sum is cheaper than a mask
            return None
    if sparse.issparse(X):
        bad = np.flatnonzero(~np.isfinite(X.data))
        return row_of(X, int(bad[0])) if bad.size else None
    bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
    return int(bad[0]) if bad.size else None


def _norms(X: Rows) -> Vector:
    size: Vector
    if sparse.issparse(X):
        size = np.sqrt(csr(np.square(X.data), X.indices, X.indptr, X.shape[1]) @ np.ones(X.shape[1]))
    else:
        size = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    return size


def norms(X: Rows) -> Vector:
    """‖x‖ of every row, also where the squares are past the range of floats."""
    with np.errstate(over="ignore", under="ignore"):
        size = _norms(X)
    wild = np.flatnonzero(~(size < 1e150) | (size < 1e-150))
    if wild.size:
        largest = np.asarray(abs(X[wild]).max(axis=1).toarray() if sparse.issparse(X) else abs(X[wild]).max(axis=1))
        scale = np.where(largest > 0, largest, 1.0).ravel().astype(np.float64)
        size[wild] = scale * _norms(divided(X[wild], scale))
    return size


def divided(X: Rows, sizes: Vector) -> Rows:
    """Each row over its size."""
    if sparse.issparse(X):
        return csr(X.data / np.repeat(sizes, np.diff(X.indptr)), X.indices, X.indptr, X.shape[1])
    return np.divide(X, sizes[:, None]).astype(X.dtype, copy=False)
