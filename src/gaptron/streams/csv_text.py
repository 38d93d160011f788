"""CSV and TSV: one round a line, one column the label, the others numbers. `header.py` tells a header from a round."""

import csv
import io
import re
from array import array
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gaptron.errors import StreamError
from gaptron.streams.ahead import worked
from gaptron.streams.block import Available, Block
from gaptron.streams.header import is_header
from gaptron.streams.labels import distinct
from gaptron.streams.source import MARK, Source, Text, texts
from gaptron.streams.table import LAST, Columns, Places, available_in, label_column, place, split, usual_label
from gaptron.text_numbers import as_number, as_whole, shown

SAMPLE = 100  # lines below the first that help to tell what it is
FEW = 500  # bytes a column: for fewer, setting Arrow up takes longer than reading every cell
T = TypeVar("T")
_QUOTED_CELL = re.compile(r'\s*"')


class Layout(NamedTuple):
    """What the first lines say about all of them."""

    delimiter: str
    names: list[str]
    places: Places
    header: int  # the number of its line, 0 if there is none
    row_numbers: bool  # is the first column a nameless one that counts the rows?
    label_assumed: bool  # is the label's column the last because nothing says which it is?

    @property
    def features(self) -> list[int]:
        """The columns that are features."""
        return [at for at in self.places.features(len(self.names)) if not (self.row_numbers and at == 0)]

    @property
    def columns(self) -> tuple[str, ...]:
        """The features' names."""
        return tuple(self.names[at].strip() for at in self.features) if self.header else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, and what was taken for granted."""
        left_out = ("the nameless first column, which counts the rows, is left out",) if self.row_numbers else ()
        return (*left_out, LAST) if self.label_assumed else left_out


def read(
    source: Source,
    rows: int | None,
    columns: Columns,
    header: bool | None,
    then: Callable[[Block], T],
    delimiter: str = ",",
) -> Iterator[T]:
    """`then` of the rounds of the source, `rows` lines to a block; None: all in one."""
    pieces = texts(source, rows)
    first: list[Text] = []  # as many pieces as it takes to know the layout, whatever their size
    sample: list[tuple[int, bytes]] = []
    for text in pieces:
        text.check_line_ends()
        first.append(text)
        sample += islice(text.rounds(), SAMPLE + 1 - len(sample))
        if len(sample) > SAMPLE:
            break
    if not sample:
        return
    layout = _layout(first[0], sample, columns, header, delimiter)

    def work(text: Text) -> T | None:
        text.check_line_ends()
        block = _block(text, layout)
        return None if block is None else then(block)

    yield from worked(work, (text for text in first), in_threads=False)
    yield from worked(work, pieces, in_threads=rows is not None and source.at_rest)


def _block(text: Text, layout: Layout) -> Block | None:
    """The rounds of a text; None if there are none."""
    if layout.header >= text.first:
        text = after(text, layout.header)
    if next(text.rounds(), None) is None:
        return None
    return _careful(text, layout) if len(text.data) < FEW * len(layout.names) else _quick(text, layout)


def _layout(
    text: Text, sample: list[tuple[int, bytes]], columns: Columns, header: bool | None, delimiter: str
) -> Layout:
    number, line = sample[0]
    label = columns.label
    cells = cells_of(text, number, line, delimiter)
    if len(cells) < 2:
        raise StreamError(text.source, f"a row needs a label and a feature, separated by {delimiter!r}", number)
    if header is None and columns.by_name:
        header = True
    below = [cells_of(text, at, other, delimiter) for at, other in sample[1:]]
    last = len(cells) - 1
    if label is not None:
        spot = label_column(text.source, cells, label)
    else:
        usual = None if header is False else usual_label(text.source, cells)
        spot = last if usual is None else usual
    if header is None:
        quoted = _quoted(line, [other for _, other in sample[1:]], delimiter, len(cells))
        words = place(text.source, cells, columns, spot).available  # words in every line, so that they tell nothing
        if words is None:
            header = is_header(cells, quoted, below, spot)
        else:
            others = [_without(row, words) for row in below]
            header = is_header(_without(cells, words), _without(quoted, words), others, spot - (words < spot))
        if header is None:
            raise StreamError(
                text.source,
                f"{shown(line.strip())} may be a header or a round: say which with header=True or header=False, "
                "or give the columns names",
                number,
            )
    if not header:
        spot = last if label is None else spot
        numbered = [str(at) for at in range(len(cells))]
        return Layout(delimiter, numbered, place(text.source, numbered, columns, spot), 0, False, label is None)
    places = place(text.source, cells, columns)
    counted = 0 not in places and not cells[0].strip() and count_rows(below)
    return Layout(delimiter, cells, places, number, counted, False)


def _quoted(line: bytes, below: list[bytes], delimiter: str, cells: int) -> list[bool]:
    """Which cells of the line stand in quotation marks, where no line below has any."""
    if b'"' not in line or any(b'"' in other for other in below):
        return [False] * cells
    plain = next(csv.reader([line.decode().rstrip("\r\n")], delimiter=delimiter, quoting=csv.QUOTE_NONE))
    if len(plain) != cells:  # a quoted cell holds the delimiter
        return [False] * cells
    return [_QUOTED_CELL.match(cell) is not None for cell in plain]


def _without(row: list[T], at: int) -> list[T]:
    return row[:at] + row[at + 1 :]


def count_rows(rows: list[list[str]]) -> bool:
    """Do the first cells count 0, 1, 2, ... or 1, 2, 3, ...?"""
    numbers = [as_whole(row[0].strip()) for row in rows if row]
    return numbers in (list(range(len(rows))), list(range(1, len(rows) + 1)))


def after(text: Text, number: int) -> Text:
    """The text below the line of this number."""
    lines = io.BytesIO(text.data)
    for _ in range(number - text.first + 1):
        lines.readline()
    return text._replace(first=number + 1, data=lines.read())


def _quick(text: Text, layout: Layout) -> Block:
    """The rounds of a text by Arrow's parser; what it refuses is read again cell by cell."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import csv as arrow  # noqa: PLC0415

    if text.data.startswith(MARK):  # inside a file it is no mark but a cell, which Arrow would pass over
        return _careful(text, layout)
    columns = [str(at) for at in range(len(layout.names))]
    words = (layout.places.label, layout.places.available)
    kinds = {column: pa.string() if at in words else pa.float64() for at, column in enumerate(columns)}
    try:
        table = arrow.read_csv(
            pa.BufferReader(_of_arrow(text.data)),
            read_options=arrow.ReadOptions(column_names=columns, use_threads=False),  # we have threads
            parse_options=arrow.ParseOptions(delimiter=layout.delimiter),
            convert_options=arrow.ConvertOptions(column_types=kinds, null_values=[], strings_can_be_null=False),
        )
    except pa.ArrowInvalid:
        return _careful(text, layout)
    if b'"' in text.data and table.num_rows != sum(1 for _ in text.rounds()):
        return _careful(text, layout)  # a quoted cell holds the end of its line, and lines are rounds here
    labels = table.column(layout.places.label).combine_chunks().dictionary_encode()
    features = layout.features
    X = np.empty((table.num_rows, len(features)))
    for at, column in enumerate(features):
        X[:, at] = table.column(column).to_numpy()
    names, which = distinct([name.strip() for name in labels.dictionary.to_pylist()])
    marks = which[labels.indices.to_numpy()]
    reward, groups = layout.places.reward, layout.places.available
    return Block(
        X,
        names,
        marks,
        text.blame,
        text=True,
        columns=layout.columns,
        notes=layout.notes,
        reward=None if reward is None else table.column(reward).to_numpy(),
        available=None if groups is None else available_in(table.column(groups)),
    )


