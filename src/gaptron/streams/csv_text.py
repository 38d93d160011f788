"""CSV and TSV: one round per line, one column per feature. The one reader behind numeric streams and named tables.

A text is parsed into columns by Arrow. What Arrow refuses, and text too short to pay for it, is parsed cell by cell in
Python, which also finds the line and column of an error. `header.py` tells a header from a round.
"""

import csv
import io
import re
from array import array
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gaptron.data.text_numbers import as_number, as_whole, shown
from gaptron.errors import StreamError
from gaptron.streams.columns import (
    LABEL_ASSUMED,
    Columns,
    Places,
    assign_roles,
    check_unique,
    label_column,
    locate,
    split_available,
    usual_label_column,
)
from gaptron.streams.header import has_column_names, is_header
from gaptron.streams.labels import distinct_text
from gaptron.streams.prefetch import map_chunks
from gaptron.streams.raw_chunk import AvailableLabels, RawChunk
from gaptron.streams.rows import Rows
from gaptron.streams.source import MARK, Source, Text, read_text
from gaptron.types import Integers

SAMPLE = 100  # lines below the first one that help to recognise a header
MIN_BYTES = 500  # per column: with less text, starting Arrow takes longer than parsing every cell
ROW_NUMBERS = "the unnamed first column contains row numbers and is ignored"
NO_LABELS: Integers = np.zeros(0, dtype=np.int64)
T = TypeVar("T")
_QUOTED_CELL = re.compile(r'\s*"')


class CsvOptions(NamedTuple):
    """How CSV text is read."""

    columns: Columns = Columns()
    header: bool | None = None  # None: detected
    delimiter: str = ","
    numeric: bool = True  # are the features numbers? False: text, for an encoder
    labelled: bool = True  # False: the file need not have `columns`, and only its available labels are read


class Layout(NamedTuple):
    """What the first lines of a file show about all its lines."""

    delimiter: str
    names: list[str]  # of the columns; their numbers if there is no header
    places: Places
    features: list[int]
    numbers: frozenset[int]  # the columns that contain numbers
    header: int  # the line number of the header, 0 if there is none
    notes: tuple[str, ...]

    @property
    def columns(self) -> Columns:
        """The names of the columns that are not features."""
        return Columns(*(None if at is None else self.names[at] for at in self.places))


class CsvChunk(NamedTuple):
    """Some lines of a file, parsed into columns."""

    text: Text
    layout: Layout
    columns: list[Any]  # numbers as NumPy arrays; text as Arrow arrays, or as lists where Arrow was not used

    def numeric(self) -> RawChunk:
        """Return the rounds, whose features are numbers."""
        layout = self.layout
        X = np.empty((len(self.columns[0]), len(layout.features)))
        for at, column in enumerate(layout.features):
            X[:, at] = self.columns[column]
        names = tuple(layout.names[at] for at in layout.features) if layout.header else ()
        return self.rounds(X)._replace(columns=names)

    def table(self) -> Any:
        """Return the features as an Arrow table of text."""
        import pyarrow as pa  # noqa: PLC0415

        columns = [self.columns[at] for at in self.layout.features]
        arrays = [pa.array(column, type=pa.string()) if isinstance(column, list) else column for column in columns]
        return pa.table(arrays, names=[self.layout.names[at] for at in self.layout.features])

    def rounds(self, X: Rows) -> RawChunk:
        """Return X with the labels, rewards and available labels of its rounds."""
        places, columns = self.layout.places, self.columns
        labels = ([], NO_LABELS) if places.label is None else distinct_text(columns[places.label], str.strip)
        available = None
        if places.available is not None:
            available = AvailableLabels(*distinct_text(columns[places.available], split_available))
        return RawChunk(
            X,
            *labels,
            self.text.error_at,
            text=True,
            notes=self.layout.notes,
            reward=None if places.reward is None else columns[places.reward],
            available=available,
        )


def read(source: Source, rows: int | None, options: CsvOptions, then: Callable[[CsvChunk], T]) -> Iterator[T]:
    """Parse the source in chunks of `rows` lines (None: in one chunk) and yield `then(chunk)` for each."""
    texts = read_text(source, rows)
    first: list[Text] = []  # as many texts as the layout depends on, whatever their size
    sample: list[tuple[int, bytes]] = []
    for text in texts:
        text.check_line_ends()
        first.append(text)
        sample += islice(text.records(), SAMPLE + 1 - len(sample))
        if len(sample) > SAMPLE:
            break
    if not sample:
        return
    layout = _layout(first[0], sample, options)

    def parse(text: Text) -> T | None:
        text.check_line_ends()
        if layout.header >= text.first:
            text = _after(text, layout.header)
        if next(text.records(), None) is None:
            return None
        columns = None
        if not options.numeric or len(text.data) >= MIN_BYTES * len(layout.names):
            columns = _parse_with_arrow(text, layout, use_threads=rows is None)
        return then(CsvChunk(text, layout, columns or _parse_cells(text, layout)))

    yield from map_chunks(parse, (text for text in first), in_threads=False)
    yield from map_chunks(parse, texts, in_threads=rows is not None and source.is_regular_file)


# --- the layout -----------------------------------------------------------------------------------------------


