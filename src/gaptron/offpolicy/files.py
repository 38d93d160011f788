"""Read and write log files; the extension determines the format."""

import io
import os
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from gaptron.data import atomic_file
from gaptron.errors import InputError, SettingError, StreamError
from gaptron.offpolicy import dsjson, jsonl, obp
from gaptron.offpolicy.log import Log
from gaptron.streams.compression import compressed
from gaptron.streams.json_lines import plain_classes
from gaptron.streams.source import Source

DAMAGED = ("refuse", "skip")


class LogFormat(NamedTuple):
    """A file format for logged decisions."""

    extensions: tuple[str, ...]
    binary: bool = False  # has its own compression


LOG_FORMATS = {
    "dsjson": LogFormat((".dsjson", ".json")),
    "jsonl": LogFormat((".jsonl", ".ndjson")),
    "obp": LogFormat((".npz",), binary=True),
}


def open_log(
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    n_features: int | None = None,
    damaged: str = "refuse",
    column: str | None = None,
) -> Log:
    """Read a log from a file or from standard input.

    An incomplete last line, as a full disk or a killed process leaves it, is skipped with a DamagedLogWarning.

    Args:
        source: A path (.jsonl, .dsjson, .npz; the first two also with .gz, .bz2 or .xz) or "-" for standard input.
        format: jsonl, dsjson or obp; by default from the extension, and jsonl for standard input.
        n_features: The number of features of a dsjson file; by default up to the last column in use, and 2¹⁸ where
            names are hashed to columns.
        damaged: "refuse" a file with a line that cannot be read, or "skip" such lines with a DamagedLogWarning that
            lists them. Readable lines with impossible numbers are always refused: they were not damaged on disk but
            logged incorrectly.
        column: The field of every line (for .npz: the array) with the probabilities of your own policy, for
            `evaluate_policy`: a number (of the label played), an array (of every label) or an object by label.

    Returns:
        The log.

    Raises:
        StreamError: The file cannot be read; the message names the file and the line.
    """
    if damaged not in DAMAGED:
        raise SettingError(f"damaged={damaged!r} must be one of {', '.join(DAMAGED)}")
    origin = Source(os.fspath(source))
    origin.check_exists("file not found")
    form = _format_of(origin, "jsonl" if origin.is_stdin and format is None else format)
    if n_features is not None:
        if form != "dsjson":
            raise InputError(f"n_features= is only for dsjson: {form} files contain the number of features")
        if n_features < 1:
            raise InputError("n_features must be at least 1")
    if form == "dsjson":
        return dsjson.read(origin, n_features, skip_damaged=damaged == "skip", column=column)
    if form == "jsonl":
        return jsonl.read(origin, skip_damaged=damaged == "skip", column=column)
    return obp.read(origin, column=column)


def save_log(log: Log, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a log to a file. An existing file is replaced atomically.

    Args:
        log: The log.
        path: The file.
        format: jsonl, dsjson or obp; by default from the extension.

    Raises:
        StreamError: The file cannot be written; an existing file is unchanged.
    """
    target = Source(os.fspath(path))
    form = _format_of(target, format)
    plain_classes(log.classes)
    if form == "obp":
        chunks: Iterable[bytes] = _zipped(log)
    else:
        chunks = compressed(jsonl.write(log) if form == "jsonl" else dsjson.write(log), target.suffixes[1])
    try:
        atomic_file.replace(target.path, chunks)
    except OSError as problem:
        raise StreamError(target.name, f"cannot be written ({problem.strerror or problem})") from None


def _zipped(log: Log) -> list[bytes]:
    file = io.BytesIO()
    np.savez_compressed(file, **obp.to_obp(log))
    return [file.getvalue()]


def _format_of(source: Source, asked: str | None) -> str:
    extension, compression = source.suffixes
    by_extension = next((name for name, form in LOG_FORMATS.items() if extension in form.extensions), None)
    name = asked or by_extension
    if name not in LOG_FORMATS:
        raise StreamError(source.name, f"unknown log format: give format= one of {', '.join(LOG_FORMATS)}")
    if compression and LOG_FORMATS[name].binary:
        raise StreamError(source.name, f"{name} files are already compressed: remove {compression} from the name")
    return name
