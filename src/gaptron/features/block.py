"""Some rows of a table on their way to the encoder: column by column, then every new place in the order of the rows."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gaptron.features.cells import AUTO, IGNORE, TIME, WEEKDAYS, WORD, Cell, Time, fitted, is_strange, kind_of, word
from gaptron.features.cells import part_or_word as part_or_word_of
from gaptron.features.columns import TIME_WORDS, Column, Dictionary, Key
from gaptron.features.tables import Column as TableColumn
from gaptron.features.tables import Numbers, Texts, Times, Words, time_arrays
from gaptron.types import Flags, Integers, Matrix, Vector

if TYPE_CHECKING:
    from gaptron.features.encoder import Encoder

NOTHING, NEW_WORD, NEW_FLAG = -1, -2, -3  # as in `kernels.features`
JOIN = "\x1f"  # between the words of a cross: no text has it for a letter
_PARTS: dict[str, list[str]] = {
    "hour": [str(hour) for hour in range(24)],
    "weekday": list(WEEKDAYS),
    "month": [str(month) for month in range(13)],
}


class Entry(NamedTuple):
    """A word track of the block: the place of each different word, and which of them each row has."""

    words: Dictionary
    places: Integers  # one more than words: the last is of rows without any, which have -1
    waiting: list[tuple[int, Key]]  # those without a place so far
    codes: Integers


class Block:
    """Rows on their way."""

    def __init__(self, encoder: "Encoder", rows: int, text: bool, learn: bool) -> None:
        self._encoder = encoder
        self._rows = rows
        self._text = text  # are numbers and times written as texts?
        self._learn = learn
        self._new: list[tuple[int, int, int, int, Any]] = []  # first row, column, part, number of the entry, key
        self._values: list[tuple[Column, str, Vector]] = []
        self._entries: list[Entry] = []

    # --- columns --------------------------------------------------------------------------------------------------

    def add(self, at: int, column: Column, data: TableColumn | None) -> None:
        """The column number `at` of the encoder, and its cells in the table, if it has any."""
        if data is None:
            if self._learn:
                column.absent += self._rows
            data = Words([], np.full(self._rows, -1))
        silent = 0  # rows before the first value of a column, which give nothing
        if column.kind == AUTO:
            first = self._first(data)
            if first is None or not self._learn:
                column.missing += self._rows if self._learn else 0
                return
            silent, value = first
            self._encoder.settle(column, kind_of(value, self._text))
        if isinstance(data, Texts):
            data = (None if column.kind in (WORD, TIME) else data.numbers()) or data.words()
        if isinstance(data, Numbers) and column.kind not in (WORD, TIME):
            self._add_value(at, 0, column, "number", data.values)
            self._add_gaps(at, column, np.isnan(data.values), silent)
        elif isinstance(data, Times) and column.kind == TIME:
            self._add_times(at, column, *data[:4])
            self._add_gaps(at, column, np.isnan(data.stamps), silent)
        elif isinstance(data, Words) and column.kind == WORD:
            self._add_texts(at, column, data, silent)
        else:
            self._add_cells(at, column, *data.distinct(), silent)

    def _first(self, data: TableColumn) -> tuple[int, Any] | None:
        """The first row with a value, and the value."""
        if isinstance(data, Texts):
            return data.first()
        cells, codes = data.distinct()
        filled = np.array([*(cell is not None for cell in cells), False])[codes]
        row = int(filled.argmax())
        return (row, cells[codes[row]]) if filled[row] else None

    def _add_texts(self, at: int, column: Column, data: Words, silent: int) -> None:
        """Words in a column of words, the usual case: only those that are not known as they stand are looked at."""
        known = column.words.places
        texts = [text if text in known or text is None else word(text) for text in data.texts]
        gaps = np.array([*(text is None for text in texts), True])[data.codes]
        self._add_words(at, 0, column.words, texts, data.codes, column, gaps, silent)

    def _add_cells(self, at: int, column: Column, cells: list[Cell], codes: Integers, silent: int) -> None:
        """Cells of any kind in a column of any kind."""
        kind = column.kind
        fits = [None if cell is None else fitted(kind, cell) for cell in cells]
        if self._learn:
            strange = [c is not None and is_strange(kind, c, fit) for c, fit in zip(cells, fits)]
            column.other_kind += int(np.array([*strange, False])[codes].sum())
        texts = [fit if isinstance(fit, str) else None for fit in fits]
        gaps = np.array([*(fit is None for fit in fits), True])[codes]
        if kind == TIME:
            times = time_arrays([*(fit if isinstance(fit, Time) else None for fit in fits), None])
            self._add_times(at, column, *(part[codes] for part in times))
        elif kind != WORD:
            numbers = np.array([*(fit if isinstance(fit, float) else np.nan for fit in fits), np.nan])
            self._add_value(at, 0, column, "number", numbers[codes])
        self._add_words(at, 6, column.words, texts, codes, column, gaps, silent)

    def _add_times(self, at: int, column: Column, stamps: Any, hours: Any, weekdays: Any, months: Any) -> None:
        hour_or_none = np.where(hours >= 0.0, hours, np.nan)
        self._add_value(at, 0, column, "stamp", stamps)
        self._add_value(at, 1, column, "sine", hour_or_none)
        self._add_value(at, 2, column, "cosine", hour_or_none)
        for part, (name, codes) in enumerate(zip(TIME_WORDS, (hours, weekdays, months)), 3):
            whole = np.where(codes >= 0, codes, -1).astype(np.int64)
            self._add_words(at, part, column.parts[name], _PARTS[name], whole)

    def _add_value(self, at: int, part: int, column: Column, name: str, values: Vector) -> None:
        filled = ~np.isnan(values)
        if name not in column.values:
            if not self._learn or not filled.any():
                return
            self._new.append((int(filled.argmax()), at, part, len(self._values), None))
        self._values.append((column, name, values))

    def _add_gaps(self, at: int, column: Column, gaps: Flags, silent: int) -> None:
        """The gaps of a column that has no words in this block."""
        if gaps.any():
            self._add_words(at, 6, column.words, [], np.full(self._rows, -1), column, gaps, silent)

    def _add_words(
        self,
        at: int,
        part: int,
        words: Dictionary,
        texts: Sequence[str | None],
        codes: Integers,
        column: Column | None = None,
        gaps: Flags | None = None,
        silent: int = 0,
    ) -> None:
        """A word track: the different texts, and which each row has; of a column, its gaps too."""
        places = np.full(len(texts) + 2, NOTHING, dtype=np.int64)  # then that of a gap, then that of nothing
        waiting: list[tuple[int, Key]] = []
        unknown = []
        for i, text in enumerate(texts):
            if text is not None:
                place = words.places.get(text)
                if place is None:
                    unknown.append(i)
                else:
                    places[i] = place
        if unknown:
            waiting = self._add_unknown(at, part, words, texts, codes, unknown, places, column)
        if column is not None and gaps is not None and gaps.any():
            if self._learn:
                column.missing += int(gaps.sum())
            gaps[:silent] = False
            codes = np.where(gaps, len(texts), codes)
            if silent:
                codes[:silent] = -1
            if gaps.any():
                place = words.places.get(None)
                if place is not None:
                    places[-2] = place
                elif self._learn:
                    self._new.append((int(gaps.argmax()), at, part, ~len(self._entries), column))
                    waiting.append((len(texts), None))
                else:
                    places[-2] = NEW_WORD if column.counts_gaps else NEW_FLAG
        self._entries.append(Entry(words, places, waiting, codes))

    def _add_unknown(
        self,
        at: int,
        part: int,
        words: Dictionary,
        texts: Sequence[str | None],
        codes: Integers,
        unknown: list[int],
        places: Integers,
        column: Column | None,
    ) -> list[tuple[int, Key]]:
        """Words met for the first time, in the order of their rows: a place of their own, or that of a bucket."""
        found = np.full(len(texts) + 1, self._rows)
        found[codes[::-1]] = np.arange(self._rows)[::-1]
        firsts = found.tolist()
        waiting: list[tuple[int, Key]] = []
        promised: set[Key] = set()
        full = 0
        for i in sorted(unknown, key=firsts.__getitem__):
            text = texts[i]
            if text is None or firsts[i] == self._rows:
                continue
            key: Key = text if text in promised else words.key(text, full)
            if key != text and self._learn and column is not None:
                column.shared += int((codes == i).sum())
            place = words.places.get(key)
            if place is not None:
                places[i] = place
            elif not self._learn:
                places[i] = NEW_WORD
            else:
                waiting.append((i, key))
                if key not in promised:
                    promised.add(key)
                    full += key == text
                    self._new.append((firsts[i], at, part, ~len(self._entries), key))
        return waiting

    # --- crosses --------------------------------------------------------------------------------------------------

    def add_cross(
        self,
        at: int,
        members: Sequence[tuple[Column | None, str]],
        cross: Dictionary,
        block: Mapping[str, TableColumn],
    ) -> None:
        """The words that columns make together."""
        codes: Integers = np.zeros(self._rows, dtype=np.int64)
        texts: list[str] = [""]
        for number, (column, part) in enumerate(members):
            data = None if column is None else block.get(column.name)
            if column is None or data is None or column.kind in (AUTO, IGNORE):
                return
            cells, marks = data.distinct()
            words = [None if c is None else part_or_word_of(column.kind, part, c) for c in cells]
            empty = np.array([*(text is None for text in words), True])[marks] | (codes < 0)
            pairs = np.where(empty, -1, codes * len(words) + marks)
            found, inverse = np.unique(pairs, return_inverse=True)
            start = int(len(found) > 0 and found[0] < 0)
            codes = inverse.astype(np.int64) - start
            texts = [
                (texts[pair // len(words)] + JOIN if number else "") + str(words[pair % len(words)])
                for pair in found[start:].tolist()
            ]
        self._add_words(at, 0, cross, texts, codes)

    # --- places ---------------------------------------------------------------------------------------------------

    def tracks(self) -> tuple[Matrix, Integers, Integers, Integers]:
        """Every new place is given; the numbers and places of the rows, and whose they are."""
        encoder = self._encoder
        for _, _, _, number, key in sorted(self._new, key=lambda new: new[:3]):
            if number >= 0:
                column, name, _ = self._values[number]
                encoder.take_value(column, name)
            elif isinstance(key, Column):
                encoder.take_gap(key)
            else:
                encoder.take_word(self._entries[~number].words, key)
        values = np.array([column.values[name] for column, name, _ in self._values], dtype=np.int64)
        X = np.array([track for _, _, track in self._values], dtype=np.float64).reshape(-1, self._rows)
        for entry in self._entries:
            for i, key in entry.waiting:
                entry.places[i] = entry.words.places[key]
        S = np.array([entry.places[entry.codes] for entry in self._entries], dtype=np.int64)
        words = np.array([entry.words.track for entry in self._entries], dtype=np.int64)
        return X, values, S.reshape(-1, self._rows), words
