"""A chunk of a table on its way to the encoder: distinct cells are encoded by the rule for one example.

`Encoder.add_cell` is the only rule that turns a cell into numbers. For examples that come one by one it is called for
each cell. Here it is called once for each distinct cell, in the order of the rows, so that every new place is the same
as example by example. Numbers and times need no distinct cells: the rule sees the first of each kind, and the others
follow it as an array.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from gaptron.features.cells import AUTO, IGNORE, TIME, WEEKDAYS, WORD, Cell, Time, kind_of, part_or_word, word
from gaptron.features.columns import JOIN, Column, Dictionary, Tracks
from gaptron.features.tables import Column as TableColumn
from gaptron.features.tables import Numbers, Texts, Times, Words
from gaptron.types import Flags, Integers, Matrix, Vector

if TYPE_CHECKING:
    from gaptron.features.encoder import Encoder

NOTHING = -1  # as in `kernels.features`
TIME_TEXTS: dict[str, list[str]] = {  # code → word
    "hour": [str(hour) for hour in range(24)],
    "weekday": list(WEEKDAYS),
    "month": [str(month) for month in range(13)],
}


class Distinct:
    """The distinct cells of one column or cross, and what they are encoded as.

    Args:
        cells: the cells.
        codes: which of the cells each row has; one more than the last: none.
        column: the column; None for a cross.
        values: name of a value → its number in each row, where it is known without the cells.
        words: part of a time → its code in each row, -1: none, where it is known without the cells.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        codes: Integers,
        column: Column | None,
        values: Mapping[str, Vector] = MappingProxyType({}),
        words: Mapping[str, Integers] = MappingProxyType({}),
    ) -> None:
        self.cells = cells
        self.size = len(cells)
        self.codes = codes
        self.column = column
        self.arrays = values
        self.words = words
        self.places: dict[int, Integers] = {}  # word track → the place of each cell
        self.values: dict[int, Vector] = {}  # value track → the number of each cell

    def set_place(self, track: int, at: int, place: int) -> None:
        """Set the place of a cell in a word track."""
        if track not in self.places:
            self.places[track] = np.full(self.size + 1, NOTHING, dtype=np.int64)
        self.places[track][at] = place

    def set_value(self, track: int, at: int, value: float) -> None:
        """Set the number of a cell in a value track."""
        if track not in self.values:
            self.values[track] = np.full(self.size + 1, np.nan)
        self.values[track][at] = value


