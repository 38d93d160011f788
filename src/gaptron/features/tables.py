"""Tables of any library as columns of four kinds: numbers, words, times, or cells of several kinds.

A table is checked once, when it is read; its chunks are then read without checks.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import InputError
from gaptron.features.cells import LARGEST, MISSING, WEEKDAYS, Cell, cell, word
from gaptron.types import Integers, Vector

_FEW = 64  # rows searched at a time for a column's first value
_DAY, _HOUR = 86_400_000_000, 3_600_000_000  # microseconds
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # from 1970 to the years 1 and 9999, the range of Python's dates
_THURSDAY = WEEKDAYS.index("Thursday")  # 1970-01-01
_ACCEPTED = "give a dict, a list of dicts, a table (pandas, polars, Arrow) or a NumPy array"


# --- columns of a chunk ---------------------------------------------------------------------------------------


class Numbers(NamedTuple):
    """Numbers; NaN is missing."""

    values: Vector

    def distinct(self) -> tuple[list[Cell], Integers]:
        """The distinct cells, and which of them each row has."""
        found, codes = np.unique(self.values, return_inverse=True)  # NaN is found once
        return [None if value != value else value for value in found.tolist()], codes.astype(np.int64)


class Words(NamedTuple):
    """Distinct texts, and which of them each row has; -1 is missing."""

    texts: list[Any]
    codes: Integers

    def distinct(self) -> tuple[list[Cell], Integers]:
        """The distinct cells, and which of them each row has."""
        return [*(None if text is None else word(text) for text in self.texts), None], self.codes


class Texts(NamedTuple):
    """Texts of a column that may hold numbers."""

    part: Any  # an Arrow array

    def words(self) -> Words:
        """Convert to words."""
        return _words(self.part.dictionary_encode())

    def numbers(self) -> Numbers | None:
        """Convert to numbers, with NaN for missing values; None if a text is not a number."""
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import compute  # noqa: PLC0415

        gaps = compute.is_in(self.part, value_set=pa.array(MISSING, type=self.part.type))
        try:
            return _numbers(compute.if_else(gaps, pa.scalar(None, self.part.type), self.part).cast("float64"))
        except pa.ArrowInvalid:
            return None

    def first(self) -> tuple[int, Cell] | None:
        """The first row with a value, and the value; None if all are missing."""
        for start in range(0, len(self.part), _FEW):
            for row, text in enumerate(self.part.slice(start, _FEW).to_pylist(), start):
                value = None if text is None else word(text)
                if value is not None:
                    return row, value
        return None

    def distinct(self) -> tuple[list[Cell], Integers]:
        """The distinct cells, and which of them each row has."""
        return self.words().distinct()


class Times(NamedTuple):
    """Times, with the fields of `cells.Time`; NaN and -1 where they are missing."""

    stamps: Vector
    hours: Vector
    weekdays: Integers
    months: Integers
    cells: Callable[[], list[Cell]]

    def distinct(self) -> tuple[list[Cell], Integers]:
        """The cells, and their indices."""
        return self.cells(), np.arange(len(self.stamps))


class Cells(NamedTuple):
    """Cells of several kinds."""

    cells: list[Cell]

    def distinct(self) -> tuple[list[Cell], Integers]:
        """The cells, and their indices."""
        return self.cells, np.arange(len(self.cells))


Column = Numbers | Words | Texts | Times | Cells
Read = Callable[[int, int], Column]
"""Reads the rows from the first index to before the second."""


class Record(dict[str, Cell]):
    """One checked example by name: column → cell."""


class Records(list[Record]):
    """Checked examples by name, one after the other."""


class Table:
    """Columns by name, read a chunk at a time.

    Args:
        columns: column → how to read it.
        rows: the number of rows.
        text: whether it writes numbers and times as text.
    """

    def __init__(self, columns: Mapping[str, Read], rows: int, text: bool = False) -> None:
        self.columns = columns
        self.rows = rows
        self.text = text

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, rows: slice) -> "Table":
        first, last, _ = rows.indices(self.rows)
        return Table({name: _shifted(read, first) for name, read in self.columns.items()}, last - first, self.text)

    def block(self, start: int, stop: int) -> dict[str, Column]:
        """Read some rows, as column → data."""
        return {name: read(start, stop) for name, read in self.columns.items()}


def _shifted(read: Read, first: int) -> Read:
    return lambda start, stop: read(first + start, first + stop)


# --- one example ------------------------------------------------------------------------------------------------


def row_of(x: Any) -> Record:
    """Check one example: a dict, a row of a pandas table, or an array, whose columns are named "0", "1", ..."""
    if type(x) is Record:
        return x
    if not isinstance(x, dict):
        x = _as_dict(x)
    try:
        cells = Record({name: cell(name, value) for name, value in x.items()})
    except RecursionError:
        raise InputError("x holds a value that contains itself") from None
    return cells if set(map(type, cells)) <= {str} else Record(by_text(cells))


def _as_dict(x: Any) -> dict[Any, Any]:
    if isinstance(x, Mapping):
        return dict(x)
    if hasattr(x, "to_dict") and getattr(x, "ndim", 0) == 1:
        return dict(x.to_dict())
    if isinstance(x, np.ndarray):
        row = x[0] if x.ndim == 2 and len(x) == 1 else x
        if row.ndim == 1:
            return {str(at): value for at, value in enumerate(row.tolist())}
    raise InputError(f"x is a {type(x).__name__}, but a learner with features takes examples by name: give a dict")


def by_text(cells: Mapping[Any, Any]) -> dict[str, Any]:
    """Convert names of columns to text, which must stay distinct."""
    named = {name if type(name) is str else str(name): value for name, value in cells.items()}
    if len(named) < len(cells):
        raise InputError(f"two columns have the same name: {sorted(map(str, cells))}")
    return named


# --- tables ---------------------------------------------------------------------------------------------------


def table_of(X: Any) -> Table | Records:
    """Check a table of any library, or a list of dicts."""
    if isinstance(X, Table | Records):
        return X
    if type(X) is Record:
        return Records([X])
    if isinstance(X, list | tuple):
        return Records(_numbered(at, x) for at, x in enumerate(X))
    if isinstance(X, Mapping):
        raise InputError("X is a single dict: give a list of dicts, or a table")
    if isinstance(X, np.ndarray):
        return of_array(X)
    if hasattr(type(X), "checked"):  # a stream
        return of_array(_dense(X.X), X.columns)
    if hasattr(X, "tocsr"):
        raise InputError("X is a sparse matrix, which is encoded already: leave out features=...")
    return _of_frame(X)


def n_rows(X: Any) -> int:
    """The number of rows of a caller's table."""
    return int(X.num_rows) if hasattr(X, "num_rows") else len(X)


