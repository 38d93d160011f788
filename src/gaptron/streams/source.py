"""Where bytes come from: a path or standard input, unpacked on the way, cut into texts of some lines."""

import bz2
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePath
from typing import IO, Any, NamedTuple

import numpy as np

from gaptron.errors import StreamError

_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz"}
_UNPACK: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_STRAY_RETURN = re.compile(rb"(?<!\r)\r++(?!\n|\Z)")  # any that does not end its line
PIECE = 1 << 20  # bytes that are read at a time
LINE_FEED = 10
MARK = b"\xef\xbb\xbf"  # the byte order mark some editors write before UTF-8


@dataclass
class Source:
    """A path, or "-" for standard input, which can be read once."""

    path: str
    watch: Callable[[int], None] | None = None  # is told how many bytes of the file have been read
    spent: bool = field(default=False, init=False)

    @property
    def piped(self) -> bool:
        """Is it standard input?"""
        return self.path == "-"

    @property
    def at_rest(self) -> bool:
        """Is it a file, of which the next bytes are there whenever they are asked for?"""
        return not self.piped and os.path.isfile(self.path)

    @property
    def name(self) -> str:
        """What errors call it."""
        return "standard input" if self.piped else self.path

    @property
    def suffixes(self) -> tuple[str, str]:
        """The extension, and after it that of the compression ("" if none)."""
        path = PurePath(self.path)
        packed = path.suffix.lower() if path.suffix.lower() in _UNPACK else ""
        return PurePath(path.stem if packed else path.name).suffix.lower(), packed

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The bytes, unpacked."""
        try:
            with self._piped() if self.piped else self._path() as file:
                yield file
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise StreamError(self.name, f"the compressed data is damaged ({error})") from None
        except MemoryError:
            raise StreamError(self.name, "there is not enough memory to read it: read it in chunks") from None
        except OSError as error:
            raise StreamError(self.name, f"cannot be read ({error.strerror or error})") from None

    @contextmanager
    def _path(self) -> Iterator[IO[bytes]]:
        unpack = _UNPACK.get(self.suffixes[1], open)
        if self.watch is None:
            with unpack(self.path, "rb") as file:
                yield file
            return
        raw = io.BufferedReader(_Watched(self.path, self.watch))
        with raw, raw if unpack is open else unpack(raw) as file:
            yield file

    @contextmanager
    def _piped(self) -> Iterator[IO[bytes]]:
        if self.spent:
            raise StreamError(self.name, "can be read only once: save it to a file first")
        self.spent = True
        raw: Any = sys.stdin.buffer
        file = io.BufferedReader(raw)
        try:
            packed = next((kind for magic, kind in _MAGIC.items() if file.peek(8).startswith(magic)), None)
            yield _UNPACK[packed](file) if packed else file
        finally:
            file.detach()  # or the caller's standard input would be closed with it

    @contextmanager
    def seekable(self) -> Iterator[str | io.BytesIO]:
        """What a library that jumps in its file can read."""
        if not self.piped:
            if not os.path.isfile(self.path):
                raise StreamError(self.name, "cannot be read (it is not a file)")
            yield self.path
            return
        with self.open() as file:
            data = io.BytesIO(file.read())
        yield data


class _Watched(io.FileIO):
    """A file that says how many of its bytes have been read."""

    def __init__(self, path: str, watch: Callable[[int], None]) -> None:
        super().__init__(path, "rb")
        self._watch = watch

    def readinto(self, buffer: Any) -> int | None:
        count = super().readinto(buffer)
        self._watch(self.tell())
        return count


class Text(NamedTuple):
    """Some lines in a row, as bytes."""

    source: str
    first: int  # the number of the first line, from 1
    data: bytes
    comment: bytes | None
    feeds: int | None = None  # how many lines are ended, where that has been counted

    @property
    def lines(self) -> int:
        """How many lines there are at most."""
        return (how_many(self.data, LINE_FEED) if self.feeds is None else self.feeds) + 1

    @property
    def ended(self) -> bytes:
        """The bytes, the last line ended as the others are."""
        return self.data if self.data.endswith(b"\n") else self.data + b"\n"

    def outline(self, keep: Callable[[Any, Any, Any], int]) -> "Text":
        """The same lines, each cut short by a compiled verb."""
        data = np.frombuffer(self.ended, dtype=np.uint8)
        kept = np.empty(len(data), dtype=np.uint8)
        size = keep(data, np.flatnonzero(data == LINE_FEED), kept)
        return self._replace(data=kept[:size].tobytes())

    def rounds(self) -> Iterator[tuple[int, bytes]]:
        """The lines that hold a round, with their numbers: not blank, comment cut off."""
        for number, line in enumerate(io.BytesIO(self.data), self.first):
            content = line if self.comment is None else line.partition(self.comment)[0]
            if content.strip():
                yield number, content

    def check_line_ends(self) -> None:
        """Refuse a carriage return inside a line, which some take for the end of a line and others do not."""
        if b"\r" not in self.data or self.data.count(b"\r") == self.data.count(b"\r\n"):
            return
        stray = _STRAY_RETURN.search(self.data)
        if stray:
            number = self.first + self.data.count(b"\n", 0, stray.start())
            raise StreamError(
                self.source, "a carriage return stands alone: end lines with a line feed (dos2unix, mac2unix)", number
            )

    def blame(self, row: int, problem: str) -> StreamError:
        """The error for a problem in the round number `row` of this text."""
        number, _ = next(islice(self.rounds(), row, None))
        return StreamError(self.source, problem, number)


def texts(source: Source, rows: int | None, comment: bytes | None = None) -> Generator[Text, None, None]:
    """The source in pieces of at most `rows` lines and of about `PIECE` bytes; None: in one piece."""
    first = 1
    with source.open() as file:
        for data, lines in [(file.read(), None)] if rows is None else _pieces(file, rows):
            if data:
                yield Text(source.name, first, data.removeprefix(MARK) if first == 1 else data, comment, lines)
            first += lines or 0


def _pieces(file: Any, rows: int) -> Iterator[tuple[bytes, int]]:
    """Whole lines as they come, and how many they are."""
    waiting: list[bytes] = []
    size = lines = 0  # of what waits
    room = 1 << 16  # a small file takes little memory
    while more := file.read1(room):
        room = min(2 * room, PIECE)
        start, found = 0, how_many(more, LINE_FEED)
        if lines + found >= rows:
            ends = np.flatnonzero(np.frombuffer(more, dtype=np.uint8) == LINE_FEED) + 1
            for stop in ends[rows - lines - 1 :: rows].tolist():
                yield b"".join([*waiting, more[start:stop]]), rows
                start, waiting = stop, []
            size, lines, found = 0, 0, (lines + found) % rows
        if found and size + len(more) - start >= PIECE:
            stop = more.rfind(b"\n") + 1
            yield b"".join([*waiting, more[start:stop]]), lines + found
            start, waiting, size, lines, found = stop, [], 0, 0, 0
        waiting.append(more[start:])
        size, lines = size + len(more) - start, lines + found
    if size:
        yield b"".join(waiting), lines


def how_many(data: bytes, byte: int) -> int:
    """How often a byte occurs: NumPy counts five times as fast as Python does."""
    return int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == byte))
