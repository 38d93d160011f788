"""The result store: results as lines of JSON, appended only, looked up by key."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from gaptron.data import atomic_file
from gaptron.data.special_files import check_not_special
from gaptron.errors import InputError, SettingError
from gaptron.experiments.task import Result

FILE = "results.jsonl"


def read(path: Path) -> tuple[list[Result], list[str]]:
    """Return the results in a file, and a note for each line that is not a result."""
    try:
        check_not_special(path)
        data = path.read_bytes()
    except OSError as problem:
        raise InputError(f"{path}: cannot be read ({problem.strerror or problem})") from None
    results, notes = [], []
    for number, line in enumerate(data.splitlines(), 1):  # JSON escapes every other line separator
        try:
            results.append(Result.from_json(line.decode()))
        except (InputError, UnicodeDecodeError) as problem:
            notes.append(f"{path}, line {number}: skipped, {problem}")
    return results, notes


def latest(results: Iterable[Result]) -> list[Result]:
    """Return one result per key: a success replaces a failure, a later result an earlier one."""
    kept: dict[str, Result] = {}
    for result in results:
        if result.ok or result.key not in kept or not kept[result.key].ok:
            kept[result.key] = result
    return list(kept.values())


def write(path: Path, results: Iterable[Result]) -> None:
    """Write results to a file, replacing an existing one atomically."""
    atomic_file.replace(path, (_line(result) for result in results))


class Store:
    """A file of results with one writer. Each line is passed to the operating system at once: a kill loses none.

    On a full disk `add` raises OSError, and the file ends with the last complete result.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []  # what was repaired or skipped on opening
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                check_not_special(path)
            self._file: IO[bytes] = open(path, "a+b", buffering=0)
        except OSError as problem:
            raise SettingError(f"{path}: cannot be written ({problem.strerror or problem})") from None
        try:
            _lock(self._file, path)
            self._repair()
            results, notes = read(path)
        except BaseException:
            self._file.close()
            raise
        self.notes += notes
        self._results = {result.key: result for result in latest(results)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, t: TracebackType | None) -> None:
        try:
            os.fsync(self._file.fileno())
        finally:
            self._file.close()

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results.values())

    def result(self, key: str) -> Result | None:
        """Return the successful result with this key; None for a failure, so that its task runs again."""
        result = self._results.get(key)
        return result if result is not None and result.ok else None

    def add(self, result: Result) -> None:
        """Append a result."""
        self._append(_line(result))
        self._results[result.key] = result

    def _append(self, line: bytes) -> None:
        end = os.fstat(self._file.fileno()).st_size
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._file.fileno(), rest) :]  # the system may write only part of it
        except OSError:
            os.ftruncate(self._file.fileno(), end)
            raise

    def _repair(self) -> None:
        """Complete or remove a last line without a newline, which a process killed while writing leaves behind."""
        self._file.seek(0)
        data = self._file.read()
        start = data.rfind(b"\n") + 1
        if start == len(data):
            return
        try:
            Result.from_json(data[start:].decode())
        except (InputError, UnicodeDecodeError):
            self._file.truncate(start)
            self.notes.append(f"{self.path}: removed the incomplete last line; its task runs again")
        else:
            self._append(b"\n")


def _line(result: Result) -> bytes:
    return result.to_json().encode() + b"\n"


def _lock(file: IO[bytes], path: Path) -> None:
    """Lock the file for one writer, where the system supports it. The lock ends with the process."""
    try:
        import fcntl  # noqa: PLC0415
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise SettingError(
            f"{path} is being written by another gaptron: wait for it, or choose another folder"
        ) from None
