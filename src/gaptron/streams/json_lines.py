"""Reading and writing files with one JSON object per line, independent of what the objects contain.

A file that was cut off while a line was being written (a full disk, a killed process) ends with an incomplete line. It
is skipped with a warning. A damaged line anywhere else is an error that names the line; on request it is skipped with a
warning.
"""

import json
import lzma
import re
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gaptron.errors import InputError, StreamError
from gaptron.streams.source import Source

WIDEST = 2**31 - 1  # columns
_COLUMN = re.compile(r"0|[1-9]\d{0,8}", re.ASCII)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LISTED = 5  # damaged lines that a warning lists


class MalformedError(Exception):
    """What is wrong with a line; the reader adds the line number."""


class NotJsonError(MalformedError):
    """The line is not a JSON object, for example because only part of it was written."""


class OtherActionsError(MalformedError):
    """The line has other actions than the lines before: such a file is read by `open_actions`."""


class DamagedLineError(StreamError):
    """A line that cannot be read; `open_log(damaged="skip")` skips it."""

    has_other_actions = False

    def __init__(self, source: str, problem: str, line: int) -> None:
        self.problem = problem
        super().__init__(source, problem, line)


class DamagedLogWarning(UserWarning):
    """Lines of a log were skipped because they are damaged."""


# --- reading lines ------------------------------------------------------------------------------------------


class LogLines:
    """The lines of a file of JSON objects, with the treatment of damaged ones."""

    def __init__(self, source: Source, *, skip_damaged: bool, header: bool) -> None:
        self.source = source
        self._skip = skip_damaged
        self._header = header  # the first line describes the others and cannot be skipped
        self._skipped: list[tuple[int, str]] = []
        self._truncated: str | None = None  # what is missing at the end

    def each(self, take: Callable[[int, dict[str, Any]], None]) -> None:
        """Call `take` with every line that is not blank; it raises MalformedError or InputError for a bad line."""
        taken = False
        for number, line in self._raw():
            try:
                take(number, parse(line))
            except StreamError:
                raise
            except (MalformedError, InputError, RecursionError) as error:
                problem = "not JSON (nested too deeply)" if isinstance(error, RecursionError) else str(error)
                if taken and isinstance(error, NotJsonError) and not line.endswith(b"\n"):
                    self._truncated = f"line {number} is incomplete ({problem}) and was skipped"
                elif self._skip and (taken or not self._header):
                    self._skipped.append((number, problem))
                else:
                    damaged = DamagedLineError(self.source.name, problem, number)
                    damaged.has_other_actions = isinstance(error, OtherActionsError)
                    raise damaged from None
            else:
                taken = True
        self._warn()

    def _raw(self) -> Iterator[tuple[int, bytes]]:
        number = 0
        with self.source.open() as file:
            while True:
                try:
                    line = file.readline()
                except EOFError:  # raised only for compressed files, which know that data is missing
                    self._truncated = f"the compressed data is truncated after line {number}: later lines are missing"
                    return
                except (zlib.error, lzma.LZMAError, OSError) as error:
                    if not self._skip or (isinstance(error, OSError) and error.errno is not None):
                        raise
                    self._truncated = f"the compressed data is damaged after line {number}: later lines were skipped"
                    return
                if not line:
                    return
                number += 1
                line = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
                if line.strip():
                    yield number, line

    def _warn(self) -> None:
        problems = [f"line {number} ({problem})" for number, problem in self._skipped[:_LISTED]]
        if problems:
            rest = len(self._skipped) - len(problems)
            more = f" and {rest} more" if rest else ""
            message = f"{self.source.name}: skipped {', '.join(problems)}{more}"
            warnings.warn(DamagedLogWarning(message), stacklevel=5)
        if self._truncated is not None:
            warnings.warn(DamagedLogWarning(f"{self.source.name}: {self._truncated}"), stacklevel=5)


def parse(line: bytes) -> dict[str, Any]:
    """Parse a line as a JSON object."""
    try:
        value = json.loads(line.decode("utf-8"), object_pairs_hook=_without_duplicates)
    except UnicodeDecodeError as error:
        raise NotJsonError(f"not JSON (byte {error.start + 1} of the line is not UTF-8)") from None
    except RecursionError:
        raise NotJsonError("not JSON (nested too deeply)") from None
    except ValueError as error:
        raise NotJsonError(f"not JSON ({error})") from None
    if not isinstance(value, dict):
        raise NotJsonError("not a JSON object")
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise MalformedError(f"{short(name)} appears twice")
            seen.add(name)
    return fields


# --- reading fields -----------------------------------------------------------------------------------------


def get(line: dict[str, Any], name: str) -> Any:
    """Return a required field."""
    if name not in line:
        raise MalformedError(f"field {name!r} is missing")
    return line[name]


def number(value: Any, name: str) -> float:
    """Check a JSON number. NaN is accepted here and refused by the checks of the log."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise MalformedError(f"{name[:40]} is {short(value)}, not a number")
    try:
        return float(value)
    except OverflowError:
        raise MalformedError(f"{name[:40]} is too large") from None


def numbers(value: Any, name: str, count: int) -> list[float]:
    """Check a JSON array of `count` numbers."""
    if not isinstance(value, list):
        raise MalformedError(f"{name} is not an array")
    if len(value) != count:
        raise MalformedError(f"{name} has {len(value)} entries, expected {count}")
    return [number(entry, name) for entry in value]


def policy_probabilities(line: dict[str, Any], column: str | None, classes: Sequence[Any]) -> list[float] | None:
    """Read the probabilities of the caller's policy: a number (of the label played), an array or an object by label."""
    if column is None:
        return None
    given = get(line, column)
    if isinstance(given, list):
        return numbers(given, column, len(classes))
    if not isinstance(given, dict):
        return [number(given, column)]
    unknown = set(given) - set(map(str, classes))
    if unknown:
        raise MalformedError(f"{column} names {short(min(unknown))}, which is not one of the labels")
    return [number(given.get(str(label), 0.0), column) for label in classes]


def is_column(key: str) -> bool:
    """Whether the key is a column number in canonical form."""
    return _COLUMN.fullmatch(key) is not None


def short(value: Any) -> str:
    """Format a JSON value for an error message, truncated if it is long."""
    text = json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace").decode()
    return text if len(text) <= 40 else f"{text[:40]}..."


# --- writing ------------------------------------------------------------------------------------------------


def encode(line: dict[str, Any]) -> bytes:
    """Encode an object as a line."""
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"
    return text.encode()


def plain_classes(classes: Sequence[Any]) -> tuple[Any, ...]:
    """Return the classes if a file can store them without loss."""
    kinds = {type(label) for label in classes}
    if kinds not in ({str}, {int}):
        raise InputError("a log file stores labels that are all strings or all integers: give the learner such classes")
    for label in classes:
        if isinstance(label, str) and any("\ud800" <= letter <= "\udfff" for letter in label):
            raise InputError(
                f"label {label!r} contains a lone surrogate, which cannot be encoded as UTF-8: correct the label"
            )
    return tuple(classes)