def _of_arrow(data: bytes) -> Any:
    """The bytes in memory of Arrow's own: its threads, which may outlive the call, then touch nothing of Python's."""
    import pyarrow as pa  # noqa: PLC0415

    sink = pa.BufferOutputStream()
    sink.write(data)
    return sink.getvalue()


def _careful(text: Text, layout: Layout) -> Block:
    """The rounds of a text, or the error that names its first bad cell."""
    labels: list[str] = []
    groups: list[tuple[str, ...]] = []
    values, rewards = array("d"), array("d")
    features, places = layout.features, layout.places
    for number, line in text.rounds():
        cells = cells_of(text, number, line, layout.delimiter)
        if len(cells) != len(layout.names):
            raise StreamError(text.source, f"{len(cells)} cells where {len(layout.names)} are expected", number)
        labels.append(cells[places.label].strip())
        if places.available is not None:
            groups.append(split(cells[places.available]))
        for at in features if places.reward is None else [*features, places.reward]:
            value = as_number(cells[at])
            if value is None:
                raise StreamError(text.source, no_number(layout.names[at].strip(), cells[at]), number)
            (rewards if at == places.reward else values).append(value)
    X = np.array(values).reshape(len(labels), len(features))
    names, marks = distinct(labels)
    return Block(
        X,
        names,
        marks,
        text.blame,
        text=True,
        columns=layout.columns,
        notes=layout.notes,
        reward=None if places.reward is None else np.array(rewards),
        available=None if places.available is None else Available(*distinct(groups)),
    )


def no_number(column: str, cell: str) -> str:
    """What is wrong with a cell that should write a number."""
    return f"column {column}: {shown(cell)} is not a number"


def cells_of(text: Text, number: int, line: bytes, delimiter: str) -> list[str]:
    """The cells of a line."""
    try:
        return next(csv.reader([line.decode().rstrip("\r\n")], delimiter=delimiter, strict=True))
    except UnicodeDecodeError:
        raise StreamError(text.source, "the line is not UTF-8 text: convert the file first", number) from None
    except csv.Error as error:
        raise StreamError(text.source, f"the cells of the line cannot be told apart ({error})", number) from None
