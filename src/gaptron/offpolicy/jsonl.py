"""gaptron's own log format: a header line that names the labels, then one line per decision.

    {"format":"gaptron-log","version":1,"classes":["cat","dog","owl"],"n_features":4}
    {"x":[0.5,0,0,1.25],"label":"dog","propensity":0.8,"reward":1,"distribution":[0.1,0.8,0.1]}
    {"x":{"0":0.5,"3":1.25},"label":"cat","propensity":0.1,"reward":0}
    {"x":[0,1,0,0],"label":"owl","propensity":0.5,"reward":0.35,"available":["dog","owl"]}

`x` is an array, or an object with its non-zero entries; a file uses one of the two. With "features":"auto" instead of
"n_features" it is an object of features by name, whose values are numbers, strings, true, false or null. They are
encoded in the order of the lines, as `Learner(features="auto")` does. `distribution` is optional (for all lines of a
file), as is `available`, the labels that could be played (in any line; by default all). Other fields are ignored. The
header may be repeated, so that logs can be concatenated.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gaptron.data.labels import Classes
from gaptron.errors import InputError, StreamError
from gaptron.features.cells import Cell, Time, cell
from gaptron.offpolicy.builder import LogBuilder, LoggedDecision
from gaptron.offpolicy.log import Log
from gaptron.streams.json_lines import (
    WIDEST,
    LogLines,
    MalformedError,
    encode,
    get,
    is_column,
    number,
    numbers,
    plain_classes,
    policy_probabilities,
    short,
)
from gaptron.streams.source import Source
from gaptron.types import Row, SparseRow

FORMAT, VERSION = "gaptron-log", 1
AUTO = "auto"  # the only declaration of features by name that a log has


def header(classes: tuple[Any, ...], n_features: int | None) -> dict[str, Any]:
    """Return the header. n_features=None means that features are given by name."""
    shape = {"features": AUTO} if n_features is None else {"n_features": n_features}
    return {"format": FORMAT, "version": VERSION, "classes": list(plain_classes(classes)), **shape}


# --- reading ------------------------------------------------------------------------------------------------


def read(source: Source, *, skip_damaged: bool = False, column: str | None = None) -> Log:
    """Read a log in this format; `column` names the field with the probabilities of the caller's policy."""
    first: dict[str, Any] = {}
    classes: list[Classes] = []
    builder = LogBuilder(source)

    def take(at: int, line: dict[str, Any]) -> None:
        if not classes:
            try:
                classes.append(classes_of(line))
            except (MalformedError, InputError) as problem:
                raise StreamError(source.name, str(problem), at) from None
            first.update(line)
        elif "format" in line:
            if line != first:
                raise StreamError(source.name, "this header has other labels or features than the first", at)
        else:
            by_name = "features" in first
            row = _by_name(line) if by_name else _by_number(line, first["n_features"])
            decision = _decision(line, *row, classes[0], column)
            builder.add(at, decision._replace(by_name=line["x"]) if by_name else decision)

    LogLines(source, skip_damaged=skip_damaged, header=True).each(take)
    if not classes:
        raise StreamError(source.name, "contains no decisions")
    return builder.log(classes[0].labels, first.get("n_features", 0))


def classes_of(line: dict[str, Any]) -> Classes:
    """Return the classes that a header names; raise MalformedError or InputError if it is wrong."""
    if line.get("format") != FORMAT:
        raise MalformedError(
            f'the first line must be {{"format":"{FORMAT}", ...}}; give format= if the file has another format'
        )
    if line.get("version") != VERSION:
        raise MalformedError(f"version {short(line.get('version'))} of the log format is not supported, only {VERSION}")
    if "features" in line:
        if line["features"] != AUTO or "n_features" in line:
            raise MalformedError(f'features must be "{AUTO}", without n_features')
        return _labels(line)
    width = get(line, "n_features")
    if not isinstance(width, int) or isinstance(width, bool) or not 1 <= width <= WIDEST:
        raise MalformedError(f"n_features is {short(width)}, not an integer from 1 to {WIDEST}")
    return _labels(line)


