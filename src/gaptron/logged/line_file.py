"""A file that whole lines are appended to, plain or .gz.

Each line is handed to the operating system before `append` returns: a process that is killed loses nothing that was
acknowledged. A write that fails half-way (a full disk, a signal) leaves part of a line; it is cut off at once, or else
when the file is opened the next time. Only one such object may hold a file at a time, as far as the file system can
tell.
"""

import errno
import os
import stat
import warnings
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from io import FileIO

from gaptron import atomic_file
from gaptron.errors import StreamError
from gaptron.logged.lines import DamagedLogWarning, MalformedError, parse

try:
    import fcntl
except ImportError:  # no such locks on Windows
    fcntl = None  # type: ignore[assignment]

CHUNK = 1 << 16
GZIP_FRAME = 64  # bytes of a .gz file besides its data, at most
GZIP = 31  # zlib's word for: with the header and checksum of a .gz file


class LineFile:
    """Opened for appending: mended if it was cut short, and begun with `first` if it is new or empty."""

    def __init__(self, path: str, first: bytes, check_first: Callable[[bytes], None], *, sync: bool) -> None:
        self.path, self._packed, self._sync = path, path.lower().endswith(".gz"), sync
        self._compressor: zlib._Compress | None = None
        with _named_errors(path):
            self._file = _open_locked(path)
            try:
                self._begin(first, check_first)
            except BaseException:
                self._file.close()
                raise

    def append(self, line: bytes) -> None:
        """Write a line. If that fails, the file holds the lines before, and this object must be closed."""
        end = os.fstat(self._file.fileno()).st_size
        try:
            with _named_errors(self.path):
                self._write(line)
        except BaseException:
            try:
                self._file.truncate(end)
            except OSError:
                pass  # what is left of the line is cut off when the file is opened again
            self._compressor = None  # what it holds back belongs to the line that failed
            raise

    def close(self) -> None:
        """Finish the file."""
        if self._file.closed:
            return
        try:
            if self._compressor is not None:
                end, self._compressor = self._compressor.flush(zlib.Z_FINISH), None
                with _named_errors(self.path):
                    self._write_all(end)
        finally:
            self._file.close()

    def _begin(self, first: bytes, check_first: Callable[[bytes], None]) -> None:
        there, size = _first_line(self._text()), os.fstat(self._file.fileno()).st_size
        if not there.endswith(b"\n") and first.startswith(there) and size <= len(first) + GZIP_FRAME:
            self._file.truncate(0)  # new, empty, or stopped while the first line was being written
            self.append(first)
            return
        check_first(there)
        if self._packed:
            self._mend_packed()
        else:
            self._mend_plain()

    def _write(self, line: bytes) -> None:
        if self._packed:
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

    def _mend_plain(self) -> None:
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
            _warn(self.path, "its last line was incomplete, and was cut off before more was written")

    def _mend_packed(self) -> None:
        chunks, last = self._text(), b""
        while True:
            try:
                last = next(chunks) or last
            except StopIteration as stop:
                complete: bool = stop.value
                break
        if complete and last.endswith(b"\n"):
            return
        atomic_file.replace(self.path, _packed_again(self._text()))
        self._file.close()
        self._file = _open_locked(self.path)
        _warn(self.path, "its compressed data ended too early, and was written anew with all its whole lines")

    def _text(self) -> Generator[bytes, None, bool]:
        """What the file holds, chunk by chunk; returns whether the compressed data came to its end."""
        self._file.seek(0)
        unpack = zlib.decompressobj(wbits=GZIP) if self._packed else None
        begun = False
        while data := self._file.read(CHUNK):
            while data and unpack is not None:
                try:
                    text = unpack.decompress(data)
                except zlib.error as error:
                    raise StreamError(self.path, f"the compressed data is damaged ({error})") from None
                begun = True
                yield text
                data = unpack.unused_data if unpack.eof else b""
                if unpack.eof:
                    unpack, begun = zlib.decompressobj(wbits=GZIP), False
                    data = data.lstrip(b"\0")
            if unpack is None:
                yield data
        return not begun


def _packed_again(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The whole lines of the text, compressed."""
    compressor = zlib.compressobj(wbits=GZIP)
    line = bytearray()  # the beginning of one
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
    """The file, open for reading and appending; made if it is not there."""
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
            raise StreamError(path, "another DecisionLog has it open: close that one first") from None
        # Some network file systems have no locks: then nobody checks.
    return file


@contextmanager
def _named_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StreamError(path, f"cannot be written ({error.strerror or error})") from None


def _warn(path: str, problem: str) -> None:
    warnings.warn(DamagedLogWarning(f"{path}: {problem}"), stacklevel=7)
