"""Parquet: a label column and numeric columns; or, for sparse examples, the lists `idx` (from 0) and `val`.

Without a column `val`, every value is 1.
"""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import GaptronError, StreamError
from gaptron.streams.columns import Columns, Places, locate, split_available
from gaptron.streams.labels import distinct, distinct_text
from gaptron.streams.raw_chunk import AvailableLabels, ErrorAt, RawChunk, row_error
from gaptron.streams.rows import Rows, csr, tidy_rows
from gaptron.streams.source import Source
from gaptron.types import Integers

CELL_BYTES = 8  # of a number in memory


def read(source: Source, rows: int | None, columns: Columns) -> Iterator[RawChunk]:
    """Yield the rounds of the source in chunks of `rows` rows; None: in one chunk."""
    for table, error_at in tables(source, rows):
        yield _numeric(source.name, table.combine_chunks(), columns, error_at)


def tables(source: Source, rows: int | None) -> Iterator[tuple[Any, ErrorAt]]:
    """Yield the source as Arrow tables of `rows` rows (None: as one table), each with its error locations."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    first = 0
    with source.seekable() as place:
        try:
            with parquet.ParquetFile(place) as file:
                _check_size(source, place, file.metadata)
                for batch in [file.read()] if rows is None else file.iter_batches(rows):
                    table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
                    if table.num_rows:
                        yield table, row_error(source.name, first)
                    first += table.num_rows
        except GaptronError:
            raise
        except Exception as error:  # Arrow raises almost any exception on a damaged file
            problem = next(iter(str(error).splitlines()), type(error).__name__)
            raise StreamError(source.name, f"cannot be read as Parquet ({problem})") from None


def _check_size(source: Source, place: Any, metadata: Any) -> None:
    """Refuse a file with far more cells than bytes: repeated values take nearly no space in it."""
    packed = place.getbuffer().nbytes if hasattr(place, "getbuffer") else os.path.getsize(place)
    source.check_expansion(packed, CELL_BYTES * metadata.num_rows * metadata.num_columns)


def rounds(source: str, table: Any, X: Rows, places: Places, error_at: ErrorAt) -> RawChunk:
    """Return X with the labels, rewards and available labels of its rounds."""
    import pyarrow as pa  # noqa: PLC0415

    labels: tuple[list[Any], Integers] = [], np.zeros(0, dtype=np.int64)
    if places.label is not None:
        labels = distinct(_labels(table.column(places.label), table.column_names[places.label], error_at))
    chunk = RawChunk(X, *labels, error_at)
    if places.reward is not None:
        reward = np.asarray(_dense(source, table, [places.reward], error_at), dtype=np.float64).ravel()
        chunk = chunk._replace(reward=reward)
    if places.available is not None:
        column = table.column(places.available)
        if column.null_count:
            raise error_at(_first_null(column), "the available labels are missing: name at least one")
        in_lists = pa.types.is_nested(column.type)
        groups = (
            distinct(map(split_available, column.to_pylist())) if in_lists else distinct_text(column, split_available)
        )
        chunk = chunk._replace(available=AvailableLabels(*groups))
    return chunk


def _numeric(source: str, table: Any, columns: Columns, error_at: ErrorAt) -> RawChunk:
    names = table.column_names
    places = locate(source, names, columns)
    if "idx" in names and hasattr(table.schema.field("idx").type, "value_field"):
        return rounds(source, table, _sparse(table, error_at), places, error_at)
    features = places.features(len(names))
    if not features:
        raise StreamError(source, "there is no column except the label")
    chunk = rounds(source, table, np.zeros((0, 0)), places, error_at)
    X = _dense(source, table, features, error_at)
    return chunk._replace(X=X, columns=tuple(names[at] for at in features))


def _labels(column: Any, name: str, error_at: ErrorAt) -> NDArray[Any] | list[Any]:
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_nested(column.type):
        raise error_at(0, f"column {name} contains {column.type}, not labels: name the label column with label=...")
    labels: NDArray[Any] | list[Any] = column.to_pylist() if column.null_count else column.to_numpy()
    return labels


def _dense(source: str, table: Any, features: list[int], error_at: ErrorAt) -> Rows:
    arrays = []
    for at in features:
        column, name = table.column(at), table.column_names[at]
        if column.null_count:
            raise error_at(_first_null(column), f"column {name} has no value: fill it first")
        array = column.to_numpy()
        if array.dtype.kind not in "iufb":
            raise StreamError(source, f"column {name} contains {column.type}, not numbers: remove it or encode it")
        arrays.append(array)
    single = all(array.dtype == np.float32 for array in arrays)
    X = np.empty((table.num_rows, len(features)), np.float32 if single else np.float64)
    for at, array in enumerate(arrays):
        X[:, at] = array
    return X


def _sparse(table: Any, error_at: ErrorAt) -> Rows:
    ends, indices = _lists(table.column("idx"), error_at)
    if indices.size and indices.dtype.kind not in "iu":
        raise error_at(0, f"idx contains {indices.dtype}, not whole numbers")
    values = np.ones(len(indices))
    if "val" in table.column_names:
        other, values = _lists(table.column("val"), error_at)
        uneven = np.flatnonzero(other != ends)
        if uneven.size:
            raise error_at(int(uneven[0]) - 1, "idx and val differ in length")
    negative = np.flatnonzero(indices < 0)
    if negative.size:
        row = int(np.searchsorted(ends, negative[0], side="right")) - 1
        raise error_at(row, f"feature index {indices[negative[0]]} is negative")
    width = int(indices.max()) + 1 if indices.size else 0
    return tidy_rows(csr(values, indices, ends, width))


def _lists(column: Any, error_at: ErrorAt) -> tuple[Integers, NDArray[Any]]:
    """Return the lists joined into one array, and where each of them ends in it, after a 0."""
    if column.null_count:
        raise error_at(_first_null(column), "a list is missing: write an empty list")
    lists = column.combine_chunks()
    ends = np.concatenate([[0], np.cumsum(lists.value_lengths().to_numpy(), dtype=np.int64)])
    flat = lists.flatten()
    if flat.null_count:
        row = int(np.searchsorted(ends, _first_null(flat), side="right")) - 1
        raise error_at(row, "a list contains null")
    return ends, flat.to_numpy()


def _first_null(column: Any) -> int:
    return int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
