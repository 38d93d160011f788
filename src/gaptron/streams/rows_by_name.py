"""Tables as people have them: the columns of a file go to a learner's encoder by name, words, gaps, times and all.

Text files write numbers and times as texts, and the encoder reads them; a Parquet file says of each column what it is.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from gaptron.errors import GaptronError, InputError, StreamError
from gaptron.features.declaration import Features
from gaptron.features.encoder import Encoder
from gaptron.features.tables import Table, of_arrow
from gaptron.streams.block import Block, blame_row, check_labels, labels_of
from gaptron.streams.csv_text import SAMPLE, after, cells_of, count_rows
from gaptron.streams.directory import find
from gaptron.streams.header import is_header
from gaptron.streams.labels import Codes, Label, discover, distinct, given
from gaptron.streams.named import NAMED
from gaptron.streams.rows import csr
from gaptron.streams.source import Source, Text, texts
from gaptron.streams.stream import Stream
from gaptron.streams.table import LAST, Column, label_column
from gaptron.text_numbers import as_number
from gaptron.types import Integers, Sparse
from gaptron.validation import MeasuredRows

DELIMITERS = {"csv": ",", "tsv": "\t"}


class Piece(NamedTuple):
    """Some rows of a file: an Arrow table without the label, and the labels as the file writes them."""

    table: Any
    labels: Block | None  # a block without features; None: the file is not asked for labels


@dataclass(frozen=True, eq=False)
class RowsByName:
    """Rounds whose rows are given by name: an iterable of (table, codes of the labels)."""

    name: str
    label: str  # the column
    classes: tuple[Label, ...]
    columns: tuple[str, ...]
    parts: Callable[[], Iterator[tuple[Table, Integers]]] = field(repr=False)
    whole: tuple[Table, Integers] | None = field(repr=False, default=None)  # where it is in memory
    n_rounds: int | None = None
    notes: tuple[str, ...] = ()
    prepared: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[tuple[Table, Integers]]:
        return self.parts()

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.classes)


# --- what is a table ------------------------------------------------------------------------------------------


def is_table(path: str | os.PathLike[str], format: str | None = None) -> bool:
    """Has this file columns by name: CSV, TSV, or Parquet without lists?"""
    source = Source(os.fspath(path))
    kind = format or {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet"}.get(source.suffixes[0], "")
    if kind == "parquet" and not source.piped:
        return os.path.isfile(source.path) and not _has_lists(source.path)
    return kind in DELIMITERS or kind == "parquet"


def has_names(data: str, format: str | None = None) -> bool:
    """Is this a table, and not the name of a stream made here or of a data set of the data directory?"""
    return data.partition(":")[0] not in NAMED and find(data) is None and is_table(data, format)


def _has_lists(path: str) -> bool:
    from pyarrow import parquet  # noqa: PLC0415
    from pyarrow import types as is_  # noqa: PLC0415

    try:
        return any(is_.is_nested(kind) for kind in parquet.read_schema(path).types)
    except Exception:  # whatever is wrong is said by whoever reads it
        return False


# --- opening --------------------------------------------------------------------------------------------------


def open_by_name(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    label: Column | None = None,
    classes: Iterable[Label] | None = None,
    chunk: int | None = None,
    header: bool | None = None,
    limit: int | None = None,
    shuffle: int | None = None,
    watch: Callable[[int], None] | None = None,
) -> RowsByName:
    """The rounds of a table.

    Args:
        path: a CSV, TSV (.gz .bz2 .xz are unpacked) or Parquet file, or "-" for standard input.
        format: csv, tsv or parquet, where the extension does not say it.
        label: the label's column, by name or number from 0; by default one called y, label, class or target; in a file
            without a header the last.
        classes: the labels in code order; by default the sorted labels found.
        chunk: read so many rows at a time. Without `classes` the file is then read once before, for its labels.
        header: is the first line of a text a header? By default it is if none of its cells is a number.
        limit: only the first so many rows.
        shuffle: the seed of a permutation of the rows.
        watch: called while a text file is read, with the number of its bytes that have been read.
    """
    source = Source(os.fspath(path), watch)
    reading = Reading(source, format, label, header)
    listed = None if classes is None else _given(source, classes)
    if chunk is not None:
        if shuffle is not None:
            raise InputError("shuffle looks ahead: the stream must be in memory, opened without chunk")
        return _in_chunks(source, reading, listed, chunk, limit)
    pieces = list(reading.pieces(None))
    if not pieces:
        raise StreamError(source.name, "holds no rounds")
    (piece,) = pieces
    assert piece.labels is not None
    check_labels(piece.labels, listed=listed is not None)
    labels = listed or _discovered(source, piece.labels.names, piece.labels.text)
    y, rows = labels_of(piece.labels, Codes(labels, piece.labels.text)), piece.table
    prepared = []
    if limit is not None and limit < len(y):
        rows, y = rows.slice(0, limit), y[:limit]
        prepared.append(f"first {limit} rounds")
    if shuffle is not None:
        order = np.random.default_rng(shuffle).permutation(len(y))
        rows, y = rows.take(order), y[order]
        prepared.append(f"shuffled (seed {shuffle})")
    whole = of_arrow(rows, text=piece.labels.text), y
    return RowsByName(
        source.name,
        reading.label_name,
        labels,
        tuple(rows.column_names),
        lambda: iter([whole]),
        whole,
        len(y),
        tuple(reading.notes),
        tuple(prepared),
    )


def encoded(source: RowsByName, features: Features | None = None) -> Stream:
    """A table that is in memory as rows of numbers: each encoded by the rows before it, as a learner would do it."""
    assert source.whole is not None
    table, y = source.whole
    encoder = Encoder(features or Features())
    step = encoder.block_rows(table)
    parts = []
    for at in range(0, len(y), step):
        part = encoder.encode(table, at, min(at + step, len(y)), learn=True).rows
        assert isinstance(part, Sparse)
        parts.append(part)
    lengths = np.concatenate([[0], *(np.diff(part.indptr) for part in parts)])
    indices, values = (np.concatenate([part[at] for part in parts]) for at in (1, 2))
    X = csr(values, indices, np.cumsum(lengths), encoder.width)
    rows = MeasuredRows(X, np.ones(len(y)))  # every row has length 1, but for rounding
    words = (*source.prepared, "encoded by name")
    return Stream(rows, y, source.classes, source.name, words, source.notes, source.columns)


def open_unlabelled(
    path: str | os.PathLike[str],
    *,
    without: str = "",
    format: str | None = None,
    chunk: int = 1 << 16,
    header: bool | None = None,
) -> Iterator[Table]:
    """The rows of a table, some at a time, without the column called `without` if there is one."""
    source = Source(os.fspath(path))
    for piece in Reading(source, format, None, header, labelled=False).pieces(chunk):
        names = piece.table.column_names
        yield of_arrow(piece.table.drop_columns([without]) if without in names else piece.table, text=_is_text(piece))


def _is_text(piece: Piece) -> bool:
    import pyarrow as pa  # noqa: PLC0415

    return all(pa.types.is_string(kind) for kind in piece.table.schema.types)


def _in_chunks(
    source: Source, reading: "Reading", listed: tuple[Label, ...] | None, chunk: int, limit: int | None
) -> RowsByName:
    notes: tuple[str, ...] = ()
    rounds = None
    labels = listed
    if labels is None:
        if source.piped:
            raise StreamError(source.name, "reading it in chunks needs classes=...")
        found: dict[Label, None] = {}
        rounds, text = 0, False
        for piece in reading.pieces(chunk):
            assert piece.labels is not None
            check_labels(piece.labels, listed=False)
            found |= dict.fromkeys(piece.labels.names)
            rounds, text = rounds + piece.table.num_rows, piece.labels.text
        if not rounds:
            raise StreamError(source.name, "holds no rounds")
        labels = _discovered(source, list(found), text)
        notes = ("classes learned by one pass over the file",)
    known = labels

    def parts() -> Iterator[tuple[Table, Integers]]:
        left = limit
        for piece in reading.pieces(chunk):
            assert piece.labels is not None
            check_labels(piece.labels, listed=True)
            y, rows = labels_of(piece.labels, Codes(known, piece.labels.text)), piece.table
            if left is not None:
                rows, y = rows.slice(0, left), y[:left]
                left -= len(y)
            yield of_arrow(rows, text=piece.labels.text), y
            if left == 0:
                return

    columns, label = reading.columns()
    count = rounds if limit is None or rounds is None else min(limit, rounds)
    words = () if limit is None else (f"first {limit} rounds",)
    return RowsByName(source.name, label, labels, columns, parts, None, count, (*reading.notes, *notes), words)


def _given(source: Source, classes: Iterable[Label]) -> tuple[Label, ...]:
    try:
        return given(classes)
    except InputError as error:
        raise StreamError(source.name, str(error)) from None


def _discovered(source: Source, names: list[Label], text: bool) -> tuple[Label, ...]:
    try:
        return discover(names, text)
    except InputError as error:
        raise StreamError(source.name, str(error)) from None


# --- reading --------------------------------------------------------------------------------------------------


class Reading:
    """How one file is read."""

    def __init__(
        self,
        source: Source,
        format: str | None,
        label: Column | None,
        header: bool | None,
        labelled: bool = True,
    ) -> None:
        self.source = source
        self.format = format or {".tsv": "tsv", ".parquet": "parquet"}.get(source.suffixes[0], "csv")
        self.notes: list[str] = []
        self.label_name = ""
        self._label = label
        self._header = header
        self._labelled = labelled
        if not source.piped and not os.path.exists(source.path):
            raise StreamError(source.name, "there is no such file")

    def columns(self) -> tuple[tuple[str, ...], str]:
        """The names of the columns, and of the label's. Not for what can be read only once."""
        first = None if self.source.piped else next(self.pieces(SAMPLE), None)
        return ((), self.label_name) if first is None else (tuple(first.table.column_names), self.label_name)

    def pieces(self, rows: int | None) -> Iterator[Piece]:
        """The file, so many rows at a time; None: all at once."""
        return self._parquet(rows) if self.format == "parquet" else self._text(rows, DELIMITERS[self.format])

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    # --- text ---

    def _text(self, rows: int | None, delimiter: str) -> Iterator[Piece]:
        pieces = texts(self.source, rows)
        first: list[Text] = []  # as many as it takes to know what the first line is
        sample: list[tuple[int, bytes]] = []
        for text in pieces:
            text.check_line_ends()
            first.append(text)
            sample += islice(text.rounds(), SAMPLE + 1 - len(sample))
            if len(sample) > SAMPLE:
                break
        if not sample:
            return
        below = [cells_of(first[0], at, line, delimiter) for at, line in sample[1:]]
        cells = cells_of(first[0], *sample[0], delimiter)
        header = self._has_header(cells, below)
        names = [name.strip() or f"column {at}" for at, name in enumerate(cells)] if header else None
        names = names or [str(at) for at in range(len(cells))]
        spot = self._spot(names, header) if self._labelled else None
        left_out = [] if spot is None else [spot]
        if header and not cells[0].strip() and spot != 0 and count_rows(below):
            left_out.append(0)
            self._note("the nameless first column, which counts the rows, is left out")
        _check_names(self.source.name, names, left_out)
        skip = sample[0][0] if header else 0
        for text in [*first, *pieces]:
            text.check_line_ends()
            if skip >= text.first:
                text = after(text, skip)
            if next(text.rounds(), None) is not None:
                yield _piece(text, _string_columns(text, len(names), delimiter), names, spot, left_out)

    def _has_header(self, cells: list[str], below: list[list[str]]) -> bool:
        if self._header is not None:
            return self._header
        if isinstance(self._label, str) and as_number(self._label) is None:
            return True
        numbers = [as_number(cell) is not None for cell in cells]
        if not any(numbers):
            return True
        if all(numbers):
            told = is_header(cells, [False] * len(cells), below, len(cells) - 1)
            if told is None:
                raise StreamError(
                    self.source.name,
                    "the first line may be a header or a round: say which with header=True or header=False",
                    1,
                )
            return told
        return False

    def _spot(self, names: list[str], header: bool) -> int:
        """The number of the label's column."""
        if len(names) < 2:
            raise StreamError(self.source.name, "a row needs a label and a feature", 1)
        if self._label is None and not header:
            self._note(LAST)
            spot = len(names) - 1
        else:
            spot = label_column(self.source.name, names, self._label)
        self.label_name = names[spot]
        return spot

    # --- Parquet ---

    def _parquet(self, rows: int | None) -> Iterator[Piece]:
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415

        start = 0
        with self.source.seekable() as place:
            try:
                with parquet.ParquetFile(place) as file:
                    batches = [file.read()] if rows is None else file.iter_batches(rows)
                    for batch in batches:
                        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
                        if table.num_rows:
                            yield self._typed_piece(table, start)
                        start += table.num_rows
            except GaptronError:
                raise
            except Exception as error:  # a damaged file makes Arrow raise nearly everything
                line = next(iter(str(error).splitlines()), type(error).__name__)
                raise StreamError(self.source.name, f"cannot be read as Parquet ({line})") from None

    def _typed_piece(self, table: Any, start: int) -> Piece:
        names = table.column_names
        spot = self._spot(names, True) if self._labelled else None
        _check_names(self.source.name, names, [])
        if spot is None:
            return Piece(table, None)
        column = table.column(spot)
        if hasattr(column.type, "value_type"):
            column = column.cast(column.type.value_type)
        block = Block(np.zeros((table.num_rows, 0)), *distinct(column.to_pylist()), blame_row(self.source.name, start))
        return Piece(table.remove_column(spot), block)


