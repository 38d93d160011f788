"""CSV and TSV: one round per line, one column per feature. The one reader behind numeric streams and named tables.

A text is parsed into columns by Arrow. What Arrow refuses, and text too short to pay for it, is parsed cell by cell in
Python, which also finds the line and column of an error. `separator.py` finds what separates the cells, `header.py`
tells a header from a round, and `cell_forms.py` reads numbers and dates as people write them.
"""

import csv
import io
import re
from array import array
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gaptron.data.text_numbers import as_whole, shown
from gaptron.errors import StreamError
from gaptron.streams import cell_forms
from gaptron.streams.cell_forms import CODE, DATE, DAY_FIRST, DECIMAL_COMMA, MARKED, MONTH_FIRST, NUMBER, TEXT
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
from gaptron.streams.separator import CANDIDATES, find_separator
from gaptron.streams.source import COMMA, MARK, Source, Text, count_byte, read_text, whole_records
from gaptron.types import Integers

SAMPLE = 100  # lines below the first one that show the separator, whether there is a header, and how cells are written
HEAD_BYTES = 1 << 16  # in which these lines are looked for at first
DATE_SAMPLE = 10_000  # lines that are searched for a date that shows whether the day or the month comes first
MIN_BYTES = 500  # per column: with less text, starting Arrow takes longer than parsing every cell
ROW_NUMBERS = "the unnamed first column contains row numbers and is ignored"
NO_LABELS: Integers = np.zeros(0, dtype=np.int64)
T = TypeVar("T")
_QUOTED_CELL = re.compile(r'\s*"')


class CsvOptions(NamedTuple):
    """How CSV text is read."""

    columns: Columns = Columns()
    header: bool | None = None  # None: detected
    separator: str | None = None  # None: detected
    decimal: str = "."
    dates: str | None = None  # day-first or month-first, where the dates do not show it
    encoding: str | None = None  # None: UTF-8, or UTF-16 after its byte order mark
    usual: str = ","  # the separator of the format
    numeric: bool = True  # are the features numbers? False: text, for an encoder
    labelled: bool = True  # False: the file need not have `columns`, and only its available labels are read


class Layout(NamedTuple):
    """What the first lines of a file show about all its lines."""

    separator: str
    decimal: str
    names: list[str]  # of the columns; their numbers if there is no header
    places: Places
    features: list[int]
    forms: list[str]  # of the columns, as in `cell_forms`
    numbers: frozenset[int]  # the columns that contain numbers
    header: int  # the line number of the end of the header, 0 if there is none
    notes: tuple[str, ...]

    @property
    def columns(self) -> Columns:
        """The names of the columns that are not features."""
        return Columns(*(None if at is None else self.names[at] for at in self.places))

    @property
    def dates(self) -> str | None:
        """Whether the day or the month comes first in dates, where the columns show it."""
        return cell_forms.order_of_dates(self.forms, None)

    def named(self, form: str) -> str:
        """The names of the features of a form."""
        return ", ".join(self.names[at] for at in self.features if self.forms[at] == form)


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
        """Return the features as an Arrow table of text, with numbers and dates in their plain form."""
        layout = self.layout
        may_have_marks = self._may_have_marks()
        features = self.as_written(layout.features)
        for place, at in enumerate(layout.features):
            column, form = features.column(place), layout.forms[at]
            if form == NUMBER and layout.decimal == ".":
                form = MARKED if may_have_marks and cell_forms.has_marks(column) else TEXT
            if form not in (TEXT, DATE, DECIMAL_COMMA):
                column = cell_forms.rewritten(column, form, layout.decimal)
                features = features.set_column(place, layout.names[at], column)
        return features

    def _may_have_marks(self) -> bool:
        """May a column of numbers have marks, which need not occur in the lines that show its form?"""
        data, separator = self.text.data, self.layout.separator
        if separator != "," or b'"' not in data:
            return b"%" in data or (separator != "," and b"," in data)
        between = len(self.columns[0]) * (len(self.columns) - 1)
        return b"%" in data or count_byte(data, COMMA) != between

    def as_written(self, columns: Sequence[int]) -> Any:
        """Return columns, by their numbers, as an Arrow table of text."""
        import pyarrow as pa  # noqa: PLC0415

        cells = [self.columns[at] for at in columns]
        arrays = [pa.array(column, type=pa.string()) if isinstance(column, list) else column for column in cells]
        return pa.table(arrays, names=[self.layout.names[at] for at in columns])

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


