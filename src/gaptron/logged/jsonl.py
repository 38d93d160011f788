"""Our own form: a line that says what the labels are, then a line for each decision.

    {"format":"gaptron-log","version":1,"classes":["cat","dog","owl"],"n_features":4}
    {"x":[0.5,0,0,1.25],"label":"dog","probability":0.8,"reward":1,"distribution":[0.1,0.8,0.1]}
    {"x":{"0":0.5,"3":1.25},"label":"cat","probability":0.1,"reward":0}

`x` is an array, or an object of its non-zero entries (in one file one kind); `distribution` may be left out (in all
lines); other fields are not read. The first line may come again, so that logs can be put one after the other.
"""

import json
import os
from collections.abc import Iterator
from types import TracebackType
from typing import IO, Any, Self

import numpy as np

from gaptron.decision import Decision
from gaptron.errors import DecisionError, InputError, StreamError
from gaptron.logged import lines
from gaptron.logged.lines import Entry, Gathered, MalformedError, encode, get, is_column, number, numbers, objects
from gaptron.logged.log import Log
from gaptron.streams.source import Source
from gaptron.types import SparseRow
from gaptron.validation import Classes

FORMAT, VERSION = "gaptron-log", 1


def head(classes: tuple[Any, ...], n_features: int) -> dict[str, Any]:
    """The first line."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "classes": list(lines.plain_classes(classes)),
        "n_features": n_features,
    }


# --- reading ------------------------------------------------------------------------------------------------


def read(source: Source) -> Log:
    """The log in a file of this form."""
    first: dict[str, Any] | None = None
    gathered = Gathered(source)
    for at, line in objects(source):
        try:
            if first is None:
                first, classes = line, _classes(line)
            elif "format" in line:
                if line != first:
                    raise MalformedError("another log begins here, with other labels or features")
            else:
                gathered.add(at, _entry(line, classes, first["n_features"]))
        except (MalformedError, InputError) as problem:
            raise StreamError(source.name, str(problem), at) from None
    if first is None:
        raise StreamError(source.name, "holds no decisions")
    return gathered.log(classes.labels, first["n_features"])


def _classes(line: dict[str, Any]) -> Classes:
    if line.get("format") != FORMAT:
        raise MalformedError(f'a log begins with {{"format":"{FORMAT}", ...}}; say format= if it is of another kind')
    if line.get("version") != VERSION:
        raise MalformedError(f"version {line.get('version')!r} of the form is not known, only {VERSION}")
    width = get(line, "n_features")
    if not isinstance(width, int) or isinstance(width, bool) or width < 1:
        raise MalformedError(f"n_features is {width!r}, not a whole number of at least 1")
    labels = get(line, "classes")
    if not isinstance(labels, list) or len(labels) < 2:
        raise MalformedError("classes must be an array of at least two labels")
    return Classes(lines.plain_classes(labels))


def _entry(line: dict[str, Any], classes: Classes, width: int) -> Entry:
    x = get(line, "x")
    label = get(line, "label")
    if type(label) is not type(classes.labels[0]):  # or true would be 1, and 1.0 too
        raise MalformedError(f"label {json.dumps(label)[:40]} is not of the kind of the classes")
    distribution = line.get("distribution")
    return Entry(
        [number(value, f"feature {key}") for key, value in x.items()]
        if isinstance(x, dict)
        else numbers(x, "x", width),
        _columns(x, width) if isinstance(x, dict) else None,
        classes.code(label),
        number(get(line, "probability"), "probability"),
        number(get(line, "reward"), "reward"),
        None if distribution is None else numbers(distribution, "distribution", len(classes)),
    )


def _columns(x: dict[str, Any], width: int) -> list[int]:
    for key in x:
        if not (is_column(key) and int(key) < width):
            raise MalformedError(f"feature {key!r} is not one of 0..{width - 1}")
    return [int(key) for key in x]


# --- writing ------------------------------------------------------------------------------------------------


def write(log: Log) -> Iterator[str]:
    """The lines of a log."""
    yield encode(head(log.classes, log.n_features))
    for t in range(log.n_rounds):
        distribution = None if log.distribution is None else log.distribution[t]
        label = log.classes[log.codes[t]]
        yield encode(_line(features(log.row(t)), label, log.probability[t], log.reward[t], distribution))


def features(row: Any) -> list[float] | dict[str, float]:
    """A row in JSON's words."""
    if isinstance(row, SparseRow):
        return {str(at): float(value) for at, value in zip(row.indices, row.values)}
    if isinstance(row, np.ndarray):
        return [float(value) for value in row]
    return {str(at): float(value) for at, value in zip(row.indices, row.data)}


def _line(x: Any, label: Any, probability: float, reward: float, distribution: Any) -> dict[str, Any]:
    line = {"x": x, "label": label, "probability": float(probability), "reward": float(reward)}
    if distribution is not None:
        line["distribution"] = [float(chance) for chance in distribution]
    return line


class DecisionLog:
    """A file that decisions are written to as they are answered: open it, `write`, `close` it, or use `with`.

    A file that is there already is gone on with, if its labels and features are the same; .gz, .bz2 and .xz are
    packed. Every decision that was made should be written, or the log is no sample of them.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._file: IO[str] | None = None
        self._head: dict[str, Any] | None = None
        self._closed = False

    def write(self, decision: Decision, *, correct: bool) -> None:
        """Log a decision and whether its label was right."""
        if self._closed:
            raise DecisionError(f"{self.path} has been closed: open another DecisionLog on it")
        if not isinstance(correct, (bool, np.bool_)):
            raise DecisionError(f"correct={correct!r} must be True or False")
        learner = decision._owner
        first = head(learner.classes, learner.problem.n_features)
        if len(decision.distribution) != len(learner.classes):
            raise DecisionError(f"labels were added after round {decision.round}: its decision fits this log no more")
        if not decision.probability > 0.0:
            raise DecisionError(f"the label of round {decision.round} had probability 0: no estimate can use it")
        line = _line(
            features(learner._row_of(decision)),
            decision.label,
            decision.probability,
            float(correct),
            decision.distribution,
        )
        if self._head is None:
            self._open(first)
        elif self._head != first:
            raise DecisionError("this decision is about other labels or features than those logged before")
        assert self._file is not None
        self._file.write(encode(line))
        self._file.flush()

    def close(self) -> None:
        """Nothing can be written after this."""
        self._closed = True
        if self._file is not None:
            self._file.close()

    def _open(self, first: dict[str, Any]) -> None:
        there = _first_of(self.path)
        if there is not None and there != first:
            raise StreamError(self.path, "is a log of other labels or features: give the log another name")
        self._file, self._head = lines.open_text(self.path, "a"), first
        if there is None:
            self._file.write(encode(first))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _first_of(path: str) -> dict[str, Any] | None:
    """The first line of a log that is there, None if it is not or empty."""
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return None
    source = Source(path)
    for at, line in objects(source):
        try:
            _classes(line)
        except (MalformedError, InputError) as problem:
            raise StreamError(source.name, f"cannot be gone on with: {problem}", at) from None
        if not source.suffixes[1]:
            with open(path, "rb") as file:
                file.seek(-1, os.SEEK_END)
                if file.read() != b"\n":
                    raise StreamError(path, "ends in the middle of a line: complete or remove that line")
        return line
    return None
