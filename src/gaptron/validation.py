"""Validation: a caller's X and y become rows and codes here, or one clear error does. Inside, nobody checks again.

The rules, for arrays and for files alike:

- Rows of float32 and float64 stay as they are; every other kind of number becomes float64; texts are not numbers.
- Every number is finite, and a row is zero or has a norm between `SMALLEST_NORM` and `LARGEST_NORM`.
- Labels stay as they are: 3 and "3" are two labels. Only None and NaN, which mean that a label is missing, are none.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gaptron.errors import DecisionError, InputError
from gaptron.types import Flags, Integers, Matrix, Row, Rows, RowsToCome, Sparse, SparseRow, Vector

Labels = Sequence[Any] | NDArray[Any]

CSR: TypeAlias = "sp.csr_array[Any, tuple[int, int]]"
Table: TypeAlias = "NDArray[Any] | sp.csr_array[Any, tuple[int, int]]"
"""Rows as NumPy or SciPy hold them: a C-contiguous array, or a canonical CSR array, of float32 or float64."""

SMALLEST_NORM, LARGEST_NORM = 1e-60, 1e60
"""Where every algorithm, certificate and bound is right: past these, fourth powers of norms leave float64."""

FAR, FEW = 100.0, 20  # how many times as long as all before a row must be to be called an outlier, and before how many

ENCODE = 'encode its columns first, or make the learner with features="auto"'

_PIECE = 1 << 16
_DOUBLE = np.dtype(np.float64)


class MeasuredRows(NamedTuple):
    """Rows of finite numbers, and the norm of each, whatever its size."""

    X: Table
    norms: Vector


class CheckedRows(NamedTuple):
    """Rows that a learner may play: nothing about them is left to check."""

    rows: Rows
    width: int
    longest: float  # no row has a larger norm; 0 if there are no rows
    outlier: int | None = None  # the first row that is `FAR` times as long as every row before it

    def first(self, count: int) -> "CheckedRows":
        """The first rows alone."""
        return self._replace(rows=block(self.rows, 0, count, isinstance(self.rows, Sparse), self.width))


class CheckedRow(NamedTuple):
    """One row that a learner may play."""

    row: NDArray[np.float64] | SparseRow
    width: int
    norm: float


# --- rows -------------------------------------------------------------------------------------------------------


def checked(X: Any) -> CheckedRows:
    """X, ready to be played. What has been checked before, such as a `Stream`, is not looked at again."""
    ready = X if isinstance(X, CheckedRows) else getattr(X, "checked", None)
    return ready if isinstance(ready, CheckedRows) else within_range(measured(X))


def measured(X: Any) -> MeasuredRows:
    """X as rows of finite numbers, with their norms."""
    table, squares = _sparse_table(X) if _is_sparse(X) else (as_table(X), None)
    sizes = norms(table, squares)
    row = first_not_finite(sizes)
    if row is not None:
        raise InputError(f"row {row} of X holds NaN or infinity: clean the data first")
    return MeasuredRows(table, sizes)


def within_range(rows: MeasuredRows, name: str = "X") -> CheckedRows:
    """Rows whose norms are right for every algorithm; refused if one is too long or too short."""
    sizes = rows.norms
    wrong = np.flatnonzero((sizes > LARGEST_NORM) | ((sizes < SMALLEST_NORM) & (sizes > 0.0)))
    if wrong.size:
        raise InputError(f"row {wrong[0]} of {name} {_out_of_range(sizes[wrong[0]])}")
    return CheckedRows(parts_of(rows.X), rows.X.shape[1], float(sizes.max(initial=0.0)), _outlier(sizes))


def _outlier(sizes: Vector) -> int | None:
    """The first row, after a few, that is far longer than all before it."""
    before = np.maximum.accumulate(sizes[:-1])
    far = np.flatnonzero((sizes[1:] > FAR * before) & (before > 0.0))
    far = far[far + 1 >= FEW]
    return int(far[0]) + 1 if far.size else None


def checked_row(x: Any) -> CheckedRow:
    """One row of its own, ready to be decided on."""
    return x if isinstance(x, CheckedRow) else within_range_row(*as_row(x))


def within_range_row(row: NDArray[np.float64] | SparseRow, width: int) -> CheckedRow:
    """A row whose norm is right for every algorithm; refused if it is too long or too short."""
    values: Vector = row.values if isinstance(row, SparseRow) else row
    norm = math.sqrt(np.vdot(values, values))  # the one product that says nothing of an overflow
    if not SMALLEST_NORM <= norm <= LARGEST_NORM:
        norm = float(norms(values[None])[0])
        if not math.isfinite(norm):
            raise InputError("x holds NaN or infinity: clean the data first")
        if norm > 0.0:
            raise InputError(f"x {_out_of_range(norm)}")
    return CheckedRow(row, width, norm)


def as_rows_of_one(x: CheckedRow) -> CheckedRows:
    """One row as the only one of many."""
    return CheckedRows(only_row(sealed_row(x.row)), x.width, x.norm)


def _out_of_range(norm: float) -> str:
    return (
        f"has norm {norm:.3g}; a row must be zero or have a norm between {SMALLEST_NORM:g} and {LARGEST_NORM:g}: "
        "scale the rows, for example each to norm 1"
    )


def as_rows(X: Any) -> tuple[Rows, int]:
    """X as rows and its width. Copies only what has the wrong type or order; refuses no value."""
    table = as_table(X)
    return parts_of(table), table.shape[1]


def parts_of(table: Table) -> Rows:
    """The rows of a table that is tidy: no value is looked at again."""
    if sp.issparse(table):
        return Sparse(sealed(table.indptr), sealed(table.indices), sealed(table.data))
    return sealed(table)


def sealed(rows: NDArray[Any]) -> NDArray[Any]:
    """The same numbers, not for writing: one type to the compiler, whether they are the caller's or a mapped file."""
    view = rows.view(np.ndarray)
    view.flags.writeable = False
    return view