def read(source: Source, rows: int | None, options: CsvOptions, then: Callable[[CsvChunk], T | None]) -> Iterator[T]:
    """Parse the source in chunks of `rows` lines (None: in one chunk) and yield `then(chunk)` for each."""
    texts: Generator[Text, None, None] = read_text(source, rows, encoding=options.encoding)
    first: list[Text] = []  # as many texts as the layout depends on, whatever their size
    sample: list[tuple[int, bytes]] = []
    for text in whole_records(texts, options.separator or CANDIDATES):
        text.check_line_ends()
        first.append(text)
        sample += _first_records(text, options.separator or CANDIDATES, SAMPLE + 1 - len(sample))
        if len(sample) > SAMPLE:
            break
    if not sample:
        return
    separator = options.separator or find_separator(source.name, sample, options.usual, options.decimal)
    layout = _layout(first[0], sample, separator, options)
    while DATE in layout.forms and sum(text.max_lines for text in first) < DATE_SAMPLE:
        more = next(texts, None)
        if more is None:
            break
        first.append(more)
    layout = _with_notes(_with_dates(layout, first, options.dates), options.numeric)

    def parse(text: Text) -> T | None:
        text.check_line_ends()
        if layout.header >= text.first:
            text = _after(text, layout.header)
        if next(text.records(), None) is None:
            return None
        columns = None
        uses_arrow = not options.numeric or len(text.data) >= MIN_BYTES * len(layout.names)
        if uses_arrow:
            columns = _parse_with_arrow(text, layout, use_threads=rows is None)
        if columns is None:
            text = text.quoted(separator)
            if uses_arrow and text.separators:
                columns = _parse_with_arrow(text, layout, use_threads=rows is None)
        return then(CsvChunk(text, layout, columns or _parse_cells(text, layout)))

    chunks = whole_records(chain(first, texts), separator)
    yield from map_chunks(parse, (text for text in islice(chunks, len(first))), in_threads=False)
    yield from map_chunks(parse, chunks, in_threads=rows is not None and source.is_regular_file)


def _first_records(text: Text, separators: str, count: int) -> list[tuple[int, bytes]]:
    """Return the first records of a text, without looking for quoted line ends in all of it."""
    size = HEAD_BYTES
    while True:
        # One more than needed, because the last one may be cut.
        records = list(islice(text.head(size).quoted(separators).records(), count + 1))
        if len(records) > count or size >= len(text.data):
            return records[:count]
        size *= 8


# --- the layout -----------------------------------------------------------------------------------------------


def _layout(text: Text, sample: list[tuple[int, bytes]], separator: str, options: CsvOptions) -> Layout:
    number, line = sample[0]
    cells, *below = (_split_cells(text, at, other, separator) for at, other in sample)
    if options.labelled and len(cells) < 2:
        raise StreamError(text.source, f"a row needs a label and a feature, separated by {separator!r}", number)
    header = options.header
    if header is None:
        header = options.labelled and options.columns.by_name
        header = header or _detect_header(text.source, sample, cells, below, separator, options)
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
    if separator != options.usual and options.separator is None:
        notes = (*notes, f"cells are separated by {separator!r}")
    numbers = frozenset([*(features if options.numeric else ()), *([] if places.reward is None else [places.reward])])
    rows = [row for row in (below if header else [cells, *below]) if len(row) == len(names)]
    forms = [cell_forms.column_form((row[at] for row in rows), options.decimal) for at in range(len(names))]
    last = number + line.rstrip(b"\r\n").count(b"\n")
    return Layout(separator, options.decimal, names, places, features, forms, numbers, last if header else 0, notes)


def _with_dates(layout: Layout, texts: list[Text], chosen: str | None) -> Layout:
    """Decide whether the day or the month comes first in columns whose first dates do not show it."""
    undecided = [at for at in layout.features if layout.forms[at] == DATE]
    if not undecided:
        return layout
    order = cell_forms.order_of_dates(layout.forms, chosen)
    forms = list(layout.forms)
    if order is None:
        records = (
            _split_cells(text, number, line, layout.separator)
            for text in whole_records(texts, layout.separator)
            for number, line in text.quoted(layout.separator).records()
            if number > layout.header
        )
        rows = [row for row in islice(records, DATE_SAMPLE) if len(row) == len(forms)]
        for at in undecided:
            forms[at] = cell_forms.column_form((row[at] for row in rows), layout.decimal)
        order = cell_forms.order_of_dates(forms, None)
    return layout._replace(forms=[order if form == DATE and order else form for form in forms])