class Chunk:
    """Some rows of a table, to be encoded column by column.

    Args:
        encoder: the encoder.
        rows: the number of rows, at least 1.
        text: whether the table writes numbers and times as text.
        learn: whether the encoder learns from the rows.
    """

    def __init__(self, encoder: "Encoder", rows: int, text: bool, learn: bool) -> None:
        self._encoder = encoder
        self._rows = rows
        self._text = text
        self._learn = learn
        self._distinct: list[Distinct] = []
        # First row, number of the column, number of the cell, how many rows have it, its dictionary if it is a cross's.
        self._unknown: list[tuple[int, int, int, int, Dictionary | None]] = []

    def add(self, column: Column, data: TableColumn | None) -> None:
        """Add a column of the encoder, and its cells; None: the table does not have it."""
        if data is None:
            column.absent += self._rows * self._learn
            data = Words([], np.full(self._rows, -1))
        start = 0  # rows before the first value of a column are not encoded
        if column.kind == AUTO:
            first = _first(data)
            if first is None or not self._learn:
                column.missing += self._rows * self._learn
                return
            start, value = first
            column.missing += start
            as_text = self._text and isinstance(data, Texts)  # a reader makes words of categories such as ZIP codes
            self._encoder.settle(column, kind_of(value, as_text))
        distinct = _distinct(column, data)
        if start:
            distinct.codes[:start] = distinct.size
        words, number = column.words, column.values.get("number")
        known: Flags | None = None  # the usual cases first
        if column.kind == WORD:
            places = [words.places.get(c, NOTHING) if type(c) is str else NOTHING for c in distinct.cells]
            distinct.places[words.track] = np.array([*places, NOTHING], dtype=np.int64)
            known = distinct.places[words.track] != NOTHING
        elif number is not None:
            values = [c if type(c) is float else np.nan for c in distinct.cells]
            distinct.values[number] = np.array([*values, np.nan])
            known = ~np.isnan(distinct.values[number])
        self._add(distinct, known, None)

    def _add(self, distinct: Distinct, known: Flags | None, cross: Dictionary | None) -> None:
        """Add distinct cells; those that are not known wait for `tracks`."""
        size, codes = distinct.size, distinct.codes
        counts = np.bincount(codes, minlength=size + 1)
        counts[size] = 0
        unknown = np.flatnonzero(counts if known is None else counts * ~known)
        if unknown.size:
            first = np.full(size + 1, self._rows)
            first[codes[::-1]] = np.arange(self._rows)[::-1]
            number = len(self._distinct)
            self._unknown += [
                (row, number, at, count, cross)
                for row, at, count in zip(first[unknown].tolist(), unknown.tolist(), counts[unknown].tolist())
            ]
        self._distinct.append(distinct)

    def add_cross(
        self, members: Sequence[tuple[Column | None, str]], cross: Dictionary, block: Mapping[str, TableColumn]
    ) -> None:
        """Add the words that columns make together."""
        codes: Integers = np.zeros(self._rows, dtype=np.int64)
        texts: list[str] = [""]
        for number, (column, part) in enumerate(members):
            data = None if column is None else block.get(column.name)
            if column is None or data is None or column.kind in (AUTO, IGNORE):
                return
            cells, marks = data.distinct()
            words = [None if c is None else part_or_word(column.kind, part, c) for c in cells]
            empty = np.array([*(text is None for text in words), True])[marks] | (codes < 0)
            pairs = np.where(empty, -1, codes * len(words) + marks)
            found, inverse = np.unique(pairs, return_inverse=True)
            start = int(len(found) > 0 and found[0] < 0)
            codes = inverse.astype(np.int64) - start
            texts = [
                (texts[pair // len(words)] + JOIN if number else "") + str(words[pair % len(words)])
                for pair in found[start:].tolist()
            ]
        distinct = Distinct(texts, np.where(codes < 0, len(texts), codes), None)
        places = [cross.places.get(text, NOTHING) for text in texts]
        distinct.places[cross.track] = np.array([*places, NOTHING], dtype=np.int64)
        self._add(distinct, distinct.places[cross.track] != NOTHING, cross)

    def tracks(self) -> tuple[Matrix, Integers, Integers, Integers]:
        """Encode the distinct cells; the numbers and places of the rows, and the tracks they belong to."""
        encoder = self._encoder
        for _, number, at, count, cross in sorted(self._unknown, key=lambda unknown: unknown[:3]):
            distinct, learn = self._distinct[number], count * self._learn
            cell = distinct.cells[at]
            if cross is not None:
                assert isinstance(cell, str)
                distinct.set_place(cross.track, at, encoder.place(cross, cell, learn))
                continue
            x, s = Tracks([], []), Tracks([], [])
            assert distinct.column is not None
            encoder.add_cell(distinct.column, cell, learn, x, s)
            for track, value in zip(*x):
                distinct.set_value(track, at, value)
            for track, place in zip(*s):
                distinct.set_place(track, at, place)
        values: dict[int, Vector] = {}
        places: dict[int, Integers] = {}
        for distinct in self._distinct:
            values |= {track: numbers[distinct.codes] for track, numbers in distinct.values.items()}
            places |= {track: found[distinct.codes] for track, found in sorted(distinct.places.items())}
            if distinct.column is not None:
                known = distinct.column.values
                values |= {known[name]: numbers for name, numbers in distinct.arrays.items() if name in known}
                places |= self._words_of_times(distinct.column, distinct.words)
        X = np.array(list(values.values()), dtype=np.float64).reshape(-1, self._rows)
        S = np.array(list(places.values()), dtype=np.int64).reshape(-1, self._rows)
        return X, np.array(list(values), dtype=np.int64), S, np.array(list(places), dtype=np.int64)

    def _words_of_times(self, column: Column, words: Mapping[str, Integers]) -> dict[int, Integers]:
        """The places of the words of times, which all have one by now if they are learned from."""
        found = {}
        for name, codes in words.items():
            places = np.full(len(TIME_TEXTS[name]) + 1, NOTHING, dtype=np.int64)
            for code in np.unique(codes[codes >= 0]).tolist():
                places[code] = self._encoder.place(column.parts[name], TIME_TEXTS[name][code], 0)
            found[column.parts[name].track] = places[codes]
        return found


def _first(data: TableColumn) -> tuple[int, Any] | None:
    """The first row with a value, and the value."""
    if isinstance(data, Texts):
        return data.first()
    cells, codes = data.distinct()
    filled = np.array([*(cell is not None for cell in cells), False])[codes]
    row = int(filled.argmax())
    return (row, cells[codes[row]]) if filled[row] else None


def _distinct(column: Column, data: TableColumn) -> Distinct:
    """The distinct cells of a column; of numbers and times only what the rule must see."""
    kind = column.kind
    if isinstance(data, Texts):
        data = (None if kind in (WORD, TIME) else data.numbers()) or data.words()
    if isinstance(data, Numbers) and kind not in (WORD, TIME):
        missing = np.isnan(data.values)
        first = data.values[~missing][:1].tolist()
        return Distinct([*first, None], missing.astype(np.int64) * len(first), column, {"number": data.values})
    if isinstance(data, Times) and kind == TIME:
        return _distinct_times(column, data)
    if isinstance(data, Words) and kind == WORD:
        known = column.words.places
        cells = [text if text in known or text is None else word(text) for text in data.texts]
        return Distinct([*cells, None], np.where(data.codes < 0, len(cells), data.codes), column)
    cells, codes = data.distinct()
    return Distinct(cells, np.where(codes < 0, len(cells) - 1, codes), column)


def _distinct_times(column: Column, data: Times) -> Distinct:
    """The times that bring something new, in the rows in which they do, and missing values."""
    stamps, hours, weekdays, months, _ = data
    missing, timed = np.isnan(stamps), hours >= 0.0
    words = {"hour": np.where(timed, hours, -1.0).astype(np.int64), "weekday": weekdays, "month": months}
    new = [(~missing, "stamp" in column.values), (timed, "sine" in column.values)]
    for name, codes in words.items():
        known = column.parts[name].places
        new += [(codes == code, TIME_TEXTS[name][code] in known) for code in np.unique(codes[codes >= 0]).tolist()]
    rows = sorted({int(where.argmax()) for where, is_known in new if not is_known and where.any()})
    cells: list[Cell] = [
        *(Time(stamps.item(row), hours.item(row), weekdays.item(row), months.item(row), "") for row in rows),
        None,
    ]
    codes = np.where(missing, len(rows), len(cells))
    codes[rows] = np.arange(len(rows))
    by_hour = np.where(timed, hours, np.nan)
    return Distinct(cells, codes, column, {"stamp": stamps, "sine": by_hour, "cosine": by_hour}, words)