def taken(X: Any, rows: Integers) -> Any:
    """The rows of a caller's matrix, table or list with these indices."""
    if isinstance(X, np.ndarray) or hasattr(X, "tocsr"):
        return X[rows]
    if isinstance(X, list | tuple):
        return [X[row] for row in rows.tolist()]
    import narwhals as nw  # noqa: PLC0415

    return nw.from_native(X, eager_only=True)[rows.tolist()].to_native()


def _numbered(at: int, x: Any) -> Record:
    try:
        return row_of(x)
    except InputError as problem:
        raise InputError(f"row {at} of X: {problem}") from None


def _dense(X: Any) -> NDArray[Any]:
    if not isinstance(X, np.ndarray):
        raise InputError("this stream is sparse, which is encoded already: leave out features=...")
    return X


def of_array(X: NDArray[Any], names: Sequence[str] = ()) -> Table:
    """Read an array; its columns are named "0", "1", ... if they have no names."""
    if isinstance(X, np.ma.MaskedArray):
        raise InputError("X is a masked array: fill masked values with NaN first")
    if X.ndim != 2 or X.dtype.kind not in "biufOUM":
        raise InputError(f"X is an array of {X.dtype} of shape {X.shape}: {_ACCEPTED}")
    names = names or [str(at) for at in range(X.shape[1])]
    plain = X.dtype.kind in "iuf"
    columns = [_numbers_read(X[:, at]) if plain else _cells_read(n, X[:, at].tolist()) for at, n in enumerate(names)]
    return Table(by_text(dict(zip(names, columns))), len(X))


def _numbers_read(values: NDArray[Any]) -> Read:
    return lambda start, stop: Numbers(_finite(values[start:stop].astype(np.float64)))


def _finite(values: Vector) -> Vector:
    """Clip numbers in place; those that are not finite are missing."""
    values[~np.isfinite(values)] = np.nan
    return np.clip(values, -LARGEST, LARGEST, out=values)


def _cells_read(name: str, values: Sequence[Any]) -> Read:
    cells = [cell(name, value) for value in values]
    return lambda start, stop: Cells(cells[start:stop])


