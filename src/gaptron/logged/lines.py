"""Logs of one JSON object a line: what reading and writing them has in common, whatever the objects say.

A file that was cut short while a line was being written (a full disk, a killed process) ends in part of a line. That
part is left out with a warning. A damaged line anywhere else is refused by number, or passed over if that was asked
for, again with a warning.
"""

import json
import lzma
import re
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import InputError, StreamError
from gaptron.logged.log import Log, check_available, checked, checked_policy
from gaptron.streams.rows import csr, tidy_rows
from gaptron.streams.source import Source

WIDEST = 2**31 - 1  # columns
_COLUMN = re.compile(r"0|[1-9]\d{0,8}", re.ASCII)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NAMED = 5  # damaged lines that a warning names one by one


class MalformedError(Exception):
    """What is wrong with a line; the reader adds which line."""


class NotJsonError(MalformedError):
    """The line is not even a JSON object, as when only part of it was written."""


class DamagedLineError(StreamError):
    """A line that cannot be read; `open_log(damaged="skip")` passes over it."""

    def __init__(self, source: str, problem: str, line: int) -> None:
        self.problem = problem
        super().__init__(source, problem, line)


class DamagedLogWarning(UserWarning):
    """Lines of a log were left out because they are damaged."""


# --- reading lines ------------------------------------------------------------------------------------------


class LogLines:
    """The lines of a file of JSON objects, and what to do about damaged ones."""

    def __init__(self, source: Source, *, skip_damaged: bool, header: bool) -> None:
        self.source = source
        self._skip = skip_damaged
        self._header = header  # the first line explains the others, and cannot be passed over
        self._left_out: list[tuple[int, str]] = []  # lines passed over
        self._cut: str | None = None  # what is missing at the end

    def each(self, take: Callable[[int, dict[str, Any]], None]) -> None:
        """Give every line that is not blank to `take`, which refuses one with MalformedError or InputError."""
        taken = False
        for number, line in self._raw():
            try:
                take(number, parse(line))
            except StreamError:
                raise
            except (MalformedError, InputError, RecursionError) as error:
                problem = "not JSON (nested too deeply)" if isinstance(error, RecursionError) else str(error)
                if taken and isinstance(error, NotJsonError) and not line.endswith(b"\n"):
                    self._cut = f"line {number} is incomplete ({problem}) and was left out"
                elif self._skip and (taken or not self._header):
                    self._left_out.append((number, problem))
                else:
                    raise DamagedLineError(self.source.name, problem, number) from None
            else:
                taken = True
        self._warn()

    def _raw(self) -> Iterator[tuple[int, bytes]]:
        number = 0
        with self.source.open() as file:
            while True:
                try:
                    line = file.readline()
                except EOFError:  # only packed files know that more was to come
                    self._cut = f"the compressed data ends too early, after line {number}: what comes later is missing"
                    return
                except (zlib.error, lzma.LZMAError, OSError) as error:
                    if not self._skip or (isinstance(error, OSError) and error.errno is not None):
                        raise
                    self._cut = f"the compressed data is damaged after line {number}: all that follows was left out"
                    return
                if not line:
                    return
                number += 1
                line = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
                if line.strip():
                    yield number, line

    def _warn(self) -> None:
        problems = [f"line {number} ({problem})" for number, problem in self._left_out[:_NAMED]]
        if problems:
            rest = len(self._left_out) - len(problems)
            more = f" and {rest} more" if rest else ""
            message = f"{self.source.name}: passed over {', '.join(problems)}{more}"
            warnings.warn(DamagedLogWarning(message), stacklevel=5)
        if self._cut is not None:
            warnings.warn(DamagedLogWarning(f"{self.source.name}: {self._cut}"), stacklevel=5)


def parse(line: bytes) -> dict[str, Any]:
    """A line as a JSON object."""
    try:
        value = json.loads(line.decode("utf-8"), object_pairs_hook=_without_repeats)
    except UnicodeDecodeError as error:
        raise NotJsonError(f"not JSON (byte {error.start + 1} of the line is not UTF-8)") from None
    except RecursionError:
        raise NotJsonError("not JSON (nested too deeply)") from None
    except ValueError as error:
        raise NotJsonError(f"not JSON ({error})") from None
    if not isinstance(value, dict):
        raise NotJsonError("not a JSON object")
    return value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise MalformedError(f"{short(name)} is there twice")
            seen.add(name)
    return fields


# --- reading fields -----------------------------------------------------------------------------------------


def get(line: dict[str, Any], name: str) -> Any:
    """A field that must be there."""
    if name not in line:
        raise MalformedError(f"no {name!r}")
    return line[name]