def _with_notes(layout: Layout, numeric: bool) -> Layout:
    """Add remarks about the forms of the features."""
    remarks = {MARKED: "numbers with thousands separators or per cent signs: {}"}
    remarks |= (
        {}
        if numeric
        else {
            CODE: "categories, because of leading zeros: {}",
            DAY_FIRST: "dates with the day first: {}",
            MONTH_FIRST: "dates with the month first: {}",
            DATE: f"dates that may have the day or the month first, used as words: {{}} (choose dates={DAY_FIRST!r})",
            DECIMAL_COMMA: "numbers with decimal commas, used as words: {} (choose decimal=',')",
        }
    )
    found = [remark.format(layout.named(form)) for form, remark in remarks.items() if layout.named(form)]
    return layout._replace(notes=(*layout.notes, *found))


def _detect_header(
    source: str,
    sample: list[tuple[int, bytes]],
    cells: list[str],
    below: list[list[str]],
    separator: str,
    options: CsvOptions,
) -> bool | None:
    """Is the first line a header? None: the lines do not show it."""
    if options.decimal == ",":
        cells, *below = ([cell_forms.with_point(cell) for cell in row] for row in [cells, *below])
    if not options.numeric:
        return has_column_names(cells, below)
    columns = options.columns
    label = usual_label_column(source, cells) if columns.label is None else label_column(source, cells, columns.label)
    label = len(cells) - 1 if label is None else label
    quoted = _quoted(sample[0][1], [line for _, line in sample[1:]], separator, len(cells))
    text = locate(source, cells, columns, label).available  # text in every line, so it shows nothing
    if text is None:
        return is_header(cells, quoted, below, label)
    others = [_without(row, text) for row in below]
    return is_header(_without(cells, text), _without(quoted, text), others, label - (text < label))


def _quoted(line: bytes, below: list[bytes], separator: str, n_cells: int) -> list[bool]:
    """Which cells of the line are quoted, where no line below has quotes?"""
    if b'"' not in line or any(b'"' in other for other in below):
        return [False] * n_cells
    plain = next(csv.reader([line.decode().rstrip("\r\n")], delimiter=separator, quoting=csv.QUOTE_NONE))
    if len(plain) != n_cells:  # a quoted cell contains the separator
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
    numbers = {at for at in layout.numbers if layout.forms[at] != MARKED}
    types = {name: pa.float64() if at in numbers else pa.string() for at, name in enumerate(names)}
    sink = pa.BufferOutputStream()  # Arrow's threads may outlive the call, so they must not use memory of Python
    sink.write(text.data)
    try:
        table = arrow.read_csv(
            pa.BufferReader(sink.getvalue()),
            read_options=arrow.ReadOptions(column_names=names, use_threads=use_threads),
            parse_options=arrow.ParseOptions(delimiter=layout.separator, newlines_in_values=bool(text.separators)),
            convert_options=arrow.ConvertOptions(
                column_types=types, null_values=[], strings_can_be_null=False, decimal_point=layout.decimal
            ),
        )
        columns = [
            cell_forms.rewritten(column, MARKED, layout.decimal).cast("float64")
            if at in layout.numbers - numbers
            else column
            for at, column in enumerate(table.columns)
        ]
    except pa.ArrowInvalid:
        return None
    if b'"' in text.data and table.num_rows != sum(1 for _ in text.records()):
        return None  # Arrow ends a round in another place
    return [column.to_numpy() if at in layout.numbers else column for at, column in enumerate(columns)]


def _parse_cells(text: Text, layout: Layout) -> list[Any]:
    """Parse the columns cell by cell, or raise the error that names the first bad cell."""
    columns: list[Any] = [array("d") if at in layout.numbers else [] for at in range(len(layout.names))]
    for number, line in text.records():
        cells = _split_cells(text, number, line, layout.separator)
        if len(cells) != len(columns):
            raise StreamError(text.source, f"{len(cells)} cells where {len(columns)} are expected", number)
        for at, (column, cell) in enumerate(zip(columns, cells)):
            value = cell_forms.plain_number(cell, layout.decimal) if at in layout.numbers else cell
            if value is None:
                problem = f"column {layout.names[at]}: {shown(cell)} is not a number"
                if layout.decimal == "." and cell_forms.plain_number(cell, ",") is not None:
                    problem += "; if it has a decimal comma, choose decimal=','"
                raise StreamError(text.source, problem, number)
            column.append(value)
    return [np.array(column) if isinstance(column, array) else column for column in columns]


def _split_cells(text: Text, number: int, line: bytes, separator: str) -> list[str]:
    try:
        return next(csv.reader([line.decode().rstrip("\r\n")], delimiter=separator, strict=True))
    except UnicodeDecodeError:
        raise StreamError(
            text.source, "the line is not UTF-8 text: choose its encoding, such as encoding='cp1252' (Windows)", number
        ) from None
    except csv.Error as error:
        raise StreamError(text.source, f"the line cannot be split into cells ({error})", number) from None
