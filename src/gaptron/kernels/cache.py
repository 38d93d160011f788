"""Where compiled code is kept, and when old code is thrown away.

The compiler's disk cache looks only at the file of the function it compiled, not at the files of what that function
calls: edit a verb, and a cached caller would go on running the old one. So the cache lives in a folder named by a hash
of every source that is compiled; another text, another folder, and stale code cannot be met.
"""

import contextlib
import hashlib
import os
import sys
import time
from pathlib import Path

COMPILED = ("types.py", "kernels/**/*.py", "algorithms/**/*.py", "abstention/*.py")
DAY = 86_400.0
UNUSED = 30 * DAY  # after which the code in a folder is thrown away


def fingerprint(package: Path) -> str:
    """A hash of every source file that is compiled."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in COMPILED for path in package.glob(pattern)):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def cache_folder(package: Path, compiler: str) -> Path:
    """Where compiled code of exactly these sources lives, in the user's own cache directory."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "gaptron" / f"numba-{compiler}-{fingerprint(package)}"


def use(folder: Path) -> None:
    """Note that the folder is in use, and throw away code in folders beside it that nobody used for a month.

    Once a day, and never an error: a cache is there to save time. A process that still runs from an old folder loses
    nothing but that: files vanish, the index before what it points to, and folders stay, so that it can write again.
    """
    with contextlib.suppress(OSError):
        now = time.time()
        if folder.is_dir() and now - folder.stat().st_mtime < DAY:
            return
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        for other in folder.parent.glob("numba-*"):
            if not other.is_symlink() and other.is_dir() and now - other.stat().st_mtime > UNUSED:
                for pattern in ("*/*.nbi", "*/*.nbc"):
                    for file in other.glob(pattern):
                        file.unlink(missing_ok=True)
