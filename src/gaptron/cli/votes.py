"""Convert tables whose experts name a label to predictions of -1 and +1."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gaptron.errors import StreamError

if TYPE_CHECKING:
    from gaptron.features.tables import Table
    from gaptron.streams import Chunks, Stream
    from gaptron.types import Matrix

SAMPLED_ROWS = 50  # rows that are searched for label names


def has_named_votes(file: str, format: str | None, label: str | int | None, classes: Sequence[str]) -> bool:
    """Return whether an expert in the first rows of this table names a label."""
    from gaptron.streams.tables import is_table, open_table  # noqa: PLC0415

    if file == "-" or not is_table(file, format):
        return False
    table = next(iter(open_table(file, format=format, label=label, classes=classes, chunk=SAMPLED_ROWS))).X
    cells = [cell for column in table.block(0, table.rows).values() for cell in column.distinct()[0]]
    return any(isinstance(cell, str) and cell in classes for cell in cells) and not all(map(_is_number, classes))


def read(
    file: str, format: str | None, label: str | int | None, classes: Sequence[str], chunk: int | None
) -> "Stream | Chunks":
    """Read such a table: the name of a label becomes -1 or +1, and a number is kept."""
    from gaptron.streams import Chunks, Stream  # noqa: PLC0415
    from gaptron.streams.tables import open_table  # noqa: PLC0415

    source = open_table(file, format=format, label=label, classes=classes, chunk=chunk)

    def streams() -> Iterator[Stream]:
        done = 0
        for rounds in source:
            labels = [classes[code] for code in rounds.y]
            stream = Stream.from_arrays(_advice(rounds.X, classes, source.name, done), labels, classes, source.name)
            yield replace(stream, columns=source.columns)
            done += len(labels)

    if chunk is None:
        return next(streams())
    return Chunks(tuple(classes), len(source.columns), source.name, streams, columns=source.columns, notes=source.notes)


def _advice(table: "Table", classes: Sequence[str], name: str, done: int) -> "Matrix":
    import numpy as np  # noqa: PLC0415

    advice = np.empty((table.rows, len(table.columns)))
    for at, (expert, column) in enumerate(table.block(0, table.rows).items()):
        cells, codes = column.distinct()
        numbers = np.array([_number(cell, classes) for cell in cells], dtype=np.float64)
        advice[:, at] = numbers[codes]
        missing = np.isnan(advice[:, at])
        if missing.any():
            row = int(missing.argmax())
            cell = cells[codes[row]]
            found = "is empty" if cell is None else f"is {cell!r}, neither a label nor a number"
            raise StreamError(name, f"row {done + row + 1}: {expert} {found}")
    return advice


def _number(cell: Any, classes: Sequence[str]) -> float:
    from gaptron.data.text_numbers import as_number  # noqa: PLC0415

    if isinstance(cell, str):
        if cell in classes:
            return 1.0 if cell == classes[1] else -1.0
        found = as_number(cell)
        return float("nan") if found is None else found
    return cell if isinstance(cell, float) else float("nan")


def _is_number(text: str) -> bool:
    from gaptron.data.text_numbers import as_number  # noqa: PLC0415

    return as_number(text) is not None
