"""Our own form: a line that says what the labels are, then a line for each decision.

    {"format":"gaptron-log","version":1,"classes":["cat","dog","owl"],"n_features":4}
    {"x":[0.5,0,0,1.25],"label":"dog","probability":0.8,"reward":1,"distribution":[0.1,0.8,0.1]}
    {"x":{"0":0.5,"3":1.25},"label":"cat","probability":0.1,"reward":0}
    {"x":[0,1,0,0],"label":"owl","probability":0.5,"reward":0.35,"among":["dog","owl"]}

`x` is an array, or an object of its non-zero entries (in one file one kind). With "features":"auto" in the place of
"n_features" it is an object of names, with numbers, texts, true, false and null, and becomes numbers as it is read, in
the order of lines, as `Learner(features="auto")` would make them of it. `distribution` may be left out (in all
lines), and `among`, the labels that were available (in any line: all were); other fields are not read. The first line
may come again, so that logs can be put one after the other.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gaptron.errors import InputError, StreamError
from gaptron.features import Encoder
from gaptron.features.declaration import as_features
from gaptron.logged.lines import (
    WIDEST,
    LogBuilder,
    LoggedDecision,
    LogLines,
    MalformedError,
    chances,
    encode,
    get,
    is_column,
    number,
    numbers,
    plain_classes,
    short,
)
from gaptron.logged.log import Log
from gaptron.streams.source import Source
from gaptron.types import SparseRow
from gaptron.validation import Classes

FORMAT, VERSION = "gaptron-log", 1
AUTO = "auto"  # the one way of features by name


def header(classes: tuple[Any, ...], n_features: int | None) -> dict[str, Any]:
    """The first line. n_features=None: rows are given by name."""
    shape = {"features": AUTO} if n_features is None else {"n_features": n_features}
    return {"format": FORMAT, "version": VERSION, "classes": list(plain_classes(classes)), **shape}


# --- reading ------------------------------------------------------------------------------------------------


def read(source: Source, *, skip_damaged: bool = False, column: str | None = None) -> Log:
    """The log in a file of this form, with the probabilities in a column of the reader's own if one is named."""
    first: dict[str, Any] = {}
    classes: list[Classes] = []
    builder, encoder = LogBuilder(source), Encoder(as_features(AUTO))

    def take(at: int, line: dict[str, Any]) -> None:
        if not classes:
            try:
                classes.append(classes_of(line))
            except (MalformedError, InputError) as problem:
                raise StreamError(source.name, str(problem), at) from None
            first.update(line)
        elif "format" in line:
            if line != first:
                raise StreamError(source.name, "another log begins here, with other labels or features", at)
        else:
            row = _by_name(line, encoder) if "features" in first else _by_number(line, first["n_features"])
            builder.add(at, _decision(line, *row, classes[0], column))

    LogLines(source, skip_damaged=skip_damaged, header=True).each(take)
    if not classes:
        raise StreamError(source.name, "holds no decisions")
    return builder.log(classes[0].labels, max(1, encoder.width) if "features" in first else first["n_features"])


def classes_of(line: dict[str, Any]) -> Classes:
    """The classes that a first line names; or MalformedError or InputError."""
    if line.get("format") != FORMAT:
        raise MalformedError(f'a log begins with {{"format":"{FORMAT}", ...}}; say format= if it is of another kind')
    if line.get("version") != VERSION:
        raise MalformedError(f"version {short(line.get('version'))} of the form is not known, only {VERSION}")
    if "features" in line:
        if line["features"] != AUTO or "n_features" in line:
            raise MalformedError(f'features must be "{AUTO}", and then n_features is left out')
        return _labels(line)
    width = get(line, "n_features")
    if not isinstance(width, int) or isinstance(width, bool) or not 1 <= width <= WIDEST:
        raise MalformedError(f"n_features is {short(width)}, not a whole number from 1 to {WIDEST}")
    return _labels(line)


