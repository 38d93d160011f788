"""Read and write log files; the extension determines the format."""

import io
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gaptron.data import atomic_file
from gaptron.errors import InputError, SettingError, StreamError
from gaptron.offpolicy import dsjson, jsonl, obp, table_log, vw_text
from gaptron.offpolicy.log import Log
from gaptron.offpolicy.table_log import TableRoles
from gaptron.streams.columns import Column
from gaptron.streams.compression import compressed
from gaptron.streams.json_lines import plain_classes
from gaptron.streams.source import Source

DAMAGED = ("refuse", "skip")


class LogFormat(NamedTuple):
    """A file format for logged decisions."""

    extensions: tuple[str, ...]
    binary: bool = False  # has its own compression
    table: bool = False  # has columns with roles
    written: bool = False  # `save_log` can write it


LOG_FORMATS = {
    "csv": LogFormat((".csv",), table=True),
    "dsjson": LogFormat((".dsjson", ".json"), written=True),
    "jsonl": LogFormat((".jsonl", ".ndjson"), written=True),
    "obp": LogFormat((".npz",), binary=True, written=True),
    "parquet": LogFormat((".parquet",), binary=True, table=True),
    "tsv": LogFormat((".tsv",), table=True),
    "vw": LogFormat((".vw", ".vwtxt")),
}


def open_log(
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    n_features: int | None = None,
    damaged: str = "refuse",
    column: str | None = None,
    action: Column | None = None,
    propensity: Column | None = None,
    reward: Column | None = None,
    costs: str | None = None,
    classes: Sequence[Any] | None = None,
) -> Log:
    """Read a log from a file or from standard input.

    An incomplete last line, as a full disk or a killed process leaves it, is skipped with a DamagedLogWarning.

    Args:
        source: A path (.csv, .tsv, .parquet, .jsonl, .dsjson, .vw, .npz; texts also with .gz, .bz2 or .xz) or "-" for
            standard input.
        format: csv, tsv, parquet, jsonl, dsjson, vw or obp; by default from the extension, and jsonl for standard
            input.
        n_features: The number of features of a dsjson or vw file; by default up to the last column in use, and 2¹⁸
            where names are hashed to columns.
        damaged: "refuse" a file with a line that cannot be read, or "skip" such lines with a DamagedLogWarning that
            lists them. Readable lines with impossible numbers are always refused: they were not damaged on disk but
            logged incorrectly.
        column: The field of every line (for .npz: the array) with the probabilities of your own policy, for
            `evaluate_policy`: a number (of the label played), an array (of every label) or an object by label.
        action: Tables: the column with the label played; by default "action" or "label".
        propensity: Tables: the column with its propensity; by default "propensity" or "probability".
        reward: Tables: the column with its reward; by default "reward".
        costs: vw: the lowest and the highest cost, as in "0..1"; by default -1..0 or 0..1, as the costs show.
        classes: Tables and vw: all labels, in the order of their codes; by default those in the file, sorted.

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
        if form not in ("dsjson", "vw"):
            raise InputError(f"n_features= is only for dsjson and vw: {form} files contain the number of features")
        if n_features < 1:
            raise InputError("n_features must be at least 1")
    roles = TableRoles(action, propensity, reward)
    if not LOG_FORMATS[form].table and any(name is not None for name in roles):
        given = next(role for role, name in roles._asdict().items() if name is not None)
        raise SettingError(f"{given}=... is only for tables: {form} files have their own names")
    if costs is not None and form != "vw":
        raise SettingError(f"costs=... is only for vw files, not for {form}")
    if LOG_FORMATS[form].table:
        return table_log.read(origin, form, roles, classes=classes, column=column)
    if form == "vw":
        if column is not None:
            raise SettingError(f"column={column!r}: vw files have no field for the probabilities of your own policy")
        return vw_text.read(origin, n_features, costs, classes=classes, skip_damaged=damaged == "skip")
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
    if not LOG_FORMATS[form].written:
        known = ", ".join(name for name, one in LOG_FORMATS.items() if one.written)
        raise StreamError(target.name, f"logs cannot be written as {form}: give format= one of {known}")
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
