"""Validation: a caller's X and y become rows and codes here, or one clear error does. Inside, nobody checks again."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gaptron.errors import InputError
from gaptron.types import Integers, Matrix, Rows, Sparse, SparseRow

Labels = Sequence[Any] | NDArray[Any]


def as_rows(X: Any) -> tuple[Rows, int]:
    """X as rows and its width. Copies only what has the wrong type or order."""
    if sp.issparse(X):
        return _sparse_rows(X)
    try:
        rows = np.asarray(X)
    except ValueError as problem:
        raise InputError(f"X is neither a rectangular array nor a SciPy sparse matrix: {problem}") from None
    if rows.ndim != 2:
        raise InputError(f"X must have two dimensions (rounds × features); it has {rows.ndim}")
    if rows.dtype.kind == "c":
        raise InputError("X holds complex numbers")
    if rows.dtype not in (np.float64, np.float32):
        try:
            rows = rows.astype(np.float64)
        except (TypeError, ValueError):
            raise InputError(f"X holds {rows.dtype}, not numbers: encode its columns first") from None
    return _sealed(np.ascontiguousarray(rows)), rows.shape[1]


def _sealed(rows: NDArray[Any]) -> NDArray[Any]:
    """The same numbers, not for writing: one type to the compiler, whether they are the caller's or a mapped file."""
    view = rows.view(np.ndarray)
    view.flags.writeable = False
    return view


def _sparse_rows(X: Any) -> tuple[Sparse, int]:
    if X.ndim != 2:
        raise InputError(f"X must have two dimensions (rounds × features); it has {X.ndim}")
    if X.dtype.kind == "c":
        raise InputError("X holds complex numbers")
    X = X.tocsr()
    width = X.shape[1]
    starts = X.indptr
    if starts[0] != 0 or starts[-1] > len(X.indices) or (np.diff(starts) < 0).any():
        raise InputError("X's row pointers do not fit its entries: the matrix is damaged")
    if X.nnz and (X.indices.min() < 0 or X.indices.max() >= width):
        raise InputError(f"X holds a column index outside 0..{width - 1}: the matrix is damaged")
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    values = X.data if X.data.dtype in (np.float64, np.float32) else X.data.astype(np.float64)
    small = max(width, X.nnz) <= np.iinfo(np.int32).max
    kind = np.int32 if small else np.int64
    pointers, places = X.indptr.astype(kind, copy=False), X.indices.astype(kind, copy=False)
    return Sparse(_sealed(pointers), _sealed(places), _sealed(values)), width


