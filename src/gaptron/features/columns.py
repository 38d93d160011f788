"""A column as the encoder keeps it: its kind, the places of its words, and what happened in it."""

import zlib
from typing import NamedTuple

from gaptron.features.cells import WORD

Key = str | int | None
"""What has a place of its own: a word, a bucket of words by its number, or None, which is what is missing."""


class Dictionary:
    """The words of one track, and where each stands in a row."""

    def __init__(self, track: int, most: int, buckets: int) -> None:
        self.track = track
        self.places: dict[Key, int] = {}
        self.words = 0  # of the places: those of one word
        self._most = most
        self._buckets = buckets

    def key(self, word: str, promised: int = 0) -> Key:
        """Under what a word stands, or will stand: under itself while there is room, else under its bucket.

        `promised`: how many words before it are still to get their places.
        """
        if word in self.places or self.words + promised < self._most:
            return word
        return zlib.crc32(word.encode("utf-8", "surrogatepass")) % self._buckets

    def take(self, key: Key, place: int) -> None:
        """Give it its place."""
        if type(key) is str:
            self.words += 1
        self.places[key] = place

    def back_to(self, size: int) -> None:
        """Forget what came after the first so many places."""
        while len(self.places) > size:
            key, _ = self.places.popitem()
            if type(key) is str:
                self.words -= 1


class Account(NamedTuple):
    """One column, for whoever wants to know what was made of it."""

    name: str
    kind: str  # number, log, word, time, ignore, or auto: no value has come yet
    first_row: int  # the row it came with; later than 0: it was new then
    words: int  # different ones that have a place of their own
    missing: int  # cells without a value, and rows without the column
    absent: int  # rows that came without the column, once it was known
    other_kind: int  # cells of another kind than the column's
    shared: int  # words that share a bucket


TIME_WORDS = ("hour", "weekday", "month")


class Column:
    """One column of the caller's rows."""

    def __init__(self, name: str, kind: str, first_row: int, words: Dictionary) -> None:
        self.name = name
        self.kind = kind
        self.first_row = first_row
        self.words = words  # its words, and what is missing; of numbers and times: what is neither
        self.number = -1  # the track of its numbers; -1: there was none yet
        self.values: dict[str, int] = {}  # "number", or the values of a time → its track
        self.parts: dict[str, Dictionary] = {}  # the words of a time
        self.missing = self.absent = self.other_kind = self.shared = 0  # as in an account

    @property
    def counts_gaps(self) -> bool:
        """Is a missing value a word like others? Else it has the value 1."""
        return self.kind == WORD

    def dictionaries(self) -> list[Dictionary]:
        """All words of it."""
        return [self.words, *self.parts.values()]

    def account(self) -> Account:
        """What was made of it."""
        words = sum(dictionary.words for dictionary in self.dictionaries())
        happened = self.missing, self.absent, self.other_kind, self.shared
        return Account(self.name, self.kind, self.first_row, words, *happened)
