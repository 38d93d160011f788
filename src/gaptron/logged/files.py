"""Logs on disk: the extension says the form."""

import bz2
import io
import lzma
import os
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gaptron import atomic_file
from gaptron.errors import InputError, SettingError, StreamError
from gaptron.logged import dsjson, jsonl, obp
from gaptron.logged.lines import plain_classes
from gaptron.logged.log import Log
from gaptron.streams.source import Source

_COMPRESSORS: dict[str, Any] = {
    ".gz": lambda: zlib.compressobj(wbits=31),  # 31: with the header and checksum of a .gz file
    ".bz2": bz2.BZ2Compressor,
    ".xz": lzma.LZMACompressor,
}
DAMAGED = ("refuse", "skip")


class LogFormat(NamedTuple):
    """What a file of logged decisions looks like."""

    extensions: tuple[str, ...]
    binary: bool = False  # packs itself


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
    """The log in a file, or on standard input.

    An incomplete last line, as a full disk or a killed process leaves it, is left out with a DamagedLogWarning.

    Args:
        source: a path (.jsonl, .dsjson, .npz; the first two also .gz .bz2 .xz) or "-" for standard input.
        format: jsonl, dsjson or obp, where the extension does not tell; on standard input the default is jsonl.
        n_features: the width, for dsjson, which does not say; by default the last column in use, and 2¹⁸ where names
            are hashed to columns.
        damaged: "refuse" a file with a line that cannot be read; or "skip" such lines, with a DamagedLogWarning that
            names them. Lines that can be read and hold impossible numbers are refused in any case: they were not
            damaged on the disk but logged wrongly.
        column: the field of every line (of .npz, the array) that holds the probabilities of a policy of your own, for
            `judge_policy`: a number (the chance of the label played), an array (of every label) or an object by label.

    Raises:
        StreamError: names the file and, where there are lines, the line.
    """
    if damaged not in DAMAGED:
        raise SettingError(f"damaged={damaged!r} must be one of {', '.join(DAMAGED)}")
    origin = Source(os.fspath(source))
    if not origin.piped and not os.path.exists(origin.path):
        raise StreamError(origin.name, "there is no such file")
    form = _form(origin, "jsonl" if origin.piped and format is None else format)
    if n_features is not None:
        if form != "dsjson":
            raise InputError(f"n_features= is for dsjson: {form} says itself how wide the rows are")
        if n_features < 1:
            raise InputError("n_features must be at least 1")
    if form == "dsjson":
        return dsjson.read(origin, n_features, skip_damaged=damaged == "skip", column=column)
    if form == "jsonl":
        return jsonl.read(origin, skip_damaged=damaged == "skip", column=column)
    return obp.read(origin, column=column)


def save_log(log: Log, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a log to a file, in the form its extension names. A file that is there is replaced as a whole.

    Raises:
        StreamError: the file cannot be written; one that was there is as it was.
    """
    place = Source(os.fspath(path))
    form = _form(place, format)
    plain_classes(log.classes)
    if form == "obp":
        parts: Iterable[bytes] = _zipped(log)
    else:
        parts = _compressed(jsonl.write(log) if form == "jsonl" else dsjson.write(log), place.suffixes[1])
    try:
        atomic_file.replace(place.path, parts)
    except OSError as problem:
        raise StreamError(place.name, f"cannot be written ({problem.strerror or problem})") from None


def _compressed(lines: Iterator[bytes], extension: str) -> Iterator[bytes]:
    if not extension:
        yield from lines
        return
    compressor = _COMPRESSORS[extension]()
    for line in lines:
        yield compressor.compress(line)
    yield compressor.flush()


def _zipped(log: Log) -> list[bytes]:
    file = io.BytesIO()
    np.savez_compressed(file, **obp.to_obp(log))
    return [file.getvalue()]


def _form(source: Source, asked: str | None) -> str:
    extension, packed = source.suffixes
    by_extension = next((name for name, form in LOG_FORMATS.items() if extension in form.extensions), None)
    name = asked or by_extension
    if name not in LOG_FORMATS:
        raise StreamError(source.name, f"unknown form of a log: say format= one of {', '.join(LOG_FORMATS)}")
    if packed and LOG_FORMATS[name].binary:
        raise StreamError(source.name, f"{name} packs itself: leave out the {packed}")
    return name
