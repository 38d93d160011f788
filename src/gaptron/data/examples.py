"""Examples: the border where a caller's X becomes checked rows of numbers, or one clear error.

Everything past this border takes one of two types and does not check it again:

    examples = checked(X)            many examples: an array, a SciPy sparse matrix, or a `Stream`
    example = checked_example(x)     one example: a one-dimensional array or a 1 × d sparse matrix

    len(examples)                    the number of examples
    examples[t]                      one `Example`, by index; its norm is not computed again
    examples[1000:2000]              some of them, as `Examples`, without a copy
    examples.longest                 the largest norm
    example.as_examples()            one example as the only one of many

`Learner.play`, `predict`, `scores` and `distribution` take `Examples`; the last three also take an `Example`, and
return one row. `decide` and `learn_logged` take an `Example`. To evaluate a log, check it once and take it by index:

    examples = checked(log.X)
    for t in range(len(examples)):
        example = examples[t]
        p = learner.distribution(example)[0]
        learner.learn_logged(example, label, propensity, reward=...)

The rules, for arrays and for files alike:

- Arrays of float32 and float64 stay as they are; every other number becomes float64; text is refused.
- Every number is finite, and an example is zero or has a norm between `SMALLEST_NORM` and `LARGEST_NORM`.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gaptron.errors import InputError
from gaptron.types import Row, Rows, Sparse, SparseRow, Vector

CSR: TypeAlias = "sp.csr_array[Any, tuple[int, int]]"
Table: TypeAlias = "NDArray[Any] | sp.csr_array[Any, tuple[int, int]]"
"""Examples as NumPy or SciPy hold them: a C-contiguous array, or a canonical CSR array, of float32 or float64."""

SMALLEST_NORM, LARGEST_NORM = 1e-60, 1e60
"""The range in which every algorithm, certificate and bound is correct: outside it, fourth powers of norms overflow."""

LARGEST_SINGLE = 1e18  # with tables in single precision: weights of a million such examples are finite

FAR, FEW = 100.0, 20
"""An outlier is `FAR` times as long as every example before it, of which there are at least `FEW`."""

ENCODE = 'encode its columns first, or make the learner with features="auto"'

_CACHED = 1 << 16  # numbers converted at a time, so that they stay in the processor's cache
_DOUBLE = np.dtype(np.float64)


class Example(NamedTuple):
    """One checked example."""

    row: Row
    width: int
    norm: float

    @property
    def sparse(self) -> bool:
        """Whether the row is sparse."""
        return isinstance(self.row, SparseRow)

    def in_layout(self, sparse: bool) -> Row:
        """Return the row in the layout of the learner's weights."""
        row = self.row
        if isinstance(row, SparseRow):
            if sparse:
                return row
            dense = np.zeros(self.width)
            dense[row.indices] = row.values
            return dense
        if not sparse:
            return row
        nonzero = np.flatnonzero(row)
        return SparseRow(nonzero.astype(np.int32), row[nonzero])

    def as_examples(self) -> "Examples":
        """Return the example as the only one of many."""
        return Examples(only_row(sealed_row(self.row)), self.width, np.array([self.norm]))


