"""How much of a stream is read at a time: all of what is small, else some rounds as they are played."""

import ctypes
import os
import sys

from gaptron.errors import SettingError

SMALL = 1 << 25  # bytes of text up to which a file is read at once, and its bound computed
ROUNDS = 1 << 16  # read at a time, at most, of a larger one
TRIM, MAP = (-1, 1 << 26), (-3, 1 << 25)  # glibc: keep up to 64 MB of what is given back; map no piece below 32 MB


def why_whole(bound: bool | None, shuffle: int | None, standardize: bool) -> str:
    """The option that needs the whole stream in memory, "" if none does."""
    asked = {"--bound": bool(bound), "--shuffle": shuffle is not None, "--standardize": standardize}
    return next((option for option, given in asked.items() if given), "")


def at_a_time(given: int | None, whole: str, stream: str, format_: str | None, known: bool, wide: bool) -> int | None:
    """How many rounds to read at a time: None, all, where something asks for all, or where that takes little memory.

    `known`, `wide`: are the classes and the norm, and is the number of features, known before?
    """
    from gaptron.streams.files import in_pieces, is_file, weight  # noqa: PLC0415

    if given is not None and whole:
        raise SettingError(f"{whole} needs the whole stream in memory: leave out --chunk")
    if given is not None or whole:
        return given
    if not is_file(stream):
        return None
    small = stream != "-" and os.path.isfile(stream) and weight(stream, format_) <= SMALL
    return None if small or not in_pieces(stream, format_, known, wide) else ROUNDS


def keep_memory() -> None:
    """Let memory that is given back stay with this process, for the next piece.

    Where the C library has it so (glibc); fetching the pages anew took a tenth of the time of playing a file.
    """
    if sys.platform == "linux" and (set_option := getattr(ctypes.CDLL(None), "mallopt", None)):
        for option in (TRIM, MAP):
            set_option(*option)
