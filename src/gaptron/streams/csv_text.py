"""CSV and TSV: one round a line, one column the label, the others numbers.

The first line is a header if one of its cells, apart from the label's, is a name.
"""

import csv
import io
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gaptron.errors import StreamError
from gaptron.streams.block import Block
from gaptron.streams.labels import distinct
from gaptron.streams.source import Source, Text, texts
from gaptron.streams.table import Column, label_column


class Layout(NamedTuple):
    """What the first line tells."""

    delimiter: str
    names: list[str]
    label: int
    header: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The features' names."""
        named = [name.strip() for at, name in enumerate(self.names) if at != self.label]
        return tuple(named) if self.header else ()


def read(source: Source, rows: int | None, label: Column | None, delimiter: str = ",") -> Iterator[Block]:
    """The rounds of the source, `rows` lines to a block; None: all in one."""
    layout: Layout | None = None
    for text in texts(source, rows):
        if layout is None:
            number, line = next(text.rounds(), (0, b""))
            if not line:
                continue
            layout = _layout(text, number, line, label, delimiter)
            if layout.header:
                text = _after(text, number)
        if next(text.rounds(), None) is not None:
            yield _quick(text, layout)


def _layout(text: Text, number: int, line: bytes, label: Column | None, delimiter: str) -> Layout:
    cells = _cells(text, number, line, delimiter)
    if len(cells) < 2:
        raise StreamError(text.source, f"a row needs a label and a feature, separated by {delimiter!r}", number)
    by_name = isinstance(label, str) and _number(label) is None
    spot = len(cells) - 1 if label is None else label_column(text.source, cells, label)
    header = by_name or any(cell.strip() and _number(cell) is None for at, cell in enumerate(cells) if at != spot)
    if header:
        return Layout(delimiter, cells, label_column(text.source, cells, label), True)
    return Layout(delimiter, [str(at) for at in range(len(cells))], spot, False)


def _after(text: Text, number: int) -> Text:
    lines = io.BytesIO(text.data)
    for _ in range(number - text.first + 1):
        lines.readline()
    return text._replace(first=number + 1, data=lines.read())


def _quick(text: Text, layout: Layout) -> Block:
    """The rounds of a text by Arrow's parser; what it refuses is read again cell by cell."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import csv as arrow  # noqa: PLC0415

    columns = [str(at) for at in range(len(layout.names))]
    kinds = {column: pa.string() if at == layout.label else pa.float64() for at, column in enumerate(columns)}
    try:
        table = arrow.read_csv(
            io.BytesIO(text.data),
            read_options=arrow.ReadOptions(column_names=columns),
            parse_options=arrow.ParseOptions(delimiter=layout.delimiter),
            convert_options=arrow.ConvertOptions(column_types=kinds, null_values=[], strings_can_be_null=False),
        )
    except pa.ArrowInvalid:
        return _careful(text, layout)
    labels = table.column(layout.label).combine_chunks().dictionary_encode()
    X = np.empty((table.num_rows, len(columns) - 1))
    for at, column in enumerate(column for column in columns if int(column) != layout.label):
        X[:, at] = table.column(column).to_numpy()
    names = [name.strip() for name in labels.dictionary.to_pylist()]
    marks = labels.indices.to_numpy().astype(np.int64)
    return Block(X, names, marks, text.blame, columns=layout.columns)


def _careful(text: Text, layout: Layout) -> Block:
    """The rounds of a text, or the error that names its first bad cell."""
    labels, rows = [], []
    for number, line in text.rounds():
        cells = _cells(text, number, line, layout.delimiter)
        if len(cells) != len(layout.names):
            raise StreamError(text.source, f"{len(cells)} cells where {len(layout.names)} are expected", number)
        labels.append(cells.pop(layout.label).strip())
        row = [_number(cell) for cell in cells]
        if None in row:
            at = row.index(None)
            name = layout.names[at + (at >= layout.label)]
            raise StreamError(text.source, f"column {name}: {cells[at]!r} is not a number", number)
        rows.append(row)
    names, marks = distinct(np.array(labels))
    return Block(np.array(rows, dtype=np.float64), names, marks, text.blame, columns=layout.columns)


def _cells(text: Text, number: int, line: bytes, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line.decode().rstrip("\r\n")], delimiter=delimiter))
    except UnicodeDecodeError:
        raise StreamError(text.source, "the line is not UTF-8 text: convert the file first", number) from None


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