def _check_names(source: str, names: list[str], left_out: list[int]) -> None:
    used = [name for at, name in enumerate(names) if at not in left_out]
    twice = next((name for at, name in enumerate(used) if name in used[:at]), None)
    if twice is not None:
        raise StreamError(source, f"two columns are called {twice}: give one of them another name")


def _piece(text: Text, columns: list[Any], names: list[str], spot: int | None, left_out: list[int]) -> Piece:
    import pyarrow as pa  # noqa: PLC0415

    kept = [at for at in range(len(names)) if at not in left_out]
    table = pa.table([columns[at] for at in kept], names=[names[at] for at in kept])
    if spot is None:
        return Piece(table, None)
    labels = columns[spot].combine_chunks().dictionary_encode()
    found, which = distinct([name.strip() for name in labels.dictionary.to_pylist()])
    marks = which[labels.indices.to_numpy()]
    return Piece(table, Block(np.zeros((table.num_rows, 0)), found, marks, text.blame, text=True))


def _string_columns(text: Text, count: int, delimiter: str) -> list[Any]:
    """Every cell as a text, column by column: by Arrow; what it refuses is read again cell by cell."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import csv as arrow  # noqa: PLC0415

    names = [str(at) for at in range(count)]
    try:
        table = arrow.read_csv(
            pa.BufferReader(text.data),  # not a Python file, which Arrow would read from threads of its own
            read_options=arrow.ReadOptions(column_names=names),
            parse_options=arrow.ParseOptions(delimiter=delimiter),
            convert_options=arrow.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), null_values=[], strings_can_be_null=False
            ),
        )
        if b'"' not in text.data or table.num_rows == sum(1 for _ in text.rounds()):
            return list(table.columns)
    except pa.ArrowInvalid:
        pass
    rows = []
    for number, line in text.rounds():
        cells = cells_of(text, number, line, delimiter)
        if len(cells) != count:
            raise StreamError(text.source, f"{len(cells)} cells where {count} are expected", number)
        rows.append(cells)
    return [pa.chunked_array([pa.array(list(column), type=pa.string())]) for column in zip(*rows)]