@dataclass(frozen=True, eq=False, slots=True)
class Examples:
    """Checked examples: nothing past the border checks them again.

    Args:
        rows: the numbers, dense or sparse, read-only.
        width: the number of columns.
        norms: the norm of each example, or an upper bound on it where only that is known.
    """

    rows: Rows
    width: int
    norms: Vector

    def __len__(self) -> int:
        return len(self.norms)

    @overload
    def __getitem__(self, at: int) -> Example: ...
    @overload
    def __getitem__(self, at: slice) -> "Examples": ...
    def __getitem__(self, at: int | slice) -> "Example | Examples":
        rows = self.rows
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            if step != 1:  # a copy
                part = self.as_matrix()[at] if isinstance(rows, Sparse) else np.ascontiguousarray(rows[at])
                return Examples(parts_of(as_table(part)), self.width, self.norms[at])
            stop = max(start, stop)
            inside = (
                rows._replace(indptr=rows.indptr[start : stop + 1]) if isinstance(rows, Sparse) else rows[start:stop]
            )
            return Examples(inside, self.width, self.norms[start:stop])
        norm = self.norms.item(at)
        if not isinstance(rows, Sparse):
            return Example(np.array(rows[at], dtype=np.float64), self.width, norm)
        at = range(len(self))[at]
        entries = slice(rows.indptr.item(at), rows.indptr.item(at + 1))
        row = SparseRow(rows.indices[entries].copy(), rows.values[entries].astype(np.float64))
        return Example(row, self.width, norm)

    @property
    def longest(self) -> float:
        """The largest norm; 0 if there are no examples."""
        return float(self.norms.max(initial=0.0))

    @property
    def outlier(self) -> int | None:
        """The first example that is `FAR` times as long as every one before it, of which there are at least `FEW`."""
        norms = self.norms
        before = np.maximum.accumulate(norms[:-1])
        far = np.flatnonzero((norms[1:] > FAR * before) & (before > 0.0))
        far = far[far + 1 >= FEW]
        return int(far[0]) + 1 if far.size else None

    def in_layout(self, sparse: bool) -> Rows:
        """Return the rows in the layout of the learner's weights."""
        rows = self.rows
        if isinstance(rows, Sparse):
            return rows if sparse else sealed(self.as_matrix().toarray().astype(np.float64, copy=False))
        return parts_of(as_table(sp.csr_array(rows))) if sparse else rows

    def as_matrix(self) -> Any:
        """Return a float64 array or a SciPy matrix, to multiply with."""
        rows = self.rows
        if not isinstance(rows, Sparse):
            return rows.astype(np.float64, copy=False)
        first, last = rows.indptr[0], rows.indptr[-1]
        return csr(rows.values[first:last], rows.indices[first:last], rows.indptr - first, self.width)


class MeasuredExamples(NamedTuple):
    """Finite examples with norms of any size, as streams prepare them; `within_range` makes `Examples` of them."""

    X: Table
    norms: Vector


# --- many examples ----------------------------------------------------------------------------------------------


def checked(X: Any) -> Examples:
    """Check a caller's X. A `Stream`, an `Example` and `Examples` have been checked already.

    Args:
        X: an array, a SciPy sparse matrix, a `Stream`, an `Example` or `Examples`.

    Returns:
        The examples, without a copy where type and order are right.

    Raises:
        InputError: X is not a matrix of finite numbers, or a norm is out of range.
    """
    if isinstance(X, Example):
        return X.as_examples()
    ready = X if isinstance(X, Examples) else getattr(X, "checked", None)
    return ready if isinstance(ready, Examples) else within_range(measured(X))


def measured(X: Any, name: str = "X") -> MeasuredExamples:
    """Check that X is a matrix of finite numbers, and compute the norms of its rows; `name` is what errors call it."""
    table, squares = _sparse_table(X, name) if _is_sparse(X) else (as_table(X, name), None)
    sizes = norms(table, squares)
    row = first_not_finite(sizes)
    if row is not None:
        raise InputError(f"row {row} of {name} holds NaN or infinity: clean the data first")
    return MeasuredExamples(table, sizes)


def within_range(examples: MeasuredExamples, name: str = "X") -> Examples:
    """Check that every norm is in range; `name` is what errors call the examples."""
    sizes = examples.norms
    wrong = np.flatnonzero((sizes > LARGEST_NORM) | ((sizes < SMALLEST_NORM) & (sizes > 0.0)))
    if wrong.size:
        raise InputError(f"row {wrong[0]} of {name} {_out_of_range(sizes[wrong[0]])}")
    return Examples(parts_of(examples.X), examples.X.shape[1], sizes)


# --- one example --------------------------------------------------------------------------------------------------


def checked_example(x: Any) -> Example:
    """Check one example. An `Example` has been checked already.

    Args:
        x: a one-dimensional array, a 1 × d array or sparse matrix, or an `Example`.

    Returns:
        The example, with a copy of its numbers: a decision may outlive the caller's array.

    Raises:
        InputError: x is not one row of finite numbers, or its norm is out of range.
    """
    return x if isinstance(x, Example) else example_of(*as_row(x))


def example_of(row: Row, width: int) -> Example:
    """Make an `Example` of a row in canonical form; refused if its norm is out of range."""
    values: Vector = row.values if isinstance(row, SparseRow) else row
    norm = math.sqrt(np.vdot(values, values))  # the one product that does not warn of an overflow
    if not SMALLEST_NORM <= norm <= LARGEST_NORM:
        norm = float(norms(values[None])[0])
        if not math.isfinite(norm):
            raise InputError("x holds NaN or infinity: clean the data first")
        if norm > 0.0:
            raise InputError(f"x {_out_of_range(norm)}")
    return Example(row, width, norm)


