"""Experts that vote in words: a table whose cells name a label becomes advice of -1 and +1."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gaptron.errors import StreamError

if TYPE_CHECKING:
    from gaptron.features.tables import Table
    from gaptron.streams import Chunks, Stream
    from gaptron.types import Matrix

LOOKED_AT = 50  # rows that tell whether experts vote in words


def in_words(file: str, format: str | None, label: str | int | None, classes: Sequence[str]) -> bool:
    """Does one of the experts in the first rows of this table name a label?"""
    from gaptron.streams.rows_by_name import is_table, open_by_name  # noqa: PLC0415

    if file == "-" or not is_table(file, format):
        return False
    table = next(iter(open_by_name(file, format=format, label=label, classes=classes, chunk=LOOKED_AT))).X
    cells = [cell for column in table.block(0, table.rows).values() for cell in column.distinct()[0]]
    return any(isinstance(cell, str) and cell in classes for cell in cells) and not all(map(_is_number, classes))


def read(
    file: str, format: str | None, label: str | int | None, classes: Sequence[str], chunk: int | None
) -> "Stream | Chunks":
    """The rounds of such a table: a word is the label's ±1, a number stays."""
    from gaptron.streams import Chunks, Stream  # noqa: PLC0415
    from gaptron.streams.rows_by_name import open_by_name  # noqa: PLC0415

    source = open_by_name(file, format=format, label=label, classes=classes, chunk=chunk)

    def parts() -> Iterator[Stream]:
        done = 0
        for rounds in source:
            words = [classes[code] for code in rounds.y]
            stream = Stream.from_arrays(_advice(rounds.X, classes, source.name, done), words, classes, source.name)
            yield replace(stream, columns=source.columns)
            done += len(words)

    if chunk is None:
        return next(parts())
    return Chunks(tuple(classes), len(source.columns), source.name, parts, columns=source.columns, notes=source.notes)


def _advice(table: "Table", classes: Sequence[str], name: str, done: int) -> "Matrix":
    import numpy as np  # noqa: PLC0415

    advice = np.empty((table.rows, len(table.columns)))
    for at, (expert, column) in enumerate(table.block(0, table.rows).items()):
        cells, codes = column.distinct()
        meant = np.array([_number(cell, classes) for cell in cells], dtype=np.float64)
        advice[:, at] = meant[codes]
        lost = np.isnan(advice[:, at])
        if lost.any():
            row = int(lost.argmax())
            cell = cells[codes[row]]
            said = "says nothing" if cell is None else f"says {cell!r}, neither a label nor a number"
            raise StreamError(name, f"row {done + row + 1}: {expert} {said}")
    return advice


def _number(cell: Any, classes: Sequence[str]) -> float:
    from gaptron.text_numbers import as_number  # noqa: PLC0415

    if isinstance(cell, str):
        if cell in classes:
            return 1.0 if cell == classes[1] else -1.0
        found = as_number(cell)
        return float("nan") if found is None else found
    return cell if isinstance(cell, float) else float("nan")


def _is_number(word: str) -> bool:
    from gaptron.text_numbers import as_number  # noqa: PLC0415

    return as_number(word) is not None
