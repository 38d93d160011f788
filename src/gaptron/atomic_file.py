"""Files that are written whole or not at all."""

import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def replace(path: str | os.PathLike[str], parts: Iterable[Any]) -> None:
    """Put the parts, one after the other, in a file in place of what was there.

    They are written beside it, synchronised with the disk and renamed: a kill or a full disk at any moment leaves the
    old file or the new one. The old file's permissions stay. What is no regular file (a folder, a device, a pipe), or
    may not be written to, is refused with an `OSError`.
    """
    target = Path(os.path.realpath(path))
    mode = _mode_of(target)
    draft = target.with_name(
        f".gaptron-{secrets.token_hex(8)}"
    )  # short: the name itself may be as long as names can be
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
    if os.name == "posix":  # the new name is safe only when the folder is
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
