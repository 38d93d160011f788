"""Encoder: examples by name become rows of numbers of norm 1, based on the examples before them.

Every word, number, missing value and part of a time has a place in the row of numbers, which it gets when it first
occurs: example by example, and within an example in the order of the columns. A table therefore gives the same rows as
its examples one by one, to the bit.
"""

import functools
import importlib
import math
from collections.abc import Iterable, Mapping
from itertools import repeat
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from gaptron.data.examples import Example, Examples
from gaptron.features.cells import (
    AUTO,
    IGNORE,
    LOG,
    TIME,
    WORD,
    Cell,
    fitted,
    is_strange,
    kind_of,
    part_or_word,
    parts_of,
)
from gaptron.features.chunk import Chunk
from gaptron.features.columns import JOIN, TIME_WORDS, Account, Column, Dictionary, Key, Tracks
from gaptron.features.declaration import Features
from gaptron.features.tables import Column as TableColumn
from gaptron.features.tables import Record, Records, Table, row_of, table_of
from gaptron.kernels.compile.specialize import specialize
from gaptron.types import Integers, Sparse, SparseRow, Vector

FIRST_SIZE = 16  # places before the first doubling
MOST_CELLS = 1 << 21  # encoded at a time
MOST_ROWS = 1 << 16
ABSENT: Any = object()  # in place of a cell: the example does not have the column
Given = Table | Records | list[Record]
ONE = np.ones(1)  # the norm of one encoded row


class Mark(NamedTuple):
    """A state of the encoder, to return to."""

    rows: int
    taken: int
    n_values: int
    n_words: int
    stats: Vector
    totals: Integers
    counts: Integers
    columns: list[list[tuple[Account, dict[str, int], list[int]]]]
    crosses: list[int]


