"""Choose the folder of the compiled code, and delete code that is no longer used.

numba's disk cache checks only the file of the function it compiled, not the files of the functions that it calls. After
an edit to a kernel, a cached caller would still run the old code. The cache folder is therefore named by a hash of
every source file that is compiled: another text gives another folder, and stale code is never loaded.
"""

import contextlib
import hashlib
import os
import sys
import time
from pathlib import Path

COMPILED = ("types.py", "kernels/**/*.py", "algorithms/**/*.py", "abstention/*.py")
DAY = 86_400.0  # seconds
MAX_AGE = 30 * DAY  # code in a folder that was not used for this long is deleted


def fingerprint(package: Path) -> str:
    """Return a hash of every source file that is compiled."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in COMPILED for path in package.glob(pattern)):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def cache_folder(package: Path, compiler: str) -> Path:
    """Return the folder, in the user's cache directory, for code compiled from exactly these sources."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "gaptron" / f"numba-{compiler}-{fingerprint(package)}"


def mark_used(folder: Path) -> None:
    """Update the folder's time stamp, and delete the code in sibling folders that were not used for `MAX_AGE`.

    Runs at most once a day and never raises: a cache only saves time. A process that still runs from an old folder
    keeps working. The index files are deleted before the files that they point to, and the folders stay, so that the
    process can write its code again.
    """
    with contextlib.suppress(OSError):
        now = time.time()
        if folder.is_dir() and now - folder.stat().st_mtime < DAY:
            return
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        for other in folder.parent.glob("numba-*"):
            if not other.is_symlink() and other.is_dir() and now - other.stat().st_mtime > MAX_AGE:
                for pattern in ("*/*.nbi", "*/*.nbc"):
                    for file in other.glob(pattern):
                        file.unlink(missing_ok=True)
