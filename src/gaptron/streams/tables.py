"""Tables with named columns: numbers, text, missing values and times go to a learner's encoder under their names.

Text files contain numbers and times as text, which the encoder parses. A Parquet file states the type of each column.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.data.examples import MeasuredExamples
from gaptron.errors import InputError, StreamError
from gaptron.features.cells import time_of
from gaptron.features.declaration import Features
from gaptron.features.encoder import Encoder
from gaptron.features.tables import Column as TableColumn
from gaptron.features.tables import Table, Texts, Times, of_arrow
from gaptron.streams import csv_text, parquet
from gaptron.streams.cell_forms import check_forms
from gaptron.streams.columns import Column, Columns, assign_roles, check_unique, find_column
from gaptron.streams.csv_text import CsvOptions
from gaptron.streams.files import TEXT_OPTIONS, is_file
from gaptron.streams.labels import Codes, Label, check_classes, discover, with_new_labels
from gaptron.streams.raw_chunk import ErrorAt, RawChunk, available_matrix, check_labels, label_codes, reward_column
from gaptron.streams.rounds import Rounds
from gaptron.streams.rows import csr
from gaptron.streams.separator import SEPARATORS
from gaptron.streams.source import Source, check_encoding
from gaptron.streams.stream import Stream
from gaptron.streams.unlabelled import SKIP, Unlabelled
from gaptron.types import Integers, Sparse


class TableChunk(NamedTuple):
    """Some rows of a file: an Arrow table of the features, and the rounds without features."""

    table: Any
    rounds: RawChunk  # without labels, where the file is read without them
    copied: Any = None  # an Arrow table of the columns to copy, as written


@dataclass(frozen=True, eq=False)
class TableStream:
    """A table with named columns as a stream: an iterable of `Rounds`."""

    name: str
    reader: "TableReader" = field(repr=False)
    classes: tuple[Label, ...]
    columns: tuple[str, ...]
    chunks: Callable[[], Iterator[Rounds]] = field(repr=False)
    whole: Rounds | None = field(repr=False, default=None)  # where it is in memory
    n_rounds: int | None = None
    notes: tuple[str, ...] = ()
    prepared: tuple[str, ...] = ()
    late_notes: Callable[[], tuple[str, ...]] = field(repr=False, default=tuple)

    def __iter__(self) -> Iterator[Rounds]:
        return self.chunks()

    @property
    def roles(self) -> Columns:
        """The names of the columns that are not features; for standard input, known after the first rows."""
        return self.reader.roles

    @property
    def dates(self) -> str | None:
        """Whether dates are day-first or month-first, where the columns show it."""
        return self.reader.dates

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.classes)


# --- what is a table ------------------------------------------------------------------------------------------


def is_table(path: str | os.PathLike[str], format: str | None = None, available: Column | None = None) -> bool:
    """Does this file have named columns: CSV, TSV, or Parquet without lists, except in the column `available`?"""
    source = Source(os.fspath(path))
    kind = format or {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet"}.get(source.suffixes[0], "")
    if kind == "parquet" and not source.is_stdin:
        return os.path.isfile(source.path) and not _has_lists(source.path, available)
    return kind in SEPARATORS or kind == "parquet"


def is_table_file(data: str, format: str | None = None, available: Column | None = None) -> bool:
    """Is this a file with named columns, and not the name of a stream?"""
    return is_file(data) and is_table(data, format, available)


def time_columns(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    label: Column | None = None,
    header: bool | None = None,
    separator: str | None = None,
    decimal: str = ".",
    dates: str | None = None,
    encoding: str | None = None,
) -> list[str]:
    """Return the columns of a table whose first rows hold times; none of standard input, which is read only once."""
    source = Source(os.fspath(path))
    if source.is_stdin:
        return []
    check_forms(separator, decimal, dates)
    check_encoding(encoding)
    options = CsvOptions(Columns(label), header, separator, decimal, dates, encoding, numeric=False)
    first = next(TableReader(source, format, options, Unlabelled()).chunks(csv_text.SAMPLE), None)
    if first is None:
        return []
    columns = of_arrow(first.table, text=first.rounds.text).block(0, first.table.num_rows)
    return [name for name, column in columns.items() if _has_times(column)]


def _has_times(column: TableColumn) -> bool:
    if not isinstance(column, Texts):
        return isinstance(column, Times)
    present = [cell for cell in column.distinct()[0] if isinstance(cell, str)]
    return bool(present) and column.numbers() is None and all(time_of(cell) is not None for cell in present)


def _has_lists(path: str, available: Column | None) -> bool:
    from pyarrow import parquet  # noqa: PLC0415
    from pyarrow import types as is_  # noqa: PLC0415

    try:
        schema = parquet.read_schema(path)
        allowed = None if available is None else find_column(path, schema.names, available, "available")
        return any(is_.is_nested(kind) for at, kind in enumerate(schema.types) if at != allowed)
    except Exception:  # the reader reports what is wrong
        return False


# --- opening --------------------------------------------------------------------------------------------------


def open_table(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    label: Column | None = None,
    reward: Column | None = None,
    available: Column | None = None,
    classes: Iterable[Label] | None = None,
    chunk: int | None = None,
    header: bool | None = None,
    separator: str | None = None,
    decimal: str = ".",
    dates: str | None = None,
    encoding: str | None = None,
    unlabelled: str = SKIP,
    grow: bool = False,
    limit: int | None = None,
    shuffle: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> TableStream:
    """Open a table with named columns.

    Args:
        path: a CSV, TSV (.gz .bz2 .xz are unpacked) or Parquet file, or "-" for standard input.
        format: csv, tsv or parquet, if the extension does not show it.
        label: the label's column, by name or number from 0. The default is a column named y, label, class or target,
            or the last column of a file without a header.
        reward: the column with the reward of the true label, from 0 to 1, for bandit feedback. It is not a feature.
        available: the column with the available labels, separated by | (or, in Parquet, lists). It is not a feature.
        classes: the labels in the order of their codes. The default is the sorted labels found.
        chunk: read this many rows at a time. Without `classes`, a first pass over the file finds the labels.
        header: is the first line of a text file a header? By default it is if none of its cells is a number.
        separator: as in `open_stream`, like the next five.
        decimal: the decimal separator.
        dates: "day-first" or "month-first", where the file does not show it.
        encoding: of a text file.
        unlabelled: "skip" or "error".
        grow: add labels that are not in `classes`.
        limit: use only this many rows, the first ones.
        shuffle: the seed of a permutation of the rows.
        progress: called while a text file is read, with the number of bytes read so far.

    Returns:
        The stream, in memory unless `chunk` is given.

    Raises:
        StreamError: the file cannot be read; the error names the file and, if possible, the line.
    """
    check_forms(separator, decimal, dates)
    check_encoding(encoding)
    source = Source(os.fspath(path), progress)
    options = CsvOptions(Columns(label, reward, available), header, separator, decimal, dates, encoding, numeric=False)
    reader = TableReader(source, format, options, Unlabelled(unlabelled))
    known = None if classes is None else _named_errors(source, check_classes, classes)
    if chunk is not None:
        if shuffle is not None:
            raise InputError("shuffle needs the whole stream in memory: open it without chunk")
        return _in_chunks(source, reader, known, chunk, limit, grow)
    whole = next(reader.chunks(None), None)
    if whole is None:
        raise reader.unlabelled.no_rounds(source.name)
    raw = whole.rounds
    check_labels(raw, classes_known=known is not None and not grow)
    labels = _classes(source, known, raw.all_labels, raw.text, grow)
    count, prepared = whole.table.num_rows, []
    if limit is not None and limit < count:
        count = limit
        prepared.append(f"first {limit} rounds")
    chosen: slice | Integers = slice(count)
    if shuffle is not None:
        chosen = np.random.default_rng(shuffle).permutation(count)
        prepared.append(f"shuffled (seed {shuffle})")
    rounds = _rounds(whole, labels, chosen)
    return TableStream(
        source.name,
        reader,
        labels,
        tuple(whole.table.column_names),
        lambda: iter([rounds]),
        rounds,
        count,
        (*reader.notes, *reader.unlabelled.notes),
        tuple(prepared),
    )


def _classes(
    source: Source, known: tuple[Label, ...] | None, labels: Iterable[Label], text: bool, grow: bool
) -> tuple[Label, ...]:
    """Return the classes: as given, and with `grow` also as found."""
    if known is None:
        return _named_errors(source, discover, labels, text)
    return with_new_labels(known, labels, text) if grow else known


def _rounds(chunk: TableChunk, classes: tuple[Label, ...], chosen: slice | Integers) -> Rounds:
    """Return the first rounds of a chunk, or those with the given numbers."""
    table, raw, _ = chunk
    codes = Codes(classes, raw.text)
    rows = table.slice(0, chosen.stop) if isinstance(chosen, slice) else table.take(chosen)
    whole = Rounds(None, label_codes(raw, codes), available_matrix(raw, codes), reward_column(raw))
    return whole.part(of_arrow(rows, text=raw.text), chosen)


def encode_table(source: TableStream, features: Features | None = None) -> Stream:
    """Encode a table in memory as numbers. Each row is encoded with what the rows before it show, as in a learner.

    Args:
        source: the table, opened without `chunk`.
        features: the declared columns; by default all are detected.

    Returns:
        The encoded stream, with sparse examples of norm 1.
    """
    assert source.whole is not None
    table, y, available, rewards = source.whole
    encoder = Encoder(features or Features())
    step = encoder.block_rows(table)
    chunks = []
    for at in range(0, len(y), step):
        chunk = encoder.encode(table, at, min(at + step, len(y)), learn=True).rows
        assert isinstance(chunk, Sparse)
        chunks.append(chunk)
    lengths = np.concatenate([[0], *(np.diff(chunk.indptr) for chunk in chunks)])
    indices, values = (np.concatenate([chunk[at] for chunk in chunks]) for at in (1, 2))
    X = csr(values, indices, np.cumsum(lengths), encoder.width)
    return Stream(
        MeasuredExamples(X, np.ones(len(y))),  # the encoder scales every example to norm 1, up to rounding
        y,
        source.classes,
        source.name,
        (*source.prepared, "columns encoded"),
        source.notes,
        source.columns,
        available=available,
        rewards=rewards,
    )


class UnlabelledRows(NamedTuple):
    """Some rows of a table whose labels are to be predicted."""

    table: Table
    available: NDArray[np.bool_] | None  # None: all labels
    copied: dict[str, list[Any]]  # the columns to copy


def read_unlabelled(
    path: str | os.PathLike[str],
    *,
    roles: Columns,
    classes: tuple[Label, ...],
    format: str | None = None,
    chunk: int = 1 << 16,
    header: bool | None = None,
    separator: str | None = None,
    decimal: str = ".",
    dates: str | None = None,
    encoding: str | None = None,
    copied: Sequence[Column] = (),
) -> Iterator[UnlabelledRows]:
    """Read a table whose labels are to be predicted.

    Args:
        path: as in `open_table`, like the arguments that are not named here.
        roles: the names of columns that are not features; each is ignored, or not in the file.
        classes: all labels in the order of their codes.
        format: as in `open_table`.
        chunk: the number of rows to read at a time.
        header: as in `open_table`.
        separator: as in `open_table`.
        decimal: as in `open_table`.
        dates: as in `open_table`.
        encoding: as in `open_table`.
        copied: the columns to copy, as they are written.

    Yields:
        Some rows.
    """
    check_forms(separator, decimal, dates)
    check_encoding(encoding)
    source = Source(os.fspath(path))
    options = CsvOptions(roles, header, separator, decimal, dates, encoding, numeric=False, labelled=False)
    for table, raw, others in TableReader(source, format, options, Unlabelled(), copied).chunks(chunk):
        rows = of_arrow(table, text=raw.text)
        yield UnlabelledRows(rows, available_matrix(raw, Codes(classes, raw.text)), others.to_pydict())


def _in_chunks(
    source: Source,
    reader: "TableReader",
    known: tuple[Label, ...] | None,
    chunk: int,
    limit: int | None,
    grow: bool,
) -> TableStream:
    notes: tuple[str, ...] = ()
    n_rounds = None
    columns = reader.columns()
    if known is None or grow:
        if source.is_stdin:
            raise StreamError(source.name, "reading it in chunks needs classes=..., and cannot find new labels")
        found: dict[Label, None] = {}
        n_rounds, text = 0, False
        for table, raw, _ in reader.chunks(chunk):
            check_labels(raw, classes_known=False)
            found |= dict.fromkeys(raw.all_labels)
            n_rounds, text = n_rounds + table.num_rows, raw.text
        if not n_rounds:
            raise reader.unlabelled.no_rounds(source.name)
        known = _classes(source, known, list(found), text, grow)
        notes = (*reader.unlabelled.notes, "classes found in a first pass over the file")
    labels = known

    def chunks() -> Iterator[Rounds]:
        left = limit
        for each in reader.chunks(chunk):
            check_labels(each.rounds, classes_known=True)
            rounds = _rounds(each, labels, slice(left))
            yield rounds
            if left is not None:
                left -= len(rounds.y)
                if left == 0:
                    return

    count = n_rounds if limit is None or n_rounds is None else min(limit, n_rounds)
    prepared = () if limit is None else (f"first {limit} rounds",)
    late_notes = tuple if n_rounds else lambda: reader.unlabelled.notes
    notes = (*reader.notes, *notes)
    return TableStream(source.name, reader, labels, columns, chunks, None, count, notes, prepared, late_notes)


def _named_errors(source: Source, find: Callable[..., tuple[Label, ...]], *arguments: Any) -> tuple[Label, ...]:
    """Call a function that returns classes; its errors name the source."""
    try:
        return find(*arguments)
    except InputError as error:
        raise StreamError(source.name, str(error)) from None


# --- reading --------------------------------------------------------------------------------------------------


class TableReader:
    """Reads one file in chunks.

    Args:
        source: the file.
        format: csv, tsv or parquet, if the extension does not show it.
        options: how text is read; its columns and `labelled` hold for Parquet too.
        unlabelled: skips the rows without a label.
        copied: columns to copy as they are written.
    """

    def __init__(
        self,
        source: Source,
        format: str | None,
        options: CsvOptions,
        unlabelled: Unlabelled,
        copied: Sequence[Column] = (),
    ) -> None:
        self.source = source
        self.format = format or {".tsv": "tsv", ".parquet": "parquet"}.get(source.suffixes[0], "csv")
        self.notes: tuple[str, ...] = ()
        self.roles = Columns()  # the names of the columns that are not features, once some rows were read
        self.dates: str | None = None  # whether the day or the month comes first, once some rows were read
        self.unlabelled = unlabelled
        self._options = options._replace(usual=SEPARATORS.get(self.format, ","))
        self._copied = copied
        source.check_exists()
        if self.format == "parquet":
            for option in TEXT_OPTIONS:
                if getattr(options, option) != CsvOptions._field_defaults[option]:
                    raise StreamError(source.name, f"{option}= is for CSV and TSV files, but this is parquet: omit it")

    def columns(self) -> tuple[str, ...]:
        """Return the names of the feature columns; empty for standard input, which can be read only once."""
        first = None if self.source.is_stdin else next(self.chunks(csv_text.SAMPLE), None)
        return () if first is None else tuple(first.table.column_names)

    def chunks(self, rows: int | None) -> Iterator[TableChunk]:
        """Yield the file in chunks of `rows` rows; None: in one chunk."""
        self.unlabelled.restart()
        if self.format == "parquet":
            found = (self._from_parquet(*each) for each in parquet.tables(self.source, rows))
            return (chunk for chunk in found if chunk is not None)
        return csv_text.read(self.source, rows, self._options, self._from_csv)

    def _from_csv(self, chunk: csv_text.CsvChunk) -> TableChunk | None:
        layout = chunk.layout
        self.notes, self.roles, self.dates = layout.notes, layout.columns, layout.dates
        copied = chunk.as_written(self._places_to_copy(layout.names))
        return self._labelled(TableChunk(chunk.table(), chunk.rounds(np.zeros((len(chunk.columns[0]), 0))), copied))

    def _from_parquet(self, table: Any, error_at: ErrorAt) -> TableChunk | None:
        name, names, options = self.source.name, table.column_names, self._options
        places, features = assign_roles(name, names, options.columns, options.labelled)
        self.roles = Columns(*(None if at is None else names[at] for at in places))
        if not features:
            raise StreamError(name, "there is no column except the label")
        check_unique(name, [names[at] for at in features])
        X = np.zeros((table.num_rows, 0))
        rounds = parquet.rounds(name, table, X, places, error_at)
        return self._labelled(TableChunk(table.select(features), rounds, table.select(self._places_to_copy(names))))

    def _places_to_copy(self, names: Sequence[str]) -> list[int]:
        return [find_column(self.source.name, names, column, "keep") for column in self._copied]

    def _labelled(self, chunk: TableChunk) -> TableChunk | None:
        """Return the rows with a label; None if there are none."""
        chosen = self.unlabelled.labelled_rows(chunk.rounds) if self._options.labelled else None
        if chosen is None:
            return chunk
        return TableChunk(chunk.table.take(chosen), chunk.rounds.take(chosen)) if len(chosen) else None