class Encoder:
    """Turns examples by name into rows of numbers. Each is encoded by the examples before it.

    Args:
        features: how the caller declared the columns.
    """

    def __init__(self, features: Features) -> None:
        self.features = features
        self.rows = 0
        """The number of examples it has learned from."""
        self._columns: dict[str, Column] = {}
        self._spaces = [self._columns]  # columns of actions are apart from those of the context
        self._taken = 1  # places in use; the first one is the constant's
        self._n_values = self._n_words = 0
        self._kinds = np.zeros(FIRST_SIZE, dtype=np.uint8)
        self._places = np.zeros(FIRST_SIZE, dtype=np.int64)
        self._stats = np.zeros((FIRST_SIZE, 7))
        self._totals = np.zeros(FIRST_SIZE, dtype=np.int64)
        self._counts = np.zeros(FIRST_SIZE, dtype=np.int64)
        self._encode_once: Any = None
        self._crosses: list[Dictionary] = []
        self._declare(features)

    def _declare(self, features: Features) -> None:
        """Make the columns and crosses that were declared."""
        for name, kind in features.columns.items():
            self._new_column(name, kind)
        self._crosses = [self._dictionary() for _ in features.pairs]

    @property
    def width(self) -> int:
        """The width of the rows of numbers: the places in use, and spare ones, doubled when they are used up."""
        return len(self._counts)

    @property
    def columns(self) -> list[Account]:
        """How each column is encoded."""
        return [column.account() for column in self._columns.values()]

    # --- reading, which changes nothing -----------------------------------------------------------------------------

    def read_row(self, x: Any) -> Record:
        """Check one example.

        Args:
            x: a dict, a row of a pandas table, or a one-dimensional array, whose columns are named "0", "1", ...

        Returns:
            The checked example.

        Raises:
            InputError: x is of another type, or a value cannot be encoded.
        """
        return row_of(x)

    def read(self, X: Any) -> Given:
        """Check many examples.

        Args:
            X: a table (pandas, polars, Arrow), a list of dicts, a two-dimensional array, or a `Stream`.

        Returns:
            The checked examples.

        Raises:
            InputError: X is of another type, or a value cannot be encoded.
        """
        return table_of(X)

    # --- one example ----------------------------------------------------------------------------------------------

    def encode_row(self, cells: Mapping[str, Cell], *, learn: bool) -> Example:
        """Encode one example.

        Args:
            cells: what `read_row` returned.
            learn: learn from it, so that it counts for the examples after it.

        Returns:
            The encoded example.
        """
        if learn:
            for name in cells:
                if name not in self._columns:
                    self._new_column(name, AUTO)
        x, s = Tracks([], []), Tracks([], [])
        self._add_cells(zip(self._columns.values(), map(cells.get, self._columns, repeat(ABSENT))), learn, x, s)
        for names, cross in zip(self.features.pairs, self._crosses):
            text = self._joined(names, cells)
            if text is not None:
                s.add(cross.track, self.place(cross, text, int(learn)))
        if learn:
            self.rows += 1
        return self._encoded_row(x, s, learn)

    def _add_cells(self, cells: Iterable[tuple[Column, Any]], learn: bool, x: Tracks, s: Tracks) -> None:
        """Encode the cells of one row."""
        for column, value in cells:
            if (
                type(value) is float and column.number >= 0
            ):  # the two usual cases first: this is called for every live example
                x.tracks.append(column.number)
                x.cells.append(value)
                continue
            if type(value) is str and column.kind == WORD and value in column.words.places:
                s.tracks.append(column.words.track)
                s.cells.append(column.words.places[value])
                continue
            self.add_cell(column, value, int(learn), x, s)

    def add_cell(self, column: Column, value: Any, learn: int, x: Tracks, s: Tracks) -> None:
        """Encode a cell of any kind in a column of any kind. This is the only rule; tables use it too.

        Args:
            column: the column.
            value: the cell, None if it is missing, `ABSENT` if the example does not have the column.
            learn: how many examples to learn from that have this cell; 0: do not learn.
            x: the value tracks, to be added to.
            s: the word tracks, to be added to.
        """
        if column.kind == IGNORE:
            return
        if value is ABSENT:
            value = None
            column.absent += learn
        if value is not None:
            if column.kind == AUTO:
                if not learn:
                    return
                self.settle(column, kind_of(value, False))
            fit = fitted(column.kind, value)
            column.other_kind += learn * is_strange(column.kind, value, fit)
            value = fit
        if value is None:
            column.missing += learn
            if column.kind != AUTO:
                s.add(column.words.track, self._gap(column, learn))
        elif type(value) is str:
            s.add(column.words.track, self.place(column.words, value, learn, column))
        elif type(value) is float:
            self._add_value(column, "number", value, learn, x)
        else:
            if not math.isnan(value.stamp):
                self._add_value(column, "stamp", value.stamp, learn, x)
            if value.hour >= 0.0:
                self._add_value(column, "sine", value.hour, learn, x)
                self._add_value(column, "cosine", value.hour, learn, x)
            for name, word in parts_of(value).items():
                part = column.parts[name]
                s.add(part.track, self.place(part, word, learn))

    def _add_value(self, column: Column, name: str, value: float, learn: int, x: Tracks) -> None:
        track = column.values.get(name)
        if track is None and learn:
            track = self.take_value(column, name)
        if track is not None:
            x.add(track, value)

    def _joined(self, names: tuple[str, ...], cells: Mapping[str, Cell]) -> str | None:
        """The word of a cross; None if a value of its columns is missing."""
        words: list[str] = []
        for name in names:
            column, part = self._named(name)
            value = None if column is None else cells.get(column.name)
            if column is None or value is None or column.kind in (AUTO, IGNORE):
                return None
            word = part_or_word(column.kind, part, value)
            if word is None:
                return None
            words.append(word)
        return JOIN.join(words)

    def _named(self, name: str) -> tuple[Column | None, str]:
        """The column that a cross names, and the part if it is a time."""
        column = self._columns.get(name)
        if column is None:
            base, _, part = name.rpartition(".")
            column = self._columns.get(base) if part in TIME_WORDS else None
            return (column, part) if column is not None and column.kind == TIME else (None, "")
        return column, ""

    def _encoded_row(self, x: Tracks, s: Tracks, learn: bool) -> Example:
        n = len(x.tracks)
        tracks, most = np.array(x.tracks + s.tracks + s.cells, dtype=np.int64), n + len(s.tracks) + 1
        X, S = np.array(x.cells, dtype=np.float64).reshape(n, 1), tracks[most - 1 :].reshape(-1, 1)
        values, words = tracks[:n], tracks[n : most - 1]
        out = np.zeros(2, dtype=np.int32), np.empty(most, dtype=np.int32), np.empty(most)
        known = self._kinds, self._places, self._stats
        arguments = (X, values, *known, S, words, self._totals, self._counts, learn, *out)
        if self._encode_once is None:
            self._encode_once = specialize(kernel().encode, *arguments)
        entries = self._encode_once(*arguments)
        return Example(SparseRow(out[1][:entries], out[2][:entries]), self.width, 1.0)

    # --- many examples --------------------------------------------------------------------------------------------

    def encode(self, given: Given, start: int, stop: int, *, learn: bool) -> Examples:
        """Encode some of the examples.

        Args:
            given: what `read` returned.
            start: the first one.
            stop: the one after the last.
            learn: learn from them, so that they count for the examples after them.

        Returns:
            The encoded examples.
        """
        if isinstance(given, Table):
            return self._encoded(given.block(start, stop), stop - start, given.text, learn)
        rows = [self.encode_row(cells, learn=learn).row for cells in given[start:stop]]
        parts = [row for row in rows if isinstance(row, SparseRow)]
        if len(parts) == 1:  # one live example
            (row,) = parts
            return self._checked(np.array([0, len(row.indices)], dtype=np.int32), row.indices, row.values)
        ends = np.cumsum([0, *(len(row.indices) for row in parts)]).astype(np.int32)
        indices = np.concatenate([np.zeros(0, dtype=np.int32), *(row.indices for row in parts)])
        entries = np.concatenate([np.zeros(0), *(row.values for row in parts)])
        return self._checked(ends, indices, entries)

    def block_rows(self, given: Given) -> int:
        """How many examples to encode at a time.

        Args:
            given: what `read` returned.

        Returns:
            The number of examples.
        """
        columns = len(given.columns) if isinstance(given, Table) else len(self._columns)
        return max(1, min(MOST_ROWS, MOST_CELLS // max(1, columns)))

    def _encoded(self, block: Mapping[str, TableColumn], rows: int, text: bool, learn: bool) -> Examples:
        if not rows:
            return self._checked(np.zeros(1, dtype=np.int32), np.zeros(0, dtype=np.int32), np.zeros(0))
        if learn:
            for name in block:
                if name not in self._columns:
                    self._new_column(name, AUTO)
        chunk = Chunk(self, rows, text, learn)
        for column in self._columns.values():
            if column.kind != IGNORE:
                chunk.add(column, block.get(column.name))
        for names, cross in zip(self.features.pairs, self._crosses):
            chunk.add_cross([self._named(name) for name in names], cross, block)
        X, values, S, words = chunk.tracks()
        most = rows * (len(values) + len(words) + 1)
        ends, indices, entries = np.zeros(rows + 1, dtype=np.int32), np.empty(most, dtype=np.int32), np.empty(most)
        known = self._kinds, self._places, self._stats
        size = kernel().encode(X, values, *known, S, words, self._totals, self._counts, learn, ends, indices, entries)
        if learn:
            self.rows += rows
        return self._checked(ends, indices[:size], entries[:size])

    def _checked(self, ends: Any, indices: Any, entries: Any) -> Examples:
        for part in (ends, indices, entries):
            part.flags.writeable = False  # one type for the compiler
        rows = len(ends) - 1
        return Examples(Sparse(ends, indices, entries), self.width, ONE if rows == 1 else np.ones(rows))

    # --- places ---------------------------------------------------------------------------------------------------

    def _new_column(self, name: str, kind: str, space: int = 0) -> None:
        column = Column(name, AUTO, self.rows, self._dictionary(), space)
        self._spaces[space][name] = column
        if kind != AUTO:
            self.settle(column, kind)

    def settle(self, column: Column, kind: str) -> None:
        """Fix the kind of a column, which its first value determines."""
        column.kind = kind
        if kind == TIME:
            column.parts = {name: self._dictionary() for name in TIME_WORDS}

    def _dictionary(self) -> Dictionary:
        track = self._n_words
        self._n_words += 1
        if self._n_words > len(self._totals):
            self._totals = doubled(self._totals)
        return Dictionary(track, self.features.most_words, self.features.buckets)

    def _take(self) -> int:
        """Return a new place."""
        place = self._taken
        self._taken += 1
        if self._taken > len(self._counts):
            self._counts = doubled(self._counts)
        return place

    def take_word(self, words: Dictionary, key: Key) -> int:
        """Return a new place for a word or a bucket."""
        place = self._take()
        self._counts[place] = 0
        words.take(key, place)
        return place

    def take_gap(self, column: Column) -> int:
        """Return a new place for missing values."""
        place = self.take_word(column.words, None)
        if not column.counts_gaps:
            self._counts[place] = kernel().FLAG
        return place

    def take_value(self, column: Column, name: str) -> int:
        """Return a new track for a number, with a new place."""
        place, track = self._take(), self._n_values
        self._n_values += 1
        if self._n_values > len(self._kinds):
            self._kinds, self._places, self._stats = map(doubled, (self._kinds, self._places, self._stats))
        verbs = kernel()
        kinds = {"number": verbs.LOG if column.kind == LOG else verbs.NUMBER, "stamp": verbs.NUMBER}
        kinds |= {"sine": verbs.SINE, "cosine": verbs.COSINE}
        self._kinds[track] = kinds[name]
        self._places[track] = place
        self._stats[track] = 0.0
        self._stats[track, verbs.GOAL] = verbs.FIRST_EPOCH
        column.values[name] = track
        column.number = column.values.get("number", -1)
        return track

    def place(self, words: Dictionary, word: str, learn: int, column: Column | None = None) -> int:
        """The place of a word; a new one if it has none and is learned from."""
        key = words.key(word)
        if column is not None and key != word:
            column.shared += learn
        place = words.places.get(key)
        if place is None:
            return self.take_word(words, key) if learn else int(kernel().NEW_WORD)
        return place

    def _gap(self, column: Column, learn: int) -> int:
        place = column.words.places.get(None)
        if place is None:
            if learn:
                return self.take_gap(column)
            return int(kernel().NEW_WORD if column.counts_gaps else kernel().NEW_FLAG)
        return place

    # --- marks ----------------------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """Return the current state, for `back_to`."""
        return Mark(
            self.rows,
            self._taken,
            self._n_values,
            self._n_words,
            self._stats[: self._n_values].copy(),
            self._totals[: self._n_words].copy(),
            self._counts[: self._taken].copy(),
            [
                [
                    (column.account(), dict(column.values), [len(words.places) for words in column.dictionaries()])
                    for column in columns.values()
                ]
                for columns in self._spaces
            ],
            [len(cross.places) for cross in self._crosses],
        )

    def back_to(self, mark: Mark) -> None:
        """Undo what was learned since `mark` returned this state."""
        self.rows, self._taken, self._n_values, self._n_words = mark[:4]
        self._stats[: self._n_values] = mark.stats
        self._totals[:] = 0
        self._totals[: self._n_words] = mark.totals
        self._counts[: self._taken] = mark.counts
        for columns, known in zip(self._spaces, mark.columns):
            for name in list(columns)[len(known) :]:
                del columns[name]
            self._columns_back_to(columns, known)
        for cross, size in zip(self._crosses, mark.crosses):
            cross.back_to(size)

    @staticmethod
    def _columns_back_to(columns: Mapping[str, Column], known: list[tuple[Account, dict[str, int], list[int]]]) -> None:
        for column, (was, values, sizes) in zip(columns.values(), known):
            column.kind, column.values, column.number = was.kind, values, values.get("number", -1)
            column.missing, column.absent, column.other_kind, column.shared = was[-4:]
            if was.kind == AUTO:
                column.parts = {}
            for words, size in zip(column.dictionaries(), sizes):
                words.back_to(size)


@functools.cache
def kernel() -> ModuleType:
    """The compiled functions, imported at first use so that `import gaptron` stays quick."""
    return importlib.import_module("gaptron.kernels.features")


def doubled(array: Any) -> Any:
    """An array twice as long, with zeros in the new part."""
    return np.concatenate([array, np.zeros_like(array)])