def _of_frame(X: Any) -> Table:
    import narwhals as nw  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(X, pa.RecordBatch):
        X = pa.Table.from_batches([X])
    if isinstance(X, pa.Table):
        return of_arrow(X)
    try:
        frame = nw.from_native(X, eager_only=True)
    except TypeError:
        raise InputError(f"X is a {type(X).__name__}: {_ACCEPTED}") from None
    columns = {}
    for name in frame.columns:
        series = frame.get_column(name)
        if series.dtype == nw.Object:  # of several kinds, which Arrow would convert to one
            columns[name] = _cells_read(str(name), series.to_list())
        else:
            columns[name] = _arrow_read(str(name), pa.chunked_array([series.to_arrow()]))
    return Table(by_text(columns), len(frame))


def of_arrow(table: Any, text: bool = False) -> Table:
    """Read an Arrow table; `text`: it is from a file that writes numbers and times as text."""
    names = table.column_names
    if len(set(names)) < len(names):
        raise InputError(f"two columns have the same name: {sorted(names)}")
    columns = {name: _arrow_read(name, table.column(at)) for at, name in enumerate(names)}
    return Table(columns, table.num_rows, text)


def _arrow_read(name: str, column: Any) -> Read:
    """Return how to read a column of an Arrow table."""
    import pyarrow as pa  # noqa: PLC0415

    kind, is_ = column.type, pa.types
    if is_.is_dictionary(kind):
        if not (is_.is_string(kind.value_type) or is_.is_large_string(kind.value_type)):
            return _arrow_read(name, column.cast(kind.value_type))
        return lambda start, stop: _words(_slice(column, start, stop))
    if is_.is_string(kind) or is_.is_large_string(kind) or is_.is_string_view(kind):
        return lambda start, stop: Texts(_slice(column, start, stop))
    if is_.is_boolean(kind):
        return lambda start, stop: _flags(_slice(column, start, stop))
    if is_.is_integer(kind) or is_.is_floating(kind) or is_.is_null(kind):
        return lambda start, stop: _numbers(_slice(column, start, stop))
    if is_.is_timestamp(kind) or is_.is_date(kind):
        return lambda start, stop: _times(_slice(column, start, stop))
    return _cells_read(name, column.to_pylist())


def _slice(column: Any, start: int, stop: int) -> Any:
    part = column.slice(start, stop - start)
    return part.combine_chunks() if hasattr(part, "combine_chunks") else part


def _numbers(part: Any) -> Numbers:
    values = part.cast("float64", safe=False).to_numpy(zero_copy_only=False)
    return Numbers(_finite(np.array(values)))


def _words(part: Any) -> Words:
    texts = part.dictionary.to_numpy(zero_copy_only=False).tolist()
    return Words(texts, part.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64))


def _flags(part: Any) -> Words:
    codes = part.cast("int8").fill_null(-1).to_numpy(zero_copy_only=False)
    return Words(["false", "true"], codes.astype(np.int64))


def _times(part: Any) -> Times:
    from pyarrow import compute  # noqa: PLC0415

    missing = part.is_null().to_numpy(zero_copy_only=False)
    aware = getattr(part.type, "tz", None) is not None
    utc = _microseconds(part)
    local = _microseconds(compute.local_timestamp(part)) if aware else utc
    seconds, rest = utc // 1_000_000, utc % 1_000_000
    days, within = local // _DAY, local % _DAY
    months = days.astype("M8[D]").astype("M8[M]").astype(np.int64) % 12 + 1
    return Times(
        np.where(missing, np.nan, seconds.astype(np.float64) + rest / 1e6),
        np.where(missing | (within == 0), -1.0, within / _HOUR),
        np.where(missing, -1, (days + _THURSDAY) % 7),
        np.where(missing, -1, months),
        lambda: _time_cells(part),
    )


def _microseconds(part: Any) -> Integers:
    """Microseconds since 1970-01-01, clipped to the range of Python's dates."""
    unit = getattr(part.type, "unit", "ms" if part.type.bit_width == 64 else "D")
    whole = part.view("int64" if part.type.bit_width == 64 else "int32").fill_null(0)
    values: Integers = whole.to_numpy(zero_copy_only=False).astype(np.int64)
    if unit == "ns":
        return values // 1_000
    per_day, scale = {"D": (1, _DAY), "s": (86_400, 1_000_000), "ms": (86_400_000, 1_000), "us": (_DAY, 1)}[unit]
    return np.clip(values, _FIRST_DAY * per_day, (_LAST_DAY + 1) * per_day - 1) * scale


def _time_cells(part: Any) -> list[Cell]:
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_timestamp(part.type) and part.type.unit == "ns":
        part = part.cast(pa.timestamp("us", part.type.tz), safe=False)
    return [cell("", value) for value in part.to_pylist()]