def as_row(x: Any) -> tuple[Row, int]:
    """A copy of one row, and its width. Values are not checked."""
    if type(x) is np.ndarray and x.dtype is _DOUBLE and x.ndim == 1:  # the usual case first: live rounds are short
        return x.copy(), len(x)
    if _is_sparse(x):
        table, _ = _sparse_table(x if x.ndim == 2 else x.reshape(1, -1))
        if table.shape[0] != 1:
            raise InputError(f"x must be one row; it has {table.shape[0]}")
        return SparseRow(table.indices.copy(), table.data.astype(np.float64)), table.shape[1]
    if isinstance(x, np.ma.MaskedArray):
        raise InputError("x is a masked array, and masked values are not supported: fill them first")
    try:
        given = np.asarray(x)
    except (TypeError, ValueError):
        raise InputError("x must be a one-dimensional array of numbers or a 1 × d sparse matrix") from None
    if given.ndim == 2 and given.shape[0] == 1:
        given = given[0]
    if given.ndim != 1:
        raise InputError(f"x must be one row; its shape is {given.shape}")
    row = np.array(_as_floats(given, "x"), dtype=np.float64)
    return row, row.shape[0]


# --- tables -------------------------------------------------------------------------------------------------------


def _out_of_range(norm: float) -> str:
    return (
        f"has norm {norm:.3g}; a row must be zero or have a norm between {SMALLEST_NORM:g} and {LARGEST_NORM:g}: "
        "scale the rows, for example each to norm 1"
    )


def parts_of(table: Table) -> Rows:
    """The rows of a canonical table; its values are not checked again."""
    if sp.issparse(table):
        return Sparse(sealed(table.indptr), sealed(table.indices), sealed(table.data))
    return sealed(table)


def sealed(rows: NDArray[Any]) -> NDArray[Any]:
    """A read-only view: one type for the compiler, whether the numbers are the caller's or in a mapped file."""
    view = rows.view(np.ndarray)
    view.flags.writeable = False
    return view


def sealed_row(x: Row) -> Row:
    """A read-only view of one row, as `play` gives rows to the compiler."""
    return SparseRow(sealed(x.indices), sealed(x.values)) if isinstance(x, SparseRow) else sealed(x)


def only_row(x: Row) -> NDArray[np.float64] | Sparse:
    """One row as a matrix of one row, read-only if the row is."""
    if not isinstance(x, SparseRow):
        return x[None]
    ends = np.array((0, len(x.indices)), dtype=np.int32)
    ends.flags.writeable = False
    return Sparse(ends, x.indices, x.values)


def as_table(X: Any, name: str = "X") -> Table:
    """Convert X to a C-contiguous array or a canonical CSR array of floats, without a copy if it is one already."""
    if _is_sparse(X):
        return _sparse_table(X, name)[0]
    if isinstance(X, np.ma.MaskedArray):
        raise InputError(f"{name} is a masked array, and masked values are not supported: fill them first")
    try:
        table = np.asarray(X)
    except ValueError as problem:
        raise InputError(f"{name} is neither a rectangular array nor a SciPy sparse matrix: {problem}") from None
    if table.ndim != 2:
        raise InputError(f"{name} must have two dimensions (rounds × features); it has {table.ndim}")
    return np.ascontiguousarray(_as_floats(table, name))