def sealed_row(x: Row) -> Row:
    """The same for one row, as `play` gives rows to the compiler."""
    return SparseRow(sealed(x.indices), sealed(x.values)) if isinstance(x, SparseRow) else sealed(x)


def only_row(x: Row) -> NDArray[np.float64] | Sparse:
    """One row as the only one of many, sealed if it is."""
    if not isinstance(x, SparseRow):
        return x[None]
    ends = np.array((0, len(x.indices)), dtype=np.int32)
    ends.flags.writeable = False
    return Sparse(ends, x.indices, x.values)


def as_table(X: Any) -> Table:
    """X as a C-contiguous array or a canonical CSR array of floats. Copies only what has the wrong type or order."""
    if _is_sparse(X):
        return _sparse_table(X)[0]
    if isinstance(X, np.ma.MaskedArray):
        raise InputError("X is a masked array, whose masked values have no meaning here: fill them first")
    try:
        table = np.asarray(X)
    except ValueError as problem:
        raise InputError(f"X is neither a rectangular array nor a SciPy sparse matrix: {problem}") from None
    if table.ndim != 2:
        raise InputError(f"X must have two dimensions (rounds × features); it has {table.ndim}")
    return np.ascontiguousarray(_as_floats(table, "X"))


def _as_floats(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Float32 and float64 as they are, other numbers as float64."""
    kind = values.dtype
    if kind in (_DOUBLE, np.float32):
        return values
    if kind.kind == "c":
        raise InputError(f"{name} holds complex numbers")
    words = kind.kind == "O" and any(isinstance(value, (str, bytes)) for value in values.flat)
    if kind.kind not in "biufO" or words:
        raise InputError(f"{name} holds {'texts' if words else kind}, not numbers: {ENCODE}")
    try:
        with np.errstate(over="ignore"):  # a number past float64 becomes infinite, which is refused by its row
            return values.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as problem:
        raise InputError(f"{name} holds what is not a number ({problem}): {ENCODE}") from None


def _is_sparse(X: Any) -> bool:
    return not isinstance(X, np.ndarray) and bool(sp.issparse(X))


def _sparse_table(X: Any) -> tuple[CSR, Vector]:
    """X as a canonical CSR array, and ‖x‖² of every row."""
    if X.ndim != 2:
        raise InputError(f"X must have two dimensions (rounds × features); it has {X.ndim}")
    try:
        if X.format in ("csc", "bsr"):
            X.check_format(full_check=True)  # converting one that is damaged would write outside its memory
        X = X.tocsr()
    except ValueError as problem:
        raise InputError(f"X's parts do not fit together: the matrix is damaged ({problem})") from None
    T, width = X.shape
    starts, places, values = X.indptr, X.indices, X.data
    if len(starts) != T + 1 or starts[0] != 0 or (np.diff(starts) < 0).any():
        raise InputError("X's row pointers do not fit its entries: the matrix is damaged")
    entries = int(starts[-1])
    if entries > min(len(places), len(values)):
        raise InputError("X's row pointers do not fit its entries: the matrix is damaged")
    # A new object over the same memory: SciPy sets its flag for sorted rows once and believes it for ever.
    table = csr(_as_floats(values[:entries], "X"), places[:entries], starts, width)
    tidy, squares = _inspected(table)
    if tidy:
        return table, squares
    if table.indices.min() < 0 or table.indices.max() >= width:
        raise InputError(f"X holds a column index outside 0..{width - 1}: the matrix is damaged")
    table = table.copy()
    table.sum_duplicates()
    return table, _squares(table)


def _inspected(X: CSR) -> tuple[bool, Vector]:
    """Whether the indices of every row go up and lie within the width, and ‖x‖² of every row."""
    from gaptron.kernels.csr import inspect  # noqa: PLC0415

    squares = np.empty(X.shape[0])
    return bool(inspect(sealed(X.indptr), sealed(X.indices), sealed(X.data), X.shape[1], squares)), squares


def csr(values: Any, indices: Any, ends: Any, width: int) -> CSR:
    """Rows from their parts, the indices in 32 bits where they fit."""
    narrow = np.int32 if max(width, len(values)) < 2**31 else np.int64
    parts = (values, np.asarray(indices, dtype=narrow), np.asarray(ends, dtype=narrow))
    return sp.csr_array(parts, shape=(len(ends) - 1, width))


def norms(X: Table, squares: Vector | None = None) -> Vector:
    """‖x‖ of every row, also where its squares are past the range of floats; not finite if the row is not.

    `squares`: ‖x‖² as far as it is in that range, where it is known.
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
    """The first row whose norm is NaN or infinite, None if there is none."""
    bad = np.flatnonzero(~np.isfinite(sizes))
    return int(bad[0]) if bad.size else None


def divided(X: Table, sizes: Vector) -> Table:
    """Each row over its size."""
    if sp.issparse(X):
        values = (X.data / np.repeat(sizes, np.diff(X.indptr))).astype(X.dtype, copy=False)
        return csr(values, X.indices, X.indptr, X.shape[1])
    return np.divide(X, sizes[:, None]).astype(X.dtype, copy=False)


def _squares(X: Table) -> Vector:
    """‖x‖² of every row, in memory that does not depend on how wide the rows are."""
    if sp.issparse(X):
        return _inspected(X)[1]
    if X.dtype == np.float64:
        squares: Vector = np.vecdot(X, X)
        return squares
    step = max(1, _PIECE // max(1, X.shape[1]))  # in float64, a piece at a time that stays in the processor's cache
    pieces = (X[at : at + step].astype(np.float64) for at in range(0, len(X), step))
    return np.concatenate([np.zeros(0), *(np.vecdot(piece, piece) for piece in pieces)])


def _largest(X: CSR) -> Vector:
    """The largest |value| of each sparse row; 0 for a row without any."""
    result = np.zeros(X.shape[0])
    filled = np.flatnonzero(np.diff(X.indptr))
    if filled.size:
        result[filled] = np.maximum.reduceat(abs(X.data), X.indptr[filled])
    return result


def as_row(x: Any) -> tuple[NDArray[np.float64] | SparseRow, int]:
    """One row of its own (a copy, for a decision may outlive the caller's array) and its width."""
    if type(x) is np.ndarray and x.dtype is _DOUBLE and x.ndim == 1:  # nothing to find out, and live rounds are short
        return x.copy(), len(x)
    if _is_sparse(x):
        table, _ = _sparse_table(x if x.ndim == 2 else x.reshape(1, -1))
        if table.shape[0] != 1:
            raise InputError(f"x must be one row; it has {table.shape[0]}")
        return SparseRow(table.indices.copy(), table.data.astype(np.float64)), table.shape[1]
    if isinstance(x, np.ma.MaskedArray):
        raise InputError("x is a masked array, whose masked values have no meaning here: fill them first")
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


def n_rows(rows: Rows) -> int:
    """How many rounds."""
    if isinstance(rows, RowsToCome):
        return rows.rounds
    return len(rows.indptr) - 1 if isinstance(rows, Sparse) else len(rows)


def block(rows: Rows, start: int, stop: int, sparse: bool, width: int) -> Rows:
    """Rows start to stop in the layout the learner's weights have."""
    if isinstance(rows, RowsToCome):
        rows, start, stop = rows.block(start, stop), 0, stop - start
    if isinstance(rows, Sparse):
        part = Sparse(rows.indptr[start : stop + 1], rows.indices, rows.values)
        return part if sparse else sealed(to_dense(part, width))
    return parts_of(as_table(sp.csr_array(rows[start:stop]))) if sparse else rows[start:stop]


def to_dense(rows: Sparse, width: int) -> NDArray[np.float64]:
    """Sparse rows written out."""
    first, last = rows.indptr[0], rows.indptr[-1]
    parts = (rows.values[first:last], rows.indices[first:last], rows.indptr - first)
    return sp.csr_matrix(parts, shape=(n_rows(rows), width)).toarray().astype(np.float64, copy=False)


def as_matrix(rows: Any, width: int) -> Any:
    """Rows as a matrix to multiply with: an array, or a SciPy matrix."""
    if not isinstance(rows, Sparse):
        return rows.astype(np.float64, copy=False)
    return csr(rows.values, rows.indices, rows.indptr, width)


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


# --- labels -----------------------------------------------------------------------------------------------------


def is_missing(label: Any) -> bool:
    """None and NaN say that there is no label."""
    return label is None or (isinstance(label, float) and math.isnan(label))


class Classes:
    """The labels a caller uses, and their codes 0..K-1."""

    def __init__(self, labels: Iterable[Any]) -> None:
        try:
            self.labels = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
        except TypeError:
            raise InputError(f"classes={labels!r} must be a list of labels") from None
        for label in self.labels:
            if is_missing(label):
                raise InputError(f"classes holds {label!r}, which means that a label is missing: use a word for it")
        try:
            self._codes = {label: code for code, label in enumerate(self.labels)}
        except TypeError:
            raise InputError("classes must be plain labels, such as words or numbers") from None
        if len(self._codes) != len(self.labels):
            raise InputError("classes holds a label twice")
        self._plain = {type(label) for label in self.labels} == {int} and self.labels == tuple(range(len(self.labels)))
        self._array = _as_array(self.labels)

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
        if is_missing(label):
            return "the label is missing"
        shown = ", ".join(map(repr, self.labels[:5])) + (", ..." if len(self) > 5 else "")
        return f"label {label!r} is not one of the {len(self)} classes ({shown})"


def as_advice(advice: Any, rounds: int, classes: Classes) -> Matrix:
    """The answers of a caller's own model as probabilities, rounds × K: given as such, or as a label each."""
    try:
        given = np.asarray(advice)
    except ValueError as problem:
        raise InputError(f"advice is not a rectangular array: {problem}") from None
    if given.ndim == 1:
        try:
            codes = classes.codes(advice)
        except InputError as problem:
            raise InputError(f"advice, {problem}") from None
        table = np.zeros((len(codes), len(classes)))
        table[np.arange(len(codes)), codes] = 1.0
    else:
        if given.ndim != 2 or given.dtype.kind not in "biuf" or given.shape[1] != len(classes):
            raise InputError(
                f"advice must hold a label or {len(classes)} probabilities for each round, "
                f"not an array of {given.dtype} of shape {given.shape}"
            )
        table = given.astype(np.float64, order="C")  # a table's columns are of another type to the compiler
        bad = ~(np.isfinite(table).all(axis=1) & (table >= 0.0).all(axis=1))
        with np.errstate(over="ignore", invalid="ignore"):
            total = table.sum(axis=1)
        bad |= ~((total > 0.0) & np.isfinite(total))
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            raise InputError(
                f"advice of round {at} is no distribution over labels: {given[at].tolist()}; "
                "it must hold finite numbers of at least 0 that do not sum to 0"
            )
        table /= total[:, None]
    if len(table) != rounds:
        raise InputError(f"advice is for {len(table)} rounds, but there are {rounds}")
    return table


# --- which labels are available, and what labels are worth ------------------------------------------------------


def as_among(among: Any, rounds: int, classes: Classes) -> NDArray[np.bool_]:
    """Which labels are available in each round, rounds × K: an array of such booleans, or a list of lists of labels."""
    try:
        groups = list(among)
    except TypeError:
        raise InputError(_AMONG) from None
    if len(groups) != rounds:
        raise InputError(f"among is for {len(groups)} rounds, but there are {rounds}")
    table = np.zeros((rounds, len(classes)), dtype=np.bool_)
    for at, labels in enumerate(groups):
        table[at] = available(labels, classes, f"among of round {at}")
    return table


_AMONG = "among must say for each round which labels are available: a list of lists of labels, or rounds × K booleans"


def available(labels: Any, classes: Classes, name: str = "among") -> Flags:
    """Which labels are available in one round: a collection of at least one label, or K booleans."""
    if isinstance(labels, (str, bytes)) or not hasattr(labels, "__iter__"):
        raise InputError(f"{name} is {labels!r}: it must be a list of labels, or {len(classes)} booleans")
    given = [label.item() if isinstance(label, np.generic) else label for label in labels]
    flags = np.zeros(len(classes), dtype=np.bool_)
    # True is also 1 to Python: booleans are labels only where the classes are booleans.
    if given and all(isinstance(label, bool) for label in given) and not isinstance(classes.labels[0], bool):
        if len(given) != len(classes):
            raise InputError(f"{name} has {len(given)} booleans for {len(classes)} labels")
        flags[:] = given
    else:
        for label in given:
            try:
                flags[classes.code(label)] = True
            except InputError as problem:
                raise InputError(f"{name}: {problem}") from None
    if not flags.any():
        raise InputError(f"{name} names no label: at least one must be available")
    return flags


def as_reward(reward: Any) -> float:
    """What a label was worth: 1 right, 0 wrong, or in between."""
    worth = _as_number(reward)
    if worth is None or not 0.0 <= worth <= 1.0:
        raise InputError(f"reward={reward!r} must be a number from 0 (wrong) to 1 (right)")
    return worth


def as_correct(correct: Any) -> bool:
    """Whether a label was right: True or False, or 1 or 0."""
    worth = _as_number(correct)
    if worth not in (0.0, 1.0):
        raise DecisionError(f"correct={correct!r} must be True or False; give reward=... for what lies in between")
    return worth == 1.0


def _as_number(given: Any) -> float | None:
    """A number, True or False; None if it is anything else."""
    return float(given) if isinstance(given, (bool, int, float, np.bool_, np.integer, np.floating)) else None


def as_worth(reward: Any, rounds: int, n_classes: int) -> Matrix:
    """What labels are worth in each round: a number for the right one, rounds × 1, or one for each, rounds × K."""
    try:
        given = np.asarray(reward)
    except ValueError as problem:
        raise InputError(f"reward is not a rectangular array: {problem}") from None
    if given.dtype.kind not in "biuf" or given.shape not in ((rounds,), (rounds, 1), (rounds, n_classes)):
        each = f", or {rounds} × {n_classes} numbers, one for each label" if n_classes > 1 else ""
        raise InputError(
            f"reward must hold a number for each of {rounds} rounds{each}; "
            f"it is an array of {given.dtype} of shape {given.shape}"
        )
    worth = given.reshape(rounds, -1).astype(np.float64)
    bad = ~((worth >= 0.0) & (worth <= 1.0)).all(axis=1)
    if bad.any():
        at = int(bad.argmax())
        raise InputError(f"reward of round {at} is {given[at].tolist()}: it must lie between 0 (wrong) and 1 (right)")
    return worth


def _as_array(labels: tuple[Any, ...]) -> NDArray[Any]:
    """The labels as a typed array if it gives every one of them back exactly, else as an array of objects."""
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        typed = np.array(labels)
        back = typed.tolist()
        if typed.dtype.kind != "O" and back == list(labels) and {type(label) for label in back} == kinds:
            return typed
    return _as_they_are(labels)


def _as_they_are(y: Sequence[Any]) -> NDArray[Any]:
    labels = np.empty(len(y), dtype=object)
    for at, label in enumerate(y):
        labels[at] = label.item() if isinstance(label, np.generic) else label
    return labels
