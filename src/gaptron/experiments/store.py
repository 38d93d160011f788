"""The store: results as lines of JSON, only ever appended to, looked up by their keys."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from gaptron.errors import InputError, SettingError
from gaptron.experiments.task import Result

FILE = "results.jsonl"


def read(path: Path) -> tuple[list[Result], list[str]]:
    """The results of a file, and a note for each line that holds none."""
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise InputError(f"{path}: cannot be read ({problem.strerror or problem})") from None
    results, notes = [], []
    for number, line in enumerate(data.splitlines(), 1):  # JSON escapes every other end of a line
        try:
            results.append(Result.from_json(line.decode()))
        except (InputError, UnicodeDecodeError) as problem:
            notes.append(f"{path}, line {number}: passed over, {problem}")
    return results, notes


def latest(results: Iterable[Result]) -> list[Result]:
    """One result a key: a result wins over a failure, a later one over an earlier."""
    kept: dict[str, Result] = {}
    for result in results:
        if result.ok or result.key not in kept or not kept[result.key].ok:
            kept[result.key] = result
    return list(kept.values())


def write(path: Path, results: Iterable[Result]) -> None:
    """Results to a new file, which takes its place only when it is whole."""
    part = path.with_name(f"{path.name}.part")
    with open(part, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{result.to_json()}\n" for result in results)
    os.replace(part, path)


class Store:
    """A file of results with one writer, who hands each line to the system at once: a kill loses none.

    On a full disk `add` raises OSError and the file ends with the last result that was written as a whole.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []  # what was mended or passed over when it was opened
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = open(path, "a+b", buffering=0)
        except OSError as problem:
            raise SettingError(f"{path}: cannot be written ({problem.strerror or problem})") from None
        try:
            _lock(self._file, path)
            self._mend()
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
        """The result under a key; a failure is none, so that it is tried again."""
        result = self._results.get(key)
        return result if result is not None and result.ok else None

    def add(self, result: Result) -> None:
        """Append a result."""
        self._append(result.to_json().encode() + b"\n")
        self._results[result.key] = result

    def _append(self, line: bytes) -> None:
        end = os.fstat(self._file.fileno()).st_size
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._file.fileno(), rest) :]  # the system may take a part of it
        except OSError:
            os.ftruncate(self._file.fileno(), end)
            raise

    def _mend(self) -> None:
        """A process killed while writing leaves a line without an end: keep it if it is whole, else cut it off."""
        self._file.seek(0)
        data = self._file.read()
        start = data.rfind(b"\n") + 1
        if start == len(data):
            return
        try:
            Result.from_json(data[start:].decode())
        except (InputError, UnicodeDecodeError):
            self._file.truncate(start)
            self.notes.append(f"{self.path}: the last line was half written and has been cut off; its task runs again")
        else:
            self._append(b"\n")


def _lock(file: IO[bytes], path: Path) -> None:
    """One writer at a time, where the system can tell. The lock goes with the process, however it ends."""
    try:
        import fcntl  # noqa: PLC0415
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise SettingError(f"{path} is being written by another gaptron: wait, or choose another folder") from None
