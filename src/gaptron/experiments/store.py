"""The store: results as lines of JSON, only ever appended to, found again by their keys."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from gaptron.errors import InputError, SettingError
from gaptron.experiments.record import Record

FILE = "results.jsonl"


def read(path: Path) -> tuple[list[Record], list[str]]:
    """The records of a file, and what is to be said of lines that hold none."""
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise InputError(f"{path}: cannot be read ({problem.strerror or problem})") from None
    records, notes = [], []
    for number, line in enumerate(data.splitlines(), 1):
        try:
            records.append(Record.from_json(line.decode()))
        except (InputError, UnicodeDecodeError) as problem:
            notes.append(f"{path}, line {number}: passed over, {problem}")
    return records, notes


def latest(records: Iterable[Record]) -> list[Record]:
    """One record a key: a result wins over a failure, a later one over an earlier."""
    kept: dict[str, Record] = {}
    for record in records:
        if record.ok or record.key not in kept or not kept[record.key].ok:
            kept[record.key] = record
    return list(kept.values())


def write(path: Path, records: Iterable[Record]) -> None:
    """Records to a new file, which takes its place only when it is whole."""
    part = path.with_name(f"{path.name}.part")
    with open(part, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{record.to_json()}\n" for record in records)
    os.replace(part, path)


class Store:
    """A file of results with one writer, who hands each line to the system at once: a kill loses none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []  # what was mended or passed over when it was opened
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = open(path, "a+b")
        except OSError as problem:
            raise SettingError(f"{path}: cannot be written ({problem.strerror or problem})") from None
        try:
            _lock(self._file, path)
            self._mend()
            records, notes = read(path)
        except BaseException:
            self._file.close()
            raise
        self.notes += notes
        self._records = {record.key: record for record in latest(records)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, t: TracebackType | None) -> None:
        os.fsync(self._file.fileno())
        self._file.close()

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())

    def result(self, key: str) -> Record | None:
        """The result under a key; a failure is none, so that it is tried again."""
        record = self._records.get(key)
        return record if record is not None and record.ok else None

    def add(self, record: Record) -> None:
        """Append a record."""
        self._file.write(record.to_json().encode() + b"\n")
        self._file.flush()
        self._records[record.key] = record

    def _mend(self) -> None:
        """Whoever was killed while writing left a line without an end: keep it if it is whole, else cut it off."""
        self._file.seek(0)
        data = self._file.read()
        start = data.rfind(b"\n") + 1
        if start == len(data):
            return
        try:
            Record.from_json(data[start:].decode())
        except (InputError, UnicodeDecodeError):
            self._file.truncate(start)
            self.notes.append(f"{self.path}: the last line was half written and has been cut off; its task runs again")
        else:
            self._file.write(b"\n")
            self._file.flush()


def _lock(file: IO[bytes], path: Path) -> None:
    """One writer at a time, where the system can tell. The lock goes with the process, however it ends."""
    try:
        import fcntl  # noqa: PLC0415
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise SettingError(f"{path} is being written by another gaptron: wait for it, or say another folder") from None
