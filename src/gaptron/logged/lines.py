"""Logs of one JSON object a line: what reading and writing them has in common, whatever the objects say."""

import bz2
import gzip
import json
import lzma
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import IO, Any, NamedTuple

import numpy as np

from gaptron.errors import InputError, StreamError
from gaptron.logged.log import Log, checked
from gaptron.streams.rows import csr, tidy_rows
from gaptron.streams.source import Source, texts

_PACK: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}

_COLUMN = re.compile(r"0|[1-9]\d{0,8}", re.ASCII)


class MalformedError(Exception):
    """What is wrong with a line; the reader adds which."""


class Entry(NamedTuple):
    """One logged decision, as found."""

    values: Sequence[float]  # of x
    columns: Sequence[int] | None  # which columns they belong to; None: all in order
    code: int
    probability: float
    reward: float
    distribution: Sequence[float] | None


def objects(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every line that is not blank, with its number."""
    for text in texts(source, 65_536):
        for number, line in text.rounds():
            try:
                found = json.loads(line, object_pairs_hook=_once)
            except MalformedError as problem:
                raise StreamError(source.name, str(problem), number) from None
            except (ValueError, RecursionError) as problem:
                raise StreamError(source.name, f"not JSON ({problem})", number) from None
            if not isinstance(found, dict):
                raise StreamError(source.name, "not a JSON object", number)
            yield number, found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise MalformedError(f"{twice!r} is there twice")
    return found


def get(line: dict[str, Any], name: str) -> Any:
    """A field that must be there."""
    if name not in line:
        raise MalformedError(f"no {name!r}")
    return line[name]


def number(value: Any, name: str) -> float:
    """A JSON number. NaN passes here; the log's own check names it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise MalformedError(f"{name} is {json.dumps(value)[:40]}, not a number")
    try:
        return float(value)
    except OverflowError:
        raise MalformedError(f"{name} is too large") from None


def numbers(value: Any, name: str, count: int) -> list[float]:
    """A JSON array of so many numbers."""
    if not isinstance(value, list):
        raise MalformedError(f"{name} is not an array")
    if len(value) != count:
        raise MalformedError(f"{name} has {len(value)} entries where {count} are due")
    return [number(entry, name) for entry in value]


def is_column(key: str) -> bool:
    """Is it the number of a column, in its one spelling?"""
    return _COLUMN.fullmatch(key) is not None


class Gathered:
    """The entries of a log, column by column, and the lines they came from."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._lines: list[int] = []
        self._codes: list[int] = []
        self._rewards: list[float] = []
        self._chances: list[float] = []
        self._distributions: list[Sequence[float]] = []
        self._sparse = self._whole = False
        self._columns: list[int] = []
        self._values: list[float] = []
        self._ends = [0]

    def add(self, line: int, entry: Entry) -> None:
        """One more decision."""
        whole = entry.distribution is not None
        if not self._lines:
            self._sparse, self._whole = entry.columns is not None, whole
        if (entry.columns is not None) != self._sparse:
            raise MalformedError("x is an array on some lines and an object on others: write one kind")
        if whole != self._whole:
            raise MalformedError("some lines have the whole distribution and some have not: all must, or none")
        self._lines.append(line)
        self._codes.append(entry.code)
        self._rewards.append(entry.reward)
        self._chances.append(entry.probability)
        self._distributions.append(entry.distribution or ())
        self._columns += entry.columns or ()
        self._values += entry.values
        self._ends.append(len(self._values))

    def log(self, classes: Sequence[Any], width: int) -> Log:
        """All of them, checked."""
        if not self._lines:
            raise StreamError(self.source.name, "holds no decisions")
        values = np.array(self._values, dtype=np.float64)
        X: Any = csr(values, self._columns, self._ends, width) if self._sparse else values.reshape(-1, width)
        fields = checked(
            tidy_rows(X),
            np.array(self._codes, dtype=np.int64),
            np.array(self._rewards),
            np.array(self._chances),
            np.array(self._distributions) if self._whole else None,
            len(classes),
            lambda row, problem: StreamError(self.source.name, problem, self._lines[row]),
        )
        return Log(*fields, tuple(classes), self.source.name)


def open_text(path: str, mode: str) -> IO[str]:
    """A file for text, packed if its name says so."""
    try:
        opened: IO[str] = _PACK.get(PurePath(path).suffix.lower(), open)(path, f"{mode}t", encoding="utf-8")
    except OSError as problem:
        raise StreamError(os.fspath(path), f"cannot be written ({problem.strerror or problem})") from None
    return opened


def encode(line: dict[str, Any]) -> str:
    """An object as a line."""
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"


def plain_classes(classes: Sequence[Any]) -> tuple[Any, ...]:
    """The classes, if a file can hold them and give them back."""
    kinds = {type(label) for label in classes}
    if kinds not in ({str}, {int}):
        raise InputError(
            "a log file holds labels that are all texts or all whole numbers: give the learner such classes"
        )
    return tuple(classes)
