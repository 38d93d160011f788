"""Replace a file as a whole: it holds the old bytes or the new ones, whenever the process or the machine stops."""

import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path


def replace(path: str | os.PathLike[str], parts: Iterable[bytes]) -> None:
    """Write the parts beside the file, wait until the disk holds them, and rename. Raises OSError."""
    place = Path(os.path.realpath(path))
    mode = None
    if place.exists():
        found = place.stat()
        if not stat.S_ISREG(found.st_mode):
            raise OSError(None, "it is not a regular file")
        if not os.access(place, os.W_OK):
            raise PermissionError(None, "it is read-only")
        mode = stat.S_IMODE(found.st_mode)
    draft = place.with_name(f".gaptron-{secrets.token_hex(8)}")
    try:
        with open(draft, "xb") as file:
            if mode is not None:
                os.chmod(draft, mode)
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, place)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # the new name is safe only when the folder is
        folder = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