def number(value: Any, name: str) -> float:
    """A JSON number. NaN passes here; the log's own check names it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise MalformedError(f"{name[:40]} is {short(value)}, not a number")
    try:
        return float(value)
    except OverflowError:
        raise MalformedError(f"{name[:40]} is too large") from None


def numbers(value: Any, name: str, count: int) -> list[float]:
    """A JSON array of so many numbers."""
    if not isinstance(value, list):
        raise MalformedError(f"{name} is not an array")
    if len(value) != count:
        raise MalformedError(f"{name} has {len(value)} entries where {count} are due")
    return [number(entry, name) for entry in value]


def chances(line: dict[str, Any], column: str | None, classes: Sequence[Any]) -> list[float] | None:
    """What a policy of the reader's own gives the labels: a number (for the one played), an array or an object."""
    if column is None:
        return None
    given = get(line, column)
    if isinstance(given, list):
        return numbers(given, column, len(classes))
    if not isinstance(given, dict):
        return [number(given, column)]
    strangers = set(given) - set(map(str, classes))
    if strangers:
        raise MalformedError(f"{column} names {short(min(strangers))}, which is not one of the labels")
    return [number(given.get(str(label), 0.0), column) for label in classes]


def is_column(key: str) -> bool:
    """Is it the number of a column, in its one spelling?"""
    return _COLUMN.fullmatch(key) is not None


def short(value: Any) -> str:
    """A JSON value for an error message, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace").decode()
    return text if len(text) <= 40 else f"{text[:40]}..."


# --- from lines to a log ------------------------------------------------------------------------------------


class LoggedDecision(NamedTuple):
    """One logged decision, as its line says it."""

    values: Sequence[float]  # of x
    columns: Sequence[int] | None  # which columns they belong to; None: all in order
    code: int
    probability: float
    reward: float
    distribution: Sequence[float] | None
    among: Sequence[int] | None = None  # codes of the labels that were available; None: all
    policy: Sequence[float] | None = None  # of every label, or of the one played, by a policy of the reader's own


class LogBuilder:
    """Collects decisions column by column, with the lines they came from."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._lines: list[int] = []
        self._codes: list[int] = []
        self._rewards: list[float] = []
        self._probabilities: list[float] = []
        self._distributions: list[Sequence[float]] = []
        self._among: list[Sequence[int] | None] = []
        self._policies: list[Sequence[float]] = []
        self._sparse = self._has_distributions = False
        self._columns: list[int] = []
        self._values: list[float] = []
        self._ends = [0]

    def add(self, line: int, decision: LoggedDecision) -> None:
        """One more decision."""
        sparse, has_distribution = decision.columns is not None, decision.distribution is not None
        if not self._lines:
            self._sparse, self._has_distributions = sparse, has_distribution
        if sparse != self._sparse:
            raise MalformedError("x is an array on some lines and an object on others: write one kind")
        if has_distribution != self._has_distributions:
            raise MalformedError("some lines have the whole distribution and some have not: all must, or none")
        policy = decision.policy or ()
        if self._policies and len(self._policies[0]) != len(policy):
            raise MalformedError("some lines have the policy's chance of every label, some of the one played only")
        self._lines.append(line)
        self._policies.append(policy)
        self._codes.append(decision.code)
        self._rewards.append(decision.reward)
        self._probabilities.append(decision.probability)
        self._distributions.append(decision.distribution or ())
        self._among.append(decision.among)
        self._columns += decision.columns or ()
        self._values += decision.values
        self._ends.append(len(self._values))

    def log(self, classes: Sequence[Any], width: int) -> Log:
        """All of them, checked."""
        if not self._lines:
            raise StreamError(self.source.name, "holds no decisions")
        values = np.array(self._values, dtype=np.float64)
        X: Any = csr(values, self._columns, self._ends, width) if self._sparse else values.reshape(-1, width)

        def blame(row: int, problem: str) -> StreamError:
            return StreamError(self.source.name, problem, self._lines[row])

        fields = checked(
            tidy_rows(X),
            np.array(self._codes, dtype=np.int64),
            np.array(self._rewards),
            np.array(self._probabilities),
            np.array(self._distributions) if self._has_distributions else None,
            len(classes),
            blame,
        )
        among = self._available(len(classes))
        if among is not None:
            check_available(fields[1], fields[4], among, blame)
        policy = checked_policy(self._policies, fields[1], among, len(classes), blame) if self._policies[0] else None
        return Log(*fields, tuple(classes), self.source.name, among, policy)

    def _available(self, K: int) -> NDArray[np.bool_] | None:
        if all(codes is None for codes in self._among):
            return None
        among = np.zeros((len(self._among), K), dtype=np.bool_)
        for row, codes in enumerate(self._among):
            among[row, slice(None) if codes is None else list(codes)] = True
        return among


# --- writing ------------------------------------------------------------------------------------------------


def encode(line: dict[str, Any]) -> bytes:
    """An object as a line."""
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"
    return text.encode()


def plain_classes(classes: Sequence[Any]) -> tuple[Any, ...]:
    """The classes, if a file can hold them and give them back."""
    kinds = {type(label) for label in classes}
    if kinds not in ({str}, {int}):
        raise InputError(
            "a log file holds labels that are all texts or all whole numbers: give the learner such classes"
        )
    for label in classes:
        if isinstance(label, str) and any("\ud800" <= letter <= "\udfff" for letter in label):
            raise InputError(f"label {label!r} holds half of a character, which no file can hold: correct the label")
    return tuple(classes)
