"""How files are read: their text, and all of a small file at once, otherwise chunks while they are played."""

import ctypes
import os
import sys
from typing import TYPE_CHECKING, Any

from gaptron.errors import SettingError

if TYPE_CHECKING:
    from gaptron import Learner

SMALL = 1 << 25  # bytes of text up to which a file is read at once, and its bound computed
ROUNDS = 1 << 16  # in a chunk of a larger file, at most
TRIM, MAP = (-1, 1 << 26), (-3, 1 << 25)  # glibc: keep up to 64 MB of freed memory; do not map chunks below 32 MB


def text_options(path: str, format_: str | None, given: dict[str, Any], model: "Learner | None") -> dict[str, Any]:
    """Return how a text table is written: as given, otherwise as in the files that the model learned from.

    Args:
        path: the file.
        format_: its format, if the user gives it.
        given: the options of `open_stream` by name; None: not given.
        model: a loaded learner.
    """
    from gaptron.streams.files import applicable_options, is_file  # noqa: PLC0415

    chosen = {name: value for name, value in given.items() if value is not None}
    if model is None or not is_file(path):
        return chosen
    saved = {name: model.reading[name] for name in given if name in model.reading}
    if path == "-" and not format_ and model.features is not None:
        format_ = "csv"
    applicable = applicable_options(path, {"format": format_, **saved})
    return {name: applicable[name] for name in saved if name in applicable} | chosen


def option_for_whole_stream(bound: bool | None, shuffle: int | None, standardize: bool) -> str:
    """Return the option that needs the whole stream in memory, "" if there is none."""
    given = {"--bound": bool(bound), "--shuffle": shuffle is not None, "--standardize": standardize}
    return next((option for option, is_given in given.items() if is_given), "")


def chunk_size(
    requested: int | None, whole: str, stream: str, format_: str | None, classes_known: bool, width_known: bool
) -> int | None:
    """Return the number of rounds to read at a time; None: all, if an option needs all or the file is small.

    Args:
        requested: the user's --chunk.
        whole: the option that needs the whole stream, "" if there is none.
        stream: the stream as the user gives it.
        format_: its format, if the user gives it.
        classes_known: are the classes and the norm known before reading?
        width_known: is the number of features known before reading?
    """
    from gaptron.streams.files import can_read_in_chunks, is_file, text_size  # noqa: PLC0415

    if requested is not None and whole:
        raise SettingError(f"{whole} needs the whole stream in memory: omit --chunk")
    if requested is not None or whole:
        return requested
    if not is_file(stream):
        return None
    small = stream != "-" and os.path.isfile(stream) and text_size(stream, format_) <= SMALL
    return None if small or not can_read_in_chunks(stream, format_, classes_known, width_known) else ROUNDS


def keep_freed_memory() -> None:
    """Let this process keep freed memory for the next chunk, where the C library is glibc.

    Without this, page faults took a tenth of the time of playing a file.
    """
    if sys.platform == "linux" and (set_option := getattr(ctypes.CDLL(None), "mallopt", None)):
        for option in (TRIM, MAP):
            set_option(*option)
