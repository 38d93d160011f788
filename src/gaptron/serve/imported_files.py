"""Logs and tables as decisions to import: the readers are those of `gaptron.offpolicy` and `gaptron.streams`."""

import hashlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from gaptron.errors import InputError, StreamError
from gaptron.features.tables import Column, Texts
from gaptron.offpolicy import Log, open_log
from gaptron.offpolicy.jsonl import json_features, json_named_features, labels_of
from gaptron.serve.schemas import ModelInfo
from gaptron.streams import Stream, open_stream
from gaptron.streams.actions.rounds import PLAYED, RIGHT, NamedRounds
from gaptron.streams.json_lines import DamagedLineError, DamagedLogWarning
from gaptron.streams.tables import TableStream, open_table
from gaptron.types import SparseRow

OneLog = TypeVar("OneLog", Log, NamedRounds)
TABLES = (".csv", ".tsv", ".parquet")
PREFIX_LENGTH = 12  # hexadecimal digits of the checksum in the ids of events


def decisions_of_labels(
    path: str, model: ModelInfo, *, format: str | None = None, label: str | int | None = None, skip_damaged: bool
) -> Iterator[dict[str, Any]]:
    """Return the decisions of a log, or of a table with the true labels, without ids, for a model with labels.

    Args:
        path: the file.
        model: the model that learns from it.
        format: its format; by default from the extension.
        label: of a table: the column with the true label.
        skip_damaged: skip the lines of a log that cannot be read.

    Raises:
        StreamError: the file cannot be read, or is not for this model.
    """
    named = model.features == "auto"
    if (f".{format}" if format else _extension(path)) in TABLES:
        if model.feedback == "bandit":
            raise _without_propensities(path, _rows(path, format, label))
        if named:
            return _of_table(open_table(path, format=format, label=label))
        stream = open_stream(path, format=format, label=label)
        assert isinstance(stream, Stream)
        return _of_stream(stream)
    log = readable(lambda damaged: open_log(path, format=format, damaged=damaged), path, skip_damaged)
    if named and log.feature_dicts is None:
        raise StreamError(path, f"has numbers, but {model.name} takes features by name")
    if not named and log.feature_dicts is not None:
        raise StreamError(path, f"has features by name, but {model.name} takes numbers")
    return _of_log(log, wide=isinstance(model.features, int))


def decisions_of_actions(rounds: NamedRounds, model: ModelInfo) -> Iterator[dict[str, Any]]:
    """Return the decisions of rounds of actions, without ids.

    Args:
        rounds: the rounds.
        model: the model that learns from them.

    Raises:
        StreamError: they do not say what the model learns from.
    """
    if model.features != "auto":
        raise StreamError(rounds.name, f"has features by name, but {model.name} takes numbers")
    if rounds.kind != PLAYED and model.feedback == "bandit":
        raise _without_propensities(rounds.name, rounds.n_rounds)
    if rounds.kind not in (PLAYED, RIGHT):
        raise StreamError(rounds.name, "has the reward of every action, but not which one is right")
    return _of_actions(rounds)


def readable(read: Callable[[str], OneLog], path: str, skip_damaged: bool) -> OneLog:
    """Read a log; if lines cannot be read, list and count them in the error.

    Args:
        read: opens the log, given "skip" or "refuse" for damaged lines.
        path: the file.
        skip_damaged: skip such lines.
    """
    try:
        return read("skip" if skip_damaged else "refuse")
    except DamagedLineError as problem:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DamagedLogWarning)
            try:
                read("skip")
            except (StreamError, InputError):  # none is left
                pass
        listed = " ".join(str(one.message) for one in caught).replace(f"{path}: skipped ", "")
        raise StreamError(
            path, f"cannot be read: {listed or problem.problem}; --skip-damaged skips such lines"
        ) from None


def prefix_of(path: str, model: ModelInfo) -> str:
    """The beginning of the ids of a file's events: importing the same file again imports nothing.

    A model that has the name of a deleted one gets other ids.
    """
    with open(path, "rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    both = hashlib.sha256(f"{content} {model.created_at}".encode()).hexdigest()
    return f"file-{both[:PREFIX_LENGTH]}"


def _without_propensities(name: str, rows: int) -> StreamError:
    return StreamError(
        name,
        f"{rows:,} of {rows:,} decisions have no propensity, which bandit feedback needs: import a log of decisions "
        "with propensities, or create a model with feedback 'full'",
    )


def _rows(path: str, format: str | None, label: str | int | None) -> int:
    return sum(len(rounds.y) for rounds in open_table(path, format=format, label=label))


def _extension(path: str) -> str:
    for compression in (".gz", ".bz2", ".xz"):
        path = path.removesuffix(compression)
    return "." + path.rpartition(".")[2]


def _of_log(log: Log, *, wide: bool) -> Iterator[dict[str, Any]]:
    for t in range(log.n_rounds):
        line = {
            "label": str(log.classes[log.codes[t]]),
            "propensity": float(log.propensity[t]),
            "outcome": {"reward": float(log.reward[t])},
        }
        available = labels_of(log.classes, log.available_at(t))
        if available is not None:
            line["available"] = [str(label) for label in available]
        if log.feature_dicts is not None:
            yield line | {"features": json_named_features(log.feature_dicts[t])}
        else:
            yield line | {"x": _numbers(log.example(t).row, log.n_features, wide=wide)}


def _of_stream(stream: Stream) -> Iterator[dict[str, Any]]:
    """True labels, with numbers."""
    assert isinstance(stream.X, np.ndarray)  # tables are
    for t in range(stream.n_rounds):
        yield {"x": stream.X[t].tolist(), "outcome": {"label": str(stream.classes[stream.y[t]])}}


def _of_table(table: TableStream) -> Iterator[dict[str, Any]]:
    """True labels, with features by name."""
    for rounds in table:
        columns = rounds.X.block(0, len(rounds.X))
        cells = {name: _cells(column) for name, column in columns.items()}
        for t, code in enumerate(rounds.y):
            features = {name: values[t] for name, values in cells.items() if values[t] is not None}
            yield {"features": json_named_features(features), "outcome": {"label": str(table.classes[code])}}


def _cells(column: Column) -> list[Any]:
    """The values of a column; in a text file, those of a column of numbers are numbers."""
    if isinstance(column, Texts):
        column = column.numbers() or column.words()
    found, codes = column.distinct()
    return [found[code] for code in codes]


def _of_actions(rounds: NamedRounds) -> Iterator[dict[str, Any]]:
    for t in range(rounds.n_rounds):
        actions = [
            {"id": str(name), "features": json_named_features(cells)} for name, cells in rounds.actions[t].items()
        ]
        line = {"context": json_named_features(rounds.contexts[t]), "actions": actions}
        action = str(rounds.action(t))
        if rounds.kind == PLAYED:
            reward = {"reward": float(rounds.reward[t])}
            yield line | {"action": action, "propensity": float(rounds.propensity[t]), "outcome": reward}
        else:
            yield line | {"outcome": {"action": action}}


def _numbers(row: Any, width: int, *, wide: bool) -> Any:
    """An example as `x` of a request. A model without a number of features takes no sparse ones."""
    if isinstance(row, SparseRow) and wide:
        return {"indices": row.indices.tolist(), "values": row.values.tolist()}
    x = json_features(row)
    return [x.get(str(column), 0.0) for column in range(width)] if isinstance(x, dict) else x