def _as_floats(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Keep float32 and float64, and convert other numbers to float64."""
    kind = values.dtype
    if kind in (_DOUBLE, np.float32):
        return values
    if kind.kind == "c":
        raise InputError(f"{name} holds complex numbers")
    words = kind.kind == "O" and any(isinstance(value, (str, bytes)) for value in values.flat)
    if kind.kind not in "biufO" or words:
        raise InputError(f"{name} holds {'text' if words else kind}, not numbers: {ENCODE}")
    try:
        with np.errstate(over="ignore"):  # a number too large for float64 becomes infinite, and its row is refused
            return values.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as problem:
        raise InputError(f"{name} holds a value that is not a number ({problem}): {ENCODE}") from None


def _is_sparse(X: Any) -> bool:
    return not isinstance(X, np.ndarray) and bool(sp.issparse(X))


def _sparse_table(X: Any, name: str = "X") -> tuple[CSR, Vector]:
    """Convert X to a canonical CSR array, and compute ‖x‖² of every row."""
    if X.ndim != 2:
        raise InputError(f"{name} must have two dimensions (rounds × features); it has {X.ndim}")
    try:
        if X.format in ("csc", "bsr"):
            X.check_format(full_check=True)  # converting a damaged matrix would write outside its memory
        X = X.tocsr()
    except ValueError as problem:
        raise InputError(f"{name} is a damaged sparse matrix ({problem})") from None
    T, width = X.shape
    starts, places, values = X.indptr, X.indices, X.data
    if len(starts) != T + 1 or starts[0] != 0 or (np.diff(starts) < 0).any():
        raise InputError(f"{name} is a damaged sparse matrix: its row pointers do not fit its entries")
    entries = int(starts[-1])
    if entries > min(len(places), len(values)):
        raise InputError(f"{name} is a damaged sparse matrix: its row pointers do not fit its entries")
    # A new object over the same memory: SciPy computes its flag for sorted rows once and trusts it from then on.
    table = csr(_as_floats(values[:entries], name), places[:entries], starts, width)
    tidy, squares = _inspected(table)
    if tidy:
        return table, squares
    if table.indices.min() < 0 or table.indices.max() >= width:
        raise InputError(f"{name} is a damaged sparse matrix: it holds a column index outside 0..{width - 1}")
    table = table.copy()
    table.sum_duplicates()
    return table, _squares(table)


def _inspected(X: CSR) -> tuple[bool, Vector]:
    """Whether the indices of every row increase and lie within the width, and ‖x‖² of every row."""
    from gaptron.kernels.csr import inspect  # noqa: PLC0415

    squares = np.empty(X.shape[0])
    return bool(inspect(sealed(X.indptr), sealed(X.indices), sealed(X.data), X.shape[1], squares)), squares


def csr(values: Any, indices: Any, ends: Any, width: int) -> CSR:
    """Build a CSR array, with 32-bit indices where they suffice."""
    narrow = np.int32 if max(width, len(values)) < 2**31 else np.int64
    parts = (values, np.asarray(indices, dtype=narrow), np.asarray(ends, dtype=narrow))
    return sp.csr_array(parts, shape=(len(ends) - 1, width))


def norms(X: Table, squares: Vector | None = None) -> Vector:
    """Compute ‖x‖ of every row, also where squares overflow or underflow; not finite if the row is not.

    Args:
        X: the table.
        squares: ‖x‖² of every row, where it is known.

    Returns:
        The norms.
    """
    with np.errstate(all="ignore"):
        sizes: Vector = np.sqrt(_squares(X) if squares is None else squares)
        unsure = np.flatnonzero(~((sizes > 1e-150) & (sizes < 1e150)))
        if unsure.size:
            part = X[unsure]
            largest = _largest(part) if sp.issparse(part) else abs(part).max(axis=1, initial=0.0)
            scale = np.where((largest > 0.0) & np.isfinite(largest), largest, 1.0).astype(np.float64)
            exact = np.minimum(scale * np.sqrt(_squares(divided(part, scale))), np.finfo(np.float64).max)
            sizes[unsure] = np.where(np.isfinite(largest), exact, largest)
    return sizes


def first_not_finite(sizes: Vector) -> int | None:
    """The index of the first norm that is NaN or infinite; None if all are finite."""
    bad = np.flatnonzero(~np.isfinite(sizes))
    return int(bad[0]) if bad.size else None


def divided(X: Table, sizes: Vector) -> Table:
    """Divide each row by its size."""
    if sp.issparse(X):
        values = (X.data / np.repeat(sizes, np.diff(X.indptr))).astype(X.dtype, copy=False)
        return csr(values, X.indices, X.indptr, X.shape[1])
    return np.divide(X, sizes[:, None]).astype(X.dtype, copy=False)


def _squares(X: Table) -> Vector:
    """‖x‖² of every row, in memory that does not depend on the width."""
    if sp.issparse(X):
        return _inspected(X)[1]
    if X.dtype == np.float64:
        squares: Vector = np.vecdot(X, X)
        return squares
    step = max(1, _CACHED // max(1, X.shape[1]))
    chunks = (X[at : at + step].astype(np.float64) for at in range(0, len(X), step))
    return np.concatenate([np.zeros(0), *(np.vecdot(chunk, chunk) for chunk in chunks)])


def _largest(X: CSR) -> Vector:
    """The largest |value| of each sparse row; 0 for an empty row."""
    result = np.zeros(X.shape[0])
    filled = np.flatnonzero(np.diff(X.indptr))
    if filled.size:
        result[filled] = np.maximum.reduceat(abs(X.data), X.indptr[filled])
    return result