def _layout(text: Text, sample: list[tuple[int, bytes]], options: CsvOptions) -> Layout:
    number, line = sample[0]
    cells, *below = (_split_cells(text, at, other, options.delimiter) for at, other in sample)
    if options.labelled and len(cells) < 2:
        raise StreamError(text.source, f"a row needs a label and a feature, separated by {options.delimiter!r}", number)
    header = options.header
    if header is None:
        header = options.labelled and options.columns.by_name
        header = header or _detect_header(text.source, sample, cells, below, options)
    if header is None:
        raise StreamError(
            text.source,
            f"{shown(line.strip())} may be a header or a round: choose header=True or header=False, "
            "or give the columns names",
            number,
        )
    names = [str(at) for at in range(len(cells))]
    if header:
        names = [cell.strip() or f"column {at}" for at, cell in enumerate(cells)]
    assumed = options.labelled and not header and options.columns.label is None
    notes = (LABEL_ASSUMED,) if assumed else ()
    places, features = assign_roles(
        text.source, names, options.columns, options.labelled, len(names) - 1 if assumed else None
    )
    if header and not cells[0].strip() and 0 in features and _count_rows(below):
        features.remove(0)
        notes = (ROW_NUMBERS,)
    if not features:
        raise StreamError(text.source, "no column is left that could be a feature")
    if not options.numeric:
        check_unique(text.source, [names[at] for at in features])
    numbers = frozenset([*(features if options.numeric else ()), *([] if places.reward is None else [places.reward])])
    return Layout(options.delimiter, names, places, features, numbers, number if header else 0, notes)


def _detect_header(
    source: str, sample: list[tuple[int, bytes]], cells: list[str], below: list[list[str]], options: CsvOptions
) -> bool | None:
    """Is the first line a header? None: the lines do not show it."""
    if not options.numeric:
        return has_column_names(cells, below)
    columns = options.columns
    label = usual_label_column(source, cells) if columns.label is None else label_column(source, cells, columns.label)
    label = len(cells) - 1 if label is None else label
    quoted = _quoted(sample[0][1], [line for _, line in sample[1:]], options.delimiter, len(cells))
    text = locate(source, cells, columns, label).available  # text in every line, so it shows nothing
    if text is None:
        return is_header(cells, quoted, below, label)
    others = [_without(row, text) for row in below]
    return is_header(_without(cells, text), _without(quoted, text), others, label - (text < label))


def _quoted(line: bytes, below: list[bytes], delimiter: str, n_cells: int) -> list[bool]:
    """Which cells of the line are quoted, where no line below has quotes?"""
    if b'"' not in line or any(b'"' in other for other in below):
        return [False] * n_cells
    plain = next(csv.reader([line.decode().rstrip("\r\n")], delimiter=delimiter, quoting=csv.QUOTE_NONE))
    if len(plain) != n_cells:  # a quoted cell contains the delimiter
        return [False] * n_cells
    return [_QUOTED_CELL.match(cell) is not None for cell in plain]


def _without(row: list[T], at: int) -> list[T]:
    return row[:at] + row[at + 1 :]


def _count_rows(rows: list[list[str]]) -> bool:
    """Do the first cells count 0, 1, 2, ... or 1, 2, 3, ...?"""
    numbers = [as_whole(row[0].strip()) for row in rows if row]
    return numbers in (list(range(len(rows))), list(range(1, len(rows) + 1)))


def _after(text: Text, number: int) -> Text:
    """Return the text below the line with this number."""
    lines = io.BytesIO(text.data)
    for _ in range(number - text.first + 1):
        lines.readline()
    return text._replace(first=number + 1, data=lines.read())


# --- parsing --------------------------------------------------------------------------------------------------


def _parse_with_arrow(text: Text, layout: Layout, use_threads: bool) -> list[Any] | None:
    """Parse the columns with Arrow; None if it refuses the text or would read it differently."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import csv as arrow  # noqa: PLC0415

    if text.data.startswith(MARK):  # inside a file it is not a byte order mark but a cell, which Arrow would skip
        return None
    names = [str(at) for at in range(len(layout.names))]
    types = {name: pa.float64() if at in layout.numbers else pa.string() for at, name in enumerate(names)}
    sink = pa.BufferOutputStream()  # Arrow's threads may outlive the call, so they must not use memory of Python
    sink.write(text.data)
    try:
        table = arrow.read_csv(
            pa.BufferReader(sink.getvalue()),
            read_options=arrow.ReadOptions(column_names=names, use_threads=use_threads),
            parse_options=arrow.ParseOptions(delimiter=layout.delimiter),
            convert_options=arrow.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False),
        )
    except pa.ArrowInvalid:
        return None
    if b'"' in text.data and table.num_rows != sum(1 for _ in text.records()):
        return None  # a quoted cell contains a line end, but here every line is a round
    return [column.to_numpy() if at in layout.numbers else column for at, column in enumerate(table.columns)]


def _parse_cells(text: Text, layout: Layout) -> list[Any]:
    """Parse the columns cell by cell, or raise the error that names the first bad cell."""
    columns: list[Any] = [array("d") if at in layout.numbers else [] for at in range(len(layout.names))]
    for number, line in text.records():
        cells = _split_cells(text, number, line, layout.delimiter)
        if len(cells) != len(columns):
            raise StreamError(text.source, f"{len(cells)} cells where {len(columns)} are expected", number)
        for at, (column, cell) in enumerate(zip(columns, cells)):
            value = as_number(cell) if at in layout.numbers else cell
            if value is None:
                raise StreamError(text.source, f"column {layout.names[at]}: {shown(cell)} is not a number", number)
            column.append(value)
    return [np.array(column) if isinstance(column, array) else column for column in columns]


def _split_cells(text: Text, number: int, line: bytes, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line.decode().rstrip("\r\n")], delimiter=delimiter, strict=True))
    except UnicodeDecodeError:
        raise StreamError(text.source, "the line is not UTF-8 text: convert the file first", number) from None
    except csv.Error as error:
        raise StreamError(text.source, f"the line cannot be split into cells ({error})", number) from None
