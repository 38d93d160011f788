"""Logs on disk: the form is told by the extension."""

import os
from typing import NamedTuple

import numpy as np

from gaptron.errors import InputError, StreamError
from gaptron.logged import dsjson, jsonl, obp
from gaptron.logged.lines import open_text, plain_classes
from gaptron.logged.log import Log
from gaptron.streams.source import Source


class Form(NamedTuple):
    """What a file of logged decisions looks like."""

    extensions: tuple[str, ...]
    binary: bool = False  # packs itself


LOG_FORMATS = {
    "dsjson": Form((".dsjson", ".json")),
    "jsonl": Form((".jsonl", ".ndjson")),
    "obp": Form((".npz",), binary=True),
}


def open_log(source: str | os.PathLike[str], *, format: str | None = None, n_features: int | None = None) -> Log:
    """The log in a file, or on standard input.

    Args:
        source: a path (.jsonl, .dsjson, .npz; the first two also .gz .bz2 .xz) or "-" for standard input.
        format: jsonl, dsjson or obp, where the extension does not tell; on standard input the default is jsonl.
        n_features: the width, for dsjson, which does not say; by default the last column in use, and 2¹⁸ where names
            are hashed to columns.

    Raises:
        StreamError: names the file and, where there are lines, the line.
    """
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
        return dsjson.read(origin, n_features)
    return jsonl.read(origin) if form == "jsonl" else obp.read(origin)


def save_log(log: Log, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a log to a file, in the form its extension tells. A file that is there is replaced."""
    place = Source(os.fspath(path))
    form = _form(place, format)
    plain_classes(log.classes)
    if form == "obp":
        arrays = obp.to_obp(log)
        try:
            with open(place.path, "wb") as binary:
                np.savez_compressed(binary, **arrays)
        except OSError as problem:
            raise StreamError(place.name, f"cannot be written ({problem.strerror or problem})") from None
        return
    with open_text(place.path, "w") as text:
        text.writelines(jsonl.write(log) if form == "jsonl" else dsjson.write(log))


def _form(source: Source, asked: str | None) -> str:
    extension, packed = source.suffixes
    told = next((name for name, form in LOG_FORMATS.items() if extension in form.extensions), None)
    name = asked or told
    if name not in LOG_FORMATS:
        raise StreamError(source.name, f"unknown form of a log: say format= one of {', '.join(LOG_FORMATS)}")
    if packed and LOG_FORMATS[name].binary:
        raise StreamError(source.name, f"{name} packs itself: leave out the {packed}")
    return name
