"""A column as the encoder stores it: its kind, the places of its words, and counts."""

import zlib
from typing import Any, NamedTuple

from gaptron.features.cells import WORD

Key = str | int | None
"""What a place is for: a word, a bucket of words by its number, or None for missing values."""

JOIN = "\x1f"  # between the words of a cross: text does not contain it


class Tracks(NamedTuple):
    """The tracks in which an example has cells."""

    tracks: list[int]
    cells: list[Any]

    def add(self, track: int, cell: float) -> None:
        """Add a cell."""
        self.tracks.append(track)
        self.cells.append(cell)


class Dictionary:
    """The words of one track, and the place of each in an encoded example.

    Args:
        track: the number of the track.
        most: how many words get their own place.
        buckets: how many places the other words share.
    """

    def __init__(self, track: int, most: int, buckets: int) -> None:
        self.track = track
        self.places: dict[Key, int] = {}
        self.words = 0  # how many of the places are for one word
        self._most = most
        self._buckets = buckets

    def key(self, word: str) -> Key:
        """The key of a word: the word itself while there are places, otherwise its bucket."""
        if word in self.places or self.words < self._most:
            return word
        return zlib.crc32(word.encode("utf-8", "surrogatepass")) % self._buckets

    def take(self, key: Key, place: int) -> None:
        """Assign a place."""
        if type(key) is str:
            self.words += 1
        self.places[key] = place

    def back_to(self, size: int) -> None:
        """Remove the places after the first `size`."""
        while len(self.places) > size:
            key, _ = self.places.popitem()
            if type(key) is str:
                self.words -= 1


class Account(NamedTuple):
    """How one column is encoded."""

    name: str
    kind: str  # number, log, word, time, ignore, or auto: it has had no value yet
    first_row: int  # the first example that had it, counted from 0
    words: int  # the number of words with their own place
    missing: int  # cells without a value, and examples without the column
    absent: int  # examples without the column, once it was known
    other_kind: int  # cells of another kind than the column's
    shared: int  # cells whose word shares a bucket


TIME_WORDS = ("hour", "weekday", "month")


class Column:
    """One column of the caller's examples.

    Args:
        name: its name.
        kind: its kind.
        first_row: the first example that had it.
        words: the dictionary of its words.
        space: 0, or 1 for a column of actions; they have their own columns.
    """

    def __init__(self, name: str, kind: str, first_row: int, words: Dictionary, space: int = 0) -> None:
        self.name = name
        self.space = space
        self.kind = kind
        self.first_row = first_row
        self.words = words  # its words and missing values; of numbers and times: cells of another kind
        self.number = -1  # the track of its numbers; -1: it has had none yet
        self.values: dict[str, int] = {}  # "number", or the values of a time → track
        self.parts: dict[str, Dictionary] = {}  # the words of a time
        self.missing = self.absent = self.other_kind = self.shared = 0  # as in `Account`

    @property
    def counts_gaps(self) -> bool:
        """Whether a missing value counts as a word; otherwise it has the value 1."""
        return self.kind == WORD

    def dictionaries(self) -> list[Dictionary]:
        """All its dictionaries."""
        return [self.words, *self.parts.values()]

    def account(self) -> Account:
        """Describe how it is encoded."""
        words = sum(dictionary.words for dictionary in self.dictionaries())
        happened = self.missing, self.absent, self.other_kind, self.shared
        return Account(self.name, self.kind, self.first_row, words, *happened)
