"""Parquet: a label column and numeric columns; or, for sparse rows, the lists `idx` (from 0) and `val`.

Without a column `val`, every value is 1.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import GaptronError, StreamError
from gaptron.streams.block import Available, Blame, Block, blame_row
from gaptron.streams.labels import distinct
from gaptron.streams.rows import Rows, csr, tidy_rows
from gaptron.streams.source import Source
from gaptron.streams.table import Columns, available_in, place
from gaptron.types import Integers, Vector


def read(source: Source, rows: int | None, columns: Columns) -> Iterator[Block]:
    """The rounds of the source, `rows` rows to a block; None: all in one."""
    from pyarrow import parquet  # noqa: PLC0415

    first = 0
    with source.seekable() as place:
        try:
            with parquet.ParquetFile(place) as file:
                tables = [file.read()] if rows is None else map(_table, file.iter_batches(rows))
                for table in tables:
                    if table.num_rows:
                        yield _block(source.name, table.combine_chunks(), columns, first)
                    first += table.num_rows
        except GaptronError:
            raise
        except Exception as error:  # a damaged file makes Arrow raise nearly everything
            raise StreamError(source.name, f"cannot be read as Parquet ({_first_line(error)})") from None


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _table(batch: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    return pa.Table.from_batches([batch])


def _block(source: str, table: Any, asked: Columns, first: int) -> Block:
    blame = blame_row(source, first)
    columns = table.column_names
    places = place(source, columns, asked)
    names, marks = distinct(_labels(table.column(places.label), columns[places.label], blame))
    beside: dict[str, Any] = {}
    if places.reward is not None:
        beside["reward"] = rewards(source, table, places.reward, blame)
    if places.available is not None:
        beside["available"] = available(table, places.available, blame)
    if "idx" in columns and hasattr(table.schema.field("idx").type, "value_field"):
        return Block(_sparse(table, blame), names, marks, blame, **beside)
    features = places.features(len(columns))
    if not features:
        raise StreamError(source, "there is no column beside the label")
    X = _dense(source, table, features, blame)
    return Block(X, names, marks, blame, columns=tuple(columns[at] for at in features), **beside)


def rewards(source: str, table: Any, at: int, blame: Blame) -> Vector:
    """The numbers in a column of rewards."""
    found: Vector = np.asarray(_dense(source, table, [at], blame), dtype=np.float64).ravel()
    return found


def available(table: Any, at: int, blame: Blame) -> Available:
    """The labels in a column of available ones."""
    column = table.column(at)
    if column.null_count:
        raise blame(_first_null(column), "the available labels are missing: name at least one")
    return available_in(column)


def _labels(column: Any, name: str, blame: Blame) -> NDArray[Any]:
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_nested(column.type):
        raise blame(0, f"column {name} holds {column.type}, not labels: name the label column with label=...")
    if column.null_count:
        raise blame(_first_null(column), "the label is missing: drop the round or give it a label")
    labels: NDArray[Any] = column.to_numpy()
    return labels


def _dense(source: str, table: Any, features: list[int], blame: Blame) -> Rows:
    arrays = []
    for at in features:
        column, name = table.column(at), table.column_names[at]
        if column.null_count:
            raise blame(_first_null(column), f"column {name} has no value: fill it first")
        array = column.to_numpy()
        if array.dtype.kind not in "iufb":
            raise StreamError(source, f"column {name} holds {column.type}, not numbers: drop it or encode it")
        arrays.append(array)
    single = all(array.dtype == np.float32 for array in arrays)
    X = np.empty((table.num_rows, len(features)), np.float32 if single else np.float64)
    for at, array in enumerate(arrays):
        X[:, at] = array
    return X


def _sparse(table: Any, blame: Blame) -> Rows:
    ends, indices = _lists(table.column("idx"), blame)
    if indices.size and indices.dtype.kind not in "iu":
        raise blame(0, f"idx holds {indices.dtype}, not whole numbers")
    values = np.ones(len(indices))
    if "val" in table.column_names:
        other, values = _lists(table.column("val"), blame)
        uneven = np.flatnonzero(other != ends)
        if uneven.size:
            raise blame(int(uneven[0]) - 1, "idx and val differ in length")
    negative = np.flatnonzero(indices < 0)
    if negative.size:
        row = int(np.searchsorted(ends, negative[0], side="right")) - 1
        raise blame(row, f"feature index {indices[negative[0]]} is negative")
    width = int(indices.max()) + 1 if indices.size else 0
    return tidy_rows(csr(values, indices, ends, width))


def _lists(column: Any, blame: Blame) -> tuple[Integers, NDArray[Any]]:
    """The ends of the lists in one long array, with 0 before them, and that array."""
    if column.null_count:
        raise blame(_first_null(column), "a list is missing: write an empty one")
    lists = column.combine_chunks()
    ends = np.concatenate([[0], np.cumsum(lists.value_lengths().to_numpy(), dtype=np.int64)])
    flat = lists.flatten()
    if flat.null_count:
        row = int(np.searchsorted(ends, _first_null(flat), side="right")) - 1
        raise blame(row, "a list has a gap (null)")
    return ends, flat.to_numpy()


def _first_null(column: Any) -> int:
    return int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
