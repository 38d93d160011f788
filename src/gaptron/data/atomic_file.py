"""Files that are written completely or not at all."""

import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def replace(path: str | os.PathLike[str], parts: Iterable[Any]) -> None:
    """Replace the content of a file.

    The parts are written to another file in the same directory, synchronised with the disk and renamed: if the process
    is killed or the disk is full, the old file or the new one is left. The old file's permissions stay.

    Args:
        path: the file.
        parts: the new content, one after the other.

    Raises:
        OSError: the path is not a regular file (a directory, a device, a pipe), or cannot be written.
    """
    target = Path(os.path.realpath(path))
    mode = _mode_of(target)
    draft = target.with_name(
        f".gaptron-{secrets.token_hex(8)}"
    )  # short, because the name itself may have the maximal length
    try:
        with open(draft, "xb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            if mode is not None:
                os.chmod(draft, mode)
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # the new name is on disk only when the directory is
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _mode_of(target: Path) -> int | None:
    try:
        status = target.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"{target.name} is not a regular file")
    if not status.st_mode & stat.S_IWUSR:
        raise PermissionError(f"{target.name} is read-only")
    return stat.S_IMODE(status.st_mode)
