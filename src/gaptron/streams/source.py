"""Sources of bytes: a path or standard input, unpacked and split into texts of whole lines."""

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
_STRAY_RETURN = re.compile(rb"(?<!\r)\r++(?!\n|\Z)")  # one that does not end its line
CHUNK_BYTES = 1 << 20  # read at a time
LINE_FEED = 10
MARK = b"\xef\xbb\xbf"  # the byte order mark that some editors write before UTF-8


@dataclass
class Source:
    """A path, or "-" for standard input, which can be read once."""

    path: str
    progress: Callable[[int], None] | None = None  # called with the number of bytes read so far
    used: bool = field(default=False, init=False)

    @property
    def is_stdin(self) -> bool:
        """Is it standard input?"""
        return self.path == "-"

    @property
    def is_regular_file(self) -> bool:
        """Is it a file on disk, whose next bytes can be read without waiting?"""
        return not self.is_stdin and os.path.isfile(self.path)

    @property
    def name(self) -> str:
        """Its name in errors."""
        return "standard input" if self.is_stdin else self.path

    @property
    def suffixes(self) -> tuple[str, str]:
        """The extension, and the extension of the compression ("" if none)."""
        path = PurePath(self.path)
        packed = path.suffix.lower() if path.suffix.lower() in _UNPACK else ""
        return PurePath(path.stem if packed else path.name).suffix.lower(), packed

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the unpacked bytes."""
        try:
            with self._stdin() if self.is_stdin else self._file() as file:
                yield file
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise StreamError(self.name, f"the compressed data is damaged ({error})") from None
        except MemoryError:
            raise StreamError(self.name, "there is not enough memory to read it at once: read it in chunks") from None
        except OSError as error:
            raise StreamError(self.name, f"cannot be read ({error.strerror or error})") from None

    @contextmanager
    def _file(self) -> Iterator[IO[bytes]]:
        unpack = _UNPACK.get(self.suffixes[1], open)
        if self.progress is None:
            with unpack(self.path, "rb") as file:
                yield file
            return
        raw = io.BufferedReader(_ReportingFile(self.path, self.progress))
        with raw, raw if unpack is open else unpack(raw) as file:
            yield file

    @contextmanager
    def _stdin(self) -> Iterator[IO[bytes]]:
        if self.used:
            raise StreamError(self.name, "can be read only once: save it to a file first")
        self.used = True
        raw: Any = sys.stdin.buffer
        file = io.BufferedReader(raw)
        try:
            packed = next((kind for magic, kind in _MAGIC.items() if file.peek(8).startswith(magic)), None)
            yield _UNPACK[packed](file) if packed else file
        finally:
            file.detach()  # otherwise the caller's standard input would be closed

    @contextmanager
    def seekable(self) -> Iterator[str | io.BytesIO]:
        """Provide what a library that seeks in its file can read."""
        if not self.is_stdin:
            if not os.path.isfile(self.path):
                raise StreamError(self.name, "cannot be read (it is not a file)")
            yield self.path
            return
        with self.open() as file:
            data = io.BytesIO(file.read())
        yield data


class _ReportingFile(io.FileIO):
    """A file that reports how many of its bytes have been read."""

    def __init__(self, path: str, progress: Callable[[int], None]) -> None:
        super().__init__(path, "rb")
        self._progress = progress

    def readinto(self, buffer: Any) -> int | None:
        count = super().readinto(buffer)
        self._progress(self.tell())
        return count


class Text(NamedTuple):
    """Consecutive lines, as bytes."""

    source: str
    first: int  # the number of the first line, from 1
    data: bytes
    comment: bytes | None
    line_feeds: int | None = None  # their number, where it is known

    @property
    def max_lines(self) -> int:
        """An upper limit of the number of lines."""
        return (count_byte(self.data, LINE_FEED) if self.line_feeds is None else self.line_feeds) + 1

    @property
    def ended(self) -> bytes:
        """The bytes, with a line feed at the end."""
        return self.data if self.data.endswith(b"\n") else self.data + b"\n"

    def outline(self, shorten: Callable[[Any, Any, Any], int]) -> "Text":
        """Return the same lines, each shortened by a compiled function."""
        data = np.frombuffer(self.ended, dtype=np.uint8)
        short = np.empty(len(data), dtype=np.uint8)
        size = shorten(data, np.flatnonzero(data == LINE_FEED), short)
        return self._replace(data=short[:size].tobytes())

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Yield the number and content of each line that contains a round: not blank, without its comment."""
        for number, line in enumerate(io.BytesIO(self.data), self.first):
            content = line if self.comment is None else line.partition(self.comment)[0]
            if content.strip():
                yield number, content

    def check_line_ends(self) -> None:
        """Raise an error for a carriage return inside a line, which only some programs read as a line end."""
        if b"\r" not in self.data or self.data.count(b"\r") == self.data.count(b"\r\n"):
            return
        stray = _STRAY_RETURN.search(self.data)
        if stray:
            number = self.first + self.data.count(b"\n", 0, stray.start())
            raise StreamError(
                self.source, "a carriage return inside a line: end lines with a line feed (dos2unix, mac2unix)", number
            )

    def error_at(self, row: int, problem: str) -> StreamError:
        """Return the error for a problem in round number `row` of this text."""
        number, _ = next(islice(self.records(), row, None))
        return StreamError(self.source, problem, number)


def read_text(source: Source, rows: int | None, comment: bytes | None = None) -> Generator[Text, None, None]:
    """Yield the source in chunks of at most `rows` lines and about `CHUNK_BYTES` bytes; None: in one chunk."""
    first = 1
    with source.open() as file:
        for data, lines in [(file.read(), None)] if rows is None else _line_chunks(file, rows):
            if data:
                yield Text(source.name, first, data.removeprefix(MARK) if first == 1 else data, comment, lines)
            first += lines or 0


def _line_chunks(file: Any, rows: int) -> Iterator[tuple[bytes, int]]:
    """Yield whole lines as they are read, and their number."""
    buffered: list[bytes] = []
    size = lines = 0  # of what is buffered
    request = 1 << 16  # bytes; a small file takes little memory
    while more := file.read1(request):
        request = min(2 * request, CHUNK_BYTES)
        start, found = 0, count_byte(more, LINE_FEED)
        if lines + found >= rows:
            ends = np.flatnonzero(np.frombuffer(more, dtype=np.uint8) == LINE_FEED) + 1
            for stop in ends[rows - lines - 1 :: rows].tolist():
                yield b"".join([*buffered, more[start:stop]]), rows
                start, buffered = stop, []
            size, lines, found = 0, 0, (lines + found) % rows
        if found and size + len(more) - start >= CHUNK_BYTES:
            stop = more.rfind(b"\n") + 1
            yield b"".join([*buffered, more[start:stop]]), lines + found
            start, buffered, size, lines, found = stop, [], 0, 0, 0
        buffered.append(more[start:])
        size, lines = size + len(more) - start, lines + found
    if size:
        yield b"".join(buffered), lines


def count_byte(data: bytes, byte: int) -> int:
    """Count a byte: NumPy is five times as fast as `bytes.count`."""
    return int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == byte))
