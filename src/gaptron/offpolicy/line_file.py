"""A file to which whole lines are appended, plain or .gz.

Each line is passed to the operating system before `append` returns: a killed process loses no acknowledged line. A
write that fails half-way (a full disk, a signal) leaves part of a line; it is removed immediately or, if that fails,
when the file is next opened. A lock ensures one writer per file, where the file system supports locks.
"""

import errno
import os
import stat
import warnings
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from io import FileIO

from gaptron.data import atomic_file
from gaptron.errors import StreamError
from gaptron.streams.json_lines import DamagedLogWarning, MalformedError, parse

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]

CHUNK = 1 << 16
GZIP_FRAME = 64  # upper limit for the bytes of a .gz file besides its data
GZIP = 31  # wbits value for the header and checksum of a .gz file


class LineFile:
    """A file opened for appending: repaired if it was truncated, started with `first` if it is new or empty."""

    def __init__(self, path: str, first: bytes, check_first: Callable[[bytes], None], *, sync: bool) -> None:
        self.path, self._compressed, self._sync = path, path.lower().endswith(".gz"), sync
        self._compressor: zlib._Compress | None = None
        with _named_errors(path):
            self._file = _open_locked(path)
            try:
                self._start(first, check_first)
            except BaseException:
                self._file.close()
                raise

    def append(self, line: bytes) -> None:
        """Append a line. If that fails, the file still has the earlier lines, and this object must be closed."""
        end = os.fstat(self._file.fileno()).st_size
        try:
            with _named_errors(self.path):
                self._write(line)
        except BaseException:
            try:
                self._file.truncate(end)
            except OSError:
                pass  # the rest of the line is removed when the file is next opened
            self._compressor = None  # its buffered data belongs to the line that failed
            raise

    def close(self) -> None:
        """Finish the compressed data and close the file."""
        if self._file.closed:
            return
        try:
            if self._compressor is not None:
                end, self._compressor = self._compressor.flush(zlib.Z_FINISH), None
                with _named_errors(self.path):
                    self._write_all(end)
        finally:
            self._file.close()

    def _start(self, first: bytes, check_first: Callable[[bytes], None]) -> None:
        found, size = _first_line(self._text()), os.fstat(self._file.fileno()).st_size
        if not found.endswith(b"\n") and first.startswith(found) and size <= len(first) + GZIP_FRAME:
            self._file.truncate(0)  # new, empty, or interrupted while the first line was being written
            self.append(first)
            return
        check_first(found)
        if self._compressed:
            self._repair_compressed()
        else:
            self._repair_plain()

    def _write(self, line: bytes) -> None:
        if self._compressed:
            if self._compressor is None:
                self._compressor = zlib.compressobj(wbits=GZIP)
            line = self._compressor.compress(line) + self._compressor.flush(zlib.Z_SYNC_FLUSH)
        self._write_all(line)

    def _write_all(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file.fileno(), rest) :]
        if self._sync:
            os.fsync(self._file.fileno())

    def _repair_plain(self) -> None:
        size = start = os.fstat(self._file.fileno()).st_size
        chunks: list[bytes] = []  # from the last to the first
        while start and b"\n" not in (chunks[-1] if chunks else b""):
            length = min(CHUNK, start)
            start -= length
            self._file.seek(start)
            chunks.append(self._file.read(length))
        tail = b"".join(reversed(chunks))
        line = tail[tail.rfind(b"\n") + 1 :]
        if not line:
            return
        if _is_complete(line):
            self._write_all(b"\n")
        else:
            self._file.truncate(size - len(line))
            _warn(self.path, "the incomplete last line was removed before appending")

    def _repair_compressed(self) -> None:
        chunks, last = self._text(), b""
        while True:
            try:
                last = next(chunks) or last
            except StopIteration as stop:
                complete: bool = stop.value
                break
        if complete and last.endswith(b"\n"):
            return
        atomic_file.replace(self.path, _recompressed(self._text()))
        self._file.close()
        self._file = _open_locked(self.path)
        _warn(self.path, "the compressed data was truncated; the file was rewritten with its complete lines")

    def _text(self) -> Generator[bytes, None, bool]:
        """Yield the decompressed content in chunks; return whether the compressed data is complete."""
        self._file.seek(0)
        decompressor = zlib.decompressobj(wbits=GZIP) if self._compressed else None
        started = False
        while data := self._file.read(CHUNK):
            while data and decompressor is not None:
                try:
                    text = decompressor.decompress(data)
                except zlib.error as error:
                    raise StreamError(self.path, f"the compressed data is damaged ({error})") from None
                started = True
                yield text
                data = decompressor.unused_data if decompressor.eof else b""
                if decompressor.eof:
                    decompressor, started = zlib.decompressobj(wbits=GZIP), False
                    data = data.lstrip(b"\0")
            if decompressor is None:
                yield data
        return not started


def _recompressed(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Compress the complete lines of the text."""
    compressor = zlib.compressobj(wbits=GZIP)
    line = bytearray()  # the start of an incomplete line
    for chunk in chunks:
        end = chunk.rfind(b"\n") + 1
        if end:
            yield compressor.compress(line + chunk[:end])
            line.clear()
        line += chunk[end:]
    if line and _is_complete(bytes(line)):
        yield compressor.compress(line + b"\n")
    yield compressor.flush()


def _first_line(chunks: Iterator[bytes]) -> bytes:
    line = bytearray()
    for chunk in chunks:
        end = chunk.find(b"\n") + 1
        line += chunk[:end] if end else chunk
        if end:
            break
    return bytes(line)


def _is_complete(line: bytes) -> bool:
    try:
        parse(line)
    except MalformedError:
        return False
    return True


def _open_locked(path: str) -> FileIO:
    """Open a file for reading and appending, creating it if necessary, and lock it."""
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        raise StreamError(path, "cannot be written (it is not a regular file)")
    file = FileIO(path, "a+")
    if fcntl is None:
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            file.close()
            raise StreamError(path, "is open in another DecisionLog: close that one first") from None
        # Some network file systems have no locks; then there is no check.
    return file


@contextmanager
def _named_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StreamError(path, f"cannot be written ({error.strerror or error})") from None


def _warn(path: str, problem: str) -> None:
    warnings.warn(DamagedLogWarning(f"{path}: {problem}"), stacklevel=7)