def as_row(x: Any) -> tuple[NDArray[np.float64] | SparseRow, int]:
    """One row of its own (a copy, for a decision may outlive the caller's array) and its width."""
    if not isinstance(x, np.ndarray) and sp.issparse(x):
        x = cast(Any, x)
        rows, width = as_rows(x if x.ndim == 2 else x.reshape(1, -1))
        assert isinstance(rows, Sparse)
        if len(rows.indptr) != 2:
            raise InputError(f"x must be one row; it has {len(rows.indptr) - 1}")
        return SparseRow(rows.indices.copy(), rows.values.astype(np.float64)), width
    try:
        row = np.array(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("x must be a one-dimensional array of numbers or a 1 × d sparse matrix") from None
    if row.ndim == 2 and row.shape[0] == 1:
        row = row[0]
    if row.ndim != 1:
        raise InputError(f"x must be one row; its shape is {row.shape}")
    return row, row.shape[0]


def n_rows(rows: Rows) -> int:
    """How many rounds."""
    return len(rows.indptr) - 1 if isinstance(rows, Sparse) else len(rows)


def block(rows: Rows, start: int, stop: int, sparse: bool, width: int) -> Rows:
    """Rows start to stop in the layout the learner's weights have."""
    if isinstance(rows, Sparse):
        part = Sparse(rows.indptr[start : stop + 1], rows.indices, rows.values)
        return part if sparse else _sealed(to_dense(part, width))
    return _sparse_rows(sp.csr_matrix(rows[start:stop]))[0] if sparse else rows[start:stop]


def to_dense(rows: Sparse, width: int) -> NDArray[np.float64]:
    """Sparse rows written out."""
    first, last = rows.indptr[0], rows.indptr[-1]
    parts = (rows.values[first:last], rows.indices[first:last], rows.indptr - first)
    return sp.csr_matrix(parts, shape=(n_rows(rows), width)).toarray().astype(np.float64, copy=False)


def row_like(row: NDArray[np.float64] | SparseRow, sparse: bool, width: int) -> NDArray[np.float64] | SparseRow:
    """One row in the layout the learner's weights have."""
    if isinstance(row, SparseRow):
        if sparse:
            return row
        dense = np.zeros(width)
        dense[row.indices] = row.values
        return dense
    if not sparse:
        return row
    nonzero = np.flatnonzero(row)
    return SparseRow(nonzero.astype(np.int32), row[nonzero])


class Classes:
    """The labels a caller uses, and their codes 0..K-1."""

    def __init__(self, labels: Iterable[Any]) -> None:
        try:
            self.labels = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
        except TypeError:
            raise InputError(f"classes={labels!r} must be a list of labels") from None
        try:
            self._codes = {label: code for code, label in enumerate(self.labels)}
        except TypeError:
            raise InputError("classes must be plain labels, such as words or numbers") from None
        if len(self._codes) != len(self.labels):
            raise InputError("classes holds a label twice")
        self._plain = self.labels == tuple(range(len(self.labels)))
        self._array = _as_they_are(self.labels)
        kinds = {type(label) for label in self.labels}
        if kinds <= {int, float, bool} or kinds == {str}:
            self._array = np.array(self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    def code(self, label: Any) -> int:
        """The code of one label."""
        if isinstance(label, np.generic):
            label = label.item()
        try:
            return self._codes[label]
        except (KeyError, TypeError):
            raise InputError(self._stranger(label)) from None

    def codes(self, y: Labels) -> Integers:
        """The codes of many labels."""
        # A list may mix words and numbers, which an array would turn into words.
        labels = np.asarray(y) if not isinstance(y, (list, tuple)) or self._plain else _as_they_are(y)
        if labels.ndim != 1:
            raise InputError(f"y must have one dimension; it has {labels.ndim}")
        if self._plain and labels.dtype.kind in "iu":
            bad = (labels < 0) | (labels >= len(self))
            if bad.any():
                at = int(np.flatnonzero(bad)[0])
                raise InputError(f"row {at}: {self._stranger(labels[at].item())}")
            return labels.astype(np.int64)
        codes = np.empty(len(labels), dtype=np.int64)
        known = self._codes
        for at, label in enumerate(labels.tolist()):
            try:
                codes[at] = known[label]
            except (KeyError, TypeError):
                raise InputError(f"row {at}: {self._stranger(label)}") from None
        return codes

    def decode(self, codes: Integers) -> NDArray[Any]:
        """The labels of many codes."""
        return codes.copy() if self._plain else self._array[codes]

    def _stranger(self, label: Any) -> str:
        if label is None or (isinstance(label, float) and math.isnan(label)):
            return "the label is missing"
        shown = ", ".join(map(repr, self.labels[:5])) + (", ..." if len(self) > 5 else "")
        return f"label {label!r} is not one of the {len(self)} classes ({shown})"


def as_advice(advice: Any, rounds: int, classes: Classes) -> Matrix:
    """What a caller's own model says, round by round, as probabilities: given as such, rounds × K, or as labels."""
    try:
        said = np.asarray(advice)
    except ValueError as problem:
        raise InputError(f"advice is not a rectangular array: {problem}") from None
    if said.ndim == 1:
        try:
            codes = classes.codes(advice)
        except InputError as problem:
            raise InputError(f"advice, {problem}") from None
        table = np.zeros((len(codes), len(classes)))
        table[np.arange(len(codes)), codes] = 1.0
    else:
        if said.ndim != 2 or said.dtype.kind not in "biuf" or said.shape[1] != len(classes):
            raise InputError(
                f"advice must hold a label or {len(classes)} probabilities for each round, "
                f"not an array of {said.dtype} of shape {said.shape}"
            )
        table = said.astype(np.float64)
        bad = ~(np.isfinite(table).all(axis=1) & (table >= 0.0).all(axis=1))
        with np.errstate(over="ignore", invalid="ignore"):
            total = table.sum(axis=1)
        bad |= ~((total > 0.0) & np.isfinite(total))
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            raise InputError(
                f"advice of round {at} is no distribution over labels: {said[at].tolist()}; "
                "it must hold finite numbers of at least 0 that do not sum to 0"
            )
        table /= total[:, None]
    if len(table) != rounds:
        raise InputError(f"advice is for {len(table)} rounds, but there are {rounds}")
    return table


def _as_they_are(y: Sequence[Any]) -> NDArray[Any]:
    labels = np.empty(len(y), dtype=object)
    for at, label in enumerate(y):
        labels[at] = label.item() if isinstance(label, np.generic) else label
    return labels
