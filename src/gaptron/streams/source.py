"""Sources of bytes: a path or standard input, unpacked and split into texts of whole lines."""

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from pathlib import PurePath
from typing import IO, Any, NamedTuple

import numpy as np

from gaptron.data.special_files import check_not_special
from gaptron.errors import SettingError, StreamError

_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz"}
_UNPACK: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_STRAY_RETURN = re.compile(rb"(?<!\r)\r++(?!\n|\Z)")  # one that does not end its line
NO_MEMORY = "there is not enough memory to read it at once: read it in chunks"
CHUNK_BYTES = 1 << 20  # read at a time
LINE_FEED, SPACE, QUOTE, COMMA = 10, 32, 34, 44
LONGEST_QUOTED = 1 << 20  # bytes; a quotation mark that is not closed for longer is an error
MAX_EXPANSION = "GAPTRON_MAX_EXPANSION"  # environment variable: how many times longer unpacked data may be
USUAL_EXPANSION = 200.0
ALWAYS_UNPACKED = 1 << 28  # bytes that are unpacked whatever their ratio
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

    def check_exists(self, missing: str = "there is no such file") -> None:
        """Raise an error if the path does not exist, cannot be examined, or is a pipe, a device or a socket."""
        if self.is_stdin:
            return
        try:
            check_not_special(self.path)
        except (FileNotFoundError, ValueError):  # ValueError: a null byte
            raise StreamError(self.name, missing) from None
        except OSError as error:
            raise StreamError(self.name, f"cannot be read ({error.strerror or error})") from None

    def check_expansion(self, packed: int, unpacked: int) -> None:
        """Raise an error if data is so much longer than its compressed form that it was made to fill the memory."""
        if unpacked > ALWAYS_UNPACKED and unpacked > (limit := max_expansion()) * packed:
            raise StreamError(
                self.name,
                f"unpacks to more than {limit:g} times its {packed:,} bytes, as data made to fill the memory does; "
                f"if you trust it, set the environment variable {MAX_EXPANSION} to a larger number",
            )

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the unpacked bytes."""
        try:
            with self._stdin() if self.is_stdin else self._file() as file:
                yield file
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise StreamError(self.name, f"the compressed data is damaged ({error})") from None
        except MemoryError:
            raise StreamError(self.name, NO_MEMORY) from None
        except OSError as error:
            raise StreamError(self.name, f"cannot be read ({error.strerror or error})") from None

    @contextmanager
    def _file(self) -> Iterator[IO[bytes]]:
        self.check_exists()
        if not self.is_regular_file:  # an open descriptor, such as a pipe of the shell
            self._check_unused()
        if self.progress is None and not self.suffixes[1]:
            with open(self.path, "rb") as plain:
                self._check_plain(plain)
                yield plain
            return
        raw = _CountingFile(io.FileIO(self.path, "rb"), self.progress)
        with raw, io.BufferedReader(raw) as file, self._unpacked(file, raw, self.suffixes[1]) as unpacked:
            if unpacked is file:
                self._check_plain(file)
            yield unpacked

    def _check_plain(self, file: Any) -> None:
        """Raise an error for compressed data whose extension does not say so. Text may begin with the mark of .bz2."""
        packed = next((kind for magic, kind in _MAGIC.items() if file.peek(8).startswith(magic)), ".bz2")
        if packed != ".bz2":
            raise StreamError(self.name, f"is compressed, but its name does not end in {packed}: rename it")

    @contextmanager
    def _stdin(self) -> Iterator[IO[bytes]]:
        self._check_unused()
        raw = _CountingFile(sys.stdin.buffer)
        file = io.BufferedReader(raw)
        try:
            packed = next((kind for magic, kind in _MAGIC.items() if file.peek(8).startswith(magic)), "")
            with self._unpacked(file, raw, packed) as unpacked:
                yield unpacked
        finally:
            file.detach()  # otherwise the caller's standard input would be closed

    def _check_unused(self) -> None:
        if self.used:
            raise StreamError(self.name, "can be read only once: save it to a file first")
        self.used = True

    @contextmanager
    def _unpacked(self, file: Any, raw: "_CountingFile", packed: str) -> Iterator[IO[bytes]]:
        if not packed:
            yield file
            return
        with _UNPACK[packed](file) as unpacked:
            check = partial(self._check_unpacked, raw)
            yield io.BufferedReader(_CountingFile(unpacked, check))

    def _check_unpacked(self, raw: "_CountingFile", unpacked: int) -> None:
        self.check_expansion(raw.count, unpacked)

    @contextmanager
    def seekable(self) -> Iterator[str | io.BytesIO]:
        """Provide what a library that seeks in its file can read."""
        if not self.is_stdin:
            self.check_exists()
            if not os.path.isfile(self.path):
                raise StreamError(self.name, "cannot be read (it is not a file)")
            yield self.path
            return
        with self.open() as file:
            data = io.BytesIO(file.read())
        yield data


class _CountingFile(io.RawIOBase):
    """A file that counts its bytes as they are read, and reports their number."""

    def __init__(self, file: Any, report: Callable[[int], None] | None = None) -> None:
        super().__init__()
        self.count = 0
        self._file, self._report = file, report
        self._read = file.read if isinstance(file, io.RawIOBase) else file.read1

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._read(len(buffer))
        buffer[: len(data)] = data
        self.count += len(data)
        if self._report is not None:
            self._report(self.count)
        return len(data)

    def readall(self) -> bytes:
        return b"".join(iter(lambda: self.read(CHUNK_BYTES), b""))

    def close(self) -> None:
        if isinstance(self._file, io.FileIO):  # others are closed by who opened them
            self._file.close()
        super().close()


class _AsUtf8(io.RawIOBase):
    """A file of text in another encoding, read as UTF-8."""

    def __init__(self, file: Any, encoding: str, name: str) -> None:
        super().__init__()
        self._file, self._encoding, self._name = file, encoding, name
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._waiting = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._waiting:
            data = self._file.read1(CHUNK_BYTES)
            try:
                self._waiting = self._decoder.decode(data, final=not data).encode("utf-8", "surrogatepass")
            except UnicodeError as error:
                raise StreamError(self._name, f"is not {self._encoding} text ({error})") from None
            if not data:
                break
        size = min(len(buffer), len(self._waiting))
        buffer[:size], self._waiting = self._waiting[:size], self._waiting[size:]
        return size


def check_encoding(encoding: str | None) -> None:
    """Check the name of an encoding, which a caller gives."""
    try:
        "".encode(encoding or "utf-8")
    except LookupError:
        raise SettingError(
            f"encoding={encoding!r} is not the name of an encoding, such as 'cp1252' or 'utf-16'"
        ) from None


def max_expansion() -> float:
    """How many times longer than its compressed form data may be."""
    text = os.environ.get(MAX_EXPANSION)
    if text is None:
        return USUAL_EXPANSION
    try:
        limit = float(text)
    except ValueError:
        limit = 0.0
    if not limit >= 1.0:
        raise SettingError(f"{MAX_EXPANSION}={text!r} must be a number of at least 1, or inf for no limit")
    return limit


class _Quoting(NamedTuple):
    """How records are found whose quoted cells may contain line ends."""

    record: re.Pattern[bytes]  # one record; a quotation mark that is never closed is a plain character
    closed: re.Pattern[bytes]  # as many whole records as possible


@cache
def _quoting(separators: str) -> _Quoting:
    between = re.escape(separators.encode())
    quoted = rb'"(?:[^"]++|"")*+"[^%b\n]*+' % between
    plain = rb'(?:[^"%b\n][^%b\n]*+)?+' % (between, between)
    record = rb"(?:%b|[^%b\n]*+)(?:[%b](?:%b|[^%b\n]*+))*+(?:\n|\Z)" % (quoted, between, between, quoted, between)
    closed = rb"(?:(?:%b|%b)(?:[%b](?:%b|%b))*+(?:\n|\Z))*+" % (quoted, plain, between, quoted, plain)
    return _Quoting(re.compile(record), re.compile(closed))


class Text(NamedTuple):
    """Consecutive lines, as bytes."""

    source: str
    first: int  # the number of the first line, from 1
    data: bytes
    comment: bytes | None
    line_feeds: int | None = None  # their number, where it is known
    separators: str = ""  # of cells, where quoted cells contain line ends, so that a round may have several lines

    @property
    def max_lines(self) -> int:
        """An upper limit of the number of rounds."""
        lines = (count_byte(self.data, LINE_FEED) if self.line_feeds is None else self.line_feeds) + 1
        return min(lines, int(np.count_nonzero(np.frombuffer(self.data, dtype=np.uint8) > SPACE)))  # no blank lines

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
        """Yield the number and content of each line that contains a round: not blank, without its comment.

        A round whose quoted cells contain line ends has several lines and the number of its first one.
        """
        if self.separators:
            yield from self._records_of_several_lines()
            return
        for number, line in enumerate(io.BytesIO(self.data), self.first):
            content = line if self.comment is None else line.partition(self.comment)[0]
            if content.strip():
                yield number, content

    def _records_of_several_lines(self) -> Iterator[tuple[int, bytes]]:
        number = self.first
        for match in _quoting(self.separators).record.finditer(self.data):
            content = match[0]
            if content.strip():
                yield number, content
            number += content.count(b"\n")

    def head(self, size: int) -> "Text":
        """Return the lines of about the first `size` bytes; the last may be cut inside a quoted cell."""
        return self if len(self.data) <= size else self._replace(data=self.data[: self.data.find(b"\n", size) + 1])

    def quoted(self, separators: str) -> "Text":
        """Return the same lines, with quoted line ends if there are any. Single marks may cause a false alarm."""
        if b'"' not in self.data:
            return self
        data = np.frombuffer(self.data, dtype=np.uint8)
        marks = np.cumsum(data == QUOTE, dtype=np.uint8)  # modulo 256
        return self._replace(separators=separators) if (marks[data == LINE_FEED] & 1).any() else self

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


def read_text(
    source: Source, rows: int | None, comment: bytes | None = None, encoding: str | None = None
) -> Generator[Text, None, None]:
    """Yield the source in chunks of at most `rows` lines and about `CHUNK_BYTES` bytes; None: in one chunk.

    Without `encoding` it is UTF-8 or, after its byte order mark, UTF-16.
    """
    first = 1
    with source.open() as opened:
        file: Any = opened
        if encoding is None and file.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            encoding = "utf-16"
        if encoding is not None:
            file = io.BufferedReader(_AsUtf8(file, encoding, source.name))
        for data, lines in [(file.read(), None)] if rows is None else _line_chunks(file, rows):
            if data:
                yield Text(source.name, first, data.removeprefix(MARK) if first == 1 else data, comment, lines)
            first += lines or 0


def whole_records(texts: Iterable[Text], separators: str) -> Generator[Text, None, None]:
    """Join texts that were cut inside a quoted cell."""
    waiting: Text | None = None
    for text in texts:
        joined = text if waiting is None else waiting._replace(data=waiting.data + text.data, line_feeds=None)
        if len(joined.data) - len(text.data) < LONGEST_QUOTED and _ends_in_quotes(joined.data, separators):
            waiting = joined
            continue
        waiting = None
        yield joined
    if waiting is not None:
        yield waiting


def _ends_in_quotes(data: bytes, separators: str) -> bool:
    """Is the last cell quoted and not closed, so that it continues in the next text?"""
    if b'"' not in data or count_byte(data, QUOTE) % 2 == 0:
        return False
    closed = _quoting(separators).closed.match(data)
    return closed is not None and closed.end() < len(data)


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
