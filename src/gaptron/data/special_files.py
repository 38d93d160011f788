"""Refuse files whose reading may never end: named pipes, devices and sockets."""

import errno
import os
import re
import stat

_DESCRIPTOR = re.compile(r"/dev/(stdin|fd/\d+)|/proc/(self|\d+)/fd/\d+")  # also `<(command)` of a shell
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def check_not_special(path: str | os.PathLike[str]) -> None:
    """Refuse a path that is neither a file nor a folder, unless it names an open descriptor.

    Args:
        path: the path, which must exist.

    Raises:
        OSError: there is no such path, it cannot be examined, or it is special.
    """
    mode = os.stat(path).st_mode
    if _DESCRIPTOR.fullmatch(os.fspath(path)):
        return
    for matches, kind in _KINDS:
        if matches(mode):
            raise OSError(errno.EINVAL, f"it is {kind}, which may never end; to read it, redirect standard input to it")