def _labels(line: dict[str, Any]) -> Classes:
    labels = get(line, "classes")
    if not isinstance(labels, list) or len(labels) < 2:
        raise MalformedError("classes must be an array of at least two labels")
    return Classes(plain_classes(labels))


def _by_number(line: dict[str, Any], width: int) -> tuple[list[float], list[int] | None]:
    """The values of x, and their columns where it has those that are not zero."""
    x = get(line, "x")
    if isinstance(x, dict):
        return [number(value, f"feature {key}") for key, value in x.items()], _columns(x, width)
    return numbers(x, "x", width), None


def _by_name(line: dict[str, Any], encoder: Encoder) -> tuple[list[float], list[int]]:
    """The same of a row by name, from which the encoder learns."""
    x = get(line, "x")
    if not isinstance(x, dict):
        raise MalformedError("x is not an object of names, which the first line promises")
    try:
        row = encoder.encode_row(encoder.read_row(x), learn=True).row
    except InputError as problem:
        raise MalformedError(str(problem)) from None
    assert isinstance(row, SparseRow)
    return row.values.tolist(), row.indices.tolist()


def _decision(
    line: dict[str, Any], values: list[float], columns: list[int] | None, classes: Classes, column: str | None
) -> LoggedDecision:
    label = get(line, "label")
    if type(label) is not type(classes.labels[0]):  # or true would be 1, and 1.0 too
        raise MalformedError(f"label {short(label)} is not of the kind of the classes")
    distribution, among = line.get("distribution"), line.get("among")
    return LoggedDecision(
        values,
        columns,
        classes.code(label),
        number(get(line, "probability"), "probability"),
        number(get(line, "reward"), "reward"),
        None if distribution is None else numbers(distribution, "distribution", len(classes)),
        None if among is None else _codes(among, classes),
        chances(line, column, classes.labels),
    )


def _codes(among: Any, classes: Classes) -> list[int]:
    if not isinstance(among, list) or not among:
        raise MalformedError("among is not an array of at least one label")
    strangers = [label for label in among if type(label) is not type(classes.labels[0])]
    if strangers:
        raise MalformedError(f"label {short(strangers[0])} in among is not of the kind of the classes")
    return [classes.code(label) for label in among]


def _columns(x: dict[str, Any], width: int) -> list[int]:
    for key in x:
        if not (is_column(key) and int(key) < width):
            raise MalformedError(f"feature {short(key)} is not one of 0..{width - 1}")
    return [int(key) for key in x]


# --- writing ------------------------------------------------------------------------------------------------


def write(log: Log) -> Iterator[bytes]:
    """The lines of a log."""
    yield encode(header(log.classes, log.n_features))
    for t in range(log.n_rounds):
        distribution = None if log.distribution is None else log.distribution[t]
        label, among = log.classes[log.codes[t]], labels_of(log.classes, log.available(t))
        yield encode(decision_line(features(log.row(t)), label, log.probability[t], log.reward[t], distribution, among))


def features(row: Any) -> list[float] | dict[str, float]:
    """A row in JSON's words."""
    if isinstance(row, SparseRow):
        return {str(at): float(value) for at, value in zip(row.indices, row.values)}
    if isinstance(row, np.ndarray):
        return [float(value) for value in row]
    return {str(at): float(value) for at, value in zip(row.indices, row.data)}


def labels_of(classes: Sequence[Any], among: Any) -> list[Any] | None:
    """The labels that were available, from a boolean for each; None if all were."""
    if among is None or not len(among) or all(among):
        return None
    return [label for label, there in zip(classes, among) if there]


def decision_line(
    x: Any, label: Any, probability: float, reward: float, distribution: Any, among: list[Any] | None
) -> dict[str, Any]:
    """A decision, as its line says it."""
    line = {"x": x, "label": label, "probability": float(probability), "reward": float(reward)}
    if distribution is not None:
        line["distribution"] = [float(chance) for chance in distribution]
    if among is not None:
        line["among"] = among
    return line