def _labels(line: dict[str, Any]) -> Classes:
    labels = get(line, "classes")
    if not isinstance(labels, list) or len(labels) < 2:
        raise MalformedError("classes must be an array of at least two labels")
    return Classes(plain_classes(labels))


def _by_number(line: dict[str, Any], width: int) -> tuple[list[float], list[int] | None]:
    """Return the values of x, and their columns if x is an object of non-zero entries."""
    x = get(line, "x")
    if isinstance(x, dict):
        return [number(value, f"feature {key}") for key, value in x.items()], _columns(x, width)
    return numbers(x, "x", width), None


def _by_name(line: dict[str, Any]) -> tuple[list[float], list[int]]:
    """Check features by name; they are encoded when all lines have been read."""
    if not isinstance(get(line, "x"), dict):
        raise MalformedError("x is not an object of features by name, which the header declares")
    return [], []


def _decision(
    line: dict[str, Any], values: list[float], columns: list[int] | None, classes: Classes, column: str | None
) -> LoggedDecision:
    label = get(line, "label")
    if type(label) is not type(classes.labels[0]):  # otherwise true and 1.0 would count as 1
        raise MalformedError(f"label {short(label)} does not have the type of the classes")
    distribution, available = line.get("distribution"), line.get("available")
    return LoggedDecision(
        values,
        columns,
        classes.code(label),
        number(get(line, "propensity"), "propensity"),
        number(get(line, "reward"), "reward"),
        None if distribution is None else numbers(distribution, "distribution", len(classes)),
        None if available is None else _codes(available, classes),
        policy=policy_probabilities(line, column, classes.labels),
    )


def _codes(available: Any, classes: Classes) -> list[int]:
    if not isinstance(available, list) or not available:
        raise MalformedError("available is not an array of at least one label")
    unknown = [label for label in available if type(label) is not type(classes.labels[0])]
    if unknown:
        raise MalformedError(f"label {short(unknown[0])} in available does not have the type of the classes")
    return [classes.code(label) for label in available]


def _columns(x: dict[str, Any], width: int) -> list[int]:
    for key in x:
        if not (is_column(key) and int(key) < width):
            raise MalformedError(f"feature {short(key)} is not one of 0..{width - 1}")
    return [int(key) for key in x]


# --- writing ------------------------------------------------------------------------------------------------


def write(log: Log) -> Iterator[bytes]:
    """Yield the lines of a log."""
    yield encode(header(log.classes, log.n_features if log.feature_dicts is None else None))
    for t in range(log.n_rounds):
        distribution = None if log.distribution is None else log.distribution[t]
        label, available = log.classes[log.codes[t]], labels_of(log.classes, log.available_at(t))
        x = (
            json_features(log.example(t).row)
            if log.feature_dicts is None
            else json_named_features(log.feature_dicts[t])
        )
        yield encode(decision_line(x, label, log.propensity[t], log.reward[t], distribution, available))


def json_features(row: Row) -> list[float] | dict[str, float]:
    """Return numeric features as JSON values."""
    if isinstance(row, SparseRow):
        return {str(at): float(value) for at, value in zip(row.indices, row.values)}
    return [float(value) for value in row]


def json_named_features(x: Mapping[str, Any]) -> dict[str, Any]:
    """Return features by name as JSON values: numbers, strings, booleans and null; times become strings."""
    return {name: _plain(cell(name, value), value) for name, value in x.items()}


def _plain(found: Cell, value: Any) -> Any:
    if isinstance(found, Time):
        return found.text
    return bool(value) if isinstance(value, (bool, np.bool_)) else found


def labels_of(classes: Sequence[Any], available: Any) -> list[Any] | None:
    """Return the available labels, given a boolean per label; None if all are available."""
    if available is None or not len(available) or all(available):
        return None
    return [label for label, is_available in zip(classes, available) if is_available]


def decision_line(
    x: Any, label: Any, propensity: float, reward: float, distribution: Any, available: list[Any] | None
) -> dict[str, Any]:
    """Return a decision as the JSON object of its line."""
    line = {"x": x, "label": label, "propensity": float(propensity), "reward": float(reward)}
    if distribution is not None:
        line["distribution"] = [float(p) for p in distribution]
    if available is not None:
        line["available"] = available
    return line
